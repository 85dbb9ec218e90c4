//! Recorded networks, read from files.
//!
//! Seven formats are read, told apart by their first line ([`Format`]). Files are read line by line with bounds on lines,
//! bytes and samples; what is wrong comes back as a [`TraceError`] with the line and what was expected there.
//! `path.rs` turns a trace into a [`PathSpec`](crate::channel::PathSpec); what a round trip cannot say (how it is
//! divided between the directions) is stated there as [`PathOptions`].
//!
//! A [`Trace`] is what was seen at one end: samples in order of the time they were sent.

mod capacity;
mod csv;
mod error;
mod folder;
mod hairpin;
mod irtt;
mod lines;
mod packets;
mod path;
mod ping;
mod summary;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

pub use error::{TraceError, TraceErrorKind};
pub use folder::files_below;
pub use packets::{Leg, PACKETS_HEADER, PacketRow, UNANSWERED, write_packets};
pub use path::{PathOptions, capacity_path};
pub use summary::TraceSummary;

use lines::Lines;

/// How a trace file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Output of `ping -D`: `[unix time] 64 bytes from ..: icmp_seq=1 ttl=63 time=144 ms`. A lost probe is a gap in
    /// `icmp_seq`; other lines are passed over.
    Ping,
    /// `unix_time seq rtt_ms`, separated by tabs or spaces; a negative time is a lost probe.
    PingTable,
    /// `time_s bandwidth_Mbps 5.5ms loss_share`, a row a slot, of cloud-gaming sessions.
    Hairpin,
    /// Milliseconds, one a line: each is an opportunity to deliver 1,500 bytes (mahimahi).
    Capacity,
    /// JSON of `irtt client -o`.
    Irtt,
    /// This project's own: `time_s,rtt_ms` (and perhaps `,loss_share`) or `time_s,owd_up_ms,owd_down_ms`; empty = lost.
    Csv,
    /// This project's own for measured packets, as `punctual measure` keeps them: `time_s,message,try,owd_up_ms,owd_down_ms`;
    /// empty = lost, `-` = not known. Packets of one message are samples of one moment.
    Packets,
}

impl Format {
    /// What lines of this format look like, for messages.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Ping => "[1723489200.167948] 64 bytes from ..: icmp_seq=1 ttl=63 time=144 ms",
            Self::PingTable => "1694477135.68 1 44.5",
            Self::Hairpin => "0.015 4.99 5.5ms 0.00",
            Self::Capacity => "17",
            Self::Irtt => "{\"round_trips\": [..]}",
            Self::Csv => "0.015,43.1",
            Self::Packets => "0.015,0,0,20.1,21.1",
        }
    }
}

/// In which direction a probe was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostSide {
    /// Only that no answer came is known.
    Unknown,
    /// On the way out.
    Forward,
    /// On the way back.
    Backward,
}

/// What became of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// An answer came after this many microseconds.
    RoundTrip {
        /// The round-trip time.
        rtt_us: u32,
    },
    /// A slot of many packets: their round-trip time and the share that was lost.
    Slot {
        /// The round-trip time.
        rtt_us: u32,
        /// The share lost, 0 to 1.
        loss: f32,
    },
    /// Both directions were measured; None is lost in that direction.
    OneWay {
        /// Microseconds on the way out.
        up_us: Option<u32>,
        /// Microseconds on the way back.
        down_us: Option<u32>,
    },
    /// No answer came.
    Lost(LostSide),
}

impl Outcome {
    /// The round-trip time, when it is known.
    pub const fn rtt_us(&self) -> Option<u32> {
        match *self {
            Self::RoundTrip { rtt_us } | Self::Slot { rtt_us, .. } => Some(rtt_us),
            Self::OneWay {
                up_us: Some(up),
                down_us: Some(down),
            } => up.checked_add(down),
            Self::OneWay { .. } | Self::Lost(_) => None,
        }
    }
}

/// A probe and what became of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// When it was sent, in microseconds since the first; never falls.
    pub at_us: u64,
    /// What became of it.
    pub outcome: Outcome,
}

impl Sample {
    /// Whether it says which way was which.
    const fn is_one_way(&self) -> bool {
        matches!(
            self.outcome,
            Outcome::OneWay { .. } | Outcome::Lost(LostSide::Forward | LostSide::Backward)
        )
    }
}

/// What a trace holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Probes, in order.
    Samples(Vec<Sample>),
    /// Delivery opportunities in milliseconds, in order.
    Capacity(Vec<u32>),
}

/// A recorded network.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The file's name, or what it was called by the caller.
    pub name: String,
    /// How it was written.
    pub format: Format,
    /// What it holds.
    pub content: Content,
}

impl Trace {
    /// Whether it says how long packets took: a recording of capacity does not.
    pub const fn has_delays(&self) -> bool {
        matches!(self.content, Content::Samples(_))
    }

    /// Whether there are round trips that [`PathOptions::rtt_split`] divides.
    pub fn has_round_trips(&self) -> bool {
        let is_round_trip = |sample: &Sample| {
            matches!(
                sample.outcome,
                Outcome::RoundTrip { .. } | Outcome::Slot { .. }
            )
        };
        self.samples().iter().any(is_round_trip)
    }

