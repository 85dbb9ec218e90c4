//! How much later than its followers a packet may come and still not be lost.
//!
//! Nothing is allowed until reordering has been seen: on most paths a later acknowledgement of the same flight means loss, and
//! waiting costs a part of the deadline. Each packet that was given up and came after all raises the allowance to what it
//! would have needed; it fades again (RFC 8985 has the same idea for TCP).

use core::time::Duration;

use super::Rtt;
use crate::time::Instant;

/// The share of the allowance that fades, at most once a round trip: RFC 8985 section 7.2 keeps its window for 16 recoveries.
const FADING: u32 = 64;

#[derive(Default)]
pub(crate) struct Reordering {
    allowance: Duration,
    faded_at: Instant,
}

impl Reordering {
    pub(crate) const fn allowance(&self) -> Duration {
        self.allowance
    }

    /// A packet taken for lost was acknowledged `after` that verdict, and `took` after it was sent.
    pub(crate) fn on_spurious(&mut self, after: Duration, took: Duration, rtt: &Rtt) {
        // The verdict came at the smoothed round trip and the allowance, or at once while there was none.
        let late = took.saturating_sub(rtt.smoothed()).max(after);
        // More than half a round trip is no reordering but a late acknowledgement, which the round time learns.
        let needed = (late + late / 4).min(rtt.smoothed() / 2);
        self.allowance = self.allowance.max(needed);
    }

    /// A flight went without reordering. A download has hundreds of them a second, which say no more than one.
    pub(crate) fn on_orderly_flight(&mut self, now: Instant, rtt: &Rtt) {
        if now.since(self.faded_at) < rtt.smoothed() {
            return;
        }
        self.faded_at = now;
        self.allowance = self.allowance.saturating_sub(self.allowance / FADING);
        if self.allowance < Duration::from_micros(100) {
            self.allowance = Duration::ZERO;
        }
    }
}
