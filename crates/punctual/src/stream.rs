//! Streams of messages to a peer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use punctual_proto::{
    Cancel, Delivery, Endpoint, Fairness, Instant, MessageId, Outcome, PromiseGroup, SendError,
    SendOptions, SessionId, SharedContent, StreamId, StreamStats,
};

use crate::core::lend;
use crate::inbox::Inbox;
use crate::session::{Handle, end};
use crate::signal::Topic;
use crate::{MessageWriter, Session, SessionClosed};

/// How a stream behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    pub(crate) protocol: punctual_proto::StreamConfig,
    pub(crate) outcomes_kept: usize,
}

impl StreamConfig {
    /// A stream with this delivery, weight 1, fair by bytes.
    #[must_use]
    pub const fn new(delivery: Delivery) -> Self {
        Self {
            protocol: punctual_proto::StreamConfig::new(delivery),
            outcomes_kept: 4096,
        }
    }

    /// Gives the stream a number of the application's choice below 1,024, by which the peer knows its messages
    /// ([`Message::stream`]). Without it, it is the lowest that is free: 0, 1, 2 in the order of opening.
    ///
    /// [`Message::stream`]: crate::Message::stream
    #[must_use]
    pub const fn number(mut self, number: u16) -> Self {
        self.protocol = self.protocol.number(number);
        self
    }

    /// Sets the share of the session's rate, 1 to 1,000: a stream of weight 4 gets four times the share of one of weight 1 while
    /// both have something to send. Default 1. [`Stream::set_weight`] changes it.
    #[must_use]
    pub const fn weight(mut self, weight: u16) -> Self {
        self.protocol = self.protocol.weight(weight);
        self
    }

    /// Sets what the share is measured in. Default [`Fairness::Bytes`].
    #[must_use]
    pub const fn fairness(mut self, fairness: Fairness) -> Self {
        self.protocol = self.protocol.fairness(fairness);
        self
    }

    /// Makes the stream one of those that share this promise, whichever session of the endpoint they belong to: so many of all their
    /// messages are on time, and no stream gets more than ten times its share of misses for want of symbols. For one message to many
    /// receivers ([`Stream::send_shared`]). Without it, [`Config::promise`](crate::Config) says whose share it is.
    #[must_use]
    pub const fn group(mut self, group: PromiseGroup) -> Self {
        self.protocol = self.protocol.group(group);
        self
    }

    /// How many outcomes wait to be taken. Beyond it the oldest make room and are counted
    /// ([`Stream::missed_outcomes`]), so that an application that does not ask for them need do nothing. Default 4,096,
    /// four times as many as there can be messages on their way. A [`frame::Endpoint`](crate::frame::Endpoint) has no use for it.
    #[must_use]
    pub const fn outcomes_kept(mut self, count: usize) -> Self {
        self.outcomes_kept = count;
        self
    }

    /// How messages are delivered.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        self.protocol.delivery
    }
}

/// Messages to the peer, and what became of them.
///
/// Clones are handles of the same stream. With the last it is closed: messages that were sent go on, and its number is free when
/// they have their outcomes.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

struct Inner {
    session: Arc<Handle>,
    id: StreamId,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Handle {
            core, id, mailbox, ..
        } = &*self.session;
        // Under one lock, so that the number is free in both or in neither.
        let mut state = core.lock();
        state.endpoint.close_stream(*id, self.id);
        mailbox.lock().close_stream(self.id);
    }
}

impl Stream {
    pub(crate) fn new(session: Arc<Handle>, id: StreamId) -> Self {
        Self {
            inner: Arc::new(Inner { session, id }),
        }
    }

