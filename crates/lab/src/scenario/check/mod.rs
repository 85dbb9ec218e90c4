//! From the file as it is written to a scenario that makes sense.
//!
//! `network.rs`: path, link and rivals; `way.rs`: a direction of the path; `stream.rs`: streams; `traffic.rs`: their messages; `range.rs`: numbers and their ranges.

mod network;
mod range;
mod stream;
mod traffic;
mod way;

use std::path::Path;
use std::time::Duration;

use punctual_policy::PolicyKind;
use punctual_proto::{Promise, Uplink, limits};

use super::error::{Place, Problem};
use super::file;
use super::spec::{Scenario, Thin};
use crate::world::Forward;
use range::{megabits, number, quoted, whole};

const SESSIONS_MAX: u64 = 100_000;
const SECONDS_MAX: f64 = 86_400.0;

/// `file` is where it stands: its stem is the name of a scenario that has none, and recordings lie beside it.
pub(super) fn scenario(raw: file::File, file: &Path) -> Result<Scenario, Problem> {
    let top = Place::TOP;
    let seconds = number(
        &top,
        "seconds",
        raw.seconds.unwrap_or(60.0),
        0.1,
        SECONDS_MAX,
    )?;
    let sessions = whole(&top, "sessions", raw.sessions.unwrap_or(1), 1, SESSIONS_MAX)?;
    let settle = raw.settle_s.unwrap_or(0.0);
    // The time of measuring is not to be lost in rounding.
    if !(0.0..=seconds - 1e-3).contains(&settle) {
        let expected =
            format!("at least 0, and a millisecond below the scenario's {seconds} seconds");
        return Err(top.range("settle_s", expected, settle));
    }
    let direction = match raw.direction {
        None | Some(file::Direction::ToClient) => Forward::ToClient,
        Some(file::Direction::ToServer) => Forward::ToServer,
    };
    let policy = match &raw.policy {
        None => Default::default(),
        Some(name) => name.parse().map_err(|_| {
            let expected =
                "steered, exact, pangolin, hairpin, hairpin(PRICE), retransmit or fixed(N)";
            top.range("policy", expected, quoted(name))
        })?,
    };
    let network = raw.network.ok_or_else(|| top.missing("network"))?;
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    let path = network::path(&top.table("network"), &network, direction, folder)?;
    let mtu = network::mtu(&top.table("network"), &network, !raw.stream.is_empty())?;
    let link = match &raw.link {
        Some(raw) => Some(network::link(&top.table("link"), raw, &path)?),
        None => None,
    };
    let rivals = match &raw.rivals {
        Some(_) if link.is_none() => {
            return Err(top.conflict("rivals", "need a [link] to share"));
        }
        Some(raw) => Some(network::rivals(&top.table("rivals"), raw, seconds)?),
        None => None,
    };
    let thin = match &raw.thin {
        Some(raw) => thin(&top.table("thin"), raw)?,
        None => Thin::default(),
    };
    Ok(Scenario {
        name: raw.name.unwrap_or_else(|| {
            let stem = file.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        }),
        about: raw.about.unwrap_or_default(),
        sessions: sessions as u32,
        duration: Duration::from_secs_f64(seconds),
        settle: Duration::from_secs_f64(settle),
        seed: raw.seed.unwrap_or(1),
        direction,
        policy,
        promise: promise(&top, raw.promise, policy)?,
        uplink: uplink(&top, raw.uplink_mbit_per_s, raw.coordination)?,
        path,
        mtu,
        link,
        rivals,
        thin,
        streams: stream::streams(&top.table("stream"), &raw.stream, seconds)?,
    })
}

fn promise(
    top: &Place<'_>,
    raw: Option<file::Promise>,
    policy: PolicyKind,
) -> Result<Promise, Problem> {
    match raw {
        None | Some(file::Promise::EachStream) => Ok(Promise::EachStream),
        Some(file::Promise::AllSessions) if policy.has_price() => Ok(Promise::AllSessions),
        Some(file::Promise::AllSessions) => Err(top.conflict(
            "promise",
            "is shared by sessions only with `policy = 'steered'`",
        )),
    }
}

fn uplink(
    top: &Place<'_>,
    rate: Option<f64>,
    coordination: Option<bool>,
) -> Result<Uplink, Problem> {
    match (rate, coordination) {
        (Some(_), Some(false)) => Err(top.conflict(
            "uplink_mbit_per_s",
            "says nothing with `coordination = false`",
        )),
        (None, Some(false)) => Ok(Uplink::Unlimited),
        // The protocol's least.
        (Some(rate), _) if rate < 0.08 => {
            Err(top.range("uplink_mbit_per_s", "a number from 0.08 to 1000000", rate))
        }
        (Some(rate), _) => Ok(Uplink::BytesPerSecond(
            megabits(top, "uplink_mbit_per_s", rate)? / 8,
        )),
        (None, _) => Ok(Uplink::Unknown),
    }
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
