//! Systematic Cauchy erasure code over GF(2^8): any `k` symbols of a block rebuild its `k` source symbols.
//!
//! A message is cut into `k` source symbols of equal length (1 to [`SOURCE_SYMBOLS_MAX`]). Out of them any of
//! [`REPAIR_SYMBOLS_MAX`] repair symbols can be made, each on its own and in any round: a repair symbol does not depend
//! on how many others exist. Symbols are numbered by their ESI: 0 to k-1 are the source symbols, k to k+191 the repair
//! symbols 0 to 191.
//!
//! In: the bytes of a block.  Out: repair symbols, or the missing source symbols. No allocation, no state, no panic on
//! any input.
//!
//! # The code, byte for byte
//!
//! A byte is an element of GF(2^8) with the field polynomial x^8 + x^4 + x^3 + x + 1 (0x11B, the field of AES); bit `i`
//! is the coefficient of x^i, and `+` is exclusive or. With the points
//!
//! - y(j) = j for source symbol j in 0..64,
//! - x(i) = 64 + i (an ordinary sum) for repair symbol i in 0..192,
//!
//! byte `b` of repair symbol `i` is the sum over the sources `j` of `m(i, j) * source(j)[b]`, where
//!
//! ```text
//!              x(i) * (x(0) + y(j))
//! m(i, j)  =  ----------------------                   x(0) = 64
//!              x(0) * (x(i) + y(j))
//! ```
//!
//! That is the Cauchy matrix 1 / (x(i) + y(j)), whose columns are scaled by (x(0) + y(j)) so that row 0 is all ones
//! (repair symbol 0 is the exclusive or of the sources), and whose rows are then scaled by x(i) / x(0) so that column 0
//! is all ones (with k = 1 every repair symbol is a copy). No point occurs twice, so every square submatrix can be
//! inverted, and scaling by non-zero factors keeps that: the code is maximum distance separable.
//!
//! A source symbol that is shorter than the others (the last one of a block) counts as padded with zeros.
//!
//! # Example
//!
//! ```
//! use punctual_erasure::{rebuild, repair_symbol};
//!
//! let mut block = *b"four score and 7"; // k = 4 symbols of 4 bytes
//! let mut repair = [0; 4];
//! repair_symbol(&block, 5, &mut repair)?;
//!
//! block[8..12].fill(0); // source symbol 2 is lost
//! rebuild(&mut block, 4, 0b1011, &mut [(5, &mut repair)])?;
//! assert_eq!(&block, b"four score and 7");
//! # Ok::<(), punctual_erasure::CodeError>(())
//! ```
//!
//! # Source
//!
//! J. Bloemer et al., "An XOR-based erasure-resilient coding scheme", ICSI TR-95-048 (1995), for Cauchy matrices as
//! erasure codes; the inverse in closed form is Cauchy's (1841).

#![no_std]

#[cfg(any(feature = "std", test))]
extern crate std;

mod encode;
mod error;
mod field;
mod kernel;
mod matrix;
mod rebuild;

pub use encode::{repair_symbol, repair_symbols};
pub use error::CodeError;
pub use rebuild::rebuild;

/// The most source symbols that a block may have.
pub const SOURCE_SYMBOLS_MAX: usize = 64;

/// How many repair symbols every block has; their numbers are 0 to 191.
pub const REPAIR_SYMBOLS_MAX: usize = 192;

/// The name of the code path that this process uses: `gfni512`, `gfni256`, `avx2`, `ssse3`, `neon`, `simd128` or
/// `scalar`.
///
/// For logs and reports; all paths yield the same bytes. Chosen at the first call into this crate and kept from then on.
#[must_use]
pub fn kernel_name() -> &'static str {
    kernel::Kernel::get().name()
}
