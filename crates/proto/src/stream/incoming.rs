//! The receiver's side of streams: what order, supersession and sequence ask for once a message is complete.
//!
//! "Newer" is told by block numbers, which a sender gives out in the order in which it begins to send: on streams whose
//! messages supersede each other it never begins an older one after a newer one (PROTOCOL.md#streams). Only ordered
//! streams need a number of their own.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::limits::{BLOCK_WINDOW, ORDERED_MESSAGES_MAX, STREAMS_MAX};
use crate::wire::{Order, expand};

/// A message that is complete.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) stream: u16,
    pub(crate) order: Order,
    /// The number of its first block.
    pub(crate) first_block: u64,
    pub(crate) data: Vec<u8>,
}

/// What is to be done with a message, or with the first piece of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Hand it on.
    Now,
    /// It comes after one that is not there yet.
    Later,
    /// A newer one was handed on, or it was itself.
    Never,
    /// The peer broke the protocol.
    Malformed,
}

/// What waits for one before it.
enum Waiting {
    Message(Vec<u8>),
    Void,
}

#[derive(Default)]
struct Stream {
    /// The sequence number that is handed on next.
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// First block of the newest message handed on, plus one.
    newest: u64,
}

/// What the streams of the peer keep here.
#[derive(Default)]
pub(crate) struct Incoming {
    /// Ordered and sequenced streams, by number.
    streams: BTreeMap<u16, Stream>,
    /// First block of the newest message of each key that was handed on.
    keys: BTreeMap<(u16, u64), u64>,
    /// Keys to have before the old ones are looked for.
    keys_limit: usize,
    /// The newest first block of all of them.
    newest: u64,
    /// Bytes of messages that wait for one before them.
    waiting_bytes: usize,
}

/// Keys below which nobody looks for old ones.
const KEYS_LEAST: usize = 64;

impl Incoming {
    /// Bytes of messages that wait for one before them.
    pub(crate) const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    pub(crate) const fn is_waiting(&self) -> bool {
        self.waiting_bytes > 0
    }

    /// Says what to do with a message that begins with block `first_block`. With `is_taken`, it is handed on now if it may be.
    pub(crate) fn judge(&mut self, stream: u16, order: Order, first_block: u64) -> Verdict {
        debug_assert!(usize::from(stream) < STREAMS_MAX, "preambles are checked");
        match order {
            Order::None => Verdict::Now,
            Order::Sequence(truncated) | Order::Void(truncated) => {
                let entry = self.streams.entry(stream).or_default();
                let Some(ahead) = ahead(truncated, entry.next) else {
                    return Verdict::Never;
                };
                if ahead as usize >= ORDERED_MESSAGES_MAX {
                    return Verdict::Malformed;
                }
                if ahead == 0 {
                    Verdict::Now
                } else if entry.waiting.contains_key(&(entry.next + ahead)) {
                    Verdict::Never
                } else {
                    Verdict::Later
                }
            }
            Order::Newest => {
                let entry = self.streams.entry(stream).or_default();
                if first_block < entry.newest {
                    Verdict::Never
                } else {
                    Verdict::Now
                }
            }
            Order::Key(key) => match self.keys.get(&(stream, key)) {
                Some(&newest) if first_block < newest => Verdict::Never,
                _ => Verdict::Now,
            },
        }
    }

    /// Notes that a message has been handed on (or, when it comes in pieces, begins or ends to be).
    pub(crate) fn on_handed_on(&mut self, stream: u16, order: Order, first_block: u64) {
        match order {
            Order::None => {}
            Order::Sequence(_) | Order::Void(_) => {
                self.streams.entry(stream).or_default().next += 1;
            }
            Order::Newest => {
                let entry = self.streams.entry(stream).or_default();
                entry.newest = entry.newest.max(first_block + 1);
            }
            Order::Key(key) => {
                self.newest = self.newest.max(first_block);
                if self.keys.len() >= self.keys_limit.max(KEYS_LEAST) {
                    // Older blocks than those of the window are done for: nothing of them can come after this. (That of the newest, or a peer that
                    // completes old messages late would have ever more remembered.)
                    let floor = self.newest.saturating_sub(BLOCK_WINDOW);
                    self.keys.retain(|_, newest| *newest >= floor);
                    self.keys_limit = self.keys.len() * 2;
                }
                let newest = self.keys.entry((stream, key)).or_insert(first_block);
                *newest = (*newest).max(first_block);
            }
        }
    }

    /// Keeps a message until it is its turn.
    pub(crate) fn wait(&mut self, mut arrived: Arrived) {
        if arrived.data.capacity() - arrived.data.len() > 2 * WAITING_COST {
            // What waits costs about what it counts.
            arrived.data.shrink_to_fit();
        }
        let (truncated, waiting) = match arrived.order {
            Order::Sequence(truncated) => {
                self.waiting_bytes += arrived.data.len() + WAITING_COST;
                (truncated, Waiting::Message(arrived.data))
            }
            Order::Void(truncated) => {
                self.waiting_bytes += WAITING_COST;
                (truncated, Waiting::Void)
            }
            _ => return,
        };
        let entry = self.streams.entry(arrived.stream).or_default();
        let sequence = expand(u64::from(truncated), 16, entry.next);
        entry.waiting.insert(sequence, waiting);
    }

