//! Vectors of 32 bytes on x86-64 CPUs without a multiply instruction for this field: look-ups by nibbles.

use core::arch::x86_64::*;

use super::Pass;
use super::lanes::{self, Lanes};
use super::nibbles::{NIBBLES, Nibbles};

/// Does the work of `pass`.
///
/// # Safety
///
/// The CPU has the features named here, and the shape of `pass` was checked.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn run(pass: &mut Pass<'_, '_>) {
    // SAFETY: passed on to the caller; the features of `Vector` are those of this function.
    unsafe { lanes::run::<Vector>(pass) }
}

#[derive(Clone, Copy)]
struct Vector(__m256i);

// In all methods, SAFETY: the features and the pointers are what the contract of `Lanes` asks for.
impl Lanes for Vector {
    const BYTES: usize = 32;
    // Of 16 registers; a step needs both nibbles of a source vector, two tables and the mask.
    const SUMS: usize = 8;
    type Factor = &'static Nibbles;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: by contract.
        Self(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by contract.
        Self(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: by contract.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: by contract.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> &'static Nibbles {
        &NIBBLES[usize::from(coefficient)]
    }

    #[inline(always)]
    unsafe fn mul(self, factor: &'static Nibbles) -> Self {
        // SAFETY: by contract; a table has 16 bytes.
        unsafe {
            let mask = _mm256_set1_epi8(0x0F);
            let low = _mm256_and_si256(self.0, mask);
            let high = _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), mask);
            let low_table =
                _mm256_broadcastsi128_si256(_mm_loadu_si128(factor.low.as_ptr().cast()));
            let high_table =
                _mm256_broadcastsi128_si256(_mm_loadu_si128(factor.high.as_ptr().cast()));
            Self(_mm256_xor_si256(
                _mm256_shuffle_epi8(low_table, low),
                _mm256_shuffle_epi8(high_table, high),
            ))
        }
    }
}