    /// Whether it says which way was which: the forward direction of its path is then the way up, from where it was recorded.
    pub(crate) fn knows_ways(&self) -> bool {
        self.samples().iter().any(Sample::is_one_way)
    }

    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| TraceError {
            file: name.clone(),
            line: 0,
            kind: TraceErrorKind::Read(error),
        })?;
        Self::read(BufReader::new(file), &name)
    }

    /// Reads what comes from `reader`; `name` is for messages and reports.
    pub fn read(mut reader: impl BufRead, name: &str) -> Result<Self, TraceError> {
        let failed = |kind| TraceError {
            file: name.to_owned(),
            line: 0,
            kind,
        };
        let is_json = lines::begins_with_brace(&mut reader)
            .map_err(|error| failed(TraceErrorKind::Read(error)))?;
        let (format, content) = if is_json {
            (Format::Irtt, irtt::read(reader).map(Content::Samples))
        } else {
            let mut lines = Lines::new(reader);
            let format = match detect(&mut lines) {
                Ok(format) => format,
                Err(kind) => {
                    return Err(TraceError {
                        line: lines.number(),
                        ..failed(kind)
                    });
                }
            };
            let content = match format {
                Format::Ping => ping::read_ping(&mut lines).map(Content::Samples),
                Format::PingTable => ping::read_table(&mut lines).map(Content::Samples),
                Format::Hairpin => hairpin::read(&mut lines).map(Content::Samples),
                Format::Csv => csv::read(&mut lines).map(Content::Samples),
                Format::Packets => packets::read(&mut lines).map(Content::Samples),
                Format::Capacity => capacity::read(&mut lines).map(Content::Capacity),
                Format::Irtt => unreachable!("told apart above"),
            };
            (format, content.map_err(|kind| (lines.number(), kind)))
        };
        let content = content.map_err(|(line, kind)| TraceError {
            line,
            ..failed(kind)
        })?;
        let is_empty = match &content {
            Content::Samples(samples) => samples.is_empty(),
            Content::Capacity(opportunities) => opportunities.is_empty(),
        };
        if is_empty {
            return Err(failed(TraceErrorKind::Empty));
        }
        Ok(Self {
            name: name.to_owned(),
            format,
            content,
        })
    }

    /// The probes; none for a capacity trace.
    pub fn samples(&self) -> &[Sample] {
        match &self.content {
            Content::Samples(samples) => samples,
            Content::Capacity(_) => &[],
        }
    }
}

/// Reads a trace from memory. Any bytes give a trace or an error.
pub fn parse(bytes: &[u8]) -> Result<Trace, TraceError> {
    Trace::read(bytes, "memory")
}

/// What the first line with anything on it says about the format. Leaves the line in place.
fn detect<R: BufRead>(lines: &mut Lines<R>) -> Result<Format, TraceErrorKind> {
    let Some(line) = lines.peek()? else {
        return Err(TraceErrorKind::Empty);
    };
    if line == PACKETS_HEADER {
        return Ok(Format::Packets);
    }
    if line.starts_with("time_s,") {
        return Ok(Format::Csv);
    }
    let is_ping = line.starts_with("PING ") || line.starts_with("ping: ");
    if is_ping || line.contains("icmp_seq=") {
        return Ok(Format::Ping);
    }
    let fields: Vec<&str> = line.split_ascii_whitespace().take(5).collect();
    let are_numbers = |fields: &[&str]| fields.iter().all(|field| field.parse::<f64>().is_ok());
    match fields[..] {
        [_] if fields[0].bytes().all(|byte| byte.is_ascii_digit()) => Ok(Format::Capacity),
        [_, _, _] if are_numbers(&fields) => Ok(Format::PingTable),
        [_, _, rtt, _] if rtt.ends_with("ms") => Ok(Format::Hairpin),
        _ => Err(TraceErrorKind::UnknownFormat {
            found: error::excerpt(line),
        }),
    }
}

/// Microseconds of a time in milliseconds as text; up to an hour.
fn rtt_us(field: &str, what: &'static str) -> Result<u32, TraceErrorKind> {
    number(field, 0.0, 3_600_000.0, what).map(|ms| (ms * 1000.0).round() as u32)
}

/// A number within bounds.
fn number(field: &str, min: f64, max: f64, what: &'static str) -> Result<f64, TraceErrorKind> {
    match field.trim().parse::<f64>() {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        _ => Err(TraceErrorKind::Expected {
            what,
            found: error::excerpt(field),
        }),
    }
}

/// Turns times in seconds into microseconds since the first, and refuses times that fall.
#[derive(Debug, Default)]
struct Timeline {
    first_s: Option<f64>,
    last_us: u64,
}

impl Timeline {
    fn at_us(&mut self, field: &str) -> Result<u64, TraceErrorKind> {
        // 1e11 s is the year 5138; below it a microsecond is not lost in rounding by more than 8 us.
        let seconds = number(field, 0.0, 1e11, "a time in seconds")?;
        let first = *self.first_s.get_or_insert(seconds);
        let since_us = ((seconds - first) * 1e6).round();
        if since_us < self.last_us as f64 {
            return Err(TraceErrorKind::OutOfOrder);
        }
        self.last_us = since_us as u64;
        Ok(self.last_us)
    }
}
