//! The loop that all vector kernels share.
//!
//! The outputs are cut into tiles of a few vectors. The sums of a tile, up to [`ROWS_MAX`] rows of it, stay in registers
//! while all sources pass by, so that each source byte is read once for up to four rows and each output byte is
//! written once. What is left at the end is less than a vector and goes through partial loads and stores.
//!
//! Everything here is inlined into a function that switches the CPU features on (`run` in `avx2.rs` and so on), which is
//! why all of it is `inline(always)` and `unsafe`: called from elsewhere it would run instructions that the CPU may lack.

use super::{Pass, ROWS_MAX, Start};
use crate::matrix::Row;

/// The longest vector of all kernels, in bytes.
const BYTES_MAX: usize = 64;

/// A vector of field elements.
///
/// # Safety
///
/// Of all methods: the CPU has the features of the kernel that implements them, and pointers are good for as many bytes
/// as the method says, without any alignment.
pub(super) trait Lanes: Copy {
    /// Bytes in a vector, at most 64.
    const BYTES: usize;
    /// How many sums fit into registers, next to what a step needs besides.
    const SUMS: usize;
    /// A coefficient, made ready to multiply vectors by it.
    type Factor: Copy;

    /// All zeros.
    unsafe fn zero() -> Self;
    /// The `BYTES` bytes at `from`.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes `BYTES` bytes to `to`.
    unsafe fn store(self, to: *mut u8);
    /// The sum of two vectors: exclusive or.
    unsafe fn add(self, other: Self) -> Self;
    /// Makes a coefficient ready.
    unsafe fn factor(coefficient: u8) -> Self::Factor;
    /// The product of each byte and the coefficient.
    unsafe fn mul(self, factor: Self::Factor) -> Self;

    /// The `count` bytes at `from`, which is less than `BYTES`, and zeros behind them.
    #[inline(always)]
    unsafe fn load_partial(from: *const u8, count: usize) -> Self {
        let mut bytes = [0; BYTES_MAX];
        // SAFETY: `count` bytes are readable by contract; the buffer holds the longest vector.
        unsafe {
            core::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), count);
            Self::load(bytes.as_ptr())
        }
    }

    /// Writes the first `count` bytes, less than `BYTES`, to `to`.
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut u8, count: usize) {
        let mut bytes = [0; BYTES_MAX];
        // SAFETY: `count` bytes are writable by contract; the buffer holds the longest vector.
        unsafe {
            self.store(bytes.as_mut_ptr());
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, count);
        }
    }
}

/// Does the work of `pass`.
///
/// # Safety
///
/// The CPU has the features of `L`, and the shape of `pass` was checked.
#[inline(always)]
pub(super) unsafe fn run<L: Lanes>(pass: &mut Pass<'_, '_>) {
    // SAFETY: passed on to the caller.
    unsafe {
        match *pass.rows {
            [a] if a[..pass.sources.len()].iter().all(|&c| c == 1) => {
                run_rows::<L, 1, true>(pass, [a]);
            }
            [a] => run_rows::<L, 1, false>(pass, [a]),
            [a, b] => run_rows::<L, 2, false>(pass, [a, b]),
            [a, b, c] => run_rows::<L, 3, false>(pass, [a, b, c]),
            [a, b, c, d] => run_rows::<L, 4, false>(pass, [a, b, c, d]),
            _ => {}
        }
    }
}

