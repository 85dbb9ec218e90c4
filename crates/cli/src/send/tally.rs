//! What became of the messages, by their outcomes.

use std::collections::BTreeMap;
use std::time::Instant;

use punctual::{MessageId, MissReason, Outcome, PolicyKind, SessionStats};
use punctual_lab::stats::{Latencies, Summary, blocks, share_interval};
use serde_json::Value;

use crate::demo::Totals;
use crate::scoreboard::count;

/// Blocks of time that are resampled for the interval of the late share: misses come in runs, shorter than one of these.
const BLOCKS: usize = 20;
/// Draws of the resampling are the same each time.
const SEED: u64 = 1;

/// Counts of one run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Messages without an outcome.
    open: BTreeMap<MessageId, Open>,
    /// What became of each message, in the order of sending.
    fates: Vec<Fate>,
    on_time: u64,
    late_count: u64,
    dropped: u64,
    superseded: u64,
    refused: u64,
    reasons: BTreeMap<&'static str, u64>,
    latencies: Latencies,
    bounds: Latencies,
}

/// A message without an outcome.
#[derive(Debug)]
struct Open {
    /// In the order of sending.
    place: usize,
    /// When it should have arrived.
    deadline: Option<Instant>,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It came late, or not at all, or is not known to have come.
    Late,
    OnTime,
    /// A newer one took its place, as the delivery mode has it: it counts neither way.
    Superseded,
}

impl Tally {
    pub(super) fn on_sent(&mut self, message: MessageId, deadline: Option<Instant>) {
        let place = self.fates.len();
        self.open.insert(message, Open { place, deadline });
        self.fates.push(Fate::Late);
    }

    /// It was not accepted: late, whenever it could have been sent.
    pub(super) fn on_refused(&mut self) {
        self.refused += 1;
        self.fates.push(Fate::Late);
    }

    pub(super) fn on_outcome(&mut self, message: MessageId, outcome: Outcome) {
        let Some(Open { place, .. }) = self.open.remove(&message) else {
            return;
        };
        let (latency, bound) = match outcome {
            Outcome::OnTime { latency, bound } => {
                self.on_time += 1;
                self.fates[place] = Fate::OnTime;
                (latency, bound)
            }
            Outcome::Late {
                latency,
                bound,
                why,
                ..
            } => {
                self.late_count += 1;
                *self.reasons.entry(name(why)).or_default() += 1;
                (latency, bound)
            }
            Outcome::Dropped { why } => {
                self.late_count += 1;
                self.dropped += 1;
                *self.reasons.entry(name(why)).or_default() += 1;
                return;
            }
            Outcome::Superseded => {
                self.superseded += 1;
                self.fates[place] = Fate::Superseded;
                return;
            }
            // This command takes nothing back.
            _ => return,
        };
        self.latencies.record(latency.as_micros() as u64);
        self.bounds.record(bound.as_micros() as u64);
    }

    /// Messages that were to be sent so far.
    pub(super) const fn sent(&self) -> u64 {
        self.fates.len() as u64
    }

    pub(super) const fn superseded(&self) -> u64 {
        self.superseded
    }

    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Messages without an outcome.
    pub(super) fn outstanding(&self) -> u64 {
        self.open.len() as u64
    }

    /// Those of them that have not arrived by their deadline, or not been heard to have.
    pub(super) fn overdue(&self, now: Instant) -> u64 {
        let is_overdue = |open: &&Open| open.deadline.is_some_and(|deadline| deadline < now);
        self.open.values().filter(is_overdue).count() as u64
    }

    pub(super) fn resolved(&self) -> u64 {
        self.sent() - self.outstanding()
    }

    /// Messages known to be on time.
    pub(super) const fn on_time(&self) -> u64 {
        self.on_time
    }

    /// Messages known to be late.
    pub(super) const fn late(&self) -> u64 {
        self.late_count + self.refused
    }

