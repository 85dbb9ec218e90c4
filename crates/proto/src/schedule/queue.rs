//! What one stream has to send, in its order: the more important first, then the earlier deadline, then the earlier message.

use alloc::collections::VecDeque;

use crate::time::Instant;

/// What an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// A block with symbols to send.
    Block(u64),
    /// A message (by its slot) of which a block is to be cut. After its blocks: what was begun goes on first.
    Message(u32),
}

impl Item {
    pub(crate) const fn is_block(self) -> bool {
        matches!(self, Self::Block(_))
    }
}

/// Something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// 255 - importance.
    pub(crate) unimportance: u8,
    /// The deadline by which it is ordered; `NO_DEADLINE` on streams whose order is fixed.
    pub(crate) rank: Instant,
    /// The message's id: its position.
    pub(crate) position: u64,
    pub(crate) item: Item,
    /// Its deadline.
    pub(crate) deadline: Instant,
    /// The message has a deadline, or had one and is too late for it.
    pub(crate) is_live: bool,
    /// About so many bytes are to be sent for it.
    pub(crate) bytes: u32,
    /// Of them, those that are needed even if none is lost.
    pub(crate) needed_bytes: u32,
}

impl Entry {
    /// Whether it stands for the same as another.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// What the order of sending goes by; no two entries of a stream have it in common.
    const fn key(&self) -> (u8, Instant, u64, Item) {
        (self.unimportance, self.rank, self.position, self.item)
    }
}

/// Entries of one stream, sorted.
#[derive(Default)]
pub(super) struct Queue(VecDeque<Entry>);

impl Queue {
    pub(super) fn push(&mut self, entry: Entry) {
        // Mostly at the end: deadlines of one kind of message follow each other.
        let after = self
            .0
            .iter()
            .rev()
            .take_while(|other| other.key() > entry.key())
            .count();
        self.0.insert(self.0.len() - after, entry);
    }

    /// Takes out the entry of the same key, as it was put in.
    pub(super) fn remove(&mut self, entry: &Entry) -> Option<Entry> {
        let at = self.0.binary_search_by_key(&entry.key(), Entry::key).ok()?;
        self.0.remove(at)
    }

    /// The first of `depth` entries that fits; `left` counts those that may still be looked at.
    pub(super) fn find(
        &self,
        depth: usize,
        left: &mut usize,
        fits: &mut impl FnMut(&Entry) -> bool,
    ) -> Option<Entry> {
        for entry in self.0.iter().take(depth.min(*left)) {
            *left -= 1;
            if fits(entry) {
                return Some(*entry);
            }
        }
        None
    }

    pub(super) fn first(&self) -> Option<&Entry> {
        self.0.front()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn trim(&mut self) {
        self.0.shrink_to_fit();
    }
}
