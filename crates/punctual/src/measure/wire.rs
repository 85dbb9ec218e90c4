//! What a client and a server that measure say to each other, as messages of a session.
//!
//! Stream [`PROBES`] (unreliable, each message in a packet of its own): a probe up, its echo of the same size down. Stream
//! [`CONTROL`] (reliable, ordered): all else. Numbers are big-endian; the first byte says what it is. Bytes that make no sense
//! are `None`, and nothing follows from them.

use punctual_proto::StreamId;

use super::packet::MeasuredPacket;

/// Probes and echoes.
pub(crate) const PROBES: StreamId = StreamId(1022);
/// All else.
pub(crate) const CONTROL: StreamId = StreamId(1023);

const VERSION: u8 = 1;

/// Arrivals in one receipt: with it a server holds and sends at most so many (24 KiB).
pub(crate) const RECEIPT_MAX: usize = 2048;
/// Rows of one part of a trace (88 KiB).
pub(crate) const PART_MAX: usize = 4096;

/// Of an upward message on [`CONTROL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Up {
    /// May I measure?
    Ask,
    /// What has arrived since the last receipt?
    Receipt { ask: u32 },
    /// A part of the trace.
    Rows {
        rows: Vec<MeasuredPacket>,
        is_last: bool,
    },
}

/// Of a downward message on [`CONTROL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Down {
    /// What is allowed; unasked when it changes.
    Terms(Terms),
    /// What has arrived since the last receipt, in the order of arrival.
    Receipt(Receipt),
    /// What became of a part of the trace.
    Kept { is_kept: bool },
}

/// What a server allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) is_on: bool,
    pub(crate) sample: u16,
    pub(crate) packets_max: u32,
}

/// What a server has received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// Which question it answers.
    pub(crate) ask: u32,
    /// Arrivals that the server had no room to remember.
    pub(crate) forgotten: u32,
    /// Packets of the whole session that came up, and copies of such among them.
    pub(crate) packets: u64,
    pub(crate) copies: u64,
    pub(crate) arrivals: Vec<Arrival>,
}

/// A probe that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) number: u32,
    /// The server's clock, lowest 32 bits of microseconds.
    pub(crate) at_us: u32,
    /// For how long the answer was held; `None` when none was sent.
    pub(crate) held_us: Option<u32>,
}

/// A probe or its echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    Up {
        number: u32,
    },
    Down {
        number: u32,
        /// The server's clock when the probe arrived.
        arrived_us: u32,
        /// Echoes of this session before this one.
        order: u32,
    },
}

impl Probe {
    pub(crate) fn encode(self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        match self {
            Self::Up { number } => {
                bytes.push(1);
                bytes.extend_from_slice(&number.to_be_bytes());
            }
            Self::Down {
                number,
                arrived_us,
                order,
            } => {
                bytes.push(2);
                for word in [number, arrived_us, order] {
                    bytes.extend_from_slice(&word.to_be_bytes());
                }
            }
        }
        bytes.resize(len, 0);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        match reader.byte()? {
            1 => Some(Self::Up {
                number: reader.word()?,
            }),
            2 => Some(Self::Down {
                number: reader.word()?,
                arrived_us: reader.word()?,
                order: reader.word()?,
            }),
            _ => None,
        }
    }
}

impl Up {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ask => vec![1, VERSION],
            Self::Receipt { ask } => [&[2][..], &ask.to_be_bytes()].concat(),
            Self::Rows { rows, is_last } => {
                let mut bytes = vec![3, u8::from(*is_last)];
                rows.iter().for_each(|row| row.encode(&mut bytes));
                bytes
            }
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        match reader.byte()? {
            1 => (reader.byte()? == VERSION).then_some(Self::Ask),
            2 => Some(Self::Receipt {
                ask: reader.word()?,
            }),
            3 => {
                let is_last = reader.byte()? != 0;
                let (rows, rest) = reader.0.as_chunks::<{ MeasuredPacket::LEN }>();
                if !rest.is_empty() || rows.len() > PART_MAX {
                    return None;
                }
                let rows: Option<Vec<_>> = rows.iter().map(MeasuredPacket::decode).collect();
                rows.map(|rows| Self::Rows { rows, is_last })
            }
            _ => None,
        }
    }
}

impl Down {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Terms(terms) => {
                let mut bytes = vec![1, VERSION, u8::from(terms.is_on)];
                bytes.extend_from_slice(&terms.sample.to_be_bytes());
                bytes.extend_from_slice(&terms.packets_max.to_be_bytes());
                bytes
            }
            Self::Receipt(receipt) => {
                let mut bytes = vec![2];
                bytes.extend_from_slice(&receipt.ask.to_be_bytes());
                bytes.extend_from_slice(&receipt.forgotten.to_be_bytes());
                bytes.extend_from_slice(&receipt.packets.to_be_bytes());
                bytes.extend_from_slice(&receipt.copies.to_be_bytes());
                for arrival in &receipt.arrivals {
                    let held_us = arrival.held_us.unwrap_or(u32::MAX);
                    for word in [arrival.number, arrival.at_us, held_us] {
                        bytes.extend_from_slice(&word.to_be_bytes());
                    }
                }
                bytes
            }
            Self::Kept { is_kept } => vec![3, u8::from(*is_kept)],
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        match reader.byte()? {
            1 => {
                if reader.byte()? != VERSION {
                    return None;
                }
                let is_on = reader.byte()? != 0;
                let sample = u16::from_be_bytes([reader.byte()?, reader.byte()?]);
                let packets_max = reader.word()?;
                Some(Self::Terms(Terms {
                    is_on,
                    sample,
                    packets_max,
                }))
            }
            2 => {
                let mut receipt = Receipt {
                    ask: reader.word()?,
                    forgotten: reader.word()?,
                    packets: reader.long()?,
                    copies: reader.long()?,
                    arrivals: Vec::new(),
                };
                let (arrivals, rest) = reader.0.as_chunks::<12>();
                if !rest.is_empty() || arrivals.len() > RECEIPT_MAX {
                    return None;
                }
                for arrival in arrivals {
                    let mut reader = Reader(arrival);
                    receipt.arrivals.push(Arrival {
                        number: reader.word()?,
                        at_us: reader.word()?,
                        held_us: Some(reader.word()?).filter(|&held| held != u32::MAX),
                    });
                }
                Some(Self::Receipt(receipt))
            }
            3 => Some(Self::Kept {
                is_kept: reader.byte()? != 0,
            }),
            _ => None,
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }

    fn long(&mut self) -> Option<u64> {
        let (high, low) = (self.word()?, self.word()?);
        Some(u64::from(high) << 32 | u64::from(low))
    }
}
