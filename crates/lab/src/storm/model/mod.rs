//! What must hold of the messages of one direction, whatever the network does: at the sender the outcomes (here), at the
//! receiver what is handed on (`delivery.rs`, `pieces.rs`), and what the two say of each other.
//!
//! When a message may be reported `OnTime` or `Late`:
//! - unreliable, reliable: it has been handed on when the outcome comes;
//! - sequenced, latest: it has been handed on, or a newer one of its stream (of its key) has, at least in part;
//! - ordered: in the end it has been handed on; until then it may wait at the receiver for one before it.

mod delivery;
mod pieces;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use punctual_proto::{
    Cancel, Delivery, MessageId, MissReason, Outcome, SendOptions, StreamConfig, StreamStats,
    WhenLate,
};

/// The promises that a storm checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// What is handed on was sent, byte for byte, on that stream.
    Genuine,
    /// No message is handed on twice.
    AtMostOnce,
    /// The outcome that is reported is what happened, and one that the message's mode and options allow.
    TrueOutcome,
    /// Every message has one outcome.
    OneOutcome,
    /// A message that is to be delivered is, once the network lets it.
    AtLeastOnce,
    /// Ordered messages come in the order of sending, without gaps but for those that were given up.
    Ordered,
    /// On streams whose messages supersede each other no older one comes after a newer one.
    Newest,
    /// What was taken back before it had left is not handed on.
    AfterCancel,
    /// A cancel answers what is true of the message.
    TrueCancel,
    /// A large message comes in pieces that follow each other, and is complete or aborted in the end.
    Pieces,
    /// Streams open and close as they should.
    Streams,
    /// A stream's counts add up.
    Statistics,
    /// When all is over nothing is left in either endpoint.
    Quiet,
    /// Sizes are accepted up to the limit, and not beyond.
    Limits,
    /// Time goes on.
    NoSpinning,
}

/// A message as it was sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Its number: larger for those sent later, and inside its content.
    pub number: u64,
    /// On which stream.
    pub stream: u16,
    /// Its bytes.
    pub len: usize,
    /// How it was sent.
    pub options: SendOptions,
}

/// How much of a message was handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    Nothing,
    Begun,
    Aborted,
    Whole,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) stream: u16,
    pub(super) delivery: Delivery,
    pub(super) key: u64,
    pub(super) len: usize,
    may_drop: bool,
    may_thin: bool,
    received: Received,
    outcome: Option<Outcome>,
    cancel: Option<Cancel>,
}

impl Entry {
    /// Too short to carry its number: only counted.
    pub(super) const fn is_short(&self) -> bool {
        self.len < NUMBER_LEN
    }

    fn is_delivered(&self) -> bool {
        self.received == Received::Whole
    }

    const fn supersedes(&self) -> bool {
        matches!(
            self.delivery,
            Delivery::UnreliableSequenced | Delivery::Latest
        )
    }

    /// Whether nothing of it was handed on.
    pub(super) fn has_nothing(&self) -> bool {
        self.received == Received::Nothing
    }

    /// What a cancel answered.
    pub(super) const fn was_cancelled(&self) -> Option<Cancel> {
        self.cancel
    }

    /// Whether its place among the others of its lane matters.
    pub(super) const fn is_in_lane(&self) -> bool {
        !self.is_short()
            && (self.supersedes() || matches!(self.delivery, Delivery::ReliableOrdered))
    }

    /// Messages of one lane supersede each other, or follow each other.
    pub(super) const fn lane(&self) -> (u16, Option<u64>) {
        match self.delivery {
            Delivery::Latest => (self.stream, Some(self.key)),
            _ => (self.stream, None),
        }
    }

    /// Whether it was reported to have arrived.
    const fn is_reported(&self) -> bool {
        matches!(
            self.outcome,
            Some(Outcome::OnTime { .. } | Outcome::Late { .. })
        )
    }
}

/// A stream as the application knows it.
#[derive(Debug, Default)]
struct Stream {
    config: StreamConfig,
    is_open: bool,
    /// Since it was last opened.
    accepted: u64,
    accepted_bytes: u64,
    unresolved: u64,
    on_time: u64,
    late: u64,
    dropped: u64,
    superseded: u64,
    cancelled: u64,
}

