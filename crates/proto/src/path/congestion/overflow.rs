//! Are losses a full queue's? What is lost there is lost when the round trip is near its longest; what chance takes, whenever.

use core::time::Duration;

use super::delays::Delays;
use crate::time::Instant;

/// A full queue is longer than this share of the longest of the last round trips. (Eight flows beside eight of CUBIC: 96 to 99 % of losses. One over a path
/// that wanders and loses by chance: 25 to 63 %.)
const NEARLY_FULL: f64 = 0.75;
/// What a loss in a nearly full queue, and another, speak for and against it: about the logarithms of what one is as likely to be.
const FOR: i8 = 1;
const AGAINST: i8 = -5;
/// No more is remembered in favour.
const FOR_MAX: i8 = 10;
/// So much against it is enough.
const REFUTED: i8 = -15;
/// Only what is less than this share of the least round trip may be refuted. (One of eight seeds beside CUBIC, at half a BDP, had 1.44 of its share: by a false refutation.)
const JITTER_MAX: f64 = 0.25;
/// For how long.
const MEMORY: Duration = Duration::from_secs(20);
/// A queue that is so much longer than what was refuted is another.
const OTHER: f64 = 1.5;

#[derive(Clone, Copy, Default)]
pub(super) struct Overflow {
    score: i8,
    refuted_at: Option<Instant>,
    /// What seemed to be a queue, at its longest, in microseconds.
    range_us: f32,
}

impl Overflow {
    /// Something was lost, and not with what was lost before. Whether losses are now known not to be a full queue's.
    pub(super) fn on_loss(&mut self, now: Instant, delays: &Delays) -> bool {
        let range_us = delays.longest_queue_us();
        let is_full = delays.queue_us() > NEARLY_FULL * range_us;
        self.score += if is_full { FOR } else { AGAINST };
        self.score = self.score.clamp(REFUTED, FOR_MAX);
        let may_be_jitter = range_us < JITTER_MAX * delays.least_us();
        if self.score > REFUTED || !may_be_jitter {
            return false;
        }
        *self = Self {
            score: 0,
            refuted_at: Some(now),
            range_us: range_us as f32,
        };
        true
    }

    /// Whether what seems to be a queue was found to be none.
    pub(super) fn is_refuted(&self, now: Instant, delays: &Delays) -> bool {
        let is_recent = self.refuted_at.is_some_and(|at| now.since(at) < MEMORY);
        is_recent && delays.longest_queue_us() < OTHER * f64::from(self.range_us)
    }
}
