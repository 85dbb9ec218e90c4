//! The numbers of a stream, as they stand in JSON.

use serde::{Deserialize, Serialize};

use super::FairnessMeasure;
use super::tally::{Fate, Message, Reason, StreamTally};
use crate::genie::Floors;
use crate::stats::{
    CLUSTERS_MIN, Cluster, Interval, Latencies, LatencyMs, design_effect, quantile_ranks,
    share_interval,
};

/// How one stream did, over all sessions and seeds.
///
/// A message *counts* unless it was superseded or cancelled before it arrived. Latency is from the call of `send` to arrival, by the
/// world's clock; what counts and never arrived is later than all else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamResult {
    /// The stream's name in the scenario.
    pub stream: String,
    /// Its delivery mode.
    pub delivery: String,
    /// Sessions of each run.
    pub sessions: u32,
    /// The seeds of the runs that are pooled here.
    pub seeds: Vec<u64>,
    /// How long goodput was measured in each run, in seconds.
    pub measured_s: f64,
    /// Messages accepted for sending.
    pub messages_sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Messages that were due and not accepted: too much was queued, or the session was closed.
    pub messages_refused: u64,
    /// Messages that arrived.
    pub messages_delivered: u64,
    /// Bytes of those.
    pub delivered_bytes: u64,
    /// Messages that count and never arrived.
    pub messages_lost: u64,
    /// What the sender said of its messages.
    pub outcomes: Outcomes,
    /// Messages handed on more than once. Anything but 0 is a broken promise.
    pub duplicates: u64,
    /// Messages handed on after a later one (of the same key, with `latest`). Only unordered modes may.
    pub out_of_order: u64,
    /// Messages handed on that were never sent. Anything but 0 is a broken promise.
    pub ghosts: u64,
    /// Quantiles of the latency.
    pub latency_ms: LatencyMs,
    /// Their 95 % intervals.
    pub latency_ms_95: LatencyMs95,
    /// The deadline; null: none.
    pub deadline_ms: Option<f64>,
    /// Share of messages that was to be on time; null without a deadline.
    pub on_time_target: Option<f64>,
    /// Share of the messages that count that was; null without a deadline or messages.
    pub on_time_share: Option<f64>,
    /// Its 95 % interval.
    pub on_time_share_95: Option<Interval>,
    /// What the protocol predicted when they were sent; null without a deadline.
    pub predicted_on_time_share: Option<f64>,
    /// What no sender could have beaten, over the sessions' own paths (without the shared link); absent without a deadline.
    #[serde(flatten)]
    pub floors: Option<Floors>,
    /// For each of the scenario's bounds, the share of messages within it.
    pub within: Vec<Within>,
    /// Bits of messages that arrived in a second, over all sessions, while measured.
    pub goodput_bits_per_s: f64,
    /// The same, second by second of that time; the last may be a part of one.
    pub goodput_by_second_bits_per_s: Vec<f64>,
    /// Of a stream that is fair by quality: what arrived in a second, while measured; null otherwise.
    pub quality_per_s: Option<f64>,
    /// Its share of the budget against the other streams.
    pub weight: u16,
    /// What was sent before the measuring began; null when it began with the first message.
    pub settling: Option<Settling>,
    /// Symbols sent beyond those needed, as a share of those needed; null when nothing was sent.
    pub recovery_overhead: Option<f64>,
    /// Bytes of headers and tags, as a share of the messages' bytes; null when nothing was sent.
    pub encapsulation_overhead: Option<f64>,
}

/// What was sent before the measuring began. It is in none of the other counts of messages and latencies; bytes, refusals and broken
/// promises are counted throughout.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settling {
    /// Messages that count.
    pub messages: u64,
    /// Of those, the ones that never arrived.
    pub messages_lost: u64,
    /// Quantiles of the latency.
    pub latency_ms: LatencyMs,
}

