//! What all sessions together hold for their peers, and who has to go when that is too much.

use super::routing::{Entry, Slot};
use super::{Endpoint, SessionId};
use crate::limits::RECEIVE_FLOOR;
use crate::message::Share;
use crate::session::{CloseCode, Held};
use crate::time::Instant;

/// What all sessions hold, as of their last changes.
pub(super) struct EndpointRoom {
    unfinished_max: usize,
    held: Held,
}

impl EndpointRoom {
    pub(super) fn new(unfinished_max: usize) -> Self {
        Self {
            unfinished_max,
            held: Held::default(),
        }
    }

    /// What each session may hold: half of what nobody holds yet, of the half of the room (the dynamic thresholds of Choudhury and Hahne 1998, for buffers that a
    /// switch's ports share). However many take as much as they can, something is left for who comes.
    pub(super) fn share(&self) -> Share {
        let free = (self.unfinished_max / 2).saturating_sub(self.held.all);
        Share {
            fair_bytes: (free / 2).max(RECEIVE_FLOOR),
            admits_next: self.held.all < self.unfinished_max,
        }
    }

    /// Bytes that are held.
    pub(super) const fn held_bytes(&self) -> usize {
        self.held.all
    }

    /// Counts what a session holds now.
    pub(super) fn count(&mut self, entry: &mut Entry) {
        let held = match &entry.slot {
            Slot::Session(session) => session.held(),
            Slot::Connecting(_) | Slot::Free => Held::default(),
        };
        let before = core::mem::replace(&mut entry.held, held);
        self.held.all = self.held.all - before.all + held.all;
        self.held.unfinished = self.held.unfinished - before.unfinished + held.unfinished;
    }
}

impl Endpoint {
    /// Says what is kept of a session's events by whoever takes them for its application: bytes of messages that are not whole yet, and of whole ones that
    /// wait to be taken. They count as if they were still here (see [`Capacity::received_bytes_max`](crate::Capacity::received_bytes_max)).
    pub fn set_kept(
        &mut self,
        now: Instant,
        session: SessionId,
        unfinished_bytes: usize,
        whole_bytes: usize,
    ) {
        let Some(entry) = self.table.named_entry_mut(session) else {
            return;
        };
        if let Slot::Session(session) = &mut entry.slot {
            session.set_kept(Held {
                unfinished: unfinished_bytes,
                all: unfinished_bytes + whole_bytes,
            });
            self.room.count(entry);
            self.make_room(now);
        }
    }

    /// Ends the sessions that hold most, down to seven eighths of what all may hold: so that the search, O(slots) for each, comes after as many bytes.
    pub(super) fn make_room(&mut self, now: Instant) {
        if self.room.held.unfinished <= self.room.unfinished_max {
            return;
        }
        while self.room.held.unfinished > self.room.unfinished_max / 8 * 7 {
            let Some((session, 1..)) = self.table.holds_most() else {
                return;
            };
            self.stats.closed_for_room += 1;
            let reason = "what was sent and is not complete is too much for the endpoint, together with what others sent";
            self.close(now, session, CloseCode::NO_ROOM, reason);
        }
    }
}
