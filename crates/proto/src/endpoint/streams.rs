//! What applications do with streams: open them, send, take back, ask.

use core::time::Duration;

use super::{Endpoint, SessionId, Slot};
use crate::message::SharedContent;
use crate::session::{Content, SendError};
use crate::stream::{
    Cancel, Departure, MessageId, SendOptions, StreamConfig, StreamError, StreamId, StreamStats,
};
use crate::time::Instant;

impl Endpoint {
    /// Opens a stream for messages to the peer. Nothing travels: the peer hears of it by the first message. Streams of the two
    /// directions have nothing to do with each other. One without a number has the least that is free, of which the first is that of
    /// [`StreamId::DEFAULT`].
    ///
    /// # Errors
    /// When there are too many, the number is taken, or the configuration makes no sense; see [`StreamError`].
    pub fn open_stream(
        &mut self,
        session: SessionId,
        config: StreamConfig,
    ) -> Result<StreamId, StreamError> {
        self.with_session(session, |session, _| session.open_stream(config))
            .unwrap_or(Err(StreamError::Closed))
    }

    /// A stream accepts no more messages; those accepted go on. Its number is free once they have their outcomes.
    pub fn close_stream(&mut self, session: SessionId, stream: StreamId) {
        self.with_session(session, |session, _| session.close_stream(stream));
    }

    /// Changes the share of a stream from now on; weights out of 1..=1,000 are taken for the nearest that is in.
    pub fn set_weight(&mut self, session: SessionId, stream: StreamId, weight: u16) {
        self.with_session(session, |session, _| session.set_weight(stream, weight));
    }

    /// Sends a message on a stream. An outcome follows as an event, whatever happens. The content is copied.
    ///
    /// # Errors
    /// When the message cannot be accepted; see [`SendError`].
    pub fn send(
        &mut self,
        now: Instant,
        session: SessionId,
        stream: StreamId,
        data: &[u8],
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        self.send_content(now, session, stream, Content::Bytes(data), options)
    }

    /// As [`Endpoint::send`], without copying the content (above 16 KiB): it is read as it is sent, and let go of with the outcome. For large
    /// messages, and for one that goes to many sessions.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send_shared(
        &mut self,
        now: Instant,
        session: SessionId,
        stream: StreamId,
        data: SharedContent,
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        self.send_content(now, session, stream, Content::Shared(data), options)
    }

    /// Begins a message of `len` bytes whose content follows with [`Endpoint::append`], for content that is not in memory.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn begin(
        &mut self,
        now: Instant,
        session: SessionId,
        stream: StreamId,
        len: usize,
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        self.send_content(now, session, stream, Content::Later(len), options)
    }

    /// Hands in more of the content of a message that was begun with [`Endpoint::begin`]; answers how many bytes of it were
    /// taken. When that is less than all, go on after [`crate::Event::Writable`]; what is more than the length that was announced is never taken.
    ///
    /// # Errors
    /// `NoMessage` when the message has its outcome already, or was not begun so.
    pub fn append(
        &mut self,
        session: SessionId,
        message: MessageId,
        data: &[u8],
    ) -> Result<usize, SendError> {
        self.with_session(session, |session, _| session.append(message, data))
            .unwrap_or(Err(SendError::Closed { why: None }))
    }

    fn send_content(
        &mut self,
        now: Instant,
        session: SessionId,
        stream: StreamId,
        content: Content<'_>,
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        self.with_session(session, |session, shared| {
            session.send(now, stream, content, options, shared)
        })
        .unwrap_or(Err(SendError::Closed { why: None }))
    }

    /// Takes a message back, at any moment: what is queued is dropped, what is on its way is not repaired, and the peer does not
    /// wait for it. The outcome follows as an event.
    pub fn cancel(&mut self, now: Instant, session: SessionId, message: MessageId) -> Cancel {
        self.with_session(session, |session, shared| {
            session.cancel(now, message, shared)
        })
        .unwrap_or(Cancel::TooLate)
    }

    /// When the first packet of a message left, for those who measure the path with messages of their own. Ask after
    /// `poll_transmit`: with the outcome the message is forgotten.
    #[must_use]
    pub fn departure(&self, session: SessionId, message: MessageId) -> Departure {
        match self.table.named(session) {
            Some(Slot::Session(session)) => session.departure(message),
            _ => Departure::Unknown,
        }
    }

    /// Lets what is sent from now on wait for [`Endpoint::flush`], so that the sends of one tick of a game share packets, but not
    /// for longer than `max`. `None`, as at the beginning: everything goes at once. Repairs never wait.
    pub fn set_tick(&mut self, session: SessionId, max: Option<Duration>) {
        self.with_session(session, |session, _| session.set_tick(max));
    }

    /// The tick is over: what was sent in it leaves with the next `poll_transmit`.
    pub fn flush(&mut self, session: SessionId) {
        self.with_session(session, |session, _| session.flush());
    }

    /// Counts of a stream of this side of a session; `None` when there is none.
    #[must_use]
    pub fn stream_stats(&self, session: SessionId, stream: StreamId) -> Option<StreamStats> {
        match self.table.named(session)? {
            Slot::Session(session) => session.stream_stats(stream),
            _ => None,
        }
    }
}
