//! Numbers of an arm, with intervals: whole flows are resampled, since messages of a flow share its path; or stretches of time, where all share a link.

use std::borrow::Cow;

use serde::Serialize;

use super::ArmRun;
use crate::arm::{NEVER, Played, SOURCE_SYMBOLS, SYMBOLS_SENT};
use crate::chance::{Chance, Purpose};
use crate::emulator::PathCounts;
use crate::stats::{
    CLUSTERS_MIN, Cluster, Interval, Latencies, LatencyMs, design_effect, quantile_ranks,
    share_interval, wilson,
};

/// Draws of the bootstrap: the ends of a 95 % interval within a percent of probability.
const ROUNDS: u64 = 1000;

/// How an arm did.
#[derive(Debug, Clone, Serialize)]
pub struct ArmFigures {
    /// Its name.
    pub arm: String,
    /// How it is tuned.
    pub settings: String,
    /// Messages that it was to carry.
    pub messages: u64,
    /// Messages that it did not take.
    pub messages_refused: u64,
    /// Messages that never arrived, those refused among them.
    pub messages_lost: u64,
    /// Messages that arrived twice.
    pub messages_duplicated: u64,
    /// Flows without a connection when the messages began.
    pub flows_unconnected: u32,
    /// How long after they were due messages were sent, at worst: what the arm's own work held up. No latency counts it.
    pub sent_late_ms_max: f64,
    /// From sending to arrival.
    pub latency_ms: LatencyMs,
    /// 95 % interval of the 99 % quantile.
    pub latency_p99_ms_95: Option<Interval>,
    /// 95 % interval of the 99.9 % quantile.
    pub latency_p99_9_ms_95: Option<Interval>,
    /// Share of messages within the deadline.
    pub on_time_share: f64,
    /// Its 95 % interval.
    pub on_time_share_95: Interval,
    /// IP packets in the way of the messages, for each message.
    pub packets_per_message: f64,
    /// IP packets in the way back, for each message.
    pub packets_back_per_message: f64,
    /// IP bytes in the way of the messages beyond the messages' own, as a share of those.
    pub total_overhead: f64,
    /// The same of the way back.
    pub total_overhead_back: f64,
    /// What was sent to make up for losses: IP bytes in the way of the messages beyond those that the same arm, without redundancy, sent where nothing
    /// was lost, as a share of the messages' bytes; None when it was not played there.
    pub recovery_overhead: Option<f64>,
    /// Of an arm that counts its symbols: those beyond what is needed, as a share of that.
    pub symbol_overhead: Option<f64>,
    /// Time that both sides' threads and programs computed, the kernel's part on their behalf among it.
    pub cpu_us_per_message: f64,
    /// Packets that the machine, not the network, dropped.
    pub spoilt_packets: u64,
}

impl ArmFigures {
    /// Of a run with messages of so many bytes and a deadline; `lossless`: the same arm, without redundancy, over paths without loss.
    pub fn new(
        run: &ArmRun,
        message_bytes: usize,
        deadline_us: u32,
        lossless: Option<&ArmRun>,
    ) -> Self {
        let played = &run.played;
        let latencies = Latencies::from(played);
        let messages = latencies.messages();
        let per_message = |value: f64| value / messages.max(1) as f64;
        let latencies_us = independent(&played.latencies_us, run.shares_link);
        let on_time = clusters(&latencies_us, deadline_us);
        let hits: u64 = on_time.iter().map(|flow| flow.hits).sum();
        let overhead = |bytes: u64, messages: u64| {
            let content = (messages * message_bytes as u64).max(1) as f64;
            bytes as f64 / content
        };
        let forward = total(&run.forward);
        let backward = total(&run.backward);
        let total_overhead = overhead(forward.bytes, messages) - 1.0;
        let beyond = lossless.map(|lossless| {
            let messages = lossless
                .played
                .latencies_us
                .iter()
                .map(Vec::len)
                .sum::<usize>();
            total_overhead - (overhead(total(&lossless.forward).bytes, messages as u64) - 1.0)
        });
        Self {
            arm: run.name.clone(),
            settings: run.settings.clone(),
            messages,
            messages_refused: played.refused,
            messages_lost: latencies.lost(),
            messages_duplicated: played.duplicates,
            flows_unconnected: played.unconnected,
            sent_late_ms_max: super::millis(played.lateness_max),
            latency_ms: latencies.quantiles(),
            latency_p99_ms_95: quantile_interval(&latencies_us, 0.99),
            latency_p99_9_ms_95: quantile_interval(&latencies_us, 0.999),
            on_time_share: per_message(hits as f64),
            on_time_share_95: share_interval(&stretches(&latencies_us, deadline_us), 1),
            packets_per_message: per_message(forward.packets as f64),
            packets_back_per_message: per_message(backward.packets as f64),
            total_overhead,
            total_overhead_back: overhead(backward.bytes, messages),
            recovery_overhead: beyond,
            symbol_overhead: symbols(played),
            cpu_us_per_message: per_message(played.cpu.as_secs_f64() * 1e6),
            spoilt_packets: run.spoilt_packets,
        }
    }

