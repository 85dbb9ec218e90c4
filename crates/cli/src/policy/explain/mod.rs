//! `punctual policy explain`: what a policy sends over a path for a promise: when, why, and what each of its parts buys.
//!
//! What is sent and why is the policy's answer to what the shipping protocol shows it after a run over the path, in virtual time; what the
//! parts buy is what comes of runs without them. `decisions.rs` has the first, `seen.rs` what is known of the path, `parts.rs` the runs; `tell.rs` writes all of it.

mod decisions;
mod parts;
mod seen;
mod tell;

use std::path::PathBuf;
use std::time::Duration;

use punctual_lab::channel::PathSpec;
use punctual_lab::simulate::{PolicyResult, SimulateOptions, Simulated};
use punctual_lab::trace::{PathOptions, Trace};
use punctual_policy::{Part, PolicyKind};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::lab::measure::{self, Refused};
use crate::lab::{Additions, Deadline, PathArgs, deadline};
use crate::output::{self, OutputFile};
use crate::values;
use decisions::Decisions;

/// Explain what is sent over a path for a promise: when, why, and what each part of the policy buys.
///
/// The shipping protocol sends messages over the path in virtual time; then the policy is asked what it would do with one more, and the same
/// is done again without each of its parts, and with other policies.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual policy explain --rtt-ms 60 --loss 0.03 --burst-ms 20 --deadline-ms 150 --symbols 4 --html why.html"
)]
pub(crate) struct Args {
    #[command(flatten)]
    path: PathArgs,
    /// A recording instead of the numbers above, as `punctual lab replay` reads them.
    #[arg(long, value_name = "FILE", help_heading = "Network",
        conflicts_with_all = ["rtt_ms", "split", "loss", "loss_back", "burst_ms", "delay", "coherence_ms", "profile"])]
    trace: Option<PathBuf>,
    #[command(flatten)]
    additions: Additions,
    #[command(flatten)]
    promise: Promise,
    /// Write the plot and the tables as a page.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
    /// Write the plot as a picture.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,
    /// Print one JSON object: `settings`; `seen`, what the protocol has learned of the path; `decisions`, a list of {`round`, `at_ms`,
    /// `needed`, `probability`, `symbols`, `together`, that leave at once, and the `spacing_ms` between those, `wait_ms` (null: no round is to follow), and of steered `last_saves`
    /// and `next_would_save`: symbols that the last one saves later or in misses, and that one more would (null: that is more than a message may cost)}; `source_symbols`, of each run's messages; and, as `lab simulate` has them, the
    /// limits of the network and `policies`.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// What is sent, and what is promised.
#[derive(clap::Args)]
#[command(next_help_heading = "Promise")]
struct Promise {
    /// When a message is late (default: twice the path's median round trip).
    #[arg(long, value_name = "MS", value_parser = values::millis_above_zero)]
    deadline_ms: Option<Duration>,
    /// Share of messages that shall be on time.
    #[arg(long, value_name = "SHARE", default_value = "0.999", value_parser = values::on_time)]
    on_time: f64,
    /// Source symbols of a message (default: what costs the policy least).
    #[arg(long, value_name = "K", value_parser = values::whole::<u8>(1..=64))]
    symbols: Option<u8>,
    /// Bytes of a message.
    #[arg(long, default_value_t = 1000, value_parser = values::whole::<u32>(16..=262_144))]
    bytes: u32,
    /// Time between two messages.
    #[arg(long, value_name = "MS", default_value = "50", value_parser = values::millis_above_zero)]
    interval_ms: Duration,
    /// Messages of each run, in all.
    #[arg(long, default_value_t = 40_000, value_parser = values::whole::<u64>(1..=100_000_000))]
    messages: u64,
    /// Sessions of each run, each with a path of its own.
    #[arg(long, default_value_t = 8, value_parser = values::whole::<u32>(1..=10_000))]
    sessions: u32,
    /// The policy that is explained.
    #[arg(long, default_value = "steered")]
    policy: PolicyKind,
    /// The same seed gives the same runs.
    #[arg(long, default_value_t = 1, value_parser = values::whole::<u64>(0..=u64::MAX))]
    seed: u64,
}

