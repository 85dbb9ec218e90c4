//! A message is accepted: it takes its place in the schedule. Nothing of it is cut before it is its turn (`cut.rs`).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::cut::{encode, whole_len_max};
use super::{CloseReason, Event, Session, Shared, State};
use crate::limits::{
    EVENTS_MAX, MESSAGE_MAX, SEND_MESSAGES_MAX, SEND_QUEUE_MAX, STREAM_WEIGHT_MAX,
};
use crate::message::{
    Body, Course, Fate, Large, OutgoingMessage, PART_MIN, SharedContent, Source, Urgency,
};
use crate::schedule::{Entry, Item, NO_DEADLINE};
use crate::stream::{
    Delivery, Held, MessageId, MissReason, Outcome, SendOptions, StreamConfig, StreamError,
    StreamId,
};
use crate::time::Instant;
use crate::wire::{Order, Preamble};

/// Why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The stream already holds seven times what is left of the `limit` bytes, or of the 1,024 messages, that its session may hold without an outcome; or 4,096
    /// events wait to be taken. Wait for [`super::Event::Writable`].
    Full {
        /// Bytes that a session holds.
        limit: usize,
    },
    /// Larger than a message may be. Will not succeed later.
    TooLarge {
        /// Bytes of the message.
        size: usize,
        /// Bytes that a message may have.
        limit: usize,
    },
    /// An option is out of its range.
    Options {
        /// Which one, and its range.
        what: &'static str,
    },
    /// No such stream is open.
    NoStream {
        /// Its number.
        stream: u16,
    },
    /// No message of this id waits for content.
    NoMessage,
    /// The session is not open: it has ended, or its [`Event::Connected`] has not come yet.
    Closed {
        /// Why, when it is known.
        why: Option<CloseReason>,
    },
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Full { limit } => write!(
                f,
                "of the {limit} bytes and {SEND_MESSAGES_MAX} messages that a session holds without an outcome this stream has its share: wait until it is writable"
            ),
            Self::TooLarge { size, limit } => write!(
                f,
                "a message of {size} bytes is over the limit of {limit} bytes"
            ),
            Self::Options { what } => write!(f, "send option out of range: {what}"),
            Self::NoStream { stream } => write!(f, "stream {stream} is not open: open it first"),
            Self::NoMessage => f.write_str("no such message waits for content"),
            Self::Closed { why: Some(why) } => write!(f, "the session is closed: {why}"),
            Self::Closed { why: None } => {
                f.write_str("the session is not open: it has ended, or is not connected yet")
            }
        }
    }
}

impl core::error::Error for SendError {}

/// Whether a stream may hold `own` when all of its session hold `all`: seven times what that leaves of the room. A stream which is sent more than the path carries
/// does not shut out the others (dynamic thresholds, Choudhury and Hahne 1998), and the last place is for one that has none.
const fn has_share(own: usize, all: usize, limit: usize) -> bool {
    all <= limit && own <= 7 * (limit - all) + 1
}

/// Shared content of fewer bytes is copied.
const SHARED_MIN: usize = 16 * 1024;

/// The content of a message, as it is handed in.
pub(crate) enum Content<'a> {
    /// Copied.
    Bytes(&'a [u8]),
    Shared(SharedContent),
    /// So many bytes, which follow piece by piece.
    Later(usize),
}

impl Content<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(data) => data.len(),
            Self::Shared(data) => (**data).as_ref().len(),
            Self::Later(len) => *len,
        }
    }
}

impl Session {
    pub(crate) fn open_stream(&mut self, config: StreamConfig) -> Result<StreamId, StreamError> {
        if !matches!(self.state, State::Open) {
            return Err(StreamError::Closed);
        }
        let id = self.traffic.streams.open(config)?;
        self.traffic.schedule.open(id, config.weight);
        Ok(id)
    }

    pub(crate) fn set_weight(&mut self, id: StreamId, weight: u16) {
        let weight = weight.clamp(1, STREAM_WEIGHT_MAX);
        if let Some(stream) = self.traffic.streams.get_mut(id) {
            stream.config.weight = weight;
            self.traffic.schedule.set_weight(id, weight);
        }
    }

