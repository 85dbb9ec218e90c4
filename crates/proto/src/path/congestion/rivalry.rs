//! Do others fill the queue? Copa's flows empty it every five round trips, so when it was not nearly empty for that long,
//! something else keeps it full (Copa, section 2.2).
//!
//! With two additions, for Copa's oscillation is not always that regular, and flows that compete with each other fill the queue
//! themselves and would do so for ever. Before a flow competes it makes room: it sends less than what the path carries
//! without a queue, for some round trips, and if the queue empties, nobody else is there. While it competes it does so
//! again from time to time, after a loss of its own or when the queue falls (then others make room as well).

use core::time::Duration;

use super::delays::Delays;
use crate::time::Instant;

/// Round trips without an empty queue after which room is made.
const PATIENCE: u32 = 5;
/// A queue below this share of the largest is as good as empty.
const EMPTY: f64 = 0.3;
/// Round trips for which room is made, before competing and while competing: others may notice a little later.
const FIRST_DRAIN_TIME: u32 = 4;
const DRAIN_TIME: u32 = 6;
/// The window meanwhile, as a share of what it would carry without a queue.
const FIRST_DRAIN: f64 = 0.9;
const DRAIN: f64 = 0.75;
/// How long a flow competes before it looks whether it still has to.
const INTERVAL: Duration = Duration::from_secs(5);
/// A queue below this share of its largest falls: others make room.
const FALLING: f64 = 0.75;

#[derive(Clone, Copy, Default)]
pub(super) struct Rivalry {
    is_on: bool,
    /// When the queue was last nearly empty.
    empty_at: Instant,
    /// When room was last made, or the competition began.
    drained_at: Instant,
    /// Until when room is made, and the window meanwhile, in bytes.
    drains_until: Option<Instant>,
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

    /// A round trip was seen: whether competition, or making room, began or ended with it. `slack_us` of queue are as good as none.
    pub(super) fn on_rtt(
        &mut self,
        now: Instant,
        window: f64,
        delays: &Delays,
        slack_us: f64,
    ) -> bool {
        let range = (delays.largest_us() - delays.least_us()).max(0.0);
        let is_empty = delays.queue_us() <= (EMPTY * range).max(slack_us);
        if is_empty || self.empty_at == Instant::ZERO {
            self.empty_at = now;
            let changes = self.is_on || self.drains_until.is_some();
            self.is_on = false;
            self.drains_until = None;
            return changes;
        }
        if let Some(until) = self.drains_until {
            if now < until {
                return false;
            }
            self.drains_until = None;
            let changes = !self.is_on;
            self.is_on = true;
            return changes;
        }
        if !self.is_on && now.since(self.empty_at) > delays.smoothed() * PATIENCE {
            self.begin_drain(now, window * FIRST_DRAIN, FIRST_DRAIN_TIME, delays);
        } else if self.is_on {
            let falls = delays.queue_us() < FALLING * range;
            self.drain(now, window, delays, falls);
        }
        false
    }

    /// Makes room if it is due: soon at a good moment, later in any case.
    fn drain(&mut self, now: Instant, window: f64, delays: &Delays, is_good: bool) {
        let interval = if is_good { INTERVAL } else { INTERVAL * 4 };
        if self.is_on && self.drains_until.is_none() && now.since(self.drained_at) >= interval {
            self.begin_drain(now, window * DRAIN, DRAIN_TIME, delays);
        }
    }

    fn begin_drain(&mut self, now: Instant, window: f64, round_trips: u32, delays: &Delays) {
        self.drained_at = now;
        self.drains_until = Some(now + delays.smoothed() * round_trips);
        self.drained = (window * delays.least_us() / delays.standing_us()) as f32;
    }
}
