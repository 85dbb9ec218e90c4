//! Vectors of 16 bytes on AArch64: look-ups by nibbles.

use core::arch::aarch64::*;

use super::Pass;
use super::lanes::{self, Lanes};
use super::nibbles::{NIBBLES, Nibbles};

/// Does the work of `pass`.
///
/// # Safety
///
/// The CPU has the features named here, and the shape of `pass` was checked.
#[target_feature(enable = "neon")]
pub(super) unsafe fn run(pass: &mut Pass<'_, '_>) {
    // SAFETY: passed on to the caller; the features of `Vector` are those of this function.
    unsafe { lanes::run::<Vector>(pass) }
}

#[derive(Clone, Copy)]
struct Vector(uint8x16_t);

// In all methods, SAFETY: the features and the pointers are what the contract of `Lanes` asks for.
impl Lanes for Vector {
    const BYTES: usize = 16;
    // Of 32 registers; a step needs both nibbles of each source vector, two tables and the mask.
    const SUMS: usize = 16;
    type Factor = &'static Nibbles;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: by contract.
        Self(unsafe { vdupq_n_u8(0) })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by contract.
        Self(unsafe { vld1q_u8(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: by contract.
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: by contract.
        Self(unsafe { veorq_u8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> &'static Nibbles {
        &NIBBLES[usize::from(coefficient)]
    }

    #[inline(always)]
    unsafe fn mul(self, factor: &'static Nibbles) -> Self {
        // SAFETY: by contract; a table has 16 bytes.
        unsafe {
            let low = vandq_u8(self.0, vdupq_n_u8(0x0F));
            let high = vshrq_n_u8::<4>(self.0);
            let low_table = vld1q_u8(factor.low.as_ptr());
            let high_table = vld1q_u8(factor.high.as_ptr());
            Self(veorq_u8(
                vqtbl1q_u8(low_table, low),
                vqtbl1q_u8(high_table, high),
            ))
        }
    }
}