/// What the sender said of its messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// On time, or delivered without a deadline.
    pub on_time: u64,
    /// Late.
    pub late: ByReason,
    /// Given up.
    pub dropped: ByReason,
    /// A newer message took their place.
    pub superseded: u64,
    /// Taken back before anything of them was sent.
    pub cancelled_unsent: u64,
    /// Taken back after that.
    pub cancelled_sent: u64,
    /// Nothing was said of them (when the run ended), or nothing that this version knows.
    pub unsettled: u64,
    /// Said to be on time and was not by the world's clock (or never arrived), or said to be late or dropped and was on time.
    pub misjudged: u64,
}

/// Counts by the sender's reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByReason {
    /// Waited too long before sending.
    pub queue: u64,
    /// Lost.
    pub loss: u64,
    /// Took too long on the way.
    pub delay: u64,
    /// Nothing came back.
    pub path_down: u64,
    /// Left out, as the stream allows when the budget is short.
    pub thinned: u64,
    /// The session ended.
    pub closed: u64,
    /// Other reasons.
    pub other: u64,
}

impl ByReason {
    const fn count(&mut self, why: Reason) {
        let count = match why {
            Reason::Queue => &mut self.queue,
            Reason::Loss => &mut self.loss,
            Reason::Delay => &mut self.delay,
            Reason::PathDown => &mut self.path_down,
            Reason::Thinned => &mut self.thinned,
            Reason::Closed => &mut self.closed,
            Reason::Other => &mut self.other,
        };
        *count += 1;
    }

    /// All of them.
    pub const fn total(&self) -> u64 {
        let of_the_network = self.queue + self.loss + self.delay + self.path_down;
        of_the_network + self.thinned + self.closed + self.other
    }
}

/// 95 % intervals of quantiles in milliseconds, as [low, high] by order statistics. Sessions (or with few of them, stretches of
/// their messages; through a shared link, stretches of time) that differ make them wider, for messages of one session are not independent. Null: so few messages bound the
/// quantile on that side by nothing, or so many never arrived.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LatencyMs95 {
    /// Of the median.
    pub p50: [Option<f64>; 2],
    /// Of the 95 % quantile.
    pub p95: [Option<f64>; 2],
    /// Of the 99 % quantile.
    pub p99: [Option<f64>; 2],
    /// Of the 99.5 % quantile.
    pub p99_5: [Option<f64>; 2],
    /// Of the 99.9 % quantile.
    pub p99_9: [Option<f64>; 2],
}

/// The share of messages that arrived within a bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// The bound.
    pub bound_ms: f64,
    /// The share of the messages that count.
    pub share: f64,
    /// Its 95 % interval.
    pub share_95: Interval,
}

/// More than this make resampling slow and nothing better: then flows are taken together.
const CLUSTERS_MAX: usize = 1000;

impl StreamTally {
    /// The numbers.
    pub fn result(&self) -> StreamResult {
        let latencies = self.latencies();
        let counted = latencies.messages();
        let counts = &self.counts;
        let deadline = self.spec.deadline.filter(|_| counted > 0);
        let on_time = deadline.map(|deadline| self.within(deadline));
        let measured_s = self.window().as_secs_f64();
        let protocol = &self.protocol;
        let total_s = (measured_s * self.seeds.len() as f64).max(1e-9);
        let runs = self.seeds.len() as f64;
        let by_second = self.bytes_by_second().iter();
        let by_second = by_second.map(|&bytes| bytes as f64 * 8.0 / runs);
        let is_by_quality = self.spec.fairness == FairnessMeasure::Quality;
        let ratio = |value: f64, of: u64| (of > 0).then(|| value / of as f64);
        StreamResult {
            stream: self.spec.name.clone(),
            delivery: self.spec.delivery.name().to_owned(),
            sessions: self.sessions,
            seeds: self.seeds.clone(),
            measured_s,
            messages_sent: self.measured().count() as u64,
            sent_bytes: counts.sent_bytes,
            messages_refused: counts.refused,
            messages_delivered: counted - latencies.lost(),
            delivered_bytes: counts.delivered_bytes,
            messages_lost: latencies.lost(),
            outcomes: self.outcomes(),
            duplicates: counts.duplicates,
            out_of_order: counts.out_of_order,
            ghosts: counts.ghosts,
            latency_ms: latencies.quantiles(),
            latency_ms_95: self.quantile_intervals(&latencies),
            deadline_ms: self.spec.deadline.map(millis),
            on_time_target: self.spec.deadline.map(|_| decimal(self.spec.on_time)),
            on_time_share: on_time.map(|within| within.share),
            on_time_share_95: on_time.map(|within| within.share_95),
            predicted_on_time_share: ratio(protocol.predicted_misses, protocol.messages_promised)
                .map(|misses| 1.0 - misses),
            floors: self.floors(),
            within: self
                .spec
                .bounds
                .iter()
                .map(|&bound| self.within(bound))
                .collect(),
            goodput_bits_per_s: counts.good_bytes as f64 * 8.0 / total_s,
            goodput_by_second_bits_per_s: by_second.collect(),
            quality_per_s: is_by_quality
                .then(|| counts.good_messages as f64 * f64::from(self.spec.quality()) / total_s),
            weight: self.spec.weight,
            settling: self.settling(),
            recovery_overhead: ratio(protocol.symbols_sent as f64, protocol.source_symbols)
                .map(|symbols| symbols - 1.0),
            encapsulation_overhead: ratio(
                protocol.encapsulation_bytes as f64,
                protocol.message_bytes,
            ),
        }
    }

