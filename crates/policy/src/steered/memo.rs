//! What was reckoned before: a table of bounded size that is built on demand, for what has too many axes to be built ahead.
//!
//! What is reckoned depends on the key alone, so it is the same whether it was reckoned before or not, and two threads that reckon the same write the same.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Rows, and how many results share one: a new one is the first of its row, and the last is forgotten.
const ROWS: usize = 1 << ROW_BITS;
const ROW_BITS: u32 = 11;
const IN_A_ROW: usize = 4;
/// Odd, so that keys stay apart (the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Results by keys of so many bits, each with the part of its key that its row does not say in one word. 64 KB.
pub(super) struct Memo<const KEY_BITS: u32> {
    rows: [[AtomicU64; IN_A_ROW]; ROWS],
}

impl<const KEY_BITS: u32> Memo<KEY_BITS> {
    const TAG_BITS: u32 = KEY_BITS - ROW_BITS;
    /// Bits of a result.
    const BITS: u32 = u64::BITS - Self::TAG_BITS;

    pub(super) const fn new() -> Self {
        Self {
            rows: [const { [const { AtomicU64::new(0) }; IN_A_ROW] }; ROWS],
        }
    }

    /// What is reckoned of this key: anything of so many bits but 0. O(1) if it was before.
    pub(super) fn get(&self, key: u64, reckon: impl FnOnce() -> u64) -> u64 {
        debug_assert!(key >> KEY_BITS == 0, "{key:#x}");
        let spread = key.wrapping_mul(SPREAD) & ((1 << KEY_BITS) - 1);
        let tag = spread & ((1 << Self::TAG_BITS) - 1);
        let Some(row) = self.rows.get((spread >> Self::TAG_BITS) as usize) else {
            return reckon();
        };
        let known = row.iter().map(|place| place.load(Relaxed));
        // What is 0 was never written.
        let mut same = known.filter(|known| *known != 0 && known >> Self::BITS == tag);
        if let Some(known) = same.next() {
            return known & ((1 << Self::BITS) - 1);
        }
        let result = reckon();
        debug_assert!(result != 0 && result >> Self::BITS == 0, "{result:#x}");
        // Whoever else writes here meanwhile: a word is a whole result, and only to be found again may be lost.
        let mut moved = tag << Self::BITS | result;
        for place in row {
            moved = place.swap(moved, Relaxed);
        }
        result
    }
}

/// A key of axes, each with how many bits it has.
pub(super) fn key(axes: &[(u64, u32)]) -> u64 {
    axes.iter().fold(0, |key, (axis, bits)| {
        debug_assert!(axis >> bits == 0, "{axis} of {bits} bits");
        key << bits | axis
    })
}

/// One of the two points around a share, of so many from 0 to 1 and one more; of all draws, so many take the upper as makes it right on average.
pub(super) fn point_of_share(share: f32, points: u32, draw: u32) -> u32 {
    let drawn = draw as f32 / (u32::MAX as f32 + 1.0);
    ((share.clamp(0.0, 1.0) * points as f32 + drawn) as u32).min(points)
}

/// Points of a key's axis, on a logarithmic grid.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    /// The bits of the first, as a float without the mantissa bits that are dropped.
    first: u32,
    dropped: u32,
    /// How many points there are.
    points: u32,
}

impl Axis {
    /// From this logarithm to base 2 on, so many points an octave (a power of two), which have numbers of so many bits.
    pub(super) const fn new(first_log2: i32, an_octave: u32, bits: u32) -> Self {
        let dropped = 23 - an_octave.ilog2();
        Self {
            first: ((127 + first_log2) as u32) << (23 - dropped),
            dropped,
            points: 1 << bits,
        }
    }

    /// One of the two points around a value; of all draws, so many take the upper as makes the value right on average. The first for what is below, or no
    /// number.
    pub(super) fn point(self, value: f32, draw: u32) -> u32 {
        if value.is_nan() || value <= 0.0 {
            return 0;
        }
        // Between two points, the bits of a positive float are linear in it.
        let upper = value.to_bits().saturating_add(draw >> (32 - self.dropped)) >> self.dropped;
        upper.saturating_sub(self.first).min(self.points - 1)
    }

    /// The value of a point.
    pub(super) fn value(self, point: u32) -> f32 {
        f32::from_bits((self.first + point) << self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_right_on_average() {
        let axis = Axis::new(-15, 16, 9);
        for axis in [axis, Axis::new(-7, 8, 6)] {
            for wanted in [0.013_f32, 0.2, 0.77] {
                let draws = (0..1000).map(|i: u32| i.wrapping_mul(0x9e37_79b9));
                let mean = draws
                    .map(|draw| axis.value(axis.point(wanted, draw)))
                    .sum::<f32>()
                    / 1000.0;
                assert!((mean / wanted - 1.0).abs() < 2e-3, "{wanted} {mean}");
            }
        }
        for broken in [f32::NAN, -1.0, 0.0, 1e-30] {
            assert_eq!(axis.point(broken, u32::MAX), 0);
        }
        assert_eq!(axis.point(f32::INFINITY, 0), 511);
    }

    /// Keys that share a row do not get each other's results, and what is not known any more is reckoned again.
    #[test]
    fn a_row_tells_keys_apart() {
        let memo = Memo::<20>::new();
        let mut reckoned = 0;
        for round in 0..3 {
            for key in 0..20_000 {
                let result = memo.get(key, || {
                    reckoned += u32::from(round > 0);
                    key * 3 + 1
                });
                assert_eq!(result, key * 3 + 1);
            }
        }
        assert!(reckoned > 0, "8,192 are kept");
        let again = memo.get(19_999, || 7);
        assert_eq!(again, 19_999 * 3 + 1, "the newest are known");
    }
}
