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
use crate::{Event, Message, OpenError, SessionClosed, Stream, StreamConfig};

/// Most streams that one side of a session has open.
const STREAMS_MAX: usize = 1024;
/// Largest number of a stream.
const STREAM_NUMBER_MAX: u64 = (1 << 62) - 1;

/// A session with a peer: encrypted, with streams of messages in both directions.
///
/// Clones are handles of the same session; [`Stream`]s are too. When the last is dropped the session is closed, and
/// messages on their way are dropped; [`finish`](Self::finish) sees them delivered first.
///
/// Up to 1,024 messages (1 MiB) wait here for the application to take them, as many again in the protocol; beyond that the
/// peer's packets are refused until there is room.
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

    /// Opens a stream for messages to the peer. Nothing travels: the peer hears of it by the first message.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_stream(&self, config: StreamConfig) -> Result<Stream, OpenError> {
        let mut inbox = self.handle.mailbox.lock();
        if let Some(why) = inbox.closed() {
            return Err(OpenError::Closed { why: why.clone() });
        }
        let (free, open) = inbox.free_stream();
        if open >= STREAMS_MAX {
            return Err(OpenError::TooManyStreams { limit: STREAMS_MAX });
        }
        let number = config.number.unwrap_or(free);
        if number > STREAM_NUMBER_MAX {
            return Err(OpenError::Number {
                max: STREAM_NUMBER_MAX,
            });
        }
        if !inbox.open_stream(number, config.outcomes_kept) {
            return Err(OpenError::AlreadyOpen { number });
        }
        drop(inbox);
        Ok(Stream::new(Arc::clone(&self.handle), number))
    }

    /// Waits for the next message of any stream.
    ///
    /// # Errors
    /// When the session is over and its last message has been taken.
    pub async fn recv(&self) -> Result<Message, SessionClosed> {
        let message = self.handle.mailbox.wait(next_message).await;
        self.handle.after_taking();
        message
    }

    /// As [`recv`](Self::recv), on this thread.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_blocking(&self) -> Result<Message, SessionClosed> {
        let message = self.handle.take_blocking(None, next_message);
        message.expect("it waits without end")
    }

    /// As [`recv_blocking`](Self::recv_blocking), for as long as `patience`; `None` when nothing came.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_timeout(&self, patience: Duration) -> Result<Option<Message>, SessionClosed> {
        let message = self.handle.take_blocking(Some(patience), next_message);
        message.transpose()
    }

    /// The next message, if one is there.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn try_recv(&self) -> Result<Option<Message>, SessionClosed> {
        self.recv_timeout(Duration::ZERO)
    }

    /// Waits for whatever comes next: a message, the outcome of one, room to send, the end. For programs with one loop for
    /// all; what is taken here is not seen by [`recv`](Self::recv) and [`Stream::next_outcome`]. After
    /// [`Event::Closed`], which is the last, it answers with an error.
    ///
    /// # Errors
    /// When the session is over and everything has been taken.
    pub async fn next_event(&self) -> Result<Event, SessionClosed> {
        let event = self.handle.mailbox.wait(next_event).await;
        self.handle.after_taking();
        event
    }

    /// As [`next_event`](Self::next_event), on this thread.
    ///
    /// # Errors
    /// As [`next_event`](Self::next_event).
    pub fn next_event_blocking(&self) -> Result<Event, SessionClosed> {
        let event = self.handle.take_blocking(None, next_event);
        event.expect("it waits without end")
    }

    /// As [`next_event_blocking`](Self::next_event_blocking), for as long as `patience`; `None` when nothing happened.
    ///
    /// # Errors
    /// As [`next_event`](Self::next_event).
    pub fn next_event_timeout(&self, patience: Duration) -> Result<Option<Event>, SessionClosed> {
        let event = self.handle.take_blocking(Some(patience), next_event);
        event.transpose()
    }

    /// Gives the buffer of a message back, so that the next one needs no allocation. Worth it above some ten thousand
    /// messages a second.
    pub fn recycle(&self, message: Message) {
        self.handle.core.lock().endpoint.recycle(message.data);
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

    /// Ends the session now: messages without an outcome are dropped. `reason` is for the peer's logs, at most 200 bytes.
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
            .wait(|inbox| inbox.closed().cloned())
            .await
    }

    /// As [`closed`](Self::closed), on this thread.
    pub fn closed_blocking(&self) -> CloseReason {
        let why = self
            .handle
            .mailbox
            .wait_blocking(None, |inbox| inbox.closed().cloned());
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
        patience: Option<Duration>,
        mut take: impl FnMut(&mut Inbox) -> Option<T>,
    ) -> Option<T> {
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        let taken = match patience {
            // A look needs no listener.
            Some(Duration::ZERO) => take(&mut self.mailbox.lock()),
            _ => self.mailbox.wait_blocking(until, take),
        };
        self.after_taking();
        taken
    }

    /// Lets the protocol go on when the inbox has room again.
    pub(crate) fn after_taking(&self) {
        if self.mailbox.lock().take_release() {
            self.core.lock().endpoint.hold_messages(self.id, false);
            self.core.wake();
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

fn next_event(inbox: &mut Inbox) -> Option<Result<Event, SessionClosed>> {
    inbox.next_event().map(Ok).or_else(|| end(inbox))
}

pub(crate) fn end<T>(inbox: &Inbox) -> Option<Result<T, SessionClosed>> {
    let why = inbox.closed()?.clone();
    Some(Err(SessionClosed { why }))
}
