//! This project's own format. Read: the three headers below. Written: the one that fits.
//!
//! ```text
//! time_s,rtt_ms              time_s,rtt_ms,loss_share        time_s,owd_up_ms,owd_down_ms
//! 0.000000,41.2              0.000000,41.2,0                 0.000000,20.1,21.1
//! 0.020000,                  0.015000,43.0,0.25              0.020000,,22.0
//! ```
//! An empty time is a loss: of the round trip, or of that direction.

use std::io::{self, BufRead, Write};

use super::error::excerpt;
use super::lines::Lines;
use super::{Content, LostSide, Outcome, Sample, Timeline, Trace, TraceErrorKind, number, rtt_us};

const ROUND_TRIP: &str = "time_s,rtt_ms";
const SLOT: &str = "time_s,rtt_ms,loss_share";
const ONE_WAY: &str = "time_s,owd_up_ms,owd_down_ms";

pub(super) fn read<R: BufRead>(lines: &mut Lines<R>) -> Result<Vec<Sample>, TraceErrorKind> {
    let header = lines.next()?.unwrap_or_default().to_owned();
    let what =
        "the header time_s,rtt_ms or time_s,rtt_ms,loss_share or time_s,owd_up_ms,owd_down_ms";
    if ![ROUND_TRIP, SLOT, ONE_WAY].contains(&header.as_str()) {
        return Err(TraceErrorKind::Expected {
            what,
            found: excerpt(&header),
        });
    }
    let mut samples = Vec::new();
    let mut timeline = Timeline::default();
    while let Some(line) = lines.next()? {
        let mut fields = line.split(',');
        let at_us = timeline.at_us(fields.next().unwrap_or_default())?;
        let rest: Vec<&str> = fields.take(3).map(str::trim).collect();
        let outcome = match (header.as_str(), &rest[..]) {
            (ROUND_TRIP, &[rtt]) => match optional_us(rtt)? {
                Some(rtt_us) => Outcome::RoundTrip { rtt_us },
                None => Outcome::Lost(LostSide::Unknown),
            },
            (SLOT, &[rtt, loss]) => match optional_us(rtt)? {
                Some(rtt_us) => {
                    let loss = number(loss, 0.0, 1.0, "a loss share between 0 and 1")? as f32;
                    Outcome::Slot { rtt_us, loss }
                }
                None => Outcome::Lost(LostSide::Unknown),
            },
            (ONE_WAY, &[up, down]) => Outcome::OneWay {
                up_us: optional_us(up)?,
                down_us: optional_us(down)?,
            },
            _ => {
                let what = "as many columns as in the header";
                return Err(TraceErrorKind::Expected {
                    what,
                    found: excerpt(line),
                });
            }
        };
        samples.push(Sample { at_us, outcome });
    }
    Ok(samples)
}

fn optional_us(field: &str) -> Result<Option<u32>, TraceErrorKind> {
    if field.is_empty() {
        Ok(None)
    } else {
        rtt_us(field, "a time in ms, or nothing").map(Some)
    }
}

impl Trace {
    /// Writes the trace in this project's own format.
    ///
    /// Within a trace of one-way delays, what is only known of the round trip is written as half each way, and a loss
    /// as both lost, in whichever direction it was: read again it is of unknown direction. Capacity traces cannot be written: [`io::ErrorKind::InvalidInput`].
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        let Content::Samples(samples) = &self.content else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a capacity trace has no delays",
            ));
        };
        let has_slots = samples
            .iter()
            .any(|s| matches!(s.outcome, Outcome::Slot { .. }));
        let header = match (self.knows_ways(), has_slots) {
            (true, _) => ONE_WAY,
            (false, true) => SLOT,
            (false, false) => ROUND_TRIP,
        };
        writeln!(out, "{header}")?;
        for sample in samples {
            let (seconds, micros) = (sample.at_us / 1_000_000, sample.at_us % 1_000_000);
            writeln!(
                out,
                "{seconds}.{micros:06},{}",
                columns(header, sample.outcome)
            )?;
        }
        Ok(())
    }
}

fn columns(header: &str, outcome: Outcome) -> String {
    if header == ONE_WAY {
        let (up, down) = match outcome {
            Outcome::OneWay { up_us, down_us } => (up_us, down_us),
            Outcome::RoundTrip { rtt_us } | Outcome::Slot { rtt_us, .. } => {
                (Some(rtt_us / 2), Some(rtt_us - rtt_us / 2))
            }
            Outcome::Lost(_) => (None, None),
        };
        return format!("{},{}", text_ms(up), text_ms(down));
    }
    let rtt = text_ms(outcome.rtt_us());
    match outcome {
        Outcome::Slot { loss, .. } => format!("{rtt},{loss}"),
        _ if header == SLOT => format!("{rtt},{}", u8::from(rtt.is_empty())),
        _ => rtt,
    }
}

fn text_ms(us: Option<u32>) -> String {
    us.map_or_else(String::new, |us| format!("{}.{:03}", us / 1000, us % 1000))
}
