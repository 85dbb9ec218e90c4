//! A policy after Hairpin (NSDI 2024, "Rethinking packet loss recovery in edge-based interactive video streaming"): what the
//! others are compared with.
//!
//! As published (the paper and its optimiser's code):
//!
//! - Its state is (layers left, source symbols missing). A round sends all missing source symbols again, and b repair symbols of
//!   them; it completes the block when no more than b of all these are lost. Otherwise the next state is the number of *source*
//!   symbols still missing: repair symbols that arrived are thrown away between rounds ([`Deficit::Source`]).
//! - b maximises, by backward recursion, -(probability of a miss) - price x (expected repair symbols) / k. The price is set by
//!   hand (1e-4): there is no miss target. Of equal values the least b.
//! - b / n is one of 0, 0.05 .. 0.95, 1 .. 5, rounded to whole symbols (halves to even).
//! - Loss is rounded to the nearest percent, up to 50 %. There are at most 15 layers, and at least one.
//! - Layers are the time left over (smoothed round trip + 1 deviation), rounded down.
//!
//! Otherwise here, in its favour where it makes a difference:
//!
//! - Our receiver keeps all that arrives: repair symbols of an earlier round may complete a block that Hairpin's receiver would
//!   have to wait for. The prediction ([`crate::predict()`]) and [`crate::solve`] reckon as published.
//! - The published simulation takes one such round trip off the time left before it counts layers. At twice the round trip
//!   that leaves a single layer, and more parity at once than data; we do not take it off.
//! - The published tables have the frame sizes 5, 10 .. 55, and at most 55 symbols missing. Here k itself is the frame's size: in
//!   steps of five, a block of two symbols would pay two fifths of the price for parity. A flight ends at 255 symbols.
//! - Loss and deviation are our estimators': an upper credible bound, and the mean deviation in place of the standard one.
//! - After the deadline it sends what the others do.
//!
//! Until its table is built, the deficit goes, and in the last layer the least flight whose miss probability is below the price.

use core::fmt;

use crate::by_k::ByK;
use crate::limits::{FLIGHT_MAX, SOURCE_SYMBOLS_MAX};
use crate::{Action, Deficit, ParityPrice, Policy, Situation, chance, stopgap};

/// Most layers that the recursion has.
pub(crate) const LAYERS_MAX: u16 = 15;
/// Losses of 0..=50 %.
pub(crate) const LOSSES: usize = 51;

/// Hairpin's recursion for one price of parity.
pub struct Hairpin {
    price: ParityPrice,
    tables: ByK<Table>,
}

/// What to send of blocks of one k.
pub(crate) struct Table {
    /// Repair symbols: by loss in percent, then by layers left from 1, then by source symbols missing from 1.
    pub(crate) repair: alloc::boxed::Box<[u8]>,
    /// Expected symbols of a whole block: by loss in percent, then by layers from 1.
    pub(crate) symbols: alloc::boxed::Box<[f32]>,
}

impl Hairpin {
    /// Room for the tables of one price; none is built yet.
    #[must_use]
    pub const fn new(price: ParityPrice) -> Self {
        Self {
            price,
            tables: ByK::new(),
        }
    }

    /// The price of parity.
    #[must_use]
    pub const fn price(&self) -> ParityPrice {
        self.price
    }

    /// The k, as bits k - 1, whose tables look-ups have missed and that are not built yet.
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.tables.wanted()
    }

    fn repair(&self, source_symbols: u8, missing: u8, layers: u16, percent: usize) -> u16 {
        if percent == 0 || missing == 0 {
            return 0;
        }
        let Some(table) = self.tables.get(source_symbols) else {
            self.tables.want(source_symbols);
            let (loss, miss) = (loss_of(percent), f64::from(self.price.misses()));
            return stopgap::symbols(missing, layers, loss, miss) - u16::from(missing);
        };
        let place = row(percent, layers) * usize::from(source_symbols);
        let repair = table.repair.get(place + usize::from(missing) - 1);
        repair.copied().map_or(0, u16::from)
    }
}

#[cfg(feature = "solve")]
impl Hairpin {
    /// Builds the tables of k, beside look-ups that go on; returns how many are new, one for each loss and number of layers.
    pub fn build(&self, source_symbols: u8) -> usize {
        let make = |k| crate::solve::hairpin_table(k, self.price);
        let new = self.tables.build(source_symbols, make);
        new.map_or(0, |table| table.symbols.len())
    }

    /// Builds the tables that look-ups have missed; returns how many are new.
    pub fn build_wanted(&self) -> usize {
        self.tables.wanted_k().map(|k| self.build(k)).sum()
    }
}

impl Policy for Hairpin {
    fn name(&self) -> &'static str {
        "hairpin"
    }

    fn counts(&self) -> Deficit {
        Deficit::Source
    }

    fn decide(&self, situation: &Situation) -> Action {
        let source_symbols = situation.source_symbols.clamp(1, SOURCE_SYMBOLS_MAX);
        let missing = situation.deficit;
        if situation.rounds_left == 0 {
            return Action::burst(u16::from(missing));
        }
        let repair = self.repair(
            source_symbols,
            missing.min(source_symbols),
            layers_left(situation),
            percent_of(situation.loss),
        );
        Action::burst((u16::from(missing) + repair).min(FLIGHT_MAX))
    }

    fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32 {
        let source_symbols = source_symbols.clamp(1, SOURCE_SYMBOLS_MAX);
        let (percent, layers) = (percent_of(loss), rounds.clamp(1, LAYERS_MAX));
        let symbols = match self.tables.get(source_symbols) {
            Some(table) => table.symbols.get(row(percent, layers)).copied(),
            None => {
                let (loss, miss) = (loss_of(percent), f64::from(self.price.misses()));
                Some(stopgap::expected_symbols(source_symbols, layers, loss, miss) as f32)
            }
        };
        symbols.unwrap_or_else(|| f32::from(source_symbols))
    }
}

/// Transmissions, this one included, whose symbols can still arrive.
fn layers_left(situation: &Situation) -> u16 {
    let layer = (situation.timing.rtt).saturating_add(situation.timing.rtt_deviation);
    let layers = if layer.is_zero() {
        // No clock: reports and tests count rounds.
        u128::from(situation.rounds_left)
    } else {
        situation.timing.time_left.as_nanos() / layer.as_nanos()
    };
    layers.clamp(1, u128::from(LAYERS_MAX)) as u16
}

/// The nearest percent, as published.
fn percent_of(loss: f32) -> usize {
    let percent = libm::round(chance::loss_within_bounds(loss) * 100.0);
    (percent as usize).min(LOSSES - 1)
}

/// The loss that a percentage stands for.
pub(crate) fn loss_of(percent: usize) -> f64 {
    percent as f64 / 100.0
}

/// Where the row of a loss and a number of layers is among all of them.
fn row(percent: usize, layers: u16) -> usize {
    percent * usize::from(LAYERS_MAX) + usize::from(layers) - 1
}

impl fmt::Debug for Hairpin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hairpin")
            .field("price", &self.price)
            .field("built", &self.tables.built().count())
            .field("wanted", &self.wanted())
            .finish()
    }
}
