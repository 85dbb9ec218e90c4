//! The preamble: what a message says about itself, inside its coded blocks, once a message.

use super::DecodeError;
use super::bytes::{Reader, Writer};
use crate::limits::MESSAGE_MAX;

/// The first bytes of the first block of a message, or of a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preamble {
    /// The block begins a message.
    First {
        /// The stream that it belongs to.
        stream: u64,
        /// Bytes of the message.
        message_len: usize,
    },
    /// The block goes on with a message that began `index` blocks before.
    Later {
        /// Position in the message, from 1.
        index: u8,
    },
}

const STREAM: u8 = 0x01;
const LATER: u8 = 0x80;

impl Preamble {
    /// Longest encoding, in bytes.
    pub const LEN_MAX: usize = 1 + 8 + 4;

    /// Bytes on the wire.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let mut buffer = [0; Self::LEN_MAX];
        let mut writer = Writer::new(&mut buffer);
        self.encode(&mut writer);
        writer.len()
    }

    /// Writes the preamble.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        match *self {
            // Stream 0 is not written: most sessions have one stream.
            Self::First {
                stream: 0,
                message_len,
            } => {
                writer.u8(0);
                writer.varint(message_len as u64);
            }
            Self::First {
                stream,
                message_len,
            } => {
                writer.u8(STREAM);
                writer.varint(stream);
                writer.varint(message_len as u64);
            }
            Self::Later { index } => {
                writer.u8(LATER);
                writer.u8(index);
            }
        }
    }

    /// Reads the preamble; the rest of the reader is the block's share of the message and its padding.
    ///
    /// # Errors
    /// When flags are unknown or the length is over the limit.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.u8()? {
            LATER => {
                let index = reader.u8()?;
                if index == 0 {
                    return Err(DecodeError::Invalid {
                        field: "block index",
                    });
                }
                Ok(Self::Later { index })
            }
            flags @ (0 | STREAM) => {
                let stream = if flags & STREAM != 0 {
                    reader.varint()?
                } else {
                    0
                };
                let message_len = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
                if message_len > MESSAGE_MAX {
                    return Err(DecodeError::Invalid {
                        field: "message length",
                    });
                }
                Ok(Self::First {
                    stream,
                    message_len,
                })
            }
            _ => Err(DecodeError::Invalid {
                field: "preamble flags",
            }),
        }
    }
}