    pub(super) fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        self.latencies.quantile_ms(quantile)
    }

    /// Half of the latencies are right to within this.
    pub(super) fn bound_p50_ms(&self) -> Option<f64> {
        self.bounds.quantile_ms(0.5)
    }

    /// Late messages by their reason.
    pub(super) fn reasons(&self) -> Value {
        serde_json::json!(self.reasons)
    }

    /// What a reader must know to trust the numbers.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(bound) = self.bound_p50_ms() {
            notes.push(format!(
                "half of the latencies are right to within {bound:.2} ms, unless the two ways of the path take unequally long"
            ));
        }
        if !self.reasons.is_empty() {
            let reasons = self
                .reasons
                .iter()
                .map(|(why, times)| format!("{why} {}", count(*times)));
            notes.push(format!(
                "late because of: {}",
                reasons.collect::<Vec<_>>().join(", ")
            ));
        }
        if self.superseded > 0 {
            notes.push(format!(
                "{} messages were superseded by newer ones, as this delivery has it, and are in none of the figures",
                count(self.superseded)
            ));
        }
        if self.refused > 0 {
            notes.push(format!(
                "{} messages were not accepted since too much was under way already, and count as lost: the path does not \
                 carry this rate",
                count(self.refused)
            ));
        }
        if self.outstanding() > 0 {
            notes.push(format!(
                "{} messages had no outcome yet; they count as lost",
                count(self.outstanding())
            ));
        }
        notes
    }

    pub(super) fn summary(&self, kind: PolicyKind, stats: Option<&SessionStats>) -> Summary {
        let lost = self.dropped + self.outstanding() + self.refused;
        let mut latencies = self.latencies.clone();
        for _ in 0..lost {
            latencies.record_lost();
        }
        let counted = self.fates.iter().filter(|&&fate| fate != Fate::Superseded);
        let late: Vec<bool> = counted.map(|&fate| fate == Fate::Late).collect();
        let late_count = late.iter().filter(|&&late| late).count();
        let mut totals = Totals::default();
        if let Some(stats) = stats {
            totals.add(stats);
        }
        Summary {
            policy: kind.to_string(),
            messages: late.len() as u64,
            latency_ms: latencies.quantiles(),
            late_share: late_count as f64 / late.len().max(1) as f64,
            late_share_95: share_interval(&blocks(&late, late.len().div_ceil(BLOCKS)), SEED),
            predicted_late_share: totals.predicted_late_share(),
            recovery_overhead: totals.recovery_overhead(),
            encapsulation_overhead: totals.encapsulation_overhead(),
            lost_messages: lost,
            seed: SEED,
        }
    }
}

fn name(why: MissReason) -> &'static str {
    match why {
        MissReason::Queue => "queue",
        MissReason::Loss => "loss",
        MissReason::Delay => "delay",
        MissReason::PathDown => "path down",
        MissReason::Thinned => "thinned out",
        MissReason::Closed => "session closed",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_outcome_is_counted_once() {
        let mut tally = Tally::default();
        let ms = Duration::from_millis;
        // Names follow each other, and that is all that is known of them.
        for id in [3, 10, 11, 12, 900] {
            tally.on_sent(MessageId(id), None);
        }
        tally.on_outcome(MessageId(3), Outcome::Superseded);
        tally.on_outcome(MessageId(4), Outcome::Superseded);
        tally.on_refused();
        tally.on_outcome(
            MessageId(11),
            Outcome::OnTime {
                latency: ms(20),
                bound: ms(1),
            },
        );
        tally.on_outcome(
            MessageId(10),
            Outcome::Late {
                latency: ms(200),
                bound: ms(1),
                by: ms(50),
                why: MissReason::Loss,
            },
        );
        tally.on_outcome(
            MessageId(12),
            Outcome::Dropped {
                why: MissReason::PathDown,
            },
        );
        assert_eq!(
            (tally.outstanding(), tally.late(), tally.refused()),
            (1, 3, 1)
        );
        assert_eq!((tally.sent(), tally.superseded()), (6, 1));
        let summary = tally.summary(PolicyKind::Exact, None);
        assert_eq!((summary.messages, summary.lost_messages), (5, 3));
        // Messages of no bytes were said to have 17,700 % of headers.
        assert_eq!(summary.encapsulation_overhead, None);
        assert!((summary.late_share - 0.8).abs() < 1e-12);
        assert_eq!(summary.latency_ms.max, Some(200.0));
        assert_eq!(tally.notes().len(), 5);
    }
}
