//! Minima and maxima of the round trip over sliding windows, in a few words each.

use core::time::Duration;

use crate::time::{Instant, nanos};

/// The least value of the last one to two spans: one bucket fills while the one before is still remembered.
#[derive(Clone, Copy)]
pub(super) struct Least {
    began: Instant,
    current_us: u32,
    before_us: u32,
}

impl Default for Least {
    fn default() -> Self {
        Self {
            began: Instant::ZERO,
            current_us: u32::MAX,
            before_us: u32::MAX,
        }
    }
}

impl Least {
    /// Takes a value in; buckets are `span` long.
    pub(super) fn record(&mut self, now: Instant, value_us: u32, span: Duration) {
        let age = now.since(self.began);
        if age >= span {
            self.before_us = if age >= span * 2 {
                u32::MAX
            } else {
                self.current_us
            };
            self.current_us = u32::MAX;
            self.began = now;
        }
        self.current_us = self.current_us.min(value_us);
    }

    pub(super) fn get_us(&self) -> u32 {
        self.current_us.min(self.before_us)
    }
}

/// How long the least round trip is believed: a bucket's length, so between this and twice this. Copa says 10 s.
const MEMORY: Duration = Duration::from_secs(10);

/// What Copa asks of round trips.
#[derive(Clone, Copy, Default)]
pub(super) struct Delays {
    /// Over 10 s: the path without a queue.
    least: Least,
    /// Over half a smoothed round trip: the path with what stands in its queue, without what a burst or a jittery link adds.
    standing: Least,
    /// The largest over four smoothed round trips, negated.
    largest: Least,
    smoothed_us: u32,
    /// The size of the packets that are measured, in bytes.
    size: u16,
}

impl Delays {
    /// A packet of `bytes` took `sample`. Only the largest packets are compared: at 8 Mbit/s a full packet takes 1.4 ms more than
    /// a tiny one without any queue. Whether the sample was of use.
    pub(super) fn record(
        &mut self,
        now: Instant,
        sample: Duration,
        smoothed: Duration,
        bytes: u16,
    ) -> bool {
        let (size, bytes) = (u32::from(self.size), u32::from(bytes));
        if bytes * 8 < size * 7 {
            self.size -= self.size / 256;
            return false;
        }
        if bytes * 7 > size * 8 {
            self.least = Least::default();
        }
        self.size = bytes as u16;
        let us = micros(sample).max(1);
        self.smoothed_us = micros(smoothed).max(1);
        self.least.record(now, us, MEMORY);
        self.standing.record(now, us, smoothed / 4);
        self.largest.record(now, u32::MAX - us, smoothed * 2);
        true
    }

    pub(super) const fn is_known(&self) -> bool {
        self.smoothed_us > 0
    }

    pub(super) fn smoothed(&self) -> Duration {
        Duration::from_micros(u64::from(self.smoothed_us))
    }

    pub(super) fn least_us(&self) -> f64 {
        f64::from(self.least.get_us())
    }

    pub(super) fn standing_us(&self) -> f64 {
        f64::from(self.standing.get_us())
    }

    pub(super) fn largest_us(&self) -> f64 {
        f64::from(u32::MAX - self.largest.get_us())
    }

    /// What stands in the queue.
    pub(super) fn queue_us(&self) -> f64 {
        (self.standing_us() - self.least_us()).max(0.0)
    }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(nanos(span) / 1000).unwrap_or(u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_forgotten_after_two_spans() {
        let mut least = Least::default();
        let span = Duration::from_millis(100);
        let at = |ms: u64| Instant::from_micros(ms * 1000);
        least.record(at(1000), 50, span);
        for (ms, expected) in [(1050, 50), (1100, 50), (1199, 50), (1200, 70)] {
            least.record(at(ms), 70, span);
            assert_eq!(least.get_us(), expected, "{ms}");
        }
        least.record(at(1500), 90, span);
        assert_eq!(
            least.get_us(),
            90,
            "after a silence only what is new counts"
        );
    }
}
