//! Measures a population as the paper measured its clients.
//!
//! Probes go through each client's channels in virtual time: five packets at once, every ten seconds, as the game's did. A probe
//! is lost when it or its acknowledgement is.

use std::sync::Arc;

use serde::Serialize;

use super::Client;
use crate::channel::{Channel, Direction, Fate};

/// Packets of a measurement ("a total of five packets per message").
const PACKETS: u64 = 5;
/// Bytes of each, headers included ("two 1KB UDP packets").
const PACKET_BYTES: usize = 1052;
const ACK_BYTES: usize = 40;
/// "about one measurement every 10 seconds".
const EVERY_US: u64 = 10_000_000;
/// Measurements of a client: the paper does not say how long clients stayed; these are half an hour.
const PROBES: u64 = 180;
/// Share of the sorted round trips at the ends of what is called variation.
const TENTH: f64 = 0.1;

/// What was measured of a client.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Surveyed {
    /// Mean round trip of probes.
    pub rtt_mean_ms: f64,
    /// 90 % quantile of the round trips less the 10 % quantile.
    pub variation_ms: f64,
    /// Share of probes without an answer.
    pub loss: f64,
}

/// What was measured of all.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Survey {
    /// By client; those of which no probe came back are missing.
    pub clients: Vec<Surveyed>,
    /// Clients whose paths have outages.
    pub with_outages: usize,
}

impl Survey {
    /// Measures clients; fates repeat with the seed.
    pub fn of<'a>(clients: impl IntoIterator<Item = &'a Client>, seed: u64) -> Self {
        let mut survey = Self::default();
        for (number, client) in (0..).zip(clients) {
            survey.clients.extend(probe(client, seed, number));
            survey.with_outages += usize::from(client.outage.is_some());
        }
        survey
    }

    /// A quantile over clients.
    pub fn quantile(&self, share: f64, of: impl Fn(&Surveyed) -> f64) -> f64 {
        let mut values: Vec<f64> = self.clients.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        at_share(&values, share)
    }

    /// Share of clients.
    pub fn share(&self, is: impl Fn(&Surveyed) -> bool) -> f64 {
        self.count(is) as f64 / self.clients.len().max(1) as f64
    }

    /// How many clients.
    pub fn count(&self, is: impl Fn(&Surveyed) -> bool) -> u64 {
        self.clients.iter().filter(|client| is(client)).count() as u64
    }

    /// Mean over clients of the share of packets lost.
    pub fn loss_mean(&self) -> f64 {
        self.clients.iter().map(|client| client.loss).sum::<f64>()
            / self.clients.len().max(1) as f64
    }

    /// (value, share of clients up to it) with as many points as a plot shows.
    pub fn curve(&self, of: impl Fn(&Surveyed) -> f64) -> Vec<(f64, f64)> {
        const POINTS: u32 = 200;
        let mut values: Vec<f64> = self.clients.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let share = |step: u32| f64::from(step) / f64::from(POINTS);
        (0..=POINTS)
            .map(|step| (at_share(&values, share(step)), share(step)))
            .collect()
    }
}

fn probe(client: &Client, seed: u64, number: u32) -> Option<Surveyed> {
    let (path, way) = (&client.path, Channel::new);
    let mut out = way(Arc::clone(&path.forward), seed, number, Direction::Forward);
    let mut back = way(
        Arc::clone(&path.backward),
        seed,
        number,
        Direction::Backward,
    );
    let mut rtts_us: Vec<f64> = Vec::new();
    for at_us in (0..PROBES).map(|probe| probe * EVERY_US) {
        for _ in 0..PACKETS {
            if let Fate::Delivered {
                delay_us: out_us, ..
            } = out.fate(at_us, PACKET_BYTES)
                && let Fate::Delivered {
                    delay_us: back_us, ..
                } = back.fate(at_us + out_us, ACK_BYTES)
            {
                rtts_us.push((out_us + back_us) as f64);
            }
        }
    }
    rtts_us.sort_by(f64::total_cmp);
    let answered = rtts_us.len() as f64;
    (!rtts_us.is_empty()).then(|| Surveyed {
        rtt_mean_ms: rtts_us.iter().sum::<f64>() / answered / 1e3,
        variation_ms: (at_share(&rtts_us, 1.0 - TENTH) - at_share(&rtts_us, TENTH)) / 1e3,
        loss: 1.0 - answered / (PROBES * PACKETS) as f64,
    })
}

/// The value that a share of sorted ones lies below; 0 when there are none.
fn at_share(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((share * last as f64).round() as usize)
        .copied()
        .unwrap_or(0.0)
}
