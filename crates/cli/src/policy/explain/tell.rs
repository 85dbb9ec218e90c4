//! The explanation as text, as JSON and as a page.

use punctual_lab::report::{self, Figures, LineChart, Series, Table, Unit};
use punctual_lab::stats::{Report, Summary};
use punctual_policy::{Part, PolicyKind, Situation};
use serde::Serialize;
use serde_json::{Value, json};

use super::Explanation;
use super::decisions::{Decisions, Explained};
use crate::failure::Failure;
use crate::lab::measure::{self, millis};
use crate::output::{self, dash, headed};

/// Decisions that are shown come about this often at least; JSON has all.
const SHOWN: f64 = 1e-4;

/// Prints all of it, with the plot.
pub(super) fn text(explanation: &Explanation, explained: &Decisions) -> Result<(), Failure> {
    let mut text = format!("{}\n{}\n\n", heading(explanation), seen(&explained.first));
    text += "What is sent when, and why\n";
    text += &output::table(&decisions(explained));
    text += &format!("{REASON}\n\n");
    text += &timeline(explanation).text(78, 18);
    text += "\nWhat each part buys\n";
    text += &output::table(&parts(explanation));
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
    }
    output::print_json(&Told {
        report: whole(explanation),
        seen: seen_json(&explained.first),
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
            "{} {} {REASON}",
            heading(explanation),
            seen(&explained.first)
        ),
        command: output::command_line(),
        deadline_ms: Some(millis(options.deadline)),
        on_time_target: Some(options.on_time),
        charts: vec![timeline(explanation)],
        tables: vec![
            table("What is sent when, and why", decisions(explained)),
            table("What each part buys", parts(explanation)),
        ],
        ..Figures::default()
    };
    report::html(&whole(explanation), &figures)
}

/// What the numbers in the table of decisions mean.
const REASON: &str = "A symbol is sent while it saves more than it is: symbols of later rounds, and misses at their price.";

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

/// What the protocol has learned of the path, in sentences.
fn seen(first: &Situation) -> String {
    let burst = if first.burst.correlation > 0.05 {
        format!(
            "; after a loss the next symbol is lost with {:.0} %, which fades over {:.1} ms",
            f64::from(first.burst.correlation) * 100.0,
            millis(first.burst.lasts)
        )
    } else {
        String::new()
    };
    let price = first.price.map_or_else(String::new, |price| {
        format!(" A miss is worth {:.0} symbols.", price.symbols())
    });
    let hurry = first.hurries.iter().next();
    let hurried = hurry.map_or_else(String::new, |hurry| {
        format!(
            " If one more is made of that, {:.1} % of answers come too late for it, and the last flight is in time with {:.0} %.",
            f64::from(hurry.late) * 100.0,
            f64::from(hurry.in_time) * 100.0
        )
    });
    let after = if first.last_chance >= 0.01 {
        format!(
            " A flight after the last round is still in time with {:.0} %.",
            f64::from(first.last_chance) * 100.0
        )
    } else {
        String::new()
    };
    format!(
        "Seen of the path: a round trip of {:.1} ms (mean deviation {:.1}), {:.2} % of symbols lost now (in the long run at most {:.2} %){burst}. \
         A message of {} has {} of {:.0} ms: what leaves in the first {:.0} ms is in time.{hurried}{after}{price}",
        millis(first.timing.rtt),
        millis(first.timing.rtt_deviation),
        f64::from(first.loss_mean) * 100.0,
        f64::from(first.loss) * 100.0,
        count_of(u16::from(first.source_symbols), "symbol"),
        count_of(first.rounds_left, "round"),
        millis(first.timing.round_time),
        millis(first.timing.slack),
    )
}

fn count_of(count: u16, thing: &str) -> String {
    match count {
        1 => format!("one {thing}"),
        count => format!("{count} {thing}s"),
    }
}

fn decisions(explained: &Decisions) -> Vec<Vec<String>> {
    let head = "round|at ms|needed|comes to it|sent|apart ms|then waits ms|the last saves|one more would save";
    let shown = explained
        .steps
        .iter()
        .filter(|explained| explained.step.probability >= SHOWN);
    let row = |Explained { step, saved }: &Explained| {
        let action = &step.action;
        let wait = action
            .look_again
            .unwrap_or(step.situation.timing.round_time);
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
            match step.situation.rounds_left {
                1 => "-".to_owned(),
                _ => format!("{:.0}", millis(wait)),
            },
            by_last.map_or_else(dash, |saves| format!("{saves:.2}")),
            by_next.map_or_else(dash, |saves| format!("{saves:.2}")),
        ]
    };
    headed(head, shown.map(row))
}

