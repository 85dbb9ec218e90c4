//! The handshake packets: HELLO, RETRY, ACCEPT, REFUSE. None is encrypted as a whole; HELLO and ACCEPT carry Noise messages.

use super::bytes::{Reader, Writer};
use super::{ConnectionId, DecodeError, VERSION};
use crate::limits::MTU_MIN;

const HELLO: u8 = 0x80;
const RETRY: u8 = 0x81;
const ACCEPT: u8 = 0x82;
const REFUSE: u8 = 0x83;

/// First packet of a client, padded to 1,200 bytes so that no answer is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// How the client wants to be addressed.
    pub source: ConnectionId,
    /// What a RETRY asked to be returned; empty at first.
    pub cookie: &'a [u8],
    /// The first Noise message.
    pub noise: &'a [u8],
}

/// Asks a client to show that it receives at its address before anything is spent on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'a> {
    /// The client's connection id.
    pub destination: ConnectionId,
    /// To be returned in the next HELLO.
    pub cookie: &'a [u8],
}

/// The server's answer: the second Noise message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept<'a> {
    /// The client's connection id.
    pub destination: ConnectionId,
    /// The second Noise message; the server's connection id is inside.
    pub noise: &'a [u8],
}

/// Why a server refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The server does not speak the version.
    Version,
    /// The first Noise message does not open: the client holds another server's key, or the packet was changed.
    Key,
    /// This server admits only clients with a connect token.
    TokenMissing,
    /// The connect token was not sealed for this server, or was changed.
    TokenInvalid,
    /// The connect token has expired.
    TokenExpired,
    /// The server has no room.
    Full,
}

impl Refusal {
    const ALL: [Self; 6] = [
        Self::Version,
        Self::Key,
        Self::TokenMissing,
        Self::TokenInvalid,
        Self::TokenExpired,
        Self::Full,
    ];

    const fn code(self) -> u8 {
        match self {
            Self::Version => 1,
            Self::Key => 2,
            Self::TokenMissing => 3,
            Self::TokenInvalid => 4,
            Self::TokenExpired => 5,
            Self::Full => 6,
        }
    }
}

/// A refusal. It is not authenticated: a client takes it as a hint and goes on trying for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refuse {
    /// The client's connection id.
    pub destination: ConnectionId,
    /// Why.
    pub why: Refusal,
}

/// Any of the handshake packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakePacket<'a> {
    /// Client to server.
    Hello(Hello<'a>),
    /// Server to client.
    Retry(Retry<'a>),
    /// Server to client.
    Accept(Accept<'a>),
    /// Server to client.
    Refuse(Refuse),
}

impl<'a> HandshakePacket<'a> {
    /// Reads a handshake packet.
    ///
    /// # Errors
    /// `Version` for a HELLO of another version (with the connection id lost: see [`HandshakePacket::source_of`]), others when malformed.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(datagram);
        let kind = reader.u8()?;
        let version = reader.u32()?;
        let id = ConnectionId(reader.u32()?);
        if version != VERSION && kind != REFUSE {
            return Err(DecodeError::Version { version });
        }
        Ok(match kind {
            HELLO => {
                if datagram.len() < usize::from(MTU_MIN) {
                    return Err(DecodeError::Truncated);
                }
                let cookie_len = usize::from(reader.u8()?);
                let cookie = reader.bytes(cookie_len)?;
                let noise_len = usize::from(reader.u16()?);
                Self::Hello(Hello {
                    source: id,
                    cookie,
                    noise: reader.bytes(noise_len)?,
                })
            }
            RETRY => {
                let cookie_len = usize::from(reader.u8()?);
                Self::Retry(Retry {
                    destination: id,
                    cookie: reader.bytes(cookie_len)?,
                })
            }
            ACCEPT => {
                let noise_len = usize::from(reader.u16()?);
                Self::Accept(Accept {
                    destination: id,
                    noise: reader.bytes(noise_len)?,
                })
            }
            REFUSE => {
                let code = reader.u8()?;
                let why = Refusal::ALL
                    .into_iter()
                    .find(|refusal| refusal.code() == code);
                Self::Refuse(Refuse {
                    destination: id,
                    why: why.ok_or(DecodeError::Invalid { field: "refusal" })?,
                })
            }
            _ => {
                return Err(DecodeError::Invalid {
                    field: "first byte",
                });
            }
        })
    }

    /// The client's connection id of a HELLO of any version, for refusing it.
    #[must_use]
    pub fn source_of(datagram: &[u8]) -> Option<ConnectionId> {
        let mut reader = Reader::new(datagram);
        if reader.u8().ok()? != HELLO || datagram.len() < usize::from(MTU_MIN) {
            return None;
        }
        reader.u32().ok()?;
        reader.u32().ok().map(ConnectionId)
    }

    /// Writes the packet; a HELLO is padded to 1,200 bytes. The length, or `None` when it does not fit.
    #[must_use]
    pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(buffer);
        let mut begin = |kind: u8, id: ConnectionId| {
            writer.u8(kind);
            writer.u32(VERSION);
            writer.u32(id.0);
        };
        match self {
            Self::Hello(hello) => {
                begin(HELLO, hello.source);
                writer.u8(u8::try_from(hello.cookie.len()).ok()?);
                writer.bytes(hello.cookie);
                writer.u16(u16::try_from(hello.noise.len()).ok()?);
                writer.bytes(hello.noise);
                let padding = usize::from(MTU_MIN).saturating_sub(writer.len());
                writer.space(padding)?.fill(0);
            }
            Self::Retry(retry) => {
                begin(RETRY, retry.destination);
                writer.u8(u8::try_from(retry.cookie.len()).ok()?);
                writer.bytes(retry.cookie);
            }
            Self::Accept(accept) => {
                begin(ACCEPT, accept.destination);
                writer.u16(u16::try_from(accept.noise.len()).ok()?);
                writer.bytes(accept.noise);
            }
            Self::Refuse(refuse) => {
                begin(REFUSE, refuse.destination);
                writer.u8(refuse.why.code());
            }
        }
        writer.finish()
    }
}
