//! The path of each session, the link that they share, and who else is on it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use punctual_proto::limits;

use super::range::{megabits, millis, number, quoted, span, whole};
use super::way;
use crate::channel::{PathSpec, RttSplit};
use crate::profile::Profile;
use crate::scenario::error::{Place, Problem};
use crate::scenario::file;
use crate::scenario::spec::{Bottleneck, Rivals};
use crate::trace::{Content, PathOptions, Trace, capacity_path};
use crate::world::Forward;

/// A full packet, headers included.
const FULL_PACKET: u64 = 1500;

/// What a packet may be at least: the emulator's least.
const MTU_MIN: u64 = 576;

/// `folder` is where the file lies, and recordings with it. Forward is the way of the messages, `direction`.
pub(super) fn path(
    place: &Place<'_>,
    raw: &file::Network,
    direction: Forward,
    folder: &Path,
) -> Result<PathSpec, Problem> {
    for (field, is_given) in [
        ("trace_back", raw.trace_back.is_some()),
        ("trace_loss_forward", raw.trace_loss_forward.is_some()),
    ] {
        if is_given && raw.trace.is_none() {
            return Err(place.conflict(field, "says nothing without `trace`"));
        }
    }
    let mut path = match (&raw.profile, &raw.trace) {
        (Some(_), Some(_)) => return Err(place.conflict("trace", "cannot stand beside `profile`")),
        (Some(name), None) => profile(place, raw, name)?.path_of(direction),
        (None, Some(name)) => recorded(place, raw, direction, folder, name)?,
        (None, None) => numbered(place, raw)?,
    };
    let jitter = match raw.jitter_ms {
        Some(jitter) => Some(millis(place, "jitter_ms", jitter, 0.0, 60_000.0)?),
        None => None,
    };
    for (name, way, channel) in [
        ("forward", &raw.forward, &mut path.forward),
        ("backward", &raw.backward, &mut path.backward),
    ] {
        let channel = Arc::make_mut(channel);
        channel.jitter = jitter.unwrap_or(channel.jitter);
        if let Some(way) = way {
            way::add(&place.table(name), way, folder, channel)?;
        }
    }
    path.check().map_err(|error| place.path(error))?;
    Ok(path)
}

/// Largest IP packet. Sessions begin with datagrams that must fit.
pub(super) fn mtu(
    place: &Place<'_>,
    raw: &file::Network,
    has_streams: bool,
) -> Result<Option<u16>, Problem> {
    let Some(mtu) = raw.mtu else { return Ok(None) };
    let needed = if has_streams {
        u64::from(limits::MTU_MIN) + limits::UDP_IP_HEADER as u64
    } else {
        MTU_MIN
    };
    whole(place, "mtu", mtu, needed, u64::from(u16::MAX)).map(|mtu| Some(mtu as u16))
}

fn profile(place: &Place<'_>, raw: &file::Network, name: &str) -> Result<Profile, Problem> {
    let others = [
        ("rtt_ms", raw.rtt_ms.is_some()),
        ("split", raw.split.is_some()),
    ];
    refuse_others(
        place,
        raw,
        &others,
        "cannot stand beside `profile`, which has its own",
    )?;
    name.parse().map_err(|_| {
        let names = Profile::ALL.map(Profile::name).join(", ");
        place.range("profile", format!("one of {names}"), quoted(name))
    })
}

