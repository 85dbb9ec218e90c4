//! What the application hears of a measurement.

use std::fmt;
use std::time::Duration;

use super::{Clocks, MeasuredPacket};

/// How far a measurement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MeasureProgress {
    /// What it does.
    pub state: MeasureState,
    /// One message in so many is measured: the more seldom of what both sides want. 0 until the server has answered.
    pub sample: u16,
    /// Messages measured so far.
    pub messages: u32,
    /// Packets sent for the first time.
    pub packets: u32,
    /// Packets sent again.
    pub repeated: u32,
    /// Answers that came.
    pub answers: u32,
    /// The last answer's round trip, the server's waiting included.
    pub rtt: Option<Duration>,
}

impl MeasureProgress {
    pub(super) const fn new() -> Self {
        Self {
            state: MeasureState::Asking,
            sample: 0,
            messages: 0,
            packets: 0,
            repeated: 0,
            answers: 0,
            rtt: None,
        }
    }
}

/// What a measurement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeasureState {
    /// Waits for what the server allows.
    Asking,
    /// Sends messages.
    Measuring,
    /// Sends no new ones; waits for what becomes of the last.
    Settling,
    /// Waits until the server has received the trace.
    Uploading,
    /// It is over.
    Over,
}

/// How a measurement came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeasureEnd {
    /// All that was asked for was measured, or as much as a trace may hold.
    Complete,
    /// The application stopped it.
    Stopped,
    /// The server does not want it (any more).
    Off,
    /// The server did not answer within ten seconds: it has no measuring.
    NoAnswer,
    /// The session ended.
    Closed,
}

impl fmt::Display for MeasureEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Complete => "complete",
            Self::Stopped => "stopped",
            Self::Off => "the server has measuring switched off",
            Self::NoAnswer => "the server does not measure",
            Self::Closed => "the session ended",
        })
    }
}

/// Packets of the session that came, and copies among them: duplicates made by the network, which never reach a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// Packets of the whole session, whatever was in them.
    pub packets: u64,
    /// Those that had come before.
    pub copies: u64,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measured {
    /// How it ended.
    pub end: MeasureEnd,
    /// Every packet that left, in that order.
    pub packets: Vec<MeasuredPacket>,
    /// How far one-way delays can be trusted; `None` when no answer came.
    pub clocks: Option<Clocks>,
    /// One message in so many was measured.
    pub sample: u16,
    /// Messages measured.
    pub messages: u32,
    /// Packets that the session held back for three seconds or dropped, so that they say nothing of the path.
    pub held: u32,
    /// Packets that arrived at the server after one that left later (RFC 4737).
    pub reordered_up: u32,
    /// The same of answers.
    pub reordered_down: u32,
    /// At the server, as of its last receipt.
    pub copies_up: Copies,
    /// At the client.
    pub copies_down: Copies,
    /// Rows of the trace that the server has received, and said that it keeps.
    pub kept: u32,
    /// The server refused a part of the trace: it has no room, or uploads are off.
    pub is_refused: bool,
}
