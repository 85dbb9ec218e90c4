//! How many rounds to make of the time that is left, and how long each then waits for answers (research/fec.md, E4).

use core::ops::RangeInclusive;
use core::time::Duration;

use super::grid::DEFICITS;
use super::grid::ROUNDS;
use super::{State, cost_cap};
use crate::{Hurry, chance};

/// Share of answers that take longer than the round time, by its definition (a 99 % quantile).
const LATE_ANSWERS: f64 = 0.01;
/// Of those, the share that comes within a mean deviation more (1 - 1/e: delays are taken to fall off exponentially).
const LATE_SAVED: f64 = 0.632;

/// What is made of the time.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) rounds: u16,
    /// How long this round waits for answers, if not for the round time.
    pub(super) wait: Option<Duration>,
    /// Share of answers that come too late because it is hurried.
    pub(super) late: f32,
    /// What goes now, and what comes of it, where the last flight may be late.
    pub(super) chance: Option<Chance>,
    /// Symbols and misses that come of it.
    value: f64,
}

/// A flight after which the last one may be late.
#[derive(Clone, Copy)]
pub(super) struct Chance {
    pub(super) symbols: u16,
    /// Probability of a miss if all answers come.
    pub(super) miss: f64,
    /// Probability that the last flight is in time.
    pub(super) in_time: f64,
}

impl State<'_> {
    /// The best pace: patient, unless a round that does not wait for the latest answers costs less than it makes room for.
    pub(super) fn pace(&self) -> Pace {
        let situation = self.situation;
        let mut best = self.patient();
        if !situation.may_hurry() {
            return best;
        }
        for hurry in situation.hurries.iter() {
            if hurry.is_chancy() && self.is_doubtful() {
                continue;
            }
            let pace = self.hurried(hurry);
            if pace.value < best.value {
                best = pace;
            }
        }
        best
    }

    fn hurried(&self, hurry: &Hurry) -> Pace {
        let deficit = u16::from(self.situation.deficit);
        let rounds = self.situation.rounds_left.saturating_add(hurry.more);
        let (value, chance) = if hurry.is_chancy() {
            let most = cost_cap(self.situation);
            let (value, chance) = self.by_chance(rounds, f64::from(hurry.in_time), 1..=most);
            (value, Some(chance))
        } else {
            (self.value(rounds, deficit), None)
        };
        Pace {
            rounds,
            wait: Some(hurry.wait),
            late: hurry.late,
            chance,
            value: value + f64::from(hurry.late) * f64::from(deficit),
        }
    }

    /// Symbols and misses, and the best flight now of so many symbols, at least the deficit, where of `rounds` (at least 2) the last flight
    /// arrives in time with this probability.
    ///
    /// What follows goes on as the tables say, and misses as often more as the last flight would have saved what the one before it has
    /// not. O(deficit x symbols).
    pub(super) fn by_chance(
        &self,
        rounds: u16,
        in_time: f64,
        counts: RangeInclusive<u16>,
    ) -> (f64, Chance) {
        const STATES: usize = DEFICITS + 1;
        let state = State {
            price: self.full_price,
            ..*self
        };
        let price = state.value(0, 1);
        let deficit = usize::from(self.situation.deficit).min(DEFICITS);
        let loss = chance::loss_within_bounds(self.situation.loss_mean);
        let (bad, lost) = self.situation.burst.moments(loss);
        // What follows, and how often it misses, by what is still missing after the symbols so far.
        let (mut value, mut miss) = ([0.0; STATES], [0.0; STATES]);
        for left in 1..=deficit {
            let after = state.miss(rounds - 1, left as u16);
            let before = match rounds - 2 {
                0 => 1.0,
                rounds => state.miss(rounds, left as u16),
            };
            let more = (1.0 - in_time) * (before - after).max(0.0);
            miss[left] = after + more;
            value[left] = state.value(rounds - 1, left as u16) + price * more;
        }
        let (value_if_bad, miss_if_bad) = (value[deficit], miss[deficit]);
        let mut best = (
            f64::INFINITY,
            Chance {
                symbols: 0,
                miss: 1.0,
                in_time,
            },
        );
        for symbols in 1..=*counts.end() {
            for left in (1..=deficit).rev() {
                value[left] = (1.0 - lost) * value[left - 1] + lost * value[left];
                miss[left] = (1.0 - lost) * miss[left - 1] + lost * miss[left];
            }
            let follows = bad * value_if_bad + (1.0 - bad) * value[deficit];
            let worth = f64::from(symbols) + follows;
            let is_asked = symbols >= *counts.start() && usize::from(symbols) >= deficit;
            if is_asked && worth < best.0 {
                let miss = bad * miss_if_bad + (1.0 - bad) * miss[deficit];
                best.0 = worth;
                (best.1.symbols, best.1.miss) = (symbols, miss);
            }
            if f64::from(symbols) >= best.0 {
                break;
            }
        }
        best
    }

    /// The same where every round waits for its round time at least.
    ///
    /// The slack, but for a quarter of what is spare, is divided among the rounds: fewer rounds wait longer, and an answer that comes late,
    /// but comes, saves a flight. A round waits for a mean deviation more at most: beyond, little is gained, and what leaves at the last
    /// moment has nothing to spare for a queue.
    fn patient(&self) -> Pace {
        let situation = self.situation;
        let deficit = u16::from(situation.deficit);
        let most = situation.rounds_left.min(ROUNDS as u16);
        let pace = |rounds, wait, value| Pace {
            rounds,
            wait,
            late: 0.0,
            chance: None,
            value,
        };
        if most < 2 || situation.timing.slack < situation.timing.round_time {
            // Only what is hurried is compared with it.
            let is_compared = situation.may_hurry();
            let value = is_compared.then(|| self.value(most, deficit));
            return pace(most, None, value.unwrap_or(0.0));
        }
        let most_spare = situation
            .timing
            .rtt_deviation
            .saturating_add(Duration::from_millis(1));
        let mut best = pace(most, None, f64::INFINITY);
        for rounds in (2..=most).rev() {
            let spare = (situation.timing.slack / u32::from(rounds - 1))
                .saturating_sub(situation.timing.round_time);
            let spare = (spare - spare / 4).min(most_spare);
            let waited = spare.as_secs_f64() / most_spare.as_secs_f64();
            let sent_twice = LATE_ANSWERS * (1.0 - LATE_SAVED * waited) * f64::from(deficit);
            let value = self.value(rounds, deficit) + sent_twice;
            if value < best.value {
                best = pace(
                    rounds,
                    Some(situation.timing.round_time.saturating_add(spare)),
                    value,
                );
            }
            // Fewer rounds wait no longer, and cost no less.
            if spare == most_spare {
                break;
            }
        }
        best
    }
}
