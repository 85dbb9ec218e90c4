//! What could become of one message, with all fates known.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use punctual_proto::limits;

use crate::channel::{Direction, Foresight, PathSpec, Queue, SLOT_US};
use crate::world::Moment;

/// Packets in a millisecond: more than any policy sends of a message in a round, and enough for chance to mean nothing.
const PACKETS_A_SLOT: u64 = 256;

/// Knows one direction of one path. Messages are asked about in order of time.
pub(crate) struct Genie {
    foresight: Foresight,
    /// The last run of slots in which nothing gets through, as far as it was looked at: many messages may fall into one.
    dead: Range<u64>,
}

/// What must arrive of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parcel {
    /// Packets.
    pub(crate) symbols: usize,
    /// Bytes of each, with headers.
    pub(crate) packet_bytes: usize,
}

impl Parcel {
    /// What must arrive of a message of so many bytes, in so many symbols or (None) as few as fit.
    pub(crate) fn of(message_bytes: usize, symbols: Option<u8>, datagram_max: u16) -> Self {
        let bytes = message_bytes.max(1);
        let fewest = bytes.div_ceil(usize::from(datagram_max).max(1));
        let asked = symbols.map_or(fewest, usize::from).max(fewest);
        // As the protocol does it: fewer may do once each is rounded up to whole bytes.
        let symbols = bytes.div_ceil(bytes.div_ceil(asked));
        Self {
            symbols,
            packet_bytes: message_bytes.div_ceil(symbols) + limits::UDP_IP_HEADER,
        }
    }
}

/// What no sender can beat with one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Late whatever is sent.
    pub(crate) is_hopeless: bool,
    /// Of its symbols.
    pub(crate) symbols: u16,
    /// So many are lost when each is sent once, at its instant.
    pub(crate) lost: u16,
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
    /// For what travels in this direction of the `path`th path, which `seed` makes of `network`.
    ///
    /// # Panics
    /// If [`PathSpec::check`] refuses the network: check what comes from users first.
    pub(crate) fn new(network: &PathSpec, direction: Direction, seed: u64, path: u32) -> Self {
        let channel = match direction {
            Direction::Forward => &network.forward,
            Direction::Backward => &network.backward,
        };
        Self {
            foresight: Foresight::new(Arc::clone(channel), seed, path, direction),
            dead: 0..0,
        }
    }

    /// The limit of a message of that instant.
    pub(crate) fn limit(&mut self, at: Moment, deadline: Duration, parcel: Parcel) -> Limit {
        Limit {
            is_hopeless: !self.is_on_time(at.0, deadline, parcel),
            symbols: parcel.symbols as u16,
            lost: self.first_lost(at.0, parcel.symbols) as u16,
        }
    }

    /// How many symbols are lost of those sent back to back at a time, each the first of its kind.
    pub(crate) fn first_lost(&mut self, at_ns: u64, symbols: usize) -> u64 {
        let slot = at_ns / 1000 / SLOT_US;
        let indices = 0..symbols as u64;
        indices
            .filter(|index| self.foresight.is_lost(slot, *index))
            .count() as u64
    }

    /// Whether a message of that instant can be brought through by its deadline.
    pub(crate) fn is_on_time(&mut self, at_ns: u64, deadline: Duration, parcel: Parcel) -> bool {
        let at_us = at_ns / 1000;
        let deadline_us = deadline.as_micros() as u64;
        let mut attempt = Attempt {
            missing: parcel.symbols,
            queue: self.foresight.idle_queue(),
            packet_bytes: parcel.packet_bytes,
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
