//! How large messages are.

use super::curve::{Knot, QuantileCurve};
use crate::chance::{Chance, Purpose};

/// The sizes of a stream's messages.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// All alike.
    Fixed(u32),
    /// Mostly near the mean, with few from the least and up to the greatest.
    Spread(Spread),
}

/// Sizes from a least to a greatest with a mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    curve: QuantileCurve,
    min: u32,
    max: u32,
}

/// Index of the random numbers for a message's size; `traffic.rs` has those below.
const SIZE: u64 = 8;
const ROUNDING: u64 = 9;

impl Sizes {
    /// 96 % of sizes lie in a span around the mean that reaches half of the way to the nearer bound; of the rest, one half lies
    /// below and the other above. None unless the mean lies between the bounds (or all three are one).
    pub fn spread(min: u32, mean: f64, max: u32) -> Option<Self> {
        let (low, high) = (f64::from(min), f64::from(max));
        if min == max && mean == low {
            return Some(Self::Fixed(min));
        }
        // Written so that NaN fails.
        if !(low < mean && mean < high) {
            return None;
        }
        let reach = (mean - low).min(high - mean) / 2.0;
        let knot = |share, value, lean| Knot { share, value, lean };
        let knots = [
            knot(0.0, low, 0.5),
            knot(0.02, mean - reach, 0.5),
            knot(0.98, mean + reach, 0.2),
            knot(1.0, high, 0.5),
        ];
        QuantileCurve::fit(&knots, mean).map(|curve| Self::Spread(Spread { curve, min, max }))
    }

    /// The size of message `number`.
    pub fn draw(&self, chance: &Chance, number: u64) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Spread(Spread { curve, min, max }) => {
                let size = curve.value(chance.share(Purpose::Workload, number, SIZE));
                // Up or down by chance, so that whole bytes keep the mean.
                let rounded = size + chance.share(Purpose::Workload, number, ROUNDING);
                (rounded as u32).clamp(*min, *max)
            }
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => f64::from(*bytes),
            Self::Spread(spread) => spread.curve.mean(),
        }
    }

    /// The greatest.
    pub const fn max(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Spread(spread) => spread.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_mean_between_the_bounds_is_met() {
        let chance = Chance::new(3, 0);
        let n = 100_000;
        for (min, mean, max) in [
            (10, 11.0, 1000),
            (10, 999.0, 1000),
            (4, 500.0, 1200),
            (7, 7.5, 8),
        ] {
            let sizes = Sizes::spread(min, mean, max).unwrap();
            assert!((sizes.mean() / mean - 1.0).abs() < 1e-9);
            let drawn: Vec<_> = (0..n).map(|i| sizes.draw(&chance, i)).collect();
            let found = drawn.iter().map(|&s| f64::from(s)).sum::<f64>() / n as f64;
            assert!((found / mean - 1.0).abs() < 0.02, "{mean}: {found}");
            assert!(drawn.iter().all(|size| (min..=max).contains(size)));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (min, mean, max) in [
            (10, 9.0, 20),
            (10, 21.0, 20),
            (10, f64::NAN, 20),
            (10, 10.0, 20),
            (20, 15.0, 10),
        ] {
            assert_eq!(Sizes::spread(min, mean, max), None, "{mean}");
        }
        assert_eq!(Sizes::spread(9, 9.0, 9), Some(Sizes::Fixed(9)));
    }
}