    /// What made its messages late that no network did, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        super::Remarkable {
            refused: self.messages_refused,
            unconnected: self.flows_unconnected,
            sent_late_ms: self.sent_late_ms_max,
            spoilt: self.spoilt_packets,
        }
        .said_of(&self.arm)
    }
}

/// How much more of an arm's messages were on time than of another's.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Difference {
    /// Share of the first arm less share of the second.
    pub on_time_share: f64,
    /// Its 95 % interval: flows (or stretches) are drawn, and both arms' messages of a drawn flow count; and no narrower than that of messages by themselves, of which
    /// those count that one arm brought in time and the other did not. None of fewer than [`FLOWS_MIN`] flows, which tell nothing of others.
    pub on_time_share_95: Option<Interval>,
}

/// Flows from which on a difference has an interval.
pub const FLOWS_MIN: usize = 5;

/// Compares two arms of the same contest, flow by flow, or (of flows that share a link) stretch by stretch.
pub fn on_time_difference(
    first: &Played,
    second: &Played,
    shares_link: bool,
    deadline_us: u32,
) -> Difference {
    let [first, second] =
        [first, second].map(|played| independent(&played.latencies_us, shares_link));
    let discordant: Vec<[u64; 2]> = (first.iter().zip(second.iter()))
        .map(|(first, second)| discordant(first, second, deadline_us))
        .collect();
    let of: usize = first.iter().map(Vec::len).sum();
    let of = of.max(1) as f64;
    let difference = |[here, there]: [u64; 2]| (here as f64 - there as f64) / of;
    let sum = |a: [u64; 2], b: &[u64; 2]| [a[0] + b[0], a[1] + b[1]];
    let all = discordant.iter().fold([0; 2], sum);
    let flows = discordant.len() as u64;
    let interval = || {
        let chance = Chance::new(2, 0);
        let mut drawn: Vec<f64> = (0..ROUNDS)
            .map(|round| {
                let draw = |place| chance.below(flows, Purpose::Resample, round, place) as usize;
                let drawn = (0..flows).map(|place| &discordant[draw(place)]);
                difference(drawn.fold([0; 2], sum))
            })
            .collect();
        drawn.sort_by(f64::total_cmp);
        let at = |share: f64| drawn[(share * (ROUNDS - 1) as f64).round() as usize];
        let [here, there] = all;
        // A share p of the discordant ones is a difference of 2 p - 1 of them.
        let by_message = wilson(here, here + there);
        let as_difference = |share: f64| (2.0 * share - 1.0) * (here + there) as f64 / of;
        Interval {
            low: at(0.025).min(as_difference(by_message.low)),
            high: at(0.975).max(as_difference(by_message.high)),
        }
    };
    Difference {
        on_time_share: difference(all),
        on_time_share_95: (discordant.len() >= FLOWS_MIN).then(interval),
    }
}

/// Messages of a flow that the first arm alone brought in time, and the second.
fn discordant(first: &[u32], second: &[u32], deadline_us: u32) -> [u64; 2] {
    let mut counts = [0; 2];
    for (first, second) in first.iter().zip(second) {
        match (*first <= deadline_us, *second <= deadline_us) {
            (true, false) => counts[0] += 1,
            (false, true) => counts[1] += 1,
            _ => {}
        }
    }
    counts
}

/// Symbols beyond those needed, of an arm that counts them.
fn symbols(played: &Played) -> Option<f64> {
    let [sender, _] = &played.counters;
    let count = |name| {
        sender
            .iter()
            .find(|counter| counter.0 == name)
            .map(|counter| counter.1)
    };
    let needed = count(SOURCE_SYMBOLS).filter(|needed| *needed > 0.0)?;
    Some(count(SYMBOLS_SENT)? / needed - 1.0)
}

impl From<&Played> for Latencies {
    fn from(played: &Played) -> Self {
        let mut latencies = Self::default();
        for &latency in played.latencies_us.iter().flatten() {
            match latency {
                NEVER => latencies.record_lost(),
                latency => latencies.record(u64::from(latency)),
            }
        }
        latencies
    }
}

/// Stretches that the messages of flows are cut into which share a link.
const STRETCHES: usize = 20;

