//! Do others fill the queue? Copa's test (section 2.2): Copa's own flows empty it every five round trips, so when it was not nearly empty for
//! that long, something else keeps it full.
//!
//! Among themselves, flows that compete fill the queue as well and would see each other as such for ever. So a flow that competes
//! makes room from time to time, after a loss of its own or when the queue falls by itself (then others make room as
//! well), for as long as the queue needs to drain: if it does, nobody else is there.

use core::time::Duration;

use super::delays::Delays;
use crate::time::Instant;

/// Round trips without an empty queue that mean competition.
const PATIENCE: u32 = 5;
/// A queue below this share of the largest is as good as empty.
const EMPTY: f64 = 0.1;
/// How long a flow competes before it looks whether it still has to.
const INTERVAL: Duration = Duration::from_secs(5);
/// The window while room is made, as a share of what it would carry without a queue.
const DRAIN: f64 = 0.8;

#[derive(Clone, Copy, Default)]
pub(super) struct Rivalry {
    is_on: bool,
    /// When the queue was last nearly empty.
    empty_at: Instant,
    /// When room was last made, or the competition began.
    drained_at: Instant,
    /// Until when room is made.
    drains_until: Option<Instant>,
    /// The window meanwhile, in bytes.
    drained: f32,
}

impl Rivalry {
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// The window while room is made.
    pub(super) fn drained(&self) -> Option<f64> {
        self.drains_until.map(|_| f64::from(self.drained))
    }

    /// A round trip was seen: whether competition began or ended with it. `slack_us` of queue are always as good as none.
    pub(super) fn on_rtt(&mut self, now: Instant, delays: &Delays, slack_us: f64) -> bool {
        let range = (delays.largest_us() - delays.least_us()).max(0.0);
        if self.empty_at == Instant::ZERO || delays.queue_us() <= (EMPTY * range).max(slack_us) {
            self.empty_at = now;
        }
        self.drains_until.take_if(|until| now >= *until);
        let was_on = self.is_on;
        self.is_on = now.since(self.empty_at) > delays.smoothed() * PATIENCE;
        if self.is_on && !was_on {
            self.drained_at = now;
        }
        if !self.is_on {
            self.drains_until = None;
        }
        self.is_on != was_on
    }

    /// Makes room if it is due: soon after a congestion event, later in any case.
    pub(super) fn drain(&mut self, now: Instant, window: f64, delays: &Delays, is_event: bool) {
        let interval = if is_event { INTERVAL } else { INTERVAL * 2 };
        if !self.is_on || self.drains_until.is_some() || now.since(self.drained_at) < interval {
            return;
        }
        self.drained_at = now;
        self.drains_until = Some(now + delays.smoothed() * 3);
        self.drained = (DRAIN * window * delays.least_us() / delays.standing_us()) as f32;
    }
}
