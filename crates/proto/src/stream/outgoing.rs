//! The sender's side of streams: which there are, and what each remembers of its messages.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::incoming::WAITING_COST;
use super::promise::Promises;
use super::surprise::Surprise;
use super::{Delivery, MessageId, StreamConfig, StreamError, StreamId, StreamStats};
use crate::limits::{ORDERED_BYTES_MAX, ORDERED_MESSAGES_MAX, STREAMS_MAX};
use crate::time::{Instant, nanos};

/// A message of an ordered stream that has its place, from the oldest that is not resolved on.
struct Placed {
    bytes: u32,
    is_resolved: bool,
}

/// What is held for messages without an outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) messages: u32,
    /// Of messages of one block.
    pub(crate) bytes: u32,
}

impl Held {
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
        }
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(other.messages),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// A stream of one direction.
pub(crate) struct OutgoingStream {
    pub(crate) config: StreamConfig,
    /// It accepts messages.
    is_open: bool,
    /// Messages without an outcome.
    pub(crate) unresolved: Held,
    /// When the last message was accepted, and the usual time from one to the next.
    accepted_at: Option<Instant>,
    gap_us: u32,
    /// Of ordered streams: the sequence number of the first of `placed`.
    base: u64,
    placed: VecDeque<Placed>,
    /// Of `Latest`: the newest message of each key that has no outcome, sorted by key.
    newest: Vec<(u64, u32)>,
    /// Where the order of sending counts: messages that were begun and of whose content nothing is there, so that they are not
    /// in the schedule. Oldest first.
    unfilled: Vec<MessageId>,
    /// Messages that may be thinned, in parts of one: grows by each message's tolerance.
    thinning: f32,
    pub(crate) promises: Promises,
    pub(crate) surprise: Surprise,
    pub(crate) stats: StreamStats,
}

/// What may be thinned in one go. More would make a hole of what should be a lower level of detail.
const THINNING_MAX: f32 = 4.0;

impl OutgoingStream {
    fn new(config: StreamConfig) -> Self {
        Self {
            config,
            is_open: true,
            unresolved: Held::default(),
            accepted_at: None,
            gap_us: u32::MAX,
            base: 0,
            placed: VecDeque::new(),
            newest: Vec::new(),
            unfilled: Vec::new(),
            thinning: 0.0,
            promises: Promises::default(),
            surprise: Surprise::default(),
            stats: StreamStats::default(),
        }
    }

    /// A message is accepted.
    fn note_pace(&mut self, now: Instant) {
        let Some(last) = self.accepted_at.replace(now) else {
            return;
        };
        let gap_us = u32::try_from(nanos(now.since(last)) / 1000).unwrap_or(u32::MAX);
        self.gap_us = match self.gap_us {
            u32::MAX => gap_us,
            usual => usual - usual / 4 + gap_us / 4,
        };
    }

    /// How long a message is of use before the next one takes its place, as they usually follow each other. `None` where nothing does that.
    pub(crate) fn superseded_after(&self) -> Option<Duration> {
        let is_superseded = self.config.delivery == Delivery::UnreliableSequenced;
        (is_superseded && self.gap_us < u32::MAX).then(|| Duration::from_micros(self.gap_us.into()))
    }

    /// The slot of the newest message of this key that has no outcome.
    pub(crate) fn newest_of(&self, key: u64) -> Option<u32> {
        let at = self
            .newest
            .binary_search_by_key(&key, |entry| entry.0)
            .ok()?;
        Some(self.newest[at].1)
    }

    pub(crate) fn set_newest(&mut self, key: u64, slot: u32) {
        match self.newest.binary_search_by_key(&key, |entry| entry.0) {
            Ok(at) => self.newest[at].1 = slot,
            Err(at) => self.newest.insert(at, (key, slot)),
        }
    }

    /// A message has its outcome: if it was the newest of its key, there is none now.
    pub(crate) fn forget_newest(&mut self, key: u64, slot: u32) {
        if let Ok(at) = self.newest.binary_search_by_key(&key, |entry| entry.0)
            && self.newest[at].1 == slot
        {
            self.newest.remove(at);
        }
    }

    /// The oldest message that was begun without content.
    pub(crate) fn first_unfilled(&self) -> Option<MessageId> {
        self.unfilled.first().copied()
    }

    pub(crate) fn push_unfilled(&mut self, id: MessageId) {
        self.unfilled.push(id);
    }

