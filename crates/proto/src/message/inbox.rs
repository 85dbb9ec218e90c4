//! Blocks half received and messages half assembled. Everything here is bounded: a peer can fill [`RECEIVE_MAX`] bytes and
//! [`PARTIAL_BLOCKS_MAX`] blocks of one session, and no more.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::RangeInclusive;

use super::{Assemblies, Head};
use crate::limits::{BLOCK_WINDOW, PARTIAL_BLOCKS_MAX, RECEIVE_MAX, SOURCE_SYMBOLS_MAX};
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

/// A block of which some symbols have arrived.
struct Partial {
    number: u64,
    source_symbols: u8,
    symbol_len: usize,
    /// Source symbols present.
    present: u64,
    /// In the order of their arrival: what is there of a block takes room, not what the first of its symbols says it will be.
    symbols: Vec<u8>,
    esis: Vec<u8>,
}

impl Partial {
    fn new(number: u64, symbol: &Symbol<'_>, pool: &mut Pool) -> Self {
        Self {
            number,
            source_symbols: symbol.source_symbols,
            symbol_len: symbol.data.len(),
            present: 0,
            symbols: pool.take(2 * symbol.data.len()),
            esis: pool.take(1),
        }
    }

    fn received(&self) -> usize {
        self.esis.len()
    }

    /// Bytes that it will have when it is complete.
    fn bytes(&self) -> usize {
        usize::from(self.source_symbols) * self.symbol_len
    }

    fn compare(&self, symbol: &Symbol<'_>) -> Cuts {
        let more = symbol.source_symbols.cmp(&self.source_symbols);
        match symbol.data.len().cmp(&self.symbol_len) {
            Ordering::Equal if more == Ordering::Equal => Cuts::Same,
            Ordering::Less if more != Ordering::Less => Cuts::New,
            Ordering::Greater if more != Ordering::Greater => Cuts::Old,
            _ => Cuts::Contradict,
        }
    }

    /// Keeps a symbol; `false` when it was there.
    fn add(&mut self, symbol: &Symbol<'_>, pool: &mut Pool) -> bool {
        if symbol.esi < self.source_symbols {
            if self.present & (1 << symbol.esi) != 0 {
                return false;
            }
            self.present |= 1 << symbol.esi;
        } else if self.esis.contains(&symbol.esi) {
            return false;
        }
        if self.symbols.len() + self.symbol_len > self.symbols.capacity() {
            let more = (2 * self.symbols.capacity()).min(self.bytes());
            let mut symbols = pool.take(more);
            symbols.extend_from_slice(&self.symbols);
            pool.give(core::mem::replace(&mut self.symbols, symbols));
        }
        self.esis.push(symbol.esi);
        self.symbols.extend_from_slice(symbol.data);
        true
    }

    /// The block, of k symbols.
    fn rebuild(mut self, pool: &mut Pool) -> Vec<u8> {
        if self.esis.iter().copied().eq(0..self.source_symbols) {
            pool.give(self.esis);
            return self.symbols;
        }
        let mut block = pool.take(self.bytes());
        block.resize(self.bytes(), 0);
        let mut repairs: [(u8, &mut [u8]); SOURCE_SYMBOLS_MAX] =
            core::array::from_fn(|_| (0, &mut [][..]));
        let mut count = 0;
        let chunks = self.symbols.chunks_exact_mut(self.symbol_len);
        for (&esi, chunk) in self.esis.iter().zip(chunks) {
            match esi.checked_sub(self.source_symbols) {
                None => {
                    let start = usize::from(esi) * self.symbol_len;
                    block[start..start + self.symbol_len].copy_from_slice(chunk);
                }
                Some(repair) => {
                    repairs[count] = (repair, chunk);
                    count += 1;
                }
            }
        }
        if count > 0 {
            let (len, present) = (self.symbol_len, self.present);
            punctual_erasure::rebuild(&mut block, len, present, &mut repairs[..count])
                .expect("k distinct symbols of equal length are there");
        }
        pool.give(self.symbols);
        pool.give(self.esis);
        block
    }
}

