//! From the file as it is written to a scenario that makes sense.

use std::sync::Arc;
use std::time::Duration;

use punctual_policy::MISS_TARGET_MIN;
use punctual_proto::{WhenLate, limits};

use super::error::{Place, Problem};
use super::spec::{Bottleneck, DeliveryMode, FairnessMeasure, Rivals, Scenario, StreamSpec, Thin};
use super::{Pattern, Shape, Sizes, Traffic, file};
use crate::channel::{ChannelSpec, LossModel, PathSpec, RttSplit};
use crate::profile::Profile;
use crate::world::Forward;

const SESSIONS_MAX: u64 = 100_000;
const STREAMS_MAX: usize = 64;
const SECONDS_MAX: f64 = 86_400.0;
/// A message carries its number, for the receiver to tell.
const BYTES_MIN: u64 = super::stamp::LEN as u64;
const BYTES_MAX: u64 = limits::MESSAGE_MAX as u64;
const BULK_MAX: u64 = 1 << 30;
/// A full packet, headers included.
const FULL_PACKET: u64 = 1500;

pub(super) fn scenario(raw: file::File, stem: &str) -> Result<Scenario, Problem> {
    let top = Place::TOP;
    let seconds = number(
        &top,
        "seconds",
        raw.seconds.unwrap_or(60.0),
        0.1,
        SECONDS_MAX,
    )?;
    let sessions = whole(&top, "sessions", raw.sessions.unwrap_or(1), 1, SESSIONS_MAX)?;
    let direction = match raw.direction {
        None | Some(file::Direction::ToClient) => Forward::ToClient,
        Some(file::Direction::ToServer) => Forward::ToServer,
    };
    let policy = match &raw.policy {
        None => Default::default(),
        Some(name) => name.parse().map_err(|_| {
            let expected = "exact, pangolin, retransmit or fixed(N)";
            top.range("policy", expected, quoted(name))
        })?,
    };
    let network = raw.network.ok_or_else(|| top.missing("network"))?;
    let path = path(&top.table("network"), &network)?;
    let link = match &raw.link {
        Some(raw) => Some(link(&top.table("link"), raw, &path)?),
        None => None,
    };
    let rivals = match &raw.rivals {
        Some(_) if link.is_none() => {
            return Err(top.conflict("rivals", "need a [link] to share"));
        }
        Some(raw) => Some(rivals(&top.table("rivals"), raw, seconds)?),
        None => None,
    };
    let thin = match &raw.thin {
        Some(raw) => thin(&top.table("thin"), raw)?,
        None => Thin::default(),
    };
    Ok(Scenario {
        name: raw.name.unwrap_or_else(|| stem.to_owned()),
        about: raw.about.unwrap_or_default(),
        sessions: sessions as u32,
        duration: Duration::from_secs_f64(seconds),
        seed: raw.seed.unwrap_or(1),
        direction,
        policy,
        uplink_bits_per_second: match raw.uplink_mbit_per_s {
            Some(rate) => Some(megabits(&top, "uplink_mbit_per_s", rate)?),
            None => None,
        },
        path,
        link,
        rivals,
        thin,
        streams: streams(&top.table("stream"), &raw.stream, seconds)?,
    })
}

