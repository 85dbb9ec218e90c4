//! Fills the tables of one k.

use alloc::vec::Vec;
use std::collections::HashMap;

use super::Rule;
use super::hull::{Optimum, rounds_not_trivial};
use super::trellis::{Game, Plan, Trellis};
use crate::loss::LossBins;
use crate::shelf::Scheme;
use crate::table::{Bin, BlockTables};

/// Solves every loss bin and every number of rounds of one k for which sending just the deficit does not do.
pub(crate) fn block_tables<S: Scheme>(source_symbols: u8, miss_target: f64) -> BlockTables {
    let mut trellis = Trellis::new();
    let mut packer = Packer::new(source_symbols);
    for bin in 0..S::Bins::COUNT {
        let loss = S::Bins::upper_end(bin);
        let rounds_max = rounds_not_trivial(source_symbols, loss, miss_target, S::ROUNDS_MAX);
        packer.begin_bin(rounds_max);
        // A first guess only: what a miss is worth to the next table is close to what it was worth to the last.
        let mut price = f64::from(source_symbols) / miss_target;
        for rounds in 1..=rounds_max {
            let game = Game {
                loss,
                source_symbols,
                rounds,
                rule: S::RULE,
            };
            let optimum = Optimum::find(&mut trellis, &game, miss_target, &mut price);
            packer.add_table(&optimum, S::RULE);
        }
    }
    packer.finish()
}

/// Packs tables as `table.rs` describes.
struct Packer {
    source_symbols: u8,
    numbers: HashMap<Vec<u8>, u16>,
    bins: Vec<Bin>,
    costs: Vec<f32>,
    dear_draws: Vec<u32>,
    dear_rows: Vec<u16>,
    cheap_rows: Vec<u16>,
    actions: Vec<u8>,
}

impl Packer {
    fn new(source_symbols: u8) -> Self {
        Self {
            source_symbols,
            numbers: HashMap::new(),
            bins: Vec::new(),
            costs: Vec::new(),
            dear_draws: Vec::new(),
            dear_rows: Vec::new(),
            cheap_rows: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// The next tables added, `rounds` in number, are those of the next bin.
    fn begin_bin(&mut self, rounds: u16) {
        let first_table = u16::try_from(self.costs.len()).expect("at most 62 bins of 100 tables");
        let first_row = u32::try_from(self.dear_rows.len()).expect("at most 62 bins of 5050 rows");
        self.bins.push(Bin {
            first_row,
            first_table,
            rounds,
        });
    }

    fn add_table(&mut self, optimum: &Optimum, rule: Rule) {
        let dear = self.number_rows(&optimum.dear);
        self.dear_rows.extend(dear);
        match rule {
            Rule::MayGiveUp => self.costs.push(optimum.dear.cost as f32),
            Rule::MustDeliver => {
                let cheap = self.number_rows(&optimum.cheap);
                self.cheap_rows.extend(cheap);
                self.costs.push(optimum.mixed_cost() as f32);
                self.dear_draws.push(greatest_draw(optimum.dear_weight));
            }
        }
    }

    fn number_rows(&mut self, plan: &Plan) -> Vec<u16> {
        let rows = plan.actions.chunks_exact(usize::from(self.source_symbols));
        rows.map(|row| {
            if let Some(number) = self.numbers.get(row) {
                return *number;
            }
            let number =
                u16::try_from(self.numbers.len()).expect("far fewer distinct rows than 65 536");
            self.numbers.insert(row.to_vec(), number);
            self.actions.extend(row);
            number
        })
        .collect()
    }

    fn finish(self) -> BlockTables {
        BlockTables {
            source_symbols: self.source_symbols,
            bins: self.bins.into(),
            costs: self.costs.into(),
            dear_draws: self.dear_draws.into(),
            dear_rows: self.dear_rows.into(),
            cheap_rows: self.cheap_rows.into(),
            actions: self.actions.into(),
        }
    }
}

/// The greatest draw that follows the dear policy. Rounded up, so that the target is met: draws 0..=greatest are
/// ceil(weight x 2^32) of 2^32.
fn greatest_draw(dear_weight: f64) -> u32 {
    let draws = libm::ceil(dear_weight * 4_294_967_296.0);
    // The cast saturates: a weight of 1 takes every draw. A weight of 0 would still take one in four thousand million.
    (draws - 1.0) as u32
}