    pub(crate) fn close_stream(&mut self, id: StreamId) {
        self.traffic.streams.close(id);
    }

    pub(crate) fn send(
        &mut self,
        now: Instant,
        stream: StreamId,
        content: Content<'_>,
        options: SendOptions,
        shared: &mut Shared<'_>,
    ) -> Result<MessageId, SendError> {
        let len = content.len();
        check(len, &options)?;
        if !matches!(self.state, State::Open) {
            return Err(SendError::Closed { why: None });
        }
        let delivery = self.accepting(stream)?.delivery;
        if !self.has_room(stream, &content, &options) {
            self.traffic.was_full = true;
            let limit = match content {
                Content::Bytes(_) if len > whole_len_max() => MESSAGE_MAX,
                _ => SEND_QUEUE_MAX,
            };
            return Err(SendError::Full { limit });
        }
        if let Some(stream) = self.traffic.streams.get_mut(stream) {
            stream.stats.accepted += 1;
            stream.stats.accepted_bytes += len as u64;
        }
        self.statistics.messages_sent += 1;
        self.statistics.message_bytes_sent += len as u64;
        if !delivery.is_reliable() && self.thins(now, stream, &options) {
            return Ok(self.refuse_thinned(stream));
        }
        if delivery == Delivery::Latest {
            self.supersede_key(now, stream, options.key, shared);
        }
        let predicted_on_time = self.predict(now, stream, len, &options, shared);
        let body = body(stream, delivery, content, &options, shared);
        let message = OutgoingMessage {
            id: MessageId(0),
            stream,
            delivery,
            fate: Fate::Going,
            len: len as u32,
            body,
            accepted_at: now,
            deadline: options.within.map(|within| now + within),
            options,
            first_block: None,
            sequence: None,
            predicted_on_time,
            course: Course::default(),
        };
        self.traffic
            .streams
            .on_accepted(now, stream, message.held());
        let (slot, id) = self.traffic.outbox.insert_message(message);
        self.note_in_stream(stream, delivery, options.key, slot, id);
        self.enqueue(slot);
        self.arm_queued(now, slot);
        self.note_tick(now);
        Ok(id)
    }

    /// A stream remembers what its delivery mode needs of a message that was accepted.
    fn note_in_stream(
        &mut self,
        stream: StreamId,
        delivery: Delivery,
        key: u64,
        slot: u32,
        id: MessageId,
    ) {
        let has_content = self.is_cuttable(slot);
        let Some(stream) = self.traffic.streams.get_mut(stream) else {
            return;
        };
        match delivery {
            Delivery::Latest => stream.set_newest(key, slot),
            Delivery::ReliableOrdered | Delivery::UnreliableSequenced if !has_content => {
                stream.push_unfilled(id);
            }
            _ => {}
        }
    }

    /// The configuration of a stream that accepts messages. The default one is there without being opened.
    fn accepting(&mut self, stream: StreamId) -> Result<StreamConfig, SendError> {
        if let Some(open) = self.traffic.streams.accepting(stream) {
            return Ok(open.config);
        }
        let config = StreamConfig::new(Delivery::Reliable).number(stream.0);
        if stream == StreamId::DEFAULT
            && self.traffic.streams.get(stream).is_none()
            && self.open_stream(config).is_ok()
        {
            return Ok(config);
        }
        Err(SendError::NoStream { stream: stream.0 })
    }

