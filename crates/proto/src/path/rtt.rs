//! Round-trip time: the distribution, which decides when missing feedback means loss, and the smoothed value of RFC 9002
//! section 5.3, which paces.

use core::time::Duration;

use super::{Another, DelayHistogram};
use crate::limits::TIMER_GRANULARITY;
use crate::time::Instant;

/// Before anything is known (RFC 9002 section 6.2.2).
const INITIAL: Duration = Duration::from_millis(333);
/// Share of round trips that the round time leaves out.
const LATE: f64 = 0.01;
/// So many answers are thought to have come without an outage before the first. (With none, each of the first hundreds of messages was taken for lost where
/// one answer in ten comes later than is waited for.)
const OUTAGE_PRIOR: f64 = 2000.0;

/// What is known of the round trip.
#[derive(Default)]
pub(crate) struct Rtt {
    samples: DelayHistogram,
    smoothed: Duration,
    variation: Duration,
    count: u32,
    /// Asked for several times a packet, and changed by a sample alone.
    round_time: Duration,
    /// The shortest, with what the peer held acknowledgements back, in microseconds; zero: none.
    least_with_wait_us: u32,
}

impl Rtt {
    /// A round trip was seen; `sample` is without the time that the peer held the acknowledgement back.
    pub(crate) fn record(&mut self, now: Instant, sample: Duration) {
        self.samples.record_at(now, sample, Another::Shorter);
        self.count = self.count.saturating_add(1);
        if self.count == 1 {
            self.smoothed = sample;
            self.variation = sample / 2;
        } else {
            let difference = self.smoothed.abs_diff(sample);
            self.variation = (self.variation * 3 + difference) / 4;
            self.smoothed = (self.smoothed * 7 + sample) / 8;
        }
        let unseen = self.smoothed / self.count.saturating_mul(4);
        // (The longest that was seen would be shorter by a bin. Beside CUBIC our downloads had a twentieth more with it.)
        self.round_time = self.samples.above_high() + unseen.max(TIMER_GRANULARITY);
    }

    /// A round trip without what the peer says that it held the acknowledgement back for, if it can have. That is the peer's word: half of the shortest round trip with it is left at
    /// least. (RFC 9002 section 5.3 leaves all of it.)
    pub(crate) fn without_wait(&mut self, took: Duration, held: Duration) -> Option<Duration> {
        let rest = took.checked_sub(held)?;
        let took_us = took.as_micros().clamp(1, u32::MAX.into()) as u32;
        self.least_with_wait_us = match self.least_with_wait_us {
            0 => took_us,
            least => least.min(took_us),
        };
        let least = Duration::from_micros(self.least_with_wait_us.into());
        Some(rest.max((least / 2).min(took)))
    }

    pub(crate) const fn is_known(&self) -> bool {
        self.count > 0
    }

    /// The round trip that this share of samples did not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        if self.is_known() {
            self.samples.quantile(share)
        } else {
            INITIAL
        }
    }

    pub(crate) const fn smoothed(&self) -> Duration {
        if self.is_known() {
            self.smoothed
        } else {
            INITIAL
        }
    }

    /// The mean deviation, RFC 9002's `rttvar`; zero while nothing is known.
    pub(crate) const fn variation(&self) -> Duration {
        self.variation
    }

    pub(crate) const fn min(&self) -> Duration {
        if self.is_known() {
            self.samples.min()
        } else {
            INITIAL
        }
    }

    /// When missing feedback means loss: what 99 % of round trips did not exceed (a later acknowledgement makes the next round a
    /// needless one, which at 1 % costs a hundredth of a message), with a margin that shrinks as more is seen (one
    /// sample says little of the tail: a quarter of it is added, an eighth after two, and so on).
    pub(crate) fn round_time(&self) -> Duration {
        if self.is_known() {
            self.round_time
        } else {
            INITIAL * 2
        }
    }

    /// Share of round trips that take longer than `age`; something is kept for what has not been seen, but no more than the round
    /// time leaves.
    pub(crate) fn share_beyond(&self, age: Duration) -> f64 {
        (1.0 - self.samples.share_within(age)).max(self.unseen())
    }

    /// Probability that an outage begins with what is sent next, where none was seen (half a one, as for what has not been seen of round trips).
    pub(crate) fn unseen_outage(&self) -> f64 {
        0.5 / (OUTAGE_PRIOR + f64::from(self.count))
    }

    /// What is kept for round trips as none has been seen.
    fn unseen(&self) -> f64 {
        (0.5 / f64::from(self.count.max(1))).min(LATE)
    }

    /// Share of answers that come later than `wait`, to be careful with: one is added to those seen.
    pub(crate) fn share_late(&self, wait: Duration) -> f64 {
        if !self.is_known() {
            return 1.0;
        }
        let unseen = 1.0 / f64::from(self.count.min(100) + 1);
        1.0 - self.samples.share_within(wait) * (1.0 - unseen)
    }

    /// RFC 9002 section 7.6.1: losses that span this long mean that the path carries nothing.
    pub(crate) fn persistent_congestion(&self) -> Duration {
        (self.smoothed() + (self.variation * 4).max(TIMER_GRANULARITY)) * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression: a peer that said that it had held each acknowledgement back for the whole round trip had everything sent again each millisecond.
    #[test]
    fn a_peers_word_for_its_wait_leaves_half_of_the_round_trip() {
        let ms = Duration::from_millis;
        let mut rtt = Rtt::default();
        for (took, held, seen) in [
            (100, 0, Some(100)),
            (125, 25, Some(100)),
            (100, 99, Some(50)),
            (100, 101, None),
            (160, 100, Some(60)),
            // The path has become shorter.
            (40, 0, Some(40)),
            (65, 25, Some(40)),
            (65, 60, Some(20)),
        ] {
            let rest = rtt.without_wait(ms(took), ms(held));
            assert_eq!(rest, seen.map(ms), "{held} of {took}");
        }
    }
}
