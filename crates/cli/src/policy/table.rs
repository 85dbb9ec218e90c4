//! `punctual policy table`: how large the tables are, and how fast.

use punctual_policy::solve::{TableSummary, table_summary};
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::{output, values};

/// Build all of Pangolin's tables for one target and measure them: the figures of the paper's section 5.5.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  punctual policy table --miss 0.001 --json")]
pub(crate) struct Args {
    /// Share of messages that may be late.
    #[arg(long, value_name = "SHARE", default_value = "0.001", value_parser = values::miss)]
    miss: f64,
    /// Print one JSON object: `stored_tables`, `combinations`, `bytes`, `build_seconds`, `threads`, `lookup_ns` (median over
    /// random keys, caches warm), `lookup_cold_ns` (first two cache levels flushed).
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Measured {
    miss_target: f64,
    stored_tables: usize,
    combinations: usize,
    bytes: usize,
    build_seconds: f64,
    threads: usize,
    lookup_ns: f64,
    lookup_cold_ns: f64,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let progress = Progress::turning("building tables", args.json);
    let summary = table_summary(args.miss as f32);
    progress.clear();
    let measured = measured(args.miss, &summary.map_err(Failure::bad_input)?);
    if args.json {
        output::print_json(&measured)
    } else {
        output::print(&text(&measured))
    }
}

fn measured(miss_target: f64, summary: &TableSummary) -> Measured {
    Measured {
        miss_target,
        stored_tables: summary.tables,
        combinations: summary.combinations,
        bytes: summary.bytes,
        build_seconds: summary.build_time.as_secs_f64(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        lookup_ns: summary.lookup_warm_ns,
        lookup_cold_ns: summary.lookup_cold_ns,
    }
}

fn text(measured: &Measured) -> String {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    output::table(&[
        row(
            "stored tables",
            format!("{} of {}", measured.stored_tables, measured.combinations),
        ),
        row("size", format!("{} bytes", measured.bytes)),
        row(
            "built in",
            format!(
                "{:.2} s on {} threads",
                measured.build_seconds, measured.threads
            ),
        ),
        row("look-up", format!("{:.1} ns", measured.lookup_ns)),
        row(
            "look-up, caches cold",
            format!("{:.1} ns", measured.lookup_cold_ns),
        ),
    ])
}
