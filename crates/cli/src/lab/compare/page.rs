//! A comparison as a page.

use punctual_lab::compare::{PolicyRow, Row, Verdict, lines, scatters};
use punctual_lab::report::{self, Card, Figures, Table, measured};
use punctual_lab::stats::Report;
use serde_json::json;

use super::comparison::{Comparison, answers, part_name};
use super::text::{meaning, overview, verdicts};
use crate::output::headed;

pub(super) fn html(comparison: &Comparison) -> String {
    let mut tables = vec![Table {
        title: "Policies, means over all rows".to_owned(),
        rows: overview(&comparison.policies),
    }];
    let judgement = comparison.judgement.as_ref();
    if let Some(judgement) = judgement {
        let title = format!("{} beside {}", judgement.candidate, judgement.reference);
        let rows = verdicts(judgement);
        tables.insert(0, Table { title, rows });
    }
    tables.push(traces(comparison));
    let figures = Figures {
        title: "Policies over recorded networks".to_owned(),
        subtitle: format!("{}; {}.", comparison.played(), comparison.parts_rule),
        command: comparison.command.clone(),
        cards: cards(comparison),
        charts: lines(&comparison.rows),
        scatters: judgement.map_or_else(Vec::new, |judgement| {
            scatters(&comparison.rows, &judgement.candidate, &judgement.reference)
        }),
        tables,
        folded: rows_by_trace(comparison),
        ..Figures::default()
    };
    let report = Report {
        settings: json!({
            "version": comparison.version,
            "seed": comparison.seed,
            "passed over": comparison.passed_over.join(", "),
            "late": "arrived after the deadline, never, or refused; intervals of 95 % by resampling blocks of five seconds, or of a twentieth of the run",
            "policies": meaning(comparison.rows.len()),
            "preventable": "late, but neither whatever is sent, nor, as the protocol says, through queues, delay or a path that is down",
        }),
        policies: Vec::new(),
        floors: None,
    };
    report::html(&report, &figures)
}

/// The answers over the traces that judge; where there are none, over the others.
fn cards(comparison: &Comparison) -> Vec<Card> {
    let mut parts = comparison
        .judgement
        .iter()
        .flat_map(|judgement| &judgement.parts);
    let Some(part) = parts.rfind(|part| part.traces > 0) else {
        return Vec::new();
    };
    let card = |answer: super::comparison::Answer| Card {
        name: answer.question.to_owned(),
        number: answer.number,
        words: format!("{}: {}", part_name(part), answer.verdict),
        note: answer.note,
        is_kept: match answer.verdict {
            Verdict::Held => Some(true),
            Verdict::Missed => Some(false),
            Verdict::Undecided | Verdict::Open => None,
        },
    };
    answers(part).into_iter().map(card).collect()
}

fn traces(comparison: &Comparison) -> Table {
    let heading = "recording|for|median round trip|source";
    let cells = comparison.traces.iter().map(|trace| {
        vec![
            trace.trace.clone(),
            trace.part.to_string(),
            format!("{:.1} ms", trace.rtt_median_ms),
            trace.source.clone(),
        ]
    });
    Table {
        title: "Recordings".to_owned(),
        rows: headed(heading, cells),
    }
}

fn rows_by_trace(comparison: &Comparison) -> Vec<Table> {
    let rows = comparison.rows.chunk_by(|a, b| a.trace == b.trace);
    rows.map(|rows| Table {
        title: format!("{} ({})", rows[0].trace, rows[0].part),
        rows: headed(
            "policy|deadline|target|k|messages|late [95 %]|preventable|predicted|floor|recovery|floor|longest run",
            rows.iter()
                .flat_map(|row| row.policies.iter().map(|policy| cells(row, policy))),
        ),
    })
    .collect()
}

fn cells(row: &Row, policy: &PolicyRow) -> Vec<String> {
    let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), measured);
    let interval = policy.late_share_95;
    let within = if policy.predicted_within_95 { "" } else { " !" };
    vec![
        policy.policy.clone(),
        format!("{} RTT, {:.1} ms", row.deadline_rtt, row.deadline_ms),
        format!("{} %", (row.on_time_target * 1e9).round() / 1e7),
        row.symbols.to_string(),
        row.messages.to_string(),
        format!(
            "{} [{}, {}]",
            measured(policy.late_share),
            measured(interval.low),
            measured(interval.high)
        ),
        measured(policy.preventable_late_share),
        format!("{}{within}", share(policy.predicted_late_share)),
        measured(row.floor_late_share),
        measured(policy.recovery_overhead),
        share(row.floor_recovery_overhead),
        policy.late_run_max.to_string(),
    ]
}
