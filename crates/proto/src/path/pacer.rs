//! Pacing of RFC 9002 section 7.7: a bucket of an initial window's bytes that fills at 5/4 of the window per round trip.
//!
//! A driver may come later than it was asked to: a game's loop looks once a frame. What the bucket would have let go in the
//! meantime then goes at once; otherwise ten packets a frame would be all that such a session ever sends.

use core::time::Duration;

use crate::limits::MTU_MIN;
use crate::time::{Instant, nanos};

/// What may leave back to back: ten packets, as RFC 9002 section 7.7 allows.
const BURST: i64 = 10 * MTU_MIN as i64;

/// So late a driver may be without losing anything: a frame of a game that draws 25 a second.
const LATE_MAX: Duration = Duration::from_millis(40);

#[derive(Default)]
pub(crate) struct Pacer {
    /// Bytes that left and the bucket has not yet made up for; below zero, what a driver that came late may make up for.
    debt: i64,
    updated: Instant,
    /// A packet waits, and may go from then on.
    asked_for: Option<Instant>,
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
        let until = match self.asked_for {
            Some(at) => now.min(at + LATE_MAX),
            None => now,
        };
        let elapsed = nanos(until.since(self.updated));
        // Bytes that come in per nanosecond: window * 5/4 / rtt, in 128 bits so that neither a long pause nor a large window overflows.
        let refill = u128::from(window) * 5 * u128::from(elapsed) / (4 * u128::from(rtt));
        if refill > 0 {
            let refill = i64::try_from(refill).unwrap_or(i64::MAX);
            self.debt = self.debt.saturating_sub(refill);
            if self.asked_for.take().is_none() {
                // Nothing waited: time that was not asked for is not saved up.
                self.debt = self.debt.max(0);
            }
            self.updated = now;
        }
        let bytes = bytes as i64;
        if self.debt <= 0 || self.debt + bytes <= BURST {
            return None;
        }
        let missing = (self.debt + bytes - BURST) as u128;
        let wait = missing * 4 * u128::from(rtt) / (5 * u128::from(window.max(1)));
        let at = now
            + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
                .max(Duration::from_micros(100));
        self.asked_for = Some(at);
        Some(at)
    }

    pub(crate) const fn on_sent(&mut self, bytes: usize) {
        self.debt += bytes as i64;
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
        let rate = (sent - BURST as u64) as f64 / now.since(start).as_secs_f64();
        let expected = 1.25 * 24_000.0 / 0.1;
        assert!(
            (rate / expected - 1.0).abs() < 0.02,
            "{rate} against {expected}"
        );
    }

    /// Goal: a loop that looks once a frame sends at the same rate, and saves nothing up while it has nothing to send.
    #[test]
    fn a_driver_that_comes_late_keeps_to_the_rate() {
        let mut pacer = Pacer::default();
        let (window, rtt) = (300_000u64, Duration::from_millis(50));
        let frame = Duration::from_micros(16_667);
        let mut now = Instant::from_micros(1_000_000);
        let mut burst = |now, have: u64| {
            let mut sent = 0;
            while sent < have && pacer.may_send(now, 1200, window, rtt).is_none() {
                pacer.on_sent(1200);
                sent += 1200;
            }
            sent
        };
        let mut sent = burst(now, u64::MAX);
        assert!(sent <= BURST as u64);
        for _ in 0..60 {
            now = now + frame;
            sent += burst(now, u64::MAX);
        }
        let rate = sent as f64 / 1.0;
        let expected = 1.25 * 300_000.0 / 0.05;
        assert!((rate / expected - 1.0).abs() < 0.02, "{rate} {expected}");
        // A second's pause is not made up for.
        now = now + Duration::from_secs(1);
        let after = burst(now, u64::MAX);
        assert!(after as f64 <= expected * 0.05, "{after}");
        burst(now + frame, 1200);
        let idle = now + Duration::from_secs(2);
        assert!(burst(idle, u64::MAX) <= BURST as u64 + 1200);
    }
}
