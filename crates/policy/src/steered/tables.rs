//! What is best at each price: solved for one loss, packed.
//!
//! At a fixed price the best action depends on the loss, the rounds left and the deficit alone, not on k or on the rounds that
//! were planned: one table serves blocks of all sizes and all miss targets. All of them take 3.5 MB; one is built when a
//! path's loss first comes near it.

use alloc::boxed::Box;

use once_cell::race::OnceBox;

use super::grid::LOSSES;
#[cfg(feature = "solve")]
use super::grid::{DEFICITS, PRICES, ROUNDS};
use crate::limits::MISS_TARGET_MIN;

/// Entries of one loss.
#[cfg(feature = "solve")]
pub(crate) const ENTRIES: usize = PRICES * ROUNDS * DEFICITS;

/// What was solved for one loss; each by price, then by rounds left, then by deficit ([`super::grid::row`]).
pub(crate) struct PriceTable {
    /// Symbols to send.
    pub(crate) symbols: Box<[u8]>,
    /// Probability of a miss, as [`MissCode`].
    pub(crate) miss: Box<[MissCode]>,
    /// Expected symbols, misses at their price included: the upper half of an `f32`, good to 0.4 %.
    pub(crate) value: Box<[u16]>,
}

impl PriceTable {
    /// Expected symbols and misses.
    pub(crate) fn value(&self, entry: usize) -> f32 {
        let bits = self.value.get(entry).copied().unwrap_or(0);
        f32::from_bits(u32::from(bits) << 16)
    }
}

/// A probability as eighths of octaves below 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissCode(pub(crate) u8);

impl MissCode {
    #[cfg(feature = "solve")]
    pub(crate) fn of(probability: f64) -> Self {
        let eighths = libm::round(-8.0 * libm::log2(probability.max(f64::MIN_POSITIVE)));
        // The cast saturates: below 2^-31.9 nobody tells the difference.
        Self(eighths as u8)
    }

    pub(crate) fn probability(self) -> f32 {
        if self.0 == u8::MAX {
            return MISS_TARGET_MIN / 4.0;
        }
        /// 2^0, 2^(-1/8) .. 2^(-7/8).
        const EIGHTHS: [f32; 8] = [
            1.0,
            0.917_004_05,
            0.840_896_4,
            0.771_105_4,
            core::f32::consts::FRAC_1_SQRT_2,
            0.648_419_8,
            0.594_603_54,
            0.545_253_87,
        ];
        let octave = u32::from(self.0 / 8);
        EIGHTHS[usize::from(self.0 % 8)] / (1_u32 << octave) as f32
    }
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
    pub(crate) fn get(&self, loss_index: usize) -> Option<&PriceTable> {
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
            let made = crate::solve::price_table(super::grid::loss_at(loss_index));
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
        let each = size_of::<PriceTable>() + ENTRIES * 4;
        (count, size_of::<Self>() + count * each)
    }
}

#[cfg(all(test, feature = "solve"))]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_kept_to_a_twentieth() {
        for i in 0..600 {
            let probability = libm::exp2(-f64::from(i) / 20.0);
            let kept = f64::from(MissCode::of(probability).probability());
            assert!(
                (kept / probability - 1.0).abs() < 0.05,
                "{probability}: {kept}"
            );
        }
        assert!(MissCode::of(0.0).probability() < 1e-9);
    }
}
