//! Frames: what a protected packet holds.

use super::bytes::{Reader, VARINT_MAX, Writer, varint_len};
use super::{Ack, DecodeError};
use crate::limits::{CLOSE_REASON_MAX, REPAIR_SYMBOLS_MAX};

const PADDING: u8 = 0x00;
const PING: u8 = 0x01;
pub(super) const ACK: u8 = 0x02;
pub(super) const ACK_ECN: u8 = 0x03;
const ABANDON: u8 = 0x04;
const PATH_CHALLENGE: u8 = 0x05;
const PATH_RESPONSE: u8 = 0x06;
const CLOSE: u8 = 0x07;
/// 0b01kkkkkk: a symbol with its length; k - 1 in the lowest six bits.
const SYMBOL: u8 = 0x40;
/// 0b10kkkkkk: a symbol that reaches to the end of the packet.
const LAST_SYMBOL: u8 = 0x80;

/// Bytes before the content of a symbol that reaches to the end of its packet: type, block, symbol index.
pub const SYMBOL_HEADER: usize = 4;

/// One symbol of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Source symbols of the block, 1..=64.
    pub source_symbols: u8,
    /// The lowest 16 bits of the block's number.
    pub truncated_block: u16,
    /// ESI: below k a source symbol, from k on repair symbol ESI - k.
    pub esi: u8,
    /// The symbol itself; all symbols of a block are equally long.
    pub data: &'a [u8],
}

/// What a packet can hold.
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time is read, and none is kept; without memory of its own an ACK has room for its runs"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// Asks for an acknowledgement.
    Ping,
    /// What has arrived.
    Ack(Ack),
    /// Blocks `first..first + count` will never be completed: do not wait for them.
    Abandon {
        /// The first block of the run.
        first: u64,
        /// Blocks in the run, at least 1.
        count: u64,
    },
    /// Asks the peer to show that it receives at this address.
    PathChallenge([u8; 8]),
    /// The answer, with the same bytes.
    PathResponse([u8; 8]),
    /// The session ends.
    Close {
        /// What for; codes from 0x100 on belong to the application.
        code: u16,
        /// In words, for logs. UTF-8 is not checked.
        reason: &'a [u8],
    },
    /// One symbol of a block.
    Symbol(Symbol<'a>),
}

impl<'a> Frame<'a> {
    /// Reads the next frame, or `None` at the end (or where padding begins). `next_number` as in [`Ack`].
    ///
    /// # Errors
    /// When the frame is malformed; the rest of the packet is then worthless.
    pub fn decode(reader: &mut Reader<'a>, next_number: u64) -> Result<Option<Self>, DecodeError> {
        if reader.remaining() == 0 {
            return Ok(None);
        }
        let kind = reader.u8()?;
        let frame = match kind {
            PADDING => {
                // Padding fills the rest of a packet: nothing may follow it.
                reader.take_rest();
                return Ok(None);
            }
            PING => Self::Ping,
            ACK | ACK_ECN => Self::Ack(Ack::decode(reader, next_number, kind == ACK_ECN)?),
            ABANDON => {
                let (first, count) = (reader.varint()?, reader.varint()?);
                // (Neither is above the largest varint: this does not overflow.)
                if count == 0 || first + (count - 1) > VARINT_MAX {
                    return Err(DecodeError::Invalid {
                        field: "abandon count",
                    });
                }
                Self::Abandon { first, count }
            }
            PATH_CHALLENGE => Self::PathChallenge(reader.array()?),
            PATH_RESPONSE => Self::PathResponse(reader.array()?),
            CLOSE => {
                let code = reader.u16()?;
                let len = usize::from(reader.u8()?);
                if len > CLOSE_REASON_MAX {
                    return Err(DecodeError::Invalid {
                        field: "close reason",
                    });
                }
                Self::Close {
                    code,
                    reason: reader.bytes(len)?,
                }
            }
            SYMBOL..0xc0 => Self::Symbol(decode_symbol(kind, reader)?),
            _ => return Err(DecodeError::UnknownFrame { kind }),
        };
        Ok(Some(frame))
    }

    /// Writes the frame. A symbol is written with its length; see [`Symbol::encode_last`].
    pub fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Ping => writer.u8(PING),
            Self::Ack(ack) => ack.encode(writer),
            Self::Abandon { first, count } => {
                writer.u8(ABANDON);
                writer.varint(*first);
                writer.varint(*count);
            }
            Self::PathChallenge(data) => {
                writer.u8(PATH_CHALLENGE);
                writer.bytes(data);
            }
            Self::PathResponse(data) => {
                writer.u8(PATH_RESPONSE);
                writer.bytes(data);
            }
            Self::Close { code, reason } => {
                let reason = &reason[..reason.len().min(CLOSE_REASON_MAX)];
                writer.u8(CLOSE);
                writer.u16(*code);
                writer.u8(reason.len() as u8);
                writer.bytes(reason);
            }
            Self::Symbol(symbol) => {
                symbol.encode_header(writer, Some(symbol.data.len()));
                writer.bytes(symbol.data);
            }
        }
    }
}

impl Symbol<'_> {
    /// Writes the symbol as the last frame of its packet, which saves the length.
    pub fn encode_last(&self, writer: &mut Writer<'_>) {
        self.encode_header(writer, None);
        writer.bytes(self.data);
    }

    /// Writes all but the content, of `len` bytes; without it for the last frame of a packet.
    pub(crate) fn encode_header(&self, writer: &mut Writer<'_>, len: Option<usize>) {
        let k = self.source_symbols.wrapping_sub(1) & 0x3f;
        writer.u8(if len.is_some() { SYMBOL } else { LAST_SYMBOL } | k);
        writer.u16(self.truncated_block);
        writer.u8(self.esi);
        if let Some(len) = len {
            writer.varint(len as u64);
        }
    }
}

fn decode_symbol<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Symbol<'a>, DecodeError> {
    let source_symbols = (kind & 0x3f) + 1;
    let truncated_block = reader.u16()?;
    let esi = reader.u8()?;
    if usize::from(esi) >= usize::from(source_symbols) + REPAIR_SYMBOLS_MAX {
        return Err(DecodeError::Invalid {
            field: "symbol index",
        });
    }
    let data = if kind & LAST_SYMBOL != 0 {
        reader.take_rest()
    } else {
        let len = usize::try_from(reader.varint()?).map_err(|_| DecodeError::Truncated)?;
        reader.bytes(len)?
    };
    if data.is_empty() {
        return Err(DecodeError::Invalid {
            field: "symbol length",
        });
    }
    Ok(Symbol {
        source_symbols,
        truncated_block,
        esi,
        data,
    })
}

/// Bytes that a symbol of `len` bytes takes besides its content, when it is not the last of its packet.
#[must_use]
pub const fn symbol_overhead(len: usize) -> usize {
    SYMBOL_HEADER + varint_len(len as u64)
}
