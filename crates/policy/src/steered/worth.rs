//! What a flight comes to where the decision about it was looked up: for explaining it.

use super::grid::{self, DEFICITS, price_at, price_index};
use super::{State, found};
use crate::Action;
use crate::chance::{self, Losses};

impl State<'_> {
    /// Symbols, these included, and misses at the price.
    pub(super) fn worth_of(&self, flight: Action) -> f64 {
        let (symbols, deficit) = (flight.symbols, u16::from(self.situation.deficit));
        let pace = self.pace();
        if let Some(chance) = pace.chance.filter(|_| symbols >= deficit) {
            return self.worth_by_chance(pace.rounds, chance.in_time, symbols);
        }
        if pace.rounds <= 1 && self.is_bursty() {
            return found::worth(&self.last_flight(), self.situation.draw, flight);
        }
        if self.is_alone(pace.rounds) {
            let losses = Losses {
                loss: chance::loss_within_bounds(self.situation.loss_mean),
                uneven: f64::from(self.situation.burst.uneven),
            };
            return f64::from(symbols) + self.price.symbols() * losses.miss(deficit, symbols);
        }
        self.worth_by_table(pace.rounds, symbols)
    }

    /// The same by the table that the decision is from.
    fn worth_by_table(&self, rounds_left: u16, symbols: u16) -> f64 {
        let deficit = u16::from(self.situation.deficit).min(DEFICITS as u16);
        let table = self.in_good;
        let price = price_index(self.price);
        let mut worth = f64::from(symbols);
        chance::arrivals_below(symbols, 1.0 - table.loss, deficit, |arrived, chance| {
            let follows = match rounds_left {
                0 | 1 => price_at(price).symbols(),
                more => table.value(grid::row(price, more - 1), deficit - arrived),
            };
            worth += chance * follows;
        });
        worth
    }
}
