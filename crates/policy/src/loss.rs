//! Loss probabilities cut into bins, each served by a table made for its upper end.
//!
//! Rounding to the nearest bin would promise too much: a table for 2 % meets its target at 2 %, not at 2.4 %.

use crate::limits::LOSS_MAX;

/// A way to cut the loss probability into bins. Bin 0 is a loss of exactly 0, which needs no table.
pub(crate) trait LossBins {
    /// Number of bins, bin 0 included.
    const COUNT: usize;

    /// The bin that serves `loss`: the least whose upper end is not below it, the last when there is none (or no number).
    fn bin_of(loss: f32) -> usize;

    /// Upper end of a bin: the loss that its tables are made for.
    fn upper_end(bin: usize) -> f64;
}

/// Steps of 1 % up to 50 %, as in the paper (section 5.5).
#[derive(Debug)]
pub(crate) struct Percents;

impl LossBins for Percents {
    const COUNT: usize = 51;

    fn bin_of(loss: f32) -> usize {
        if loss <= 0.0 {
            return 0;
        }
        // 0.07_f32 lies above 7 % by 3e-8 and means 7 %. The allowance of 1e-5 % covers that at every step. The least of a NaN
        // and 1 is 1. The cast rounds down.
        let bin = (f64::from(loss.min(1.0)) * 100.0 - 1e-5) as usize + 1;
        bin.min(Self::COUNT - 1)
    }

    fn upper_end(bin: usize) -> f64 {
        bin as f64 / 100.0
    }
}

/// Four bins an octave, from 2^-16 (15 in a million) to one half.
///
/// The ends are the `f32` values whose mantissa is 1, 1.25, 1.5 or 1.75: on average a factor of e^(1/5.8) apart, exactly
/// representable, and found from the bits of the number without a logarithm. A bin costs at most a quarter more loss than
/// there is, also where loss is small: with steps of 1 %, a path of 0.01 % pays ten times the redundancy.
#[derive(Debug)]
pub(crate) struct Octaves;

/// Mantissa bits dropped: 23 less the two that count the quarters of an octave.
const QUARTER_SHIFT: u32 = 21;
/// 2^-16, the upper end of bin 1, in quarters of an octave.
const FIRST_QUARTER: u32 = (127 - 16) << 2;

impl LossBins for Octaves {
    // 15 octaves of four, the 61st end being one half itself, and bin 0.
    const COUNT: usize = 62;

    fn bin_of(loss: f32) -> usize {
        if loss <= 0.0 {
            return 0;
        }
        // Positive floats sort like their bits, and a NaN sorts above them all.
        let quarters = (loss.to_bits() + ((1 << QUARTER_SHIFT) - 1)) >> QUARTER_SHIFT;
        let bin = quarters.saturating_sub(FIRST_QUARTER) as usize + 1;
        bin.min(Self::COUNT - 1)
    }

    fn upper_end(bin: usize) -> f64 {
        let Some(above_first) = bin.checked_sub(1) else {
            return 0.0;
        };
        let end = f32::from_bits((FIRST_QUARTER + above_first as u32) << QUARTER_SHIFT);
        f64::from(end).min(LOSS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<B: LossBins>() {
        for bin in 1..B::COUNT {
            let (below, end) = (B::upper_end(bin - 1), B::upper_end(bin));
            assert!(below < end);
            assert_eq!(B::bin_of(end as f32), bin, "an end belongs to its own bin");
            assert_eq!(
                B::bin_of(((below + end) / 2.0) as f32),
                bin,
                "the middle is rounded up"
            );
            assert_eq!(
                B::bin_of((below * 0.999 + end * 0.001) as f32),
                bin,
                "just above an end is rounded up"
            );
        }
        assert_eq!(B::upper_end(B::COUNT - 1), LOSS_MAX);
        for worst in [0.51, 1.0, 2.0, f32::INFINITY, f32::NAN, -f32::NAN] {
            assert_eq!(B::bin_of(worst), B::COUNT - 1, "{worst}");
        }
        for none in [0.0, -0.0, -1.0] {
            assert_eq!(B::bin_of(none), 0, "{none}");
        }
        assert_eq!(B::bin_of(f32::MIN_POSITIVE), 1);
    }

    #[test]
    fn bins_round_up() {
        check::<Percents>();
        check::<Octaves>();
    }

    #[test]
    fn fine_bins_cost_at_most_a_quarter() {
        for bin in 2..Octaves::COUNT {
            assert!(Octaves::upper_end(bin) <= 1.25 * Octaves::upper_end(bin - 1));
        }
    }
}
