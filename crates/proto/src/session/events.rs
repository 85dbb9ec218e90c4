//! Events that the application has not taken yet.

use alloc::collections::VecDeque;

use super::{Event, Held};
use crate::StreamId;
use crate::limits::{EVENTS_MAX, RECEIVE_MAX};

#[derive(Default)]
pub(super) struct Events {
    queue: VecDeque<Event>,
    /// Bytes of messages in it.
    content_bytes: usize,
    /// What has been taken, and is kept by whoever takes it for the application.
    kept: Held,
    /// Those of them that tell of what was sent, and how the session is.
    others: usize,
    /// The application takes no messages of streams below this number for now; all other events go on.
    held_below: Option<StreamId>,
    /// The last event is there: nothing is held any more, since nothing follows.
    is_over: bool,
    /// Sixteenths of what is held for the peer, when last looked.
    filled: u8,
}

impl Events {
    pub(super) fn push(&mut self, event: Event) {
        self.content_bytes += event.content_len();
        self.others += usize::from(!event.is_content());
        if matches!(event, Event::Closed { .. }) {
            (self.is_over, self.kept) = (true, Held::default());
        }
        self.queue.push_back(event);
    }

    /// The next. O(events) while messages are held.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = match self.held_below.filter(|_| !self.is_over) {
            None => self.queue.pop_front()?,
            Some(below) => {
                let is_held = |event: &Event| event.content_of().is_some_and(|of| of < below);
                let position = self.queue.iter().position(|event| !is_held(event))?;
                self.queue.remove(position)?
            }
        };
        self.content_bytes -= event.content_len();
        self.others -= usize::from(!event.is_content());
        Some(event)
    }

    /// Of streams below this number; None: of none.
    pub(super) const fn hold_messages(&mut self, below: Option<StreamId>) {
        self.held_below = below;
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Events that are no messages.
    pub(super) const fn others(&self) -> usize {
        self.others
    }

    /// Bytes of messages that wait here.
    pub(super) const fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    /// What was taken and is kept elsewhere.
    pub(super) const fn kept(&self) -> Held {
        self.kept
    }

    /// So much is kept now. Once all is over it does not count: nothing can be held back any more.
    pub(super) const fn keep(&mut self, kept: Held) {
        if !self.is_over {
            self.kept = kept;
        }
    }

    /// Whether the peer had better send less: half of what is held for it waits here, or more, and another sixteenth since this was last asked. (A mark for
    /// every packet would have the peer all but stop, at a moment's pause of the application.)
    pub(super) fn has_become_fuller(&mut self) -> bool {
        let sixteenths = |part: usize, whole: usize| (16 * part / whole).min(16) as u8;
        let filled = sixteenths(self.content_bytes, RECEIVE_MAX);
        let filled = filled.max(sixteenths(self.len(), EVENTS_MAX));
        let before = core::mem::replace(&mut self.filled, filled);
        filled >= 8 && filled > before
    }

    /// Gives back what the last burst needed.
    pub(super) fn trim(&mut self) {
        self.queue.shrink_to_fit();
    }
}
