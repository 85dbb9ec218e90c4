//! What came of reproductions, as text and as a page.

use punctual_lab::report::{self, Figures, Table};
use punctual_lab::reproduce::{Reproduced, Verdict};
use punctual_lab::stats::Report;
use serde::Serialize;

use crate::lab::networks;
use crate::output;

/// All that was run.
#[derive(Serialize)]
pub(super) struct Reproductions {
    command: String,
    version: &'static str,
    /// Whose TCP was played.
    kernel: String,
    quick: bool,
    seed: u64,
    /// Nothing ended it before all that was asked for had run.
    pub(super) is_complete: bool,
    #[serde(rename = "reproductions")]
    pub(super) results: Vec<Reproduced>,
}

impl Reproductions {
    pub(super) fn new(quick: bool, seed: u64) -> Self {
        Self {
            command: output::command_line(),
            version: env!("CARGO_PKG_VERSION"),
            kernel: networks::kernel(),
            quick,
            seed,
            is_complete: true,
            results: Vec::new(),
        }
    }

    /// How many numbers agree.
    pub(super) fn summary(&self) -> String {
        let count = |verdict| -> usize {
            let counts = self.results.iter().map(|result| result.count(verdict));
            counts.sum()
        };
        let (agree, differ) = (count(Verdict::Agrees), count(Verdict::Differs));
        format!(
            "{agree} of {} numbers agree: within a tenth of the paper's, or their 95 % interval holds it, or as the paper's text says\n{}",
            agree + differ,
            if self.is_complete {
                ""
            } else {
                "Not all that was asked for has run\n"
            }
        )
    }
}

/// Tables with their notes.
pub(super) fn text(results: &[Reproduced]) -> String {
    let one = |result: &Reproduced| {
        let Table { title, rows } = result.table();
        let notes: String = (result.notes().iter())
            .map(|note| format!("  * {note}\n"))
            .collect();
        format!(
            "{title}\n{}\n\n{}\n{notes}\n",
            result.setup,
            output::table(&rows)
        )
    };
    results.iter().map(one).collect()
}

/// One page of all.
pub(super) fn html(all: &Reproductions) -> String {
    let mut tables = Vec::new();
    for result in &all.results {
        tables.push(result.table());
        let notes = result.notes().into_iter();
        let notes = std::iter::once(result.setup.clone()).chain(notes);
        tables.push(Table {
            title: String::new(),
            rows: (std::iter::once("notes".to_owned()).chain(notes))
                .map(|note| vec![note])
                .collect(),
        });
    }
    let figures = Figures {
        title: "Papers, repeated".to_owned(),
        subtitle: format!(
            "{}TCP is that of {}.",
            all.summary().replace('\n', ". "),
            all.kernel
        ),
        command: all.command.clone(),
        charts: (all.results.iter())
            .flat_map(|result| &result.charts)
            .cloned()
            .collect(),
        tables,
        ..Figures::default()
    };
    let report = Report {
        settings: serde_json::json!({ "quick": all.quick, "seed": all.seed, "version": all.version }),
        floors: None,
        policies: Vec::new(),
    };
    report::html(&report, &figures)
}
