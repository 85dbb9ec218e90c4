//! Messages and blocks that are not settled, by slot and by block number.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Block, Chances, Large};
use crate::limits::{BLOCK_WINDOW, BLOCKS_AHEAD_MAX, LARGE_BYTES_MAX, LARGE_IN_PROGRESS_MAX};
use crate::stream::{Delivery, Held, MessageId, SendOptions, StreamId, WhenLate};
use crate::time::Instant;

/// What is to happen with a message from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is sent and repaired as its stream and its options say.
    Going,
    /// Nothing of it is sent any more; what is on its way may still arrive. The outcome says `Superseded` if it does not.
    Superseded,
    /// The same, with the outcome `Cancelled`.
    Cancelled,
    /// The same, with the outcome `Dropped`: its deadline is over.
    Expired,
    /// No message of the application's: it takes the place of one that an ordered stream will not have.
    Void,
}

impl Fate {
    /// Whether it can still be taken back, or have its place taken.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::Going | Self::Expired)
    }
}

/// What of a message is not in blocks yet.
pub(crate) enum Body {
    /// Preamble and content of a message of one block.
    Whole(Vec<u8>),
    /// A message of several blocks.
    Large(Box<Large>),
    /// The one block was cut.
    Cut,
}

/// A message that was accepted and has no outcome yet.
pub(crate) struct OutgoingMessage {
    pub(crate) id: MessageId,
    pub(crate) stream: StreamId,
    pub(crate) delivery: Delivery,
    pub(crate) fate: Fate,
    /// Its content's bytes.
    pub(crate) len: u32,
    pub(crate) body: Body,
    pub(crate) accepted_at: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) options: SendOptions,
    /// Its first block, once that was cut.
    pub(crate) first_block: Option<u64>,
    /// Its place on an ordered stream, once that is fixed.
    pub(crate) sequence: Option<u64>,
    /// 1 - the predicted probability of missing the deadline.
    pub(crate) predicted_on_time: f64,
    pub(crate) course: Course,
}

/// Whether a message makes way for others of its stream, and to what place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// By its deadline.
    #[default]
    Due,
    /// It may not keep it: one lifetime later.
    Postponed,
    /// It cannot keep it any more: where those without one stand.
    TooLate,
}

/// What has become of a message so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Course {
    /// When its first symbol left.
    pub(crate) first_sent_at: Option<Instant>,
    /// What became of its symbols, as far as that says why it is late.
    pub(crate) chances: Chances,
    /// A symbol of it that would have been in time had to wait for the window or the pacer.
    pub(crate) was_held: bool,
    pub(crate) urgency: Urgency,
    /// The latest arrival among its blocks, and how well it is known.
    pub(crate) arrival: Option<(Instant, core::time::Duration)>,
}

impl OutgoingMessage {
    /// Whether something of it waits to be cut into a block, and can be.
    pub(crate) fn is_cuttable(&self) -> bool {
        self.fate_sends()
            && match &self.body {
                Body::Whole(_) => true,
                Body::Large(large) => large.is_cuttable(),
                Body::Cut => false,
            }
    }

    /// Whether all of it is in blocks.
    pub(crate) fn is_all_cut(&self) -> bool {
        match &self.body {
            Body::Whole(_) => false,
            Body::Large(large) => large.is_all_cut(),
            Body::Cut => true,
        }
    }

    /// Whether symbols of it are still to be sent.
    pub(crate) const fn fate_sends(&self) -> bool {
        matches!(self.fate, Fate::Going | Fate::Void)
    }

    /// Whether what is lost of it is to be sent again although no deadline asks for it.
    pub(crate) const fn is_repaired(&self) -> bool {
        self.fate_sends() && self.delivery.is_reliable()
    }

    /// Whether what arrives then is in time.
    pub(crate) fn is_in_time(&self, arrives: Instant) -> bool {
        self.deadline.is_none_or(|deadline| arrives <= deadline)
    }

    /// When it is given up, if it is to be.
    pub(crate) fn drop_at(&self) -> Option<Instant> {
        let is_dropped = self.options.when_late == WhenLate::Drop || !self.delivery.is_reliable();
        self.deadline.filter(|_| is_dropped)
    }

    /// What counts as held for it until it has its outcome. Larger messages have bounds of their own.
    pub(crate) const fn held(&self) -> Held {
        Held {
            messages: 1,
            bytes: match &self.body {
                Body::Whole(_) | Body::Cut => self.len,
                Body::Large(_) => 0,
            },
        }
    }

    /// Bytes of content held here besides blocks.
    pub(crate) fn held_here(&self) -> usize {
        match &self.body {
            Body::Whole(data) => data.len(),
            Body::Large(large) => large.held_here(),
            Body::Cut => 0,
        }
    }

