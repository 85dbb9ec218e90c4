//! What a session has for its application: messages, outcomes by stream, and how it ended.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use punctual_proto::{CloseReason, MessageId, Outcome, SessionStats, StreamId, StreamStats};

use crate::event::Event;
use crate::{Message, Piece};

/// Messages and pieces that wait here at most; from then on they wait in the protocol, which has limits of its own.
pub(crate) const MESSAGES_MAX: usize = 1024;
/// Bytes of them. One message may lie above it.
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// The protocol is told of what waits here in steps of so many bytes: most sessions never have as many.
const TOLD_STEP: usize = 1 << 16;

/// The inbox of one session.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// In the order of arrival.
    arrived: VecDeque<Arrived>,
    arrived_bytes: usize,
    /// What the protocol was last told of them.
    told_bytes: usize,
    /// The protocol keeps further messages until there is room here again.
    is_held: bool,
    /// Streams that this side has open, with the outcomes that nobody has taken yet.
    streams: BTreeMap<StreamId, Outcomes>,
    /// Outcomes of all of them.
    outcomes_waiting: usize,
    /// Whose outcome [`Inbox::next_event`] told last.
    told_stream: Option<StreamId>,
    /// Whether it told of content last.
    told_content: bool,
    /// `send` has answered `Full`, and there has been no room since.
    pub(crate) is_full: bool,
    /// There is room again, and [`Inbox::next_event`] has not told it.
    tells_writable: bool,
    closed: Option<CloseReason>,
    tells_closed: bool,
    /// The counts at the end.
    pub(crate) final_stats: Option<SessionStats>,
}

/// What waits for the application.
#[derive(Debug)]
enum Arrived {
    Message(Message),
    Piece(Piece),
}

impl Arrived {
    const fn len(&self) -> usize {
        match self {
            Self::Message(message) => message.data.len(),
            Self::Piece(piece) => piece.data_len(),
        }
    }
}

/// Outcomes of one stream.
#[derive(Debug, Default)]
struct Outcomes {
    waiting: VecDeque<(MessageId, Outcome)>,
    kept_max: usize,
    missed: u64,
    /// The counts at the end of the session.
    final_stats: Option<StreamStats>,
}

impl Inbox {
    /// Whether no content waits for the application.
    pub(crate) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// A message has arrived. `true` when the protocol is to keep further ones: also when it was to before, and this one is of a stream that was left out.
    pub(crate) fn push_message(&mut self, message: Message) -> bool {
        self.push(Arrived::Message(message))
    }

    /// As [`push_message`](Self::push_message), of a piece.
    pub(crate) fn push_piece(&mut self, piece: Piece) -> bool {
        self.push(Arrived::Piece(piece))
    }

    fn push(&mut self, arrived: Arrived) -> bool {
        self.arrived_bytes += arrived.len();
        self.arrived.push_back(arrived);
        self.is_held |= self.arrived.len() >= MESSAGES_MAX || self.arrived_bytes >= BYTES_MAX;
        self.is_held
    }

    /// Whether the protocol keeps messages until there is room here.
    pub(crate) const fn is_held(&self) -> bool {
        self.is_held
    }

    /// The next message; pieces before it stay.
    pub(crate) fn pop_message(&mut self) -> Option<Message> {
        match self.pop_that(|arrived| matches!(arrived, Arrived::Message(_)))? {
            Arrived::Message(message) => Some(message),
            Arrived::Piece(_) => None,
        }
    }

    /// The next piece; messages before it stay.
    pub(crate) fn pop_piece(&mut self) -> Option<Piece> {
        match self.pop_that(|arrived| matches!(arrived, Arrived::Piece(_)))? {
            Arrived::Piece(piece) => Some(piece),
            Arrived::Message(_) => None,
        }
    }

    fn pop_that(&mut self, is_wanted: impl FnMut(&Arrived) -> bool) -> Option<Arrived> {
        // The first, unless the application takes only one of the two.
        let at = self.arrived.iter().position(is_wanted)?;
        let arrived = self.arrived.remove(at)?;
        self.arrived_bytes -= arrived.len();
        if self.arrived.is_empty() && self.arrived.capacity() > 64 {
            // What one burst needed is not kept by a thousand idle sessions.
            self.arrived = VecDeque::new();
        }
        Some(arrived)
    }

    /// Whether the protocol may go on handing messages over; answers `true` once.
    pub(crate) fn take_release(&mut self) -> bool {
        let has_room =
            self.arrived.len() <= MESSAGES_MAX / 2 && self.arrived_bytes <= BYTES_MAX / 2;
        has_room && std::mem::take(&mut self.is_held)
    }

    /// Bytes that wait here, if the protocol is to be told: since it was, there have been many more or less.
    pub(crate) fn take_news(&mut self) -> Option<usize> {
        self.has_news().then(|| {
            self.told_bytes = self.arrived_bytes;
            self.told_bytes
        })
    }

