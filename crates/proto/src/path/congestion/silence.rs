//! What was under way before nothing came back any more, for when something does.
//!
//! Persistent congestion (RFC 9002 section 7.6) leaves two packets, as it should while a path carries nothing. But a queue that is too full
//! loses some and delays the rest; what loses everything for several round trips is mostly a path that was down: a satellite's
//! handover, a lift, a radio's gap. Back again it carries what it carried, and a game has a backlog then whose deadlines run out. So
//! the window is what it was when something last came back (BBR does so after a timeout), unless the silence was long, or is the second
//! within that time.

use core::time::Duration;

use super::carried::RATE_MEMORY;
use crate::time::Instant;

/// After a longer silence it may be another path.
const FORGOTTEN: Duration = RATE_MEMORY;
/// What is left if the silence before ended less than [`FORGOTTEN`] ago: then it may be our own doing.
const LEFT: f32 = 0.5;

#[derive(Clone, Copy, Default)]
pub(super) struct Silence {
    is_on: bool,
    /// The window when something last arrived, in bytes.
    window: f32,
    /// When it began if it is on, else when the last one ended.
    changed_at: Instant,
    /// Bytes that were under way when it began, and are not yet taken for lost.
    before: u64,
}

impl Silence {
    /// Whether nothing has arrived since the silence began.
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Something has arrived, and so much may be under way.
    pub(super) const fn on_acked(&mut self, window: f64) {
        self.window = window as f32;
    }

    /// Nothing has come back for long; `in_flight` bytes are under way.
    pub(super) fn begin(&mut self, now: Instant, in_flight: u64) {
        self.before = in_flight;
        if self.is_on {
            return;
        }
        let is_second = self.changed_at != Instant::ZERO && self.is_recent(now);
        self.window *= if is_second { LEFT } else { 1.0 };
        self.is_on = true;
        self.changed_at = now;
    }

    /// Bytes that were under way when it began keep no probe from leaving: nothing is known of them but that they are probably lost.
    pub(super) const fn before(&self) -> u64 {
        if self.is_on { self.before } else { 0 }
    }

    /// So many of them are taken for lost.
    pub(super) const fn on_lost(&mut self, bytes: usize) {
        self.before = self.before.saturating_sub(bytes as u64);
    }

    /// Something has arrived after a silence: the window that is left.
    pub(super) fn end(&mut self, now: Instant) -> Option<f64> {
        let is_short = self.is_recent(now);
        self.is_on = false;
        self.changed_at = now;
        is_short.then_some(f64::from(self.window))
    }

    fn is_recent(&self, now: Instant) -> bool {
        now.since(self.changed_at) < FORGOTTEN
    }
}
