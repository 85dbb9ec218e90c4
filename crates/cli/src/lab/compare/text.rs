//! A comparison on a terminal.

use punctual_lab::compare::{Judgement, Overview, Part, PartJudgement};
use punctual_lab::report::measured;

use super::comparison::{Comparison, answers, part_name};
use crate::output;

pub(super) fn text(comparison: &Comparison) -> String {
    let mut text = output::wrapped(&comparison.played(), "");
    for sentence in parts(comparison) {
        text += &output::wrapped(&sentence, "  ");
    }
    if !comparison.passed_over.is_empty() {
        let passed_over = comparison.passed_over.join(", ");
        text += &output::wrapped(&format!("passed over: {passed_over}"), "  ");
    }
    text += &format!("\n{}", output::table(&overview(&comparison.policies)));
    text += &output::wrapped(&meaning(comparison.rows.len()), "");
    if let Some(judgement) = &comparison.judgement {
        text += &format!("\n{} beside {}\n", judgement.candidate, judgement.reference);
        for part in told(judgement) {
            text += &block(part);
        }
    } else {
        text += "\nnobody is judged: that takes pangolin and a candidate among the policies\n";
    }
    text
}

/// Which recordings are for what.
fn parts(comparison: &Comparison) -> Vec<String> {
    let of = |part: Part| {
        let traces = comparison.traces.iter().filter(|trace| trace.part == part);
        let names: Vec<&str> = traces.map(|trace| trace.trace.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let tuned_on = of(Part::Tuning).map(|names| format!("numbers were tuned on: {names}"));
    let judged = of(Part::Judged).map(|names| format!("judged on: {names}"));
    [tuned_on, judged].into_iter().flatten().collect()
}

/// The parts that have recordings; where that is but one, all is the same.
fn told(judgement: &Judgement) -> impl Iterator<Item = &PartJudgement> {
    let all = judgement.parts.first().map_or(0, |part| part.traces);
    let is_told =
        move |part: &&PartJudgement| part.traces > 0 && (part.part.is_none() || part.traces < all);
    judgement.parts.iter().filter(is_told)
}

fn block(part: &PartJudgement) -> String {
    let lines = answers(part).map(|answer| {
        let note = match answer.note.is_empty() {
            true => String::new(),
            false => format!(" ({})", answer.note),
        };
        let question = output::wrapped(&format!("  {}", answer.question), "      ");
        let found = format!("{}: {}{note}", answer.verdict, answer.number);
        format!("  {question}      {}", output::wrapped(&found, "      "))
    });
    format!("\n{}\n{}", part_name(part), lines.concat())
}

/// What the columns of [`overview`] are.
pub(super) fn meaning(rows: usize) -> String {
    format!(
        "Means over {}. Preventable: late, and symbols could have prevented it. Met: rows in which the share left of it is within the target. \
         Recovery: symbols beyond those needed, and beyond what has to replace the lost ones. Predicted: rows in which the predicted share lies within the 95 % interval \
         of what was late, and the mean error. Run: most late messages in a row.",
        output::counted(rows, "row")
    )
}

/// Heading and cells: means over rows.
pub(super) fn overview(policies: &[Overview]) -> Vec<Vec<String>> {
    let heading = "policy|late|met|preventable|met|recovery|beyond floor|predicted|error|run";
    let cells = |policy: &Overview| {
        let calibration = &policy.calibration;
        vec![
            policy.policy.clone(),
            measured(policy.late_share),
            policy.rows_target_met_counting_all.to_string(),
            measured(policy.preventable_late_share),
            policy.rows_target_met.to_string(),
            measured(policy.recovery_overhead),
            measured(policy.recovery_overhead_beyond_floor),
            calibration.rows_within.to_string(),
            calibration.error_mean.map_or_else(output::dash, measured),
            policy.late_run_max.to_string(),
        ]
    };
    output::headed(heading, policies.iter().map(cells))
}

/// Heading and cells: the candidate's answers, a column a part.
pub(super) fn verdicts(judgement: &Judgement) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    for part in told(judgement) {
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
