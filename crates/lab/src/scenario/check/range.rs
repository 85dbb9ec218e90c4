//! Numbers of a file, with their ranges and units.

use std::time::Duration;

use crate::scenario::error::{Place, Problem};

/// From when until when, in seconds of the scenario.
pub(super) fn span(
    place: &Place<'_>,
    start: Option<f64>,
    stop: Option<f64>,
    seconds: f64,
) -> Result<(Duration, Option<Duration>), Problem> {
    let start = start.unwrap_or(0.0);
    if !(0.0..seconds).contains(&start) {
        let expected = format!("at least 0 and below the scenario's {seconds} seconds");
        return Err(place.range("start_s", expected, start));
    }
    let stop = match stop {
        Some(stop) if !(start < stop && stop <= seconds) => {
            let expected = format!("after the start, and within the scenario's {seconds} seconds");
            return Err(place.range("stop_s", expected, stop));
        }
        Some(stop) => Some(Duration::from_secs_f64(stop)),
        None => None,
    };
    Ok((Duration::from_secs_f64(start), stop))
}

pub(super) fn number(
    place: &Place<'_>,
    field: &'static str,
    value: f64,
    min: f64,
    max: f64,
) -> Result<f64, Problem> {
    // NaN is in no range.
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(place.range(field, format!("a number from {min} to {max}"), value))
    }
}

pub(super) fn whole(
    place: &Place<'_>,
    field: &'static str,
    value: u64,
    min: u64,
    max: u64,
) -> Result<u64, Problem> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(place.range(field, format!("a whole number from {min} to {max}"), value))
    }
}

pub(super) fn millis(
    place: &Place<'_>,
    field: &'static str,
    value: f64,
    min: f64,
    max: f64,
) -> Result<Duration, Problem> {
    number(place, field, value, min, max).map(|ms| Duration::from_secs_f64(ms / 1e3))
}

pub(super) fn megabits(place: &Place<'_>, field: &'static str, value: f64) -> Result<u64, Problem> {
    number(place, field, value, 0.001, 1_000_000.0).map(|rate| (rate * 1e6).round() as u64)
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}
