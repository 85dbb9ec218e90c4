//! Vectors of 32 and 64 bytes on CPUs whose own multiply instruction works in this very field (Ice Lake, Zen 4 and later).

use core::arch::x86_64::*;

use super::Pass;
use super::lanes::{self, Lanes};

/// Does the work of `pass` with vectors of 32 bytes.
///
/// # Safety
///
/// The CPU has the features named here, and the shape of `pass` was checked.
#[target_feature(enable = "gfni,avx2")]
pub(super) unsafe fn run_256(pass: &mut Pass<'_, '_>) {
    // SAFETY: passed on to the caller; the features of `Vector256` are those of this function.
    unsafe { lanes::run::<Vector256>(pass) }
}

/// Does the work of `pass` with vectors of 64 bytes.
///
/// # Safety
///
/// The CPU has the features named here, and the shape of `pass` was checked.
#[target_feature(enable = "gfni,avx512f,avx512bw")]
pub(super) unsafe fn run_512(pass: &mut Pass<'_, '_>) {
    // SAFETY: passed on to the caller; the features of `Vector512` are those of this function.
    unsafe { lanes::run::<Vector512>(pass) }
}

#[derive(Clone, Copy)]
struct Vector256(__m256i);

// In all methods, SAFETY: the features and the pointers are what the contract of `Lanes` asks for.
impl Lanes for Vector256 {
    const BYTES: usize = 32;
    // Of 16 registers, the others hold the source vectors, a factor and a product.
    const SUMS: usize = 8;
    type Factor = Self;

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
    unsafe fn factor(coefficient: u8) -> Self {
        // SAFETY: by contract.
        Self(unsafe { _mm256_set1_epi8(coefficient as i8) })
    }

    #[inline(always)]
    unsafe fn mul(self, factor: Self) -> Self {
        // SAFETY: by contract.
        Self(unsafe { _mm256_gf2p8mul_epi8(self.0, factor.0) })
    }
}

#[derive(Clone, Copy)]
struct Vector512(__m512i);

// In all methods, SAFETY: the features and the pointers are what the contract of `Lanes` asks for.
impl Lanes for Vector512 {
    const BYTES: usize = 64;
    // Of 32 registers.
    const SUMS: usize = 16;
    type Factor = Self;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: by contract.
        Self(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by contract.
        Self(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: by contract.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: by contract.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self {
        // SAFETY: by contract.
        Self(unsafe { _mm512_set1_epi8(coefficient as i8) })
    }

    #[inline(always)]
    unsafe fn mul(self, factor: Self) -> Self {
        // SAFETY: by contract.
        Self(unsafe { _mm512_gf2p8mul_epi8(self.0, factor.0) })
    }

    #[inline(always)]
    unsafe fn load_partial(from: *const u8, count: usize) -> Self {
        // SAFETY: by contract; the mask leaves out what lies behind `count` bytes.
        Self(unsafe { _mm512_maskz_loadu_epi8(first(count), from.cast()) })
    }

    #[inline(always)]
    unsafe fn store_partial(self, to: *mut u8, count: usize) {
        // SAFETY: by contract; the mask leaves out what lies behind `count` bytes.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), first(count), self.0) }
    }
}

/// A mask of the first `count` bytes, which is below 64.
#[inline(always)]
fn first(count: usize) -> __mmask64 {
    (1 << count) - 1
}
