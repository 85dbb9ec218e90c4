//! The streams.

use punctual_policy::MISS_TARGET_MIN;
use punctual_proto::{WhenLate, limits};

use super::range::{millis, number, quoted, whole};
use super::traffic::traffic;
use crate::scenario::error::{Place, Problem};
use crate::scenario::file;
use crate::scenario::spec::{DeliveryMode, FairnessMeasure, StreamSpec};

const STREAMS_MAX: usize = 64;

pub(super) fn streams(
    place: &Place<'_>,
    raw: &[file::Stream],
    seconds: f64,
) -> Result<Vec<StreamSpec>, Problem> {
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
            u64::from(limits::STREAM_WEIGHT_MAX),
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
    if share as f32 > 0.0 && 1.0 - share >= f64::from(MISS_TARGET_MIN) && (share as f32) < 1.0 {
        Ok(share as f32)
    } else {
        Err(place.range("on_time", "above 0 and below 1, such as 0.999", share))
    }
}
