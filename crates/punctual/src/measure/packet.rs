//! What became of a packet that was sent to measure: a row of a trace, and how it travels to the server.

use std::time::Duration;

/// What became of a packet in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It arrived after this long, by the offset between the two clocks ([`Clocks`](super::Clocks)). Up to an hour, in
    /// microseconds.
    Took(Duration),
    /// It did not arrive (or not within three seconds).
    Lost,
    /// Nothing is known: on the way down, because it never came up; or because the measurement ended first.
    Unknown,
}

/// A packet that was sent to measure, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredPacket {
    /// When it left, since the measurement began; in microseconds. Rows of a trace are in this order.
    pub sent: Duration,
    /// Which measured message it belongs to, from 0.
    pub message: u32,
    /// Which of the message's packets it is, from 0.
    pub index: u8,
    /// 0 when it was sent for the first time, 1 for the first repetition. Only first sendings tell how often packets are
    /// lost: repetitions are sent because one was.
    pub attempt: u8,
    /// From the client to the server.
    pub up: Way,
    /// The answer's way back.
    pub down: Way,
}

/// Of a way that is not a time. Times are below an hour.
const LOST: u32 = u32::MAX;
const UNKNOWN: u32 = u32::MAX - 1;
const HOUR_US: u32 = 3_600_000_000;
/// 10,000 days: what a trace's times may not exceed.
const SENT_MAX_US: u64 = 864_000_000_000_000;

impl MeasuredPacket {
    /// Bytes of a row on its way to the server.
    pub(crate) const LEN: usize = 8 + 4 + 1 + 1 + 4 + 4;

    /// The round trip, without the time that either side held it back.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        match (self.up, self.down) {
            (Way::Took(up), Way::Took(down)) => Some(up + down),
            _ => None,
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let sent_us = self.sent.as_micros() as u64;
        out.extend_from_slice(&sent_us.to_be_bytes());
        out.extend_from_slice(&self.message.to_be_bytes());
        out.extend_from_slice(&[self.index, self.attempt]);
        out.extend_from_slice(&encode_way(self.up).to_be_bytes());
        out.extend_from_slice(&encode_way(self.down).to_be_bytes());
    }

    /// `None` for what no client of ours writes.
    pub(crate) fn decode(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let sent_us = u64::from(word(0)) << 32 | u64::from(word(4));
        let packet = Self {
            sent: Duration::from_micros(sent_us),
            message: word(8),
            index: bytes[12],
            attempt: bytes[13],
            up: decode_way(word(14))?,
            down: decode_way(word(18))?,
        };
        // What did not come up has no way down.
        let is_whole = match packet.up {
            Way::Took(_) => true,
            Way::Lost => packet.down == Way::Unknown,
            Way::Unknown => !matches!(packet.down, Way::Took(_)),
        };
        let is_fine = sent_us <= SENT_MAX_US && packet.index < 8 && packet.attempt <= 5;
        (is_whole && is_fine).then_some(packet)
    }
}

fn encode_way(way: Way) -> u32 {
    match way {
        Way::Took(time) => time.as_micros().min(u128::from(HOUR_US)) as u32,
        Way::Lost => LOST,
        Way::Unknown => UNKNOWN,
    }
}

fn decode_way(word: u32) -> Option<Way> {
    match word {
        LOST => Some(Way::Lost),
        UNKNOWN => Some(Way::Unknown),
        us if us <= HOUR_US => Some(Way::Took(Duration::from_micros(us.into()))),
        _ => None,
    }
}
