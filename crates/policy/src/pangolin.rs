//! The paper's policy: a deterministic optimum of the Lagrangian, looked up by loss, rounds and symbols.
//!
//! After "Concurrent messaging" (Pangolin, CoNEXT 2011), section 5: loss is uniform, a policy minimises symbols + lambda x
//! miss, and lambda is such that the cheapest policy on the convex hull with miss <= eps is found. Tables exist for loss
//! 1..50 % in steps of 1 % (rounded up), rounds 1..100 and k 1..64, where sending just the deficit does not do.
//!
//! It may give up inside the deadline: an action of 0 where what is left is so unlikely to arrive that lambda does not pay
//! for the try. At a miss target of 0.1 %, 10 676 of the 23 330 tables have such states. Under independent loss they are next
//! to impossible; under bursts they are not (docs/notes/redundancy.md#giving-up). [`crate::Exact`] has none.
//!
//! The table is named by the loss bin, the rounds *planned* when the first flight was sent and k, since the price of a miss was
//! found for these; rounds left and deficit name the action in it. The loss may change meanwhile: then a later round reads the
//! table of another bin.
//!
//! The tables are built by k when first wanted; until then a conservative stopgap serves (deficit, and in the last round the
//! least flight that meets the target).

use crate::error::checked_miss_target;
use crate::loss::Percents;
use crate::shelf::{Scheme, Shelf};
use crate::{Action, OutOfRange, Policy, ROUNDS_MAX, Situation};

/// The paper's tables for one miss target.
#[derive(Debug)]
pub struct Pangolin {
    shelf: Shelf<PaperScheme>,
}

pub(crate) struct PaperScheme;

impl Scheme for PaperScheme {
    type Bins = Percents;
    const ROUNDS_MAX: u16 = ROUNDS_MAX;
    #[cfg(feature = "solve")]
    const RULE: crate::solve::Rule = crate::solve::Rule::MayGiveUp;
}

impl Pangolin {
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
impl Pangolin {
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

    /// Whether a table answers, and not the rule that just the deficit does.
    pub(crate) fn has_table(&self, situation: &Situation) -> bool {
        let bin = <Percents as crate::loss::LossBins>::bin_of(situation.loss);
        let tables = self.shelf.tables(situation.source_symbols);
        tables.is_some_and(|tables| tables.cost(bin, situation.rounds_planned).is_some())
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

impl Policy for Pangolin {
    fn name(&self) -> &'static str {
        "pangolin"
    }

    fn decide(&self, situation: &Situation) -> Action {
        Action::burst(self.shelf.symbols(situation))
    }

    fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32 {
        self.shelf.expected_symbols(source_symbols, rounds, loss)
    }
}