    /// Whether there is something for [`take_news`](Self::take_news) to take.
    pub(crate) const fn has_news(&self) -> bool {
        // (That all is taken is always told: what is held for nobody would leave no room for the next block.)
        let is_taken = self.arrived_bytes == 0 && self.told_bytes > 0;
        is_taken || self.arrived_bytes.abs_diff(self.told_bytes) >= TOLD_STEP
    }

    /// The protocol has opened a stream.
    pub(crate) fn open_stream(&mut self, stream: StreamId, kept_max: usize) {
        let outcomes = Outcomes {
            kept_max,
            ..Outcomes::default()
        };
        self.close_stream(stream);
        self.streams.insert(stream, outcomes);
    }

    pub(crate) fn close_stream(&mut self, stream: StreamId) {
        if let Some(outcomes) = self.streams.remove(&stream) {
            self.outcomes_waiting -= outcomes.waiting.len();
        }
    }

    pub(crate) fn push_outcome(&mut self, stream: StreamId, message: MessageId, outcome: Outcome) {
        let Some(outcomes) = self.streams.get_mut(&stream) else {
            return;
        };
        if outcomes.waiting.len() >= outcomes.kept_max {
            outcomes.missed += 1;
            if outcomes.waiting.pop_front().is_none() {
                return;
            }
            self.outcomes_waiting -= 1;
        }
        outcomes.waiting.push_back((message, outcome));
        self.outcomes_waiting += 1;
    }

    pub(crate) fn pop_outcome(&mut self, stream: StreamId) -> Option<(MessageId, Outcome)> {
        let waiting = &mut self.streams.get_mut(&stream)?.waiting;
        let outcome = waiting.pop_front();
        self.outcomes_waiting -= usize::from(outcome.is_some());
        if waiting.is_empty() && waiting.capacity() > 64 {
            *waiting = VecDeque::new();
        }
        outcome
    }

    pub(crate) fn missed_outcomes(&self, stream: StreamId) -> u64 {
        self.streams.get(&stream).map_or(0, |stream| stream.missed)
    }

    pub(crate) const fn on_writable(&mut self) {
        self.is_full = false;
        self.tells_writable = true;
    }

    /// The session is over; `stats_of` tells the counts of its streams at the end.
    pub(crate) fn on_closed(
        &mut self,
        why: CloseReason,
        stats: Option<SessionStats>,
        stats_of: impl Fn(StreamId) -> Option<StreamStats>,
    ) {
        if self.closed.is_none() {
            self.closed = Some(why);
            self.final_stats = stats;
            for (stream, outcomes) in &mut self.streams {
                outcomes.final_stats = stats_of(*stream);
            }
            self.tells_closed = true;
        }
    }

    pub(crate) fn final_stream_stats(&self, stream: StreamId) -> Option<StreamStats> {
        self.streams.get(&stream)?.final_stats
    }

