//! The explanation as text, as JSON and as a page.

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_lab::report::{self, Figures, LineChart, Series, Table, Unit};
use punctual_lab::stats::Report;
use punctual_policy::{PolicyKind, Step};
use serde::Serialize;
use serde_json::{Value, json};

use super::decisions::{Decisions, Explained};
use super::{Explanation, parts, seen};
use crate::failure::Failure;
use crate::lab::measure::{self, millis};
use crate::output::{self, dash, headed};
use crate::terminal;

/// Decisions that are shown come about this often at least; JSON has all.
const SHOWN: f64 = 1e-4;

/// What the first table and the plot are of.
const ONE_MESSAGE: &str = "What is sent when, and why: one message more, after the run";

/// What the second table is of.
fn whole_runs(explanation: &Explanation) -> String {
    format!(
        "What each part buys: whole runs, {} messages each, from the first on",
        explanation.options.messages
    )
}

/// Columns of the plot, labels that stand out at its right edge aside.
fn plot_width() -> usize {
    terminal::width().map_or(96, |width| width.saturating_sub(8).min(96))
}

/// Prints all of it, with the plot.
pub(super) fn text(explanation: &Explanation, explained: &Decisions) -> Result<(), Failure> {
    let mut text = output::wrapped(&heading(explanation), "");
    text.push('\n');
    for row in &seen::table(&explained.first)[1..] {
        let fact = output::wrapped(&row[1], "            ");
        text += &format!("{:<12}{fact}", row[0]);
    }
    text.push('\n');
    if explained.steps.is_empty() {
        text += "No decision: nothing that is sent can be in time.\n";
    } else {
        text += &output::wrapped(ONE_MESSAGE, "");
        text += &output::table(&decisions(explained));
        text += &output::wrapped(reason(explanation, explained), "");
        text.push('\n');
        text += &timeline(explanation).text(plot_width(), 18);
    }
    text += &format!("\n{}", output::wrapped(&whole_runs(explanation), ""));
    text += &output::table(&parts::table(explanation));
    for remark in measure::remarks(&explanation.refused(), &explanation.options) {
        text += &output::remark(&remark);
    }
    text.push('\n');
    for row in &parts::legend(explanation)[1..] {
        let does = output::wrapped(&row[1], "                    ");
        text += &format!("{:<20}{does}", row[0]);
    }
    output::print(&text)
}

/// Prints it as one JSON object.
pub(super) fn json(explanation: &Explanation, explained: &Decisions) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Told {
        #[serde(flatten)]
        report: Report,
        seen: Value,
        decisions: Vec<Value>,
        source_symbols: BTreeMap<String, u8>,
    }
    let policies = explanation.options.policies.iter();
    let source_symbols = policies.zip(&explanation.decisions);
    let source_symbols = source_symbols.filter_map(|(kind, decisions)| {
        Some((kind.to_string(), decisions.as_ref()?.first.source_symbols))
    });
    output::print_json(&Told {
        report: whole(explanation),
        seen: seen::json(&explained.first),
        source_symbols: source_symbols.collect(),
        decisions: explained.steps.iter().map(decision_json).collect(),
    })
}

/// The plot, as a picture of its own.
pub(super) fn svg(explanation: &Explanation) -> String {
    report::standalone_svg(&timeline(explanation))
}

/// All of it as a page.
pub(super) fn html(explanation: &Explanation, explained: &Decisions) -> String {
    let table = |title: &str, rows| Table {
        title: title.to_owned(),
        rows,
    };
    let options = &explanation.options;
    let figures = Figures {
        title: format!("What {} does, and why", options.policies[0]),
        subtitle: format!(
            "{} {}",
            heading(explanation),
            reason(explanation, explained)
        ),
        command: output::command_line(),
        deadline_ms: Some(millis(options.deadline)),
        on_time_target: Some(options.on_time),
        charts: vec![timeline(explanation)],
        tables: vec![
            table(ONE_MESSAGE, decisions(explained)),
            table("Seen of the path", seen::table(&explained.first)),
            table(&whole_runs(explanation), parts::table(explanation)),
            table("The runs", parts::legend(explanation)),
        ],
        charts_lead: true,
        remarks: measure::remarks(&explanation.refused(), options).collect(),
        ..Figures::default()
    };
    report::html(&whole(explanation), &figures)
}

/// What the numbers in the table of decisions mean.
fn reason(explanation: &Explanation, explained: &Decisions) -> &'static str {
    let has_price = explained.steps.iter().any(|step| step.saved.is_some());
    match explanation.options.policies[0] {
        _ if has_price => {
            "Beyond what is needed a symbol is sent while it saves more than itself: symbols of later rounds, and misses at their price."
        }
        kind if kind.has_price() => "",
        _ => {
            "This policy has no price of a miss: it sends what its rule says, whatever that saves."
        }
    }
}

