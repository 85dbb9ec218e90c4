//! Which losses belong to a congestion event that the window was already cut for.

use crate::time::Instant;

#[derive(Clone, Copy, Default)]
pub(super) struct Recovery {
    /// Losses of packets sent before this are the same event.
    since: Option<Instant>,
    /// Nothing has come back of what was sent since.
    is_unanswered: bool,
}

impl Recovery {
    pub(super) const fn since(&self) -> Option<Instant> {
        self.since
    }

    pub(super) const fn begin(&mut self, now: Instant) {
        self.since = Some(now);
        self.is_unanswered = true;
    }

    /// Whether a packet sent at `sent_at` belongs to the event.
    pub(super) fn covers(&self, sent_at: Instant) -> bool {
        self.since.is_some_and(|since| sent_at <= since)
    }

    /// A packet sent at `sent_at` was acknowledged. Whether it belongs to the event.
    pub(super) fn on_acked(&mut self, sent_at: Instant) -> bool {
        let is_covered = self.covers(sent_at);
        self.is_unanswered &= is_covered;
        is_covered
    }

    /// Whether all that was sent since the cut is lost, or not yet known of. That is a gap of the path, and no measure of the window that is left:
    /// cutting once a round trip, a gap of 200 ms left a third of it.
    pub(super) const fn is_unanswered(&self) -> bool {
        self.is_unanswered
    }
}
