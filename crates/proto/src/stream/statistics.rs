//! What a stream counts.

use core::time::Duration;

use super::{MissReason, Outcome};

/// Counts of one stream of one direction since it was first opened. Plain numbers, added up by whoever asks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StreamStats {
    /// Messages accepted.
    pub accepted: u64,
    /// Bytes of those.
    pub accepted_bytes: u64,
    /// Messages seen to arrive, within their deadline or without one.
    pub on_time: u64,
    /// Messages seen to arrive after their deadline.
    pub late: u64,
    /// Messages given up, by reason: see [`StreamStats::dropped_because`].
    dropped: [u64; REASONS],
    /// Late messages, by reason: see [`StreamStats::late_because`].
    late_because: [u64; REASONS],
    /// Messages that a newer one took the place of before they were seen to arrive.
    pub superseded: u64,
    /// Messages taken back before they were seen to arrive.
    pub cancelled: u64,
    /// Messages with a deadline that came to their end by themselves: on time, late or dropped.
    pub promised: u64,
    /// Of those, the ones that kept it.
    pub kept: u64,
    /// Sum over the promised of the probability of missing it, as predicted when they were accepted.
    pub predicted_misses: f64,
    /// Source symbols of all messages, k each.
    pub source_symbols: u64,
    /// Symbols sent: source, repair and bundled.
    pub symbols_sent: u64,
    /// Of those, copies in the spare room of packets that left anyway.
    pub symbols_bundled: u64,
    /// Bytes of symbols sent.
    pub symbol_bytes: u64,
    /// Of those, bytes of bundled copies.
    pub bundled_bytes: u64,
    /// Sum of the times between `send` and the first symbol's leaving, over the messages of which one left.
    pub queue_delay_total: Duration,
    /// The longest of those times.
    pub queue_delay_max: Duration,
    /// Messages of which a symbol left.
    pub messages_begun: u64,
}

const REASONS: usize = 6;

const fn index(why: MissReason) -> usize {
    match why {
        MissReason::Queue => 0,
        MissReason::Loss => 1,
        MissReason::Delay => 2,
        MissReason::PathDown => 3,
        MissReason::Thinned => 4,
        MissReason::Closed => 5,
    }
}

impl StreamStats {
    /// Messages given up for this reason.
    #[must_use]
    pub const fn dropped_because(&self, why: MissReason) -> u64 {
        self.dropped[index(why)]
    }

    /// Messages that were late for this reason.
    #[must_use]
    pub const fn late_because(&self, why: MissReason) -> u64 {
        self.late_because[index(why)]
    }

    /// Messages given up.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Share of the promised messages that kept their deadline; `None` before the first.
    #[must_use]
    pub fn achieved(&self) -> Option<f64> {
        (self.promised > 0).then(|| self.kept as f64 / self.promised as f64)
    }

    /// Share of the promised messages that was predicted to keep its deadline; `None` before the first.
    #[must_use]
    pub fn predicted(&self) -> Option<f64> {
        (self.promised > 0).then(|| 1.0 - self.predicted_misses / self.promised as f64)
    }

    /// Symbols beyond k for each source symbol: 0.04 is a recovery overhead of 4 %. (A block that is just being sent counts with all
    /// of its source symbols; what that lacks is not shown as less than nothing.)
    #[must_use]
    pub fn recovery_overhead(&self) -> Option<f64> {
        (self.source_symbols > 0)
            .then(|| (self.symbols_sent as f64 / self.source_symbols as f64 - 1.0).max(0.0))
    }

    pub(crate) fn on_outcome(&mut self, outcome: &Outcome, predicted: Option<f64>) {
        let is_promise = match outcome {
            Outcome::OnTime { .. } => {
                self.on_time += 1;
                self.kept += u64::from(predicted.is_some());
                true
            }
            Outcome::Late { why, .. } => {
                self.late += 1;
                self.late_because[index(*why)] += 1;
                true
            }
            Outcome::Dropped { why } => {
                self.dropped[index(*why)] += 1;
                !matches!(why, MissReason::Closed)
            }
            Outcome::Superseded => {
                self.superseded += 1;
                false
            }
            Outcome::Cancelled { .. } => {
                self.cancelled += 1;
                false
            }
        };
        if let Some(on_time) = predicted.filter(|_| is_promise) {
            self.promised += 1;
            self.predicted_misses += 1.0 - on_time;
        }
    }

    pub(crate) fn on_begun(&mut self, waited: Duration) {
        self.messages_begun += 1;
        self.queue_delay_total = self.queue_delay_total.saturating_add(waited);
        self.queue_delay_max = self.queue_delay_max.max(waited);
    }

    pub(crate) fn on_symbol(&mut self, bytes: usize, is_bundled: bool) {
        self.symbols_sent += 1;
        self.symbol_bytes += bytes as u64;
        if is_bundled {
            self.symbols_bundled += 1;
            self.bundled_bytes += bytes as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_to_its_end_by_itself_counts_as_promised() {
        let mut stats = StreamStats::default();
        let on_time = Outcome::OnTime {
            latency: Duration::ZERO,
            bound: Duration::ZERO,
        };
        stats.on_outcome(&on_time, Some(0.9));
        stats.on_outcome(&on_time, None);
        stats.on_outcome(
            &Outcome::Dropped {
                why: MissReason::Loss,
            },
            Some(0.9),
        );
        stats.on_outcome(&Outcome::Superseded, Some(0.1));
        stats.on_outcome(&Outcome::Cancelled { sent: true }, Some(0.1));
        stats.on_outcome(
            &Outcome::Dropped {
                why: MissReason::Closed,
            },
            Some(0.1),
        );
        assert_eq!((stats.promised, stats.on_time, stats.dropped()), (2, 2, 2));
        assert_eq!(stats.achieved(), Some(0.5));
        assert!((stats.predicted().unwrap() - 0.9).abs() < 1e-9);
        assert_eq!(stats.dropped_because(MissReason::Closed), 1);
        assert_eq!((stats.superseded, stats.cancelled), (1, 1));
    }
}
