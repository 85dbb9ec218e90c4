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
    /// Something of the message was cut before.
    pub(crate) is_begun: bool,
    /// About so many bytes are to be sent for it.
    pub(crate) bytes: u32,
    /// Of them, those that are needed even if none is lost.
    pub(crate) needed_bytes: u32,
}

impl Entry {
    /// Whether it stands for the same as another.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// What the order of sending goes by; no two entries of a stream have it in common.
    const fn key(&self) -> (u8, Instant, u64, Item) {
        (self.unimportance, self.rank, self.position, self.item)
    }
}

/// How far the schedule is searched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// For a packet's first symbol: [`DEPTH`] entries of each stream, and all that was begun. What waits for room to be begun may
    /// wait for what is behind it, however many they are.
    First,
    /// For what room is left: [`DEPTH`] entries of each stream, and at most [`SPARE_LOOKS`] of all.
    Spare,
}

/// Entries of each stream that are looked at.
const DEPTH: usize = 8;
/// Entries of all streams that are looked at for the spare room of a packet.
const SPARE_LOOKS: usize = 32;

impl Reach {
    /// Entries that may be looked at in all.
    pub(super) const fn looks(self) -> usize {
        match self {
            Self::First => usize::MAX,
            Self::Spare => SPARE_LOOKS,
        }
    }
}

/// Entries of one stream, sorted.
#[derive(Default)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    /// Those of them that were begun.
    begun: usize,
}

impl Queue {
    pub(super) fn push(&mut self, entry: Entry) {
        // Mostly at the end: deadlines of one kind of message follow each other.
        let after = self
            .entries
            .iter()
            .rev()
            .take_while(|other| other.key() > entry.key())
            .count();
        self.begun += usize::from(entry.is_begun);
        self.entries.insert(self.entries.len() - after, entry);
    }

    /// Takes out the entry of the same key, as it was put in.
    pub(super) fn remove(&mut self, entry: &Entry) -> Option<Entry> {
        let key = entry.key();
        let at = self.entries.binary_search_by_key(&key, Entry::key).ok()?;
        let entry = self.entries.remove(at)?;
        self.begun -= usize::from(entry.is_begun);
        Some(entry)
    }

    /// The first entry within reach that fits; `left` counts those that may still be looked at.
    pub(super) fn find(
        &self,
        reach: Reach,
        left: &mut usize,
        fits: &mut impl FnMut(&Entry) -> bool,
    ) -> Option<Entry> {
        let mut begun_left = match reach {
            Reach::First => self.begun,
            Reach::Spare => 0,
        };
        for (place, entry) in self.entries.iter().enumerate() {
            if (place >= DEPTH && begun_left == 0) || *left == 0 {
                return None;
            }
            if entry.is_begun {
                begun_left = begun_left.saturating_sub(1);
            } else if place >= DEPTH {
                continue;
            }
            *left -= 1;
            if fits(entry) {
                return Some(*entry);
            }
        }
        None
    }

    pub(super) fn first(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn trim(&mut self) {
        self.entries.shrink_to_fit();
    }
}
