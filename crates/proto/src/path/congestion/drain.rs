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
pub(super) struct Room {
    round_trips: u32,
    /// The window meanwhile, as a share of what goes without a queue.
    share: f64,
}

/// Before competing.
pub(super) const FIRST: Room = Room {
    round_trips: 4,
    share: 0.9,
};
/// While competing.
pub(super) const LATER: Room = Room {
    round_trips: 3,
    share: 0.75,
};
/// When the least round trip is looked for.
pub(super) const LOOK: Room = Room {
    round_trips: 3,
    share: 0.65,
};

#[derive(Clone, Copy)]
pub(super) struct Drain {
    until: Instant,
    /// The window meanwhile, in bytes.
    window: f32,
    /// The standing round trip when it began, and the least and the most since, in microseconds.
    before_us: f32,
    least_us: f32,
    most_us: f32,
    /// By how much a queue of ours would fall, or our part of another.
    falls_us: f32,
}

impl Drain {
    pub(super) fn begin(now: Instant, room: &Room, full: Turnover, delays: &Delays) -> Self {
        let share = room.share * delays.least_us() / delays.standing_us();
        let left_out = full.window * (1.0 - share);
        let before_us = delays.standing_us() as f32;
        Self {
            until: now + delays.smoothed() * room.round_trips,
            window: (share * full.window) as f32,
            before_us,
            least_us: before_us,
            most_us: before_us,
            falls_us: (1e6 * left_out / full.rate_max.max(1.0)) as f32,
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
    pub(super) fn was_for_nothing(&self, delays: &Delays) -> bool {
        let queue_us = f64::from(self.before_us) - delays.least_us();
        let changed_us = f64::from(self.most_us - self.least_us);
        changed_us <= (UNCHANGED * queue_us).min(UNMOVED * f64::from(self.falls_us))
    }
}
