//! One direction of the path: `[network.forward]` and `[network.backward]`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::range::{megabits, millis, number, quoted, whole};
use crate::channel::{
    Capacity, CapacityTrace, ChannelSpec, DelayModel, GammaDelay, LossModel, Outages, RateSpec,
    Reorder, Variation,
};
use crate::scenario::error::{Place, Problem};
use crate::scenario::file;
use crate::trace::{Content, Trace, TraceError, TraceErrorKind};

/// A minute: no path is longer, and neither are its faults.
const MILLIS_MAX: f64 = 60_000.0;
/// A day, as scenarios.
const SECONDS_MAX: f64 = 86_400.0;
/// How long packets are held back unless the file says: what a second route adds.
const REORDER_MS: f64 = 20.0;
/// What waits before a constant rate unless the file says: some home routers' buffers, and the default of `--queue-kib`.
const QUEUE_BYTES: u64 = 64 * 1024;
/// What waits before a recorded rate: a hundred full packets, as with `punctual lab replay`.
const RECORDED_QUEUE_BYTES: u64 = 150_000;
const QUEUE_BYTES_MAX: u64 = 1 << 32;
const BLACKOUTS_MAX: usize = 1000;

/// A channel by numbers: its delay and its loss, the rest is [`add`]'s.
pub(super) fn numbered(
    place: &Place<'_>,
    raw: &file::Way,
    mean: Duration,
    (loss_place, loss_field, loss): (&Place<'_>, &'static str, Option<f64>),
    burst: Duration,
) -> Result<ChannelSpec, Problem> {
    let share = loss.unwrap_or(0.0);
    if !(0.0..1.0).contains(&share) {
        return Err(loss_place.range(loss_field, "at least 0 and below 1", share));
    }
    let burst = match raw.burst_ms {
        Some(_) if share == 0.0 => {
            return Err(place.conflict("burst_ms", "says nothing without `loss`"));
        }
        Some(burst) => millis(place, "burst_ms", burst, 0.0, MILLIS_MAX)?,
        None => burst,
    };
    let coherence = match raw.coherence_ms {
        Some(_) if raw.delay_sd_ms.is_none() => {
            return Err(place.conflict("coherence_ms", "says nothing without `delay_sd_ms`"));
        }
        Some(ms) => millis(place, "coherence_ms", ms, 0.0, 3_600_000.0)?,
        None => Variation::default().coherence,
    };
    Ok(ChannelSpec {
        delay: delay(place, raw.delay_sd_ms, mean)?,
        variation: Variation {
            coherence,
            slow: None,
        },
        loss: loss_model(share, burst),
        ..ChannelSpec::default()
    })
}

/// Delays as recordings have them: exponential above a base.
fn delay(place: &Place<'_>, sd_ms: Option<f64>, mean: Duration) -> Result<DelayModel, Problem> {
    let Some(sd_ms) = sd_ms else {
        return Ok(DelayModel::Fixed(mean));
    };
    let sd = millis(place, "delay_sd_ms", sd_ms, 0.001, MILLIS_MAX)?;
    // A deviation equal to the mean above the base is the exponential distribution.
    let gamma = mean
        .checked_sub(sd)
        .and_then(|base| GammaDelay::fit(base, mean, sd));
    gamma
        .map(|gamma| DelayModel::Gamma(gamma.into()))
        .ok_or_else(|| {
            let expected = format!("at most the direction's mean delay of {mean:?}");
            place.range("delay_sd_ms", expected, sd_ms)
        })
}

const fn loss_model(share: f64, mean_burst: Duration) -> LossModel {
    if share == 0.0 {
        LossModel::None
    } else if mean_burst.is_zero() {
        LossModel::Uniform(share)
    } else {
        LossModel::Gilbert {
            loss_share: share,
            mean_burst,
            loss_in_good: 0.0,
            loss_in_bad: 1.0,
        }
    }
}

/// The faults and limits of a direction, on any channel; of what the channel has, what is given takes the place.
pub(super) fn add(
    place: &Place<'_>,
    raw: &file::Way,
    folder: &Path,
    channel: &mut ChannelSpec,
) -> Result<(), Problem> {
    if let Some(ms) = raw.jitter_ms {
        channel.jitter = millis(place, "jitter_ms", ms, 0.0, MILLIS_MAX)?;
    }
    match (raw.reorder, raw.reorder_ms) {
        (None, Some(_)) => {
            return Err(place.conflict("reorder_ms", "says nothing without `reorder`"));
        }
        (Some(share), ms) => {
            channel.reorder = Reorder {
                share: number(place, "reorder", share, 0.0, 1.0)?,
                extra: millis(
                    place,
                    "reorder_ms",
                    ms.unwrap_or(REORDER_MS),
                    0.0,
                    MILLIS_MAX,
                )?,
            };
        }
        (None, None) => {}
    }
    if let Some(share) = raw.duplicate {
        channel.duplicate = number(place, "duplicate", share, 0.0, 1.0)?;
    }
    if let Some(rate) = rate(place, raw, folder)? {
        channel.rate = Some(rate);
    }
    if let Some(blackouts) = &raw.blackouts_s {
        channel.blackouts = self::blackouts(place, blackouts)?;
    }
    if let Some(outages) = outages(place, raw)? {
        channel.outages = Some(outages);
    }
    Ok(())
}

