//! A session with a peer.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_proto::{
    CloseCode, CloseReason, Forecast, PathReport, SendError, SendOptions, SessionId, SessionStats,
};

use crate::core::{Core, Mailbox, Opened};
use crate::inbox::Inbox;
use crate::signal::Topic;
use crate::{
    Event, MeasureError, MeasureOptions, Measurement, Message, OpenError, Piece, SessionClosed,
    Stream, StreamConfig,
};

/// A session with a peer: encrypted, with streams of messages in both directions.
///
/// Clones are handles of the same session; [`Stream`]s are too. When the last is dropped the session is closed, and
/// messages on their way are dropped; [`finish`](Self::finish) sees them delivered first. It lasts no longer than its
/// [`Endpoint`](crate::Endpoint), of which a handle is to be kept.
///
/// Up to 1,024 messages (1 MiB, or one larger message) wait here for the application to take them. Behind them the protocol holds up to
/// 4,096 messages and 4 MiB: from half of that on the peer is slowed down, and beyond it its packets are refused until there is room. [`Config::receive`](crate::Config::receive) says how
/// messages above 256 KiB come, and how many of their bytes are held.
#[derive(Clone)]
pub struct Session {
    handle: Arc<Handle>,
}

/// What the handles of a session share. The session is closed with the last of them.
pub(crate) struct Handle {
    pub(crate) core: Arc<Core>,
    pub(crate) id: SessionId,
    pub(crate) mailbox: Arc<Mailbox>,
    remote: Option<SocketAddr>,
    identity: Vec<u8>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let now = self.core.now();
        self.core.lock().forget(now, self.id);
        self.core.wake();
    }
}

impl Session {
    pub(crate) fn new(core: Arc<Core>, opened: Opened, identity: Vec<u8>) -> Self {
        Self {
            handle: Arc::new(Handle {
                core,
                id: opened.id,
                mailbox: opened.mailbox,
                remote: opened.remote,
                identity,
            }),
        }
    }

    pub(crate) const fn from_handle(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    /// Names the session within its endpoint.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.handle.id
    }

    /// Who the client is, from its connect token; empty on a client and without a token.
    #[must_use]
    pub fn identity(&self) -> &[u8] {
        &self.handle.identity
    }

    /// The peer's address; a client's may change on the way.
    #[must_use]
    pub fn remote_addr(&self) -> Option<SocketAddr> {
        let current = self.handle.core.lock().endpoint.remote(self.handle.id);
        current.or(self.handle.remote)
    }

