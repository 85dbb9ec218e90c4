//! Runs a simulation, and tells how it went: table, JSON, page.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use punctual_lab::channel::PathSpec;
use punctual_lab::report::{self, Figures, Series};
use punctual_lab::simulate::{Libraries, PolicyResult, SimulateOptions, Simulated, simulate_with};
use punctual_lab::stats::Report;
use punctual_proto::Promise;
use serde_json::{Map, Value, json};

use super::workload::{Deadline, Workload};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::progress::Progress;

/// What the messages travel over.
pub(super) struct Network {
    /// The path of every session.
    pub(super) path: PathSpec,
    /// The deadline unless the user asks for another.
    pub(super) deadline: Deadline,
    /// What the path is made of, for reports.
    pub(super) settings: Map<String, Value>,
}

/// Runs the workload over the network, and prints and writes what came of it.
pub(super) fn run(workload: &Workload, network: Network) -> Result<(), Failure> {
    workload.check()?;
    let page = OutputFile::page_if(workload.report.as_ref())?;
    network.path.check().map_err(Failure::bad_input)?;
    let (deadline, origin) = workload.deadline(network.deadline, &network.path);
    let options = workload.options(network.path, deadline);
    let settings = settings(network.settings, &options, origin);
    interrupt::watch();
    let (simulated, took) = simulate_all(&options, workload.json)?;
    let Simulated {
        results,
        is_complete,
    } = simulated;
    if results.is_empty() {
        return Err(Failure::Interrupted);
    }
    let refused = refused(&results);
    let mut settings = with_refused(settings, &refused);
    settings["is_complete"] = json!(is_complete);
    let early = (!is_complete).then(|| {
        let (whole, of) = (results.len(), options.policies.len());
        format!("ended early: of {of} policies {whole} were played whole.")
    });
    let remarks: Vec<String> = remarks(&refused, &options).chain(early).collect();
    let report = Report {
        settings,
        // The first policy's: those of the others differ only if a session took longer to open.
        floors: results.first().map(|result| result.floors),
        policies: results
            .iter()
            .map(|result| result.summary.clone())
            .collect(),
    };
    let printed = if workload.json {
        output::print_json(&report)
    } else {
        print(&report, &options, origin, &remarks, took)
    };
    let told = output::then_write(printed, page, || {
        report::html(&report, &figures(&options, &results, remarks))
    });
    let played = match is_complete {
        true => Ok(()),
        false => Err(Failure::Interrupted),
    };
    output::and_besides(told, played)
}

fn print(
    report: &Report,
    options: &SimulateOptions,
    origin: &str,
    remarks: &[String],
    took: Duration,
) -> Result<(), Failure> {
    let heading = format!(
        "{}; deadline {} ms ({origin}), {} on time, seed {}",
        messages(options),
        millis(options.deadline),
        percent(options.on_time),
        options.seed
    );
    let heading = [options.path.to_string(), heading].map(|text| output::wrapped(&text, ""));
    let table = output::table(&report::rows(report));
    let notes: String = remarks.iter().map(|note| output::remark(note)).collect();
    output::print(&format!("{}\n{table}{notes}", heading.concat()))?;
    let sent: u64 = report.policies.iter().map(|summary| summary.messages).sum();
    let rate = sent as f64 / took.as_secs_f64();
    output::note(&format!(
        "{:.1} s, {rate:.0} messages a second",
        took.as_secs_f64()
    ));
    Ok(())
}

/// Simulates, with a bar, until somebody asks for the end; also how long it took.
pub(crate) fn simulate_all(
    options: &SimulateOptions,
    json: bool,
) -> Result<(Simulated, Duration), Failure> {
    let names: Vec<String> = options.policies.iter().map(ToString::to_string).collect();
    let progress = Progress::new(options.messages * names.len() as u64, json);
    let begin = Instant::now();
    let simulated = simulate_with(options, &Libraries::default(), |at| {
        progress.show(at.policy as u64 * at.of + at.messages, &names[at.policy]);
        !interrupt::is_requested()
    });
    progress.clear();
    Ok((simulated.map_err(Failure::bad_input)?, begin.elapsed()))
}

/// Messages that were not accepted, by policy: of those of which some were not.
pub(crate) type Refused = BTreeMap<String, u64>;

/// A sender takes no more messages than it may hold, and none once its session has ended.
pub(crate) fn refused(results: &[PolicyResult]) -> Refused {
    let refused = (results.iter()).map(|result| (result.summary.policy.clone(), result.refused));
    refused.filter(|(_, count)| *count > 0).collect()
}

/// What a reader must know then.
pub(crate) fn remarks<'a>(
    refused: &'a Refused,
    options: &SimulateOptions,
) -> impl Iterator<Item = String> + use<'a> {
    let messages = options.messages;
    refused.iter().map(move |(policy, count)| {
        format!(
            "{policy}: {count} of {messages} messages were refused when they were to be sent (session closed, or too much queued) \
             and count as lost."
        )
    })
}

/// The settings, and `refused_messages`.
pub(crate) fn with_refused(mut settings: Value, refused: &Refused) -> Value {
    settings["refused_messages"] = json!(refused);
    settings
}

/// What was simulated, for reports: what the network is made of, and the rest.
pub(crate) fn settings(
    mut settings: Map<String, Value>,
    options: &SimulateOptions,
    origin: &str,
) -> Value {
    let common = json!({
        "command": output::command_line(),
        "version": env!("CARGO_PKG_VERSION"),
        "path": options.path.to_string(),
        "path_source": options.path.source,
        "deadline_ms": millis(options.deadline),
        "deadline_origin": origin,
        "on_time": options.on_time,
        "symbols": options.symbols,
        "message_bytes": options.message_bytes,
        "messages": options.messages,
        "sessions": options.sessions,
        "promise": match options.promise {
            Promise::EachStream => "each stream",
            Promise::AllSessions => "all sessions",
        },
        "interval_ms": millis(options.interval),
        "frame_ms": millis(options.frame),
        "datagram_max_bytes": options.datagram_max,
        "seed": options.seed,
    });
    settings.extend(fields(common));
    Value::Object(settings)
}

fn figures(options: &SimulateOptions, results: &[PolicyResult], remarks: Vec<String>) -> Figures {
    let series = |result: &PolicyResult| Series {
        name: result.summary.policy.clone(),
        points: result.latencies.curve(),
    };
    Figures {
        title: format!(
            "{} within {} ms over {}",
            percent(options.on_time),
            millis(options.deadline),
            options.path.name
        ),
        subtitle: format!("{} (virtual time). {}", messages(options), options.path),
        command: output::command_line(),
        deadline_ms: Some(millis(options.deadline)),
        on_time_target: Some(options.on_time),
        latency: results.iter().map(series).collect(),
        remarks,
        ..Figures::default()
    }
}

fn messages(options: &SimulateOptions) -> String {
    format!(
        "{} of {} a policy, one each {} ms in each of {}",
        output::counted(options.messages, "message"),
        output::counted(options.message_bytes, "byte"),
        millis(options.interval),
        output::counted(options.sessions as usize, "session")
    )
}

/// Milliseconds as reports have them.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// `99.9 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", (share * 1e9).round() / 1e7)
}

/// The fields of a JSON object.
pub(crate) fn fields(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        other => unreachable!("settings are objects, not {other}"),
    }
}
