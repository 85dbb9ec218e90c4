//! Finds the policies and fills the tables.
//!
//! `trellis` solves one game for one price of a miss, `hull` finds the price, `fill` does so for all tables of one k; `layers` is
//! Hairpin's recursion, `prices` fills the tables by multiplier.
//! [`solve`] and [`curve()`] answer for exact loss probabilities, without bins; [`table_summary`] measures the tables.

mod curve;
mod fill;
mod hull;
mod layers;
mod prices;
mod problem;
mod summary;
#[cfg(test)]
mod tests;
mod trellis;

pub use curve::{CurvePoint, curve};
pub use problem::{Mixed, Problem, Solution, solve};
pub use summary::{TableSummary, table_summary};

pub(crate) use fill::block_tables;
pub(crate) use layers::hairpin_table;
pub(crate) use prices::price_table;

/// What a policy may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Any action, one policy.
    MayGiveUp,
    /// At least the deficit in every round, two policies mixed.
    MustDeliver,
}
