//! `punctual lab calibrate`: the emulator against itself.

use punctual_lab::calibration::{Calibration, CalibrationError, Effort, NETWORKS, Row, calibrate};
use punctual_lab::emulator;
use serde_json::json;

use super::inside::emulator_failed;
use super::networks;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::progress::Progress;
use crate::values;

/// Measure the emulator with plain UDP sockets: delay, jitter, loss, bursts, reordering, duplicates, rate, queue, outages, MTU, timing.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  punctual lab calibrate --quick\n\n\
    Ends with code 1 when something is out of bounds. What is out of bounds at first is measured a second time.")]
pub(crate) struct Args {
    /// A quarter of the time: below 15 seconds.
    #[arg(long)]
    quick: bool,
    /// Repeats the fates of packets.
    #[arg(long, default_value_t = 1, value_parser = values::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Print one JSON object: `rows`, a list of {`check`, `unit`, `configured`, `low`, `high`, `measured`, `is_within`}, `measured_twice`, `is_within`, `holds_timing`.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    emulator::acquire_privilege().map_err(emulator_failed)?;
    interrupt::watch();
    let effort = match args.quick {
        true => Effort::Quick,
        false => Effort::Full,
    };
    let progress = Progress::new(NETWORKS as u64, args.json);
    let calibration = calibrate(effort, args.seed, |name, over| {
        progress.show(over as u64, name);
        !interrupt::is_requested()
    });
    progress.clear();
    let calibration = calibration.map_err(|error| match error {
        CalibrationError::Emulator(error) => emulator_failed(error),
        error => Failure::failed(error),
    })?;
    if calibration.is_interrupted {
        return Err(Failure::Interrupted);
    }
    let failures: Vec<&str> = calibration
        .failures()
        .map(|row| row.check.as_str())
        .collect();
    let printed = if args.json {
        output::print_json(&json!({
            "command": output::command_line(),
            "version": env!("CARGO_PKG_VERSION"),
            "kernel": networks::kernel(),
            "is_quick": args.quick,
            "seed": args.seed,
            "rows": calibration.rows,
            "measured_twice": calibration.repeated,
            "is_within": failures.is_empty(),
            "holds_timing": calibration.holds_timing(),
        }))
    } else {
        output::print(&text(&calibration))
    };
    output::and_besides(printed, within(&calibration, &failures))
}

/// That nothing was out of bounds.
fn within(calibration: &Calibration, failures: &[&str]) -> Result<(), Failure> {
    if failures.is_empty() {
        return Ok(());
    }
    let timing = if calibration.holds_timing() {
        ""
    } else {
        "; this machine does not hold the timing at 20,000 packets a second, so that figures of such runs are the machine's as much as \
         the network's"
    };
    Err(Failure::failed(format_args!(
        "out of bounds: {}{timing}",
        failures.join("; ")
    )))
}

fn text(calibration: &Calibration) -> String {
    let head = ["what", "configured", "may be", "measured", "verdict"];
    let row = |row: &Row| {
        let unit = match row.unit {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        let bounds = match row.low == row.high {
            true => number(row.low),
            false => format!("{} to {}", number(row.low), number(row.high)),
        };
        vec![
            row.check.clone(),
            number(row.configured) + &unit,
            bounds,
            number(row.measured) + &unit,
            if row.is_within { "ok" } else { "OUT OF BOUNDS" }.to_owned(),
        ]
    };
    let rows: Vec<_> = std::iter::once(head.map(ToOwned::to_owned).to_vec())
        .chain(calibration.rows.iter().map(row))
        .collect();
    let mut text = output::table(&rows);
    if !calibration.repeated.is_empty() {
        let names = calibration.repeated.join("; ");
        text += &format!("measured twice, since something was out of bounds at first: {names}\n");
    }
    text
}

/// As many digits as matter.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if value.fract() == 0.0 && size < 1e9 => 0,
        size if size >= 1000.0 => 0,
        size if size >= 10.0 => 2,
        _ => 4,
    };
    format!("{value:.digits$}")
}