/// Delay and loss come from elsewhere: what says something of them is a mistake.
fn refuse_others(
    place: &Place<'_>,
    raw: &file::Network,
    others: &[(&'static str, bool)],
    why: &'static str,
) -> Result<(), Problem> {
    let losses = [
        ("loss_forward", raw.loss_forward.is_some()),
        ("loss_backward", raw.loss_backward.is_some()),
        ("burst_ms", raw.burst_ms.is_some()),
    ];
    if let Some((field, _)) = others.iter().chain(&losses).find(|(_, is)| *is) {
        return Err(place.conflict(field, why));
    }
    for (name, way) in [("forward", &raw.forward), ("backward", &raw.backward)] {
        let Some(way) = way else { continue };
        let fields = [
            ("delay_ms", way.delay_ms.is_some()),
            ("delay_sd_ms", way.delay_sd_ms.is_some()),
            ("coherence_ms", way.coherence_ms.is_some()),
            ("loss", way.loss.is_some()),
            ("burst_ms", way.burst_ms.is_some()),
        ];
        if let Some((field, _)) = fields.iter().find(|(_, is)| *is) {
            return Err(place.table(name).conflict(field, why));
        }
    }
    Ok(())
}

fn recorded(
    place: &Place<'_>,
    raw: &file::Network,
    direction: Forward,
    folder: &Path,
    name: &str,
) -> Result<PathSpec, Problem> {
    let trace = way::recording(place, "trace", folder, name)?;
    let is_of_capacity = matches!(trace.content, Content::Capacity(_));
    let others = [("rtt_ms", raw.rtt_ms.is_some() && !is_of_capacity)];
    refuse_others(
        place,
        raw,
        &others,
        "cannot stand beside `trace`, which has its own",
    )?;
    let options = recording_options(place, raw, &trace)?;
    match &raw.trace_back {
        None => trace.path_of(direction, &options),
        Some(name) => {
            let back = way::recording(place, "trace_back", folder, name)?;
            capacity_path(&trace, &back, &options)
        }
    }
    .map_err(|error| place.recording("trace", error))
}

fn recording_options(
    place: &Place<'_>,
    raw: &file::Network,
    trace: &Trace,
) -> Result<PathOptions, Problem> {
    let defaults = PathOptions::for_trace(trace);
    Ok(PathOptions {
        rtt_split: split(place, raw.split.as_ref())?,
        base_rtt: match raw.rtt_ms {
            Some(rtt) => millis(place, "rtt_ms", rtt, 0.0, 60_000.0)?,
            None => defaults.base_rtt,
        },
        loss_forward: match raw.trace_loss_forward {
            Some(share) => number(place, "trace_loss_forward", share, 0.0, 1.0)?,
            None => defaults.loss_forward,
        },
        ..defaults
    })
}

fn numbered(place: &Place<'_>, raw: &file::Network) -> Result<PathSpec, Problem> {
    let burst = raw.burst_ms.unwrap_or(0.0);
    let burst = millis(place, "burst_ms", burst, 0.0, 60_000.0)?;
    let delays = delays(place, raw)?;
    let silent = file::Way::default();
    let channel = |name, way: &Option<file::Way>, delay, field, loss: Option<f64>| {
        let table = place.table(name);
        let way = way.as_ref().unwrap_or(&silent);
        let loss = match (loss, way.loss) {
            (Some(_), Some(_)) => {
                let why = "cannot stand beside `loss_forward` or `loss_backward`";
                return Err(table.conflict("loss", why));
            }
            (None, Some(loss)) => (&table, "loss", Some(loss)),
            (loss, None) => (place, field, loss),
        };
        way::numbered(&table, way, delay, loss, burst)
    };
    let (forward, backward) = (&raw.forward, &raw.backward);
    Ok(PathSpec::new(
        "a path of the scenario",
        "chosen in the scenario file",
        channel(
            "forward",
            forward,
            delays.0,
            "loss_forward",
            raw.loss_forward,
        )?,
        channel(
            "backward",
            backward,
            delays.1,
            "loss_backward",
            raw.loss_backward,
        )?,
    ))
}

/// Forward and backward: a round trip and its split, or each for itself.
fn delays(place: &Place<'_>, raw: &file::Network) -> Result<(Duration, Duration), Problem> {
    let of = |way: &Option<file::Way>| way.as_ref().and_then(|way| way.delay_ms);
    let ways = [
        ("forward", of(&raw.forward)),
        ("backward", of(&raw.backward)),
    ];
    if let Some(rtt) = raw.rtt_ms {
        if let Some((name, _)) = ways.iter().find(|(_, delay)| delay.is_some()) {
            let why = "cannot stand beside `rtt_ms`";
            return Err(place.table(name).conflict("delay_ms", why));
        }
        let rtt = millis(place, "rtt_ms", rtt, 0.0, 60_000.0)?;
        return Ok(split(place, raw.split.as_ref())?.apply(rtt));
    }
    if ways.iter().all(|(_, delay)| delay.is_none()) {
        return Err(place.missing("rtt_ms"));
    }
    if raw.split.is_some() {
        return Err(place.conflict("split", "says nothing without `rtt_ms`"));
    }
    let [forward, backward] = ways.map(|(name, delay)| {
        let table = place.table(name);
        let delay = delay.ok_or_else(|| table.missing("delay_ms"))?;
        millis(&table, "delay_ms", delay, 0.0, 60_000.0)
    });
    Ok((forward?, backward?))
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
            // One packet a second waits in no queue of the path, so this is the round trip without waiting.
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
