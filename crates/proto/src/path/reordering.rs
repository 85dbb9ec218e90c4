//! How much later than its followers a packet may come and still not be lost.
//!
//! Nothing is allowed until reordering has been seen: on most paths a later acknowledgement of the same flight means loss, and
//! waiting costs a part of the deadline. Each packet that was given up and came after all raises the allowance to what it
//! would have needed; it fades again (RFC 8985 has the same idea for TCP).

use core::time::Duration;

use super::Rtt;

#[derive(Default)]
pub(crate) struct Reordering {
    allowance: Duration,
}

impl Reordering {
    pub(crate) const fn allowance(&self) -> Duration {
        self.allowance
    }

    /// A packet taken for lost was acknowledged `after` that verdict.
    pub(crate) fn on_spurious(&mut self, after: Duration, rtt: &Rtt) {
        // More than half a round trip is no reordering but a late acknowledgement, which the round time learns.
        let needed = (after + after / 4).min(rtt.smoothed() / 2);
        self.allowance = self.allowance.max(needed);
    }

    /// A flight went without reordering.
    pub(crate) fn on_orderly_flight(&mut self) {
        self.allowance = self.allowance.saturating_sub(self.allowance / 64);
        if self.allowance < Duration::from_micros(100) {
            self.allowance = Duration::ZERO;
        }
    }
}
