//! Hairpin's recursion: how many repair symbols to send, by layers left and source symbols missing.
//!
//! V(0, n > 0) = 1, V(l, 0) = 0, V(l, n) = min over b of charge(n, b) + sum over n' of P(n -> n' | b) V(l - 1, n'), where n' are
//! the source symbols still missing when fewer repair symbols arrived than that (`chance.rs`). What arrived of the repair
//! symbols is of no use to the next layer. (Published as a maximum over values below 0; a value here is a probability of a
//! miss and what was spent to lower it.)

use alloc::vec;
use alloc::vec::Vec;

use crate::hairpin::{LAYERS_MAX, LOSSES, Table, loss_of};
use crate::limits::FLIGHT_MAX;
use crate::{ParityPrice, chance};

/// What is best with some number of layers left; all by source symbols missing, from 0.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// Repair symbols to send.
    pub(crate) repair: Vec<u16>,
    /// Probability that the block is not complete after the last layer.
    pub(crate) miss: Vec<f64>,
    /// Expected symbols, source symbols included.
    pub(crate) symbols: Vec<f64>,
    value: Vec<f64>,
}

/// One number of repair symbols that could be sent.
struct Choice {
    repair: u16,
    charge: f64,
    /// Probability of each number of source symbols still missing, from 1.
    odds: Vec<f64>,
}

impl Choice {
    fn expect(&self, after: &[f64]) -> f64 {
        let terms = self.odds.iter().zip(&after[1..]);
        terms.map(|(odds, value)| odds * value).sum()
    }
}

impl Layer {
    /// None left: whatever is missing is missed.
    fn at_the_end(source_symbols: u8) -> Self {
        let states = usize::from(source_symbols) + 1;
        let mut missed = vec![1.0; states];
        missed[0] = 0.0;
        Self {
            repair: vec![0; states],
            miss: missed.clone(),
            symbols: vec![0.0; states],
            value: missed,
        }
    }
}

/// Solves `count` layers, the last one first, for blocks of `source_symbols`. `choices` says which numbers of repair symbols may be
/// sent for each number missing, ascending; `charge` what sending them costs, in misses. From [`LAYERS_MAX`] on every layer
/// does what that one does.
pub(crate) fn solve_layers(
    source_symbols: u8,
    loss: f64,
    count: u16,
    choices: impl Fn(u8) -> Vec<u16>,
    charge: impl Fn(u8, u16) -> f64,
) -> Vec<Layer> {
    let end = Layer::at_the_end(source_symbols);
    let mut layers = vec![end; usize::from(count) + 1];
    // A state leads to none with more missing: state by state, the odds serve all layers.
    for missing in 1..=source_symbols {
        let choices: Vec<Choice> = choices(missing)
            .into_iter()
            .map(|repair| {
                let mut odds = vec![0.0; usize::from(missing)];
                chance::source_still_missing(missing, repair, 1.0 - loss, |still, chance| {
                    odds[usize::from(still) - 1] = chance;
                });
                Choice {
                    repair,
                    charge: charge(missing, repair),
                    odds,
                }
            })
            .collect();
        let at = usize::from(missing);
        let mut chosen = 0;
        for left in 1..layers.len() {
            let (before, now) = layers.split_at_mut(left);
            let (after, now) = (&before[left - 1], &mut now[0]);
            if left <= usize::from(LAYERS_MAX) {
                let mut least = f64::INFINITY;
                for (index, choice) in choices.iter().enumerate() {
                    let value = choice.charge + choice.expect(&after.value);
                    if value < least {
                        (least, chosen) = (value, index);
                    }
                }
            }
            let choice = &choices[chosen];
            now.value[at] = choice.charge + choice.expect(&after.value);
            now.miss[at] = choice.expect(&after.miss);
            now.symbols[at] =
                f64::from(u16::from(missing) + choice.repair) + choice.expect(&after.symbols);
            now.repair[at] = choice.repair;
        }
    }
    layers.remove(0);
    layers
}

/// The recursion as published: its numbers of repair symbols, and its price of them alone.
pub(crate) fn hairpin_layers(
    source_symbols: u8,
    loss: f64,
    count: u16,
    price: ParityPrice,
) -> Vec<Layer> {
    let a_symbol = f64::from(price.misses()) / f64::from(source_symbols);
    solve_layers(
        source_symbols,
        loss,
        count,
        published_choices,
        |_, repair| a_symbol * f64::from(repair),
    )
}

/// 0, 0.05 .. 0.95, 1, 2 .. 5 times the source symbols missing, in whole symbols; no flight is above what a round can send.
fn published_choices(missing: u8) -> Vec<u16> {
    let parts = (0..20).map(|part| f64::from(part) * 0.05);
    let shares = parts.chain((1..=5).map(f64::from));
    let most = FLIGHT_MAX - u16::from(missing);
    let symbols = shares.map(|share| libm::rint(share * f64::from(missing)) as u16);
    let mut choices: Vec<u16> = symbols.filter(|repair| *repair <= most).collect();
    choices.dedup();
    choices
}

