//! The points at which the tables by multiplier are solved: losses, prices and deficits, on grids that are finer where it makes a difference.
//!
//! Here nothing is rounded up, as the older policies do it: steering answers for the target, so a table need not be on the safe
//! side, and each step to the safe side costs symbols. Prices are rounded to the nearest, since they move all the time; losses,
//! which do not, are drawn from the two points around them.

use super::memo;
use crate::limits::LOSS_MAX;
use crate::{Price, Situation};

/// Losses from 2^-14 to one half. Below one in 16,384, no round but the last has anything to decide.
pub(crate) const LOSSES: usize = 61;
/// Prices from 2^0 to 2^27.
pub(crate) const PRICES: usize = 42;
/// Rounds left that have a table of their own; more are served as this many. The cost is at its floor by then (docs/notes/redundancy.md#waiting):
/// within 0.2 pp up to 10 % loss by four.
pub(crate) const ROUNDS: usize = 8;
/// Deficits 1..=64.
pub(crate) const DEFICITS: usize = 64;
/// Deficits that have entries of their own.
pub(crate) const PLACES: usize = 32;

/// Losses of some octaves, evenly spaced within each.
struct Octaves {
    /// The bits of the first: positive floats sort like their bits, and within an octave bits are linear in the loss.
    first: u32,
    /// Mantissa bits between two points.
    shift: u32,
    /// The index of the first.
    index: usize,
}

/// The greatest first. Two points an octave, from 2^-8 on four, from 2^-4 on eight, from 2^-3 to 2^-2 sixteen: with four, 20 % of loss and two rounds cost
/// 0.2 to 0.8 points more than they have to, and with eight k = 8 0.13; below 2^-8 two lose nothing.
const SEGMENTS: [Octaves; 5] = [
    Octaves::from(2, 20, 52),
    Octaves::from(3, 19, 36),
    Octaves::from(4, 20, 28),
    Octaves::from(8, 21, 12),
    Octaves::from(14, 22, 0),
];

impl Octaves {
    /// Those from so many octaves below 1 on.
    const fn from(below_one: u32, shift: u32, index: usize) -> Self {
        Self {
            first: (127 - below_one) << 23,
            shift,
            index,
        }
    }

    /// The greatest that this is true of; else the smallest.
    fn greatest(is_so: impl Fn(&Self) -> bool) -> &'static Self {
        let [larger @ .., least] = &SEGMENTS;
        larger
            .iter()
            .find(|octaves| is_so(octaves))
            .unwrap_or(least)
    }

    /// Those around a loss; the smallest for what is less.
    fn around(bits: u32) -> &'static Self {
        Self::greatest(|octaves| bits >= octaves.first)
    }

    /// The index of the point below, or of the first, and how far above it these bits are, of `1 << shift`.
    fn below(&self, bits: u32) -> (usize, u32) {
        let beyond = bits.saturating_sub(self.first);
        (
            self.index + (beyond >> self.shift) as usize,
            beyond % (1 << self.shift),
        )
    }
}

/// Bits of a draw that choose between two losses, at most.
pub(crate) const DRAWN: u32 = 22;

/// The bits of a loss; 0 for what is less.
fn bits(loss: f32) -> u32 {
    if loss <= 0.0 { 0 } else { loss.to_bits() }
}

/// One of the two points around a loss; of all draws, so many take the upper as makes the loss right on average. The last for
/// what is no number.
pub(crate) fn loss_index(loss: f32, draw: u32) -> usize {
    let octaves = Octaves::around(bits(loss));
    let (below, above) = octaves.below(bits(loss));
    let index = below + usize::from(above > draw % (1 << octaves.shift));
    index.min(LOSSES - 1)
}

/// The nearest point.
pub(crate) fn nearest_loss(loss: f32) -> usize {
    let (draws, upper) = lower_and_upper(loss);
    loss_index(loss, draws[usize::from(upper > 0.5)])
}

/// Draws with which [`loss_index`] takes the lower and the upper of the two points, and the share of draws that take the upper.
pub(crate) fn lower_and_upper(loss: f32) -> ([u32; 2], f32) {
    let octaves = Octaves::around(bits(loss));
    let (_, above) = octaves.below(bits(loss));
    let points = 1 << octaves.shift;
    ([points - 1, 0], above as f32 / points as f32)
}

/// The loss of a point.
pub(crate) fn loss_at(index: usize) -> f64 {
    let octaves = Octaves::greatest(|octaves| index >= octaves.index);
    let steps = (index - octaves.index) as u32;
    f64::from(f32::from_bits(octaves.first + (steps << octaves.shift))).min(LOSS_MAX)
}

/// Prices from this power of two on, up to [`LAST_HALF`], are half an octave apart; the others one. (Where the target of a thousandth is met, with an octave
/// 20 % of loss and two rounds cost up to 0.2 points more.)
const FIRST_HALF: usize = 3;
const LAST_HALF: usize = 17;
/// The index of the last of them.
const LAST_HALF_INDEX: usize = FIRST_HALF + 2 * (LAST_HALF - FIRST_HALF);

