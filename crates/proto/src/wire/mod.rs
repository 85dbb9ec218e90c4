//! Bytes <-> values. Everything that comes in is checked here; nothing here keeps state. PROTOCOL.md is this folder in prose.

mod ack;
mod bytes;
mod frame;
mod gone;
mod hello;
mod packet;
mod preamble;

pub use ack::{Ack, AckRanges};
pub use bytes::{Reader, Writer};
pub use frame::{Frame, SYMBOL_HEADER, Symbol, symbol_overhead};
pub use gone::{GONE_TOKEN_LEN, Gone};
pub use hello::{Accept, HandshakePacket, Hello, Refusal, Refuse, Retry};
pub use packet::{ConnectionId, HEADER_LEN_MAX, Header, Kind, TAG_LEN, classify, expand};
pub use preamble::{Order, Preamble};

/// The version of the protocol that this crate speaks.
pub const VERSION: u32 = 1;

/// Why bytes could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the value does.
    Truncated,
    /// A field holds a value that the protocol does not allow.
    Invalid {
        /// Which field.
        field: &'static str,
    },
    /// A frame type that this version does not know.
    UnknownFrame {
        /// The type byte.
        kind: u8,
    },
    /// A version that this crate does not speak.
    Version {
        /// The version that was asked for.
        version: u32,
    },
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated => f.write_str("the packet ends before its content does"),
            Self::Invalid { field } => write!(
                f,
                "the field `{field}` holds a value that the protocol does not allow"
            ),
            Self::UnknownFrame { kind } => write!(f, "unknown frame type {kind:#04x}"),
            Self::Version { version } => write!(
                f,
                "protocol version {version} is not spoken here (this is version {VERSION})"
            ),
        }
    }
}

impl core::error::Error for DecodeError {}

#[cfg(test)]
mod tests;
