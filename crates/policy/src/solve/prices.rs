//! Fills the tables by multiplier: one game for each price, all deficits and rounds of it at once.

use alloc::vec;

use super::Rule;
use super::trellis::{Game, Trellis};
use crate::limits::SOURCE_SYMBOLS_MAX;
use crate::steered::grid::{self, PLACES, PRICES, ROUNDS};
use crate::steered::tables::{ENTRIES, PriceTable, upper_half};

/// Solves all prices for this loss: about 3 ms, 42 games of 8 rounds.
pub(crate) fn price_table(loss: f64) -> PriceTable {
    let mut trellis = Trellis::new();
    let mut symbols = vec![0; ENTRIES];
    let mut miss = vec![0; ENTRIES];
    let mut value = vec![0; ENTRIES];
    let game = Game {
        loss,
        source_symbols: SOURCE_SYMBOLS_MAX,
        rounds: ROUNDS as u16,
        rule: Rule::MustDeliver,
    };
    for price in 0..PRICES {
        trellis.solve(&game, grid::price_at(price).symbols());
        for left in 1..=ROUNDS as u16 {
            let first = grid::row(price, left);
            for place in 0..PLACES {
                let state = trellis.state(left, grid::deficit_at(place));
                let entry = first + place;
                symbols[entry] = state.symbols;
                miss[entry] = upper_half(state.miss);
                value[entry] = upper_half(state.value);
            }
        }
    }
    PriceTable {
        loss,
        symbols: symbols.into(),
        miss: miss.into(),
        value: value.into(),
    }
}