    /// Whether the session may hold so much more. What the message supersedes makes room for it.
    fn has_room(&self, stream: StreamId, content: &Content<'_>, options: &SendOptions) -> bool {
        let outbox = &self.traffic.outbox;
        let stream = self.traffic.streams.get(stream);
        let own = stream.map_or_else(Held::default, |stream| stream.unresolved);
        let replaced = stream
            .filter(|stream| stream.config.delivery == Delivery::Latest)
            .and_then(|stream| stream.newest_of(options.key))
            .and_then(|slot| outbox.message(slot))
            .filter(|message| matches!(message.body, Body::Whole(_)))
            .map_or_else(Held::default, OutgoingMessage::held);
        let own = own.without(replaced);
        let len = content.len();
        let fits = match content {
            Content::Bytes(_) if len > whole_len_max() => {
                outbox.content_bytes() + len <= MESSAGE_MAX
            }
            Content::Shared(_) if len > SHARED_MIN => true,
            Content::Later(_) => true,
            Content::Bytes(_) | Content::Shared(_) => {
                let more = (len + Preamble::LEN_MAX).saturating_sub(replaced.bytes as usize);
                let all = outbox.held_bytes() + more;
                has_share(own.bytes as usize + len, all, SEND_QUEUE_MAX)
            }
        };
        let all = outbox.messages() + 1 - replaced.messages as usize;
        // Messages from the peer do not count: who sends on each that it takes would stand still with it.
        self.traffic.events.others() < EVENTS_MAX
            && has_share(own.messages as usize + 1, all, SEND_MESSAGES_MAX)
            && fits
    }

    /// Whether the budget is short and this message may be left out for it.
    fn thins(&mut self, now: Instant, stream: StreamId, options: &SendOptions) -> bool {
        if options.loss_tolerance <= 0.0 {
            return false;
        }
        let is_short = self.is_budget_short(now, options);
        self.traffic
            .streams
            .get_mut(stream)
            .is_some_and(|stream| stream.thin(options.loss_tolerance, is_short))
    }

    fn refuse_thinned(&mut self, stream: StreamId) -> MessageId {
        let message = self.traffic.outbox.pass_id();
        let outcome = Outcome::Dropped {
            why: MissReason::Thinned,
        };
        if let Some(stream) = self.traffic.streams.get_mut(stream) {
            stream.stats.on_outcome(&outcome, None);
        }
        self.statistics.messages_dropped += 1;
        self.traffic.events.push(Event::Outcome {
            stream,
            message,
            outcome,
        });
        message
    }

    /// More content of a message that was begun with [`Content::Later`]: how many bytes were taken. A message whose last
    /// byte was taken needs no further call; what is more than its length is never taken.
    pub(crate) fn append(&mut self, message: MessageId, data: &[u8]) -> Result<usize, SendError> {
        let slot = self
            .traffic
            .outbox
            .find(message)
            .ok_or(SendError::NoMessage)?;
        let was_cuttable = self.is_cuttable(slot);
        let room = self.append_room(slot);
        let (taken, is_whole) = self
            .traffic
            .outbox
            .with_large(slot, |large| {
                let taken = large.append(&data[..data.len().min(room)]);
                (taken, large.is_appended())
            })
            .ok_or(SendError::NoMessage)?;
        if !was_cuttable {
            self.enqueue(slot);
            self.note_filled(slot);
        }
        if taken < data.len() && !is_whole {
            self.traffic.was_full = true;
        }
        Ok(taken)
    }

    /// How much more content a message may have waiting here. What others wait for always may go on: if what cannot begin yet could take all of the room,
    /// nothing would ever leave.
    fn append_room(&self, slot: u32) -> usize {
        let outbox = &self.traffic.outbox;
        let room = SEND_QUEUE_MAX.saturating_sub(outbox.held_bytes());
        match outbox.message(slot) {
            Some(message) if self.is_waited_for(message) => {
                room.max(PART_MIN.saturating_sub(message.held_here()))
            }
            _ => room.saturating_sub(SEND_QUEUE_MAX / 2),
        }
    }

    /// Whether others can only begin once this one has: it is on its way, or the first of its ordered stream that is not.
    fn is_waited_for(&self, message: &OutgoingMessage) -> bool {
        message.first_block.is_some()
            || (message.delivery == Delivery::ReliableOrdered && !self.has_before(message))
    }

    /// A message that was begun has content: its stream need not remember it any more.
    fn note_filled(&mut self, slot: u32) {
        if let Some(message) = self.traffic.outbox.message(slot)
            && message.is_cuttable()
            && let Some(stream) = self.traffic.streams.get_mut(message.stream)
            && stream.forget_unfilled(message.id)
        {
            self.traffic.schedule.wake(message.stream);
        }
    }

