//! What a session tells its application.

use alloc::vec::Vec;

use super::CloseReason;
use crate::stream::{MessageId, Outcome, StreamId};

/// What a session tells its application.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is over; the peer has shown that it holds its keys and receives at its address.
    Connected {
        /// Who the client is, from its connect token; empty on a client and without a token.
        identity: Vec<u8>,
    },
    /// A message has arrived.
    Message {
        /// Its stream.
        stream: StreamId,
        /// Its bytes. Give the buffer back with [`crate::Endpoint::recycle`] to spare an allocation.
        data: Vec<u8>,
    },
    /// News of a message that is larger than [`crate::limits::WHOLE_MAX`].
    Piece(Piece),
    /// A message that was accepted has an outcome. Each gets exactly one.
    Outcome {
        /// Its stream.
        stream: StreamId,
        /// Which.
        message: MessageId,
        /// What became of it.
        outcome: Outcome,
    },
    /// There is room again after `send` answered `Full`, or after `append` took less than all.
    Writable,
    /// The session is over; nothing follows.
    Closed {
        /// Why.
        why: CloseReason,
    },
}

impl Event {
    /// What an application that does not keep up leaves waiting.
    pub(super) const fn is_content(&self) -> bool {
        self.content_of().is_some()
    }

    /// Of which stream that is.
    pub(super) const fn content_of(&self) -> Option<StreamId> {
        match self {
            Self::Message { stream, .. } => Some(*stream),
            Self::Piece(piece) => Some(piece.stream()),
            _ => None,
        }
    }

    /// Bytes of messages in it.
    pub(super) const fn content_len(&self) -> usize {
        match self {
            Self::Message { data, .. } => data.len(),
            Self::Piece(piece) => piece.data_len(),
            _ => 0,
        }
    }
}

/// News of a message that is too large to be handed on whole: it comes piece by piece, so that nobody has to hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The next piece. Those of one message come in order, without gaps; the one that ends at `message_len` is the last.
    Data {
        /// The stream that the message was sent on, as the sender numbered it.
        stream: StreamId,
        /// Tells messages that come in pieces at the same time apart.
        message: u64,
        /// Bytes of the message before this piece.
        offset: usize,
        /// Bytes of the whole message.
        message_len: usize,
        /// Its bytes. Give the buffer back with [`crate::Endpoint::recycle`] to spare an allocation.
        data: Vec<u8>,
    },
    /// No more of the message follows: its sender has taken it back, replaced it by a newer one, or given it up.
    Aborted {
        /// The stream that the message was sent on.
        stream: StreamId,
        /// Which of them.
        message: u64,
    },
}

impl Piece {
    /// The stream that the message was sent on.
    #[must_use]
    pub const fn stream(&self) -> StreamId {
        match self {
            Self::Data { stream, .. } | Self::Aborted { stream, .. } => *stream,
        }
    }

    /// Whether the message is whole with this piece.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        match self {
            Self::Data {
                offset,
                message_len,
                data,
                ..
            } => *offset + data.len() == *message_len,
            Self::Aborted { .. } => false,
        }
    }

    /// Bytes of the message in it.
    #[must_use]
    pub const fn data_len(&self) -> usize {
        match self {
            Self::Data { data, .. } => data.len(),
            Self::Aborted { .. } => 0,
        }
    }
}
