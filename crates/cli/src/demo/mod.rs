//! `punctual demo`: all policies at once over real sockets and an emulated path, on this machine.
//!
//! ```text
//! settings -> stage (sockets, endpoints, tables) -> server thread  --+
//!                                                   relay thread     +-- board (counts) -> view
//!                                                   clients thread --+
//!                                                         |
//!             notes, tally (summaries) <------------------+
//! ```
//!
//! The protocol runs as it ships: UDP, encryption, its own estimates. A message's latency is the time of its delivery at the client
//! less that of the server's `send`, by the one clock of this process, which the protocol does not see.

mod board;
mod clients;
mod notes;
mod server;
mod settings;
mod stage;
mod stamp;
mod tally;
mod view;

use std::path::PathBuf;
use std::time::Duration;

use punctual_lab::report::{self, Figures, Series};
use punctual_lab::stats::Report;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::{self, OutputFile};
use crate::progress::Progress;
use crate::scoreboard::{self, count, percent};
use crate::{interrupt, values};
use settings::{POLICIES, Settings};
use stage::{Performance, Stage};
pub(crate) use tally::Totals;
use view::View;

const EXAMPLES: &str = "Examples:
  punctual demo
  punctual demo --profile thin-streams --report demo.html
  punctual demo --trace ping.txt --deadline-ms 200";

/// See messages keep their deadline: real sockets, an emulated path, four policies at once.
///
/// A server sends each of its clients a message a second, through four policies, over paths that treat all four alike: packets
/// of the same millisecond meet the same loss and delay. Needs no privilege and stays on this machine.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The path: busy-hour, bursty-wifi, lte, starlink, transatlantic, pangolin-table2, thin-streams, dsl, clean.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "busy-hour",
        conflicts_with = "trace"
    )]
    profile: String,
    /// A recorded path instead: ping -D output, tab-separated pings, hairpin log, mahimahi capacity, irtt JSON, or CSV.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// When a message is late (default: 2.2 times the path's median round trip, to the next 10 ms).
    #[arg(long, value_name = "MS", value_parser = values::millis_above_zero)]
    deadline_ms: Option<Duration>,
    /// Share of messages that shall be on time.
    #[arg(long, value_name = "SHARE", default_value = "0.999", value_parser = values::on_time)]
    on_time: f64,
    /// Clients, each with a path of its own.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = values::whole::<u32>(1..=4000))]
    clients: u32,
    /// For how long messages are sent; each client gets one a second.
    #[arg(long, value_name = "S", default_value_t = 45, value_parser = values::whole::<u32>(1..=3600))]
    seconds: u32,
    /// Bytes of a message.
    #[arg(long, default_value_t = 2048, value_parser = values::whole::<u32>(16..=262_144))]
    bytes: u32,
    /// The same seed gives the same losses and delays.
    #[arg(long, default_value_t = 1, value_parser = values::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Write a page with the latency distributions and the numbers; it can be read offline.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print one JSON object: `settings`, and `policies`, a list of {`policy`, `messages`, `latency_ms` {`p50`, `p95`, `p99`,
    /// `p99_5`, `p99_9`, `max` (the latest that arrived); null: never}, `late_share`, `late_share_95` [low, high], `predicted_late_share`,
    /// `recovery_overhead`, `encapsulation_overhead`, `lost_messages`, `seed`}.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let settings = Settings::of(&args)?;
    output::check_distinct(&[
        ("--trace", args.trace.as_ref()),
        ("--report", args.report.as_ref()),
    ])?;
    let page = OutputFile::page_if(args.report.as_ref())?;
    interrupt::watch();
    crate::descriptors::ask_for(settings.clients);
    if !args.json {
        output::print(&introduction(&settings))?;
    }
    let progress = Progress::turning("preparing the policies' tables", args.json);
    let stage = Stage::set(&settings);
    progress.clear();
    let mut view = View::new(&settings, args.json);
    let performance = stage?.play(&settings, &mut view);
    view.clear();
    conclude(&settings, performance?, &args, page)
}

/// What is about to happen.
fn introduction(settings: &Settings) -> String {
    let origin = if settings.is_deadline_chosen {
        "as asked"
    } else {
        "2.2 median round trips"
    };
    let sentences = [
        format!(
            "{} clients get a message of {} bytes a second, for {} s, through four policies at once.",
            count(settings.clients.into()),
            count(settings.message_bytes as u64),
            settings.seconds
        ),
        format!("Path {}: {}.", settings.path.name, settings.path_summary),
        format!(
            "{} shall arrive within {} ms ({origin}; the median round trip is {:.1} ms).",
            percent_plain(settings.on_time),
            settings.deadline_ms(),
            settings.rtt_median.as_secs_f64() * 1000.0
        ),
    ];
    sentences.map(|text| output::wrapped(&text, "  ")).concat() + "\n"
}

