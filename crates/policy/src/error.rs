//! What is out of range, and the range.

use core::fmt;

use crate::{MISS_TARGET_MIN, ROUNDS_MAX, SOURCE_SYMBOLS_MAX};

/// A parameter that no policy can be had for. Choose another; the same will not succeed later.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum OutOfRange {
    /// The loss probability is not within 0..1. A path that loses everything has no policy.
    Loss(f64),
    /// The source symbols are not within 1..=64.
    SourceSymbols(u8),
    /// The rounds are not within 1..=100.
    Rounds(u16),
    /// The miss target is not below 1, or below [`MISS_TARGET_MIN`].
    MissTarget(f64),
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loss(loss) => write!(f, "loss {loss} is not at least 0 and below 1"),
            Self::SourceSymbols(k) => write!(
                f,
                "{k} source symbols are not within 1..={SOURCE_SYMBOLS_MAX}"
            ),
            Self::Rounds(rounds) => write!(f, "{rounds} rounds are not within 1..={ROUNDS_MAX}"),
            Self::MissTarget(miss) => write!(
                f,
                "miss target {miss} is not at least {MISS_TARGET_MIN} and below 1"
            ),
        }
    }
}

impl core::error::Error for OutOfRange {}

/// The miss target as the tables use it.
pub(crate) fn checked_miss_target(miss_target: f64) -> Result<f64, OutOfRange> {
    // Written so that a NaN is out of range.
    let fits = miss_target >= f64::from(MISS_TARGET_MIN) && miss_target < 1.0;
    if fits {
        Ok(miss_target)
    } else {
        Err(OutOfRange::MissTarget(miss_target))
    }
}
