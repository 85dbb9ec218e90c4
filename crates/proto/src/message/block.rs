//! One coded block on its way: which of its symbols were sent, which arrived, and where its current round stands.

use alloc::vec::Vec;
use core::time::Duration;

use crate::limits::REPAIR_SYMBOLS_MAX;
use crate::message::Cut;
use crate::time::{Instant, earliest};

/// A block that is being sent.
pub(crate) struct Block {
    pub(crate) number: u64,
    /// Slot of its message.
    pub(crate) message: u32,
    pub(crate) source_symbols: u8,
    symbol_len: u16,
    /// Preamble and content; the last symbol counts as padded with zeros.
    pub(crate) data: Vec<u8>,
    /// ESIs acknowledged.
    acked: [u64; 4],
    pub(crate) acked_count: u16,
    /// Symbols sent in all.
    pub(crate) sent: u16,
    next_esi: u8,
    /// Source symbols from here on that were not acknowledged go first, again.
    again_from: u8,
    /// Symbols of the current round still to be sent.
    pub(crate) to_send: u16,
    /// Of them, those that are only needed if others are lost: the last ones.
    pub(crate) redundant: u16,
    /// It stands in the schedule.
    pub(crate) is_scheduled: bool,
    /// Sent, neither acknowledged nor taken for lost.
    pub(crate) unaccounted: u16,
    /// Acknowledged or lost in the current flight, to tell a flight that was lost whole.
    pub(crate) flight_acked: bool,
    /// The first packet that may hold a symbol of the current flight; below it all are settled.
    pub(crate) flight_from: u64,
    pub(crate) round_ends: Option<Instant>,
    /// How long the current round waits for answers; zero stands for the path's round time.
    pub(crate) patience: Duration,
    /// Time between two symbols of the current flight, and when the next one may leave.
    pub(crate) spacing: Duration,
    pub(crate) resumes_at: Option<Instant>,
    /// When the symbol before it left, or the flight began.
    last_sent_at: Instant,
    /// Symbols of rounds that ended in silence: nobody answered for them or for anything later. And the packet of the first.
    pub(crate) silent: u16,
    pub(crate) silent_from: u64,
    /// When its message is given up, if it is to be.
    pub(crate) drop_at: Option<Instant>,
    /// The newest packet with a symbol of it, and how many copies of it travelled in spare room.
    pub(crate) last_packet: u64,
    pub(crate) bundled: u8,
    pub(crate) rounds_planned: u16,
    /// When the current round began.
    pub(crate) flight_began: Instant,
    /// Doublings of the round time, after the deadline.
    pub(crate) backoff: u8,
    /// The earliest entry of the session's timer queue for this block.
    pub(crate) armed: Option<Instant>,
}

impl Block {
    pub(crate) fn new(number: u64, message: u32, cut: Cut, data: Vec<u8>) -> Self {
        Self {
            number,
            message,
            source_symbols: cut.source_symbols,
            symbol_len: cut.symbol_len as u16,
            data,
            acked: [0; 4],
            acked_count: 0,
            sent: 0,
            next_esi: 0,
            again_from: cut.source_symbols,
            to_send: 0,
            redundant: 0,
            is_scheduled: false,
            unaccounted: 0,
            flight_acked: false,
            flight_from: 0,
            round_ends: None,
            patience: Duration::ZERO,
            spacing: Duration::ZERO,
            resumes_at: None,
            last_sent_at: Instant::ZERO,
            silent: 0,
            silent_from: u64::MAX,
            drop_at: None,
            last_packet: u64::MAX,
            bundled: 0,
            rounds_planned: 0,
            flight_began: Instant::ZERO,
            backoff: 0,
            armed: None,
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

    /// The next symbols to send are the source symbols that did not arrive.
    pub(crate) const fn repeat_source(&mut self) {
        self.again_from = 0;
    }

    /// Whether what is on its way is enough, if none of it is lost.
    pub(crate) fn may_complete(&self) -> bool {
        u16::from(self.deficit()) <= self.unaccounted
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

    /// Whether every symbol of the round was sent and is accounted for, and no backoff holds the next one.
    pub(crate) fn is_round_over(&self) -> bool {
        self.unaccounted == 0
            && self.to_send == 0
            && self.sent > 0
            && (self.backoff == 0 || self.flight_acked)
    }

    /// Whether its next symbol is only needed if others are lost.
    pub(crate) const fn is_next_redundant(&self) -> bool {
        self.to_send <= self.redundant
    }

    /// When its next symbol may leave.
    pub(crate) fn may_send_at(&self) -> Instant {
        self.flight_began.max(self.last_sent_at + self.spacing)
    }

    /// A symbol leaves now. `true` when the rest of the flight has to wait.
    pub(crate) fn pause(&mut self, now: Instant) -> bool {
        self.last_sent_at = now;
        let pauses = self.to_send > 0 && self.spacing > Duration::ZERO;
        self.resumes_at = pauses.then(|| now + self.spacing);
        pauses
    }

    /// When this block wants attention next. A round does not end before its flight has left.
    pub(crate) fn due(&self) -> Option<Instant> {
        earliest(self.resumes_at.or(self.round_ends), self.drop_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(len: usize, k: u8) -> Block {
        let cut = Cut {
            source_symbols: k,
            symbol_len: len.div_ceil(usize::from(k)),
        };
        Block::new(0, 0, cut, (0..len).map(|i| i as u8).collect())
    }

    #[test]
    fn symbols_are_new_until_there_are_none_left() {
        let mut block = block(100, 4);
        let first: Vec<u8> = (0..196).map(|_| block.next_esi()).collect();
        assert_eq!(first, (0..196).collect::<Vec<u8>>());
        block.on_acked(0);
        block.on_acked(2);
        assert_eq!([block.next_esi(), block.next_esi()], [1, 3]);
    }

    #[test]
    fn source_symbols_that_did_not_arrive_are_repeated_before_new_repair_symbols() {
        let mut block = block(100, 4);
        assert_eq!(block.source_deficit(), 4);
        let first: Vec<u8> = (0..6).map(|_| block.next_esi()).collect();
        assert_eq!(first, [0, 1, 2, 3, 4, 5]);
        for esi in [1, 2, 5] {
            block.on_acked(esi);
        }
        assert_eq!((block.deficit(), block.source_deficit()), (1, 2));
        block.repeat_source();
        let second: Vec<u8> = (0..4).map(|_| block.next_esi()).collect();
        assert_eq!(second, [0, 3, 6, 7], "what arrived is not sent again");
        block.on_acked(6);
        assert_eq!((block.deficit(), block.source_deficit()), (0, 0));
        assert_eq!(self::block(6400, 64).source_deficit(), 64);
    }

    #[test]
    fn the_last_symbol_is_padded() {
        let block = block(7, 2);
        let mut out = [9; 4];
        block.write_symbol(1, &mut out);
        assert_eq!(out, [4, 5, 6, 0]);
        let mut repair = [0; 4];
        block.write_symbol(2, &mut repair);
        assert_eq!(
            repair,
            [4, 1 ^ 5, 2 ^ 6, 3],
            "the first repair symbol is the sum"
        );
    }

    #[test]
    fn an_acknowledgement_counts_once() {
        let mut block = block(100, 4);
        assert!(block.on_acked(5));
        assert!(!block.on_acked(5));
        assert_eq!(block.deficit(), 3);
    }
}
