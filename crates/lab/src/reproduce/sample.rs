//! Latencies of messages, by client.

use std::time::Duration;

use crate::arena::quantile_interval;
use crate::arm::{NEVER, Played};
use crate::chance::{Chance, Purpose};
use crate::stats::{Cluster, Interval, Latencies, share_interval};

/// The quantiles of the Pangolin paper's tables, with their names.
pub const QUANTILES: [(&str, f64); 4] = [
    ("95 %", 0.95),
    ("99 %", 0.99),
    ("99.5 %", 0.995),
    ("99.9 %", 0.999),
];

/// By client, then by message: microseconds, [`NEVER`] for what did not arrive. Intervals are by drawing clients.
#[derive(Debug, Clone, Default)]
pub struct Sample(pub Vec<Vec<u32>>);

impl Sample {
    /// What an arm delivered, with the way back added to each latency: the form of latency that the paper has, whose emulator let packets wait
    /// for a whole round trip.
    pub fn round_trips(played: &Played, way_back: impl Fn(usize) -> Duration) -> Self {
        let client = |(client, latencies): (usize, &Vec<u32>)| {
            let back_us = u32::try_from(way_back(client).as_micros()).unwrap_or(NEVER);
            let add = |&latency: &u32| latency.saturating_add(back_us);
            latencies.iter().map(add).collect()
        };
        Self(played.latencies_us.iter().enumerate().map(client).collect())
    }

    /// Some of the clients.
    #[must_use]
    pub fn of_clients(&self, is: impl Fn(usize) -> bool) -> Self {
        let clients = self.0.iter().enumerate();
        let some = clients.filter(|&(client, _)| is(client));
        Self(some.map(|(_, latencies)| latencies.clone()).collect())
    }

    /// So many messages of each client, drawn at random and each at most once: "To avoid bias towards [clients that stay longer],
    /// we randomly select 10 messages from each client".
    #[must_use]
    pub fn drawn(&self, count: usize, seed: u64) -> Self {
        let chance = Chance::new(seed, 0);
        let draw = |(client, latencies): (usize, &Vec<u32>)| {
            let mut left = latencies.clone();
            let mut drawn = Vec::with_capacity(count);
            for turn in 0..count.min(left.len()) {
                let of = left.len() as u64;
                let place = chance.below(of, Purpose::Workload, client as u64, turn as u64);
                drawn.push(left.swap_remove(place as usize));
            }
            drawn
        };
        Self(self.0.iter().enumerate().map(draw).collect())
    }

    /// A quantile over all messages in milliseconds; None when so many never arrived.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        self.latencies().quantile_ms(share)
    }

    /// Its 95 % interval.
    pub fn quantile_ms_95(&self, share: f64) -> Option<Interval> {
        quantile_interval(&self.0, share)
    }

    /// Share of messages later than this, with its 95 % interval.
    pub fn later_than(&self, limit: Duration) -> (f64, Interval) {
        let limit_us = u32::try_from(limit.as_micros()).unwrap_or(NEVER - 1);
        self.share(|_, _, latency| latency > limit_us)
    }

    /// Share of messages (client, number, latency) that are something, with its 95 % interval.
    pub fn share(&self, is: impl Fn(usize, usize, u32) -> bool) -> (f64, Interval) {
        let client = |(client, latencies): (usize, &Vec<u32>)| {
            let messages = latencies.iter().enumerate();
            let hits = messages.filter(|&(number, &latency)| is(client, number, latency));
            Cluster {
                hits: hits.count() as u64,
                of: latencies.len() as u64,
            }
        };
        let clusters: Vec<_> = self.0.iter().enumerate().map(client).collect();
        let sum = |of: fn(&Cluster) -> u64| clusters.iter().map(of).sum::<u64>();
        let share = sum(|cluster| cluster.hits) as f64 / sum(|cluster| cluster.of).max(1) as f64;
        (share, share_interval(&clusters, 1))
    }

    /// (latency in ms, share of messages that arrived by then), for plots.
    pub fn distribution(&self) -> Vec<(f64, f64)> {
        let later = self.latencies().curve().into_iter();
        later.map(|(ms, share)| (ms, 1.0 - share)).collect()
    }

    fn latencies(&self) -> Latencies {
        let mut latencies = Latencies::default();
        for &latency in self.0.iter().flatten() {
            match latency {
                NEVER => latencies.record_lost(),
                latency => latencies.record(u64::from(latency)),
            }
        }
        latencies
    }
}
