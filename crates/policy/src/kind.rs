//! The names under which policies are asked for.

use core::hash::{Hash, Hasher};
use core::{fmt, str::FromStr};

use crate::Part;
use crate::limits::MISS_TARGET_MIN;

/// Which policy; parsed from and printed as `retransmit`, `fixed(1)` (also read: `fixed:1`), `hairpin` or `hairpin(0.001)` with a
/// [`ParityPrice`] of one's own, `pangolin`, `exact`, `steered`, `steered-without(spacing)` with any [`Part`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicyKind {
    /// Just the deficit in every round: [`crate::Retransmit`].
    Retransmit,
    /// That many repair symbols with the first flight: [`crate::Fixed`].
    Fixed(u8),
    /// Hairpin's recursion with this price of parity: [`crate::Hairpin`].
    Hairpin(ParityPrice),
    /// The paper's tables: [`crate::Pangolin`].
    Pangolin,
    /// The constrained optimum without giving up: [`crate::Exact`].
    Exact,
    /// Least symbols at a price, which is steered by what was achieved: [`crate::Steered`]. The default until something beats it.
    #[default]
    Steered,
    /// The same without one of its parts: [`crate::Without`].
    SteeredWithout(Part),
}

impl PolicyKind {
    /// Whether misses have a price, which several streams and sessions can share.
    #[must_use]
    pub const fn has_price(self) -> bool {
        matches!(self, Self::Steered | Self::SteeredWithout(_))
    }
}

/// What sending as many repair symbols as there are source symbols is worth to `hairpin`, in misses: its hand-set multiplier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParityPrice(f32);

impl ParityPrice {
    /// The published default: as much again as the message may be sent to save one miss in 10,000.
    pub const PUBLISHED: Self = Self(1e-4);

    /// `misses` within 1e-9..=1, `None` otherwise. (Published are tables for 1e-7 to 1.)
    #[must_use]
    pub fn new(misses: f32) -> Option<Self> {
        (MISS_TARGET_MIN..=1.0)
            .contains(&misses)
            .then_some(Self(misses))
    }

    /// The misses.
    #[must_use]
    pub const fn misses(self) -> f32 {
        self.0
    }
}

impl Default for ParityPrice {
    fn default() -> Self {
        Self::PUBLISHED
    }
}

// No price is a NaN.
impl Eq for ParityPrice {}

// No price is zero, so that equal ones have equal bits.
impl Hash for ParityPrice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// The text names no policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParsePolicyKindError {
    /// None of `retransmit`, `fixed(N)`, `hairpin`, `hairpin(PRICE)`, `pangolin`, `exact`, `steered`, `steered-without(PART)`.
    UnknownName,
    /// `fixed` without a count of repair symbols within 0..=255, such as `fixed(1)`.
    RepairCount,
    /// `hairpin` with something behind it that is no price within 1e-9..=1, such as `hairpin(0.0001)`.
    Price,
    /// `steered-without` with something behind it that is no [`Part`].
    Part,
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retransmit => f.pad("retransmit"),
            Self::Fixed(repair) => write!(f, "fixed({repair})"),
            Self::Hairpin(ParityPrice::PUBLISHED) => f.pad("hairpin"),
            Self::Hairpin(price) => write!(f, "hairpin({})", price.misses()),
            Self::Pangolin => f.pad("pangolin"),
            Self::Exact => f.pad("exact"),
            Self::Steered => f.pad("steered"),
            Self::SteeredWithout(part) => write!(f, "steered-without({part})"),
        }
    }
}

impl FromStr for PolicyKind {
    type Err = ParsePolicyKindError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "retransmit" => return Ok(Self::Retransmit),
            "hairpin" => return Ok(Self::Hairpin(ParityPrice::PUBLISHED)),
            "pangolin" => return Ok(Self::Pangolin),
            "exact" => return Ok(Self::Exact),
            "steered" => return Ok(Self::Steered),
            _ => {}
        }
        if let Some(part) = text.strip_prefix("steered-without") {
            let part = argument(part).and_then(Part::by_name);
            return part
                .map(Self::SteeredWithout)
                .ok_or(ParsePolicyKindError::Part);
        }
        if let Some(count) = text.strip_prefix("fixed") {
            let count = argument(count).and_then(|count| count.parse().ok());
            return count
                .map(Self::Fixed)
                .ok_or(ParsePolicyKindError::RepairCount);
        }
        let price = text
            .strip_prefix("hairpin")
            .ok_or(ParsePolicyKindError::UnknownName)?;
        let price = argument(price).and_then(|price| ParityPrice::new(price.parse().ok()?));
        price.map(Self::Hairpin).ok_or(ParsePolicyKindError::Price)
    }
}

/// What stands in brackets, or after a colon.
fn argument(text: &str) -> Option<&str> {
    let in_brackets = text
        .strip_prefix('(')
        .and_then(|argument| argument.strip_suffix(')'));
    in_brackets.or_else(|| text.strip_prefix(':'))
}

impl fmt::Display for ParsePolicyKindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName => {
                f.write_str("not a policy: use retransmit, fixed(N), hairpin, pangolin, exact or steered")
            }
            Self::RepairCount => f.write_str(
                "fixed needs a count of repair symbols within 0..=255, such as fixed(1)",
            ),
            Self::Price => f.write_str(
                "hairpin takes the price of parity within 1e-9..=1, such as hairpin(0.0001), or nothing",
            ),
            Self::Part => f.write_str(
                "steered-without takes steering, level, spacing, arrival, silence or waiting, such as steered-without(spacing)",
            ),
        }
    }
}

impl core::error::Error for ParsePolicyKindError {}