    pub(crate) const fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// All of it in one sequence: messages and pieces, in turn with outcomes (of the streams in turn) and room to send, so that none waits for
    /// the others' end; then that of the session.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        let event = match self.told_content {
            false => self.next_content().or_else(|| self.next_news()),
            true => self.next_news().or_else(|| self.next_content()),
        };
        self.told_content = matches!(event, Some(Event::Message(_) | Event::Piece(_)));
        event.or_else(|| {
            let why = self.closed.as_ref()?;
            std::mem::take(&mut self.tells_closed).then(|| Event::Closed { why: why.clone() })
        })
    }

    fn next_content(&mut self) -> Option<Event> {
        Some(match self.pop_that(|_| true)? {
            Arrived::Message(message) => Event::Message(message),
            Arrived::Piece(piece) => Event::Piece(piece),
        })
    }

    /// Room to send, or an outcome.
    fn next_news(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.tells_writable) {
            return Some(Event::Writable);
        }
        let stream = self.next_told()?;
        let (message, outcome) = self.pop_outcome(stream)?;
        self.told_stream = Some(stream);
        Some(Event::Outcome {
            stream,
            message,
            outcome,
        })
    }

    /// The stream whose outcome is next: the first that has one after the last that was told.
    fn next_told(&self) -> Option<StreamId> {
        if self.outcomes_waiting == 0 {
            return None;
        }
        let after = (self.told_stream).map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.streams.range((after, Bound::Unbounded));
        let mut streams = later.chain(&self.streams);
        streams.find_map(|(&stream, it)| (!it.waiting.is_empty()).then_some(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const OUTCOME: Outcome = Outcome::OnTime {
        latency: Duration::ZERO,
        bound: Duration::ZERO,
    };

    fn message() -> Message {
        Message {
            stream: StreamId(0),
            data: vec![0; 4],
        }
    }

    #[test]
    fn a_full_inbox_is_held_and_released_once() {
        let mut inbox = Inbox::default();
        let held: Vec<bool> = (0..MESSAGES_MAX + 2)
            .map(|_| inbox.push_message(message()))
            .collect();
        assert_eq!(held.iter().position(|held| *held), Some(MESSAGES_MAX - 1));
        assert!(held[MESSAGES_MAX - 1..].iter().all(|held| *held));
        let released: Vec<bool> = (0..MESSAGES_MAX + 2)
            .map(|_| {
                inbox.pop_message();
                inbox.take_release()
            })
            .collect();
        assert_eq!(released.iter().filter(|released| **released).count(), 1);
    }

    /// The protocol is told of much, and of nothing.
    #[test]
    fn what_waits_is_told_in_steps_and_when_nothing_does() {
        let of = |len| Message {
            stream: StreamId(0),
            data: vec![0; len],
        };
        let mut inbox = Inbox::default();
        inbox.push_message(of(TOLD_STEP - 1));
        assert_eq!(inbox.take_news(), None);
        inbox.push_message(of(TOLD_STEP));
        assert_eq!(inbox.take_news(), Some(2 * TOLD_STEP - 1));
        inbox.push_message(of(TOLD_STEP - 2));
        inbox.pop_message();
        inbox.pop_message();
        assert_eq!(inbox.take_news(), Some(TOLD_STEP - 2));
        inbox.pop_message();
        assert_eq!(inbox.take_news(), Some(0));
        assert!(!inbox.has_news());
    }

    #[test]
    fn messages_and_pieces_are_taken_apart_or_in_order() {
        let piece = || Piece::Data {
            stream: StreamId(1),
            message: 7,
            offset: 0,
            message_len: BYTES_MAX,
            data: vec![0; BYTES_MAX],
        };
        let mut inbox = Inbox::default();
        assert!(inbox.push_piece(piece()));
        assert!(inbox.push_message(message()));
        assert_eq!(inbox.pop_message(), Some(message()));
        assert!(!inbox.take_release(), "the piece still takes the room");
        assert_eq!(inbox.pop_piece(), Some(piece()));
        assert!(inbox.take_release());
        inbox.push_message(message());
        inbox.push_piece(piece());
        assert_eq!(inbox.next_event(), Some(Event::Message(message())));
        assert_eq!(inbox.next_event(), Some(Event::Piece(piece())));
    }

    #[test]
    fn outcomes_beyond_what_is_kept_are_counted() {
        let mut inbox = Inbox::default();
        let streams = [StreamId(0), StreamId(1)];
        inbox.open_stream(streams[0], 2);
        inbox.open_stream(streams[1], 0);
        for id in 0..5 {
            inbox.push_outcome(streams[0], MessageId(id), OUTCOME);
            inbox.push_outcome(streams[1], MessageId(id), OUTCOME);
        }
        assert_eq!(inbox.pop_outcome(streams[0]), Some((MessageId(3), OUTCOME)));
        assert_eq!(inbox.pop_outcome(streams[1]), None);
        let missed = streams.map(|stream| inbox.missed_outcomes(stream));
        assert_eq!(missed, [3, 5]);
    }

    /// A session whose messages came as fast as they were taken told of no outcome and of no room to send, and of those of its first stream alone.
    #[test]
    fn no_kind_of_event_waits_for_the_end_of_another() {
        let mut inbox = Inbox::default();
        let streams = [StreamId(0), StreamId(5)];
        for stream in streams {
            inbox.open_stream(stream, 8);
            inbox.push_outcome(stream, MessageId(0), OUTCOME);
        }
        inbox.on_writable();
        let mut told = Vec::new();
        for _ in 0..8 {
            inbox.push_message(message());
            inbox.push_outcome(streams[0], MessageId(1), OUTCOME);
            told.extend(inbox.next_event());
        }
        let outcomes = told.iter().filter_map(|event| match event {
            Event::Outcome { stream, .. } => Some(*stream),
            _ => None,
        });
        assert_eq!(
            outcomes.collect::<Vec<_>>(),
            [streams[0], streams[1], streams[0]]
        );
        assert!(told.contains(&Event::Writable));
        let is_message = |event: &&Event| matches!(event, Event::Message(_));
        assert_eq!(told.iter().filter(is_message).count(), 4);
    }

    #[test]
    fn the_end_is_told_last_and_once() {
        let mut inbox = Inbox::default();
        inbox.open_stream(StreamId(3), 8);
        inbox.on_closed(CloseReason::IdleTimeout, None, |_| None);
        inbox.push_outcome(StreamId(3), MessageId(0), OUTCOME);
        assert!(matches!(
            inbox.next_event(),
            Some(Event::Outcome {
                stream: StreamId(3),
                ..
            })
        ));
        let end = inbox.next_event();
        assert!(matches!(
            end,
            Some(Event::Closed {
                why: CloseReason::IdleTimeout
            })
        ));
        assert_eq!(inbox.next_event(), None);
    }
}