fn rate(place: &Place<'_>, raw: &file::Way, folder: &Path) -> Result<Option<RateSpec>, Problem> {
    let (capacity, queue_bytes) = match (raw.rate_mbit_per_s, &raw.capacity_trace) {
        (Some(_), Some(_)) => {
            let why = "cannot stand beside `rate_mbit_per_s`";
            return Err(place.conflict("capacity_trace", why));
        }
        (None, None) if raw.queue_bytes.is_some() => {
            let why = "says nothing without `rate_mbit_per_s` or `capacity_trace`";
            return Err(place.conflict("queue_bytes", why));
        }
        (None, None) => return Ok(None),
        (Some(rate), None) => {
            let bits_per_second = megabits(place, "rate_mbit_per_s", rate)?;
            (Capacity::Constant { bits_per_second }, QUEUE_BYTES)
        }
        (None, Some(name)) => {
            let trace = recording(place, "capacity_trace", folder, name)?;
            let capacity =
                capacity(&trace).map_err(|error| place.recording("capacity_trace", error))?;
            (Capacity::Trace(Arc::new(capacity)), RECORDED_QUEUE_BYTES)
        }
    };
    let queue_bytes = raw.queue_bytes.unwrap_or(queue_bytes);
    Ok(Some(RateSpec {
        capacity,
        queue_bytes: whole(place, "queue_bytes", queue_bytes, 1500, QUEUE_BYTES_MAX)?,
    }))
}

/// A file that the scenario names, seen from the scenario's folder.
pub(super) fn recording(
    place: &Place<'_>,
    field: &'static str,
    folder: &Path,
    name: &str,
) -> Result<Trace, Problem> {
    if name.is_empty() {
        return Err(place.range(field, "the name of a file", quoted(name)));
    }
    Trace::open(&folder.join(name)).map_err(|error| place.recording(field, error))
}

fn capacity(trace: &Trace) -> Result<CapacityTrace, TraceError> {
    let failed = |kind| TraceError {
        file: trace.name.clone(),
        line: 0,
        kind,
    };
    let Content::Capacity(opportunities) = &trace.content else {
        return Err(failed(TraceErrorKind::WrongContent { needed: "capacity" }));
    };
    CapacityTrace::new(opportunities.clone())
        .map_err(|error| failed(TraceErrorKind::Unplayable(error)))
}

fn blackouts(place: &Place<'_>, raw: &[[f64; 2]]) -> Result<Vec<(Duration, Duration)>, Problem> {
    if raw.len() > BLACKOUTS_MAX {
        let expected = format!("at most {BLACKOUTS_MAX} pairs");
        return Err(place.range("blackouts_s", expected, raw.len()));
    }
    raw.iter()
        .map(|&[from, until]| {
            let is_in_order = from < until;
            if is_in_order && (0.0..=SECONDS_MAX).contains(&from) && until <= SECONDS_MAX {
                Ok((
                    Duration::from_secs_f64(from),
                    Duration::from_secs_f64(until),
                ))
            } else {
                let expected = format!(
                    "pairs [from, until] of seconds from 0 to {SECONDS_MAX}, the later one second"
                );
                Err(place.range("blackouts_s", expected, format!("[{from}, {until}]")))
            }
        })
        .collect()
}

fn outages(place: &Place<'_>, raw: &file::Way) -> Result<Option<Outages>, Problem> {
    let (every_s, ms) = match (raw.outage_every_s, raw.outage_ms) {
        (Some(every_s), Some(ms)) => (every_s, ms),
        (None, None) if raw.outage_share.is_none() => return Ok(None),
        (Some(_), None) => return Err(place.missing("outage_ms")),
        (None, _) => return Err(place.missing("outage_every_s")),
    };
    let every_s = number(place, "outage_every_s", every_s, 0.001, SECONDS_MAX)?;
    let share = raw.outage_share.unwrap_or(1.0);
    Ok(Some(Outages {
        period: Duration::from_secs_f64(every_s),
        // No longer than the time from one to the next.
        length: millis(place, "outage_ms", ms, 0.0, every_s * 1e3)?,
        share: number(place, "outage_share", share, 0.0, 1.0)?,
    }))
}