    /// Its blocks that are on their way.
    pub(crate) fn live_blocks(&self) -> Vec<u64> {
        match &self.body {
            Body::Large(large) => large.live_blocks().collect(),
            _ => self.first_block.into_iter().collect(),
        }
    }
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
    /// Bytes of messages of one block, and of content that was appended and is not cut yet. What is cut of larger messages has
    /// a bound of its own, [`LARGE_BYTES_MAX`]: it takes no room from small ones.
    held_bytes: usize,
    /// Bytes of large messages that were copied when they were accepted.
    content_bytes: usize,
    next_message: u64,
    /// Messages of several blocks that have begun, and what the receiver may hold of them.
    large_in_progress: usize,
    large_burden: usize,
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
        self.index.len() + count <= BLOCK_WINDOW as usize && in_doubt <= BLOCKS_AHEAD_MAX
    }

    pub(crate) fn on_block_acked(&mut self, number: u64) {
        self.newest_acked = self.newest_acked.max(number);
    }

    pub(crate) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    pub(crate) const fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    pub(crate) fn messages(&self) -> usize {
        self.messages.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.len == 0
    }

    /// Takes a message in, and gives it its id.
    pub(crate) fn insert_message(&mut self, message: OutgoingMessage) -> (u32, MessageId) {
        let count = self.next_message;
        self.next_message += 1;
        self.held_bytes += message.held_here();
        if let Body::Large(large) = &message.body {
            self.content_bytes += large.owned_bytes();
        }
        let slot = self.messages.insert(message);
        // A session holds far fewer messages than there are places in an id.
        let id = MessageId::new(count, slot as u16);
        if let Some(message) = self.messages.get_mut(slot) {
            message.id = id;
        }
        (slot, id)
    }

    /// The id of the next message, but for its place.
    pub(crate) const fn next_id(&self) -> MessageId {
        MessageId::new(self.next_message, u16::MAX)
    }

    /// An id for a message that has its outcome at once.
    pub(crate) const fn pass_id(&mut self) -> MessageId {
        let id = self.next_id();
        self.next_message += 1;
        id
    }

    /// Where a message is, if it has no outcome yet.
    pub(crate) fn find(&self, id: MessageId) -> Option<u32> {
        let slot = u32::from(id.place());
        self.messages
            .get(slot)
            .is_some_and(|message| message.id == id)
            .then_some(slot)
    }

    /// Takes the content of a message of one block.
    pub(crate) fn take_whole(&mut self, slot: u32) -> Option<Vec<u8>> {
        let message = self.messages.get_mut(slot)?;
        match core::mem::replace(&mut message.body, Body::Cut) {
            Body::Whole(data) => {
                self.held_bytes -= data.len();
                Some(data)
            }
            other => {
                message.body = other;
                None
            }
        }
    }

    /// Changes the content of a larger message, and keeps account of what is held.
    pub(crate) fn with_large<R>(
        &mut self,
        slot: u32,
        f: impl FnOnce(&mut Large) -> R,
    ) -> Option<R> {
        let Some(Body::Large(large)) = self.messages.get_mut(slot).map(|message| &mut message.body)
        else {
            return None;
        };
        let (held, burden) = (large.held_here(), large.burden());
        let was_in_progress = large.has_begun();
        let result = f(large);
        self.held_bytes = self.held_bytes + large.held_here() - held;
        self.large_burden = self.large_burden + large.burden() - burden;
        self.large_in_progress += usize::from(large.has_begun() && !was_in_progress);
        Some(result)
    }

    /// Whether the receiver surely has room for `len` more bytes of larger messages. The only one always goes on.
    pub(crate) const fn has_room_for_large(&self, len: usize) -> bool {
        self.large_burden == 0 || self.large_burden + len <= LARGE_BYTES_MAX
    }

    /// The first blocks of larger messages that are on their way. O(messages) if there are any.
    pub(crate) fn large_in_progress(&self) -> Vec<u64> {
        if self.large_in_progress == 0 {
            return Vec::new();
        }
        let messages = self.messages.slots.iter().filter_map(|slot| match slot {
            Slot::Taken(message) => Some(message),
            _ => None,
        });
        messages
            .filter(|message| matches!(message.body, Body::Large(_)))
            .filter_map(|message| message.first_block)
            .collect()
    }

    /// Whether one more larger message may begin, when the receiver has not heard yet that `untold` were given up.
    pub(crate) const fn has_large_place(&self, untold: usize) -> bool {
        self.large_in_progress + untold < LARGE_IN_PROGRESS_MAX
    }

    /// Adds the next block; its number must be [`Outbox::next_block`].
    pub(crate) fn insert_block(&mut self, block: Block) {
        debug_assert_eq!(
            block.number,
            self.next_block(),
            "blocks are numbered without gaps"
        );
        self.held_bytes += self.counted(&block);
        let slot = self.blocks.insert(block);
        self.index.push_back(slot);
    }

    /// Bytes of a block that count as held; its message is there.
    fn counted(&self, block: &Block) -> usize {
        match self
            .messages
            .get(block.message)
            .map(|message| &message.body)
        {
            Some(Body::Large(_)) => 0,
            _ => block.symbols.data.len(),
        }
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
        self.held_bytes -= self.counted(&block);
        Some(block)
    }

    /// Takes a message out for good; its blocks must be gone.
    pub(crate) fn remove_message(&mut self, slot: u32) -> Option<OutgoingMessage> {
        let message = self.messages.remove(slot)?;
        self.held_bytes -= message.held_here();
        if let Body::Large(large) = &message.body {
            self.content_bytes -= large.owned_bytes();
            self.large_burden -= large.burden();
            self.large_in_progress -= usize::from(large.has_begun());
        }
        Some(message)
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