    /// Messages that were sent while measured.
    fn measured(&self) -> impl Iterator<Item = &Message> {
        let messages = self.flows.iter().flat_map(|flow| &flow.messages);
        messages.filter(|message| !message.is_early)
    }

    fn settling(&self) -> Option<Settling> {
        let latencies = self.early_latencies();
        (latencies.messages() > 0).then(|| Settling {
            messages: latencies.messages(),
            messages_lost: latencies.lost(),
            latency_ms: latencies.quantiles(),
        })
    }

    fn within(&self, bound: std::time::Duration) -> Within {
        let bound_us = bound.as_micros() as u64;
        let clusters = self.clusters(|message| message.is_within(bound_us));
        let of: u64 = clusters.iter().map(|cluster| cluster.of).sum();
        let hits: u64 = clusters.iter().map(|cluster| cluster.hits).sum();
        Within {
            bound_ms: millis(bound),
            share: hits as f64 / of.max(1) as f64,
            share_95: share_interval(&clusters, self.seeds[0]),
        }
    }

    fn floors(&self) -> Option<Floors> {
        self.counted().find_map(|message| message.limit)?;
        let hopeless =
            self.clusters(|message| message.limit.is_some_and(|limit| limit.is_hopeless));
        let lost = self.sums(|message| {
            let limit = message.limit?;
            Some(Cluster {
                hits: u64::from(limit.lost),
                of: u64::from(limit.symbols),
            })
        });
        Some(Floors::of(&hopeless, &lost, self.seeds[0]))
    }

    /// The messages that count, in groups that can be taken as independent.
    fn clusters(&self, is_hit: impl Fn(&Message) -> bool) -> Vec<Cluster> {
        self.sums(|message| {
            Some(Cluster {
                hits: u64::from(is_hit(message)),
                of: 1,
            })
        })
    }

    /// What the messages that count are worth, in groups that can be taken as independent.
    fn sums(&self, worth: impl Fn(&Message) -> Option<Cluster>) -> Vec<Cluster> {
        let cluster_of = |cluster: Cluster, message: &Message| {
            let is_counted = message.is_counted() && !message.is_early;
            let worth = is_counted.then(|| worth(message)).flatten();
            let worth = worth.unwrap_or_default();
            Cluster {
                hits: cluster.hits + worth.hits,
                of: cluster.of + worth.of,
            }
        };
        let clusters = if self.shares_link {
            self.sums_by_time(cluster_of)
        } else {
            self.sums_by_flow(cluster_of)
        };
        let is_some = |cluster: &Cluster| cluster.of > 0;
        clusters.into_iter().filter(is_some).collect()
    }

