//! Rounds that do not wait for the latest answers, nor for a flight that is sure to be in time, so that more of them fit.

use core::time::Duration;

use crate::Situation;

/// Rounds that may be hurried, at most: with three the cost is next to what has to be replaced.
const ROUNDS_MAX: u16 = 3;
/// A round is not hurried where so many answers come too late for it.
const LATE_MAX: f32 = 0.5;
/// Shares of packets that are in time for the last flight, where not nearly all are to be.
const SHARES: [f64; 3] = [0.95, 0.85, 0.7];
/// Where delays vary less than this (mean deviation), the fastest packets gain nothing over nearly all.
const WANDERS: Duration = Duration::from_millis(1);

/// More rounds than are left, made of the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hurry {
    /// Rounds more than are left.
    pub more: u16,
    /// How long each of them waits for answers.
    pub wait: Duration,
    /// Share of answers that come later than that, 0..=1.
    pub late: f32,
    /// Probability that a symbol of the last flight arrives in time if it is not lost, 0..=1.
    pub in_time: f32,
}

/// What is known of a path's delays.
pub trait Delays {
    /// Share of answers that come later than `wait`.
    fn late_answers(&self, wait: Duration) -> f32;
    /// Share of packets that arrive within this time.
    fn on_time(&self, time_left: Duration) -> f32;
    /// The delay within which this share of packets arrives.
    fn one_way(&self, share: f64) -> Duration;
}

/// The ways to hurry that a path offers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hurries {
    ways: [Hurry; 2 + SHARES.len()],
}

impl Hurries {
    /// No way.
    pub const NONE: Self = Self {
        ways: [Hurry::NONE; 2 + SHARES.len()],
    };

    /// One way.
    #[must_use]
    pub const fn one(way: Hurry) -> Self {
        let mut one = Self::NONE;
        one.ways[0] = way;
        one
    }

    /// Without those whose last flight may be late.
    pub(crate) fn sure(mut self) -> Self {
        let chancy = self.ways.iter_mut().filter(|way| way.is_chancy());
        chancy.for_each(|way| *way = Hurry::NONE);
        self
    }

    /// The way that waits so long for answers, if there is one, as if they all came.
    #[must_use]
    pub fn answered(self, wait: Duration) -> Self {
        let way = self.iter().find(|way| way.wait == wait);
        way.map_or(Self::NONE, |way| Self::one(Hurry { late: 0.0, ..*way }))
    }

    /// The ways that are worth a thought.
    pub fn iter(&self) -> impl Iterator<Item = &Hurry> {
        self.ways.iter().filter(|way| way.is_possible())
    }
}

impl Hurry {
    /// None that is worth a thought.
    const NONE: Self = Self {
        more: 0,
        wait: Duration::ZERO,
        late: 1.0,
        in_time: 0.0,
    };

    fn is_possible(&self) -> bool {
        self.more > 0 && self.late < LATE_MAX
    }

    /// Whether the last flight may be late, and is to be reckoned with that.
    pub(crate) fn is_chancy(&self) -> bool {
        self.in_time < 0.99
    }
}

impl Situation {
    /// The situation with the ways to hurry that a path with such delays offers; clocks and timers may be off by `margin`.
    #[must_use]
    pub fn with_hurry(mut self, delays: &impl Delays, margin: Duration) -> Self {
        self.hurries = Hurries::NONE;
        let [one, two, chancy @ ..] = &mut self.hurries.ways;
        for (more, hurry) in [(1, one), (2, two)] {
            let rounds = self.rounds_left.saturating_add(more);
            if self.timing.slack.is_zero() || rounds > ROUNDS_MAX {
                continue;
            }
            let share = self.timing.slack / u32::from(rounds.max(2) - 1);
            // An eighth is left for a queue before the last flight.
            let wait = share - share / 8;
            *hurry = Hurry {
                more,
                wait,
                late: delays.late_answers(wait),
                in_time: 1.0,
            };
        }
        if self.timing.rtt_deviation < WANDERS || self.rounds_left >= ROUNDS_MAX {
            return self;
        }
        for (share, hurry) in SHARES.into_iter().zip(chancy) {
            let slack = self
                .timing
                .time_left
                .saturating_sub(delays.one_way(share).saturating_add(margin));
            let wait = slack / u32::from(self.rounds_left.max(1));
            let late = delays.late_answers(wait);
            if wait.is_zero() || late >= LATE_MAX {
                continue;
            }
            let last = self
                .timing
                .time_left
                .saturating_sub(slack.saturating_add(margin));
            *hurry = Hurry {
                more: 1,
                wait,
                late,
                in_time: delays.on_time(last),
            };
        }
        self
    }

    /// Whether more rounds could be made by not waiting for the latest answers.
    #[must_use]
    pub fn may_hurry(&self) -> bool {
        self.rounds_left > 0 && self.hurries.iter().next().is_some()
    }
}
