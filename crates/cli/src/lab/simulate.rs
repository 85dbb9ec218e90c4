//! `punctual lab simulate`: a network made of numbers.

use std::path::PathBuf;
use std::time::Duration;

use super::measure::{self, Network};
use super::network::Additions;
use super::path::PathArgs;
use super::scenario;
use super::workload::{Deadline, Workload};
use crate::failure::Failure;
use crate::values;

/// Send messages over a network made of numbers, and see how each policy fares; or play a scenario from a file.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    punctual lab simulate --rtt-ms 250 --split even --loss 0.02 --deadline-ms 400 --symbols 4 --messages 1000000 --policy exact\n  \
    punctual lab simulate --scenario crates/lab/scenarios/mixed-game.toml --seeds 120\n\nScenario files: docs/manual/scenarios.md")]
pub(crate) struct Args {
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    additions: Additions,
    #[command(flatten)]
    workload: Workload,
    #[command(flatten)]
    play: Play,
}

/// What a file says instead of flags.
#[derive(clap::Args)]
#[command(next_help_heading = "Scenario")]
struct Play {
    /// Play this file: it decides the network, the sessions, their streams and messages, and the policy. With --json one object:
    /// the fields of `ScenarioResult` in docs/manual/scenarios.md.
    #[arg(long, value_name = "FILE", conflicts_with_all = DECIDED_BY_FILE)]
    scenario: Option<PathBuf>,
    /// Play it with so many seeds, from the first on, and pool what comes of it.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "scenario",
        value_parser = values::whole::<u64>(1..=1_000_000))]
    seeds: u64,
}

/// What cannot stand beside a scenario.
const DECIDED_BY_FILE: [&str; 25] = [
    "rtt_ms",
    "split",
    "loss",
    "loss_back",
    "burst_ms",
    "delay",
    "coherence_ms",
    "profile",
    "jitter_ms",
    "reorder",
    "reorder_ms",
    "duplicate",
    "rate_mbit",
    "queue_kib",
    "blackout",
    "deadline_ms",
    "on_time",
    "symbols",
    "messages",
    "bytes",
    "sessions",
    "promise",
    "interval_ms",
    "frame_ms",
    "policy",
];

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    if let Some(file) = &args.play.scenario {
        return scenario::simulate(&scenario::Options {
            file,
            seeds: args.play.seeds,
            seed: args.workload.seed,
            json: args.workload.json,
            report: args.workload.report.as_ref(),
        });
    }
    // clap's `requires` has no say beside a flag that a scenario excludes.
    if args.play.seeds != 1 {
        return Err(Failure::bad_input(
            "--seeds is for --scenario: without one, --sessions and --messages say how much is played",
        ));
    }
    let path = args.path.path()?;
    let deadline = match args.path.is_profile() {
        true => Deadline::TwiceMedianRtt,
        // With the round trip of 250 ms: time for a second round, not for a third.
        false => Deadline::Default(Duration::from_millis(400)),
    };
    let mut network = Network {
        path: args.additions.apply(path)?,
        deadline,
        settings: args.path.settings(),
    };
    args.additions.add_settings(&mut network.settings);
    measure::run(&args.workload, network)
}