/// Messages of one direction of one session.
#[derive(Debug, Default)]
pub struct Model {
    /// By number.
    messages: BTreeMap<u64, Entry>,
    by_id: BTreeMap<MessageId, u64>,
    streams: BTreeMap<u16, Stream>,
    /// Messages too short to carry a number: they are counted.
    short_waiting: Vec<u64>,
    /// The newest accepted of each lane, and the newest that was handed on, at least in part.
    accepted_newest: BTreeMap<(u16, Option<u64>), u64>,
    handed_newest: BTreeMap<(u16, Option<u64>), u64>,
    /// Ordered messages of each stream of which nothing is known at the receiver yet, oldest first.
    ordered: BTreeMap<u16, Vec<u64>>,
    pieces: pieces::Pieces,
    open_outcomes: u64,
    delivered: u64,
}

pub(super) type Verdict = Result<(), (Rule, String)>;

fn broken<T>(rule: Rule, detail: String) -> Result<T, (Rule, String)> {
    Err((rule, detail))
}

impl Model {
    /// A stream was opened.
    ///
    /// # Errors
    /// When its number was taken, or is not the lowest that is free although none was asked for.
    pub fn on_opened(&mut self, number: u16, config: StreamConfig) -> Verdict {
        let is_taken = |number: u16| {
            self.streams
                .get(&number)
                .is_some_and(|stream| stream.is_open || stream.unresolved > 0)
        };
        let lowest = (0..).find(|number| !is_taken(*number));
        let expected = config.number.or(lowest);
        if is_taken(number) || Some(number) != expected {
            return broken(
                Rule::Streams,
                format!("stream {number} was opened, expected {expected:?}"),
            );
        }
        let stream = Stream {
            config,
            is_open: true,
            ..Stream::default()
        };
        self.streams.insert(number, stream);
        Ok(())
    }

