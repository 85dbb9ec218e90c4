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

/// For a full queue if positive, from [`REFUTED`] to [`FOR_MAX`].
#[derive(Clone, Copy, Default)]
struct Evidence(i8);

impl Evidence {
    /// Something is lost, and the queue is what it is.
    fn add(&mut self, delays: &Delays) {
        let is_full = delays.queue_us() > NEARLY_FULL * delays.longest_queue_us();
        let speaks = if is_full { FOR } else { AGAINST };
        self.0 = (self.0 + speaks).clamp(REFUTED, FOR_MAX);
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Overflow {
    of_all: Evidence,
    /// Since it was last refuted.
    while_competing: Evidence,
    /// What is lost until then is seen with the same queue: 4,000 packets in a loop's 30 frames a second lost 10 % by chance, and twenty at a time spoke for a full queue.
    seen_until: Instant,
    /// When a full queue was last shown, and refuted. [`Instant::ZERO`] if never.
    shown_at: Instant,
    refuted_at: Instant,
    /// What seemed to be a queue, at its longest, in microseconds.
    range_us: f32,
}

impl Overflow {
    /// Something was lost, and not with what was lost before.
    pub(super) fn on_loss(&mut self, now: Instant, delays: &Delays) {
        if now < self.seen_until {
            return;
        }
        self.seen_until = now + delays.looks_for();
        self.of_all.add(delays);
        if self.of_all.0 == FOR_MAX {
            self.shown_at = now;
        }
    }

    /// Whether losses were lately a full queue's.
    pub(super) fn is_shown(&self, now: Instant) -> bool {
        self.shown_at != Instant::ZERO && now.since(self.shown_at) < MEMORY
    }

    /// Something was lost while competing, and not with what was lost before. Whether losses are now known not to be a full queue's.
    pub(super) fn on_loss_to_rivals(&mut self, now: Instant, delays: &Delays) -> bool {
        let range_us = delays.longest_queue_us();
        self.while_competing.add(delays);
        let may_be_jitter = range_us < JITTER_MAX * delays.least_us();
        if self.while_competing.0 > REFUTED || !may_be_jitter {
            return false;
        }
        self.while_competing = Evidence::default();
        self.refuted_at = now;
        self.range_us = range_us as f32;
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
    fn what_is_lost_at_once_speaks_once() {
        let delays = seen(&[40_000, 44_000, 44_000, 44_000]);
        let mut overflow = Overflow::default();
        for step in 0..20 {
            for _ in 0..20 {
                overflow.on_loss(at(100 + step * 20), &delays);
            }
            let expected = step + 1 >= u64::from(FOR_MAX.unsigned_abs());
            assert_eq!(overflow.is_shown(at(500)), expected, "{step}");
        }
        assert!(!overflow.is_shown(at(60_000)), "for a while");
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
            let refuting = (0..20).position(|_| overflow.on_loss_to_rivals(at(100), &delays));
            assert_eq!(refuting.is_some(), expected, "{round_trips_us:?}");
            assert!(refuting.is_none_or(|losses| losses >= 2), "not by one loss");
            assert_eq!(overflow.is_refuted(at(200), &delays), expected);
            assert!(!overflow.is_refuted(at(60_000), &delays), "for a while");
            let grown = seen(&[40_000, 47_000, 47_000, 47_000]);
            assert!(!overflow.is_refuted(at(200), &grown), "another queue");
        }
    }
}
