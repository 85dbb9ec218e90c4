//! `punctual lab replay`: a recorded network.

use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_lab::channel::{LossModel, PathSpec, RttSplit};
use punctual_lab::trace::{Content, PathOptions, Trace, TraceError, capacity_path};
use serde_json::json;

use super::measure::{self, Network};
use super::network::Additions;
use super::workload::{Deadline, Workload};
use crate::failure::Failure;
use crate::output;
use crate::values;

/// Send messages over a recorded network, and see how each policy fares.
///
/// Read are ping -D output, tab-separated pings, cloud-gaming (hairpin) logs, mahimahi capacity, irtt JSON, and CSV with the
/// header `time_s,rtt_ms` or `time_s,owd_up_ms,owd_down_ms` (empty = lost), and what `punctual measure` keeps. Every session begins elsewhere in the recording,
/// which is repeated for as long as the messages take.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual lab replay --trace ping.txt --policy steered,retransmit --report report.html"
)]
pub(crate) struct Args {
    #[command(flatten)]
    recorded: Recorded,
    #[command(flatten)]
    additions: Additions,
    #[command(flatten)]
    workload: Workload,
}

/// The recording, and what it does not say.
#[derive(clap::Args)]
#[command(next_help_heading = "Network")]
struct Recorded {
    /// The recording; its way up is the way of the messages.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Of capacity recordings: the way back (default: as the way of the messages).
    #[arg(long, value_name = "FILE")]
    trace_back: Option<PathBuf>,
    /// How round-trip times are divided: even (the default), forward, backward, or the forward share.
    #[arg(long, value_parser = values::split)]
    split: Option<RttSplit>,
    /// Share of the losses that are forward, where the recording does not say (default 0.5; cloud-gaming logs 1). Outages of 200 ms and longer take both ways.
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    loss_forward: Option<f64>,
    /// Of capacity recordings: the round-trip time without queues (default 40).
    #[arg(long, value_name = "MS", value_parser = values::millis)]
    base_rtt_ms: Option<Duration>,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    output::check_distinct(&[
        ("--trace", Some(&args.recorded.trace)),
        ("--report", args.workload.report.as_ref()),
    ])?;
    let trace = read(&args.recorded.trace)?;
    args.recorded.check(&trace)?;
    let options = args.recorded.options(&trace);
    let path = args.recorded.path(&trace, &options)?;
    args.recorded.check_losses(&path)?;
    let mut settings = measure::fields(json!({
        "trace": args.recorded.trace.display().to_string(),
        "trace_back": args.recorded.trace_back.as_ref().map(|trace| trace.display().to_string()),
        "trace_summary": trace.summary().to_string(),
        "rtt_forward_share": options.rtt_split.forward_share(),
        "loss_forward_share": options.loss_forward,
    }));
    if matches!(trace.content, Content::Capacity(_)) {
        settings.insert(
            "base_rtt_ms".to_owned(),
            json!(measure::millis(options.base_rtt)),
        );
    }
    args.additions.add_settings(&mut settings);
    let network = Network {
        path: args.additions.apply(path)?,
        deadline: Deadline::TwiceMedianRtt,
        settings,
    };
    measure::run(&args.workload, network)
}

fn read(path: &Path) -> Result<Trace, Failure> {
    Trace::open(path).map_err(bad_trace)
}

fn bad_trace(error: TraceError) -> Failure {
    Failure::bad_input(error)
}

impl Recorded {
    /// Refuses what would change nothing.
    fn check(&self, trace: &Trace) -> Result<(), Failure> {
        let is_capacity = matches!(trace.content, Content::Capacity(_));
        if !is_capacity && self.base_rtt_ms.is_some() {
            return Err(Failure::bad_input(
                "--base-rtt-ms is of capacity recordings: this one has round trips of its own",
            ));
        }
        if is_capacity && self.loss_forward.is_some() {
            return Err(Failure::bad_input(
                "--loss-forward is of recordings with losses: a capacity recording has none",
            ));
        }
        if !is_capacity && self.split.is_some() && !trace.has_round_trips() {
            return Err(Failure::bad_input(
                "--split divides round trips: this recording says how long each way took",
            ));
        }
        Ok(())
    }

    /// As [`Self::check`], of what is known when the path is made.
    fn check_losses(&self, path: &PathSpec) -> Result<(), Failure> {
        let is_open = match &path.forward.loss {
            LossModel::Trace(losses) => losses.has_drawn_sides(),
            _ => false,
        };
        if self.loss_forward.is_some() && !is_open {
            return Err(Failure::bad_input(
                "--loss-forward says which way losses were: this recording has none but outages of 200 ms and longer, which take both ways, or says so itself",
            ));
        }
        Ok(())
    }

    fn options(&self, trace: &Trace) -> PathOptions {
        let defaults = PathOptions::for_trace(trace);
        PathOptions {
            rtt_split: self.split.unwrap_or(defaults.rtt_split),
            loss_forward: self.loss_forward.unwrap_or(defaults.loss_forward),
            base_rtt: self.base_rtt_ms.unwrap_or(defaults.base_rtt),
            ..defaults
        }
    }

    fn path(&self, trace: &Trace, options: &PathOptions) -> Result<PathSpec, Failure> {
        match &self.trace_back {
            None => trace.path(options),
            Some(back) => capacity_path(trace, &read(back)?, options),
        }
        .map_err(bad_trace)
    }
}