    pub(super) fn is_cuttable(&self, slot: u32) -> bool {
        self.traffic
            .outbox
            .message(slot)
            .is_some_and(OutgoingMessage::is_cuttable)
    }

    /// Puts a message of which something can be cut into the schedule.
    pub(super) fn enqueue(&mut self, slot: u32) {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return;
        };
        if message.is_cuttable() {
            let entry = entry_of(message, Item::Message(slot));
            self.traffic.schedule.push(message.stream, entry);
        }
    }

    /// Takes it out again.
    pub(super) fn dequeue(&mut self, slot: u32) {
        if let Some(message) = self.traffic.outbox.message(slot) {
            let entry = entry_of(message, Item::Message(slot));
            self.traffic.schedule.remove(message.stream, &entry);
        }
    }
}

/// The place of a message, or of a block of it, among what its stream has to send.
pub(super) fn entry_of(message: &OutgoingMessage, item: Item) -> Entry {
    let deadline = match (message.course.urgency, message.deadline) {
        (Urgency::Due, Some(deadline)) => deadline,
        (Urgency::Postponed, Some(deadline)) => deadline + deadline.since(message.accepted_at),
        (Urgency::TooLate, _) | (_, None) => NO_DEADLINE,
    };
    // Where the order is fixed, only position counts: what goes earlier would wait at the receiver.
    let is_ordered = message.delivery == Delivery::ReliableOrdered;
    let bytes = match &message.body {
        Body::Large(large) => large.uncut() as u32,
        _ => message.len,
    };
    Entry {
        unimportance: if is_ordered {
            0
        } else {
            255 - message.options.importance
        },
        rank: if is_ordered { NO_DEADLINE } else { deadline },
        // All others of the stream wait for what takes the place of one.
        position: if message.fate == Fate::Void {
            0
        } else {
            message.id.0
        },
        item,
        deadline,
        is_live: message.deadline.is_some(),
        is_begun: message.first_block.is_some(),
        bytes,
        needed_bytes: bytes,
    }
}

fn body(
    stream: StreamId,
    delivery: Delivery,
    content: Content<'_>,
    options: &SendOptions,
    shared: &mut Shared<'_>,
) -> Body {
    let len = content.len();
    let whole = match &content {
        Content::Bytes(data) if len <= whole_len_max() => Some(*data),
        // Cheaper than keeping account of who shares it.
        Content::Shared(data) if len <= SHARED_MIN => Some((**data).as_ref()),
        _ => None,
    };
    if let Some(data) = whole.filter(|data| data.len() == len) {
        return Body::Whole(encode_whole(stream, delivery, data, options, shared));
    }
    let source = match content {
        Content::Bytes(data) => Source::Owned(Vec::from(data)),
        Content::Shared(data) => Source::Shared(data),
        Content::Later(_) => Source::Appended(VecDeque::new()),
    };
    Body::Large(Box::new(Large::new(source, len)))
}

/// Preamble and content of a message of one block.
fn encode_whole(
    stream: StreamId,
    delivery: Delivery,
    data: &[u8],
    options: &SendOptions,
    shared: &mut Shared<'_>,
) -> Vec<u8> {
    let order = match delivery {
        // The sequence number is written when the message gets its place.
        Delivery::ReliableOrdered => Order::Sequence(0),
        Delivery::UnreliableSequenced => Order::Newest,
        Delivery::Latest => Order::Key(options.key),
        Delivery::Unreliable | Delivery::Reliable => Order::None,
    };
    let preamble = Preamble::First {
        stream: stream.0,
        order,
        message_len: data.len(),
    };
    encode(&preamble, data, shared.pool)
}

pub(super) fn check(len: usize, options: &SendOptions) -> Result<(), SendError> {
    if len > MESSAGE_MAX {
        return Err(SendError::TooLarge {
            size: len,
            limit: MESSAGE_MAX,
        });
    }
    match options.fault() {
        Some(what) => Err(SendError::Options { what }),
        None => Ok(()),
    }
}
