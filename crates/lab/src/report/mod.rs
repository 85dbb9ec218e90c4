//! Results to be looked at: a page of HTML that needs nothing else, tables and plots for the terminal.
//!
//! [`html`] draws everything itself as inline SVG; colours are CSS variables, so the same picture serves light and dark
//! screens. `svg.rs` has the axes and shapes, `tail_plot.rs` the latency distributions, `bars.rs` late shares and overhead,
//! `line_chart.rs` curves of anything, `scatter.rs` points of anything, `page.rs` the page around them, `terminal.rs` what goes to a terminal.
//!
//! All text from outside is escaped where it enters the page: in [`escape`], called by `svg::text` and by `page.rs`.

mod bars;
mod line_chart;
mod page;
mod scatter;
mod svg;
mod tail_plot;
mod terminal;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use line_chart::{LineChart, Scale, Unit};
pub use page::{html, standalone_svg};
pub use scatter::Scatter;
pub use svg::{escape, measured};
pub use terminal::rows;

/// What a page shows besides the numbers of its [`Report`](crate::stats::Report).
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// The page's heading.
    pub title: String,
    /// A sentence below it: which path, which messages.
    pub subtitle: String,
    /// The command that repeats the run.
    pub command: String,
    /// When messages are late, in milliseconds; drawn as a vertical line.
    pub deadline_ms: Option<f64>,
    /// The share that shall be on time, such as 0.999; drawn as a horizontal line.
    pub on_time_target: Option<f64>,
    /// The latency distribution of each policy.
    pub latency: Vec<Series>,
    /// Further charts.
    pub charts: Vec<LineChart>,
    /// Those and the tables come before what the report's policies did.
    pub charts_lead: bool,
    /// Charts of points, below those.
    pub scatters: Vec<Scatter>,
    /// What a reader must know to trust the numbers, in sentences; they stand right above them.
    pub remarks: Vec<String>,
    /// Answers that are to be seen first.
    pub cards: Vec<Card>,
    /// Tables of numbers, below the charts.
    pub tables: Vec<Table>,
    /// Tables so long that they are opened on demand; their titles stand below the others.
    pub folded: Vec<Table>,
}

/// An answer at a glance, at the top of the page.
#[derive(Debug, Clone, Default)]
pub struct Card {
    /// What was asked.
    pub name: String,
    /// The answer.
    pub number: String,
    /// What it means.
    pub words: String,
    /// More about it.
    pub note: String,
    /// Whether it is as it should be; None when that is not known.
    pub is_kept: Option<bool>,
}

/// Numbers under a title.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// What they are.
    pub title: String,
    /// Cells by row; the first row has the headings.
    pub rows: Vec<Vec<String>>,
}

/// A named line.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Series {
    /// Its name in the legend; the policy, for latencies.
    pub name: String,
    /// Its points. For latencies: (milliseconds, share of messages later than that), as from `Latencies::curve`.
    pub points: Vec<(f64, f64)>,
}
