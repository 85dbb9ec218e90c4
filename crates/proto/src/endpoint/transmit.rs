//! Whose datagram is next: sessions in the order of their changes, or, while the way out is short, in the coordinator's line.

use core::time::Duration;

use super::{Endpoint, Slot, Transmit, Uplink};
use crate::limits::UDP_IP_HEADER;
use crate::time::Instant;

/// Acknowledgements wait for a part of a frame at most.
const FRAME_PART: u32 = 4;

impl Endpoint {
    /// From now on acknowledgements wait for something to go with, until [`Endpoint::let_answers_go`]: a loop that sends what it has made of a look `within` some time sends one
    /// datagram then, not two. They do not wait where that is more than a quarter of the loop's frame: what comes waits half of one on average for being seen at all.
    pub fn keep_answers(&mut self, within: Duration) {
        let frame = self.commons.experience.timer_lag.get().before_end();
        self.commons.keeps_answers = within <= frame / FRAME_PART;
    }

    /// Acknowledgements leave by themselves again: those that nothing has taken along by the next [`Endpoint::poll_transmit`]. Whether there were any to keep.
    /// O(sessions that kept one).
    pub fn let_answers_go(&mut self) -> bool {
        self.commons.keeps_answers = false;
        let has_kept = !self.answers_kept.is_empty();
        let mut kept = core::mem::take(&mut self.answers_kept);
        for index in kept.drain(..) {
            if let Some(entry) = self.table.entry_mut(index) {
                entry.keeps_answer = false;
            }
            self.queue_transmit(index);
        }
        self.answers_kept = kept;
        has_kept
    }

    /// The next datagram to send, written to `buffer` (at least [`crate::limits::MTU_MAX`] bytes).
    ///
    /// Datagrams of one session follow each other, so that equal ones can be handed to the kernel together.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        if buffer.len() < usize::from(crate::limits::MTU_MAX) {
            return None;
        }
        if let Some(transmit) = self.admissions.poll_transmit(buffer) {
            return Some(transmit);
        }
        loop {
            // While sessions wait in line, newcomers send no symbols before they have got in line.
            let is_alone = match self.config.uplink {
                Uplink::Unlimited => true,
                Uplink::Unknown => self.table.len() == 1,
                Uplink::BytesPerSecond(_) => false,
            };
            let is_free =
                is_alone || (!self.coordinator.is_waiting() && self.coordinator.may_send(now));
            let Some(&index) = self.transmit_queue.front() else {
                break;
            };
            let (transmit, is_done) = self.transmit_from(now, index, is_free, buffer);
            if is_done {
                self.transmit_queue.pop_front();
                if let Some(entry) = self.table.entry_mut(index) {
                    entry.wants_transmit = false;
                }
                self.line_up(now, index, true);
                self.settle(index);
            }
            if transmit.is_some() {
                return transmit;
            }
        }
        while self.coordinator.is_waiting() && self.coordinator.may_send(now) {
            let Some(index) = self.coordinator.next() else {
                break;
            };
            if let Some(entry) = self.table.entry_mut(index) {
                entry.is_in_line = false;
            }
            let (transmit, _) = self.transmit_from(now, index, true, buffer);
            // One that had nothing after all would have nothing again: what changes that puts it back.
            if transmit.is_some() {
                self.line_up(now, index, false);
            }
            self.settle(index);
            if transmit.is_some() {
                return transmit;
            }
        }
        self.refresh_timers();
        None
    }

    /// A session that has symbols to send, and may by its own window and pace, waits for its turn.
    fn line_up(&mut self, now: Instant, index: u32, is_new: bool) {
        let Some(entry) = self.table.entry_mut(index) else {
            return;
        };
        let Slot::Session(session) = &mut entry.slot else {
            return;
        };
        if entry.is_in_line {
            return;
        }
        if let Some(pending) = session.poll_pending(now, is_new) {
            entry.is_in_line = true;
            self.coordinator.wait(index, pending);
        }
    }

    /// The next datagram of a session, and whether there is none after it. `has_budget`: it may hold symbols.
    fn transmit_from(
        &mut self,
        now: Instant,
        index: u32,
        has_budget: bool,
        buffer: &mut [u8],
    ) -> (Option<Transmit>, bool) {
        let Some(entry) = self.table.entry_mut(index) else {
            return (None, true);
        };
        let (transmit, is_done) = match &mut entry.slot {
            Slot::Session(session) => {
                let mut shared = self.commons.share(&self.config, has_budget);
                let leaving = session.poll_transmit(now, buffer, &mut shared);
                let is_done = leaving.is_none() || session.has_nothing_to_send(now);
                if let Some(leaving) = leaving.as_ref().filter(|left| left.is_eliciting) {
                    let bytes = leaving.transmit.len + UDP_IP_HEADER;
                    self.coordinator.on_sent(bytes);
                }
                if self.commons.keeps_answers && session.owes_answer() && !entry.keeps_answer {
                    entry.keeps_answer = true;
                    self.answers_kept.push(index);
                }
                (leaving.map(|left| left.transmit), is_done)
            }
            Slot::Connecting(connecting) => {
                let transmit = connecting.poll_transmit(now, buffer);
                (transmit, transmit.is_none())
            }
            Slot::Free => (None, true),
        };
        // What begins may supersede another message, and what is cut may make room.
        self.announce_events(index);
        (transmit, is_done)
    }
}