    /// Opens a stream for messages to the peer. Nothing travels: the peer hears of it by the first message. One without a number has the least
    /// that is free.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_stream(&self, config: StreamConfig) -> Result<Stream, OpenError> {
        let Handle {
            core, id, mailbox, ..
        } = &*self.handle;
        let now = core.now();
        let mut state = core.lock();
        // Outcomes of an earlier stream of the same number are not those of this one.
        state.dispatch(now, core);
        let opened = state.endpoint.open_stream(*id, config.protocol);
        if let Ok(stream) = opened {
            mailbox.lock().open_stream(stream, config.outcomes_kept);
        }
        drop(state);
        core.wake();
        match opened {
            Ok(stream) => Ok(Stream::new(Arc::clone(&self.handle), stream)),
            Err(error) => Err(match OpenError::from(error) {
                OpenError::Closed { .. } => OpenError::Closed {
                    why: self.close_reason(),
                },
                error => error,
            }),
        }
    }

    /// Waits for the next message of any stream.
    ///
    /// # Errors
    /// When the session is over and its last message has been taken.
    pub async fn recv(&self) -> Result<Message, SessionClosed> {
        let message = self
            .handle
            .mailbox
            .wait_for(Topic::Content, next_message)
            .await;
        self.handle.after_taking();
        message
    }

    /// As [`recv`](Self::recv), on this thread.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_blocking(&self) -> Result<Message, SessionClosed> {
        let message = self
            .handle
            .take_blocking(Topic::Content, None, next_message);
        message.expect("it waits without end")
    }

    /// As [`recv_blocking`](Self::recv_blocking), for as long as `patience`; `None` when nothing came.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_timeout(&self, patience: Duration) -> Result<Option<Message>, SessionClosed> {
        let message = self
            .handle
            .take_blocking(Topic::Content, Some(patience), next_message);
        message.transpose()
    }

    /// The next message, if one is there.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn try_recv(&self) -> Result<Option<Message>, SessionClosed> {
        self.recv_timeout(Duration::ZERO)
    }

    /// Waits for the next piece of a large message of any stream, where those are received so
    /// ([`Receive::Pieces`](crate::Receive::Pieces)). Messages and pieces wait for room together, so take both; where their order
    /// matters use [`next_event`](Self::next_event).
    ///
    /// # Errors
    /// When the session is over and its last piece has been taken.
    pub async fn recv_piece(&self) -> Result<Piece, SessionClosed> {
        let piece = self
            .handle
            .mailbox
            .wait_for(Topic::Content, next_piece)
            .await;
        self.handle.after_taking();
        piece
    }

    /// As [`recv_piece`](Self::recv_piece), on this thread.
    ///
    /// # Errors
    /// As [`recv_piece`](Self::recv_piece).
    pub fn recv_piece_blocking(&self) -> Result<Piece, SessionClosed> {
        let piece = self.handle.take_blocking(Topic::Content, None, next_piece);
        piece.expect("it waits without end")
    }

    /// As [`recv_piece_blocking`](Self::recv_piece_blocking), for as long as `patience`; `None` when nothing came.
    ///
    /// # Errors
    /// As [`recv_piece`](Self::recv_piece).
    pub fn recv_piece_timeout(&self, patience: Duration) -> Result<Option<Piece>, SessionClosed> {
        let piece = self
            .handle
            .take_blocking(Topic::Content, Some(patience), next_piece);
        piece.transpose()
    }

    /// The next piece, if one is there.
    ///
    /// # Errors
    /// As [`recv_piece`](Self::recv_piece).
    pub fn try_recv_piece(&self) -> Result<Option<Piece>, SessionClosed> {
        self.recv_piece_timeout(Duration::ZERO)
    }

    /// Waits for whatever comes next: a message, the outcome of one, room to send, the end. For programs with one loop for
    /// all; what is taken here is not seen by [`recv`](Self::recv) and [`Stream::next_outcome`]. After
    /// [`Event::Closed`], which is the last, it answers with an error.
    ///
    /// # Errors
    /// When the session is over and everything has been taken.
    pub async fn next_event(&self) -> Result<Event, SessionClosed> {
        let event = self.handle.mailbox.wait_for(Topic::Any, next_event).await;
        self.handle.after_taking();
        event
    }

    /// As [`next_event`](Self::next_event), on this thread.
    ///
    /// # Errors
    /// As [`next_event`](Self::next_event).
    pub fn next_event_blocking(&self) -> Result<Event, SessionClosed> {
        let event = self.handle.take_blocking(Topic::Any, None, next_event);
        event.expect("it waits without end")
    }

    /// As [`next_event_blocking`](Self::next_event_blocking), for as long as `patience`; `None` when nothing happened.
    ///
    /// # Errors
    /// As [`next_event`](Self::next_event).
    pub fn next_event_timeout(&self, patience: Duration) -> Result<Option<Event>, SessionClosed> {
        let event = self
            .handle
            .take_blocking(Topic::Any, Some(patience), next_event);
        event.transpose()
    }

    /// Gives the buffer of a message or of a piece back, so that the next one needs no allocation. Worth it above some ten
    /// thousand messages a second.
    pub fn recycle(&self, buffer: impl Into<Vec<u8>>) {
        let buffer = buffer.into();
        self.handle.core.lock().endpoint.recycle(buffer);
    }

    /// Sends by ticks: what is sent from now on waits for [`flush`](Self::flush), so that the messages of one tick of a game
    /// share packets, but for no longer than `max`. `None`, as at the beginning: everything goes at once. Repairs never wait.
    pub fn set_tick(&self, max: Option<Duration>) {
        let Handle { core, id, .. } = &*self.handle;
        core.lock().endpoint.set_tick(*id, max);
        core.wake();
    }

    /// The tick is over: what was sent in it goes. Without [`set_tick`](Self::set_tick) there is no need for it.
    pub fn flush(&self) {
        let Handle { core, id, .. } = &*self.handle;
        core.lock().endpoint.flush(*id);
        core.wake();
    }

    /// What could be promised for a message of `len` bytes now.
    ///
    /// # Errors
    /// As [`Stream::send`], except for full queues.
    pub fn forecast(&self, len: usize, options: SendOptions) -> Result<Forecast, SendError> {
        let Handle { core, id, .. } = &*self.handle;
        let now = core.now();
        let forecast = core.lock().endpoint.forecast(now, *id, len, &options);
        forecast.map_err(|error| self.handle.explain(error))
    }

    /// What the session has counted. After its end, the counts at the end; `None` only where those are unknown.
    #[must_use]
    pub fn stats(&self) -> Option<SessionStats> {
        let Handle {
            core, id, mailbox, ..
        } = &*self.handle;
        let current = core.lock().endpoint.session_stats(*id);
        current.or_else(|| mailbox.lock().final_stats)
    }

    /// What is known of the path now; `None` once the session is gone.
    #[must_use]
    pub fn path(&self) -> Option<PathReport> {
        let Handle { core, id, .. } = &*self.handle;
        let now = core.now();
        core.lock().endpoint.path_report(now, *id)
    }

    /// Begins to measure the path beside whatever else the session does; one measurement at a time. The server must allow it
    /// ([`Config::measure`](crate::Config::measure)), and says how often. (To the application of one that knows nothing of it, it is a message on stream 1,023.)
    ///
    /// # Errors
    /// See [`MeasureError`]. What the server answers, the measurement tells.
    pub fn measure(&self, options: MeasureOptions) -> Result<Measurement, MeasureError> {
        options.check().map_err(MeasureError::Option)?;
        let Handle { core, id, .. } = &*self.handle;
        let begun = core.lock().begin_measuring(core.now(), *id, options);
        core.wake();
        let watched = begun.map_err(|error| MeasureError::Stream(error.into()))?;
        Ok(Measurement::new(Arc::clone(&self.handle), watched))
    }

    /// Ends the session now: messages without an outcome are dropped. `reason` is for the peer's logs, at most 200 bytes; what is longer is cut.
    pub fn close(&self, code: CloseCode, reason: &str) {
        let Handle { core, id, .. } = &*self.handle;
        let now = core.now();
        core.lock().endpoint.close(now, *id, code, reason);
        core.wake();
    }

    /// Ends the session once every message that was sent has its outcome, and waits for that. Nothing more can be sent.
    /// Returns how the session ended: [`CloseReason::Local`] when all went well.
    pub async fn finish(&self) -> CloseReason {
        self.begin_finish();
        self.closed().await
    }

    /// As [`finish`](Self::finish), on this thread.
    pub fn finish_blocking(&self) -> CloseReason {
        self.begin_finish();
        self.closed_blocking()
    }

    fn begin_finish(&self) {
        let Handle { core, id, .. } = &*self.handle;
        let now = core.now();
        core.lock()
            .endpoint
            .finish(now, *id, CloseCode::DONE, "finished");
        core.wake();
    }

    /// Waits until the session is over.
    pub async fn closed(&self) -> CloseReason {
        self.handle
            .mailbox
            .wait_for(Topic::End, |inbox| inbox.closed().cloned())
            .await
    }

    /// As [`closed`](Self::closed), on this thread.
    pub fn closed_blocking(&self) -> CloseReason {
        let why = self
            .handle
            .mailbox
            .wait_blocking_for(Topic::End, None, |inbox| inbox.closed().cloned());
        why.expect("it waits without end")
    }

    /// Why the session is over; `None` while it is not.
    #[must_use]
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.handle.mailbox.lock().closed().cloned()
    }
}