/// The nearest price of the grid.
pub(crate) fn price_index(price: Price) -> usize {
    let log2 = price.log2();
    // The casts round down.
    if log2 < FIRST_HALF as f32 {
        (log2 + 0.5) as usize
    } else if log2 < LAST_HALF as f32 {
        FIRST_HALF + ((log2 - FIRST_HALF as f32) * 2.0 + 0.5) as usize
    } else {
        LAST_HALF_INDEX + (log2 - LAST_HALF as f32 + 0.5) as usize
    }
}

/// The price of a point.
pub(crate) fn price_at(index: usize) -> Price {
    let log2 = match index {
        ..FIRST_HALF => index as f32,
        FIRST_HALF..LAST_HALF_INDEX => FIRST_HALF as f32 + (index - FIRST_HALF) as f32 / 2.0,
        _ => (LAST_HALF + index - LAST_HALF_INDEX) as f32,
    };
    Price::from_log2(log2)
}

/// Where the entries of a price and a number of rounds left (at least 1) begin; they follow by place.
pub(crate) fn row(price: usize, rounds_left: u16) -> usize {
    let round = usize::from(rounds_left).clamp(1, ROUNDS) - 1;
    (price * ROUNDS + round) * PLACES
}

/// The place of the least deficit that is at least this and has one, and by how many that is more.
pub(crate) fn place(deficit: u16) -> (usize, u16) {
    let deficit = usize::from(deficit).clamp(1, DEFICITS);
    let place = match deficit {
        ..=16 => deficit - 1,
        17..=32 => 15 + (deficit - 16).div_ceil(2),
        _ => 23 + (deficit - 32).div_ceil(4),
    };
    (place, (deficit_at(place) - deficit) as u16)
}

/// The deficit of a place: all up to 16, then every second, from 32 on every fourth.
pub(crate) const fn deficit_at(place: usize) -> usize {
    match place {
        ..=15 => place + 1,
        16..=23 => 16 + (place - 15) * 2,
        _ => 32 + (place - 23) * 4,
    }
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
    pub(super) const BITS: u32 = 6 + 6 + 3 + 5;

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
            (self.price as u64, 6),
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
            for draw in [0, 1 << 19, 1 << 20, 1 << 21, u32::MAX] {
                assert_eq!(loss_index(loss as f32, draw), index, "{loss} {draw}");
            }
            assert_eq!(nearest_loss(loss as f32), index);
            if index > 0 {
                let between = (0.3 * loss + 0.7 * loss_at(index - 1)) as f32;
                let draws = (0..1000).map(|i| i * (1 << (DRAWN - 3)) / 125);
                let upper = draws.filter(|draw| loss_index(between, *draw) == index);
                assert!(upper.count().abs_diff(300) <= 4, "{between}");
                let (draws, upper) = lower_and_upper(between);
                assert_eq!(
                    draws.map(|draw| loss_index(between, draw)),
                    [index - 1, index]
                );
                assert!((upper - 0.3).abs() < 0.002, "{upper}");
                assert_eq!(nearest_loss(between), index - 1);
            }
        }
        assert_eq!(loss_at(LOSSES - 1), LOSS_MAX);
        assert_eq!(
            [0, 12, 28].map(loss_at),
            [-14.0, -8.0, -4.0].map(libm::exp2)
        );
        for worst in [0.6, 1.0, f32::INFINITY, f32::NAN] {
            assert_eq!(loss_index(worst, 7), LOSSES - 1);
        }
        for least in [0.0, -1.0, 1e-9] {
            assert_eq!(loss_index(least, 7), 0);
            assert_eq!(nearest_loss(least), 0);
        }
    }

    #[test]
    fn the_nearest_price_is_taken() {
        for index in 0..PRICES {
            let price = price_at(index).log2();
            assert_eq!(price_index(price_at(index)), index);
            if index > 0 {
                let before = price_at(index - 1).log2();
                for (share, nearest) in [(0.4, index - 1), (0.6, index)] {
                    let between = Price::from_log2(before + share * (price - before));
                    assert_eq!(price_index(between), nearest, "{between:?}");
                }
            }
        }
        assert_eq!(price_index(Price::GREATEST), PRICES - 1);
        assert_eq!(price_index(Price::from_log2(f32::NAN)), 0);
    }

    #[test]
    fn every_deficit_has_a_place() {
        for deficit in 1..=DEFICITS as u16 {
            let (at, more) = place(deficit);
            assert_eq!(deficit_at(at), usize::from(deficit + more));
            assert!(more < 4 && (deficit > 16 || more == 0));
        }
        assert_eq!(place(DEFICITS as u16), (PLACES - 1, 0));
        assert_eq!((place(0), place(u16::MAX)), ((0, 0), (PLACES - 1, 0)));
    }
}
