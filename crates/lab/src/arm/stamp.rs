//! What the messages of a workload say of themselves, and the tables of what came when.

use super::Due;

/// A message that did not arrive.
pub const NEVER: u32 = u32::MAX;

/// Bytes that a message must have at least: the stamp.
pub const MESSAGE_MIN: usize = STAMP;
const STAMP: usize = 20;

/// At the beginning of every message; what follows is a filling that shows damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The flow that it was first sent on.
    pub(super) flow: u32,
    pub(super) number: u32,
    length: u32,
    /// Nanoseconds after the beginning of time.
    pub(super) sent_ns: u64,
}

/// Where messages are written.
#[derive(Debug)]
pub(super) struct Pen(Vec<u8>);

impl Pen {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn write(&mut self, due: &Due, sent_ns: u64) -> &[u8] {
        let length = (due.bytes as usize).max(MESSAGE_MIN);
        let written = self.0.len();
        self.0.extend((written..length).map(filling));
        let message = &mut self.0[..length];
        message[..4].copy_from_slice(&due.flow.to_le_bytes());
        message[4..8].copy_from_slice(&due.number.to_le_bytes());
        message[8..12].copy_from_slice(&(length as u32).to_le_bytes());
        message[12..STAMP].copy_from_slice(&sent_ns.to_le_bytes());
        message
    }
}

impl Stamp {
    /// None when the message is not as it was sent.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let stamp = message.first_chunk::<STAMP>()?;
        let word = |at: usize| {
            u32::from_le_bytes([stamp[at], stamp[at + 1], stamp[at + 2], stamp[at + 3]])
        };
        let stamp = Self {
            flow: word(0),
            number: word(4),
            length: word(8),
            sent_ns: u64::from(word(12)) | u64::from(word(16)) << 32,
        };
        let mut content = message[STAMP..].iter().enumerate();
        let is_whole = stamp.length as usize == message.len()
            && content.all(|(place, &byte)| byte == filling(place + STAMP));
        is_whole.then_some(stamp)
    }
}

/// A content that is nowhere the same.
const fn filling(place: usize) -> u8 {
    (place.wrapping_mul(167) >> 3) as u8
}

/// When the messages of some flows came.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// By flow, then by message: microseconds from sending to arrival.
    pub(super) latencies_us: Vec<Vec<u32>>,
    pub(super) duplicates: u64,
    /// Messages that nobody sent like this.
    pub(super) corrupt: u64,
}

impl Arrivals {
    /// For so many messages of each flow.
    pub(super) fn new(messages: impl Iterator<Item = u32>) -> Self {
        Self {
            latencies_us: messages.map(|of| vec![NEVER; of as usize]).collect(),
            ..Self::default()
        }
    }

    /// A message came.
    pub(super) fn record(&mut self, now_ns: u64, stamp: Option<Stamp>) {
        let place = stamp.and_then(|stamp| {
            let flow = self.latencies_us.get_mut(stamp.flow as usize)?;
            flow.get_mut(stamp.number as usize)
        });
        match (stamp, place) {
            (Some(stamp), Some(place)) if *place == NEVER => {
                *place = micros(now_ns.saturating_sub(stamp.sent_ns));
            }
            (Some(_), Some(_)) => self.duplicates += 1,
            _ => self.corrupt += 1,
        }
    }
}

/// As it is kept in tables: up to 71 minutes.
pub(super) fn micros(ns: u64) -> u32 {
    (ns / 1000).min(u64::from(NEVER - 1)) as u32
}
