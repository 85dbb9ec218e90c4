//! Room is made: for some round trips a flow sends less than what the path carries without a queue, to see what becomes of the queue.

use super::delays::Delays;
use super::rivalry::Turnover;
use crate::time::Instant;

/// Room that changes the round trip by less than this share of the supposed queue ..
const UNCHANGED: f64 = 1.0 / 16.0;
/// .. and of what a queue would have lost by it, was made in none. (Among eight flows of CUBIC 1 of
/// 3,000 that are made before a competition changes so little.)
const UNMOVED: f64 = 0.25;

/// How much room is made.
pub(super) struct Depth {
    round_trips: u32,
    /// The window meanwhile, as a share of what goes without a queue.
    share: f64,
}

/// Before competing.
pub(super) const FIRST: Depth = Depth {
    round_trips: 4,
    share: 0.9,
};
/// While competing.
pub(super) const LATER: Depth = Depth {
    round_trips: 3,
    share: 0.75,
};
/// When the least round trip is looked for.
pub(super) const LOOK: Depth = Depth {
    round_trips: 3,
    share: 0.65,
};

#[derive(Clone, Copy)]
pub(super) struct Drain {
    until: Instant,
    /// The window meanwhile, in bytes.
    window: f32,
    /// The least and the most of the standing round trip since it began, in microseconds.
    least_us: f32,
    most_us: f32,
    /// A queue changes by more.
    nothing_us: f32,
}

impl Drain {
    pub(super) fn begin(now: Instant, depth: &Depth, full: Turnover, delays: &Delays) -> Self {
        let share = depth.share * delays.least_us() / delays.standing_us();
        // A queue of ours falls by what is left out, and another by our part of it.
        let falls_us = 1e6 * full.window * (1.0 - share) / full.rate_max.max(1.0);
        let nothing_us = (UNCHANGED * delays.queue_us()).min(UNMOVED * falls_us);
        let standing_us = delays.standing_us() as f32;
        Self {
            until: now + delays.smoothed() * depth.round_trips,
            window: (share * full.window) as f32,
            least_us: standing_us,
            most_us: standing_us,
            nothing_us: nothing_us as f32,
        }
    }

    pub(super) fn window(&self) -> f64 {
        f64::from(self.window)
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    /// A round trip was seen meanwhile.
    pub(super) fn record(&mut self, delays: &Delays) {
        let standing_us = delays.standing_us() as f32;
        self.least_us = self.least_us.min(standing_us);
        self.most_us = self.most_us.max(standing_us);
    }

    /// Whether it was made in no queue: what is longer than the least round trip is the path.
    pub(super) fn was_for_nothing(&self) -> bool {
        self.most_us - self.least_us <= self.nothing_us
    }
}
