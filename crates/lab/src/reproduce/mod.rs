//! Results of papers beside our own: rows of paper | here | verdict, and the charts that go with them.
//!
//! What is run is told by the program's command `lab reproduce`; here is what its results are and how they are judged. `sample.rs` is
//! messages' latencies by client.

#[cfg(target_os = "linux")]
mod sample;

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::report::{LineChart, Table, Unit};
use crate::stats::Interval;

#[cfg(target_os = "linux")]
pub use sample::{QUANTILES, Sample};

/// A table or figure of a paper, and what came of it here.
#[derive(Debug, Clone, Serialize)]
pub struct Reproduced {
    /// As on the command line: `pangolin-table-1`.
    pub name: &'static str,
    /// The paper's title of it.
    pub title: String,
    /// What was run, in a sentence or two: network, messages, arms.
    pub setup: String,
    /// The numbers.
    pub rows: Vec<Row>,
    /// What is to be known to read them: why something differs, what was assumed.
    pub remarks: Vec<String>,
    /// The figure.
    pub charts: Vec<LineChart>,
}

/// A number of a paper and ours.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What it is of.
    pub what: String,
    /// In what the numbers are: milliseconds, or a share, where nothing else is said.
    pub unit: Unit,
    /// The paper's; None where it gives a direction, or nothing.
    pub paper: Option<f64>,
    /// Ours; None where it cannot be said, such as a quantile among messages that never arrived.
    pub here: Option<f64>,
    /// The 95 % interval of ours.
    pub here_95: Option<Interval>,
    /// Whether they agree.
    pub verdict: Verdict,
    /// Why they differ, or what else belongs to it.
    pub note: String,
}

/// Whether a number of a paper and ours agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Ours is within a tenth of the paper's, or its interval holds the paper's, or it is as the paper says in words.
    Agrees,
    /// None of these.
    Differs,
    /// Shown without a claim.
    NotCompared,
}

impl Verdict {
    /// As in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::NotCompared => "-",
        }
    }
}

/// Numbers that differ by so much of the paper's agree.
const TOLERANCE: f64 = 0.1;

impl Row {
    /// A number to be compared.
    pub fn compared(
        what: impl Into<String>,
        unit: Unit,
        paper: f64,
        here: Option<f64>,
        here_95: Option<Interval>,
    ) -> Self {
        let agrees = here.is_some_and(|here| {
            (here - paper).abs() <= TOLERANCE * paper.abs()
                || here_95.is_some_and(|interval| interval.contains(paper))
        });
        Self {
            what: what.into(),
            unit,
            paper: Some(paper),
            here,
            here_95,
            verdict: Verdict::of(agrees),
            note: String::new(),
        }
    }

    /// Something that the paper says in words: `what` repeats them. Infinite is what never came; what is no number, of which both never came, is not compared.
    pub fn said(what: impl Into<String>, unit: Unit, here: f64, agrees: bool) -> Self {
        let verdict = if here.is_nan() {
            Verdict::NotCompared
        } else {
            Verdict::of(agrees)
        };
        Self {
            verdict,
            ..Self::shown(what, unit, None, Some(here).filter(|here| here.is_finite()))
        }
    }

    /// Numbers that are shown without a claim.
    pub fn shown(
        what: impl Into<String>,
        unit: Unit,
        paper: Option<f64>,
        here: Option<f64>,
    ) -> Self {
        Self {
            what: what.into(),
            unit,
            paper,
            here,
            here_95: None,
            verdict: Verdict::NotCompared,
            note: String::new(),
        }
    }

    /// With the interval of ours, which changes no verdict.
    #[must_use]
    pub const fn with_interval(mut self, here_95: Option<Interval>) -> Self {
        self.here_95 = here_95;
        self
    }

    /// With a note.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// With a note if they differ.
    #[must_use]
    pub fn with_reason(self, reason: &str) -> Self {
        match self.verdict {
            Verdict::Differs => self.with_note(reason),
            _ => self,
        }
    }

    fn cells(&self) -> Vec<String> {
        let write = |value: f64| self.unit.write(value);
        let here = self.here.map_or_else(|| "never".to_owned(), write);
        let here = match self.here_95 {
            Some(Interval { low, high }) => format!("{here} [{}, {}]", write(low), write(high)),
            None => here,
        };
        let paper = self.paper.map_or_else(|| "-".to_owned(), write);
        vec![
            self.what.clone(),
            paper,
            here,
            self.verdict.word().to_owned(),
        ]
    }
}

impl Verdict {
    const fn of(agrees: bool) -> Self {
        if agrees { Self::Agrees } else { Self::Differs }
    }
}

impl Reproduced {
    /// Its rows as cells.
    pub fn table(&self) -> Table {
        let mut rows = vec![
            ["", "paper", "here [95 %]", "verdict"]
                .map(str::to_owned)
                .to_vec(),
        ];
        rows.extend(self.rows.iter().map(Row::cells));
        Table {
            title: format!("{}: {}", self.name, self.title),
            rows,
        }
    }

    /// Everything that is to be read beside the table: the notes of rows, then the remarks.
    pub fn notes(&self) -> Vec<String> {
        let notes = self.rows.iter().filter(|row| !row.note.is_empty());
        let notes = notes.map(|row| format!("{}: {}", row.what, row.note));
        notes.chain(self.remarks.iter().cloned()).collect()
    }

    /// How many rows have a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let rows = self.rows.iter();
        rows.filter(|row| row.verdict == verdict).count()
    }
}
