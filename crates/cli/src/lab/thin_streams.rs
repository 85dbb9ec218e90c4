//! `punctual lab thin-streams`: what is done for streams of which few packets are on their way, and what it brings.

use punctual_lab::scenario::{Remedies, ThinResult, ThinResults, ThinStudy, thin_streams};
use serde::Serialize;

use super::scenario::percent;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::values;

/// Study what thin-stream recovery brings to the traffic of ten games.
///
/// The traffic is table 1 of the thin-streams paper; delivered in order, over 130 ms round trip with 2 % of the packets to the
/// receiver lost, one packet a write. Each row runs with everything on, with each of the three remedies off, and with all off.
/// The goal is what bundling can reach: 1 - loss * (1 - share of gaps up to 1 ms).
#[derive(clap::Args)]
#[command(after_help = "Example:\n  punctual lab thin-streams --messages 10000 --seed 7")]
pub(crate) struct Args {
    /// Messages of each row and each set of remedies, about.
    #[arg(long, default_value_t = 50_000, value_parser = values::whole::<u64>(100..=100_000_000))]
    messages: u64,
    /// The same seed gives the same run.
    #[arg(long, default_value_t = 1, value_parser = values::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Print one JSON object: `command`, `version`, `rtt_ms`, `loss_forward`, `bound_ms`, `seed`, and `rows`, a list of {`shape`, `remedies`, `messages`,
    /// `gaps_within_1_ms_share`, `undelayed_share`, `undelayed_share_95` [low, high], `goal`, `difference_pp`, `latency_ms`
    /// {`p50`, `p95`, `p99`, `p99_5`, `p99_9`, `max`; null: never}, `recovery_overhead`, `packets_per_s`, `wire_bits_per_s`}.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// All numbers.
#[derive(Serialize)]
struct Numbers<'a> {
    /// Repeats it.
    command: String,
    version: &'static str,
    #[serde(flatten)]
    results: &'a ThinResults,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let study = ThinStudy {
        messages: args.messages,
        seed: args.seed,
        ..ThinStudy::default()
    };
    let parts = study.shapes.len() * Remedies::ALL.len();
    let progress = Progress::new(parts as u64, args.json);
    let results = thin_streams(&study, |done| {
        let shape = study.shapes[(done / Remedies::ALL.len()).min(study.shapes.len() - 1)];
        progress.show(done as u64, shape.name());
    });
    progress.clear();
    let results = results.map_err(Failure::bad_input)?;
    if args.json {
        return output::print_json(&Numbers {
            command: output::command_line(),
            version: env!("CARGO_PKG_VERSION"),
            results: &results,
        });
    }
    output::print(&text(&results))
}

fn text(results: &ThinResults) -> String {
    let head = "row|remedies|messages|undelayed|goal|pp|p99 ms|p99.9 ms|max ms|recovery|kbit/s";
    let rows = output::headed(head, results.rows.iter().map(row));
    format!(
        "Delivered in order, {} ms round trip, {} lost towards the receiver; undelayed: within {} ms; seed {}\n\n{}",
        results.rtt_ms,
        percent(results.loss_forward),
        results.bound_ms,
        results.seed,
        output::table(&rows)
    )
}

fn row(row: &ThinResult) -> Vec<String> {
    let ms = |ms: Option<f64>| ms.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.1}"));
    vec![
        row.shape.clone(),
        row.remedies.clone(),
        row.messages.to_string(),
        percent(row.undelayed_share),
        percent(row.goal),
        format!("{:+.2}", row.difference_pp),
        ms(row.latency_ms.p99),
        ms(row.latency_ms.p99_9),
        ms(row.latency_ms.max),
        row.recovery_overhead
            .map_or_else(|| "-".to_owned(), percent),
        format!("{:.1}", row.wire_bits_per_s / 1e3),
    ]
}
