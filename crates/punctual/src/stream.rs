//! Streams of messages to a peer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use punctual_proto::{MessageId, Outcome, SendError, SendOptions};

use crate::inbox::Inbox;
use crate::session::{Handle, end};
use crate::{Session, SessionClosed};

/// How the messages of a stream are delivered. More modes come with later versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivery {
    /// Each message exactly once, in whatever order they arrive.
    #[default]
    Reliable,
}

/// How a stream behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    delivery: Delivery,
    pub(crate) number: Option<u64>,
    pub(crate) outcomes_kept: usize,
}

impl StreamConfig {
    /// A stream with this delivery.
    #[must_use]
    pub const fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            number: None,
            outcomes_kept: 4096,
        }
    }

    /// Gives the stream a number of the application's choice, by which the peer knows its messages ([`Message::stream`]).
    /// Without it, it is the lowest that is free: 0, 1, 2 in the order of opening.
    ///
    /// [`Message::stream`]: crate::Message::stream
    #[must_use]
    pub const fn number(mut self, number: u64) -> Self {
        self.number = Some(number);
        self
    }

    /// How many outcomes wait to be taken. Beyond it the oldest make room and are counted
    /// ([`Stream::missed_outcomes`]), so that an application that does not ask for them need do nothing. Default 4,096,
    /// four times as many as there can be messages on their way.
    #[must_use]
    pub const fn outcomes_kept(mut self, count: usize) -> Self {
        self.outcomes_kept = count;
        self
    }

    /// How messages are delivered.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }
}

/// Messages to the peer, and what became of them. Clones are handles of the same stream; with the last its number is free.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

struct Inner {
    session: Arc<Handle>,
    number: u64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.session.mailbox.lock().close_stream(self.number);
    }
}

impl Stream {
    pub(crate) fn new(session: Arc<Handle>, number: u64) -> Self {
        Self {
            inner: Arc::new(Inner { session, number }),
        }
    }

    /// The number by which the peer knows its messages.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.inner.number
    }

    /// The session that it belongs to.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::from_handle(Arc::clone(&self.inner.session))
    }

    /// Sends a message. Never waits: the answer is whether it was accepted, and every accepted message gets exactly one
    /// outcome. The deadline counts from this call.
    ///
    /// # Errors
    /// [`SendError::Full`] while the session holds 1 MiB or 1,024 messages without an outcome: wait with
    /// [`writable`](Self::writable), or send less. The others do not go away by waiting.
    pub fn send(
        &self,
        data: impl AsRef<[u8]>,
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        let Handle { core, id, .. } = &*self.inner.session;
        // Before the lock, so that waiting for it counts.
        let now = core.now();
        let sent = core
            .lock()
            .send(now, *id, self.inner.number, data.as_ref(), options);
        match sent {
            Ok(message) => {
                core.wake();
                Ok(message)
            }
            Err(error) => Err(self.inner.session.explain(error)),
        }
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

    /// Waits until there is room again after [`SendError::Full`]; returns too when the session is over.
    pub async fn writable(&self) {
        self.inner.session.mailbox.wait(is_writable).await;
    }

    /// As [`writable`](Self::writable), on this thread.
    pub fn writable_blocking(&self) {
        self.inner.session.mailbox.wait_blocking(None, is_writable);
    }

    /// Waits for the next outcome of a message of this stream.
    ///
    /// # Errors
    /// When the session is over and the last outcome has been taken.
    pub async fn next_outcome(&self) -> Result<(MessageId, Outcome), SessionClosed> {
        let number = self.inner.number;
        let next = |inbox: &mut Inbox| next_outcome(inbox, number);
        self.inner.session.mailbox.wait(next).await
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
        let number = self.inner.number;
        let next = |inbox: &mut Inbox| next_outcome(inbox, number);
        self.inner.session.take_blocking(patience, next)
    }

    /// Outcomes that made room for newer ones because nobody took them.
    #[must_use]
    pub fn missed_outcomes(&self) -> u64 {
        let inbox = self.inner.session.mailbox.lock();
        inbox.missed_outcomes(self.inner.number)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("session", &self.inner.session.id)
            .field("number", &self.inner.number)
            .finish_non_exhaustive()
    }
}

fn next_outcome(
    inbox: &mut Inbox,
    stream: u64,
) -> Option<Result<(MessageId, Outcome), SessionClosed>> {
    inbox.pop_outcome(stream).map(Ok).or_else(|| end(inbox))
}

fn is_writable(inbox: &mut Inbox) -> Option<()> {
    (!inbox.is_full || inbox.closed().is_some()).then_some(())
}