/// A run a row, and what it shows.
fn parts(explanation: &Explanation) -> Vec<Vec<String>> {
    let head = "run|late [95 %]|predicted|recovery";
    let runs = explanation.options.policies.iter();
    let runs = runs.zip(&explanation.results);
    let rows = runs.map(|(&kind, result)| {
        let Summary {
            late_share,
            late_share_95,
            predicted_late_share,
            recovery_overhead,
            ..
        } = &result.summary;
        vec![
            meaning(kind),
            format!(
                "{} [{}, {}]",
                percent(*late_share),
                percent(late_share_95.low),
                percent(late_share_95.high)
            ),
            predicted_late_share.map_or_else(dash, percent),
            percent(*recovery_overhead),
        ]
    });
    let floors = explanation.results.first().map(|result| {
        let floors = &result.floors;
        vec![
            "at least: what no sender beats".to_owned(),
            percent(floors.late_share),
            dash(),
            floors.recovery_overhead.map_or_else(dash, percent),
        ]
    });
    headed(head, rows.chain(floors))
}

/// A run, in words.
fn meaning(kind: PolicyKind) -> String {
    let (name, meaning) = match kind {
        PolicyKind::SteeredWithout(part) => {
            let meaning = match part {
                Part::Steering => "each message by itself just meets the target",
                Part::Level => "reckons with the upper bound of the loss",
                Part::Spacing => "takes losses to be independent",
                Part::Arrival => "takes a round to be in time, or to be none",
                Part::Silence => "takes silence for loss",
                Part::Waiting => "waits for the round time, no longer and no shorter",
            };
            (format!("without {part}"), meaning)
        }
        kind => {
            let meaning = match kind {
                PolicyKind::Steered => "all parts",
                PolicyKind::Exact => {
                    "the least for each message that meets the target at the bound"
                }
                PolicyKind::Pangolin => "the paper's tables",
                PolicyKind::Retransmit => "no redundancy",
                _ => "as asked",
            };
            (kind.to_string(), meaning)
        }
    };
    format!("{name}: {meaning}")
}

fn timeline(explanation: &Explanation) -> LineChart {
    let policies = explanation.options.policies.iter();
    let shown = policies.zip(&explanation.decisions);
    let shown = shown.filter(|(kind, _)| !matches!(kind, PolicyKind::SteeredWithout(_)));
    let series = shown.filter_map(|(kind, decisions)| {
        Some(Series {
            name: kind.to_string(),
            points: decisions.as_ref()?.symbols_by_time(),
        })
    });
    LineChart {
        title: "When symbols leave".to_owned(),
        caption: "Expected symbols of a message that have been sent, by the time since the first. A step is a round; a slope is a flight \
                  that is spread."
            .to_owned(),
        x_label: "ms since the first symbol".to_owned(),
        y_label: "symbols sent".to_owned(),
        x_unit: Unit::Number,
        y_unit: Unit::Number,
        series: series.collect(),
        ..LineChart::default()
    }
}

fn whole(explanation: &Explanation) -> Report {
    let options = &explanation.options;
    let results = &explanation.results;
    Report {
        settings: measure::settings(explanation.settings.clone(), options, explanation.origin),
        floors: results.first().map(|result| result.floors),
        policies: results
            .iter()
            .map(|result| result.summary.clone())
            .collect(),
    }
}

fn seen_json(first: &Situation) -> Value {
    json!({
        "rtt_ms": millis(first.timing.rtt),
        "rtt_deviation_ms": millis(first.timing.rtt_deviation),
        "round_time_ms": millis(first.timing.round_time),
        "slack_ms": millis(first.timing.slack),
        "rounds": first.rounds_left,
        "source_symbols": first.source_symbols,
        "loss": first.loss_mean,
        "loss_bound": first.loss,
        "burst_correlation": first.burst.correlation,
        "burst_lasts_ms": millis(first.burst.lasts),
        "on_time_in_last_round": first.on_time,
        "miss_price_symbols": first.price.map(punctual_policy::Price::symbols),
    })
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
        "wait_ms": millis(action.look_again.unwrap_or(step.situation.timing.round_time)),
        "last_saves": saved.as_ref().and_then(|saved| saved.by_last),
        "next_would_save": saved.as_ref().and_then(|saved| saved.by_next),
    })
}

fn percent(share: f64) -> String {
    format!("{:.3} %", share * 100.0)
}