    /// A message has content, or its outcome. `true` when others may have waited for it.
    pub(crate) fn forget_unfilled(&mut self, id: MessageId) -> bool {
        let found = self.unfilled.binary_search(&id);
        if let Ok(at) = found {
            self.unfilled.remove(at);
        }
        found.is_ok()
    }

    /// A message that tolerates this share of loss is sent: may it be thinned instead?
    pub(crate) fn thin(&mut self, tolerance: f32, is_short: bool) -> bool {
        self.thinning = (self.thinning + tolerance).min(THINNING_MAX);
        let is_thinned = is_short && self.thinning >= 1.0;
        if is_thinned {
            self.thinning -= 1.0;
        }
        is_thinned
    }

    const fn is_free(&self) -> bool {
        !self.is_open && self.unresolved.messages == 0
    }
}

/// The streams of one direction of a session.
#[derive(Default)]
pub(crate) struct Streams {
    list: Vec<Option<Box<OutgoingStream>>>,
    open: usize,
    /// Bytes of ordered messages that have their place and may wait at the receiver for one before them.
    ordered_bytes: usize,
}

impl Streams {
    /// Opens a stream; the number of one that was closed serves again once its last message has its outcome.
    pub(crate) fn open(&mut self, config: StreamConfig) -> Result<StreamId, StreamError> {
        config.check()?;
        let limit = STREAMS_MAX;
        if self.open >= limit {
            return Err(StreamError::TooManyStreams { limit });
        }
        let is_taken = |stream: &Option<Box<OutgoingStream>>| {
            stream.as_ref().is_some_and(|stream| !stream.is_free())
        };
        let number = match config.number {
            Some(number) => {
                if self.list.get(usize::from(number)).is_some_and(is_taken) {
                    return Err(StreamError::AlreadyOpen { number });
                }
                number
            }
            None => {
                let free = self.list.iter().position(|stream| !is_taken(stream));
                let free = free.unwrap_or(self.list.len());
                if free >= limit {
                    return Err(StreamError::TooManyStreams { limit });
                }
                free as u16
            }
        };
        let index = usize::from(number);
        if self.list.len() <= index {
            self.list.resize_with(index + 1, || None);
        }
        match &mut self.list[index] {
            // Sequence numbers go on: the receiver does not know that this is another stream.
            Some(stream) => {
                stream.config = config;
                stream.is_open = true;
                stream.stats = StreamStats::default();
                stream.thinning = 0.0;
            }
            slot => *slot = Some(Box::new(OutgoingStream::new(config))),
        }
        self.open += 1;
        Ok(StreamId(number))
    }

