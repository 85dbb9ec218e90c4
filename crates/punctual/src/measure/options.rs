//! What is asked of a measurement, and what a server allows.

use std::fmt;
use std::time::Duration;

/// Two packets for a game message of 2 KB and three more of the same size, as in the Pangolin paper (section 3.1).
const PACKETS: u8 = 5;
/// Most packets of a message. They leave back to back, so this many must pass a session's window at once.
const PACKETS_MAX: u8 = 8;
/// Bytes of a packet's content from which on no two share a packet: more than half of the largest.
pub(super) const BYTES_MIN: usize = 740;
/// Bytes that fit one packet of every path (1,200 bytes less the headers of packet, symbol and message).
pub(super) const BYTES_MAX: usize = 1160;
/// One message in so many is sampled at the most seldom.
pub(crate) const SAMPLE_MAX: u16 = 10_000;

/// What a client measures: messages of a game are imitated, one in some is measured, and each of those is several packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureOptions {
    /// Time between two messages of the game, 10 ms to an hour. Default a second. A server answers a thousand packets a second,
    /// repetitions included; of those beyond it the way down is not known.
    pub interval: Duration,
    /// One message in so many is measured, 1 to 10,000. Default `None`: as the server says. The more seldom of both holds, so a
    /// client cannot have more than the server gives.
    pub sample: Option<u16>,
    /// Packets of a measured message, 1 to 8. Default 5.
    pub packets: u8,
    /// Bytes of content of each packet, 740 to 1,160: more than half a packet, so that none shares its fate with another, and so
    /// few that every path carries them. Default 1,024.
    pub bytes: usize,
    /// How often a packet is sent again when no answer came, 0 to 5. Default 5.
    pub retries: u8,
    /// Ends after so many measured messages, at least 1. Default none: it goes on until it is stopped.
    pub messages: Option<u32>,
    /// Ends after so long, above zero. Default none.
    pub lasts: Option<Duration>,
    /// Whether the server gets the trace. Default yes.
    pub upload: bool,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            sample: None,
            packets: PACKETS,
            bytes: 1024,
            retries: 5,
            messages: None,
            lasts: None,
            upload: true,
        }
    }
}

impl MeasureOptions {
    /// Whether all of it is within its range.
    ///
    /// # Errors
    /// Says which field is not.
    pub fn check(&self) -> Result<(), MeasureOptionError> {
        let interval = Duration::from_millis(10)..=Duration::from_secs(3600);
        let checks = [
            ("interval", interval.contains(&self.interval)),
            (
                "sample",
                self.sample.is_none_or(|n| (1..=SAMPLE_MAX).contains(&n)),
            ),
            ("packets", (1..=PACKETS_MAX).contains(&self.packets)),
            ("bytes", (BYTES_MIN..=BYTES_MAX).contains(&self.bytes)),
            ("retries", self.retries <= 5),
            ("messages", self.messages != Some(0)),
            ("lasts", self.lasts != Some(Duration::ZERO)),
        ];
        match checks.iter().find(|(_, is_fine)| !is_fine) {
            Some(&(field, _)) => Err(MeasureOptionError { field }),
            None => Ok(()),
        }
    }
}

/// A field of [`MeasureOptions`] or [`MeasureRules`] is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureOptionError {
    /// Which.
    pub field: &'static str,
}

impl fmt::Display for MeasureOptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` of the measurement is out of its range: see its documentation",
            self.field
        )
    }
}

impl std::error::Error for MeasureOptionError {}

/// What a server allows its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureRules {
    /// The switch: with `false` clients are told that measuring is off, and those that measure stop at once.
    pub is_on: bool,
    /// Clients measure one message in so many at the most, 1 to 10,000 (taken for the nearest in it). Default 10.
    pub sample: u16,
    /// Packets of a trace, at most 200,000 (the default; 22 bytes each): a client that has recorded so many stops, and no more
    /// are taken.
    pub packets_max: u32,
}

impl Default for MeasureRules {
    fn default() -> Self {
        Self {
            is_on: true,
            sample: 10,
            packets_max: super::PACKETS_KEPT_MAX,
        }
    }
}

impl MeasureRules {
    /// Measuring is off: clients that ask are told so.
    #[must_use]
    pub fn off() -> Self {
        Self {
            is_on: false,
            ..Self::default()
        }
    }

    pub(crate) fn in_range(mut self) -> Self {
        self.sample = self.sample.clamp(1, SAMPLE_MAX);
        self.packets_max = self.packets_max.min(super::PACKETS_KEPT_MAX);
        self
    }
}
