//! The messages of a stream.

use std::time::Duration;

use punctual_proto::limits;

use super::range::{millis, number, quoted, span, whole};
use crate::scenario::error::{Place, Problem};
use crate::scenario::{Pattern, Shape, Sizes, Traffic, file, stamp};

/// A message carries its number, for the receiver to tell.
const BYTES_MIN: u64 = stamp::LEN as u64;
/// Larger ones come in pieces.
const BYTES_MAX: u64 = limits::WHOLE_MAX as u64;
const BULK_MAX: u64 = limits::MESSAGE_MAX as u64;

pub(super) fn traffic(
    place: &Place<'_>,
    raw: &file::Traffic,
    seconds: f64,
) -> Result<Traffic, Problem> {
    let (start, stop) = span(place, raw.start_s, raw.stop_s, seconds)?;
    let pattern = pattern(place, raw)?;
    let sizes = match pattern {
        Pattern::Bulk { .. } => Sizes::Fixed(0),
        Pattern::Shape(shape) if !has_sizes(raw) => shape.sizes(),
        _ => sizes(place, raw)?,
    };
    Ok(Traffic {
        pause: pause(place, raw, seconds)?,
        has_own_packets: raw.own_packets.unwrap_or(false),
        pattern,
        sizes,
        start,
        stop,
    })
}

fn pause(
    place: &Place<'_>,
    raw: &file::Traffic,
    seconds: f64,
) -> Result<Option<(Duration, Duration)>, Problem> {
    let Some([from, until]) = raw.pause_s else {
        return Ok(None);
    };
    if raw.saturate != Some(true) {
        return Err(place.conflict("pause_s", "says nothing without `saturate`"));
    }
    if !(0.0 <= from && from < until && until <= seconds) {
        let expected = format!("[from, until] within the scenario's {seconds} seconds");
        return Err(place.range("pause_s", expected, format!("[{from}, {until}]")));
    }
    let at = Duration::from_secs_f64;
    Ok(Some((at(from), at(until))))
}

const fn has_sizes(raw: &file::Traffic) -> bool {
    raw.bytes.is_some()
        || raw.bytes_mean.is_some()
        || raw.bytes_min.is_some()
        || raw.bytes_max.is_some()
}

fn pattern(place: &Place<'_>, raw: &file::Traffic) -> Result<Pattern, Problem> {
    let kinds = [
        ("every_ms", raw.every_ms.is_some()),
        ("rate_per_s", raw.rate_per_s.is_some()),
        ("shape", raw.shape.is_some()),
        ("bulk_bytes", raw.bulk_bytes.is_some()),
        ("saturate", raw.saturate == Some(true)),
    ];
    let mut given = kinds.into_iter().filter(|(_, is_given)| *is_given);
    let first = given.next();
    if let Some((field, _)) = given.next() {
        let why = "must be the only one of `every_ms`, `rate_per_s`, `shape`, `bulk_bytes` and `saturate`";
        return Err(place.conflict(field, why));
    }
    let is_periodic = raw.every_ms.is_some();
    let periodic_only = [
        ("jitter_ms", raw.jitter_ms.is_some()),
        ("together", raw.together.is_some()),
    ];
    if let Some((field, _)) = periodic_only
        .into_iter()
        .find(|(_, is)| *is && !is_periodic)
    {
        return Err(place.conflict(field, "says nothing without `every_ms`"));
    }
    if raw.bulk_bytes.is_some() && has_sizes(raw) {
        return Err(place.conflict("bulk_bytes", "is the size: leave the other sizes out"));
    }
    match first {
        Some(("every_ms", _)) => periodic(place, raw),
        Some(("rate_per_s", _)) => {
            let rate = raw.rate_per_s.unwrap_or_default();
            let rate_per_s = number(place, "rate_per_s", rate, 0.0001, 1_000_000.0)?;
            Ok(Pattern::Poisson { rate_per_s })
        }
        Some(("shape", _)) => {
            let name = raw.shape.as_deref().unwrap_or_default();
            let parsed = name
                .parse::<Shape>()
                .map_err(|names| place.range("shape", format!("one of {names}"), quoted(name)));
            parsed.map(Pattern::Shape)
        }
        Some(("bulk_bytes", _)) => {
            let bytes = raw.bulk_bytes.unwrap_or_default();
            let bytes = whole(place, "bulk_bytes", bytes, BYTES_MIN, BULK_MAX)?;
            Ok(Pattern::Bulk { bytes })
        }
        Some(_) => Ok(Pattern::Saturate),
        None => {
            let why = "needs one of `every_ms`, `rate_per_s`, `shape`, `bulk_bytes` and `saturate`";
            Err(place.conflict("", why))
        }
    }
}

fn periodic(place: &Place<'_>, raw: &file::Traffic) -> Result<Pattern, Problem> {
    let every_ms = raw.every_ms.unwrap_or_default();
    let every = millis(place, "every_ms", every_ms, 0.001, 86_400_000.0)?;
    // More would put messages out of order.
    let jitter = raw.jitter_ms.unwrap_or(0.0);
    Ok(Pattern::Periodic {
        every,
        jitter: millis(place, "jitter_ms", jitter, 0.0, every_ms)?,
        is_together: raw.together.unwrap_or(false),
    })
}

fn sizes(place: &Place<'_>, raw: &file::Traffic) -> Result<Sizes, Problem> {
    let bytes = |field, value| whole(place, field, value, BYTES_MIN, BYTES_MAX);
    match (raw.bytes, raw.bytes_mean, raw.bytes_min, raw.bytes_max) {
        (Some(size), None, None, None) => Ok(Sizes::Fixed(bytes("bytes", size)? as u32)),
        (Some(_), ..) => Err(place.conflict(
            "bytes",
            "cannot stand beside `bytes_mean`, `bytes_min` or `bytes_max`",
        )),
        (None, Some(mean), Some(min), Some(max)) => {
            let (min, max) = (bytes("bytes_min", min)?, bytes("bytes_max", max)?);
            Sizes::spread(min as u32, mean, max as u32).ok_or_else(|| {
                let expected = format!("between `bytes_min` ({min}) and `bytes_max` ({max})");
                place.range("bytes_mean", expected, mean)
            })
        }
        (None, None, None, None) => Err(place.missing("bytes")),
        (None, None, ..) => Err(place.missing("bytes_mean")),
        (None, Some(_), None, _) => Err(place.missing("bytes_min")),
        (None, Some(_), Some(_), None) => Err(place.missing("bytes_max")),
    }
}
