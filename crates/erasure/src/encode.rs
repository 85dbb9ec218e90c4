//! Makes repair symbols out of the source symbols of a block.

use crate::kernel::{Kernel, Pass, ROWS_MAX, Start};
use crate::matrix::{Row, row};
use crate::{CodeError, REPAIR_SYMBOLS_MAX, SOURCE_SYMBOLS_MAX};

/// Writes repair symbol `repair` (0 to 191) of a block.
///
/// `block` holds the source symbols one after another, each `out.len()` bytes long; when it does not end with a whole
/// symbol, the last one counts as padded with zeros. What `out` held is overwritten.
///
/// Costs one pass over `block`, O(k) multiplications of whole symbols (k = 1: a copy; repair 0: exclusive or).
///
/// # Errors
///
/// - [`CodeError::SymbolLength`]: `out` is empty.
/// - [`CodeError::SourceSymbols`]: `block` is empty or has more than 64 symbols of this length.
/// - [`CodeError::RepairIndex`]: there is no repair symbol of this number.
pub fn repair_symbol(block: &[u8], repair: u8, out: &mut [u8]) -> Result<(), CodeError> {
    repair_symbols(block, out.len(), repair, out)
}

/// Writes several repair symbols of a block at once: `first`, `first` + 1 and so on, as many as `out` has room for.
///
/// `block` holds the source symbols one after another, each `symbol_len` bytes long; when it does not end with a whole
/// symbol, the last one counts as padded with zeros. `out` takes whole symbols, one after another; what it held is
/// overwritten. When it is empty there is nothing to do.
///
/// Costs one pass over `block` for every four repair symbols; the bytes are those of [`repair_symbol`].
///
/// # Errors
///
/// - [`CodeError::SymbolLength`]: `symbol_len` is 0, or `out` does not hold a whole number of symbols.
/// - [`CodeError::SourceSymbols`]: `block` is empty or has more than 64 symbols of this length.
/// - [`CodeError::RepairIndex`]: a symbol was asked for whose number is above 191.
pub fn repair_symbols(
    block: &[u8],
    symbol_len: usize,
    first: u8,
    out: &mut [u8],
) -> Result<(), CodeError> {
    encode(Kernel::get(), block, symbol_len, first, out)
}

/// As [`repair_symbols`], on a given code path.
pub(crate) fn encode(
    kernel: Kernel,
    block: &[u8],
    symbol_len: usize,
    first: u8,
    out: &mut [u8],
) -> Result<(), CodeError> {
    if symbol_len == 0 || !out.len().is_multiple_of(symbol_len) {
        return Err(CodeError::SymbolLength {
            length: out.len(),
            symbol_length: symbol_len,
        });
    }
    let source_symbols = block.len().div_ceil(symbol_len);
    if !(1..=SOURCE_SYMBOLS_MAX).contains(&source_symbols) {
        return Err(CodeError::SourceSymbols {
            count: source_symbols,
        });
    }
    let end = usize::from(first) + out.len() / symbol_len;
    if usize::from(first) >= REPAIR_SYMBOLS_MAX || end > REPAIR_SYMBOLS_MAX {
        return Err(CodeError::RepairIndex {
            index: REPAIR_SYMBOLS_MAX.max(usize::from(first)),
        });
    }

    let mut sources: [&[u8]; SOURCE_SYMBOLS_MAX] = [&[]; SOURCE_SYMBOLS_MAX];
    for (source, symbol) in sources.iter_mut().zip(block.chunks(symbol_len)) {
        *source = symbol;
    }
    let sources = &sources[..source_symbols];
    let mut repair = first;
    for symbols in out.chunks_mut(symbol_len.saturating_mul(ROWS_MAX)) {
        encode_rows(kernel, sources, symbol_len, repair, symbols);
        // Stays in range: after the last whole group it is at most 192.
        repair += ROWS_MAX as u8;
    }
    Ok(())
}

/// Writes the repair symbols `first` and following, at most [`ROWS_MAX`], in one pass over the sources.
fn encode_rows(kernel: Kernel, sources: &[&[u8]], symbol_len: usize, first: u8, out: &mut [u8]) {
    // The last source may be short. Up to its end the sums go over all sources, from there over all but the last.
    let last = sources.len() - 1;
    let last_len = sources[last].len();

    let mut rows: [&Row; ROWS_MAX] = [row(first); ROWS_MAX];
    let mut heads: [&mut [u8]; ROWS_MAX] = Default::default();
    let mut tails: [&mut [u8]; ROWS_MAX] = Default::default();
    let mut count = 0;
    for (slot, symbol) in out.chunks_exact_mut(symbol_len).enumerate() {
        rows[slot] = row(first + slot as u8);
        (heads[slot], tails[slot]) = symbol.split_at_mut(last_len);
        count = slot + 1;
    }
    let rows = &rows[..count];
    let start = Start::Zero;
    kernel.run(&mut Pass {
        rows,
        sources,
        from: 0,
        outs: &mut heads[..count],
        start,
    });
    if last_len < symbol_len {
        let sources = &sources[..last];
        kernel.run(&mut Pass {
            rows,
            sources,
            from: last_len,
            outs: &mut tails[..count],
            start,
        });
    }
}
