//! A comparison on a terminal.

use punctual_lab::compare::{Judgement, Overview, PartJudgement};
use punctual_lab::report::measured;

use super::comparison::{Comparison, answers, part_name};
use crate::output;

pub(super) fn text(comparison: &Comparison) -> String {
    let mut text = format!("{}\n{}\n", comparison.played(), comparison.parts_rule);
    if !comparison.passed_over.is_empty() {
        text += &format!("passed over: {}\n", comparison.passed_over.join(", "));
    }
    text += &format!("\n{}", output::table(&overview(&comparison.policies)));
    if let Some(judgement) = &comparison.judgement {
        text += &format!("\n{} beside {}\n", judgement.candidate, judgement.reference);
        for part in &judgement.parts {
            text += &format!("{}\n", block(part));
        }
    } else {
        text += "\nnobody is judged: that takes pangolin and a candidate among the policies\n";
    }
    text
}

fn block(part: &PartJudgement) -> String {
    let lines = answers(part).map(|answer| {
        let note = match answer.note.is_empty() {
            true => String::new(),
            false => format!(" ({})", answer.note),
        };
        format!(
            "  {}: {}: {}{note}\n",
            answer.question, answer.number, answer.verdict
        )
    });
    format!("\n{}\n{}", part_name(part), lines.concat().trim_end())
}

/// Heading and cells: means over rows.
pub(super) fn overview(policies: &[Overview]) -> Vec<Vec<String>> {
    let heading = "policy|late|preventable|target met|recovery|beyond floor|predicted within|error|longest run";
    let cells = |policy: &Overview| {
        let of_rows = |rows: usize| format!("{rows} of {}", policy.rows);
        let calibration = &policy.calibration;
        vec![
            policy.policy.clone(),
            measured(policy.late_share),
            measured(policy.preventable_late_share),
            of_rows(policy.rows_target_met),
            measured(policy.recovery_overhead),
            measured(policy.recovery_overhead_beyond_floor),
            of_rows(calibration.rows_within),
            calibration
                .error_mean
                .map_or_else(|| "-".to_owned(), measured),
            policy.late_run_max.to_string(),
        ]
    };
    output::headed(heading, policies.iter().map(cells))
}

/// Heading and cells: the candidate's answers, a column a part.
pub(super) fn verdicts(judgement: &Judgement) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    for part in &judgement.parts {
        rows[0].push(part_name(part));
        for (place, answer) in answers(part).into_iter().enumerate() {
            if rows.len() <= place + 1 {
                rows.push(vec![answer.question.to_owned()]);
            }
            rows[place + 1].push(format!("{}: {}", answer.number, answer.verdict));
        }
    }
    rows
}
