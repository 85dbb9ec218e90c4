//! Arithmetic in GF(2^8) with the field polynomial 0x11B.
//!
//! For the few coefficients of a matrix; whole symbols go through `kernel/`. The polynomial is that of AES, because the
//! multiply instruction of GFNI knows no other.

/// The field polynomial without its highest term.
const POLYNOMIAL: u8 = 0x1B;

/// x + 1 generates the multiplicative group (x alone does not, its order is 51).
const GENERATOR: u8 = 3;

/// Order of the multiplicative group; logarithms count modulo this.
pub(crate) const ORDER: u16 = 255;

/// The product of two elements, without tables and without branches.
///
/// Written so that a loop of it over bytes is turned into vector code on any CPU.
pub(crate) const fn mul(a: u8, b: u8) -> u8 {
    // Horner's rule over the bits of `b`, the highest first: product = product * x + a * bit.
    let mut product = 0u8;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        let carry = 0u8.wrapping_sub(product >> 7);
        product = (product << 1) ^ (carry & POLYNOMIAL);
        product ^= a & 0u8.wrapping_sub((b >> bit) & 1);
    }
    product
}

/// Powers of the generator, three periods long: a sum of three logarithms needs no reduction.
static EXP: [u8; 3 * ORDER as usize] = exp_table();

/// Logarithms to the base of the generator. There is none of zero: entry 0 is never asked for.
static LOG: [u8; 256] = log_table();

/// The discrete logarithm of a non-zero element, 0 to 254.
pub(crate) fn log(element: u8) -> u16 {
    debug_assert!(element != 0, "zero has no logarithm");
    u16::from(LOG[usize::from(element)])
}

/// The element whose logarithm is `logarithm` (below 765).
pub(crate) fn exp(logarithm: u16) -> u8 {
    EXP[usize::from(logarithm)]
}

const fn exp_table() -> [u8; 3 * ORDER as usize] {
    let mut table = [1; 3 * ORDER as usize];
    let mut i = 1;
    while i < table.len() {
        table[i] = mul(table[i - 1], GENERATOR);
        i += 1;
    }
    table
}

const fn log_table() -> [u8; 256] {
    let powers = exp_table();
    let mut table = [0; 256];
    let mut i = 0;
    while i < ORDER as usize {
        table[powers[i] as usize] = i as u8;
        i += 1;
    }
    table
}

/// The inverse of every element, as a value for constants (0 for 0).
pub(crate) const fn inverse_table() -> [u8; 256] {
    let powers = exp_table();
    let mut table = [0; 256];
    let mut i = 0;
    while i < ORDER as usize {
        table[powers[i] as usize] = powers[ORDER as usize - i];
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked example of FIPS 197, section 4.2: {57} * {83} = {c1}, {57} * {13} = {fe}.
    #[test]
    fn products_are_those_of_aes() {
        assert_eq!(mul(0x57, 0x83), 0xC1);
        assert_eq!(mul(0x57, 0x13), 0xFE);
    }

    #[test]
    fn logarithms_and_inverses_agree_with_products() {
        let inverse = inverse_table();
        for a in 1..=255u8 {
            assert_eq!(exp(log(a)), a);
            assert_eq!(mul(a, inverse[usize::from(a)]), 1);
            for b in 1..=255u8 {
                assert_eq!(exp(log(a) + log(b)), mul(a, b));
            }
        }
    }
}
