//! Logs of cloud-gaming sessions: `time_s bandwidth_Mbps 5.5ms loss_share`, a row a slot of about 15 ms.
//!
//! The bandwidth is a rate ladder of the sender, not the path's capacity; it is checked and left out. A few published slots
//! have a loss below zero (late packets counted in the next slot, it seems): they are read as no loss.

use std::io::BufRead;

use super::error::excerpt;
use super::lines::Lines;
use super::{Outcome, Sample, Timeline, TraceErrorKind, number, rtt_us};

pub(super) fn read<R: BufRead>(lines: &mut Lines<R>) -> Result<Vec<Sample>, TraceErrorKind> {
    let mut samples = Vec::new();
    let mut timeline = Timeline::default();
    while let Some(line) = lines.next()? {
        let fields: Vec<&str> = line.split_ascii_whitespace().take(5).collect();
        let [time, bandwidth, rtt, loss] = fields[..] else {
            let what = "four columns: time_s bandwidth_Mbps rtt(5.5ms) loss_share";
            return Err(TraceErrorKind::Expected {
                what,
                found: excerpt(line),
            });
        };
        let at_us = timeline.at_us(time)?;
        number(bandwidth, 0.0, 1e9, "a bandwidth in Mbit/s")?;
        let what = "a round-trip time such as 5.5ms";
        let Some(rtt) = rtt.strip_suffix("ms") else {
            return Err(TraceErrorKind::Expected {
                what,
                found: excerpt(rtt),
            });
        };
        let rtt_us = rtt_us(rtt, what)?;
        let loss = number(loss, -1.0, 1.0, "a loss share between 0 and 1")?.max(0.0) as f32;
        samples.push(Sample {
            at_us,
            outcome: Outcome::Slot { rtt_us, loss },
        });
    }
    Ok(samples)
}
