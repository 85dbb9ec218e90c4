//! Blocks half received and messages half assembled. Everything here is bounded: a peer can fill [`RECEIVE_MAX`] bytes and
//! [`PARTIAL_BLOCKS_MAX`] blocks of one session, and no more.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::partials::{Cuts, Partial, Partials};
use super::{Assemblies, Head};
use crate::limits::{
    BLOCK_WINDOW, BLOCKS_AHEAD_MAX, PARTIAL_BLOCKS_MAX, RECEIVE_MAX, SOURCE_SYMBOLS_MAX,
};
use crate::pool::Pool;
use crate::stream::Arrived;
use crate::wire::{Order, Preamble, Reader, Symbol, expand};

/// Blocks done, of the [`BLOCK_WINDOW`] up to the newest that was seen: what makes delivery exactly-once.
#[derive(Default)]
struct Done {
    /// All blocks below are done.
    base: u64,
    /// Bit i of word w: block base + 64 w + i. `base` is a multiple of 64.
    words: VecDeque<u64>,
}

impl Done {
    fn contains(&self, block: u64) -> bool {
        let Some(offset) = block.checked_sub(self.base) else {
            return true;
        };
        self.words
            .get((offset / 64) as usize)
            .is_some_and(|word| word & (1 << (offset % 64)) != 0)
    }

    /// Blocks up to the newest that was seen. O(words).
    fn insert(&mut self, blocks: &RangeInclusive<u64>) {
        let (first, last) = (*blocks.start().max(&self.base), *blocks.end());
        if first > last {
            return;
        }
        let (first, last) = (first - self.base, last - self.base);
        let words = (first / 64) as usize..=(last / 64) as usize;
        if *words.end() >= self.words.len() {
            self.words.resize(words.end() + 1, 0);
        }
        for word in words.clone() {
            let from = if word == *words.start() {
                first % 64
            } else {
                0
            };
            let to = if word == *words.end() { last % 64 } else { 63 };
            self.words[word] |= (u64::MAX << from) & (u64::MAX >> (63 - to));
        }
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.base += 64;
        }
    }

    /// Blocks this old are never sent any more (PROTOCOL.md#blocks), so whatever they lack does not matter.
    fn forget_below(&mut self, floor: u64) {
        while self.base + 64 <= floor {
            if self.words.pop_front().is_none() {
                self.base = floor / 64 * 64;
            } else {
                self.base += 64;
            }
        }
    }
}

/// What taking a symbol in did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The block is not complete yet.
    Kept,
    /// It was there already, or its block is done.
    Duplicate,
    /// There is no room: as if the packet had not come.
    Refused,
    /// It contradicts what came before.
    Malformed,
    /// Something can be handed on: see [`Inbox::pop_ready`].
    Ready,
}

/// What can be handed on, as far as the blocks are concerned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// A message is complete.
    Message(Arrived),
    /// The next piece of a message that is too large to be handed on whole.
    Piece {
        head: Head,
        first_block: u64,
        offset: usize,
        data: Vec<u8>,
    },
    /// No more pieces of this message follow.
    Aborted { stream: u16, first_block: u64 },
}

/// How much a session may hold for its peer, as far as the others of its endpoint are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Bytes up to which new blocks come in as they like.
    pub(crate) fair_bytes: usize,
    /// Beyond that as well they come in, one by one and only while something is unfinished.
    pub(crate) admits_next: bool,
}

impl Share {
    /// That of who has no others.
    pub(crate) const ALL: Self = Self {
        fair_bytes: usize::MAX,
        admits_next: true,
    };
}

/// What else a session holds for its peer, and its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Bytes of messages that wait for one before them, or for the application to take them.
    pub(crate) waiting_bytes: usize,
    /// Bytes of them that wait for one before them, and of what was taken and is put together elsewhere.
    pub(crate) unfinished_bytes: usize,
    pub(crate) share: Share,
}

/// What a session has received and not yet handed on.
#[derive(Default)]
pub(crate) struct Inbox {
    done: Done,
    partials: Partials,
    assemblies: Assemblies,
    /// What waits to be taken by the session.
    ready: VecDeque<Ready>,
    /// Largest block number seen, for expanding truncated ones.
    newest: u64,
}

