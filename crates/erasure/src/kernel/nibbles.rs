//! Products with every constant, by nibbles, for CPUs that can look up 16 bytes at once but not multiply.
//!
//! c * b = c * (low nibble of b) + c * (high nibble of b): two look-ups in tables of 16 and a sum.

use crate::field::mul;

/// The two tables of one constant.
#[repr(C, align(32))]
pub(super) struct Nibbles {
    /// Products with 0 to 15.
    pub(super) low: [u8; 16],
    /// Products with 0, 16, 32 to 240.
    pub(super) high: [u8; 16],
}

/// The tables of constant `c` at index `c` (8 KiB; a pass touches 32 bytes for each coefficient in use).
pub(super) static NIBBLES: [Nibbles; 256] = tables();

const fn tables() -> [Nibbles; 256] {
    const NONE: Nibbles = Nibbles {
        low: [0; 16],
        high: [0; 16],
    };
    let mut tables = [NONE; 256];
    let mut constant = 0;
    while constant < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            tables[constant].low[nibble] = mul(constant as u8, nibble as u8);
            tables[constant].high[nibble] = mul(constant as u8, (nibble as u8) << 4);
            nibble += 1;
        }
        constant += 1;
    }
    tables
}