/// The tables of one k.
pub(crate) fn hairpin_table(source_symbols: u8, price: ParityPrice) -> Table {
    let (mut repair, mut symbols) = (Vec::new(), Vec::new());
    for percent in 0..LOSSES {
        for layer in hairpin_layers(source_symbols, loss_of(percent), LAYERS_MAX, price) {
            let whole = usize::from(source_symbols);
            repair.extend(layer.repair[1..].iter().map(|repair| *repair as u8));
            symbols.push(layer.symbols[whole] as f32);
        }
    }
    Table {
        repair: repair.into(),
        symbols: symbols.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: ParityPrice = ParityPrice::PUBLISHED;

    /// The value from the definition: every pattern of losses of every flight, one by one.
    fn value_by_patterns(source_symbols: u8, loss: f64, left: u16, missing: u8) -> f64 {
        if missing == 0 || left == 0 {
            return f64::from(u8::from(missing > 0));
        }
        let price = 1e-4_f32;
        let value = |repair: u16| {
            let sent = u32::from(missing) + u32::from(repair);
            let charge = f64::from(price) * f64::from(repair) / f64::from(source_symbols);
            let after = (0_u32..1 << sent).map(|lost| {
                let count = lost.count_ones();
                let chance = loss.powi(count as i32) * (1.0 - loss).powi((sent - count) as i32);
                let data_lost = (lost & ((1 << missing) - 1)).count_ones();
                let next = if count <= u32::from(repair) {
                    0
                } else {
                    data_lost as u8
                };
                chance * value_by_patterns(source_symbols, loss, left - 1, next)
            });
            charge + after.sum::<f64>()
        };
        let grid = published_choices(missing);
        grid.into_iter().map(value).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn values_are_those_of_all_patterns_of_losses() {
        for (source_symbols, loss, layers) in [(1, 0.3, 3), (2, 0.1, 2), (2, 0.4, 2), (3, 0.05, 1)]
        {
            let solved = hairpin_layers(source_symbols, loss, layers, PRICE);
            for left in 1..=layers {
                for missing in 1..=source_symbols {
                    let expected = value_by_patterns(source_symbols, loss, left, missing);
                    let found = solved[usize::from(left) - 1].value[usize::from(missing)];
                    assert!(
                        (found - expected).abs() < 1e-12,
                        "k {source_symbols}, {loss}, {left} left, {missing} missing: {found}, by patterns {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn numbers_of_repair_symbols_are_those_published() {
        assert_eq!(published_choices(1), [0, 1, 2, 3, 4, 5]);
        // 0.25 x 2 is a half: to even. 0.75 x 2 is one and a half: to even as well.
        assert_eq!(published_choices(2), [0, 1, 2, 4, 6, 8, 10]);
        assert_eq!(published_choices(20).len(), 25);
        assert_eq!(
            published_choices(64).last(),
            Some(&128),
            "3 x 64 + 64 is above 255"
        );
    }

    /// Overheads of this state, when all numbers of symbols may be sent, all symbols are paid for and the least price is set
    /// that meets 0.1 %, computed on their own beforehand: k = 8.
    #[test]
    fn what_the_state_costs() {
        for (loss, rounds, percent) in [
            (0.1, 2, 23.9),
            (0.2, 2, 52.3),
            (0.2, 3, 33.8),
            (0.3, 2, 84.7),
            (0.3, 3, 61.1),
        ] {
            let at_price = |symbols_a_miss: f64| {
                let any = |missing| (0..=5 * u16::from(missing)).collect();
                let charge =
                    |missing, repair| f64::from(u16::from(missing) + repair) / symbols_a_miss;
                let layers = solve_layers(8, loss, rounds, any, charge);
                let whole = &layers[usize::from(rounds) - 1];
                (whole.symbols[8], whole.miss[8])
            };
            let (mut low, mut high) = (1.0, 1e6);
            for _ in 0..40 {
                let middle = libm::sqrt(low * high);
                if at_price(middle).1 <= 1e-3 {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            let overhead = (at_price(high).0 / 8.0 - 1.0) * 100.0;
            assert!(
                (overhead - percent).abs() < 0.051,
                "{loss}, {rounds} rounds: {overhead}, expected {percent}"
            );
        }
    }

    #[test]
    fn more_layers_than_published_do_what_the_first_of_them_does() {
        let solved = hairpin_layers(4, 0.3, 40, PRICE);
        let (last, further) = (&solved[14], &solved[39]);
        assert_eq!(last.repair, further.repair);
        assert!(further.miss[4] < last.miss[4]);
    }
}
