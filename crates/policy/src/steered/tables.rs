//! What is best at each price: solved for one loss, packed.
//!
//! At a fixed price the best action depends on the loss, the rounds left and the deficit alone, not on k or on the rounds that
//! were planned: one table serves blocks of all sizes and all miss targets. All of them take 3.3 MB; one is built when a
//! path's loss first comes near it.

use alloc::boxed::Box;

use once_cell::race::OnceBox;

use super::grid::{self, LOSSES};
#[cfg(feature = "solve")]
use super::grid::{PLACES, PRICES, ROUNDS};

/// Entries of one loss.
#[cfg(feature = "solve")]
pub(crate) const ENTRIES: usize = PRICES * ROUNDS * PLACES;

/// What was solved for one loss; each by price, then by rounds left, then by place of the deficit ([`super::grid::row`]). Numbers are the upper
/// halves of `f32`s, good to 0.4 %.
pub(crate) struct PriceTable {
    /// The loss that it is solved for.
    pub(crate) loss: f64,
    /// Symbols to send.
    pub(crate) symbols: Box<[u8]>,
    /// Probability of a miss.
    pub(crate) miss: Box<[u16]>,
    /// Expected symbols, misses at their price included.
    pub(crate) value: Box<[u16]>,
}

impl PriceTable {
    /// Symbols to send in a row of the grid with this deficit.
    pub(crate) fn symbols(&self, row: usize, deficit: u16) -> u16 {
        let (place, more) = grid::place(deficit);
        let symbols = self.symbols.get(row + place).copied().map_or(0, u16::from);
        symbols.saturating_sub(more)
    }

    /// Probability of a miss.
    pub(crate) fn miss(&self, row: usize, deficit: u16) -> f64 {
        at(&self.miss, row, deficit)
    }

    /// Expected symbols and misses.
    pub(crate) fn value(&self, row: usize, deficit: u16) -> f64 {
        at(&self.value, row, deficit)
    }
}

/// The number of this deficit; between two places what is between theirs.
fn at(halves: &[u16], row: usize, deficit: u16) -> f64 {
    let number = |place| f64::from(halves.get(row + place).map_or(0.0, |half| whole(*half)));
    let (place, more) = grid::place(deficit);
    if more == 0 {
        return number(place);
    }
    let gap = grid::deficit_at(place) - grid::deficit_at(place - 1);
    number(place) + f64::from(more) / gap as f64 * (number(place - 1) - number(place))
}

/// The number of which this is the upper half.
pub(crate) fn whole(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// Its upper half, rounded: good to 0.4 %.
pub(crate) fn upper_half(value: f64) -> u16 {
    ((value as f32).to_bits().saturating_add(1 << 15) >> 16) as u16
}

/// The tables of all losses that any path of this process has come near. They are constants of nature, so there is one shelf.
pub(crate) struct PriceShelf {
    tables: [OnceBox<PriceTable>; LOSSES],
    /// Bits of the losses whose tables look-ups have missed.
    wanted: core::sync::atomic::AtomicU64,
}

/// See [`PriceShelf`].
pub(crate) static SHELF: PriceShelf = PriceShelf {
    tables: [const { OnceBox::new() }; LOSSES],
    wanted: core::sync::atomic::AtomicU64::new(0),
};

impl PriceShelf {
    /// The table of a loss, if it is built; noted as wanted if not.
    pub(crate) fn get(&'static self, loss_index: usize) -> Option<&'static PriceTable> {
        use core::sync::atomic::Ordering::Relaxed;
        let table = self.tables.get(loss_index)?.get();
        if table.is_none() {
            let bit = 1 << loss_index;
            // Read first: a shared cache line is read more cheaply than written.
            if self.wanted.load(Relaxed) & bit == 0 {
                self.wanted.fetch_or(bit, Relaxed);
            }
        }
        table
    }

    /// Whether look-ups have missed tables that are not built yet.
    pub(crate) fn is_wanting(&self) -> bool {
        self.wanted.load(core::sync::atomic::Ordering::Relaxed) != 0
    }
}

#[cfg(feature = "solve")]
impl PriceShelf {
    /// Builds the table of a loss; `true` when it is new.
    pub(crate) fn build(&self, loss_index: usize) -> bool {
        let Some(place) = self.tables.get(loss_index) else {
            return false;
        };
        let is_new = place.get().is_none() && {
            let made = crate::solve::price_table(grid::loss_at(loss_index));
            // Another thread may have been faster; its table is the same.
            place.set(Box::new(made)).is_ok()
        };
        self.wanted
            .fetch_and(!(1 << loss_index), core::sync::atomic::Ordering::Relaxed);
        is_new
    }

    /// Builds what look-ups have missed; returns how many tables are new.
    pub(crate) fn build_wanted(&self) -> usize {
        let wanted = self.wanted.load(core::sync::atomic::Ordering::Relaxed);
        (0..LOSSES)
            .filter(|index| wanted >> index & 1 == 1 && self.build(*index))
            .count()
    }

    /// Tables built, and their bytes.
    pub(crate) fn stored(&self) -> (usize, usize) {
        let tables = self.tables.iter().filter(|place| place.get().is_some());
        let count = tables.count();
        let each = size_of::<PriceTable>() + ENTRIES * 5;
        (count, size_of::<Self>() + count * each)
    }
}
