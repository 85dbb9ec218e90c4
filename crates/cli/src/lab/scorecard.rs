//! `punctual lab scorecard`: arms over networks, on real kernels.

use std::path::PathBuf;
use std::time::Duration;

use punctual_lab::arena::{Arena, ArenaError, ArenaRun, ArmFigures};
use punctual_lab::arm::{Contest, MESSAGE_MIN, Phase, Sender, Task};
use punctual_lab::channel::PathSpec;
use punctual_lab::emulator;
use serde::Serialize;

use super::arms;
use super::networks::{self, NamedNetwork};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::progress::Progress;
use crate::values;

/// Let transports carry the same messages over the same networks, on real kernels, and compare what arrived in time at what cost.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual lab scorecard --networks busy-hour,ping.txt --arms punctual,tcp-cubic --report scorecard.html"
)]
pub(crate) struct Args {
    /// Built-in paths by name, recordings, scenario files (their network), or directories of recordings.
    #[arg(
        long,
        value_name = "NAME|FILE",
        value_delimiter = ',',
        default_value = "busy-hour"
    )]
    networks: Vec<String>,
    /// Transports: all, or names; --arms help lists them.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "punctual,retransmit,tcp-cubic"
    )]
    arms: Vec<String>,
    /// Clients of each arm, each with a path of its own drawn from the network.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=2000))]
    flows: u32,
    /// How long messages are sent over each network.
    #[arg(long, value_name = "S", default_value = "60", value_parser = values::seconds)]
    seconds: Duration,
    /// Time from one message of a client to its next.
    #[arg(long, value_name = "MS", default_value = "100", value_parser = values::millis_above_zero)]
    interval_ms: Duration,
    /// Size of each message.
    #[arg(long, value_name = "BYTES", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(MESSAGE_MIN as i64..=262_144))]
    bytes: u32,
    /// When a message is late (default: twice the network's median round trip, at least 20 ms more than it).
    #[arg(long, value_name = "MS", value_parser = values::millis_above_zero)]
    deadline_ms: Option<Duration>,
    /// Share of messages that shall be on time.
    #[arg(long, value_name = "SHARE", default_value = "0.999", value_parser = values::on_time)]
    on_time: f64,
    /// Who sends.
    #[arg(long, value_enum, default_value_t = Direction::ToClient)]
    direction: Direction,
    /// Repeats the networks' fates and the instants of sending.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Write a page.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Direction {
    ToClient,
    ToServer,
}

/// The numbers of a scorecard.
#[derive(Serialize)]
struct Scorecard {
    command: String,
    version: &'static str,
    kernel: String,
    networks: Vec<Row>,
}

/// All arms over a network.
#[derive(Serialize)]
struct Row {
    network: String,
    source: String,
    rtt_median_ms: f64,
    deadline_ms: f64,
    on_time: f64,
    timing: String,
    timing_error_ms_p99: f64,
    arms: Vec<ArmFigures>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    emulator::acquire_privilege().map_err(Failure::bad_input)?;
    let page = OutputFile::open_if(args.report.as_ref())?;
    let networks = networks::by_names(&args.networks)?;
    // Wrong names are told before anything begins.
    arms::by_names(&args.arms)?;
    interrupt::watch();
    let mut rows = Vec::new();
    for (place, network) in networks.iter().enumerate() {
        let what = format!("{} ({} of {})", network.name, place + 1, networks.len());
        rows.push(play(args, network, &what)?);
    }
    let scorecard = Scorecard {
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION"),
        kernel: networks::kernel(),
        networks: rows,
    };
    let _ = page;
    if args.json {
        return output::print_json(&scorecard);
    }
    output::print(&table(&scorecard))
}

