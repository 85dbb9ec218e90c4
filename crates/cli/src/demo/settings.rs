//! What is demonstrated: the arguments, checked, with the path that they name and the defaults that depend on it.

use std::time::Duration;

use punctual_lab::channel::PathSpec;
use punctual_lab::profile::Profile;
use punctual_lab::stats::Turns;
use punctual_lab::trace::{PathOptions, Trace};
use punctual_lab::world::Forward;
use punctual_policy::PolicyKind;
use punctual_proto::SendOptions;
use serde_json::{Value, json};

use super::Args;
use crate::failure::Failure;
use crate::output;

/// The policies that are compared.
pub(super) const POLICIES: [PolicyKind; 4] = [
    PolicyKind::Retransmit,
    PolicyKind::Fixed(1),
    PolicyKind::Pangolin,
    PolicyKind::Steered,
];

/// Time between two messages to a client.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// The deadline, in median round trips, unless one is given: late enough for a second try most of the time, too early for a
/// third.
const DEADLINE_ROUND_TRIPS: f64 = 2.2;

/// What is demonstrated.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) path: PathSpec,
    /// What the path is, in a line.
    pub(super) path_summary: String,
    /// Median round trip of the path without queues.
    pub(super) rtt_median: Duration,
    pub(super) clients: u32,
    pub(super) seconds: u32,
    pub(super) message_bytes: usize,
    pub(super) deadline: Duration,
    pub(super) is_deadline_chosen: bool,
    pub(super) on_time: f64,
    pub(super) seed: u64,
}

impl Settings {
    pub(super) fn of(args: &Args) -> Result<Self, Failure> {
        let (path, path_summary) = path(args)?;
        path.check().map_err(Failure::bad_input)?;
        let rtt_median = path.median_rtt();
        Ok(Self {
            path,
            path_summary,
            rtt_median,
            clients: args.clients,
            seconds: args.seconds,
            message_bytes: args.bytes as usize,
            deadline: args
                .deadline_ms
                .unwrap_or_else(|| default_deadline(rtt_median)),
            is_deadline_chosen: args.deadline_ms.is_some(),
            on_time: args.on_time,
            seed: args.seed,
        })
    }

    pub(super) fn deadline_ms(&self) -> f64 {
        self.deadline.as_secs_f64() * 1000.0
    }

    pub(super) fn send_options(&self) -> SendOptions {
        SendOptions::within(self.deadline).on_time(self.on_time as f32)
    }

    /// Messages that each policy is to send.
    pub(super) fn messages(&self) -> u64 {
        u64::from(self.clients) * u64::from(self.seconds)
    }

    /// Which of them can be taken as independent.
    pub(super) fn turns(&self) -> Turns {
        Turns::new(self.clients as usize, self.messages())
    }

    /// When a message is due, in nanoseconds after the first: clients take turns, evenly spread over the interval.
    pub(super) fn due_nanos(&self, number: u64) -> u64 {
        let (interval, clients) = (INTERVAL.as_nanos() as u64, u64::from(self.clients));
        number / clients * interval + number % clients * interval / clients
    }

    /// All that is needed to repeat it, for JSON and the page.
    pub(super) fn json(&self) -> Value {
        json!({
            "command": output::command_line(),
            "version": env!("CARGO_PKG_VERSION"),
            "path": self.path.name,
            "path_forward": format!("{}, {}", self.path.forward.delay, self.path.forward.loss),
            "path_backward": format!("{}, {}", self.path.backward.delay, self.path.backward.loss),
            "path_source": self.path.source,
            "rtt_median_ms": round(self.rtt_median.as_secs_f64() * 1000.0),
            "clients": self.clients,
            "seconds": self.seconds,
            "message_bytes": self.message_bytes,
            "interval_ms": INTERVAL.as_millis() as u64,
            "deadline_ms": self.deadline_ms(),
            "on_time": self.on_time,
            "seed": self.seed,
        })
    }
}

/// A deadline for a path of this median round trip, in whole tens of milliseconds.
fn default_deadline(rtt_median: Duration) -> Duration {
    let tens = (rtt_median.as_secs_f64() * DEADLINE_ROUND_TRIPS * 100.0).ceil();
    Duration::from_millis(10 * (tens as u64).max(1))
}

/// To a tenth.
fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The path, and what it is in a line.
fn path(args: &Args) -> Result<(PathSpec, String), Failure> {
    let Some(file) = &args.trace else {
        let profile: Profile = args.profile.parse().map_err(Failure::bad_input)?;
        let path = profile.path_of(Forward::ToClient);
        return Ok((path, profile.summary().to_owned()));
    };
    let trace = Trace::open(file).map_err(Failure::bad_input)?;
    let path = trace
        .path_of(Forward::ToClient, &PathOptions::for_trace(&trace))
        .map_err(Failure::bad_input)?;
    let summary = format!("recorded: {}", trace.summary());
    Ok((path, summary))
}
