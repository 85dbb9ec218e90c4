//! What could become of one message, with all fates known.

use std::ops::Range;
use std::time::Duration;

use crate::channel::{Foresight, Queue, SLOT_US};

/// Packets in a millisecond: more than any policy sends of a message in a round, and enough for chance to mean nothing.
const PACKETS_A_SLOT: u64 = 256;

/// Knows one direction of one path. Messages are asked about in order of time.
pub(super) struct Genie {
    foresight: Foresight,
    symbols: usize,
    packet_bytes: usize,
    /// The last run of slots in which nothing gets through, as far as it was looked at: many messages may fall into one.
    dead: Range<u64>,
}

/// A message while it is looked at.
struct Attempt {
    /// Packets that must still arrive.
    missing: usize,
    queue: Option<Queue>,
    packet_bytes: usize,
    due_us: u64,
}

impl Genie {
    /// `symbols` packets of `packet_bytes` must arrive of each message.
    pub(super) const fn new(foresight: Foresight, symbols: usize, packet_bytes: usize) -> Self {
        Self {
            foresight,
            symbols,
            packet_bytes,
            dead: 0..0,
        }
    }

    /// How many symbols are lost of those sent back to back at a time, each the first of its kind.
    pub(super) fn first_lost(&mut self, at_ns: u64) -> u64 {
        let slot = at_ns / 1000 / SLOT_US;
        let indices = 0..self.symbols as u64;
        indices
            .filter(|index| self.foresight.is_lost(slot, *index))
            .count() as u64
    }

    /// Whether a message of that instant can be brought through by its deadline.
    pub(super) fn is_on_time(&mut self, at_ns: u64, deadline: Duration) -> bool {
        let at_us = at_ns / 1000;
        let deadline_us = deadline.as_micros() as u64;
        let mut attempt = Attempt {
            missing: self.symbols,
            queue: self.foresight.idle_queue(),
            packet_bytes: self.packet_bytes,
            due_us: at_ns.div_ceil(1000).saturating_add(deadline_us),
        };
        let first = at_us / SLOT_US;
        if !self.is_dead(first) && attempt.fire(&mut self.foresight, first, at_us) {
            return true;
        }
        // Looks ahead on a copy: the next message is asked about from its own instant on.
        let mut ahead = self.foresight.clone();
        let mut slot = first + 1;
        while slot * SLOT_US <= attempt.due_us {
            if self.dead.contains(&slot) {
                slot = self.dead.end;
                continue;
            }
            if ahead.is_dead(slot) {
                self.note_dead(slot);
            } else if attempt.fire(&mut ahead, slot, slot * SLOT_US) {
                return true;
            }
            slot += 1;
        }
        false
    }

    fn is_dead(&mut self, slot: u64) -> bool {
        if self.dead.contains(&slot) {
            return true;
        }
        let is_dead = self.foresight.is_dead(slot);
        if is_dead {
            self.note_dead(slot);
        }
        is_dead
    }

    fn note_dead(&mut self, slot: u64) {
        if self.dead.end == slot {
            self.dead.end += 1;
        } else {
            self.dead = slot..slot + 1;
        }
    }
}

impl Attempt {
    /// Sends all it may in a slot from `from_us` on; whether the message is through then.
    fn fire(&mut self, foresight: &mut Foresight, slot: u64, from_us: u64) -> bool {
        let until_us = (slot * SLOT_US + SLOT_US - 1).min(self.due_us);
        let instants = [from_us, until_us];
        let may_arrive = |at_us: &u64| at_us + foresight.least_delay_us(*at_us) <= self.due_us;
        if !instants.iter().any(may_arrive) {
            return false;
        }
        for index in 0..PACKETS_A_SLOT {
            if foresight.is_lost(slot, index) {
                continue;
            }
            let arrives = |at_us: &u64| self.send(*at_us, foresight.delay_us(*at_us, index));
            if instants.iter().any(arrives) {
                self.missing -= 1;
                if self.missing == 0 {
                    return true;
                }
            } else if self.queue.is_some() {
                // Behind those that were sent, no further one may be in time, however fast.
                let may_arrive = |at_us: &u64| {
                    self.queue_after(*at_us, foresight.least_delay_us(*at_us))
                        .is_some()
                };
                if !instants.iter().any(may_arrive) {
                    return false;
                }
            }
        }
        false
    }

    /// Whether a packet that would take `delay_us` besides its time in the queue is in time; only then it is sent.
    fn send(&mut self, at_us: u64, delay_us: u64) -> bool {
        if self.queue.is_none() {
            return at_us + delay_us <= self.due_us;
        }
        let Some(after) = self.queue_after(at_us, delay_us) else {
            return false;
        };
        self.queue = Some(after);
        true
    }

    /// The queue with one more packet in it, if that is in time.
    fn queue_after(&self, at_us: u64, delay_us: u64) -> Option<Queue> {
        let mut after = self.queue.clone()?;
        let wait_us = after.wait_us(at_us, self.packet_bytes)?;
        (at_us + wait_us + delay_us <= self.due_us).then_some(after)
    }
}
