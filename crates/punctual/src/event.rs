//! What an application hears.

use std::ops::Deref;

use punctual_proto::{CloseReason, MessageId, Outcome, Piece, StreamId};

/// A message from the peer. It reads as a slice of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The stream that it was sent on, as the sender numbered it.
    pub stream: StreamId,
    /// Its bytes.
    pub data: Vec<u8>,
}

impl Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.data
    }
}

impl From<Message> for Vec<u8> {
    fn from(message: Message) -> Self {
        message.data
    }
}

/// What happens in a session, in one sequence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The session is open. Only a [`frame::Endpoint`](crate::frame::Endpoint) tells of it; elsewhere `connect` and `accept` do.
    Connected {
        /// Who the client is, from its connect token; empty on a client and without a token.
        identity: Vec<u8>,
    },
    /// A message has arrived.
    Message(Message),
    /// Of a large message a piece has arrived, or no more will. Only with [`Receive::Pieces`](crate::Receive::Pieces).
    Piece(Piece),
    /// A message that was sent has its outcome. Each gets exactly one.
    Outcome {
        /// The stream that it was sent on.
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
