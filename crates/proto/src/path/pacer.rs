//! Pacing of RFC 9002 section 7.7: a bucket of an initial window's bytes that fills at 5/4 of the window per round trip.

use core::time::Duration;

use crate::limits::MTU_MIN;
use crate::time::{Instant, nanos};

/// What may leave back to back: ten packets, as RFC 9002 section 7.7 allows.
const BURST: u64 = 10 * MTU_MIN as u64;

#[derive(Default)]
pub(crate) struct Pacer {
    /// Bytes that left and the bucket has not yet made up for.
    debt: u64,
    updated: Instant,
}

impl Pacer {
    /// `None` when a packet may go now, else when it may.
    pub(crate) fn may_send(
        &mut self,
        now: Instant,
        bytes: usize,
        window: u64,
        rtt: Duration,
    ) -> Option<Instant> {
        let rtt = nanos(rtt).max(1);
        let elapsed = nanos(now.since(self.updated));
        // Bytes that come in per nanosecond: window * 5/4 / rtt, in 128 bits so that neither a long pause nor a large window overflows.
        let refill = u128::from(window) * 5 * u128::from(elapsed) / (4 * u128::from(rtt));
        if refill > 0 {
            self.debt = self
                .debt
                .saturating_sub(u64::try_from(refill).unwrap_or(u64::MAX));
            self.updated = now;
        }
        let bytes = bytes as u64;
        if self.debt == 0 || self.debt + bytes <= BURST {
            return None;
        }
        let missing = self.debt + bytes - BURST;
        let wait = u128::from(missing) * 4 * u128::from(rtt) / (5 * u128::from(window.max(1)));
        Some(
            now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
                .max(Duration::from_micros(100)),
        )
    }

    pub(crate) const fn on_sent(&mut self, bytes: usize) {
        self.debt += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_keeps_to_the_rate() {
        let mut pacer = Pacer::default();
        let (window, rtt) = (24_000u64, Duration::from_millis(100));
        let mut now = Instant::from_micros(1_000_000);
        let start = now;
        let mut sent = 0u64;
        while sent < 3_000_000 {
            match pacer.may_send(now, 1200, window, rtt) {
                None => {
                    pacer.on_sent(1200);
                    sent += 1200;
                }
                Some(at) => {
                    assert!(at > now);
                    now = at;
                }
            }
        }
        let rate = (sent - BURST) as f64 / now.since(start).as_secs_f64();
        let expected = 1.25 * 24_000.0 / 0.1;
        assert!(
            (rate / expected - 1.0).abs() < 0.02,
            "{rate} against {expected}"
        );
    }
}
