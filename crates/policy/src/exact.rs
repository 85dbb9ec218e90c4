//! The constrained optimum for messages that are to be delivered, for one target, by itself. (The default policy,
//! [`crate::Steered`], has the same optimum with one price for a whole stream.)
//!
//! Against [`crate::Pangolin`] it differs in three ways (docs/notes/redundancy.md):
//!
//! - It never gives up: every round sends at least the deficit. Under independent loss this costs next to nothing, and a
//!   burst that swallows a flight whole does not end the message.
//! - It spends the miss target to the last: the optimum of a constrained decision process is a mixture of two neighbouring
//!   policies of the convex hull (Altman; Beutler and Ross). The draw is the situation's, once a message, so the target
//!   holds over messages and not for each. k = 4, 2 % loss, 2 rounds, 0.1 %: 2.71 % overhead against 3.94 %.
//! - Its loss bins are fine where loss is small: four an octave, from 2^-16 to one half, rounded up.
//!
//! Where sending just the deficit meets the target, that is what it does, and no table is stored: the target is a bound, not
//! something to be used up by dropping.
//!
//! Tables are made for up to 16 rounds, more are served as 16 (whose first row is then used until 16 are left). The cost is at the
//! floor p / (1 - p) long before: within 0.1 pp by 8 rounds up to 30 % loss, at 50 % by 12 (k = 4: 101.5 % in 8 rounds, 99.95 %
//! in 12). Rounds to spare are better spent on waiting longer for feedback, which is for the caller to do.
//!
//! The tables are built by k when first wanted; until then a conservative stopgap serves: the deficit, and in the last round the
//! least flight that meets the target by itself. It meets the target too, and costs more.

use crate::error::checked_miss_target;
use crate::loss::Octaves;
use crate::shelf::{Scheme, Shelf};
use crate::{Action, OutOfRange, Policy, Situation};

/// The tables of the constrained optimum for one miss target.
#[derive(Debug)]
pub struct Exact {
    shelf: Shelf<DeliverScheme>,
}

pub(crate) struct DeliverScheme;

impl Scheme for DeliverScheme {
    type Bins = Octaves;
    const ROUNDS_MAX: u16 = 16;
    #[cfg(feature = "solve")]
    const RULE: crate::solve::Rule = crate::solve::Rule::MustDeliver;
}

impl Exact {
    /// Room for the tables of one miss target; none is built yet.
    ///
    /// # Errors
    ///
    /// [`OutOfRange::MissTarget`] unless the target is at least [`crate::MISS_TARGET_MIN`] and below 1.
    pub fn new(miss_target: f32) -> Result<Self, OutOfRange> {
        let miss_target = checked_miss_target(f64::from(miss_target))?;
        Ok(Self {
            shelf: Shelf::new(miss_target),
        })
    }

    /// The share of messages that may miss.
    #[must_use]
    pub const fn miss_target(&self) -> f64 {
        self.shelf.miss_target()
    }

    /// The k, as bits k - 1, whose tables look-ups have missed and that are not built yet.
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.shelf.wanted()
    }
}

#[cfg(feature = "solve")]
impl Exact {
    #[cfg(test)]
    pub(crate) const fn shelf(&self) -> &Shelf<DeliverScheme> {
        &self.shelf
    }

    /// Builds the tables of k, beside look-ups that go on; returns how many are new.
    pub fn build(&self, source_symbols: u8) -> usize {
        self.shelf.build(source_symbols)
    }

    /// Builds the tables that look-ups have missed; returns how many are new.
    pub fn build_wanted(&self) -> usize {
        self.shelf.build_wanted()
    }

    /// Builds the tables of every k, on all processors; returns how many are new.
    pub fn build_all(&self) -> usize {
        self.shelf.build_all()
    }

    /// Tables stored so far.
    #[must_use]
    pub fn table_count(&self) -> usize {
        self.shelf.stored().0
    }

    /// Bytes that they take, index included.
    #[must_use]
    pub fn stored_bytes(&self) -> usize {
        self.shelf.stored().1
    }
}

impl Policy for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn decide(&self, situation: &Situation) -> Action {
        Action::burst(self.shelf.symbols(situation))
    }

    fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32 {
        self.shelf.expected_symbols(source_symbols, rounds, loss)
    }
}
