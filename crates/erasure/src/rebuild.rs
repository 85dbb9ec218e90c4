//! Rebuilds missing source symbols out of those that are there and repair symbols.
//!
//! Two passes. The first takes the sources that are present out of the repair symbols: what is left in each is the sum
//! over the missing ones alone. The second multiplies these remains by the inverse of that part of the matrix.

use crate::kernel::{Kernel, Pass, ROWS_MAX, Start};
use crate::matrix::{Inverse, Row, row};
use crate::{CodeError, REPAIR_SYMBOLS_MAX, SOURCE_SYMBOLS_MAX};

/// Rebuilds the missing source symbols of a block in place.
///
/// `block` holds the source symbols one after another, each `symbol_len` bytes long, also the last (a short one is padded
/// with zeros). Bit j of `present` is set when source symbol j is there; what stands in the places of the others does
/// not matter and is overwritten. `repairs` are distinct repair symbols in any order, each with its number (0 to 191),
/// at least as many as sources are missing. As many of them as needed, the first ones, serve as scratch and hold
/// nothing of use afterwards; further ones are left alone. When nothing is missing, nothing is changed.
///
/// Any k symbols that were received unchanged rebuild the block. The code does not detect changed ones: authenticate
/// symbols before they come here.
///
/// Costs for e missing symbols: O(e * k) multiplications of whole symbols and O(e^2) of single coefficients.
///
/// # Errors
///
/// - [`CodeError::SymbolLength`]: `symbol_len` is 0, or `block` does not hold a whole number of symbols, or a repair
///   symbol is longer or shorter.
/// - [`CodeError::SourceSymbols`]: `block` is empty or has more than 64 symbols of this length.
/// - [`CodeError::PresentMask`]: a bit above the last source symbol is set.
/// - [`CodeError::RepairIndex`], [`CodeError::DuplicateRepair`]: a repair symbol that does not exist, or one given twice,
///   also among those that are not needed.
/// - [`CodeError::NotEnough`]: fewer repair symbols than missing source symbols.
pub fn rebuild(
    block: &mut [u8],
    symbol_len: usize,
    present: u64,
    repairs: &mut [(u8, &mut [u8])],
) -> Result<(), CodeError> {
    decode(Kernel::get(), block, symbol_len, present, repairs)
}

/// As [`rebuild`], on a given code path.
pub(crate) fn decode(
    kernel: Kernel,
    block: &mut [u8],
    symbol_len: usize,
    present: u64,
    repairs: &mut [(u8, &mut [u8])],
) -> Result<(), CodeError> {
    let source_symbols = check_block(block, symbol_len, present)?;
    check_repairs(symbol_len, repairs)?;
    let missing = source_symbols - present.count_ones() as usize;
    let given = repairs.len();
    let Some(repairs) = repairs.get_mut(..missing) else {
        return Err(CodeError::NotEnough {
            missing,
            repairs: given,
        });
    };
    if missing > 0 {
        subtract_present(kernel, block, symbol_len, present, repairs);
        solve_missing(kernel, block, symbol_len, present, repairs);
    }
    Ok(())
}

/// The number of source symbols, when the shape of the block is possible.
fn check_block(block: &[u8], symbol_len: usize, present: u64) -> Result<usize, CodeError> {
    if symbol_len == 0 || !block.len().is_multiple_of(symbol_len) {
        return Err(CodeError::SymbolLength {
            length: block.len(),
            symbol_length: symbol_len,
        });
    }
    let source_symbols = block.len() / symbol_len;
    if !(1..=SOURCE_SYMBOLS_MAX).contains(&source_symbols) {
        return Err(CodeError::SourceSymbols {
            count: source_symbols,
        });
    }
    if present & !(u64::MAX >> (SOURCE_SYMBOLS_MAX - source_symbols)) != 0 {
        return Err(CodeError::PresentMask {
            present,
            source_symbols,
        });
    }
    Ok(source_symbols)
}