    /// A stream was closed.
    pub fn on_stream_closed(&mut self, number: u16) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.is_open = false;
        }
    }

    /// How a stream delivers; `None` when it is not open. The default stream opens by itself.
    pub fn delivery(&self, number: u16) -> Option<Delivery> {
        match self.streams.get(&number) {
            Some(stream) => stream.is_open.then_some(stream.config.delivery),
            None => (number == 0).then_some(Delivery::Reliable),
        }
    }

    /// Whether a stream's number may be opened now.
    pub fn is_free(&self, number: u16) -> bool {
        self.streams
            .get(&number)
            .is_none_or(|stream| !stream.is_open && stream.unresolved == 0)
    }

    /// Numbers of all streams that were ever opened.
    pub fn streams(&self) -> impl Iterator<Item = u16> + use<'_> {
        self.streams.keys().copied()
    }

    /// A message was accepted.
    ///
    /// # Errors
    /// When its stream is not open.
    pub fn on_accepted(&mut self, id: MessageId, sent: &Sent) -> Verdict {
        let Some(delivery) = self.delivery(sent.stream) else {
            return broken(
                Rule::Streams,
                format!("stream {} is closed, and accepted a message", sent.stream),
            );
        };
        let stream = self.streams.entry(sent.stream).or_insert_with(|| Stream {
            is_open: true,
            ..Stream::default()
        });
        stream.accepted += 1;
        stream.accepted_bytes += sent.len as u64;
        stream.unresolved += 1;
        let options = &sent.options;
        let is_unreliable = matches!(
            delivery,
            Delivery::Unreliable | Delivery::UnreliableSequenced
        );
        let entry = Entry {
            stream: sent.stream,
            delivery,
            key: options.key,
            len: sent.len,
            may_drop: is_unreliable
                || (options.within.is_some() && options.when_late == WhenLate::Drop),
            may_thin: is_unreliable && options.loss_tolerance > 0.0,
            received: Received::Nothing,
            outcome: None,
            cancel: None,
        };
        if entry.is_short() {
            self.short_waiting.push(sent.number);
        } else if delivery == Delivery::ReliableOrdered {
            self.ordered
                .entry(sent.stream)
                .or_default()
                .push(sent.number);
        }
        if entry.supersedes() {
            self.accepted_newest.insert(entry.lane(), sent.number);
        }
        self.messages.insert(sent.number, entry);
        self.open_outcomes += 1;
        match self.by_id.insert(id, sent.number) {
            None => Ok(()),
            Some(other) => broken(
                Rule::OneOutcome,
                format!("{id:?} names messages {other} and {}", sent.number),
            ),
        }
    }

    /// A message was taken back, or what is not one.
    ///
    /// # Errors
    /// When the answer cannot be true.
    pub fn on_cancel(&mut self, id: MessageId, answer: Cancel) -> Verdict {
        let entry = self
            .by_id
            .get(&id)
            .and_then(|number| self.messages.get_mut(number));
        let Some(entry) = entry else {
            return match answer {
                Cancel::TooLate => Ok(()),
                _ => broken(
                    Rule::TrueCancel,
                    format!("{id:?} is unknown, and {answer:?}"),
                ),
            };
        };
        let is_over = entry.outcome.is_some() || entry.cancel.is_some();
        // One that a newer one has superseded may still be on its way: nobody knows, so that both answers are right.
        if (is_over && answer != Cancel::TooLate)
            || (!is_over && answer == Cancel::TooLate && !entry.supersedes())
        {
            return broken(
                Rule::TrueCancel,
                format!("{answer:?} for {id:?}: {entry:?}"),
            );
        }
        if answer == Cancel::Dropped && entry.is_delivered() && !entry.is_short() {
            return broken(
                Rule::AfterCancel,
                format!("{id:?} was dropped after it was handed on: {entry:?}"),
            );
        }
        if answer != Cancel::TooLate {
            entry.cancel = Some(answer);
        }
        Ok(())
    }

    /// A message got its outcome.
    ///
    /// # Errors
    /// When it had one, or when the outcome is not true.
    pub fn on_outcome(&mut self, id: MessageId, stream: u16, outcome: &Outcome) -> Verdict {
        let Some(&number) = self.by_id.get(&id) else {
            return broken(Rule::OneOutcome, format!("{id:?} was never accepted"));
        };
        let Some(entry) = self.messages.get_mut(&number) else {
            return Ok(());
        };
        if entry.outcome.replace(*outcome).is_some() {
            return broken(Rule::OneOutcome, format!("{id:?} has two: {outcome:?}"));
        }
        if entry.stream != stream {
            return broken(
                Rule::TrueOutcome,
                format!("{id:?} is not of stream {stream}"),
            );
        }
        self.open_outcomes -= 1;
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.unresolved -= 1;
            *match outcome {
                Outcome::OnTime { .. } => &mut stream.on_time,
                Outcome::Late { .. } => &mut stream.late,
                Outcome::Dropped { .. } => &mut stream.dropped,
                Outcome::Superseded => &mut stream.superseded,
                _ => &mut stream.cancelled,
            } += 1;
        }
        self.check_outcome(number, outcome)
    }

    fn check_outcome(&self, number: u64, outcome: &Outcome) -> Verdict {
        let entry = &self.messages[&number];
        let is_true = match outcome {
            Outcome::OnTime { .. } | Outcome::Late { .. } => {
                entry.is_short()
                    || entry.is_delivered()
                    || entry.delivery == Delivery::ReliableOrdered
                    || (entry.supersedes() && self.handed_newest.get(&entry.lane()) > Some(&number))
            }
            Outcome::Dropped {
                why: MissReason::Closed,
            } => true,
            Outcome::Dropped {
                why: MissReason::Thinned,
            } => entry.may_thin,
            Outcome::Dropped { .. } => entry.may_drop,
            Outcome::Superseded => {
                entry.supersedes() && self.accepted_newest.get(&entry.lane()) > Some(&number)
            }
            Outcome::Cancelled { sent } => {
                entry.cancel.is_some() && (*sent || entry.cancel == Some(Cancel::Dropped))
            }
            _ => false,
        };
        if !is_true {
            return broken(Rule::TrueOutcome, format!("message {number}: {entry:?}"));
        }
        // What never left cannot have arrived.
        let never_left = matches!(
            outcome,
            Outcome::Cancelled { sent: false }
                | Outcome::Dropped {
                    why: MissReason::Thinned
                }
        );
        if never_left && entry.received != Received::Nothing {
            return broken(Rule::AfterCancel, format!("message {number}: {entry:?}"));
        }
        Ok(())
    }

    /// The session is over: everything must have its outcome.
    ///
    /// # Errors
    /// When something has none.
    pub fn on_closed(&self) -> Verdict {
        if self.open_outcomes == 0 {
            return Ok(());
        }
        let open = self
            .messages
            .iter()
            .find(|(_, entry)| entry.outcome.is_none());
        broken(
            Rule::OneOutcome,
            format!("{} have none at the end: {open:?}", self.open_outcomes),
        )
    }

    /// Whether nothing is left to wait for.
    pub fn is_settled(&self) -> bool {
        self.open_outcomes == 0 && self.check_settled().is_ok()
    }

    /// Checks what must be true once the network was calm for long.
    ///
    /// # Errors
    /// When a message has no outcome, or one that was to be delivered was not.
    pub fn check_settled(&self) -> Verdict {
        self.on_closed()?;
        let is_missing = |number: u64, entry: &Entry| {
            let is_stale =
                entry.supersedes() && self.handed_newest.get(&entry.lane()) > Some(&number);
            entry.is_reported() && !entry.is_delivered() && !entry.is_short() && !is_stale
        };
        if let Some((number, entry)) = self
            .messages
            .iter()
            .find(|(number, entry)| is_missing(**number, entry))
        {
            return broken(
                Rule::AtLeastOnce,
                format!("message {number} never came: {entry:?}"),
            );
        }
        self.pieces.check_settled()
    }

    /// Compares a stream's counts with what the application saw.
    ///
    /// # Errors
    /// When they differ.
    pub fn check_statistics(&self, number: u16, stats: &StreamStats) -> Verdict {
        let Some(stream) = self.streams.get(&number) else {
            return broken(Rule::Streams, format!("stream {number} was never opened"));
        };
        let ours = [
            stream.accepted,
            stream.accepted_bytes,
            stream.on_time,
            stream.late,
            stream.dropped,
            stream.superseded,
            stream.cancelled,
        ];
        let theirs = [
            stats.accepted,
            stats.accepted_bytes,
            stats.on_time,
            stats.late,
            stats.dropped(),
            stats.superseded,
            stats.cancelled,
        ];
        let resolved: u64 = theirs[2..].iter().sum();
        if ours != theirs || resolved + stream.unresolved != stats.accepted {
            return broken(
                Rule::Statistics,
                format!("stream {number}: {stats:?}, and seen was {stream:?}"),
            );
        }
        Ok(())
    }

    /// The message of an id.
    pub(super) fn number_of(&self, id: MessageId) -> Option<u64> {
        self.by_id.get(&id).copied()
    }

    /// The message of a content.
    pub(super) fn look(&self, data: &[u8]) -> Option<(u64, &Entry)> {
        let number = read_number(data)?;
        Some((number, self.messages.get(&number)?))
    }

    /// The message of a number.
    pub(super) fn entry(&self, number: u64) -> Option<&Entry> {
        self.messages.get(&number)
    }

    /// Whether a message has its outcome.
    pub fn has_outcome(&self, id: MessageId) -> bool {
        self.number_of(id)
            .and_then(|number| self.messages.get(&number))
            .is_some_and(|entry| entry.outcome.is_some())
    }

    /// An id among those accepted, `index` from the newest.
    pub fn recent_id(&self, index: usize) -> Option<MessageId> {
        self.by_id.keys().rev().nth(index).copied()
    }

    /// Messages accepted.
    pub fn accepted(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Messages delivered.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }
}

/// Bytes that a message needs to carry its number.
pub(super) const NUMBER_LEN: usize = 2;

/// The content of message `number`: the number, then bytes that follow from it.
pub(super) fn fill(payload: &mut Vec<u8>, number: u64, len: usize) {
    payload.clear();
    payload.extend_from_slice(&(number as u16).to_le_bytes()[..len.min(NUMBER_LEN)]);
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while payload.len() < len {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let word = (state >> 8).to_le_bytes();
        let more = (len - payload.len()).min(7);
        payload.extend_from_slice(&word[..more]);
    }
}

fn read_number(data: &[u8]) -> Option<u64> {
    data.first_chunk()
        .map(|bytes| u64::from(u16::from_le_bytes(*bytes)))
}
