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

/// Blocks done, of the [`BLOCK_WINDOW`] below the newest: what makes delivery exactly-once.
#[derive(Default)]
struct Done {
    /// All blocks below are done.
    base: u64,
    /// Bit i of word w: block base + 64 w + i. `base` is a multiple of 64.
    words: VecDeque<u64>,
    newest: u64,
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

    fn insert(&mut self, block: u64) {
        self.newest = self.newest.max(block);
        self.forget_below(self.newest.saturating_sub(BLOCK_WINDOW - 1));
        let Some(offset) = block.checked_sub(self.base) else {
            return;
        };
        let word = (offset / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (offset % 64);
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
    /// k symbols in their places.
    block: Vec<u8>,
    /// Repair symbols with their indices, one after another.
    repairs: Vec<u8>,
    repair_indices: Vec<u8>,
}

impl Partial {
    fn received(&self) -> usize {
        self.present.count_ones() as usize + self.repair_indices.len()
    }

    fn bytes(&self) -> usize {
        self.block.len() + self.repairs.len()
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
            let needs = k * symbol.data.len();
            if self.partials.len() >= PARTIAL_BLOCKS_MAX
                || self.held_bytes() + waiting_bytes + needs > RECEIVE_MAX
            {
                return Taken::Refused;
            }
            self.newest = self.newest.max(number);
            if k == 1 {
                // One symbol is the whole block, whichever it is: every repair symbol is a copy.
                return self.finish_block(number, symbol.data, pool);
            }
        }
        let index = known.unwrap_or_else(|| {
            self.partials.push(new_partial(number, symbol, pool));
            self.held_bytes += k * symbol.data.len();
            self.partials.len() - 1
        });
        let partial = &mut self.partials[index];
        if !place(partial, symbol, &mut self.held_bytes, pool) {
            return Taken::Duplicate;
        }
        if partial.received() < k {
            return Taken::Kept;
        }
        let mut partial = self.partials.swap_remove(index);
        self.held_bytes -= partial.bytes();
        rebuild(&mut partial);
        let taken = self.finish_block(number, &partial.block, pool);
        pool.give(partial.block);
        pool.give(partial.repairs);
        pool.give(partial.repair_indices);
        taken
    }

    /// A block is whole: hands its message on when that is whole too.
    fn finish_block(&mut self, number: u64, block: &[u8], pool: &mut Pool) -> Taken {
        self.mark_done(number..=number, pool);
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

    /// Marks blocks as done, and lets go of what lies behind the window then: its sender will not send it any more.
    fn mark_done(&mut self, numbers: RangeInclusive<u64>, pool: &mut Pool) {
        let base = self.done.base;
        for number in numbers {
            self.done.insert(number);
        }
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
        self.newest = self.newest.max(last);
        let from = first
            .max(self.done.base)
            .max(last.saturating_sub(BLOCK_WINDOW - 1));
        self.mark_done(from..=last, pool);
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
        pool.give(partial.block);
        pool.give(partial.repairs);
        pool.give(partial.repair_indices);
    }
}

fn new_partial(number: u64, symbol: &Symbol<'_>, pool: &mut Pool) -> Partial {
    let len = usize::from(symbol.source_symbols) * symbol.data.len();
    let mut block = pool.take(len);
    block.resize(len, 0);
    Partial {
        number,
        source_symbols: symbol.source_symbols,
        symbol_len: symbol.data.len(),
        present: 0,
        block,
        repairs: Vec::new(),
        repair_indices: Vec::new(),
    }
}

/// Puts a symbol where it belongs; `false` when it was there.
fn place(
    partial: &mut Partial,
    symbol: &Symbol<'_>,
    held_bytes: &mut usize,
    pool: &mut Pool,
) -> bool {
    if symbol.esi < symbol.source_symbols {
        if partial.present & (1 << symbol.esi) != 0 {
            return false;
        }
        partial.present |= 1 << symbol.esi;
        let start = usize::from(symbol.esi) * partial.symbol_len;
        partial.block[start..start + partial.symbol_len].copy_from_slice(symbol.data);
        return true;
    }
    let repair = symbol.esi - symbol.source_symbols;
    if partial.repair_indices.contains(&repair) {
        return false;
    }
    if partial.repairs.capacity() == 0 {
        partial.repairs = pool.take(partial.symbol_len * 2);
        partial.repair_indices = pool.take(1);
    }
    partial.repair_indices.push(repair);
    partial.repairs.extend_from_slice(symbol.data);
    *held_bytes += symbol.data.len();
    true
}

fn rebuild(partial: &mut Partial) {
    if partial.repair_indices.is_empty() {
        return;
    }
    let mut repairs: [(u8, &mut [u8]); SOURCE_SYMBOLS_MAX] =
        core::array::from_fn(|_| (0, &mut [][..]));
    let count = partial.repair_indices.len();
    let chunks = partial.repairs.chunks_exact_mut(partial.symbol_len);
    for (slot, (&index, chunk)) in repairs
        .iter_mut()
        .zip(partial.repair_indices.iter().zip(chunks))
    {
        *slot = (index, chunk);
    }
    punctual_erasure::rebuild(
        &mut partial.block,
        partial.symbol_len,
        partial.present,
        &mut repairs[..count],
    )
    .expect("k distinct symbols of equal length are there");
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
