//! The symbols of one block: which arrived, and which go next.

use alloc::vec::Vec;

use crate::limits::REPAIR_SYMBOLS_MAX;
use crate::message::Cut;

/// A block's content as symbols. Source symbols have the first ESIs, repair symbols those after them (RFC 5052).
pub(crate) struct Symbols {
    pub(crate) source_symbols: u8,
    symbol_len: u16,
    /// Preamble and content; the last symbol counts as padded with zeros.
    pub(crate) data: Vec<u8>,
    /// ESIs acknowledged.
    acked: [u64; 4],
    acked_count: u16,
    next_esi: u8,
    /// Source symbols from here on that were not acknowledged go first, again.
    again_from: u8,
}

impl Symbols {
    pub(crate) const fn new(cut: Cut, data: Vec<u8>) -> Self {
        Self {
            source_symbols: cut.source_symbols,
            symbol_len: cut.symbol_len as u16,
            data,
            acked: [0; 4],
            acked_count: 0,
            next_esi: 0,
            again_from: cut.source_symbols,
        }
    }

    pub(crate) fn symbol_len(&self) -> usize {
        usize::from(self.symbol_len)
    }

    /// Symbols that the receiver still needs, as far as we know.
    pub(crate) fn deficit(&self) -> u8 {
        self.source_symbols
            .saturating_sub(self.acked_count.min(255) as u8)
    }

    /// Source symbols that did not arrive, as far as we know; 0 once the block is complete.
    pub(crate) fn source_deficit(&self) -> u8 {
        if self.is_complete() {
            return 0;
        }
        // Source symbols come first, and there are at most 64 of them.
        let others = u64::MAX
            .checked_shl(u32::from(self.source_symbols))
            .unwrap_or(0);
        (!self.acked[0] & !others).count_ones() as u8
    }

    /// The next symbols to send are the source symbols that did not arrive. (Where not all were sent they are next anyway.)
    pub(crate) const fn repeat_source(&mut self) {
        if self.next_esi >= self.source_symbols {
            self.again_from = 0;
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.deficit() == 0
    }

    fn is_acked(&self, esi: u8) -> bool {
        self.acked[usize::from(esi / 64)] & (1 << (esi % 64)) != 0
    }

    /// Marks a symbol as arrived; `false` when it was already.
    pub(crate) fn on_acked(&mut self, esi: u8) -> bool {
        if self.is_acked(esi) {
            return false;
        }
        self.acked[usize::from(esi / 64)] |= 1 << (esi % 64);
        self.acked_count += 1;
        true
    }

    /// The next symbol to send: a source symbol again when that was asked for, else one by one. Each is new as long as there are new ones, because a new symbol helps whichever of the
    /// earlier ones were lost; after the last repair symbol those not yet acknowledged come again.
    pub(crate) fn next_esi(&mut self) -> u8 {
        while self.again_from < self.source_symbols {
            let esi = self.again_from;
            self.again_from += 1;
            if !self.is_acked(esi) {
                return esi;
            }
        }
        let count = usize::from(self.source_symbols) + REPAIR_SYMBOLS_MAX;
        loop {
            let esi = self.next_esi;
            self.next_esi = if usize::from(esi) + 1 >= count {
                0
            } else {
                esi + 1
            };
            // Ends: a block with every symbol acknowledged is complete, and is not sent any more.
            if !self.is_acked(esi) || self.is_complete() {
                return esi;
            }
        }
    }

    /// Writes symbol `esi` into `out`, which is `symbol_len` long.
    pub(crate) fn write_symbol(&self, esi: u8, out: &mut [u8]) {
        if esi < self.source_symbols {
            let start = (usize::from(esi) * self.symbol_len()).min(self.data.len());
            let end = (start + out.len()).min(self.data.len());
            let (content, padding) = out.split_at_mut(end - start);
            content.copy_from_slice(&self.data[start..end]);
            padding.fill(0);
        } else {
            punctual_erasure::repair_symbol(&self.data, esi - self.source_symbols, out)
                .expect("the cut keeps k within 1..=64 and the index below 192");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(len: usize, k: u8) -> Symbols {
        let cut = Cut {
            source_symbols: k,
            symbol_len: len.div_ceil(usize::from(k)),
        };
        Symbols::new(cut, (0..len).map(|i| i as u8).collect())
    }

    #[test]
    fn symbols_are_new_until_there_are_none_left() {
        let mut symbols = symbols(100, 4);
        let first: Vec<u8> = (0..196).map(|_| symbols.next_esi()).collect();
        assert_eq!(first, (0..196).collect::<Vec<u8>>());
        symbols.on_acked(0);
        symbols.on_acked(2);
        assert_eq!([symbols.next_esi(), symbols.next_esi()], [1, 3]);
    }

    #[test]
    fn source_symbols_that_did_not_arrive_are_repeated_before_new_repair_symbols() {
        let mut symbols = symbols(100, 4);
        assert_eq!(symbols.source_deficit(), 4);
        let first: Vec<u8> = (0..6).map(|_| symbols.next_esi()).collect();
        assert_eq!(first, [0, 1, 2, 3, 4, 5]);
        for esi in [1, 2, 5] {
            symbols.on_acked(esi);
        }
        assert_eq!((symbols.deficit(), symbols.source_deficit()), (1, 2));
        symbols.repeat_source();
        let second: Vec<u8> = (0..4).map(|_| symbols.next_esi()).collect();
        assert_eq!(second, [0, 3, 6, 7], "what arrived is not sent again");
        symbols.on_acked(6);
        assert_eq!((symbols.deficit(), symbols.source_deficit()), (0, 0));
        assert_eq!(self::symbols(6400, 64).source_deficit(), 64);
    }

    #[test]
    fn the_last_symbol_is_padded() {
        let symbols = symbols(7, 2);
        let mut out = [9; 4];
        symbols.write_symbol(1, &mut out);
        assert_eq!(out, [4, 5, 6, 0]);
        let mut repair = [0; 4];
        symbols.write_symbol(2, &mut repair);
        assert_eq!(
            repair,
            [4, 1 ^ 5, 2 ^ 6, 3],
            "the first repair symbol is the sum"
        );
    }

    #[test]
    fn an_acknowledgement_counts_once() {
        let mut symbols = symbols(100, 4);
        assert!(symbols.on_acked(5));
        assert!(!symbols.on_acked(5));
        assert_eq!(symbols.deficit(), 3);
    }
}
