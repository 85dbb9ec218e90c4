//! JSON of `irtt client -o`: round trips with the delay of each direction in nanoseconds.
//!
//! One-way delays are as good as the two clocks: if one is missing or negative, only round trips are used, of all probes.

use std::fmt;
use std::io::BufRead;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::lines::FILE_BYTES;
use super::{LostSide, Outcome, Sample, TraceErrorKind};

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    config: Config,
    #[serde(deserialize_with = "bounded")]
    round_trips: Vec<RoundTrip>,
}

/// Probes, at most: as many as a file of the largest size has, unless it is made to fill the memory.
const ROUND_TRIPS: usize = 5_000_000;

fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RoundTrip>, D::Error> {
    struct Bounded;

    impl<'de> Visitor<'de> for Bounded {
        type Value = Vec<RoundTrip>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {ROUND_TRIPS} round trips")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
            let mut trips = Vec::new();
            while let Some(trip) = all.next_element()? {
                if trips.len() == ROUND_TRIPS {
                    return Err(A::Error::invalid_length(ROUND_TRIPS + 1, &self));
                }
                trips.push(trip);
            }
            Ok(trips)
        }
    }

    deserializer.deserialize_seq(Bounded)
}

#[derive(Deserialize, Default)]
struct Config {
    /// Nanoseconds between probes.
    interval: Option<u64>,
}

#[derive(Deserialize)]
struct RoundTrip {
    #[serde(default)]
    lost: Lost,
    #[serde(default)]
    delay: Delay,
    #[serde(default)]
    timestamps: Timestamps,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
enum Lost {
    #[default]
    #[serde(rename = "false")]
    No,
    #[serde(rename = "true")]
    Unknown,
    #[serde(rename = "true_up")]
    Up,
    #[serde(rename = "true_down")]
    Down,
}

#[derive(Deserialize, Default)]
struct Delay {
    receive: Option<i64>,
    send: Option<i64>,
    rtt: Option<i64>,
}

#[derive(Deserialize, Default)]
struct Timestamps {
    #[serde(default)]
    client: Client,
}

#[derive(Deserialize, Default)]
struct Client {
    #[serde(default)]
    send: Stamp,
}

#[derive(Deserialize, Default)]
struct Stamp {
    monotonic: Option<i64>,
    wall: Option<i64>,
}

/// As far as times in seconds go elsewhere, 1e11 s: what is counted from there does not overflow.
const SPAN_MAX_US: u64 = 100_000_000_000_000_000;

pub(super) fn read(reader: impl BufRead) -> Result<Vec<Sample>, (u64, TraceErrorKind)> {
    let mut bounded = reader.take(FILE_BYTES + 1);
    let document: Document = serde_json::from_reader(&mut bounded).map_err(|error| {
        if bounded.limit() == 0 {
            return (
                0,
                TraceErrorKind::TooLarge {
                    what: "bytes",
                    limit: FILE_BYTES,
                },
            );
        }
        (error.line() as u64, TraceErrorKind::Json(error))
    })?;
    let interval_us = document.config.interval.map(|ns| ns / 1000);
    let mut samples: Vec<Sample> = Vec::with_capacity(document.round_trips.len());
    let mut first_ns = None;
    let mut arrived = (document.round_trips.iter()).filter(|trip| trip.lost == Lost::No);
    let knows_ways = arrived.all(|trip| trip.ways_us().is_some());
    for (i, trip) in document.round_trips.iter().enumerate() {
        let at_us = sent_us(trip, &mut first_ns)
            .or_else(|| (i as u64).checked_mul(interval_us?))
            .ok_or_else(|| {
                (
                    0,
                    TraceErrorKind::Expected {
                        what: "timestamps.client.send of every round trip, or config.interval",
                        found: format!("round trip {i} without"),
                    },
                )
            })?;
        if at_us > SPAN_MAX_US {
            let found = format!("round trip {i} {} s after the first", at_us / 1_000_000);
            let what = "a trace of at most 3000 years";
            return Err((0, TraceErrorKind::Expected { what, found }));
        }
        let at_us = samples.last().map_or(0, |last| last.at_us).max(at_us);
        let outcome = outcome(trip, knows_ways).ok_or_else(|| {
            let found = format!("round trip {i}");
            (
                0,
                TraceErrorKind::Expected {
                    what: "delay.rtt of at most an hour, or lost",
                    found,
                },
            )
        })?;
        samples.push(Sample { at_us, outcome });
    }
    Ok(samples)
}

/// Microseconds since the first probe, by the client's clock.
fn sent_us(trip: &RoundTrip, first_ns: &mut Option<i64>) -> Option<u64> {
    let stamp = &trip.timestamps.client.send;
    let ns = stamp.monotonic.or(stamp.wall)?;
    let first = *first_ns.get_or_insert(ns);
    Some(u64::try_from(ns.saturating_sub(first)).unwrap_or(0) / 1000)
}

impl RoundTrip {
    /// How long each way took: out and back.
    fn ways_us(&self) -> Option<(u32, u32)> {
        Some((micros(self.delay.send)?, micros(self.delay.receive)?))
    }
}

fn outcome(trip: &RoundTrip, knows_ways: bool) -> Option<Outcome> {
    match trip.lost {
        Lost::Unknown => return Some(Outcome::Lost(LostSide::Unknown)),
        Lost::Up => return Some(Outcome::Lost(LostSide::Forward)),
        Lost::Down => return Some(Outcome::Lost(LostSide::Backward)),
        Lost::No => {}
    }
    if let Some((up, down)) = trip.ways_us().filter(|_| knows_ways) {
        return Some(Outcome::OneWay {
            up_us: Some(up),
            down_us: Some(down),
        });
    }
    micros(trip.delay.rtt).map(|rtt_us| Outcome::RoundTrip { rtt_us })
}

/// Up to an hour, as everywhere.
fn micros(ns: Option<i64>) -> Option<u32> {
    let us = u32::try_from(ns? / 1000).ok()?;
    (ns? >= 0 && us <= 3_600_000_000).then_some(us)
}
