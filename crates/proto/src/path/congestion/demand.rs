//! What an application asks for: what waits to be sent, and what redundancy has taken of the room for that.

use core::time::Duration;

use super::waits::{THIN, Waits};
use crate::time::Instant;

pub(super) struct Demand {
    pub(super) waits: Waits,
    /// Something was held back when the latest packet had left, and has been since.
    pub(super) is_held: bool,
    /// Redundancy that has left since then, in bytes.
    redundant: u32,
    since: Instant,
}

impl Default for Demand {
    fn default() -> Self {
        Self {
            waits: Waits::Nothing,
            is_held: false,
            redundant: 0,
            since: Instant::ZERO,
        }
    }
}

impl Demand {
    /// This waits now; what left two round trips ago is no longer under way.
    pub(super) fn set_waiting(&mut self, now: Instant, waits: Waits, round_trip: Duration) {
        self.waits = waits;
        if now.since(self.since) > round_trip * 2 {
            self.redundant = 0;
        }
    }

    /// So many bytes of redundancy leave.
    pub(super) fn on_redundancy(&mut self, now: Instant, bytes: u32, round_trip: Duration) {
        if now.since(self.since) > round_trip {
            self.since = now;
            self.redundant = 0;
        }
        self.redundant = self.redundant.saturating_add(bytes);
    }

    /// Bytes that what is needed may have under way beyond all else: those that redundancy has taken, up to [`THIN`]. (After a burst up to eight symbols leave for each
    /// that a message has; they filled all room, and the next messages were late for them.)
    pub(super) fn given_back(&self) -> f64 {
        match self.waits {
            Waits::Little => f64::from(self.redundant).min(THIN),
            _ => 0.0,
        }
    }
}
