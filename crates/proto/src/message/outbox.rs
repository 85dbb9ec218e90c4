//! Messages and blocks that are not settled, by slot and by block number.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Block;
use crate::limits::BLOCK_WINDOW;
use crate::stream::{MessageId, SendOptions};
use crate::time::Instant;

/// A message that was accepted and has no outcome yet.
pub(crate) struct OutgoingMessage {
    pub(crate) id: MessageId,
    pub(crate) accepted_at: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) options: SendOptions,
    pub(crate) first_block: u64,
    pub(crate) blocks: u8,
    pub(crate) blocks_done: u8,
    /// When its first symbol left.
    pub(crate) first_sent_at: Option<Instant>,
    /// Symbols that were taken for lost.
    pub(crate) lost_symbols: u32,
    /// The latest arrival among its blocks, and how well it is known.
    pub(crate) arrival: Option<(Instant, core::time::Duration)>,
    /// 1 - the predicted probability of missing the deadline.
    pub(crate) predicted_on_time: f64,
}

const GONE: u32 = u32::MAX;

/// Values that keep their place. Free places form a list through themselves, so that a value is found, put and taken with
/// one access to memory.
struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// The first free place.
    free: u32,
    len: usize,
}

enum Slot<T> {
    Taken(T),
    /// The next free place.
    Free(u32),
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: GONE,
            len: 0,
        }
    }
}

impl<T> Slots<T> {
    fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        let at = self.free;
        match self.slots.get_mut(at as usize) {
            Some(slot) => {
                if let Slot::Free(next) = core::mem::replace(slot, Slot::Taken(value)) {
                    self.free = next;
                }
                at
            }
            None => {
                self.slots.push(Slot::Taken(value));
                (self.slots.len() - 1) as u32
            }
        }
    }

    fn remove(&mut self, slot: u32) -> Option<T> {
        let place = self.slots.get_mut(slot as usize)?;
        if matches!(place, Slot::Free(_)) {
            return None;
        }
        let Slot::Taken(value) = core::mem::replace(place, Slot::Free(self.free)) else {
            return None;
        };
        self.free = slot;
        self.len -= 1;
        Some(value)
    }

    fn get(&self, slot: u32) -> Option<&T> {
        match self.slots.get(slot as usize)? {
            Slot::Taken(value) => Some(value),
            Slot::Free(_) => None,
        }
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        match self.slots.get_mut(slot as usize)? {
            Slot::Taken(value) => Some(value),
            Slot::Free(_) => None,
        }
    }

    fn trim(&mut self) {
        if self.len == 0 {
            *self = Self::default();
        }
    }
}

/// What a session is sending.
#[derive(Default)]
pub(crate) struct Outbox {
    messages: Slots<OutgoingMessage>,
    blocks: Slots<Block>,
    /// Slot of each block from number `base` on; `GONE` once it has an outcome.
    index: VecDeque<u32>,
    base: u64,
    /// The newest block of which the peer has acknowledged a symbol: it expands truncated numbers from there on.
    newest_acked: u64,
    /// Bytes of all blocks held.
    held_bytes: usize,
}

impl Outbox {
    pub(crate) fn next_block(&self) -> u64 {
        self.base + self.index.len() as u64
    }

    /// The oldest block that may still be there.
    pub(crate) const fn oldest_block(&self) -> u64 {
        self.base
    }

    /// Whether `count` more blocks keep within the window that a receiver remembers, and within what it can tell from 16 bits.
    pub(crate) fn has_block_numbers(&self, count: usize) -> bool {
        let in_doubt = self.next_block() + count as u64 - self.newest_acked;
        self.index.len() + count <= BLOCK_WINDOW as usize && in_doubt <= (1 << 15) - BLOCK_WINDOW
    }

    pub(crate) fn on_block_acked(&mut self, number: u64) {
        self.newest_acked = self.newest_acked.max(number);
    }

    pub(crate) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    pub(crate) fn messages(&self) -> usize {
        self.messages.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.len == 0
    }

    pub(crate) fn insert_message(&mut self, message: OutgoingMessage) -> u32 {
        self.messages.insert(message)
    }

    /// Adds the next block; its number must be [`Outbox::next_block`].
    pub(crate) fn insert_block(&mut self, block: Block) {
        debug_assert_eq!(
            block.number,
            self.next_block(),
            "blocks are numbered without gaps"
        );
        self.held_bytes += block.data.len();
        let slot = self.blocks.insert(block);
        self.index.push_back(slot);
    }

    fn slot(&self, number: u64) -> Option<u32> {
        let slot = *self
            .index
            .get(usize::try_from(number.checked_sub(self.base)?).ok()?)?;
        (slot != GONE).then_some(slot)
    }

    pub(crate) fn block(&self, number: u64) -> Option<&Block> {
        self.blocks.get(self.slot(number)?)
    }

    pub(crate) fn block_mut(&mut self, number: u64) -> Option<&mut Block> {
        let slot = self.slot(number)?;
        self.blocks.get_mut(slot)
    }

    pub(crate) fn message(&self, slot: u32) -> Option<&OutgoingMessage> {
        self.messages.get(slot)
    }

    pub(crate) fn message_mut(&mut self, slot: u32) -> Option<&mut OutgoingMessage> {
        self.messages.get_mut(slot)
    }

    /// Takes a block out for good.
    pub(crate) fn remove_block(&mut self, number: u64) -> Option<Block> {
        let slot = self.slot(number)?;
        self.index[(number - self.base) as usize] = GONE;
        while self.index.front() == Some(&GONE) {
            self.index.pop_front();
            self.base += 1;
        }
        let block = self.blocks.remove(slot)?;
        self.held_bytes -= block.data.len();
        Some(block)
    }

    /// Takes a message out for good; its blocks must be gone.
    pub(crate) fn remove_message(&mut self, slot: u32) -> Option<OutgoingMessage> {
        self.messages.remove(slot)
    }

    /// Gives back what a burst needed, when nothing is left of it.
    pub(crate) fn trim(&mut self) {
        self.messages.trim();
        self.blocks.trim();
        self.index.shrink_to_fit();
    }

    /// Any message that is left, for ending the session.
    pub(crate) fn any_message(&self) -> Option<u32> {
        self.messages
            .slots
            .iter()
            .position(|slot| matches!(slot, Slot::Taken(_)))
            .map(|slot| slot as u32)
    }
}