fn play(args: &Args, network: &NamedNetwork, what: &str) -> Result<Row, Failure> {
    let rtt = network.path.median_rtt();
    let deadline = args.deadline_ms.unwrap_or_else(|| default_deadline(rtt));
    let arena = arena(args, &network.path, deadline, rtt);
    let arms = arms::by_names(&args.arms)?;
    let run = watched(&arena, &arms, what, args.json)?;
    let deadline_us = deadline.as_micros() as u32;
    let bytes = args.bytes as usize;
    Ok(Row {
        network: network.name.clone(),
        source: network.path.source.clone(),
        rtt_median_ms: rtt.as_secs_f64() * 1e3,
        deadline_ms: deadline.as_secs_f64() * 1e3,
        on_time: args.on_time,
        timing: run.timing.verdict(),
        timing_error_ms_p99: run.timing.error_ms_p99(),
        arms: (run.arms.iter())
            .map(|arm| ArmFigures::new(arm, bytes, deadline_us, None))
            .collect(),
    })
}

fn arena(args: &Args, path: &PathSpec, deadline: Duration, rtt: Duration) -> Arena {
    let messages = args.seconds.as_secs_f64() / args.interval_ms.as_secs_f64();
    Arena {
        paths: vec![path.clone(); args.flows as usize],
        link: None,
        mtu: 1500,
        seed: args.seed,
        contest: Contest {
            task: Task {
                sender: match args.direction {
                    Direction::ToClient => Sender::Server,
                    Direction::ToServer => Sender::Client,
                },
                message_bytes: args.bytes as usize,
                interval: args.interval_ms,
                deadline,
                on_time: args.on_time,
                rtt,
            },
            messages: (messages as u32).max(1),
            connect_max: Duration::from_secs(15),
            drain: Duration::from_secs(3).max(deadline * 3),
            seed: args.seed,
        },
    }
}

/// Plays, with a bar, until the end or Ctrl-C.
pub(super) fn watched(
    arena: &Arena,
    arms: &[Box<dyn punctual_lab::arm::Arm>],
    what: &str,
    json: bool,
) -> Result<ArenaRun, Failure> {
    let length = arena.length().as_millis() as u64;
    let progress = Progress::new(length, json);
    let run = arena.run(arms, |phase| {
        match phase {
            Phase::Connecting(_) | Phase::Begins => progress.show(0, what),
            Phase::Sending(since) => progress.show((since.as_millis() as u64).min(length), what),
        }
        !interrupt::is_pressed()
    });
    progress.clear();
    let run = run.map_err(|error| match &error {
        ArenaError::Emulator(cause) if cause.is_bad_input() => Failure::bad_input(error),
        ArenaError::Arm(punctual_lab::arm::ArmError::Missing { .. }) => Failure::bad_input(error),
        _ => Failure::failed(error),
    })?;
    if run.is_interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(run)
}

fn default_deadline(rtt: Duration) -> Duration {
    (rtt * 2).max(rtt + Duration::from_millis(20))
}

fn table(scorecard: &Scorecard) -> String {
    let mut text = String::new();
    for row in &scorecard.networks {
        text += &format!(
            "{}: median round trip {:.1} ms, deadline {:.0} ms; {}\n",
            row.network, row.rtt_median_ms, row.deadline_ms, row.timing
        );
        let heading = [
            "arm",
            "on time %",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "p99.9 ms",
            "lost",
            "overhead %",
            "packets",
            "CPU us",
        ];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for arm in &row.arms {
            let ms = |value: Option<f64>| {
                value.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.1}"))
            };
            rows.push(vec![
                arm.arm.clone(),
                format!("{:.3}", arm.on_time_share * 100.0),
                ms(arm.latency_ms.p50),
                ms(arm.latency_ms.p95),
                ms(arm.latency_ms.p99),
                ms(arm.latency_ms.p99_9),
                arm.messages_lost.to_string(),
                format!("{:.1}", arm.total_overhead * 100.0),
                format!("{:.2}", arm.packets_per_message),
                format!("{:.0}", arm.cpu_us_per_message),
            ]);
        }
        text += &output::table(&rows);
        text.push('\n');
    }
    text
}
