//! A path that is narrower than it was when a block was cut: the block is cut anew.

use super::Session;
use crate::message::{Body, Cut, symbol_len_max};
use crate::wire::{SYMBOL_HEADER, TAG_LEN};

/// Bytes of a packet with one symbol besides it.
const AROUND_SYMBOL: usize = 7 + SYMBOL_HEADER + TAG_LEN;

impl Session {
    /// Bytes of a packet that holds a symbol of this block alone.
    fn packet_len_of(&self, number: u64) -> Option<usize> {
        let block = self.traffic.outbox.block(number)?;
        Some(block.symbols.symbol_len() + AROUND_SYMBOL)
    }

    /// Bytes that a packet of `len` would have had without what goes along with its symbol, as far as that is still known.
    pub(super) fn least_len(&self, number: u64, len: usize) -> usize {
        let mut symbols = self.sent.symbols_of(number);
        let (first, second) = (symbols.next(), symbols.next());
        let only = first.filter(|_| second.is_none());
        let alone = only.and_then(|only| self.packet_len_of(self.sent.symbol(number, only).block));
        alone.map_or(len, |alone| len.min(alone))
    }

    /// Cuts a block into shorter symbols whose own do not pass, under the same number: whichever cut is complete first, the receiver hands it on once. Only when none of its symbols is
    /// under way; they are all lost then, or the path's answers.
    pub(super) fn fit_to_path(&mut self, number: u64) {
        let is_too_large = |len| self.path.mtu.is_too_large(len);
        if !self.packet_len_of(number).is_some_and(is_too_large) {
            return;
        }
        let symbol_max = symbol_len_max(self.path.mtu.current());
        let next_packet = self.sent.next_number();
        let Some(block) = self.traffic.outbox.block(number) else {
            return;
        };
        if block.unaccounted > 0 || block.symbols.symbol_len() <= symbol_max {
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
        if let Some(block) = self.traffic.outbox.block_mut(number) {
            block.cut_anew(cut, next_packet);
        }
    }
}
