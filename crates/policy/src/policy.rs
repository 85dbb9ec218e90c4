//! The trait behind which every policy stands.

use crate::{Action, Situation};

/// What a policy counts as missing of a block, and what its later rounds consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deficit {
    /// Symbols still needed, of whatever kind: k less all that arrived. Later rounds send symbols that were not sent before.
    Rank,
    /// Source symbols that did not arrive, unless the block is complete: repair symbols of earlier rounds do not count.
    /// Later rounds send these source symbols again, and repair symbols that were not sent before.
    Source,
}

/// Decides how much redundancy a message gets. A value behind this trait, so that tests, the lab and users can swap it.
pub trait Policy: Send + Sync {
    /// The name used in reports, such as `exact`.
    fn name(&self) -> &'static str;

    /// What [`Situation::deficit`] is to say.
    fn counts(&self) -> Deficit {
        Deficit::Rank
    }

    /// What to send now. Pure: equal situations give equal answers once the policy's tables are ready.
    ///
    /// When it is too late (`rounds_left` is 0) every policy of this crate sends the deficit: whether a late message is
    /// still wanted is for the caller to know.
    fn decide(&self, situation: &Situation) -> Action;

    /// Expected symbols sent in time for a block of `source_symbols` with `rounds` rounds under loss `loss`, for choosing k.
    fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32;

    /// Probability of a miss when the rest of the block is handled at the situation's price, for [`crate::Steering`]. `None` of a
    /// policy without a multiplier, and while it has no tables.
    fn miss_at_price(&self, situation: &Situation) -> Option<f32> {
        let _ = situation;
        None
    }
}