fn path(place: &Place<'_>, raw: &file::Network) -> Result<PathSpec, Problem> {
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

fn link(place: &Place<'_>, raw: &file::Link, path: &PathSpec) -> Result<Bottleneck, Problem> {
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

fn rivals(place: &Place<'_>, raw: &file::Rivals, seconds: f64) -> Result<Rivals, Problem> {
    let (start, stop) = span(place, raw.start_s, raw.stop_s, seconds)?;
    Ok(Rivals {
        cubic: whole(place, "cubic", raw.cubic, 1, 1000)? as u32,
        start,
        stop,
    })
}

fn thin(place: &Place<'_>, raw: &file::Thin) -> Result<Thin, Problem> {
    let has_bundling = raw.bundling.unwrap_or(true);
    let bundle_bytes_max = match raw.bundle_bytes_max {
        Some(_) if !has_bundling => {
            return Err(place.conflict("bundle_bytes_max", "says nothing with `bundling = false`"));
        }
        Some(bytes) => {
            let most = u64::from(limits::MTU_MAX);
            Some(whole(place, "bundle_bytes_max", bytes, 1, most)? as u32)
        }
        None => None,
    };
    Ok(Thin {
        has_linear_timeouts: raw.linear_timeouts.unwrap_or(true),
        has_one_later_ack: raw.one_later_ack.unwrap_or(true),
        has_bundling,
        bundle_bytes_max,
    })
}

fn streams(
    place: &Place<'_>,
    raw: &[file::Stream],
    seconds: f64,
) -> Result<Vec<StreamSpec>, Problem> {
    if raw.is_empty() {
        return Err(Place::TOP.missing("[[stream]]"));
    }
    if raw.len() > STREAMS_MAX {
        let expected = format!("at most {STREAMS_MAX} tables");
        return Err(Place::TOP.range("stream", expected, raw.len()));
    }
    let mut streams: Vec<StreamSpec> = Vec::new();
    for (index, raw) in raw.iter().enumerate() {
        let place = place.item(index);
        let is_taken = streams.iter().any(|other| other.name == raw.name);
        if is_taken || raw.name.is_empty() || raw.name.len() > 64 {
            let expected = "1 to 64 bytes, and unlike any other stream's";
            return Err(place.range("name", expected, quoted(&raw.name)));
        }
        streams.push(stream(&place, raw, seconds)?);
    }
    Ok(streams)
}

fn stream(place: &Place<'_>, raw: &file::Stream, seconds: f64) -> Result<StreamSpec, Problem> {
    let delivery = delivery(raw.delivery);
    refuse_what_says_nothing(place, raw, delivery)?;
    let bounds = raw.bounds_ms.iter();
    if raw.bounds_ms.len() > 16 {
        return Err(place.range("bounds_ms", "at most 16 numbers", raw.bounds_ms.len()));
    }
    Ok(StreamSpec {
        name: raw.name.clone(),
        delivery,
        weight: whole(
            place,
            "weight",
            raw.weight.unwrap_or(1),
            1,
            u64::from(u16::MAX),
        )? as u16,
        fairness: match raw.fairness {
            None | Some(file::Fairness::Bytes) => FairnessMeasure::Bytes,
            Some(file::Fairness::Quality) => FairnessMeasure::Quality,
        },
        importance: whole(place, "importance", raw.importance.unwrap_or(128), 0, 255)? as u8,
        deadline: match raw.deadline_ms {
            Some(ms) => Some(millis(place, "deadline_ms", ms, 0.001, 3_600_000.0)?),
            None => None,
        },
        on_time: on_time(place, raw.on_time)?,
        when_late: match raw.when_late {
            None | Some(file::WhenLate::Deliver) => WhenLate::Deliver,
            Some(file::WhenLate::Drop) => WhenLate::Drop,
        },
        loss_tolerance: number(
            place,
            "loss_tolerance",
            raw.loss_tolerance.unwrap_or(0.0),
            0.0,
            1.0,
        )? as f32,
        keys: whole(place, "keys", raw.keys.unwrap_or(1), 1, 65_536)? as u32,
        quality: match raw.quality {
            Some(quality) => Some(number(place, "quality", quality, 1e-6, 1e6)? as f32),
            None => None,
        },
        bounds: bounds
            .map(|&ms| millis(place, "bounds_ms", ms, 0.001, 3_600_000.0))
            .collect::<Result<_, _>>()?,
        traffic: traffic(&place.table("traffic"), &raw.traffic, seconds)?,
    })
}

const fn delivery(raw: file::Delivery) -> DeliveryMode {
    match raw {
        file::Delivery::Unreliable => DeliveryMode::Unreliable,
        file::Delivery::UnreliableSequenced => DeliveryMode::UnreliableSequenced,
        file::Delivery::Reliable => DeliveryMode::Reliable,
        file::Delivery::ReliableOrdered => DeliveryMode::ReliableOrdered,
        file::Delivery::Latest => DeliveryMode::Latest,
    }
}

/// A field without effect is a mistake of whoever wrote it.
fn refuse_what_says_nothing(
    place: &Place<'_>,
    raw: &file::Stream,
    delivery: DeliveryMode,
) -> Result<(), Problem> {
    let has_deadline = raw.deadline_ms.is_some();
    let is_latest = delivery == DeliveryMode::Latest;
    let may_lose = matches!(
        delivery,
        DeliveryMode::Unreliable | DeliveryMode::UnreliableSequenced
    );
    let has_quality = matches!(raw.fairness, Some(file::Fairness::Quality));
    let without_deadline = "says nothing without `deadline_ms`";
    let checks = [
        (
            "on_time",
            raw.on_time.is_some() && !has_deadline,
            without_deadline,
        ),
        (
            "when_late",
            raw.when_late.is_some() && !has_deadline,
            without_deadline,
        ),
        (
            "keys",
            raw.keys.is_some() && !is_latest,
            "says nothing unless `delivery = \"latest\"`",
        ),
        (
            "loss_tolerance",
            raw.loss_tolerance.is_some() && !may_lose,
            "says nothing unless the stream is unreliable",
        ),
        (
            "quality",
            raw.quality.is_some() && !has_quality,
            "says nothing unless `fairness = \"quality\"`",
        ),
    ];
    match checks.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
        Some((field, _, why)) => Err(place.conflict(field, why)),
        None => Ok(()),
    }
}

fn on_time(place: &Place<'_>, raw: Option<f64>) -> Result<f32, Problem> {
    let share = raw.unwrap_or(0.999);
    // The policies' tables end at this miss target.
    if share > 0.0 && 1.0 - share >= f64::from(MISS_TARGET_MIN) && (share as f32) < 1.0 {
        Ok(share as f32)
    } else {
        Err(place.range("on_time", "above 0 and below 1, such as 0.999", share))
    }
}

fn traffic(place: &Place<'_>, raw: &file::Traffic, seconds: f64) -> Result<Traffic, Problem> {
    let (start, stop) = span(place, raw.start_s, raw.stop_s, seconds)?;
    let pattern = pattern(place, raw)?;
    let sizes = match pattern {
        Pattern::Bulk { .. } => Sizes::Fixed(0),
        Pattern::Shape(shape) if !has_sizes(raw) => shape.sizes(),
        _ => sizes(place, raw)?,
    };
    Ok(Traffic {
        pattern,
        sizes,
        start,
        stop,
    })
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

/// From when until when, in seconds of the scenario.
fn span(
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

fn number(
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

fn whole(
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

fn millis(
    place: &Place<'_>,
    field: &'static str,
    value: f64,
    min: f64,
    max: f64,
) -> Result<Duration, Problem> {
    number(place, field, value, min, max).map(|ms| Duration::from_secs_f64(ms / 1e3))
}

fn megabits(place: &Place<'_>, field: &'static str, value: f64) -> Result<u64, Problem> {
    number(place, field, value, 0.001, 1_000_000.0).map(|rate| (rate * 1e6).round() as u64)
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}
