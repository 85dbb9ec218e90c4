//! What comes of a comparison.

use std::time::Duration;

use punctual_lab::compare::{
    Compared, Judgement, Overview, Part, PartJudgement, Plan, Recording, Row, SYMBOL_BYTES, Verdict,
};
use punctual_lab::report::measured;
use serde::Serialize;

use crate::lab::measure::millis;
use crate::output;

/// All of it, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    /// Repeats it.
    pub(super) command: String,
    pub(super) version: &'static str,
    pub(super) seed: u64,
    pub(super) messages: u64,
    /// With so many at most rows that chance left open were played again.
    pub(super) messages_max: u64,
    pub(super) interval_ms: f64,
    pub(super) symbol_bytes: usize,
    pub(super) took_s: f64,
    /// How the traces were divided.
    pub(super) parts_rule: &'static str,
    pub(super) traces: Vec<Trace>,
    /// Nothing ended it early. Otherwise these are the traces that were played whole, of ..
    pub(super) is_complete: bool,
    /// .. so many.
    pub(super) traces_planned: usize,
    /// Files that are no traces with delays.
    pub(super) passed_over: Vec<String>,
    pub(super) policies: Vec<Overview>,
    /// None (null) when candidate or reference did not play.
    pub(super) judgement: Option<Judgement>,
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
pub(super) struct Trace {
    pub(super) trace: String,
    pub(super) part: Part,
    pub(super) rtt_median_ms: f64,
    pub(super) source: String,
}

impl Comparison {
    pub(super) fn new(
        plan: &Plan,
        compared: Compared,
        passed_over: Vec<String>,
        took: Duration,
    ) -> Self {
        let Compared { rows, is_complete } = compared;
        let is_played = |recording: &&Recording| {
            let is_its = |row: &Row| row.trace == recording.name;
            is_complete || rows.iter().any(is_its)
        };
        let played = plan.recordings.iter().filter(is_played);
        let traces = played.map(|recording| Trace {
            trace: recording.name.clone(),
            part: recording.part,
            rtt_median_ms: millis(recording.rtt_median),
            source: recording.path.source.clone(),
        });
        let rivals = plan.rivals.as_ref();
        let judgement = rivals.and_then(|rivals| Judgement::new(&rows, rivals));
        Self {
            command: output::command_line(),
            version: env!("CARGO_PKG_VERSION"),
            seed: plan.seed,
            messages: plan.messages,
            messages_max: plan.messages_max,
            interval_ms: millis(plan.interval),
            symbol_bytes: SYMBOL_BYTES,
            took_s: took.as_secs_f64(),
            parts_rule: Part::RULE,
            traces: traces.collect(),
            is_complete,
            traces_planned: plan.recordings.len(),
            passed_over,
            policies: Overview::all(&rows),
            judgement,
            rows,
        }
    }

    /// What was played, in a sentence.
    pub(super) fn played(&self) -> String {
        let early = match (self.is_complete, self.traces.len() == self.traces_planned) {
            (true, _) => String::new(),
            (_, true) => " (ended while rows were played again)".to_owned(),
            _ => format!(" (ended early; {} were asked for)", self.traces_planned),
        };
        let again = self.rows.iter().filter(|row| row.messages > self.messages);
        let again = match again.count() {
            0 => String::new(),
            rows => format!(
                " (up to {} in the {rows} that chance left open)",
                self.messages_max
            ),
        };
        format!(
            "{} over {}{early}, {} messages of each policy in each{again}, one each {} ms, {} bytes a symbol; seed {}; took {:.0} s",
            output::counted(self.rows.len(), "row"),
            output::counted(self.traces.len(), "trace"),
            self.messages,
            self.interval_ms,
            self.symbol_bytes,
            self.seed,
            self.took_s
        )
    }
}

/// A question, and what came out.
pub(super) struct Answer {
    pub(super) question: &'static str,
    pub(super) number: String,
    pub(super) note: String,
    pub(super) verdict: Verdict,
}

/// The questions in their order.
pub(super) fn answers(part: &PartJudgement) -> [Answer; 4] {
    let PartJudgement {
        lateness,
        cost,
        loss_misses,
        calibration,
        ..
    } = part;
    let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), measured);
    [
        Answer {
            question: "(a) preventable late share at most max(target, reference's + 0.1 pp)",
            number: format!("true of {} of {} rows", lateness.rows_held, lateness.rows),
            note: format!(
                "at worst {} above; missed beyond chance in {}; all causes counted: {} rows",
                measured(lateness.excess_max),
                lateness.rows_missed_beyond_chance,
                lateness.rows_held_counting_all
            ),
            verdict: lateness.verdict,
        },
        Answer {
            question: "(b) cost beyond the floor + 0.05 pp, ratio of geometric means, at most 1/5",
            number: cost
                .ratio
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
            note: format!(
                "{} against {}, over the {} rows in which the reference spends more than 2 %",
                share(cost.candidate),
                share(cost.reference),
                cost.rows
            ),
            verdict: cost.verdict,
        },
        Answer {
            question: "(c) where the reference misses its target through loss, beyond chance: preventable late share less",
            number: format!(
                "true of {} of {} rows",
                loss_misses.rows_beyond_chance_preventable_less, loss_misses.rows_beyond_chance
            ),
            note: format!(
                "all causes counted: {}; of all {} rows above the target, if only by chance: {}, all causes counted: {}, more beyond chance: {}",
                loss_misses.rows_beyond_chance_late_less,
                loss_misses.rows,
                loss_misses.rows_preventable_less,
                loss_misses.rows_late_less,
                loss_misses.rows_later_beyond_chance
            ),
            verdict: loss_misses.verdict,
        },
        Answer {
            question: "(d) predicted late share within the 95 % interval, in 9 rows of 10",
            number: format!(
                "true of {} of {} rows",
                calibration.rows_within, calibration.rows
            ),
            note: format!(
                "mean absolute error {}; asked of stationary networks, which traces seldom are",
                share(calibration.error_mean)
            ),
            verdict: calibration.verdict,
        },
    ]
}

/// Which traces, and how many.
pub(super) fn part_name(part: &PartJudgement) -> String {
    let traces = part.traces;
    match part.part {
        None => format!("all recordings ({traces})"),
        Some(Part::Tuning) => format!("recordings that numbers were tuned on ({traces})"),
        Some(Part::Judged) => format!("recordings judged on ({traces})"),
    }
}