    /// Where all flows of a run go through one queue, what is sent at the same time shares its fate, whosesoever it is: stretches of each run.
    fn sums_by_time(&self, cluster_of: impl Fn(Cluster, &Message) -> Cluster) -> Vec<Cluster> {
        let pieces = CLUSTERS_MIN.div_ceil(self.seeds.len().max(1));
        let mut clusters = vec![Cluster::default(); self.seeds.len() * pieces];
        let runs = self.flows.chunks(self.sessions.max(1) as usize);
        for (run, of_run) in runs.zip(clusters.chunks_mut(pieces)) {
            for message in run.iter().flat_map(|flow| &flow.messages) {
                let place = self.part_of_window(message, pieces);
                of_run[place] = cluster_of(of_run[place], message);
            }
        }
        clusters
    }

    fn sums_by_flow(&self, cluster_of: impl Fn(Cluster, &Message) -> Cluster) -> Vec<Cluster> {
        let flows = self.flows.iter().filter(|flow| !flow.messages.is_empty());
        let flows: Vec<_> = flows.collect();
        let pieces = CLUSTERS_MIN.div_ceil(flows.len().max(1));
        let together = flows.len().div_ceil(CLUSTERS_MAX).max(1);
        if pieces > 1 {
            let stretches = flows
                .iter()
                .flat_map(|flow| flow.messages.chunks(flow.messages.len().div_ceil(pieces)));
            stretches
                .map(|stretch| stretch.iter().fold(Cluster::default(), &cluster_of))
                .collect()
        } else {
            let groups = flows.chunks(together);
            groups
                .map(|group| {
                    let messages = group.iter().flat_map(|flow| &flow.messages);
                    messages.fold(Cluster::default(), &cluster_of)
                })
                .collect()
        }
    }

    fn quantile_intervals(&self, latencies: &Latencies) -> LatencyMs95 {
        let interval = |share| self.quantile_interval(latencies, share);
        LatencyMs95 {
            p50: interval(0.5),
            p95: interval(0.95),
            p99: interval(0.99),
            p99_5: interval(0.995),
            p99_9: interval(0.999),
        }
    }

    fn quantile_interval(&self, latencies: &Latencies, share: f64) -> [Option<f64>; 2] {
        let value_ms = latencies.quantile_ms(share);
        // Half a microsecond more, so that rounding to milliseconds and back does no harm. (None: it is one that never arrived.)
        let us = value_ms.map_or(u64::MAX, |ms| (ms * 1e3 + 0.5) as u64);
        let effect = design_effect(&self.clusters(|message| !message.is_within(us)));
        let worth = (latencies.messages() as f64 / effect) as u64;
        let (low, high) = quantile_ranks(share, worth);
        // In the middle between this rank and the one before, so that rounding does no harm.
        let value = |rank: u64| latencies.quantile_ms((rank as f64 - 0.5) / worth as f64);
        [low.and_then(value), high.and_then(value)]
    }

    fn outcomes(&self) -> Outcomes {
        let deadline_us = self
            .spec
            .deadline
            .map(|deadline| deadline.as_micros() as u64);
        let mut outcomes = Outcomes::default();
        for message in self.measured() {
            let is_on_time = message.is_within(deadline_us.unwrap_or(u64::MAX));
            let is_right = match message.fate {
                Fate::OnTime => {
                    outcomes.on_time += 1;
                    is_on_time
                }
                Fate::Late(why) => {
                    outcomes.late.count(why);
                    !is_on_time
                }
                Fate::Dropped(why) => {
                    outcomes.dropped.count(why);
                    !is_on_time
                }
                Fate::Superseded => {
                    outcomes.superseded += 1;
                    true
                }
                Fate::Cancelled { was_sent: false } => {
                    outcomes.cancelled_unsent += 1;
                    true
                }
                Fate::Cancelled { was_sent: true } => {
                    outcomes.cancelled_sent += 1;
                    true
                }
                Fate::Unsettled | Fate::Unknown => {
                    outcomes.unsettled += 1;
                    true
                }
            };
            outcomes.misjudged += u64::from(!is_right);
        }
        outcomes
    }
}

fn millis(duration: std::time::Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// 0.999 and not 0.9990000128746033.
fn decimal(share: f32) -> f64 {
    let read = share.to_string().parse();
    read.unwrap_or_else(|_| f64::from(share))
}