    /// The stream accepts no more messages; those accepted go on.
    pub(crate) fn close(&mut self, id: StreamId) {
        if let Some(stream) = self.get_mut(id)
            && core::mem::replace(&mut stream.is_open, false)
        {
            self.open -= 1;
        }
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<&OutgoingStream> {
        self.list.get(id.index())?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut OutgoingStream> {
        self.list.get_mut(id.index())?.as_deref_mut()
    }

    /// A stream that accepts messages.
    pub(crate) fn accepting(&self, id: StreamId) -> Option<&OutgoingStream> {
        self.get(id).filter(|stream| stream.is_open)
    }

    pub(crate) fn on_accepted(&mut self, now: Instant, id: StreamId, held: Held) {
        if let Some(stream) = self.get_mut(id) {
            stream.note_pace(now);
            stream.unresolved = stream.unresolved.and(held);
        }
    }

    pub(crate) fn on_resolved(&mut self, id: StreamId, held: Held) {
        if let Some(stream) = self.get_mut(id) {
            stream.unresolved = stream.unresolved.without(held);
        }
    }

    /// Whether the next message of an ordered stream may get its place. What is handed on in pieces waits until it is its turn
    /// at the receiver.
    pub(crate) fn may_place(&self, id: StreamId, in_pieces: bool) -> bool {
        let Some(stream) = self.get(id) else {
            return false;
        };
        // The oldest always may: all others wait for it.
        stream.placed.is_empty()
            || (!in_pieces
                && self.ordered_bytes < ORDERED_BYTES_MAX
                && stream.placed.len() < ORDERED_MESSAGES_MAX)
    }

    /// Gives the next message of an ordered stream its sequence number.
    pub(crate) fn place(&mut self, id: StreamId, bytes: usize) -> u64 {
        let Some(stream) = self.get_mut(id) else {
            return 0;
        };
        let sequence = stream.base + stream.placed.len() as u64;
        // As the receiver counts it.
        let bytes = bytes + WAITING_COST;
        stream.placed.push_back(Placed {
            bytes: bytes as u32,
            is_resolved: false,
        });
        self.ordered_bytes += bytes;
        sequence
    }

    /// The receiver has the message with this number, or knows that there is none.
    pub(crate) fn on_place_resolved(&mut self, id: StreamId, sequence: u64) {
        let Some(stream) = self.get_mut(id) else {
            return;
        };
        let at = sequence.checked_sub(stream.base);
        if let Some(placed) = at.and_then(|at| stream.placed.get_mut(at as usize)) {
            placed.is_resolved = true;
        }
        let mut freed = 0;
        while let Some(placed) = stream.placed.pop_front_if(|placed| placed.is_resolved) {
            stream.base += 1;
            freed += placed.bytes as usize;
        }
        self.ordered_bytes -= freed;
    }

    /// Sets the sequence number of the next message, for tests of what happens when it wraps.
    #[cfg(test)]
    pub(crate) fn start_sequence_at(&mut self, id: StreamId, sequence: u64) {
        if let Some(stream) = self.get_mut(id) {
            stream.base = sequence;
        }
    }

    pub(crate) fn trim(&mut self) {
        for stream in self.list.iter_mut().flatten() {
            stream.placed.shrink_to_fit();
            stream.newest.shrink_to_fit();
            stream.unfilled.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_lowest_free_ones_and_come_back_once_all_is_resolved() {
        let mut streams = Streams::default();
        let config = StreamConfig::new(Delivery::Reliable);
        for number in 0..STREAMS_MAX {
            assert_eq!(streams.open(config), Ok(StreamId(number as u16)));
        }
        let limit = STREAMS_MAX;
        assert_eq!(
            streams.open(config),
            Err(StreamError::TooManyStreams { limit })
        );
        let held = Held {
            messages: 1,
            bytes: 10,
        };
        streams.on_accepted(Instant::ZERO, StreamId(7), held);
        streams.close(StreamId(7));
        assert!(streams.accepting(StreamId(7)).is_none());
        assert_eq!(
            streams.open(config.number(7)),
            Err(StreamError::AlreadyOpen { number: 7 })
        );
        streams.on_resolved(StreamId(7), held);
        assert_eq!(streams.open(config), Ok(StreamId(7)));
        assert_eq!(
            streams.open(config.weight(0)),
            Err(StreamError::Weight { max: 1000 })
        );
        assert_eq!(
            streams.open(config.number(1024)),
            Err(StreamError::Number { max: 1023 })
        );
    }

    /// The goal is 512 bytes, its place in the schedule included.
    #[test]
    fn a_stream_costs_little() {
        let own = size_of::<OutgoingStream>() + size_of::<Option<Box<OutgoingStream>>>();
        let bytes = own + crate::schedule::LANE_BYTES;
        assert!(bytes <= 512, "{own} bytes, {bytes} with its lane");
    }

    #[test]
    fn what_may_wait_at_the_receiver_is_bounded() {
        let mut streams = Streams::default();
        let id = streams
            .open(StreamConfig::new(Delivery::ReliableOrdered))
            .unwrap();
        streams.start_sequence_at(id, u64::from(u16::MAX) - 1);
        let mut placed = 0;
        while streams.may_place(id, false) {
            let sequence = streams.place(id, 1000);
            assert_eq!(sequence, u64::from(u16::MAX) - 1 + placed);
            placed += 1;
        }
        let each = 1000 + WAITING_COST;
        assert_eq!(placed, ORDERED_BYTES_MAX.div_ceil(each) as u64);
        // Those after the first are there: nothing is freed until the first is.
        for sequence in 1..placed {
            streams.on_place_resolved(id, u64::from(u16::MAX) - 1 + sequence);
        }
        assert!(!streams.may_place(id, false));
        streams.on_place_resolved(id, u64::from(u16::MAX) - 1);
        assert!(streams.may_place(id, true));
        assert_eq!(streams.ordered_bytes, 0);
    }

    #[test]
    fn thinning_keeps_to_the_tolerance() {
        let mut streams = Streams::default();
        let id = streams
            .open(StreamConfig::new(Delivery::Unreliable))
            .unwrap();
        let stream = streams.get_mut(id).unwrap();
        let thinned = (0..1000).filter(|_| stream.thin(0.25, true)).count();
        assert!((249..=251).contains(&thinned), "{thinned}");
        assert!((0..1000).all(|_| !stream.thin(0.25, false)));
        let at_once = (0..10).take_while(|_| stream.thin(0.0, true)).count();
        assert_eq!(at_once, 4, "what was not thinned is not made up for later");
    }
}