/// Prints and writes what came of it.
fn conclude(
    settings: &Settings,
    performance: Performance,
    args: &Args,
    page: Option<OutputFile>,
) -> Result<(), Failure> {
    let is_interrupted = performance.is_interrupted;
    let notes = notes::notes(settings, &performance);
    let machine = machine(&performance);
    let mut report = Report {
        floors: None,
        settings: settings_with(settings, machine, &notes),
        policies: Vec::new(),
    };
    let mut figures = Figures {
        remarks: notes.iter().map(|note| format!("Note: {note}.")).collect(),
        ..figures(settings)
    };
    let lanes = performance
        .received
        .into_iter()
        .zip(&performance.server.lanes);
    for ((received, sent), kind) in lanes.zip(POLICIES) {
        if received.arrivals.wrong() > 0 {
            return Err(Failure::failed(format_args!(
                "{} messages arrived twice or damaged under {kind}; this is a bug: please report it with `{}`",
                received.arrivals.wrong(),
                output::command_line()
            )));
        }
        let (summary, latencies) =
            received
                .arrivals
                .summary(kind, &sent.of_cluster, &sent.totals, settings.seed);
        figures.latency.push(Series {
            name: summary.policy.clone(),
            points: latencies.curve(),
        });
        report.policies.push(summary);
    }
    let printed = if args.json {
        output::print_json(&report)
    } else {
        output::print(&conclusion(settings, &report, &notes, performance.took))
    };
    let written = output::then_write(printed, page, || report::html(&report, &figures));
    let ended = if is_interrupted {
        Err(Failure::Interrupted)
    } else {
        Ok(())
    };
    output::and_besides(written, ended)
}

fn conclusion(settings: &Settings, report: &Report, notes: &[String], took: Duration) -> String {
    let mut text = scoreboard::table(&report.policies);
    text.push('\n');
    for summary in &report.policies {
        text += &scoreboard::verdict(summary, settings.on_time);
    }
    for note in notes {
        text += &output::remark(&format!("{note}."));
    }
    let lateness = report.settings["relay_lateness_p99_ms"].as_f64();
    let took = format!(
        "Took {:.1} s; the relay passed 99 % of packets on within {:.2} ms of their time.",
        took.as_secs_f64(),
        lateness.unwrap_or(0.0)
    );
    text + &output::wrapped(&took, "  ")
}

/// How well the machine kept up.
fn machine(performance: &Performance) -> Value {
    json!({
        "relay_packets": performance.relay.received,
        "relay_packets_lost_by_path": performance.relay.lost,
        "relay_lateness_p99_ms": notes::relay_lateness_ms(performance),
        "send_lateness_p99_ms": performance.server.lateness.quantile_ms(0.99),
        "packets_lost_by_machine": notes::dropped_by_machine(performance),
        "took_s": (performance.took.as_secs_f64() * 10.0).round() / 10.0,
        "is_interrupted": performance.is_interrupted,
    })
}

fn settings_with(settings: &Settings, machine: Value, notes: &[String]) -> Value {
    let mut all = settings.json();
    if let (Value::Object(all), Value::Object(machine)) = (&mut all, machine) {
        all.extend(machine);
        all.insert("notes".to_owned(), json!(notes));
    }
    all
}

fn figures(settings: &Settings) -> Figures {
    Figures {
        title: format!(
            "{} within {} ms over {}",
            percent_plain(settings.on_time),
            settings.deadline_ms(),
            settings.path.name
        ),
        subtitle: format!(
            "{} clients, a message of {} bytes a second each, real sockets and encryption on one machine. {}: {}",
            settings.clients, settings.message_bytes, settings.path.name, settings.path_summary
        ),
        command: output::command_line(),
        deadline_ms: Some(settings.deadline_ms()),
        on_time_target: Some(settings.on_time),
        latency: Vec::new(),
        ..Figures::default()
    }
}

/// `99.9 %`: as many digits as were given.
fn percent_plain(share: f64) -> String {
    let short = percent(share);
    let exact = (share * 1e9).round() / 1e7;
    if share < 0.99 {
        short
    } else {
        format!("{exact} %")
    }
}
