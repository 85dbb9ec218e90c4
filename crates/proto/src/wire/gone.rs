//! GONE: what a server answers that is sent packets of a session which it does not know (any more).

use super::bytes::{Reader, Writer};
use super::{ConnectionId, DecodeError};

pub(super) const GONE: u8 = 0x84;

/// Bytes of its token.
pub const GONE_TOKEN_LEN: usize = 16;

/// There is no session of this id: the server has restarted, or has given it up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    /// The id that was asked for: the server's.
    pub source: ConnectionId,
    /// What only this server and the session's client know, from the ACCEPT.
    pub token: [u8; GONE_TOKEN_LEN],
}

impl core::fmt::Debug for Gone {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Gone")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl Gone {
    /// Bytes of the packet: fewer than any protected packet has.
    pub const LEN: usize = 1 + 4 + GONE_TOKEN_LEN;

    /// Reads a GONE.
    ///
    /// # Errors
    /// When it is not one, or too short.
    pub fn decode(datagram: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(datagram);
        if reader.u8()? != GONE {
            return Err(DecodeError::Invalid {
                field: "first byte",
            });
        }
        Ok(Self {
            source: ConnectionId(reader.u32()?),
            token: reader.array()?,
        })
    }

    /// Writes the packet.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut packet = [0; Self::LEN];
        let mut writer = Writer::new(&mut packet);
        writer.u8(GONE);
        writer.u32(self.source.0);
        writer.bytes(&self.token);
        packet
    }
}