/// As [`run`], for `R` rows; `ONES` promises that all coefficients are one, so that there is nothing to multiply.
#[inline(always)]
unsafe fn run_rows<L: Lanes, const R: usize, const ONES: bool>(
    pass: &mut Pass<'_, '_>,
    rows: [&Row; R],
) {
    const { assert!(R <= ROWS_MAX && L::BYTES <= BYTES_MAX) };
    let length = pass.outs[0].len();
    let mut outs = [core::ptr::null_mut(); R];
    for (pointer, out) in outs.iter_mut().zip(pass.outs.iter_mut()) {
        *pointer = out.as_mut_ptr();
    }
    let tile = Tile::<R> {
        rows,
        sources: pass.sources,
        from: pass.from,
        outs,
        start: pass.start,
    };
    let mut at = 0;
    // SAFETY: the CPU features by contract. A tile of U vectors at `at` ends at or before `length`, which is the length
    // of every output, and every source reaches to `from + length`.
    unsafe {
        if 4 * R <= L::SUMS {
            while length - at >= 4 * L::BYTES {
                tile.whole::<L, 4, ONES>(at);
                at += 4 * L::BYTES;
            }
        }
        if 2 * R <= L::SUMS {
            while length - at >= 2 * L::BYTES {
                tile.whole::<L, 2, ONES>(at);
                at += 2 * L::BYTES;
            }
        }
        while length - at >= L::BYTES {
            tile.whole::<L, 1, ONES>(at);
            at += L::BYTES;
        }
        if at < length {
            tile.partial::<L, ONES>(at, length - at);
        }
    }
}

/// A [`Pass`] with the outputs as pointers, to be worked off tile by tile.
struct Tile<'a, const R: usize> {
    rows: [&'a Row; R],
    sources: &'a [&'a [u8]],
    from: usize,
    outs: [*mut u8; R],
    start: Start,
}

#[expect(
    clippy::needless_range_loop,
    reason = "the indices number registers, rows and vectors alike in every array"
)]
impl<const R: usize> Tile<'_, R> {
    /// The sums of `U` whole vectors, from byte `at` of the outputs.
    ///
    /// # Safety
    ///
    /// The CPU has the features of `L`; `U` vectors at `at` lie inside every output, and at `from + at` inside every
    /// source; a row has a coefficient for each source.
    #[inline(always)]
    unsafe fn whole<L: Lanes, const U: usize, const ONES: bool>(&self, at: usize) {
        // SAFETY: by contract.
        unsafe {
            let mut sums = [[L::zero(); U]; R];
            if self.start == Start::Output {
                for r in 0..R {
                    for u in 0..U {
                        sums[r][u] = L::load(self.outs[r].add(at + u * L::BYTES));
                    }
                }
            }
            for (j, source) in self.sources.iter().enumerate() {
                let bytes = source.as_ptr().add(self.from + at);
                let mut vectors = [L::zero(); U];
                for u in 0..U {
                    vectors[u] = L::load(bytes.add(u * L::BYTES));
                }
                for r in 0..R {
                    if ONES {
                        for u in 0..U {
                            sums[r][u] = sums[r][u].add(vectors[u]);
                        }
                    } else {
                        let factor = L::factor(*self.rows[r].get_unchecked(j));
                        for u in 0..U {
                            sums[r][u] = sums[r][u].add(vectors[u].mul(factor));
                        }
                    }
                }
            }
            for r in 0..R {
                for u in 0..U {
                    sums[r][u].store(self.outs[r].add(at + u * L::BYTES));
                }
            }
        }
    }

    /// The sums of the last `count` bytes, less than a vector, from byte `at` of the outputs.
    ///
    /// # Safety
    ///
    /// As of [`whole`](Self::whole), with `count` bytes in place of `U` vectors.
    #[inline(always)]
    unsafe fn partial<L: Lanes, const ONES: bool>(&self, at: usize, count: usize) {
        // SAFETY: by contract.
        unsafe {
            let mut sums = [L::zero(); R];
            if self.start == Start::Output {
                for r in 0..R {
                    sums[r] = L::load_partial(self.outs[r].add(at), count);
                }
            }
            for (j, source) in self.sources.iter().enumerate() {
                let vector = L::load_partial(source.as_ptr().add(self.from + at), count);
                for r in 0..R {
                    let product = if ONES {
                        vector
                    } else {
                        vector.mul(L::factor(*self.rows[r].get_unchecked(j)))
                    };
                    sums[r] = sums[r].add(product);
                }
            }
            for r in 0..R {
                sums[r].store_partial(self.outs[r].add(at), count);
            }
        }
    }
}
