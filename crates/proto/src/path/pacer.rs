//! Pacing (RFC 9002 section 7.7): a bucket of bytes that fills at the controller's rate. How much may leave back to back is the
//! controller's word as well, since after a pause a whole message may, and in the middle of a transfer it would stand in a queue.
//!
//! A driver may come later than it was asked to: a game's loop looks once a frame. What the bucket would have let go in the
//! meantime then goes at once; otherwise one burst a frame would be all that such a session ever sends.

use core::time::Duration;

use crate::time::{Instant, nanos};

/// A wait shorter than this is not worth a timer.
const WAIT_MIN: Duration = Duration::from_micros(100);

/// So late a driver may be without losing anything: a frame of a game that draws 25 a second.
const LATE_MAX: Duration = Duration::from_millis(40);
/// What it makes up for it sends at once, or never.
const CREDIT_KEPT: Duration = Duration::from_millis(2);

#[derive(Default)]
pub(crate) struct Pacer {
    /// Bytes that left and the bucket has not yet made up for; below zero, what a driver that came late may make up for.
    debt: f64,
    updated: Instant,
    /// A packet waits, and may go from then on.
    asked_for: Option<Instant>,
    /// When a driver last came late.
    credited: Instant,
}

impl Pacer {
    /// `None` when a packet may go now, else when it may. `rate` is in bytes a second, `burst` in bytes.
    pub(crate) fn may_send(
        &mut self,
        now: Instant,
        bytes: usize,
        rate: f64,
        burst: u64,
    ) -> Option<Instant> {
        self.refill(now, rate);
        let excess = self.debt + bytes as f64 - burst as f64;
        if self.debt <= 0.0 || excess <= 0.0 {
            return None;
        }
        let wait = Duration::from_nanos((excess / rate.max(1.0) * 1e9) as u64);
        let at = now + wait.max(WAIT_MIN);
        self.asked_for = Some(at);
        Some(at)
    }

    fn refill(&mut self, now: Instant, rate: f64) {
        let asked_for = self.asked_for.take();
        let until = asked_for.map_or(now, |at| now.min(at + LATE_MAX));
        let elapsed = nanos(until.since(self.updated)) as f64 * 1e-9;
        let debt = self.debt - rate * elapsed;
        // Time that nobody waited for is not saved up.
        let least = match asked_for {
            Some(at) if at < now => {
                self.credited = now;
                debt
            }
            _ if now.since(self.credited) <= CREDIT_KEPT => self.debt.min(0.0),
            _ => 0.0,
        };
        self.debt = debt.max(least);
        self.updated = now;
    }

    /// Something else holds up what was told to wait: whoever comes later than asked for makes nothing up.
    pub(crate) const fn wait_is_over(&mut self) {
        self.asked_for = None;
    }

    pub(crate) const fn on_sent(&mut self, bytes: usize) {
        self.debt += bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression: a download that its window held up when it might have left was taken for a driver that came late, and made up for up to 40 ms at once.
    #[test]
    fn what_something_else_held_up_makes_up_for_nothing() {
        for (is_over, may_go) in [(false, 5), (true, 1)] {
            let mut pacer = Pacer::default();
            let rate = 100_000.0;
            pacer.may_send(Instant::from_micros(1_000_000), 1000, rate, 1000);
            pacer.on_sent(1000);
            // In ten milliseconds.
            let at = pacer.may_send(Instant::from_micros(1_000_000), 1000, rate, 1000);
            assert_eq!(at, Some(Instant::from_micros(1_010_000)));
            if is_over {
                pacer.wait_is_over();
            }
            let mut gone = 0;
            while pacer
                .may_send(Instant::from_micros(1_050_000), 1000, rate, 1000)
                .is_none()
            {
                pacer.on_sent(1000);
                gone += 1;
            }
            assert_eq!(gone, may_go, "{is_over}");
        }
    }

    #[test]
    fn a_long_run_keeps_to_the_rate() {
        let mut pacer = Pacer::default();
        let (rate, burst) = (300_000.0, 12_000);
        let mut now = Instant::from_micros(1_000_000);
        let start = now;
        let mut sent = 0u64;
        while sent < 3_000_000 {
            match pacer.may_send(now, 1200, rate, burst) {
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
        let seen = (sent - burst) as f64 / now.since(start).as_secs_f64();
        assert!((seen / rate - 1.0).abs() < 0.02, "{seen} against {rate}");
    }

    /// Goal: a loop that looks once a frame sends at the same rate, and saves nothing up while it has nothing to send.
    #[test]
    fn a_driver_that_comes_late_keeps_to_the_rate() {
        const BURST: u64 = 12_000;
        let mut pacer = Pacer::default();
        let rate = 7_500_000.0;
        let frame = Duration::from_micros(16_667);
        let mut now = Instant::from_micros(1_000_000);
        let mut send = |mut now, have: u64| {
            let mut sent = 0;
            while sent < have && pacer.may_send(now, 1200, rate, BURST).is_none() {
                pacer.on_sent(1200);
                sent += 1200;
                // As drivers do, it looks at the clock now and then.
                now = now + Duration::from_nanos(100);
            }
            sent
        };
        let mut sent = send(now, u64::MAX);
        assert!(sent <= BURST);
        for _ in 0..60 {
            now = now + frame;
            sent += send(now, u64::MAX);
        }
        assert!((sent as f64 / rate - 1.0).abs() < 0.02, "{sent}");
        // A second's pause is not made up for.
        now = now + Duration::from_secs(1);
        let after = send(now, u64::MAX);
        assert!(after as f64 <= rate * 0.05, "{after}");
        // Nor is what was not used at once.
        send(now + frame, 1200);
        let later = send(now + frame * 2, u64::MAX);
        assert!(later <= BURST + 1200, "{later}");
    }
}