    /// The next message of an ordered stream whose turn it is now; empty voids are stepped over.
    pub(crate) fn next(&mut self, stream: u16) -> Option<Vec<u8>> {
        let entry = self.streams.get_mut(&stream)?;
        loop {
            let waiting = entry.waiting.remove(&entry.next)?;
            entry.next += 1;
            self.waiting_bytes -= WAITING_COST;
            if let Waiting::Message(data) = waiting {
                self.waiting_bytes -= data.len();
                return Some(data);
            }
        }
    }

    #[cfg(test)]
    fn keys(&self) -> usize {
        self.keys.len()
    }
}

/// What a waiting message counts besides its content, so that empty ones are bounded as well.
pub(super) const WAITING_COST: usize = 64;

/// How far a truncated sequence number lies ahead of the next one; `None` when it lies behind.
fn ahead(truncated: u16, next: u64) -> Option<u64> {
    let sequence = expand(u64::from(truncated), 16, next);
    sequence.checked_sub(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(incoming: &mut Incoming, order: Order, first_block: u64, byte: u8) -> Vec<u8> {
        let mut out = Vec::new();
        match incoming.judge(3, order, first_block) {
            Verdict::Now => {
                incoming.on_handed_on(3, order, first_block);
                if !matches!(order, Order::Void(_)) {
                    out.push(byte);
                }
                while let Some(data) = incoming.next(3) {
                    out.extend(data);
                }
            }
            Verdict::Later => incoming.wait(Arrived {
                stream: 3,
                order,
                first_block,
                data: alloc::vec![byte],
            }),
            Verdict::Never => {}
            Verdict::Malformed => panic!("an honest peer"),
        }
        out
    }

    /// Sequence numbers wrap: an ordered stream that lives for years.
    #[test]
    fn ordered_messages_wait_for_those_before_and_wrap() {
        let mut incoming = Incoming::default();
        let mut sent = 0u64;
        let mut handed_on = Vec::new();
        while sent < 200_000 {
            // Each group of five comes in another order, with a void and a duplicate in it.
            for offset in [3, 0, 4, 2, 1, 0] {
                let sequence = sent + offset;
                let order = if offset == 2 {
                    Order::Void(sequence as u16)
                } else {
                    Order::Sequence(sequence as u16)
                };
                handed_on.extend(arrive(&mut incoming, order, sequence, offset as u8));
            }
            assert_eq!(handed_on, [0, 1, 3, 4]);
            handed_on.clear();
            sent += 5;
        }
        assert!(!incoming.is_waiting());
    }

    #[test]
    fn a_sequence_number_far_ahead_is_malformed() {
        let mut incoming = Incoming::default();
        let far = ORDERED_MESSAGES_MAX as u16;
        assert_eq!(
            incoming.judge(0, Order::Sequence(far), 0),
            Verdict::Malformed
        );
        assert_eq!(
            incoming.judge(0, Order::Sequence(far - 1), 0),
            Verdict::Later
        );
    }

    #[test]
    fn what_is_older_than_what_was_handed_on_never_is() {
        let mut incoming = Incoming::default();
        assert_eq!(arrive(&mut incoming, Order::Newest, 5, 1), [1]);
        assert!(arrive(&mut incoming, Order::Newest, 4, 2).is_empty());
        assert_eq!(arrive(&mut incoming, Order::Newest, 6, 3), [3]);
        assert_eq!(arrive(&mut incoming, Order::Key(1), 9, 4), [4]);
        assert_eq!(arrive(&mut incoming, Order::Key(2), 8, 5), [5]);
        assert!(arrive(&mut incoming, Order::Key(1), 7, 6).is_empty());
    }

    /// Keys without end: what is remembered of them is bounded by the block window.
    #[test]
    fn keys_without_end_are_forgotten() {
        let mut incoming = Incoming::default();
        for block in 0..100_000 {
            assert_eq!(arrive(&mut incoming, Order::Key(block), block, 1), [1]);
            assert!(incoming.keys() <= 2 * BLOCK_WINDOW as usize + KEYS_LEAST);
        }
    }

    /// A regression: nothing was forgotten when an old message was complete at the moment at which keys are looked for, and twice as many were remembered after each.
    #[test]
    fn keys_are_forgotten_whichever_message_is_complete() {
        let mut incoming = Incoming::default();
        for block in 1000..200_000 {
            let is_looked_for = incoming.keys() >= incoming.keys_limit.max(KEYS_LEAST);
            let begun = if is_looked_for { block % 60 } else { block };
            incoming.on_handed_on(1, Order::Key(block), begun);
            assert!(incoming.keys() <= 2 * BLOCK_WINDOW as usize + KEYS_LEAST);
        }
    }
}
