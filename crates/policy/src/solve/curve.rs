//! What a policy costs over a range of losses: the paper's figure 6.

use alloc::vec::Vec;

use super::{Problem, solve};
use crate::{OutOfRange, PolicyKind};

/// One point of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Probability that a symbol is lost.
    pub loss: f64,
    /// Expected symbols beyond k, as a share of k.
    pub overhead: f64,
    /// Probability that the block is not rebuilt in time.
    pub miss_probability: f64,
    /// The overhead of a sender that knows all losses beforehand: p / (1 - p).
    pub oracle: f64,
}

/// Solves `problem` for each of `losses` in place of its own.
///
/// Figure 6 of the paper is `Pangolin` with k = 4 in 2 rounds, for miss targets of 1 % and 0.1 %.
///
/// # Errors
///
/// [`OutOfRange`] when a part of the problem, or a loss, is.
pub fn curve(
    kind: PolicyKind,
    problem: &Problem,
    losses: impl IntoIterator<Item = f64>,
) -> Result<Vec<CurvePoint>, OutOfRange> {
    let source_symbols = f64::from(problem.source_symbols);
    let point = |loss| {
        let problem = Problem { loss, ..*problem };
        let solution = solve(kind, &problem)?;
        Ok(CurvePoint {
            loss,
            overhead: solution.expected_symbols / source_symbols - 1.0,
            miss_probability: solution.miss_probability,
            oracle: loss / (1.0 - loss),
        })
    };
    losses.into_iter().map(point).collect()
}