    /// Names the stream within this side of the session; the peer finds it in its messages.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.inner.id
    }

    /// The session that it belongs to.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::from_handle(Arc::clone(&self.inner.session))
    }

    /// Sends a message of up to 64 MiB. Never waits: the answer is whether it was accepted, and every accepted message gets
    /// exactly one outcome. The deadline counts from this call. The content is copied.
    ///
    /// The answer names the message: its outcome comes with the name, and [`cancel`](Self::cancel) takes it back.
    ///
    /// # Errors
    /// [`SendError::Full`] when the stream has its share of the 1 MiB and the 1,024 messages that a session may hold without an outcome: seven eighths when it is
    /// alone, less when others hold some. (Messages above 74,929 bytes have 64 MiB for the 1 MiB.) Also while 4,096 events that are no messages wait to be taken. Wait with
    /// [`writable`](Self::writable), or send less. The other errors do not go away by waiting.
    pub fn send(
        &self,
        data: impl AsRef<[u8]>,
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        let data = data.as_ref();
        self.post(|endpoint, now, session, stream| {
            endpoint.send(now, session, stream, data, options)
        })
    }

    /// As [`send`](Self::send), but waits for room on this thread instead of answering [`SendError::Full`]. The deadline
    /// counts from when there was room.
    ///
    /// # Errors
    /// As [`send`](Self::send), except [`SendError::Full`].
    pub fn send_blocking(
        &self,
        data: impl AsRef<[u8]>,
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        loop {
            match self.send(data.as_ref(), options) {
                Err(SendError::Full { .. }) => self.writable_blocking(),
                result => return result,
            }
        }
    }

    /// As [`send`](Self::send), without copying the content: it is read as it is sent, and let go of with the outcome. For large
    /// messages, and for one that goes to many. It is read on the endpoint's thread: its `as_ref` must not call anything of this endpoint. Dropping it may.
    ///
    /// ```no_run
    /// # use punctual::{SendOptions, SharedContent, Stream};
    /// # use std::sync::Arc;
    /// # fn broadcast(members: &[Stream], bytes: Vec<u8>) -> Result<(), punctual::SendError> {
    /// let map: SharedContent = Arc::new(bytes);
    /// for member in members {
    ///     member.send_shared(Arc::clone(&map), SendOptions::default())?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`send`](Self::send); content above 16 KiB does not count towards what the session holds (up to that it is copied, and does).
    pub fn send_shared(
        &self,
        data: SharedContent,
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        let data = lend(data, &self.inner.session.core.returned);
        self.post(|endpoint, now, session, stream| {
            endpoint.send_shared(now, session, stream, data, options)
        })
    }

    /// Begins a message of `len` bytes whose content is not in memory: it follows piece by piece. The deadline counts from this
    /// call.
    ///
    /// # Errors
    /// As [`send`](Self::send); the content does not count towards what the session holds.
    pub fn writer(&self, len: usize, options: SendOptions) -> Result<MessageWriter, SendError> {
        let message = self.post(|endpoint, now, session, stream| {
            endpoint.begin(now, session, stream, len, options)
        })?;
        Ok(MessageWriter::new(self.clone(), message, len))
    }

    fn post(
        &self,
        hand_over: impl FnOnce(
            &mut Endpoint,
            Instant,
            SessionId,
            StreamId,
        ) -> Result<MessageId, SendError>,
    ) -> Result<MessageId, SendError> {
        let Handle { core, id, .. } = &*self.inner.session;
        // Before the lock, so that waiting for it counts.
        let now = core.now();
        let sent = core
            .lock()
            .send(*id, |endpoint| hand_over(endpoint, now, *id, self.inner.id));
        match sent {
            Ok(message) => {
                core.wake();
                Ok(message)
            }
            Err(error) => {
                // What was lent is not kept.
                core.returned.let_go();
                Err(self.inner.session.explain(error))
            }
        }
    }

    /// Hands in more of a message that was begun; how many bytes were taken.
    pub(crate) fn append(&self, message: MessageId, data: &[u8]) -> Result<usize, SendError> {
        let Handle { core, id, .. } = &*self.inner.session;
        let taken = core.lock().append(*id, message, data);
        core.wake();
        taken.map_err(|error| self.inner.session.explain(error))
    }

    /// Takes a message back, at any moment: what is queued is dropped, what is on its way is not repaired, and the peer does not
    /// wait for it. Its outcome follows whatever this answers.
    pub fn cancel(&self, message: MessageId) -> Cancel {
        let Handle { core, id, .. } = &*self.inner.session;
        let now = core.now();
        let cancel = core.lock().endpoint.cancel(now, *id, message);
        core.wake();
        cancel
    }

    /// Changes the stream's share of the session's rate from now on; a weight out of 1 to 1,000 is taken for the nearest in it.
    pub fn set_weight(&self, weight: u16) {
        let Handle { core, id, .. } = &*self.inner.session;
        let mut state = core.lock();
        state.endpoint.set_weight(*id, self.inner.id, weight);
    }

    /// What the stream has counted: promised and achieved, what the redundancy cost, and the reasons of misses. After the end of
    /// the session, the counts at the end.
    #[must_use]
    pub fn stats(&self) -> StreamStats {
        let Handle {
            core, id, mailbox, ..
        } = &*self.inner.session;
        let current = core.lock().endpoint.stream_stats(*id, self.inner.id);
        let stats = current.or_else(|| mailbox.lock().final_stream_stats(self.inner.id));
        stats.unwrap_or_default()
    }

    /// Waits until there is room again after [`SendError::Full`]; returns too when the session is over.
    pub async fn writable(&self) {
        let mailbox = &self.inner.session.mailbox;
        mailbox.wait_for(Topic::Sending, is_writable).await;
    }

    /// As [`writable`](Self::writable), on this thread.
    pub fn writable_blocking(&self) {
        let mailbox = &self.inner.session.mailbox;
        mailbox.wait_blocking_for(Topic::Sending, None, is_writable);
    }

    /// Waits for the next outcome of a message of this stream.
    ///
    /// # Errors
    /// When the session is over and the last outcome has been taken.
    pub async fn next_outcome(&self) -> Result<(MessageId, Outcome), SessionClosed> {
        let id = self.inner.id;
        let next = |inbox: &mut Inbox| next_outcome(inbox, id);
        let mailbox = &self.inner.session.mailbox;
        mailbox.wait_for(Topic::Sending, next).await
    }

    /// As [`next_outcome`](Self::next_outcome), on this thread.
    ///
    /// # Errors
    /// As [`next_outcome`](Self::next_outcome).
    pub fn next_outcome_blocking(&self) -> Result<(MessageId, Outcome), SessionClosed> {
        let outcome = self.outcome_within(None);
        outcome.expect("it waits without end")
    }

    /// As [`next_outcome_blocking`](Self::next_outcome_blocking), for as long as `patience`; `None` when there was none.
    ///
    /// # Errors
    /// As [`next_outcome`](Self::next_outcome).
    pub fn next_outcome_timeout(
        &self,
        patience: Duration,
    ) -> Result<Option<(MessageId, Outcome)>, SessionClosed> {
        self.outcome_within(Some(patience)).transpose()
    }

    /// The next outcome, if one is there.
    ///
    /// # Errors
    /// As [`next_outcome`](Self::next_outcome).
    pub fn try_next_outcome(&self) -> Result<Option<(MessageId, Outcome)>, SessionClosed> {
        self.next_outcome_timeout(Duration::ZERO)
    }

    fn outcome_within(
        &self,
        patience: Option<Duration>,
    ) -> Option<Result<(MessageId, Outcome), SessionClosed>> {
        let id = self.inner.id;
        let next = |inbox: &mut Inbox| next_outcome(inbox, id);
        let session = &self.inner.session;
        session.take_blocking(Topic::Sending, patience, next)
    }

    /// Outcomes that made room for newer ones because nobody took them.
    #[must_use]
    pub fn missed_outcomes(&self) -> u64 {
        let inbox = self.inner.session.mailbox.lock();
        inbox.missed_outcomes(self.inner.id)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("session", &self.inner.session.id)
            .field("id", &self.inner.id)
            .finish_non_exhaustive()
    }
}

fn next_outcome(
    inbox: &mut Inbox,
    stream: StreamId,
) -> Option<Result<(MessageId, Outcome), SessionClosed>> {
    inbox.pop_outcome(stream).map(Ok).or_else(|| end(inbox))
}

fn is_writable(inbox: &mut Inbox) -> Option<()> {
    (!inbox.is_full || inbox.closed().is_some()).then_some(())
}
