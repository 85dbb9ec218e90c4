//! The names under which policies are asked for.

use core::{fmt, str::FromStr};

/// Which policy; parsed from and printed as `retransmit`, `fixed(1)` (also read: `fixed:1`), `pangolin`, `exact`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicyKind {
    /// Just the deficit in every round: [`crate::Retransmit`].
    Retransmit,
    /// That many repair symbols with the first flight: [`crate::Fixed`].
    Fixed(u8),
    /// The paper's tables: [`crate::Pangolin`].
    Pangolin,
    /// The constrained optimum without giving up: [`crate::Exact`]. The default until something beats it.
    #[default]
    Exact,
}

/// The text names no policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParsePolicyKindError {
    /// None of `retransmit`, `fixed(N)`, `pangolin`, `exact`.
    UnknownName,
    /// `fixed` without a count of repair symbols within 0..=255, such as `fixed(1)`.
    RepairCount,
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retransmit => f.pad("retransmit"),
            Self::Fixed(repair) => write!(f, "fixed({repair})"),
            Self::Pangolin => f.pad("pangolin"),
            Self::Exact => f.pad("exact"),
        }
    }
}

impl FromStr for PolicyKind {
    type Err = ParsePolicyKindError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "retransmit" => return Ok(Self::Retransmit),
            "pangolin" => return Ok(Self::Pangolin),
            "exact" => return Ok(Self::Exact),
            _ => {}
        }
        let count = text
            .strip_prefix("fixed")
            .ok_or(ParsePolicyKindError::UnknownName)?;
        let in_brackets = count
            .strip_prefix('(')
            .and_then(|count| count.strip_suffix(')'));
        let digits = in_brackets
            .or_else(|| count.strip_prefix(':'))
            .ok_or(ParsePolicyKindError::RepairCount)?;
        digits
            .parse()
            .map(Self::Fixed)
            .map_err(|_| ParsePolicyKindError::RepairCount)
    }
}

impl fmt::Display for ParsePolicyKindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName => {
                f.write_str("not a policy: use retransmit, fixed(N), pangolin or exact")
            }
            Self::RepairCount => f.write_str(
                "fixed needs a count of repair symbols within 0..=255, such as fixed(1)",
            ),
        }
    }
}

impl core::error::Error for ParsePolicyKindError {}
