//! What a session has for its application: messages, outcomes by stream, and how it ended.

use std::collections::{BTreeMap, VecDeque};

use punctual_proto::{CloseReason, MessageId, Outcome, SessionStats};

use crate::Message;
use crate::event::Event;

/// Messages that wait here at most; from then on they wait in the protocol, which has limits of its own.
pub(crate) const MESSAGES_MAX: usize = 1024;
/// Bytes of them.
pub(crate) const BYTES_MAX: usize = 1 << 20;

/// The inbox of one session.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    messages: VecDeque<Message>,
    message_bytes: usize,
    /// The protocol keeps further messages until there is room here again.
    is_held: bool,
    /// Streams that this side has open, with the outcomes that nobody has taken yet.
    streams: BTreeMap<u64, Outcomes>,
    /// `send` has answered `Full`, and there has been no room since.
    pub(crate) is_full: bool,
    /// There is room again, and [`Inbox::next_event`] has not told it.
    tells_writable: bool,
    closed: Option<CloseReason>,
    tells_closed: bool,
    /// The counts at the end.
    pub(crate) final_stats: Option<SessionStats>,
}

/// Outcomes of one stream.
#[derive(Debug, Default)]
struct Outcomes {
    waiting: VecDeque<(MessageId, Outcome)>,
    kept_max: usize,
    missed: u64,
}

impl Inbox {
    /// A message has arrived. `true` when the protocol is to keep further ones.
    pub(crate) fn push_message(&mut self, message: Message) -> bool {
        self.message_bytes += message.data.len();
        self.messages.push_back(message);
        let is_full = self.messages.len() >= MESSAGES_MAX || self.message_bytes >= BYTES_MAX;
        is_full && !std::mem::replace(&mut self.is_held, true)
    }

    pub(crate) fn pop_message(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.message_bytes -= message.data.len();
        if self.messages.is_empty() && self.messages.capacity() > 64 {
            // What one burst needed is not kept by a thousand idle sessions.
            self.messages = VecDeque::new();
        }
        Some(message)
    }

    /// Whether the protocol may go on handing messages over; answers `true` once.
    pub(crate) fn take_release(&mut self) -> bool {
        let has_room =
            self.messages.len() <= MESSAGES_MAX / 2 && self.message_bytes <= BYTES_MAX / 2;
        has_room && std::mem::take(&mut self.is_held)
    }

    /// `false` when the stream is open already.
    pub(crate) fn open_stream(&mut self, number: u64, kept_max: usize) -> bool {
        if self.streams.contains_key(&number) {
            return false;
        }
        let outcomes = Outcomes {
            kept_max,
            ..Outcomes::default()
        };
        self.streams.insert(number, outcomes);
        true
    }

    pub(crate) fn close_stream(&mut self, number: u64) {
        self.streams.remove(&number);
    }

    /// The lowest number that no open stream has, and how many are open.
    pub(crate) fn free_stream(&self) -> (u64, usize) {
        let taken = self.streams.keys().zip(0..);
        let free = taken.take_while(|(number, at)| **number == *at).count();
        (free as u64, self.streams.len())
    }

    pub(crate) fn push_outcome(&mut self, stream: u64, message: MessageId, outcome: Outcome) {
        let Some(outcomes) = self.streams.get_mut(&stream) else {
            return;
        };
        if outcomes.waiting.len() >= outcomes.kept_max {
            outcomes.missed += 1;
            if outcomes.waiting.pop_front().is_none() {
                return;
            }
        }
        outcomes.waiting.push_back((message, outcome));
    }

    pub(crate) fn pop_outcome(&mut self, stream: u64) -> Option<(MessageId, Outcome)> {
        let waiting = &mut self.streams.get_mut(&stream)?.waiting;
        let outcome = waiting.pop_front();
        if waiting.is_empty() && waiting.capacity() > 64 {
            *waiting = VecDeque::new();
        }
        outcome
    }

    pub(crate) fn missed_outcomes(&self, stream: u64) -> u64 {
        self.streams.get(&stream).map_or(0, |stream| stream.missed)
    }

    pub(crate) const fn on_writable(&mut self) {
        self.is_full = false;
        self.tells_writable = true;
    }

    pub(crate) fn on_closed(&mut self, why: CloseReason, stats: Option<SessionStats>) {
        if self.closed.is_none() {
            self.closed = Some(why);
            self.final_stats = stats;
            self.tells_closed = true;
        }
    }

    pub(crate) const fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// All of it in one sequence: messages, outcomes, room to send, the end.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        if let Some(message) = self.pop_message() {
            return Some(Event::Message(message));
        }
        let mut streams = self.streams.iter();
        let next = streams.find_map(|(&stream, it)| (!it.waiting.is_empty()).then_some(stream));
        if let Some(stream) = next {
            let (message, outcome) = self.pop_outcome(stream)?;
            return Some(Event::Outcome {
                stream,
                message,
                outcome,
            });
        }
        if std::mem::take(&mut self.tells_writable) {
            return Some(Event::Writable);
        }
        let why = self.closed.as_ref()?;
        std::mem::take(&mut self.tells_closed).then(|| Event::Closed { why: why.clone() })
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

    #[test]
    fn a_full_inbox_is_held_once_and_released_once() {
        let mut inbox = Inbox::default();
        let message = || Message {
            stream: 0,
            data: vec![0; 4],
        };
        let held: Vec<bool> = (0..MESSAGES_MAX + 2)
            .map(|_| inbox.push_message(message()))
            .collect();
        assert_eq!(held.iter().position(|held| *held), Some(MESSAGES_MAX - 1));
        assert_eq!(held.iter().filter(|held| **held).count(), 1);
        let released: Vec<bool> = (0..MESSAGES_MAX + 2)
            .map(|_| {
                inbox.pop_message();
                inbox.take_release()
            })
            .collect();
        assert_eq!(released.iter().filter(|released| **released).count(), 1);
    }

    #[test]
    fn outcomes_beyond_what_is_kept_are_counted() {
        let mut inbox = Inbox::default();
        assert!(inbox.open_stream(0, 2) && !inbox.open_stream(0, 2));
        assert!(inbox.open_stream(1, 0));
        assert_eq!(inbox.free_stream(), (2, 2));
        for id in 0..5 {
            inbox.push_outcome(0, MessageId(id), OUTCOME);
            inbox.push_outcome(1, MessageId(id), OUTCOME);
        }
        assert_eq!(inbox.pop_outcome(0), Some((MessageId(3), OUTCOME)));
        assert_eq!(inbox.pop_outcome(1), None);
        assert_eq!((inbox.missed_outcomes(0), inbox.missed_outcomes(1)), (3, 5));
    }

    #[test]
    fn the_end_is_told_last_and_once() {
        let mut inbox = Inbox::default();
        inbox.open_stream(3, 8);
        inbox.on_closed(CloseReason::IdleTimeout, None);
        inbox.push_outcome(3, MessageId(0), OUTCOME);
        assert!(matches!(
            inbox.next_event(),
            Some(Event::Outcome { stream: 3, .. })
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