/// How a symbol's cut of its block stands to that of the symbols that are there.
enum Cuts {
    Same,
    /// Into shorter symbols, since the path has become narrower: what came of the other one is of no use.
    New,
    /// That which came before it.
    Old,
    Contradict,
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

/// What a session has received and not yet handed on.
#[derive(Default)]
pub(crate) struct Inbox {
    done: Done,
    partials: Vec<Partial>,
    assemblies: Assemblies,
    /// What waits to be taken by the session.
    ready: VecDeque<Ready>,
    /// Bytes in partials.
    held_bytes: usize,
    /// Largest block number seen, for expanding truncated ones.
    newest: u64,
}

impl Inbox {
    pub(crate) fn has_partials(&self) -> bool {
        !self.partials.is_empty() || !self.assemblies.is_empty()
    }

    /// Bytes of blocks and messages that are not complete.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.held_bytes + self.assemblies.held_bytes()
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

    /// Takes in a symbol. `waiting_bytes` are those of messages that the application has not taken yet.
    pub(crate) fn handle_symbol(
        &mut self,
        symbol: &Symbol<'_>,
        waiting_bytes: usize,
        pool: &mut Pool,
    ) -> Taken {
        let number = expand(u64::from(symbol.truncated_block), 16, self.newest);
        let k = usize::from(symbol.source_symbols);
        if k > SOURCE_SYMBOLS_MAX {
            return Taken::Malformed;
        }
        if self.done.contains(number) {
            return Taken::Duplicate;
        }
        let known = self
            .partials
            .iter()
            .position(|partial| partial.number == number);
        let known = match known.map(|index| (index, self.partials[index].compare(symbol))) {
            Some((_, Cuts::Contradict)) => return Taken::Malformed,
            Some((_, Cuts::Old)) => return Taken::Duplicate,
            Some((index, Cuts::New)) => {
                self.drop_partial(index, pool);
                None
            }
            Some((index, Cuts::Same)) => Some(index),
            None => None,
        };
        if known.is_none() {
            self.see(number, pool);
            let needs = k * symbol.data.len();
            // (A block of one symbol takes no place.)
            if (k > 1 && self.partials.len() >= PARTIAL_BLOCKS_MAX)
                || self.held_bytes() + waiting_bytes + needs > RECEIVE_MAX
            {
                return Taken::Refused;
            }
            if k == 1 {
                // One symbol is the whole block, whichever it is: every repair symbol is a copy.
                return self.finish_block(number, symbol.data, pool);
            }
        }
        let index = known.unwrap_or_else(|| {
            self.partials.push(Partial::new(number, symbol, pool));
            self.held_bytes += k * symbol.data.len();
            self.partials.len() - 1
        });
        let partial = &mut self.partials[index];
        if !partial.add(symbol, pool) {
            return Taken::Duplicate;
        }
        if partial.received() < k {
            return Taken::Kept;
        }
        let partial = self.partials.swap_remove(index);
        self.held_bytes -= partial.bytes();
        let block = partial.rebuild(pool);
        let taken = self.finish_block(number, &block, pool);
        pool.give(block);
        taken
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
        self.partials.shrink_to_fit();
        self.assemblies.trim();
        self.done.words.shrink_to_fit();
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
        let mut index = 0;
        while index < self.partials.len() {
            if numbers.contains(&self.partials[index].number) {
                self.drop_partial(index, pool);
            } else {
                index += 1;
            }
        }
    }

    fn drop_partial(&mut self, index: usize, pool: &mut Pool) {
        let partial = self.partials.swap_remove(index);
        self.held_bytes -= partial.bytes();
        pool.give(partial.symbols);
        pool.give(partial.esis);
    }
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
