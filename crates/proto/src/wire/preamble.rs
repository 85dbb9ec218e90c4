//! The preamble: what a message says about itself, inside its coded blocks, once a message.

use super::DecodeError;
use super::bytes::{Reader, Writer, varint_len};
use crate::limits::{MESSAGE_MAX, STREAMS_MAX};

/// What the receiver has to know of a message's place among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// It has none: handed on as it comes.
    #[default]
    None,
    /// Handed on after the message of its stream with the sequence number before, of which these are the lowest 16 bits.
    Sequence(u16),
    /// There is none for this sequence number: those after it do not wait. It has no content.
    Void(u16),
    /// Handed on unless a message of its stream that began in a later block was.
    Newest,
    /// Handed on unless a message of its stream with the same key that began in a later block was.
    Key(u64),
}

/// The first bytes of the first block of a message, or of a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preamble {
    /// The block begins a message.
    First {
        /// The stream that it belongs to, below [`STREAMS_MAX`].
        stream: u16,
        /// Its place among others.
        order: Order,
        /// Bytes of the message.
        message_len: usize,
    },
    /// The block goes on with a message.
    Later {
        /// How many blocks before this one the message began, at least 1.
        distance: u64,
        /// Position in the message, from 1.
        index: u16,
    },
}

const STREAM: u8 = 0x01;
const ORDER: u8 = 0x06;
const ORDER_SEQUENCE: u8 = 0x02;
const ORDER_NEWEST: u8 = 0x04;
const ORDER_KEY: u8 = 0x06;
const VOID: u8 = 0x08;
const LATER: u8 = 0x80;

impl Preamble {
    /// Longest encoding, in bytes: flags, stream, key, length.
    pub const LEN_MAX: usize = 1 + 2 + 8 + 4;

    /// Bytes on the wire.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        match *self {
            Self::First {
                stream,
                order,
                message_len,
            } => {
                let stream_len = if stream == 0 {
                    0
                } else {
                    varint_len(stream as u64)
                };
                let order_len = match order {
                    Order::None | Order::Newest => 0,
                    Order::Sequence(_) | Order::Void(_) => 2,
                    Order::Key(key) => varint_len(key),
                };
                1 + stream_len + order_len + varint_len(message_len as u64)
            }
            Self::Later { distance, index } => 1 + varint_len(distance) + varint_len(index as u64),
        }
    }

    /// Changes the sequence number in the encoding of a first block's preamble that has one.
    pub(crate) fn set_sequence(encoded: &mut [u8], stream: u16, sequence: u16) {
        let at = if stream == 0 {
            1
        } else {
            1 + varint_len(stream as u64)
        };
        if let Some(field) = encoded.get_mut(at..at + 2) {
            field.copy_from_slice(&sequence.to_be_bytes());
        }
    }

    /// Writes the preamble.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::First {
                stream,
                order,
                message_len,
            } => {
                let flags = match order {
                    Order::None => 0,
                    Order::Sequence(_) => ORDER_SEQUENCE,
                    Order::Void(_) => ORDER_SEQUENCE | VOID,
                    Order::Newest => ORDER_NEWEST,
                    Order::Key(_) => ORDER_KEY,
                };
                // Stream 0 is not written: most sessions have one stream.
                if stream == 0 {
                    writer.u8(flags);
                } else {
                    writer.u8(flags | STREAM);
                    writer.varint(u64::from(stream));
                }
                match order {
                    Order::None | Order::Newest => {}
                    Order::Sequence(sequence) | Order::Void(sequence) => writer.u16(sequence),
                    Order::Key(key) => writer.varint(key),
                }
                writer.varint(message_len as u64);
            }
            Self::Later { distance, index } => {
                writer.u8(LATER);
                writer.varint(distance);
                writer.varint(u64::from(index));
            }
        }
    }

    /// Reads the preamble; the rest of the reader is the block's share of the message and its padding.
    ///
    /// # Errors
    /// When flags are unknown or a number is over its limit.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let flags = reader.u8()?;
        if flags == LATER {
            return decode_later(reader);
        }
        let is_void = flags & VOID != 0;
        if flags & !(STREAM | ORDER | VOID) != 0 || (is_void && flags & ORDER != ORDER_SEQUENCE) {
            return Err(DecodeError::Invalid {
                field: "preamble flags",
            });
        }
        let stream = if flags & STREAM != 0 {
            reader.varint()?
        } else {
            0
        };
        if stream >= STREAMS_MAX as u64 {
            return Err(DecodeError::Invalid { field: "stream" });
        }
        let order = match flags & ORDER {
            ORDER_SEQUENCE if is_void => Order::Void(reader.u16()?),
            ORDER_SEQUENCE => Order::Sequence(reader.u16()?),
            ORDER_NEWEST => Order::Newest,
            ORDER_KEY => Order::Key(reader.varint()?),
            _ => Order::None,
        };
        let message_len = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
        if message_len > MESSAGE_MAX || (is_void && message_len > 0) {
            return Err(DecodeError::Invalid {
                field: "message length",
            });
        }
        Ok(Self::First {
            stream: stream as u16,
            order,
            message_len,
        })
    }
}

fn decode_later(reader: &mut Reader<'_>) -> Result<Preamble, DecodeError> {
    let (distance, index) = (reader.varint()?, reader.varint()?);
    // Each block of a message has a number of its own.
    match u16::try_from(index) {
        Ok(index) if index > 0 && distance >= u64::from(index) => {
            Ok(Preamble::Later { distance, index })
        }
        _ => Err(DecodeError::Invalid {
            field: "block index",
        }),
    }
}