/// Latencies in groups that can be taken as independent: those of each flow, or, where all go through one queue, of all flows in a stretch of time. (A queue that
/// overflows makes the messages of all of them late.)
fn independent(latencies_us: &[Vec<u32>], shares_link: bool) -> Cow<'_, [Vec<u32>]> {
    if !shares_link {
        return Cow::Borrowed(latencies_us);
    }
    let mut stretches = vec![Vec::new(); STRETCHES];
    for flow in latencies_us {
        for (place, latency) in flow.iter().enumerate() {
            stretches[place * STRETCHES / flow.len()].push(*latency);
        }
    }
    stretches.retain(|stretch| !stretch.is_empty());
    Cow::Owned(stretches)
}

/// Whether messages are worth so many independent ones that the quantile is surely below their greatest.
fn is_bounded(latencies_us: &[Vec<u32>], share: f64) -> bool {
    let mut sorted: Vec<u32> = latencies_us.iter().flatten().copied().collect();
    let rank = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len().max(1));
    if sorted.is_empty() {
        return false;
    }
    let quantile = *sorted.select_nth_unstable(rank - 1).1;
    let effect = design_effect(&clusters(latencies_us, quantile));
    let worth = sorted.len() as f64 / effect;
    quantile_ranks(share, worth as u64).1.is_some()
}

/// The same as [`clusters`], of stretches of each group's time where groups are few: misses come in runs, and one group, or two, do not tell how long.
pub(super) fn stretches(latencies_us: &[Vec<u32>], deadline_us: u32) -> Vec<Cluster> {
    let of_each = CLUSTERS_MIN.div_ceil(latencies_us.len().max(1));
    let cut = |group: &Vec<u32>| {
        let stretch = group.len().div_ceil(of_each).max(1);
        let stretches = group.chunks(stretch).map(<[u32]>::to_vec);
        stretches.collect::<Vec<_>>()
    };
    let stretches: Vec<_> = latencies_us.iter().flat_map(cut).collect();
    clusters(&stretches, deadline_us)
}

/// By group: messages within the deadline.
fn clusters(latencies_us: &[Vec<u32>], deadline_us: u32) -> Vec<Cluster> {
    let flow = |latencies: &Vec<u32>| Cluster {
        hits: latencies
            .iter()
            .filter(|&&latency| latency <= deadline_us)
            .count() as u64,
        of: latencies.len() as u64,
    };
    latencies_us.iter().map(flow).collect()
}

fn total(paths: &[PathCounts]) -> PathCounts {
    paths
        .iter()
        .fold(PathCounts::default(), |sum, path| sum.plus(path))
}

/// 95 % interval of a quantile in milliseconds, of latencies in microseconds by flow, by resampling flows; None when it cannot be
/// bounded: fewer than [`FLOWS_MIN`] flows, messages worth so few independent ones that the quantile may be beyond the greatest seen, or a draw in which so many never arrive.
pub fn quantile_interval(latencies_us: &[Vec<u32>], share: f64) -> Option<Interval> {
    let flows = latencies_us.len();
    if flows < FLOWS_MIN || !is_bounded(latencies_us, share) {
        return None;
    }
    // Only values above this can be the quantile of a draw: the others need not be sorted again and again.
    let mut sorted: Vec<(u32, u32)> = (0..)
        .zip(latencies_us)
        .flat_map(|(flow, latencies)| latencies.iter().map(move |&latency| (latency, flow)))
        .collect();
    sorted.sort_unstable();
    let chance = Chance::new(3, 0);
    let mut drawn: Vec<u32> = (0..ROUNDS / 4)
        .map(|round| {
            let mut times = vec![0u64; flows];
            for place in 0..flows as u64 {
                let flow = chance.below(flows as u64, Purpose::Resample, round, place);
                times[flow as usize] += 1;
            }
            let of: u64 = (times.iter().zip(latencies_us))
                .map(|(&times, latencies)| times * latencies.len() as u64)
                .sum();
            // From the greatest down: so many may lie above the quantile.
            let mut above = of - ((share * of as f64).ceil() as u64).min(of);
            for &(latency, flow) in sorted.iter().rev() {
                let times = times[flow as usize];
                if times > above {
                    return latency;
                }
                above -= times;
            }
            0
        })
        .collect();
    drawn.sort_unstable();
    let at = |share: f64| drawn[(share * (drawn.len() - 1) as f64).round() as usize];
    let (low, high) = (at(0.025), at(0.975));
    (high != NEVER).then(|| Interval {
        low: f64::from(low) / 1000.0,
        high: f64::from(high) / 1000.0,
    })
}
