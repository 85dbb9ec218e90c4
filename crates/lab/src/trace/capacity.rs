//! Delivery opportunities of a link: a whole number of milliseconds a line, never falling (mahimahi).

use std::io::BufRead;

use super::TraceErrorKind;
use super::error::excerpt;
use super::lines::Lines;

pub(super) fn read<R: BufRead>(lines: &mut Lines<R>) -> Result<Vec<u32>, TraceErrorKind> {
    let mut opportunities: Vec<u32> = Vec::new();
    while let Some(line) = lines.next()? {
        let Ok(ms) = line.parse() else {
            let what = "a whole number of milliseconds";
            return Err(TraceErrorKind::Expected {
                what,
                found: excerpt(line),
            });
        };
        if opportunities.last().is_some_and(|&last| ms < last) {
            return Err(TraceErrorKind::OutOfOrder);
        }
        opportunities.push(ms);
    }
    Ok(opportunities)
}
