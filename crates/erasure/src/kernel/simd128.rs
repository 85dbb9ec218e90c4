//! Vectors of 16 bytes in WebAssembly: look-ups by nibbles.

use core::arch::wasm32::*;

use super::Pass;
use super::lanes::{self, Lanes};
use super::nibbles::{NIBBLES, Nibbles};

/// Does the work of `pass`.
///
/// # Safety
///
/// The engine has the feature named here, and the shape of `pass` was checked.
#[target_feature(enable = "simd128")]
pub(super) unsafe fn run(pass: &mut Pass<'_, '_>) {
    // SAFETY: passed on to the caller; the feature of `Vector` is that of this function.
    unsafe { lanes::run::<Vector>(pass) }
}

#[derive(Clone, Copy)]
struct Vector(v128);

// In all methods, SAFETY: the pointers are what the contract of `Lanes` asks for. The module is compiled only where
// the whole program has the feature, which makes what does not touch memory safe.
impl Lanes for Vector {
    const BYTES: usize = 16;
    // What the engine has, nobody knows; most run on x86-64 with 16 registers.
    const SUMS: usize = 8;
    type Factor = &'static Nibbles;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self(u8x16_splat(0))
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by contract.
        Self(unsafe { v128_load(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: by contract.
        unsafe { v128_store(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(v128_xor(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> &'static Nibbles {
        &NIBBLES[usize::from(coefficient)]
    }

    #[inline(always)]
    unsafe fn mul(self, factor: &'static Nibbles) -> Self {
        let low = v128_and(self.0, u8x16_splat(0x0F));
        let high = u8x16_shr(self.0, 4);
        // SAFETY: a table has 16 bytes.
        let low_table = unsafe { v128_load(factor.low.as_ptr().cast()) };
        // SAFETY: a table has 16 bytes.
        let high_table = unsafe { v128_load(factor.high.as_ptr().cast()) };
        Self(v128_xor(
            u8x16_swizzle(low_table, low),
            u8x16_swizzle(high_table, high),
        ))
    }
}