/// What was found out.
struct Explanation {
    /// What the network is made of.
    settings: Map<String, Value>,
    options: SimulateOptions,
    /// Where the deadline comes from, in words.
    origin: &'static str,
    /// In the order of the options' policies; the first is the one that is explained.
    results: Vec<PolicyResult>,
    /// By policy, of those that saw the path to the end.
    decisions: Vec<Option<Decisions>>,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    output::check_distinct(&[
        ("--html", args.html.as_ref()),
        ("--svg", args.svg.as_ref()),
        ("--trace", args.trace.as_ref()),
    ])?;
    let html = OutputFile::page_if(args.html.as_ref())?;
    let svg = OutputFile::page_if(args.svg.as_ref())?;
    let explanation = Explanation::of(&args)?;
    let Some(Some(explained)) = explanation.decisions.first() else {
        return Err(Failure::failed(
            "the session did not live to the end of the run: there is nothing to explain; let the path lose less, or later",
        ));
    };
    let printed = match args.json {
        true => tell::json(&explanation, explained),
        false => tell::text(&explanation, explained),
    };
    let printed = output::then_write(printed, svg, || tell::svg(&explanation));
    output::then_write(printed, html, || tell::html(&explanation, explained))
}

impl Args {
    fn options(&self) -> Result<(SimulateOptions, &'static str), Failure> {
        let path = self.additions.apply(self.network()?)?;
        path.check().map_err(Failure::bad_input)?;
        let promise = &self.promise;
        let (deadline, origin) = deadline(promise.deadline_ms, Deadline::TwiceMedianRtt, &path);
        let options = SimulateOptions {
            on_time: promise.on_time,
            symbols: promise.symbols,
            message_bytes: promise.bytes as usize,
            sessions: promise.sessions,
            interval: promise.interval_ms,
            messages: promise.messages,
            policies: compared_with(promise.policy),
            seed: promise.seed,
            ..SimulateOptions::new(path, deadline)
        };
        Ok((options, origin))
    }

    fn settings(&self) -> Map<String, Value> {
        let mut settings = match &self.trace {
            Some(trace) => measure::fields(json!({ "trace": trace.display().to_string() })),
            None => self.path.settings(),
        };
        self.additions.add_settings(&mut settings);
        settings
    }

    fn network(&self) -> Result<PathSpec, Failure> {
        let Some(file) = &self.trace else {
            return self.path.path();
        };
        let trace = Trace::open(file).map_err(Failure::bad_input)?;
        let options = PathOptions::for_trace(&trace);
        trace.path(&options).map_err(Failure::bad_input)
    }
}

/// A policy, what is left of it without each part, and the older ones.
fn compared_with(policy: PolicyKind) -> Vec<PolicyKind> {
    let mut policies = vec![policy];
    if policy == PolicyKind::Steered {
        policies.extend(Part::ALL.map(PolicyKind::SteeredWithout));
    }
    let others = [
        PolicyKind::Exact,
        PolicyKind::Pangolin,
        PolicyKind::Retransmit,
    ];
    policies.extend(others.into_iter().filter(|other| *other != policy));
    policies
}

impl Explanation {
    fn refused(&self) -> Refused {
        measure::refused(&self.results)
    }

    fn of(args: &Args) -> Result<Self, Failure> {
        let (options, origin) = args.options()?;
        // (Ctrl-C is not watched here: it ends the program.)
        let (Simulated { results, .. }, _) = measure::simulate_all(&options, args.json)?;
        let miss_target = 1.0 - options.on_time as f32;
        let decisions = options.policies.iter().zip(&results);
        let decisions = decisions
            .map(|(&kind, result)| Some(Decisions::of(kind, miss_target, &result.outlook?)));
        Ok(Self {
            decisions: decisions.collect(),
            settings: args.settings(),
            options,
            origin,
            results,
        })
    }
}
