//! Connection id -> session, without a hash: the id holds the index of the slot and a generation.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::SessionId;
use super::connecting::Connecting;
use crate::session::{Held, Session};
use crate::time::Instant;
use crate::wire::ConnectionId;

/// What a slot holds.
pub(super) enum Slot {
    Free,
    Connecting(Box<Connecting>),
    Session(Box<Session>),
}

pub(super) struct Entry {
    pub(super) id: ConnectionId,
    /// Of its session, as [`SessionId`] counts.
    number: u64,
    pub(super) slot: Slot,
    pub(super) wants_transmit: bool,
    pub(super) wants_event: bool,
    /// It waits for the uplink.
    pub(super) is_in_line: bool,
    /// When the session wants to be woken, as of when it last had nothing to send.
    pub(super) due: Option<Instant>,
    /// Something has happened since the last look at whether the session is quiet.
    pub(super) is_busy: bool,
    /// The session may hold memory that it has no use for.
    pub(super) is_slack: bool,
    /// The session has an acknowledgement that waits for the end of the frame.
    pub(super) keeps_answer: bool,
    /// What the session holds for its peer, as of the last change.
    pub(super) held: Held,
}

impl Entry {
    pub(super) const fn name(&self) -> SessionId {
        SessionId {
            number: self.number,
            id: self.id,
        }
    }
}

/// The slots.
pub(super) struct Table {
    thread: u8,
    /// Of each slot at first.
    generation: u8,
    max: usize,
    entries: Vec<Entry>,
    /// Free slots, the longest free first, so that ids are used again late.
    free: alloc::collections::VecDeque<u32>,
    len: usize,
    next_number: u64,
}

impl Table {
    /// `generation`: that of each slot at first. Whoever cannot see packets does not know it, so that an id is less easily guessed.
    pub(super) const fn new(thread: u8, generation: u8, max: usize) -> Self {
        Self {
            thread,
            generation,
            max,
            entries: Vec::new(),
            free: alloc::collections::VecDeque::new(),
            len: 0,
            next_number: 0,
        }
    }

    pub(super) const fn next_number(&self) -> u64 {
        self.next_number
    }

    /// The next session is this one: those before were of another table.
    pub(super) const fn count_from(&mut self, number: u64) {
        self.next_number = number;
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Sessions that there is still room for.
    pub(super) const fn free_slots(&self) -> usize {
        self.max - self.len
    }

    /// A new id with an empty slot.
    pub(super) fn reserve(&mut self) -> Option<ConnectionId> {
        if self.free_slots() == 0 {
            return None;
        }
        self.len += 1;
        let number = self.next_number;
        self.next_number += 1;
        // A slot rests until 256 others have been freed after it, unless room is short.
        let rested = if self.free.len() > 256 || self.entries.len() >= self.max {
            self.free.pop_front()
        } else {
            None
        };
        if let Some(index) = rested {
            // Its generation is new since it was freed.
            let entry = self.entries.get_mut(index as usize)?;
            entry.number = number;
            return Some(entry.id);
        }
        let index = self.entries.len() as u32;
        let id = ConnectionId::from_parts(self.thread, self.generation, index);
        self.entries.push(Entry {
            id,
            number,
            slot: Slot::Free,
            wants_transmit: false,
            wants_event: false,
            is_in_line: false,
            due: None,
            is_busy: false,
            is_slack: false,
            keeps_answer: false,
            held: Held::default(),
        });
        Some(id)
    }

    pub(super) fn fill(&mut self, id: ConnectionId, slot: Slot) {
        if let Some(entry) = self
            .entries
            .get_mut(id.index())
            .filter(|entry| entry.id == id)
        {
            entry.slot = slot;
        }
    }

    pub(super) fn free(&mut self, id: ConnectionId) {
        if let Some(entry) = self
            .entries
            .get_mut(id.index())
            .filter(|entry| entry.id == id)
        {
            entry.slot = Slot::Free;
            // A new generation at once, so that the old id finds nothing.
            entry.id = ConnectionId::from_parts(
                self.thread,
                ((id.0 >> 18) as u8).wrapping_add(1),
                id.index() as u32,
            );
            self.free.push_back(id.index() as u32);
            self.len -= 1;
        }
    }

    /// The name of whoever has this id now.
    pub(super) fn name(&self, id: ConnectionId) -> SessionId {
        let entry = self.entries.get(id.index());
        let number = entry.map_or(u64::MAX, |entry| entry.number);
        SessionId { number, id }
    }

    pub(super) fn named(&self, name: SessionId) -> Option<&Slot> {
        let entry = self.entries.get(name.id.index())?;
        (entry.name() == name).then_some(&entry.slot)
    }

    pub(super) fn named_mut(&mut self, name: SessionId) -> Option<(ConnectionId, &mut Slot)> {
        let entry = self.named_entry_mut(name)?;
        Some((entry.id, &mut entry.slot))
    }

    pub(super) fn named_entry_mut(&mut self, name: SessionId) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(name.id.index())?;
        (entry.name() == name).then_some(entry)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<(ConnectionId, &mut Slot)> {
        let entry = self
            .entries
            .get_mut(id.index())
            .filter(|entry| entry.id == id)?;
        Some((id, &mut entry.slot))
    }

    pub(super) fn entry_mut(&mut self, index: u32) -> Option<&mut Entry> {
        self.entries.get_mut(index as usize)
    }

    /// The first of which this is true. O(slots).
    pub(super) fn find(&self, is_it: impl Fn(&Slot) -> bool) -> Option<SessionId> {
        let entry = self.entries.iter().find(|entry| is_it(&entry.slot))?;
        Some(entry.name())
    }

    /// The session with the most that is unfinished, and how much that is. O(slots).
    pub(super) fn holds_most(&self) -> Option<(SessionId, usize)> {
        let most = (self.entries.iter()).max_by_key(|entry| entry.held.unfinished)?;
        Some((most.name(), most.held.unfinished))
    }

    /// Slots, free ones included.
    pub(super) const fn slots(&self) -> usize {
        self.entries.len()
    }

    /// Of all that is not free.
    pub(super) fn names(&self) -> impl Iterator<Item = SessionId> {
        let taken = |entry: &&Entry| !matches!(entry.slot, Slot::Free);
        self.entries.iter().filter(taken).map(Entry::name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.entries.iter().map(|entry| &entry.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    /// A regression: a generation was left out each time, and an id came back after 128 sessions instead of 256.
    #[test]
    fn an_id_comes_back_after_all_generations() {
        let mut table = Table::new(0, 200, 1);
        let mut ids = BTreeSet::new();
        for _ in 0..256 {
            let id = table.reserve().expect("it is free");
            assert!(ids.insert(id), "{id:?} after {}", ids.len());
            let name = table.name(id);
            assert!(table.named(name).is_some());
            table.free(id);
            assert!(table.named(name).is_none());
        }
    }

    /// A regression: whoever kept the handle of a session that was over had another one's, once as many had begun and ended as there are generations.
    #[test]
    fn a_name_does_not_come_back() {
        let mut table = Table::new(0, 0, 1);
        let id = table.reserve().expect("it is free");
        let name = table.name(id);
        table.free(id);
        let comes_back = (0..256).any(|_| {
            let next = table.reserve().expect("it is free");
            next == id || {
                table.free(next);
                false
            }
        });
        assert!(comes_back && table.named(name).is_none());
        assert!(table.named(table.name(id)).is_some());
    }
}
