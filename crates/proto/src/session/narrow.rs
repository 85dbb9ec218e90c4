//! A path that is narrower than it was when a block was cut: the block is cut anew.

use super::Session;
use crate::message::{AROUND_SYMBOL, Body, Cut, symbol_len_max};

impl Session {
    /// Bytes that a packet of `len` would have had without what goes along with its symbol, as far as that is still known.
    pub(super) fn least_len(&self, number: u64, len: usize) -> usize {
        let mut symbols = self.sent.symbols_of(number);
        let (first, second) = (symbols.next(), symbols.next());
        let only = first.filter(|_| second.is_none());
        let block = only.map(|only| self.sent.symbol(number, only).block);
        let block = block.and_then(|block| self.traffic.outbox.block(block));
        block.map_or(len, |block| {
            len.min(block.symbols.symbol_len() + AROUND_SYMBOL)
        })
    }

    /// Cuts a block into shorter symbols whose own do not pass, under the same number: whichever cut is complete first, the receiver hands it on once. Only when none of its symbols is
    /// under way; they are all lost then, or the path's answers.
    pub(super) fn fit_to_path(&mut self, number: u64) {
        let Some(block) = self.traffic.outbox.block(number) else {
            return;
        };
        let (symbol_len, symbol_max) = (
            block.symbols.symbol_len(),
            symbol_len_max(self.path.mtu.current()),
        );
        let passes =
            symbol_len <= symbol_max || !self.path.mtu.is_too_large(symbol_len + AROUND_SYMBOL);
        if passes || block.unaccounted > 0 {
            return;
        }
        let message = self.traffic.outbox.message(block.message);
        let is_last = message.is_none_or(|message| match &message.body {
            Body::Large(large) => large.ends_with(number),
            Body::Whole(_) | Body::Cut => true,
        });
        let Some(cut) = Cut::anew(block.symbols.data.len(), symbol_max, is_last) else {
            return;
        };
        self.unschedule_block(number);
        let next_packet = self.sent.next_number();
        if let Some(block) = self.traffic.outbox.block_mut(number) {
            block.cut_anew(cut, next_packet);
        }
    }
}
