//! The path of each session, the link that they share, and who else is on it.

use std::sync::Arc;
use std::time::Duration;

use super::range::{megabits, millis, number, quoted, span, whole};
use crate::channel::{ChannelSpec, LossModel, PathSpec, RttSplit};
use crate::profile::Profile;
use crate::scenario::error::{Place, Problem};
use crate::scenario::file;
use crate::scenario::spec::{Bottleneck, Rivals};

/// A full packet, headers included.
const FULL_PACKET: u64 = 1500;

pub(super) fn path(place: &Place<'_>, raw: &file::Network) -> Result<PathSpec, Problem> {
    let mut path = match &raw.profile {
        Some(name) => profile(place, raw, name)?.path(),
        None => numbered_path(place, raw)?,
    };
    if let Some(jitter) = raw.jitter_ms {
        let jitter = millis(place, "jitter_ms", jitter, 0.0, 60_000.0)?;
        for channel in [&mut path.forward, &mut path.backward] {
            Arc::make_mut(channel).jitter = jitter;
        }
    }
    path.check().map_err(|error| place.path(error))?;
    Ok(path)
}

fn profile(place: &Place<'_>, raw: &file::Network, name: &str) -> Result<Profile, Problem> {
    let others = [
        ("rtt_ms", raw.rtt_ms.is_some()),
        ("split", raw.split.is_some()),
        ("loss_forward", raw.loss_forward.is_some()),
        ("loss_backward", raw.loss_backward.is_some()),
        ("burst_ms", raw.burst_ms.is_some()),
    ];
    if let Some((field, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
        return Err(place.conflict(field, "cannot stand beside `profile`, which has its own"));
    }
    name.parse().map_err(|_| {
        let names = Profile::ALL.map(Profile::name).join(", ");
        place.range("profile", format!("one of {names}"), quoted(name))
    })
}

fn numbered_path(place: &Place<'_>, raw: &file::Network) -> Result<PathSpec, Problem> {
    let rtt = raw.rtt_ms.ok_or_else(|| place.missing("rtt_ms"))?;
    let rtt = millis(place, "rtt_ms", rtt, 0.0, 60_000.0)?;
    let (forward, backward) = split(place, raw.split.as_ref())?.apply(rtt);
    let burst = millis(
        place,
        "burst_ms",
        raw.burst_ms.unwrap_or(0.0),
        0.0,
        60_000.0,
    )?;
    let channel = |delay, field, loss: Option<f64>| {
        let share = loss.unwrap_or(0.0);
        if !(0.0..1.0).contains(&share) {
            return Err(place.range(field, "at least 0 and below 1", share));
        }
        Ok(ChannelSpec::fixed(delay).with_loss(loss_model(share, burst)))
    };
    Ok(PathSpec::new(
        "a path of the scenario",
        "chosen in the scenario file",
        channel(forward, "loss_forward", raw.loss_forward)?,
        channel(backward, "loss_backward", raw.loss_backward)?,
    ))
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

fn split(place: &Place<'_>, raw: Option<&file::Split>) -> Result<RttSplit, Problem> {
    let (share, found) = match raw {
        None => return Ok(RttSplit::EVEN),
        Some(file::Split::Share(share)) => (Some(*share), share.to_string()),
        Some(file::Split::Name(name)) => {
            let share = match name.as_str() {
                "even" => Some(0.5),
                "forward" => Some(1.0),
                "backward" => Some(0.0),
                _ => None,
            };
            (share, quoted(name))
        }
    };
    share.and_then(RttSplit::ratio).ok_or_else(|| {
        let expected = "even, forward, backward, or the forward share from 0 to 1";
        place.range("split", expected, found)
    })
}

pub(super) fn link(
    place: &Place<'_>,
    raw: &file::Link,
    path: &PathSpec,
) -> Result<Bottleneck, Problem> {
    let bits_per_second = megabits(place, "rate_mbit_per_s", raw.rate_mbit_per_s)?;
    let queue_bytes = match (raw.queue_bytes, raw.queue_bdp) {
        (Some(_), Some(_)) => {
            return Err(place.conflict("queue_bdp", "cannot stand beside `queue_bytes`"));
        }
        (Some(bytes), None) => whole(place, "queue_bytes", bytes, FULL_PACKET, 1 << 32)?,
        (None, bdp) => {
            let bdp = number(place, "queue_bdp", bdp.unwrap_or(1.0), 0.01, 1000.0)?;
            // The path has no queue of its own here, so its median round trip is the one without waiting.
            let rtt = path.median_rtt().as_secs_f64();
            let bytes = bits_per_second as f64 / 8.0 * rtt * bdp;
            (bytes as u64).clamp(2 * FULL_PACKET, 1 << 32)
        }
    };
    let ecn_mark_bytes = match (raw.ecn, raw.ecn_mark_bytes) {
        (None | Some(false), Some(_)) => {
            return Err(place.conflict("ecn_mark_bytes", "needs `ecn = true`"));
        }
        (None | Some(false), None) => None,
        (Some(true), Some(bytes)) => Some(whole(place, "ecn_mark_bytes", bytes, 1, queue_bytes)?),
        // RFC 8289's target of standing delay, 5 ms.
        (Some(true), None) => {
            let target = bits_per_second / 8 / 200;
            Some(target.max(2 * FULL_PACKET).min(queue_bytes / 2))
        }
    };
    Ok(Bottleneck {
        bits_per_second,
        queue_bytes,
        ecn_mark_bytes,
    })
}

pub(super) fn rivals(
    place: &Place<'_>,
    raw: &file::Rivals,
    seconds: f64,
) -> Result<Rivals, Problem> {
    let (start, stop) = span(place, raw.start_s, raw.stop_s, seconds)?;
    Ok(Rivals {
        cubic: whole(place, "cubic", raw.cubic, 1, 1000)? as u32,
        start,
        stop,
    })
}
