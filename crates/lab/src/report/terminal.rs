//! Tables and plots for a terminal.

use super::line_chart::LineChart;
use super::svg::{count, measured, millis, optional};
use crate::genie::Floors;
use crate::stats::{Interval, Report, Summary};

/// A heading, and what stands below it.
type Column = (&'static str, fn(&Summary) -> String);

/// The columns of the table. Shared with the page.
pub(super) const COLUMNS: [Column; 12] = [
    ("policy", |s| s.policy.clone()),
    ("messages", |s| count(s.messages)),
    ("p50 ms", |s| optional_ms(s.latency_ms.p50)),
    ("p95 ms", |s| optional_ms(s.latency_ms.p95)),
    ("p99 ms", |s| optional_ms(s.latency_ms.p99)),
    ("p99.5 ms", |s| optional_ms(s.latency_ms.p99_5)),
    ("p99.9 ms", |s| optional_ms(s.latency_ms.p99_9)),
    ("max ms", |s| optional_ms(s.latency_ms.max)),
    ("late [95 %]", |s| {
        with_interval(s.late_share, s.late_share_95)
    }),
    ("predicted", |s| optional(s.predicted_late_share)),
    ("recovery + headers", |s| {
        format!(
            "{} + {}",
            measured(s.recovery_overhead),
            optional(s.encapsulation_overhead)
        )
    }),
    ("lost", |s| count(s.lost_messages)),
];

/// The row of limits below those of the policies, in the columns for which there is one.
pub(super) fn floor_row(floors: &Floors) -> [String; COLUMNS.len()] {
    COLUMNS.map(|(heading, _)| match heading {
        "policy" => "floor".to_owned(),
        "late [95 %]" => with_interval(floors.late_share, floors.late_share_95),
        "recovery + headers" => optional(floors.recovery_overhead),
        _ => String::new(),
    })
}

fn with_interval(share: f64, interval: Interval) -> String {
    let Interval { low, high } = interval;
    format!("{} [{}, {}]", measured(share), bare(low), bare(high))
}

fn optional_ms(ms: Option<f64>) -> String {
    ms.map_or_else(|| "never".to_owned(), millis)
}

fn bare(share: f64) -> String {
    measured(share).trim_end_matches(" %").to_owned()
}

/// The report as headings and rows of cells; `never` is a quantile that falls among messages that did not arrive.
pub fn rows(report: &Report) -> Vec<Vec<String>> {
    let headings = COLUMNS.map(|(heading, _)| heading.to_owned());
    let policies = report.policies.iter();
    let policies = policies.map(|summary| COLUMNS.map(|(_, cell)| printable(&cell(summary))));
    let rows = std::iter::once(headings).chain(policies);
    let rows = rows.chain(report.floors.as_ref().map(floor_row));
    rows.map(|cells| cells.to_vec()).collect()
}

/// Names come from outside; control characters would steer the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Marks of the series, in order.
const MARKS: [char; 8] = ['o', 'x', '+', '*', '#', '@', '%', '='];

impl LineChart {
    /// The chart as text of about `width` x `height` characters, bounded to 20..=400 x 5..=100.
    pub fn text(&self, width: usize, height: usize) -> String {
        let (width, height) = (width.clamp(20, 400), height.clamp(5, 100));
        let margin = 10;
        let columns = width - margin - 1;
        let rows = height - 2;
        let x = self.x_axis((0.0, (columns - 1) as f64));
        let y = self.y_axis(((rows - 1) as f64, 0.0));
        let mut cells = vec![vec![' '; columns]; rows];
        for (i, series) in self.series.iter().enumerate() {
            let points: Vec<_> = self
                .drawn(series)
                .map(|(vx, vy)| (x.place(vx), y.place(vy)))
                .collect();
            for pair in points.windows(2) {
                draw_segment(&mut cells, pair[0], pair[1], MARKS[i % MARKS.len()]);
            }
            if let [only] = points[..] {
                draw_segment(&mut cells, only, only, MARKS[i % MARKS.len()]);
            }
        }
        let mut text = format!("{}\n", printable(&self.title));
        let labelled: Vec<(usize, String)> = y
            .ticks(rows / 3)
            .iter()
            .map(|&v| (y.place(v).round() as usize, self.y_unit.write(v)))
            .collect();
        for (row, line) in cells.iter().enumerate() {
            let label = labelled
                .iter()
                .find(|(at, _)| *at == row)
                .map_or("", |(_, label)| label.as_str());
            let bar = if label.is_empty() { '|' } else { '+' };
            let line: String = line.iter().collect();
            text += &format!("{label:>margin$}{bar}{}\n", line.trim_end());
        }
        text += &format!("{:margin$}+{}\n", "", "-".repeat(columns));
        text += &self.x_labels(margin, columns, &x);
        text + &self.legend(margin, width)
    }

    /// Which mark is whose, on as many lines as it takes.
    fn legend(&self, margin: usize, width: usize) -> String {
        let (y, x) = (printable(&self.y_label), printable(&self.x_label));
        let mut text = format!("{:margin$} {y} over {x}:", "");
        let mut length = text.chars().count();
        for (i, series) in self.series.iter().enumerate() {
            let entry = format!("  {} {}", MARKS[i % MARKS.len()], printable(&series.name));
            if length + entry.chars().count() > width {
                text += &format!("\n{:margin$}", "");
                length = margin;
            }
            length += entry.chars().count();
            text += &entry;
        }
        text + "\n"
    }

    fn x_labels(&self, margin: usize, columns: usize, x: &super::svg::Axis) -> String {
        let mut line = vec![' '; margin + 1 + columns + 8];
        let mut free = 0;
        for value in self.ticks_of_x(x, columns / 12) {
            let label: Vec<char> = self.x_unit.write(value).chars().collect();
            let centre = margin + 1 + x.place(value).round() as usize;
            let start = centre.saturating_sub(label.len() / 2);
            if start >= free && start + label.len() <= line.len() {
                line[start..start + label.len()].copy_from_slice(&label);
                free = start + label.len() + 1;
            }
        }
        let line: String = line.into_iter().collect();
        format!("{}\n", line.trim_end())
    }
}

/// Marks the cells between two points; a cell that is taken stays.
fn draw_segment(cells: &mut [Vec<char>], from: (f64, f64), to: (f64, f64), mark: char) {
    let steps = (to.0 - from.0)
        .abs()
        .max((to.1 - from.1).abs())
        .ceil()
        .max(1.0) as usize;
    for step in 0..=steps {
        let f = step as f64 / steps as f64;
        let column = (from.0 + f * (to.0 - from.0)).round() as usize;
        let row = (from.1 + f * (to.1 - from.1)).round() as usize;
        if let Some(cell) = cells.get_mut(row).and_then(|row| row.get_mut(column))
            && *cell == ' '
        {
            *cell = mark;
        }
    }
}
