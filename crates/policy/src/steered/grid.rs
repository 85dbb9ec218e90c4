//! The points at which the tables by multiplier are solved: losses and prices, both on logarithmic grids.
//!
//! Here nothing is rounded up, as the older policies do it: steering answers for the target, so a table need not be on the safe
//! side, and each step to the safe side costs symbols. Prices are rounded to the nearest, since they move all the time; losses,
//! which do not, are drawn from the two points around them.

use super::memo;
use crate::limits::LOSS_MAX;
use crate::{Price, Situation};

/// Losses: four an octave, from 2^-14 to one half. Below one in 16,384, no round but the last has anything to decide.
pub(crate) const LOSSES: usize = 53;
/// Prices: powers of two from 2^0 to 2^27.
pub(crate) const PRICES: usize = 28;
/// Rounds left that have a table of their own; more are served as this many. The cost is at its floor by then (research/fec.md,
/// section 2): within 0.2 pp up to 10 % loss by four.
pub(crate) const ROUNDS: usize = 8;
/// Deficits 1..=64.
pub(crate) const DEFICITS: usize = 64;

/// Mantissa bits dropped: 23 less the two that count the quarters of an octave.
const QUARTER_SHIFT: u32 = 21;
/// 2^-14, in quarters of an octave.
const FIRST_QUARTER: u32 = (127 - 14) << 2;

/// One of the two points around a loss; of all draws, so many take the upper as makes the loss right on average. The last for
/// what is no number.
pub(crate) fn loss_index(loss: f32, draw: u32) -> usize {
    if loss <= 0.0 {
        return 0;
    }
    // Positive floats sort like their bits, and between two points the bits are linear in the loss.
    let bits = loss.to_bits();
    let quarters = (bits >> QUARTER_SHIFT)
        + u32::from(bits % (1 << QUARTER_SHIFT) > draw % (1 << QUARTER_SHIFT));
    let index = quarters.saturating_sub(FIRST_QUARTER) as usize;
    index.min(LOSSES - 1)
}

/// Draws with which [`loss_index`] takes the lower and the upper of the two points, and the share of draws that take the upper.
pub(crate) fn lower_and_upper(loss: f32) -> ([u32; 2], f32) {
    let between = if loss > 0.0 {
        (loss.to_bits() % (1 << QUARTER_SHIFT)) as f32 / (1 << QUARTER_SHIFT) as f32
    } else {
        0.0
    };
    ([(1 << QUARTER_SHIFT) - 1, 0], between)
}

/// The loss of a point.
pub(crate) fn loss_at(index: usize) -> f64 {
    let loss = f32::from_bits((FIRST_QUARTER + index as u32) << QUARTER_SHIFT);
    f64::from(loss).min(LOSS_MAX)
}

/// The nearest price of the grid.
pub(crate) fn price_index(price: Price) -> usize {
    // At most 27.5, and the cast rounds down.
    (price.log2() + 0.5) as usize
}

/// The price of a point.
pub(crate) fn price_at(index: usize) -> Price {
    Price::from_log2(index as f32)
}

/// Where the entries of a price and a number of rounds left (at least 1) begin; they follow by deficit, from 1.
pub(crate) fn row(price: usize, rounds_left: u16) -> usize {
    let round = usize::from(rounds_left).clamp(1, ROUNDS) - 1;
    (price * ROUNDS + round) * DEFICITS
}

/// Where a situation stands in the tables: a part of the key of what is reckoned with them.
#[derive(Clone, Copy)]
pub(super) struct TablePoint {
    loss: usize,
    price: usize,
    /// 1 to [`ROUNDS`].
    pub(super) rounds: u16,
    /// 1 to [`Self::DEFICIT_MAX`].
    deficit: u8,
}

impl TablePoint {
    /// Larger deficits are seldom.
    const DEFICIT_MAX: u8 = 32;
    /// Bits of its key.
    pub(super) const BITS: u32 = 6 + 5 + 3 + 5;

    /// That of a situation with a price and so many rounds left; `None` for what is seldom.
    pub(super) fn around(situation: &Situation, price: Price, rounds: u16) -> Option<Self> {
        // The table for what is sent again is that of another loss.
        let is_by_its_loss = situation.sent == 0 || situation.loss_again().is_none();
        (is_by_its_loss && situation.deficit <= Self::DEFICIT_MAX).then(|| Self {
            loss: loss_index(situation.loss_mean, situation.draw),
            price: price_index(price),
            rounds: rounds.clamp(1, ROUNDS as u16),
            deficit: situation.deficit.max(1),
        })
    }

    pub(super) fn key(self) -> u64 {
        memo::key(&[
            (self.loss as u64, 6),
            (self.price as u64, 5),
            (u64::from(self.rounds - 1), 3),
            (u64::from(self.deficit - 1), 5),
        ])
    }

    /// The situation at the point.
    pub(super) fn of(self, situation: &Situation) -> Situation {
        Situation {
            loss_mean: loss_at(self.loss) as f32,
            deficit: self.deficit,
            ..*situation
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_stands_for_itself_and_what_is_between_is_shared() {
        for index in 0..LOSSES {
            let loss = loss_at(index);
            for draw in [0, 1 << 20, u32::MAX] {
                assert_eq!(loss_index(loss as f32, draw), index);
            }
            if index > 0 {
                let between = (0.3 * loss + 0.7 * loss_at(index - 1)) as f32;
                let draws = (0..1000).map(|i| i * (1 << (QUARTER_SHIFT - 3)) / 125);
                let upper = draws.filter(|draw| loss_index(between, *draw) == index);
                assert!(upper.count().abs_diff(300) <= 2);
                let (draws, upper) = lower_and_upper(between);
                assert_eq!(
                    draws.map(|draw| loss_index(between, draw)),
                    [index - 1, index]
                );
                assert!((upper - 0.3).abs() < 0.002, "{upper}");
            }
        }
        assert_eq!(loss_at(LOSSES - 1), LOSS_MAX);
        for worst in [0.6, 1.0, f32::INFINITY, f32::NAN] {
            assert_eq!(loss_index(worst, 7), LOSSES - 1);
        }
        for least in [0.0, -1.0, 1e-9] {
            assert_eq!(loss_index(least, 7), 0);
        }
        for index in 0..PRICES {
            assert_eq!(price_index(price_at(index)), index);
        }
        assert_eq!(price_index(Price::GREATEST), PRICES - 1);
        assert_eq!(price_index(Price::from_log2(f32::NAN)), 0);
    }
}
