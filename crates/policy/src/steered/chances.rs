//! Flights after which the last one may be late: how many symbols leave now, and what comes of it. What was reckoned once is looked up.

use core::ops::RangeInclusive;

use super::grid::{self, DEFICITS, ROUNDS};
use super::memo::{Axis, Memo, key};
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

/// Larger deficits are reckoned each time.
const DEFICIT_MAX: u8 = 32;
/// More symbols are not sent.
const CAP_MAX: u16 = 127;
/// Points of being late: it is more than one in a hundred.
const LATE: Axis = Axis::new(-7, 8, 6);
/// Points of the correlation from 0 to 1, less one.
const CORRELATIONS: f32 = 31.0;
/// Bits of a key: those of [`Point`].
const KEY_BITS: u32 = 37;
/// Bits of a number that is kept, without its sign: good to 0.4 %, as the tables are.
const NUMBER: u32 = 15;

/// Those of the process: constants of nature, as the tables are.
pub(super) static CHANCES: Memo<KEY_BITS> = Memo::new();

/// A point of the grid; each axis from 0. The losses and prices are those of the tables.
struct Point {
    loss: usize,
    price: usize,
    rounds: u16,
    deficit: u8,
    cap: u16,
    late: u32,
    correlation: u32,
}

impl Point {
    fn key(&self) -> u64 {
        key(&[
            (self.loss as u64, 6),
            (self.price as u64, 5),
            (u64::from(self.rounds - 2), 3),
            (u64::from(self.deficit - 1), 5),
            (u64::from(self.cap), 7),
            (u64::from(self.late), 6),
            (u64::from(self.correlation), 5),
        ])
    }
}

impl State<'_> {
    /// What comes of the best flight now, of all that are no smaller than the deficit, where of `rounds` (at least 2) the last flight arrives in time with
    /// this probability.
    ///
    /// By the points around the situation, which the message draws; so it is the same whether it was reckoned before or not. O(1) if it was.
    pub(super) fn best_chance(&self, rounds: u16, in_time: f32) -> (f64, Chance) {
        let Some(point) = self.point(rounds, in_time) else {
            let all = 1..=cost_cap(self.situation);
            return self.by_chance(rounds, f64::from(in_time), all);
        };
        let in_time = 1.0 - f64::from(LATE.value(point.late).min(1.0));
        let kept = CHANCES.get(point.key(), || {
            let situation = Situation {
                deficit: point.deficit,
                loss_mean: grid::loss_at(point.loss) as f32,
                burst: Burst {
                    correlation: point.correlation as f32 / CORRELATIONS,
                    ..Burst::default()
                },
                ..*self.situation
            };
            let state = State {
                situation: &situation,
                ..*self
            };
            let (value, best) = state.by_chance(point.rounds, in_time, 1..=point.cap);
            kept(value) << (NUMBER + 8) | kept(best.miss) << 8 | u64::from(best.symbols)
        });
        let chance = Chance {
            symbols: (kept & 0xff) as u16,
            miss: number(kept >> 8),
            in_time,
        };
        (number(kept >> (NUMBER + 8)), chance)
    }

    /// The point of the grid; `None` for what is seldom.
    fn point(&self, rounds: u16, in_time: f32) -> Option<Point> {
        let situation = self.situation;
        if !situation.is_by_its_loss() || situation.deficit > DEFICIT_MAX {
            return None;
        }
        // By other bits than the loss, which the lower ones draw.
        let share = (situation.draw >> 10 & 0x7ff) as f32 / 2048.0;
        let correlation = situation.burst.correlation.clamp(0.0, 1.0) * CORRELATIONS + share;
        Some(Point {
            loss: grid::loss_index(situation.loss_mean, situation.draw),
            price: grid::price_index(self.full_price),
            rounds: rounds.clamp(2, ROUNDS as u16 + 1),
            deficit: situation.deficit.max(1),
            cap: cost_cap(situation).min(CAP_MAX),
            late: LATE.point(1.0 - in_time, situation.draw),
            correlation: correlation as u32,
        })
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

/// The bits that are kept of a number that is not negative.
fn kept(number: f64) -> u64 {
    let bits = (number as f32).to_bits();
    u64::from(bits.saturating_add(1 << 15) >> 16) & ((1 << NUMBER) - 1)
}

/// The number of which the lowest bits are these.
fn number(kept: u64) -> f64 {
    let bits = (kept as u32 & ((1 << NUMBER) - 1)) << 16;
    f32::from_bits(bits).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Price, Steered};

    #[test]
    fn numbers_are_kept_as_well_as_in_the_tables() {
        for wanted in [0.0, 1e-9, 0.37, 1.0, 3.3, 1e6] {
            let got = number(kept(wanted));
            assert!((got - wanted).abs() <= 0.004 * wanted, "{wanted} {got}");
        }
    }

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
