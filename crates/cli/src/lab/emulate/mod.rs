//! `punctual lab emulate`: a scenario file on the real kernel.
//!
//! `sockets.rs` is where it is played, `hold.rs` what becomes of a file without streams.

mod hold;
mod sockets;

use std::path::PathBuf;

use punctual_lab::emulator::{self, Capture};
use punctual_lab::scenario::{Ending, Outcome, RunError, Scenario, run_at};
use serde_json::json;

use super::inside::{drop_log, emulator_failed};
use super::scenario::{self, Place};
use super::{networks, packets};
use crate::descriptors;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::values;
use sockets::{Ended, Notes, Sockets};

/// Play a scenario file on the real kernel: real sockets, in real time, on an emulated network.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    punctual lab emulate crates/lab/scenarios/agreement.toml --report agreement.html\n  \
    punctual lab simulate --scenario crates/lab/scenarios/agreement.toml\n\n\
    A file without [[stream]] is a network that is held open for other programs. Scenario files: docs/manual/scenarios.md")]
pub(crate) struct Args {
    /// The scenario.
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Repeats the fates of packets and what is sent when (default: the file's).
    #[arg(long)]
    seed: Option<u64>,
    /// Play it with so many seeds, one after the other, from the first on, and pool what comes of it.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = values::whole::<u64>(1..=10_000))]
    seeds: u64,
    /// Play a seed up to so many times, until the machine has held the time: a busy one's lateness is then not taken for the protocol's.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["drops", "pcap"],
        value_parser = values::whole::<u32>(1..=100))]
    attempts: u32,
    /// Write down every packet that is dropped, as CSV.
    #[arg(long, value_name = "FILE")]
    drops: Option<PathBuf>,
    /// Write down all packets: client.pcap and server.pcap in this directory.
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Print one JSON object: the fields of `ScenarioResult` in docs/manual/scenarios.md, and `emulator`.
    #[arg(long)]
    json: bool,
    /// Write a page.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let scenario = Scenario::open(&args.scenario).map_err(Failure::bad_input)?;
    output::check_distinct(&[
        ("SCENARIO.toml", Some(&args.scenario)),
        ("--drops", args.drops.as_ref()),
        ("--report", args.report.as_ref()),
    ])?;
    if scenario.streams.is_empty() && (args.report.is_some() || args.seeds > 1 || args.attempts > 1)
    {
        return Err(Failure::bad_input(
            "a file without [[stream]] is a network that is held open: --report, --seeds and --attempts are of streams that are played",
        ));
    }
    let page = OutputFile::page_if(args.report.as_ref())?;
    let is_noted = args.drops.is_some() || args.pcap.is_some();
    if is_noted && args.seeds > 1 {
        return Err(Failure::bad_input(
            "--drops and --pcap are of one run: leave --seeds out",
        ));
    }
    let first = args.seed.unwrap_or(scenario.seed);
    let seeds = scenario::seeds(first, args.seeds)?;
    let privilege = emulator::acquire_privilege().map_err(emulator_failed)?;
    let mut notes = args.notes()?;
    interrupt::watch();
    if scenario.streams.is_empty() {
        return hold::hold(&scenario, first, notes, privilege, args.json);
    }
    // Each session has a socket, each rival two connections of which each is kept twice.
    let rivals = scenario.rivals.map_or(0, |rivals| rivals.cubic);
    descriptors::ask_for(scenario.sessions.saturating_add(4 * rivals));
    let mut ends = Vec::new();
    let (mut attempt, mut again) = (0, 0);
    let played = scenario::watched(&scenario, seeds, args.json, |seeds, go_on| {
        let open = |seed| Sockets::open(&scenario, seed, std::mem::take(&mut notes));
        let close = |venue: Sockets| {
            let ended = venue.close()?;
            attempt += 1;
            if !ended.is_held() && attempt < args.attempts {
                again += 1;
                return Ok(Ending::Again);
            }
            attempt = 0;
            ends.push(ended);
            Ok(Ending::Counts)
        };
        run_at(&scenario, seeds, open, close, go_on)
    });
    let ended = played.ended.map_err(failure);
    let Some(outcome) = &played.outcome else {
        return ended;
    };
    let mut place = place(outcome, &ends, again);
    place.is_complete = ended.is_ok();
    (place.remarks).extend(scenario::early(&ended, outcome, args.seeds));
    let told = scenario::tell(&scenario, outcome, &place, page, args.json);
    let mut reports = ends.iter().map(|ended| &ended.report);
    let written = reports.try_for_each(packets::check_written);
    output::and_besides(told, written.and(ended))
}

fn failure(error: RunError<Failure>) -> Failure {
    match error {
        RunError::Stopped => Failure::Interrupted,
        error => error.of_venue().unwrap_or_else(Failure::bad_input),
    }
}

/// More than this for one turn of a hundred, and messages are late by what they waited for the machine.
const LATE_MAX_MS: f64 = 1.0;

/// The network of each seed's run; so many others were played again.
fn place(outcome: &Outcome, ends: &[Ended], again: u32) -> Place {
    let mut rows = vec![packets::heading()];
    let mut remarks = Vec::new();
    let mut runs = Vec::new();
    for (seed, ended) in outcome.result.seeds.iter().zip(ends) {
        let named = |what: &str| match ends.len() {
            1 => what.to_owned(),
            _ => format!("seed {seed}: {what}"),
        };
        for mut row in packets::rows(&ended.report) {
            row[0] = named(&row[0]);
            rows.push(row);
        }
        let said = packets::remarks(&ended.report).into_iter();
        remarks.extend(said.chain([ended.verdict()]).map(|remark| named(&remark)));
        let mut numbers = packets::numbers(&ended.report);
        numbers.insert("seed".to_owned(), json!(seed));
        numbers.insert("endpoints_late_ms_p99".to_owned(), json!(ended.late_ms_p99));
        runs.push(numbers);
    }
    if again > 0 {
        remarks.push(format!(
            "{again} runs in which the machine did not hold the time were played again, and are in none of the figures"
        ));
    }
    Place {
        words: "real sockets on an emulated network",
        tables: vec![("Emulator", rows)],
        remarks,
        emulator: Some(json!({
            "kernel": networks::kernel(),
            "timing_held": ends.iter().all(Ended::is_held),
            "runs_played_again": again,
            "runs": runs,
        })),
        is_complete: true,
    }
}

impl Ended {
    const fn is_called_in_time(&self) -> bool {
        self.late_ms_p99 <= LATE_MAX_MS
    }

    /// The machine held the time, packets' and endpoints'.
    fn is_held(&self) -> bool {
        self.report.timing.is_held() && self.is_called_in_time()
    }

    fn verdict(&self) -> String {
        let late = self.late_ms_p99;
        if self.is_called_in_time() {
            format!("endpoints were called in time: 99 % of turns at most {late:.2} ms late")
        } else {
            format!(
                "the machine did not call the endpoints in time: 1 % of turns were more than {late:.2} ms late, so the latencies are the \
                 machine's as much as the protocol's"
            )
        }
    }
}

impl Args {
    fn notes(&self) -> Result<Notes, Failure> {
        let capture = self.pcap.as_deref().map(Capture::create).transpose();
        Ok(Notes {
            drop_log: drop_log(self.drops.as_deref())?,
            capture: capture.map_err(emulator_failed)?,
        })
    }
}
