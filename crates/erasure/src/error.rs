//! What can be wrong with a request to this crate.

use core::fmt;

use crate::{REPAIR_SYMBOLS_MAX, SOURCE_SYMBOLS_MAX};

/// Why repair symbols were not made, or source symbols not rebuilt.
///
/// All checks come before the work: when a function returns an error it has written nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeError {
    /// The block has `count` source symbols; 1 to [`SOURCE_SYMBOLS_MAX`] are possible. Use longer symbols.
    SourceSymbols {
        /// Length of the block divided by that of a symbol, rounded up.
        count: usize,
    },
    /// There is no repair symbol `index`; they are numbered 0 to [`REPAIR_SYMBOLS_MAX`] - 1.
    RepairIndex {
        /// The first number asked for that does not exist.
        index: usize,
    },
    /// A buffer of `length` bytes does not hold a whole number of symbols (a single symbol, where one is meant).
    /// The caller's mistake.
    SymbolLength {
        /// Bytes in the buffer.
        length: usize,
        /// Bytes in a symbol; zero is not possible.
        symbol_length: usize,
    },
    /// A source symbol is marked as present that the block does not have. The caller's mistake.
    PresentMask {
        /// The bits as given.
        present: u64,
        /// How many source symbols the block has.
        source_symbols: usize,
    },
    /// Fewer repair symbols than missing source symbols. Wait for more of them.
    NotEnough {
        /// Source symbols that are missing.
        missing: usize,
        /// Repair symbols that were given.
        repairs: usize,
    },
    /// The same repair symbol was given twice. The caller's mistake.
    DuplicateRepair {
        /// Its number.
        repair: u8,
    },
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::SourceSymbols { count } => {
                write!(
                    f,
                    "a block of {count} source symbols; 1 to {SOURCE_SYMBOLS_MAX} are possible"
                )
            }
            Self::RepairIndex { index } => {
                let last = REPAIR_SYMBOLS_MAX - 1;
                write!(f, "no repair symbol {index}; they are numbered 0 to {last}")
            }
            Self::SymbolLength {
                length,
                symbol_length: 0,
            } => {
                write!(f, "symbols of 0 bytes (in a buffer of {length} bytes)")
            }
            Self::SymbolLength {
                length,
                symbol_length,
            } => {
                write!(
                    f,
                    "{length} bytes where symbols of {symbol_length} bytes belong"
                )
            }
            Self::PresentMask {
                present,
                source_symbols,
            } => {
                write!(
                    f,
                    "presence bits {present:#x} for a block of {source_symbols} source symbols"
                )
            }
            Self::NotEnough { missing, repairs } => {
                write!(
                    f,
                    "{missing} source symbols are missing and only {repairs} repair symbols are there"
                )
            }
            Self::DuplicateRepair { repair } => write!(f, "repair symbol {repair} was given twice"),
        }
    }
}

impl core::error::Error for CodeError {}
