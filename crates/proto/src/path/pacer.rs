//! Pacing (RFC 9002 section 7.7): a bucket of bytes that fills at the controller's rate. How much may leave back to back is the
//! controller's word as well, since after a pause a whole message may, and in the middle of a transfer it would stand in a queue.

use core::time::Duration;

use crate::time::{Instant, nanos};

/// A wait shorter than this is not worth a timer.
const WAIT_MIN: Duration = Duration::from_micros(100);

#[derive(Default)]
pub(crate) struct Pacer {
    /// Bytes that left and the bucket has not yet made up for.
    debt: f64,
    updated: Instant,
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
        let elapsed = nanos(now.since(self.updated)) as f64 * 1e-9;
        self.debt = (self.debt - rate * elapsed).max(0.0);
        self.updated = now;
        let excess = self.debt + bytes as f64 - burst as f64;
        if self.debt == 0.0 || excess <= 0.0 {
            return None;
        }
        let wait = Duration::from_nanos((excess / rate.max(1.0) * 1e9) as u64);
        Some(now + wait.max(WAIT_MIN))
    }

    pub(crate) const fn on_sent(&mut self, bytes: usize) {
        self.debt += bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
