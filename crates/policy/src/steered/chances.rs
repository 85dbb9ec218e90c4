//! Flights after which the last one may be late: how many symbols leave now, and what comes of it. What was reckoned once is looked up.

use core::ops::RangeInclusive;

use super::grid::{DEFICITS, DRAWN, TablePoint};
use super::memo::{Axis, Memo, key, point_of_share};
use super::tables::{upper_half, whole};
use super::{State, cost_cap};
use crate::{Burst, Situation, chance};

/// A flight after which the last one may be late.
#[derive(Clone, Copy)]
pub(super) struct Chance {
    pub(super) symbols: u16,
    /// Probability of a miss if all answers come.
    pub(super) miss: f64,
    /// Probability that the last flight is in time.
    pub(super) in_time: f64,
}

/// More symbols are not sent.
const CAP_MAX: u16 = 127;
/// Points of being late: it is more than one in a hundred.
const LATE: Axis = Axis::new(-7, 8, 6);
/// Points of the correlation from 0 to 1, less one.
const CORRELATIONS: u32 = 31;
/// Bits of a key.
const KEY_BITS: u32 = TablePoint::BITS + 7 + 6 + 5;

/// Those of the process: constants of nature, as the tables are. Each is the upper halves of its value and its miss, without their signs, and its symbols.
pub(super) static CHANCES: Memo<KEY_BITS> = Memo::new();

impl State<'_> {
    /// What comes of the best flight now, of all that are no smaller than the deficit, where of `rounds` (at least 2) the last flight arrives in time with
    /// this probability.
    ///
    /// By the points around the situation, which the message draws. O(1) if it was reckoned before.
    pub(super) fn best_chance(&self, rounds: u16, in_time: f32) -> (f64, Chance) {
        let (situation, most) = (self.situation, cost_cap(self.situation));
        let Some(point) = TablePoint::around(situation, self.full_price, rounds - 1) else {
            return self.by_chance(rounds, f64::from(in_time), 1..=most);
        };
        let cap = most.min(CAP_MAX);
        let late = LATE.point(1.0 - in_time, situation.draw);
        let correlation = correlation_point(situation);
        let key = key(&[
            (point.key(), TablePoint::BITS),
            (u64::from(cap), 7),
            (u64::from(late), 6),
            (u64::from(correlation), 5),
        ]);
        let in_time = 1.0 - f64::from(LATE.value(late).min(1.0));
        let kept = CHANCES.get(key, || {
            let situation = situation_at(point, situation);
            let state = State {
                situation: &situation,
                ..*self
            };
            let (value, best) = state.by_chance(point.rounds + 1, in_time, 1..=cap);
            // (No number is less than 0, but that has to be sure for the signs.)
            let half = |number: f64| u64::from(upper_half(number.max(0.0)));
            (half(value) << 15 | half(best.miss)) << 7 | u64::from(best.symbols)
        });
        let number = |bits: u64| f64::from(whole((bits & 0x7fff) as u16));
        let chance = Chance {
            symbols: (kept & 0x7f) as u16,
            miss: number(kept >> 7),
            in_time,
        };
        (number(kept >> 22), chance)
    }

    /// Symbols and misses of a flight of so many, at least the deficit, at the points around the situation; `in_time` is that of a [`Chance`].
    pub(super) fn worth_by_chance(&self, rounds: u16, in_time: f64, symbols: u16) -> f64 {
        let Some(point) = TablePoint::around(self.situation, self.full_price, rounds - 1) else {
            return self.by_chance(rounds, in_time, symbols..=symbols).0;
        };
        let situation = situation_at(point, self.situation);
        let state = State {
            situation: &situation,
            ..*self
        };
        state
            .by_chance(point.rounds + 1, in_time, symbols..=symbols)
            .0
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
}

/// Which point of the correlations the message draws.
fn correlation_point(situation: &Situation) -> u32 {
    // The lower bits draw the loss, the highest whether it is late.
    let others = (situation.draw >> DRAWN).reverse_bits();
    point_of_share(situation.burst.correlation, CORRELATIONS, others)
}

fn situation_at(point: TablePoint, situation: &Situation) -> Situation {
    Situation {
        burst: Burst {
            correlation: correlation_point(situation) as f32 / CORRELATIONS as f32,
            ..Burst::default()
        },
        ..point.of(situation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Price, Steered};

    /// What is looked up is worth about what is reckoned without a grid, on average over the points that messages draw, and the second look
    /// finds the same.
    #[test]
    fn what_is_looked_up_is_about_what_is_reckoned() {
        let policy = Steered::new(1e-3).expect("in range");
        policy.build_all();
        for (loss, correlation, in_time) in [(0.02, 0.0, 0.9), (0.11, 0.4, 0.5), (0.3, 0.9, 0.03)] {
            for (deficit, rounds, price) in [(1, 2, 9.0), (4, 3, 12.0), (16, 2, 5.0), (40, 2, 9.0)]
            {
                let first = Situation {
                    price: Some(Price::from_log2(price)),
                    burst: Burst {
                        correlation,
                        ..Burst::default()
                    },
                    ..Situation::first(deficit, 1, loss)
                };
                let of_draw = |i: u32| {
                    let situation = Situation {
                        draw: i.wrapping_mul(0x9e37_79b9),
                        ..first
                    };
                    let state = policy.state(&situation).expect("tables are built");
                    let looked_up = state.best_chance(rounds, in_time);
                    let again = state.best_chance(rounds, in_time);
                    assert_eq!(looked_up.1.symbols, again.1.symbols);
                    assert!(looked_up.1.symbols >= u16::from(deficit));
                    let in_time = f64::from(in_time);
                    let reckoned = state.by_chance(rounds, in_time, 1..=cost_cap(&situation)).0;
                    let symbols = looked_up.1.symbols;
                    let worth = state.by_chance(rounds, in_time, symbols..=symbols).0;
                    assert!(
                        worth < 1.05 * reckoned + 0.1,
                        "{first:?}: {worth} {reckoned}"
                    );
                    looked_up.0 / reckoned
                };
                let draws = 4096;
                let mean = (0..draws).map(of_draw).sum::<f64>() / f64::from(draws);
                assert!((mean - 1.0).abs() < 0.02, "{first:?}: {mean}");
            }
        }
    }
}
