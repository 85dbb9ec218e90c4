//! What `punctual measure` records: this project's own format, a row a packet.
//!
//! ```text
//! time_s,message,try,owd_up_ms,owd_down_ms
//! 0.000000,0,0,20.100,21.100
//! 0.000041,0,0,,-                lost on the way up: of the way down nothing is known
//! 0.000083,0,0,20.300,           arrived; its answer was lost
//! 0.310022,0,1,20.150,21.000     sent again
//! 1.000000,1,0,20.100,21.100
//! ```
//! Packets of one message left together: they are samples of one moment. Rows above try 0 are there for whoever studies
//! them, but are no samples: they were sent because a packet was lost, and would count losses too often.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use super::error::excerpt;
use super::lines::Lines;
use super::{LostSide, Outcome, Sample, Timeline, TraceErrorKind, number, rtt_us};

/// The first line (after comments) of a recording of packets.
pub const PACKETS_HEADER: &str = "time_s,message,try,owd_up_ms,owd_down_ms";

/// A packet that was not answered for in so long before the recording's end was lost, also where it is not known in which direction: the server was gone, or the path
/// was.
pub const UNANSWERED: Duration = Duration::from_secs(3);

/// What became of a packet in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// It arrived after this long.
    Took {
        /// Microseconds, up to an hour.
        us: u32,
    },
    /// It did not arrive.
    Lost,
    /// Nothing is known.
    Unknown,
}

/// A packet and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRow {
    /// When it left, in microseconds since the recording began; never falls.
    pub sent_us: u64,
    /// Which message it belongs to; never falls among rows of try 0.
    pub message: u32,
    /// 0 when it was sent for the first time.
    pub attempt: u8,
    /// The way out.
    pub up: Leg,
    /// The way back.
    pub down: Leg,
}

/// Writes rows, without the header.
///
/// # Errors
/// Those of `out`.
pub fn write_packets(
    rows: impl IntoIterator<Item = PacketRow>,
    mut out: impl Write,
) -> io::Result<()> {
    for row in rows {
        let (seconds, micros) = (row.sent_us / 1_000_000, row.sent_us % 1_000_000);
        let PacketRow {
            message, attempt, ..
        } = row;
        let (up, down) = (text(row.up), text(row.down));
        writeln!(out, "{seconds}.{micros:06},{message},{attempt},{up},{down}")?;
    }
    Ok(())
}

fn text(leg: Leg) -> String {
    match leg {
        Leg::Took { us } => format!("{}.{:03}", us / 1000, us % 1000),
        Leg::Lost => String::new(),
        Leg::Unknown => "-".to_owned(),
    }
}

/// Samples of packets sent for the first time; those of one message have one time.
pub(super) fn read<R: BufRead>(lines: &mut Lines<R>) -> Result<Vec<Sample>, TraceErrorKind> {
    // The header has told the format.
    lines.next()?;
    let mut samples: Vec<(u64, Option<Outcome>)> = Vec::new();
    let mut timeline = Timeline::default();
    let mut end_us = 0;
    let mut current: Option<(u32, u64)> = None;
    while let Some(line) = lines.next()? {
        let fields: Vec<&str> = line.split(',').map(str::trim).take(6).collect();
        let &[time, message, attempt, up, down] = &fields[..] else {
            let what = "five columns: time_s,message,try,owd_up_ms,owd_down_ms";
            let found = excerpt(line);
            return Err(TraceErrorKind::Expected { what, found });
        };
        let at_us = timeline.at_us(time)?;
        let what = "the number of a message";
        let message = number(message, 0.0, f64::from(u32::MAX), what)? as u32;
        let attempt = number(attempt, 0.0, 255.0, "0, or which repetition it is")?;
        let (up, down) = (leg(up)?, leg(down)?);
        end_us = at_us;
        if attempt > 0.0 {
            continue;
        }
        let at_us = match current {
            Some((last, at)) if last == message => at,
            Some((last, _)) if last > message => return Err(TraceErrorKind::OutOfOrder),
            _ => at_us,
        };
        current = Some((message, at_us));
        match (up, down) {
            (Leg::Unknown, Leg::Unknown) => samples.push((at_us, None)),
            _ => samples.extend(outcome(up, down).map(|outcome| (at_us, Some(outcome)))),
        }
    }
    // Of the last ones an answer may still have been on its way.
    let is_old = |at_us: u64| at_us + UNANSWERED.as_micros() as u64 <= end_us;
    let unanswered = |at_us| is_old(at_us).then_some(Outcome::Lost(LostSide::Unknown));
    let samples = samples.into_iter().filter_map(|(at_us, outcome)| {
        let outcome = outcome.or_else(|| unanswered(at_us))?;
        Some(Sample { at_us, outcome })
    });
    Ok(samples.collect())
}

fn leg(field: &str) -> Result<Leg, TraceErrorKind> {
    match field {
        "" => Ok(Leg::Lost),
        "-" => Ok(Leg::Unknown),
        _ => {
            let what = "a time in ms, nothing (lost), or - (not known)";
            rtt_us(field, what).map(|us| Leg::Took { us })
        }
    }
}

/// `None` where too little is known for a sample.
const fn outcome(up: Leg, down: Leg) -> Option<Outcome> {
    match (up, down) {
        (Leg::Took { us: up }, Leg::Took { us: down }) => Some(Outcome::OneWay {
            up_us: Some(up),
            down_us: Some(down),
        }),
        (Leg::Took { us }, Leg::Lost) => Some(Outcome::OneWay {
            up_us: Some(us),
            down_us: None,
        }),
        (Leg::Lost, _) => Some(Outcome::Lost(LostSide::Forward)),
        (Leg::Unknown, Leg::Lost) => Some(Outcome::Lost(LostSide::Backward)),
        (Leg::Took { .. }, Leg::Unknown) | (Leg::Unknown, _) => None,
    }
}
