//! What is sent, and what is to come of it.

use std::path::PathBuf;
use std::time::Duration;

use punctual_lab::channel::PathSpec;
use punctual_lab::simulate::SimulateOptions;
use punctual_policy::PolicyKind;
use punctual_proto::Promise;

use crate::failure::Failure;
use crate::values;

/// The messages and the output.
#[derive(clap::Args)]
#[command(next_help_heading = "Messages")]
pub(super) struct Workload {
    /// When a message is late (default: twice the median round trip of a profile or a recording, 400 without).
    #[arg(long, value_name = "MS", value_parser = values::millis_above_zero)]
    deadline_ms: Option<Duration>,
    /// Share of messages that shall be on time.
    #[arg(long, value_name = "SHARE", default_value = "0.999", value_parser = values::on_time)]
    pub(super) on_time: f64,
    /// Source symbols of a message (default: what costs the policy least).
    #[arg(long, value_name = "K", value_parser = values::whole::<u8>(1..=64))]
    pub(super) symbols: Option<u8>,
    /// Messages of each policy, in all.
    #[arg(long, default_value_t = 100_000, value_parser = values::whole::<u64>(1..=1_000_000_000))]
    pub(super) messages: u64,
    /// Bytes of a message.
    #[arg(long, default_value_t = 2048, value_parser = values::whole::<u32>(16..=262_144))]
    pub(super) bytes: u32,
    /// Sessions, each with a path of its own.
    #[arg(long, default_value_t = 1000, value_parser = values::whole::<u32>(1..=100_000))]
    pub(super) sessions: u32,
    /// Whose share of messages is to be on time: that of each session by itself, or of all together. Only steered keeps the second, and good
    /// paths pay for bad ones then.
    #[arg(long, value_name = "WHOSE", default_value = "each-stream")]
    promise: PromiseArg,
    /// Time between two messages of a session.
    #[arg(long, value_name = "MS", default_value = "1000", value_parser = values::millis_above_zero)]
    pub(super) interval_ms: Duration,
    /// Both ends look at the network and the clock only so often, as a game's loop does once a frame (16.7: 60 frames a second); 0: whenever
    /// something happens.
    #[arg(long, value_name = "MS", default_value = "0", value_parser = values::millis)]
    frame_ms: Duration,
    /// Policies to compare, over the same network: retransmit, fixed(N), also written fixed:N, hairpin, hairpin(PRICE), pangolin,
    /// exact, steered, steered-without(PART).
    #[arg(
        long,
        value_name = "POLICY,..",
        value_delimiter = ',',
        default_value = "steered"
    )]
    policy: Vec<PolicyKind>,
    /// The same seed gives the same run (default: 1, or that of a scenario file).
    #[arg(long, value_parser = values::whole::<u64>(0..=u64::MAX))]
    pub(super) seed: Option<u64>,
    /// Write a page with the latency distributions and the numbers.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) report: Option<PathBuf>,
    /// Print one JSON object: `settings`; the limits of the network, `floor_late_share` (late whatever is sent),
    /// `floor_late_share_95`, `floor_recovery_overhead` (what is lost replaced, and nothing else) and `floor_recovery_overhead_95`;
    /// and `policies`, a list of {`policy`, `messages`, `latency_ms` {`p50`, `p95`, `p99`, `p99_5`, `p99_9`, `max` (the latest that arrived); null: never},
    /// `late_share`, `late_share_95` [low, high], `predicted_late_share`, `recovery_overhead`, `encapsulation_overhead`,
    /// `lost_messages`, `seed`}.
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
}

/// [`Promise`] as a flag.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PromiseArg {
    EachStream,
    AllSessions,
}

impl From<PromiseArg> for Promise {
    fn from(promise: PromiseArg) -> Self {
        match promise {
            PromiseArg::EachStream => Self::EachStream,
            PromiseArg::AllSessions => Self::AllSessions,
        }
    }
}

/// Where the deadline comes from when the user names none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deadline {
    /// This one.
    Default(Duration),
    /// Twice the path's median round trip: time for a second round on most paths.
    TwiceMedianRtt,
}

/// The deadline that was asked for, or the other one, and in words where it comes from.
pub(crate) fn deadline(
    asked: Option<Duration>,
    otherwise: Deadline,
    path: &PathSpec,
) -> (Duration, &'static str) {
    match (asked, otherwise) {
        (Some(asked), _) => (asked, "as asked"),
        (None, Deadline::Default(default)) => (default, "the default"),
        (None, Deadline::TwiceMedianRtt) => {
            let twice = 2 * path.median_rtt();
            let whole_ms = twice.as_micros().div_ceil(1000).max(1);
            let deadline = Duration::from_millis(whole_ms as u64);
            (deadline, "twice the median round trip")
        }
    }
}

impl Workload {
    /// The deadline, and in words where it comes from.
    pub(super) fn deadline(
        &self,
        otherwise: Deadline,
        path: &PathSpec,
    ) -> (Duration, &'static str) {
        deadline(self.deadline_ms, otherwise, path)
    }

    /// Refuses what would change nothing.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let is_pooled = matches!(self.promise, PromiseArg::AllSessions);
        if is_pooled && !self.policy.iter().any(|policy| policy.has_price()) {
            return Err(Failure::bad_input(
                "--promise all-sessions is kept by steered alone: play that policy, or leave it out",
            ));
        }
        Ok(())
    }

    /// What to simulate.
    pub(super) fn options(&self, path: PathSpec, deadline: Duration) -> SimulateOptions {
        SimulateOptions {
            on_time: self.on_time,
            symbols: self.symbols,
            message_bytes: self.bytes as usize,
            sessions: self.sessions,
            promise: self.promise.into(),
            interval: self.interval_ms,
            frame: self.frame_ms,
            messages: self.messages,
            policies: values::once_each(&self.policy),
            seed: self.seed.unwrap_or(1),
            ..SimulateOptions::new(path, deadline)
        }
    }
}
