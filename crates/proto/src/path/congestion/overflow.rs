//! Are losses a full queue's? What is lost there is lost when the round trip is near its longest; what chance takes, whenever.

use core::time::Duration;

use super::delays::Delays;
use crate::time::Instant;

/// A full queue is longer than this share of the longest of the last round trips. (Eight flows beside eight of CUBIC: 96 to 99 % of losses. One over a path
/// that wanders and loses by chance: 25 to 63 %.)
const NEARLY_FULL: f64 = 0.75;
/// What a loss in a nearly full queue, and another, speak for and against it: about the logarithms of what one is as likely to be.
const FOR: i8 = 1;
const AGAINST: i8 = -5;
/// No more is remembered in favour.
const FOR_MAX: i8 = 10;
/// So much against it is enough.
const REFUTED: i8 = -15;
/// Only what is less than this share of the least round trip may be refuted. (One of eight seeds beside CUBIC, at half a BDP, had 1.44 of its share: by a false refutation.)
const JITTER_MAX: f64 = 0.25;
/// For how long.
const MEMORY: Duration = Duration::from_secs(20);
/// A queue that is so much longer than what was refuted is another.
const OTHER: f64 = 1.5;

#[derive(Clone, Copy, Default)]
pub(super) struct Overflow {
    score: i8,
    /// [`Instant::ZERO`] if it never was.
    refuted_at: Instant,
    /// What seemed to be a queue, at its longest, in microseconds.
    range_us: f32,
}

impl Overflow {
    /// Something was lost, and not with what was lost before. Whether losses are now known not to be a full queue's.
    pub(super) fn on_loss(&mut self, now: Instant, delays: &Delays) -> bool {
        let range_us = delays.longest_queue_us();
        let is_full = delays.queue_us() > NEARLY_FULL * range_us;
        self.score += if is_full { FOR } else { AGAINST };
        self.score = self.score.clamp(REFUTED, FOR_MAX);
        let may_be_jitter = range_us < JITTER_MAX * delays.least_us();
        if self.score > REFUTED || !may_be_jitter {
            return false;
        }
        *self = Self {
            score: 0,
            refuted_at: now,
            range_us: range_us as f32,
        };
        true
    }

    /// Whether what seems to be a queue was found to be none.
    pub(super) fn is_refuted(&self, now: Instant, delays: &Delays) -> bool {
        let is_recent = self.refuted_at != Instant::ZERO && now.since(self.refuted_at) < MEMORY;
        is_recent && delays.longest_queue_us() < OTHER * f64::from(self.range_us)
    }
}

#[cfg(test)]
mod tests {
    use super::super::delays::Sample;
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_micros(1_000_000 + ms * 1000)
    }

    /// Round trips each 10 ms.
    fn seen(round_trips_us: &[u64]) -> Delays {
        let mut delays = Delays::default();
        for (step, us) in round_trips_us.iter().enumerate() {
            let sample = Sample {
                took: Duration::from_micros(*us),
                waited: Duration::ZERO,
                smoothed: Duration::from_millis(40),
                bytes: 1200,
                gathered: Duration::ZERO,
                rate: 0.0,
                span: Duration::from_millis(5),
                is_steady: true,
                is_clear: false,
                varies: false,
                rate_max: None,
            };
            delays.record(at(step as u64 * 10), &sample);
        }
        delays
    }

    #[test]
    fn losses_refute_a_full_queue_where_it_is_short_and_not_full() {
        let cases: [(&[u64], bool); 3] = [
            (&[40_000, 44_000, 41_000, 41_000], true),
            // Lost when the queue is full.
            (&[40_000, 42_000, 44_000, 44_000], false),
            // No jitter is that long.
            (&[40_000, 90_000, 41_000, 41_000], false),
        ];
        for (round_trips_us, expected) in cases {
            let delays = seen(round_trips_us);
            let mut overflow = Overflow::default();
            let refuting = (0..20).position(|_| overflow.on_loss(at(100), &delays));
            assert_eq!(refuting.is_some(), expected, "{round_trips_us:?}");
            assert!(refuting.is_none_or(|losses| losses >= 2), "not by one loss");
            assert_eq!(overflow.is_refuted(at(200), &delays), expected);
            assert!(!overflow.is_refuted(at(60_000), &delays), "for a while");
            let grown = seen(&[40_000, 47_000, 47_000, 47_000]);
            assert!(!overflow.is_refuted(at(200), &grown), "another queue");
        }
    }
}