impl Inbox {
    pub(crate) fn has_partials(&self) -> bool {
        !self.partials.is_empty() || !self.assemblies.is_empty()
    }

    /// Bytes of blocks and messages that are not complete.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.partials.bytes() + self.assemblies.held_bytes()
    }

    /// What can be handed on next.
    pub(crate) fn pop_ready(&mut self) -> Option<Ready> {
        self.ready.pop_front()
    }

    /// A message was handed on: older ones that it supersedes are not wanted any more.
    pub(crate) fn drop_superseded(
        &mut self,
        stream: u16,
        order: Order,
        newest: u64,
        pool: &mut Pool,
    ) {
        if !self.assemblies.is_empty() {
            self.assemblies
                .drop_superseded(stream, order, newest, &mut self.ready, pool);
        }
    }

    /// The end of a message that was handed on in part, if the last that is ready is one: its stream and first block.
    pub(crate) fn pop_aborted(&mut self) -> Option<(u16, u64)> {
        let &Ready::Aborted {
            stream,
            first_block,
        } = self.ready.back()?
        else {
            return None;
        };
        self.ready.pop_back();
        Some((stream, first_block))
    }

    /// The message that begins with this block is not wanted.
    pub(crate) fn drop_message(&mut self, first_block: u64, pool: &mut Pool) {
        let mut unheard = VecDeque::new();
        self.assemblies
            .drop_range(&(first_block..=first_block), &mut unheard, pool);
        // When its first block came last, all that came before is ready by now.
        self.ready.retain(
            |ready| !matches!(ready, Ready::Piece { first_block: other, .. } if *other == first_block),
        );
    }

    /// Takes in a symbol.
    pub(crate) fn handle_symbol(
        &mut self,
        symbol: &Symbol<'_>,
        room: Room,
        pool: &mut Pool,
    ) -> Taken {
        let k = usize::from(symbol.source_symbols);
        if k > SOURCE_SYMBOLS_MAX {
            return Taken::Malformed;
        }
        let Some(number) = self.number(symbol) else {
            return Taken::Refused;
        };
        if self.done.contains(number) {
            return Taken::Duplicate;
        }
        let known = self.partials.find(number);
        let known = match known.map(|at| (at, self.partials[at].compare(symbol))) {
            Some((_, Cuts::Contradict)) => return Taken::Malformed,
            Some((_, Cuts::Old)) => return Taken::Duplicate,
            Some((_, Cuts::New)) => {
                self.drop_partial(number, pool);
                None
            }
            Some((at, Cuts::Same)) => Some(at),
            None => None,
        };
        if known.is_none() {
            self.see(number, pool);
            // (A block of one symbol takes no place.)
            let needs = if k > 1 {
                Partial::cost_of(symbol)
            } else {
                symbol.data.len()
            };
            if (k > 1 && self.partials.len() >= PARTIAL_BLOCKS_MAX)
                || self.held_bytes() + room.waiting_bytes + needs > RECEIVE_MAX
                || !self.is_fair(needs, room)
            {
                return Taken::Refused;
            }
            if k == 1 {
                // One symbol is the whole block, whichever it is: every repair symbol is a copy.
                return self.finish_block(number, symbol.data, pool);
            }
        }
        let at = known.unwrap_or_else(|| self.partials.add(Partial::new(number, symbol, pool)));
        let partial = &mut self.partials[at];
        if !partial.add(symbol, pool) {
            return Taken::Duplicate;
        }
        if partial.received() < k {
            return Taken::Kept;
        }
        let Some(partial) = self.partials.remove(number) else {
            return Taken::Kept;
        };
        let block = partial.rebuild(pool);
        let taken = self.finish_block(number, &block, pool);
        pool.give(block);
        taken
    }

    /// Whether a new block of so many bytes may come in, as far as other sessions are concerned. Beyond the fair share blocks come in one by one: what is
    /// unfinished would never be done without them, and the peer's blocks would wait for each other for ever. (Each that is half received is completed or given up.)
    fn is_fair(&self, needs: usize, room: Room) -> bool {
        let held = self.held_bytes() + room.waiting_bytes;
        let is_next = || {
            let is_unfinished = !self.assemblies.is_empty() || room.unfinished_bytes > 0;
            self.partials.is_empty() && is_unfinished
        };
        held + needs <= room.share.fair_bytes || (room.share.admits_next && is_next())
    }

    /// A block is whole: hands its message on when that is whole too.
    fn finish_block(&mut self, number: u64, block: &[u8], pool: &mut Pool) -> Taken {
        self.done.insert(&(number..=number));
        let mut reader = Reader::new(block);
        let Ok(preamble) = Preamble::decode(&mut reader) else {
            return Taken::Malformed;
        };
        let content = reader.take_rest();
        match preamble {
            Preamble::First {
                stream,
                order,
                message_len,
            } if message_len <= content.len() => {
                let mut data = pool.take(message_len);
                data.extend_from_slice(&content[..message_len]);
                self.ready.push_back(Ready::Message(Arrived {
                    stream,
                    order,
                    first_block: number,
                    data,
                }));
                Taken::Ready
            }
            // A part of nothing would cost the receiver something, and the peer nothing.
            Preamble::First { .. } | Preamble::Later { .. } if content.is_empty() => {
                Taken::Malformed
            }
            Preamble::First {
                stream,
                order,
                message_len,
            } => {
                let head = Head {
                    stream,
                    order,
                    message_len,
                };
                self.assemblies
                    .add(number, 0, Some(head), content, &mut self.ready, pool)
            }
            Preamble::Later { distance, index } => {
                let Some(first_block) = number.checked_sub(distance) else {
                    return Taken::Malformed;
                };
                if self.done.contains(first_block) && !self.assemblies.contains(first_block) {
                    // Its message was given up, or is not wanted.
                    return Taken::Kept;
                }
                self.assemblies
                    .add(first_block, index, None, content, &mut self.ready, pool)
            }
        }
    }

    /// Gives back what a burst needed.
    pub(crate) fn trim(&mut self) {
        self.partials.trim();
        self.assemblies.trim();
        self.done.words.shrink_to_fit();
    }

    /// Takes nothing of a symbol, but that its block was begun.
    pub(crate) fn pass_over(&mut self, symbol: &Symbol<'_>, pool: &mut Pool) {
        if let Some(number) = self.number(symbol) {
            self.see(number, pool);
        }
    }

    /// Of its block; None where it is further on than senders may be, so that it must be one from long ago: a packet was held back meanwhile.
    fn number(&self, symbol: &Symbol<'_>) -> Option<u64> {
        let number = expand(u64::from(symbol.truncated_block), 16, self.newest);
        (number <= self.newest + BLOCKS_AHEAD_MAX).then_some(number)
    }

    /// The sender has come to this block, whether there is room for it or not: what lies behind the window is let go, since it will not be sent any more.
    fn see(&mut self, number: u64, pool: &mut Pool) {
        self.newest = self.newest.max(number);
        let base = self.done.base;
        let floor = self.newest.saturating_sub(BLOCK_WINDOW - 1);
        self.done.forget_below(floor);
        if self.done.base > base && !self.partials.is_empty() {
            self.drop_partials(0..=self.done.base - 1, pool);
        }
    }

    /// The peer will not complete these blocks: what there is of them goes, and what still comes of them is not kept.
    pub(crate) fn handle_abandon(&mut self, first: u64, count: u64, pool: &mut Pool) {
        let last = first.saturating_add(count - 1);
        self.drop_partials(first..=last, pool);
        self.assemblies
            .drop_range(&(first..=last), &mut self.ready, pool);
        // The frame has whole numbers: later truncated ones are near its last.
        self.see(last, pool);
        self.done.insert(&(first..=last));
    }

    fn drop_partials(&mut self, numbers: RangeInclusive<u64>, pool: &mut Pool) {
        while let Some(number) = self.partials.first_of(&numbers) {
            self.drop_partial(number, pool);
        }
    }

    fn drop_partial(&mut self, number: u64, pool: &mut Pool) {
        if let Some(partial) = self.partials.remove(number) {
            partial.recycle(pool);
        }
    }
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