/// Whether all repair symbols exist, have the right length, and are there once.
fn check_repairs(symbol_len: usize, repairs: &[(u8, &mut [u8])]) -> Result<(), CodeError> {
    let mut seen = [0u64; REPAIR_SYMBOLS_MAX.div_ceil(64)];
    for (repair, symbol) in repairs {
        let index = usize::from(*repair);
        let Some(word) = seen.get_mut(index / 64) else {
            return Err(CodeError::RepairIndex { index });
        };
        if *word >> (index % 64) & 1 == 1 {
            return Err(CodeError::DuplicateRepair { repair: *repair });
        }
        *word |= 1 << (index % 64);
        if symbol.len() != symbol_len {
            return Err(CodeError::SymbolLength {
                length: symbol.len(),
                symbol_length: symbol_len,
            });
        }
    }
    Ok(())
}

/// First pass: leaves in each repair symbol the sum over the missing sources alone.
fn subtract_present(
    kernel: Kernel,
    block: &[u8],
    symbol_len: usize,
    present: u64,
    repairs: &mut [(u8, &mut [u8])],
) {
    let mut sources: [&[u8]; SOURCE_SYMBOLS_MAX] = [&[]; SOURCE_SYMBOLS_MAX];
    let mut columns = [0; SOURCE_SYMBOLS_MAX];
    let mut count = 0;
    for (j, symbol) in block.chunks_exact(symbol_len).enumerate() {
        if present >> j & 1 == 1 {
            sources[count] = symbol;
            columns[count] = j;
            count += 1;
        }
    }
    if count == 0 {
        return;
    }
    for group in repairs.chunks_mut(ROWS_MAX) {
        let mut rows: [Row; ROWS_MAX] = [[0; SOURCE_SYMBOLS_MAX]; ROWS_MAX];
        let mut outs: [&mut [u8]; ROWS_MAX] = Default::default();
        let width = group.len();
        for (slot, (repair, symbol)) in group.iter_mut().enumerate() {
            let whole = row(*repair);
            for (coefficient, &column) in rows[slot].iter_mut().zip(&columns[..count]) {
                *coefficient = whole[column];
            }
            outs[slot] = symbol;
        }
        kernel.run(&mut Pass {
            rows: &rows.each_ref()[..width],
            sources: &sources[..count],
            from: 0,
            outs: &mut outs[..width],
            start: Start::Output,
        });
    }
}

/// Second pass: the missing sources out of what the repair symbols hold after the first.
fn solve_missing(
    kernel: Kernel,
    block: &mut [u8],
    symbol_len: usize,
    present: u64,
    repairs: &[(u8, &mut [u8])],
) {
    let is_missing = |j: &u8| present >> j & 1 == 0;
    let numbers = repairs.iter().map(|(repair, _)| *repair);
    let inverse = Inverse::new(numbers, (0..SOURCE_SYMBOLS_MAX as u8).filter(is_missing));
    let mut sources: [&[u8]; SOURCE_SYMBOLS_MAX] = [&[]; SOURCE_SYMBOLS_MAX];
    for (source, (_, symbol)) in sources.iter_mut().zip(repairs) {
        *source = symbol;
    }
    let sources = &sources[..repairs.len()];

    let symbols = block.chunks_exact_mut(symbol_len).zip(0..);
    let mut symbols = symbols
        .filter(|(_, j)| is_missing(j))
        .map(|(symbol, _)| symbol);
    let mut solved = 0;
    while solved < repairs.len() {
        let mut rows: [Row; ROWS_MAX] = [[0; SOURCE_SYMBOLS_MAX]; ROWS_MAX];
        let mut outs: [&mut [u8]; ROWS_MAX] = Default::default();
        let mut width = 0;
        for symbol in symbols.by_ref().take(ROWS_MAX) {
            rows[width] = inverse.row(solved + width);
            outs[width] = symbol;
            width += 1;
        }
        kernel.run(&mut Pass {
            rows: &rows.each_ref()[..width],
            sources,
            from: 0,
            outs: &mut outs[..width],
            start: Start::Zero,
        });
        solved += width;
    }
}