fn heading(explanation: &Explanation) -> String {
    let options = &explanation.options;
    format!(
        "{}; {} of messages of {} bytes within {} ms, one each {} ms.",
        options.path,
        measure::percent(options.on_time),
        options.message_bytes,
        millis(options.deadline),
        millis(options.interval)
    )
}

fn decisions(explained: &Decisions) -> Vec<Vec<String>> {
    let head =
        "round|at ms|needed|comes to it|sent|apart ms|waits ms|the last saves|one more would save";
    let shown = explained
        .steps
        .iter()
        .filter(|explained| explained.step.probability >= SHOWN);
    let row = |Explained { step, saved }: &Explained| {
        let action = &step.action;
        let by_last = saved.as_ref().and_then(|saved| saved.by_last);
        let by_next = saved.as_ref().and_then(|saved| saved.by_next);
        vec![
            (step.round + 1).to_string(),
            format!("{:.0}", millis(step.at)),
            step.situation.deficit.to_string(),
            format!("{:.2} %", step.probability * 100.0),
            action.symbols.to_string(),
            if action.together > 1 {
                format!("{} and {:.1}", action.together, millis(action.spacing))
            } else {
                format!("{:.1}", millis(action.spacing))
            },
            waits(step).map_or_else(dash, |wait| format!("{:.0}", millis(wait))),
            by_last.map_or_else(dash, |saves| format!("{saves:.2}")),
            by_next.map_or_else(dash, |saves| format!("{saves:.2}")),
        ]
    };
    headed(head, shown.map(row))
}

/// What is sent beyond the message's own symbols. (Runs may choose other numbers of symbols: shares can be compared.)
fn timeline(explanation: &Explanation) -> LineChart {
    let policies = explanation.options.policies.iter();
    let shown = policies.zip(&explanation.decisions);
    let shown = shown.filter(|(kind, _)| !matches!(kind, PolicyKind::SteeredWithout(_)));
    let first = explanation.decisions.first().and_then(Option::as_ref);
    let timing = first.map_or_else(Default::default, |decisions| decisions.first.timing);
    let (last_ms, deadline_ms) = (millis(timing.slack), millis(timing.time_left));
    let series = shown.filter_map(|(kind, decisions)| {
        let decisions = decisions.as_ref()?;
        let own = f64::from(decisions.first.source_symbols.max(1));
        let mut points = decisions.symbols_by_time();
        // Nothing more leaves.
        let (_, sent) = points.last().copied()?;
        points.push((deadline_ms, sent));
        let beyond = |(ms, sent): (f64, f64)| (ms, (sent / own - 1.0).max(0.0));
        Some(Series {
            name: kind.to_string(),
            points: points.into_iter().map(beyond).collect(),
        })
    });
    let mut marks = vec![(deadline_ms, "deadline".to_owned())];
    if last_ms > 0.0 {
        marks.push((last_ms, "last in time".to_owned()));
    }
    LineChart {
        title: "Redundancy by time: one message more, after the run".to_owned(),
        caption: "Expected symbols beyond a message's own that have been sent, by the time since the first. A step is a round; a slope is a flight \
                  that is spread. The table of whole runs has other shares: while a policy learns the path it sends more or less than then."
            .to_owned(),
        x_label: "ms since the first symbol".to_owned(),
        y_label: "redundancy".to_owned(),
        y_unit: Unit::Share,
        x_marks: marks,
        series: series.collect(),
        ..LineChart::default()
    }
}

fn whole(explanation: &Explanation) -> Report {
    let options = &explanation.options;
    let results = &explanation.results;
    let settings = measure::settings(explanation.settings.clone(), options, explanation.origin);
    Report {
        settings: measure::with_refused(settings, &explanation.refused()),
        floors: results.first().map(|result| result.floors),
        policies: results
            .iter()
            .map(|result| result.summary.clone())
            .collect(),
    }
}

/// How long a round waits for answers; None where none is to follow.
fn waits(step: &Step) -> Option<Duration> {
    match (step.situation.rounds_left, step.action.look_again) {
        (1, None) => None,
        (_, look_again) => Some(look_again.unwrap_or(step.situation.timing.round_time)),
    }
}

fn decision_json(Explained { step, saved }: &Explained) -> Value {
    let action = &step.action;
    json!({
        "round": step.round + 1,
        "at_ms": millis(step.at),
        "needed": step.situation.deficit,
        "probability": step.probability,
        "symbols": action.symbols,
        "together": action.together,
        "spacing_ms": millis(action.spacing),
        "wait_ms": waits(step).map(millis),
        "last_saves": saved.as_ref().and_then(|saved| saved.by_last),
        "next_would_save": saved.as_ref().and_then(|saved| saved.by_next),
    })
}
