//! What comes of a run without each of the policy's parts, and of the older policies.

use punctual_policy::{Part, PolicyKind};

use super::Explanation;
use super::decisions::Decisions;
use crate::output::{dash, headed};
use punctual_lab::simulate::PolicyResult;
use punctual_lab::stats::Summary;

/// A run a row, and what it shows.
pub(super) fn table(explanation: &Explanation) -> Vec<Vec<String>> {
    let head = "run|k|messages|late [95 %]|predicted|recovery";
    let policies = explanation.options.policies.iter();
    let runs = policies
        .zip(&explanation.results)
        .zip(&explanation.decisions);
    let rows = runs.map(|((&kind, result), decisions)| row(kind, result, decisions.as_ref()));
    let floors = explanation.results.first().map(|result| {
        let floors = &result.floors;
        vec![
            "at best, by what was lost".to_owned(),
            dash(),
            dash(),
            percent(floors.late_share),
            dash(),
            floors.recovery_overhead.map_or_else(dash, percent),
        ]
    });
    headed(head, rows.chain(floors))
}

fn row(kind: PolicyKind, result: &PolicyResult, decisions: Option<&Decisions>) -> Vec<String> {
    let Summary {
        messages,
        late_share,
        late_share_95,
        predicted_late_share,
        recovery_overhead,
        ..
    } = &result.summary;
    // Of a session that has ended there is nothing to count.
    let counted = |figure: Option<f64>| {
        let figure = figure.filter(|_| result.outlook.is_some());
        figure.map_or_else(dash, percent)
    };
    vec![
        name(kind),
        decisions.map_or_else(dash, |decisions| decisions.first.source_symbols.to_string()),
        messages.to_string(),
        format!(
            "{} [{}, {}]",
            percent(*late_share),
            percent(late_share_95.low),
            percent(late_share_95.high)
        ),
        counted(*predicted_late_share),
        counted(Some(*recovery_overhead)),
    ]
}

/// What each run is: its name, and what it does.
pub(super) fn legend(explanation: &Explanation) -> Vec<Vec<String>> {
    let policies = explanation.options.policies.iter();
    let rows = policies.filter_map(|&kind| Some(vec![name(kind), meaning(kind)?.to_owned()]));
    headed("run|what it does", rows)
}

fn name(kind: PolicyKind) -> String {
    match kind {
        PolicyKind::SteeredWithout(part) => format!("without {part}"),
        kind => kind.to_string(),
    }
}

fn meaning(kind: PolicyKind) -> Option<&'static str> {
    Some(match kind {
        PolicyKind::Steered => "all parts",
        PolicyKind::SteeredWithout(part) => match part {
            Part::Steering => "aims each message by itself at the target",
            Part::Level => "reckons with the upper bound of the loss",
            Part::Spacing => "takes losses to be independent",
            Part::Arrival => "takes a round to be in time, or to be none",
            Part::Silence => "takes silence for loss",
            Part::Waiting => "waits for the round time, no longer and no shorter",
        },
        PolicyKind::Exact => {
            "for each message the least that meets the target at the loss's upper bound"
        }
        PolicyKind::Pangolin => "the paper's tables",
        PolicyKind::Retransmit => "no redundancy",
        _ => return None,
    })
}

fn percent(share: f64) -> String {
    format!("{:.3} %", share * 100.0)
}
