//! What is wrong with a trace file, and where.

use std::fmt;
use std::io;

use crate::channel::PlaybackError;

/// A trace could not be read.
#[derive(Debug)]
pub struct TraceError {
    /// Which file.
    pub file: String,
    /// Which line, counted from 1; 0 when it is not about a line.
    pub line: u64,
    /// What is wrong.
    pub kind: TraceErrorKind,
}

/// What is wrong with a trace.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceErrorKind {
    /// The file could not be opened or read.
    Read(io::Error),
    /// The first line fits none of the formats.
    UnknownFormat {
        /// The beginning of the line.
        found: String,
    },
    /// Something else should stand here.
    Expected {
        /// What.
        what: &'static str,
        /// What stands there.
        found: String,
    },
    /// The time is before the line above.
    OutOfOrder,
    /// The JSON is broken or lacks something.
    Json(serde_json::Error),
    /// A line is not UTF-8 text.
    NotText,
    /// A line is longer than `limit` bytes.
    LineTooLong {
        /// The limit.
        limit: u64,
    },
    /// The file holds more than `limit` of `what`.
    TooLarge {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// There is nothing in it.
    Empty,
    /// It was read, but cannot be played.
    Unplayable(PlaybackError),
    /// It records capacity where delay is needed, or the other way round.
    WrongContent {
        /// What is needed.
        needed: &'static str,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ", line {}", self.line)?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl fmt::Display for TraceErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::UnknownFormat { found } => write!(
                f,
                "`{found}` is none of the formats that are read: ping -D output, `unix_time seq rtt_ms`, hairpin logs \
                 (`time_s Mbps 5.5ms loss`), mahimahi capacity (milliseconds), irtt JSON, or CSV with the header \
                 `time_s,rtt_ms`, `time_s,owd_up_ms,owd_down_ms` or `time_s,message,try,owd_up_ms,owd_down_ms`"
            ),
            Self::Expected { what, found } => write!(f, "expected {what}, found `{found}`"),
            Self::OutOfOrder => write!(f, "the time is before that of the line above"),
            Self::Json(error) => write!(f, "not as irtt writes it: {error}"),
            Self::NotText => write!(f, "expected text (UTF-8)"),
            Self::LineTooLong { limit } => write!(f, "the line is longer than {limit} bytes"),
            Self::TooLarge { what, limit } => write!(f, "more than {limit} {what}; cut the file"),
            Self::Empty => write!(f, "has no samples"),
            Self::Unplayable(error) => write!(f, "{error}"),
            Self::WrongContent { needed } => write!(f, "this needs a trace of {needed}"),
        }
    }
}

impl TraceError {
    /// Whether the file was never meant to be a trace: what its first line says fits no format. What begins as a trace and goes on
    /// otherwise is broken.
    pub fn is_something_else(&self) -> bool {
        match &self.kind {
            TraceErrorKind::UnknownFormat { .. } | TraceErrorKind::Empty => true,
            TraceErrorKind::NotText | TraceErrorKind::LineTooLong { .. } => self.line <= 1,
            TraceErrorKind::Json(error) => error.is_data(),
            _ => false,
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            TraceErrorKind::Read(error) => Some(error),
            TraceErrorKind::Json(error) => Some(error),
            TraceErrorKind::Unplayable(error) => Some(error),
            _ => None,
        }
    }
}

/// The beginning of a text, fit to be printed.
pub(super) fn excerpt(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("..");
    }
    shown
}
