//! Sends what is missing, never more: what transports without redundancy do.

use crate::{Action, Policy, Situation, chance};

/// Sends the deficit in every round. The cheapest policy there is, and the measure of the others' redundancy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retransmit;

impl Policy for Retransmit {
    fn name(&self) -> &'static str {
        "retransmit"
    }

    fn decide(&self, situation: &Situation) -> Action {
        Action::burst(u16::from(situation.deficit))
    }

    fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32 {
        let loss = chance::loss_within_bounds(loss);
        chance::retransmit_symbols(f64::from(source_symbols), rounds.max(1), loss) as f32
    }
}
