//! The same redundancy for every message: forward error correction without a model.

use crate::limits::FLIGHT_MAX;
use crate::{Action, Policy, Situation, chance};

/// Adds `repair` symbols to the first flight; later rounds send the deficit only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// Repair symbols of the first flight, but for what is beyond the most that a flight has ([`FLIGHT_MAX`]).
    pub repair: u8,
}

fn first_flight(deficit: u8, repair: u8) -> u16 {
    (u16::from(deficit) + u16::from(repair)).min(FLIGHT_MAX)
}

impl Policy for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn decide(&self, situation: &Situation) -> Action {
        let repair = if situation.sent == 0 { self.repair } else { 0 };
        Action::burst(first_flight(situation.deficit, repair))
    }

    fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32 {
        let loss = chance::loss_within_bounds(loss);
        let first_flight = first_flight(source_symbols, self.repair);
        let mut deficit = 0.0;
        chance::arrivals_below(
            first_flight,
            1.0 - loss,
            u16::from(source_symbols),
            |arrived, probability| {
                deficit += probability * f64::from(u16::from(source_symbols) - arrived);
            },
        );
        let later = chance::retransmit_symbols(deficit, rounds.saturating_sub(1), loss);
        (f64::from(first_flight) + later) as f32
    }
}
