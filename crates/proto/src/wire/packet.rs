//! The outside of a packet: which kind it is, for which session, and which number it has.

use super::gone::GONE;
use super::{DecodeError, Reader, Writer};

/// Bytes of the authentication tag that ends every protected packet.
pub const TAG_LEN: usize = 16;
/// Longest header of a protected packet: first byte, connection id, packet number.
pub const HEADER_LEN_MAX: usize = 1 + 4 + 4;

const SHORT: u8 = 0b1010_0000;
const SHORT_MASK: u8 = 0b1110_0000;
const KEY_PHASE: u8 = 0b0001_0000;
const LONG_NUMBER: u8 = 0b0000_1000;
const RESERVED: u8 = 0b0000_0111;

/// Chosen by the receiver of a packet to find the session: 6 bits thread, 8 bits generation, 18 bits index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    pub(crate) const fn from_parts(thread: u8, generation: u8, index: u32) -> Self {
        Self(((thread as u32 & 0x3f) << 26) | ((generation as u32) << 18) | (index & 0x3_ffff))
    }

    /// The thread that owns the session: where threads share a port, a packet that reaches another one is to be handed over by this number.
    #[must_use]
    pub const fn thread(self) -> u8 {
        (self.0 >> 26) as u8
    }

    pub(crate) const fn index(self) -> usize {
        (self.0 & 0x3_ffff) as usize
    }
}

/// What a datagram is, by its first byte. All lie in 128..=191, so that QUIC can share the port (RFC 9443).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of the handshake packets.
    Handshake,
    /// A protected packet of a session.
    Protected,
    /// There is no such session.
    Gone,
    /// Not ours.
    Foreign,
}

/// Tells the kind of a datagram from its first byte.
#[must_use]
pub fn classify(datagram: &[u8]) -> Kind {
    match datagram.first() {
        Some(&byte) if byte & SHORT_MASK == SHORT => Kind::Protected,
        Some(0x80..=0x83) => Kind::Handshake,
        Some(&GONE) => Kind::Gone,
        _ => Kind::Foreign,
    }
}

/// The header of a protected packet: 7 or 9 bytes, authenticated but not encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The session, as its receiver names it.
    pub destination: ConnectionId,
    /// Which of two generations of keys.
    pub key_phase: bool,
    /// The lowest bits of the packet number.
    pub truncated_number: u32,
    /// Bytes of the packet number on the wire: 2 or 4.
    pub number_len: usize,
}

impl Header {
    /// A header for packet `number`, given the largest one that the peer has acknowledged.
    ///
    /// Two bytes could do while fewer than 2^15 numbers are in doubt (RFC 9000 section 17.1); four are taken from 2^14 on, so
    /// that a packet may also come 2^14 numbers late and still be told apart.
    #[must_use]
    pub const fn for_number(
        destination: ConnectionId,
        key_phase: bool,
        number: u64,
        acknowledged: Option<u64>,
    ) -> Self {
        let in_doubt = match acknowledged {
            Some(largest) => number.saturating_sub(largest),
            None => number + 1,
        };
        let number_len = if in_doubt < 1 << 14 { 2 } else { 4 };
        Self {
            destination,
            key_phase,
            truncated_number: number as u32,
            number_len,
        }
    }

    /// Bytes on the wire.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        5 + self.number_len
    }

    /// Writes the header.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        let phase = if self.key_phase { KEY_PHASE } else { 0 };
        let long = if self.number_len == 4 { LONG_NUMBER } else { 0 };
        writer.u8(SHORT | phase | long);
        writer.u32(self.destination.0);
        if self.number_len == 4 {
            writer.u32(self.truncated_number);
        } else {
            writer.u16(self.truncated_number as u16);
        }
    }

    /// Reads the header of a protected packet.
    ///
    /// # Errors
    /// When it is not one, or too short to hold a tag.
    pub fn decode(datagram: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(datagram);
        let first = reader.u8()?;
        if first & SHORT_MASK != SHORT || first & RESERVED != 0 {
            return Err(DecodeError::Invalid {
                field: "first byte",
            });
        }
        let destination = ConnectionId(reader.u32()?);
        let long = first & LONG_NUMBER != 0;
        let truncated_number = if long {
            reader.u32()?
        } else {
            u32::from(reader.u16()?)
        };
        if reader.remaining() < TAG_LEN {
            return Err(DecodeError::Truncated);
        }
        let number_len = if long { 4 } else { 2 };
        Ok(Self {
            destination,
            key_phase: first & KEY_PHASE != 0,
            truncated_number,
            number_len,
        })
    }

    /// The whole packet number, given the next one expected from this peer.
    #[must_use]
    pub fn number(&self, expected: u64) -> u64 {
        expand(
            u64::from(self.truncated_number),
            8 * self.number_len as u32,
            expected,
        )
    }
}

/// The value nearest to `expected` whose lowest `bits` bits are `truncated` (RFC 9000 appendix A.3). `bits` is at most 32.
#[must_use]
pub const fn expand(truncated: u64, bits: u32, expected: u64) -> u64 {
    let window = 1u64 << bits;
    let candidate = (expected & !(window - 1)) | truncated;
    if candidate + window / 2 <= expected && candidate < (1 << 62) - window {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_expand_to_the_nearest() {
        // RFC 9000 appendix A.3.
        assert_eq!(expand(0x9b32, 16, 0xa82f_30ea + 1), 0xa82f_9b32);
        assert_eq!(expand(0xffff, 16, 0x1_0000), 0xffff);
        assert_eq!(expand(0x0001, 16, 0xffff), 0x1_0001);
        assert_eq!(expand(3, 16, 0), 3);
    }

    #[test]
    fn numbers_survive_years_of_wrapping() {
        for number in [
            0u64,
            1,
            0xffff,
            0x1_0000,
            0xffff_fff0,
            0x1_0000_0000,
            1 << 50,
        ] {
            for distance in [0u64, 1, 100, 1 << 13] {
                let header =
                    Header::for_number(ConnectionId(7), false, number + distance, Some(number));
                let truncated = if header.number_len == 2 {
                    header.truncated_number & 0xffff
                } else {
                    header.truncated_number
                };
                let seen = Header {
                    truncated_number: truncated,
                    ..header
                };
                assert_eq!(seen.number(number + 1), number + distance);
            }
        }
    }

    #[test]
    fn the_header_of_a_message_packet_is_small() {
        let header = Header::for_number(ConnectionId(1), false, 10, Some(9));
        // DESIGN: at most 12 bytes before the tag, the symbol frame's header included.
        assert!(header.encoded_len() + super::super::SYMBOL_HEADER <= 12);
    }

    #[test]
    fn first_bytes_stay_clear_of_quic() {
        for first in 0..=255u8 {
            let kind = classify(&[first, 0, 0, 0]);
            if kind != Kind::Foreign {
                assert!((128..192).contains(&first));
            }
        }
    }
}