impl Handle {
    /// Waits on this thread, for `patience` or without end.
    pub(crate) fn take_blocking<T>(
        &self,
        topic: Topic,
        patience: Option<Duration>,
        mut take: impl FnMut(&mut Inbox) -> Option<T>,
    ) -> Option<T> {
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        let taken = match patience {
            // A look needs no listener.
            Some(Duration::ZERO) => take(&mut self.mailbox.lock()),
            _ => self.mailbox.wait_blocking_for(topic, until, take),
        };
        self.after_taking();
        taken
    }

    /// Lets the protocol go on when the inbox has room again.
    pub(crate) fn after_taking(&self) {
        let mut inbox = self.mailbox.lock();
        let (is_released, is_news) = (inbox.take_release(), inbox.has_news());
        drop(inbox);
        if is_released || is_news {
            self.core.after_taking(self.id, is_released);
        }
    }

    /// Adds to an error why the session is over.
    pub(crate) fn explain(&self, error: SendError) -> SendError {
        match error {
            SendError::Closed { .. } => SendError::Closed {
                why: self.mailbox.lock().closed().cloned(),
            },
            error => error,
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.handle.id)
            .field("remote", &self.handle.remote)
            .finish_non_exhaustive()
    }
}

fn next_message(inbox: &mut Inbox) -> Option<Result<Message, SessionClosed>> {
    inbox.pop_message().map(Ok).or_else(|| end(inbox))
}

fn next_piece(inbox: &mut Inbox) -> Option<Result<Piece, SessionClosed>> {
    inbox.pop_piece().map(Ok).or_else(|| end(inbox))
}

fn next_event(inbox: &mut Inbox) -> Option<Result<Event, SessionClosed>> {
    inbox.next_event().map(Ok).or_else(|| end(inbox))
}

pub(crate) fn end<T>(inbox: &Inbox) -> Option<Result<T, SessionClosed>> {
    let why = inbox.closed()?.clone();
    Some(Err(SessionClosed { why }))
}
