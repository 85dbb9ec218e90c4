//! Pictures of a comparison.

use super::judge::cost;
use super::{Part, PolicyRow, Row};
use crate::report::{LineChart, Scale, Scatter, Series, Unit};

/// What redundancy costs and what it buys, over all recordings.
pub fn lines(rows: &[Row]) -> Vec<LineChart> {
    vec![
        trade(rows),
        cost_over_deadline(rows),
        late_over_deadline(rows),
    ]
}

/// The candidate beside the reference, row by row, and its predictions beside what came.
pub fn scatters(rows: &[Row], candidate: &str, reference: &str) -> Vec<Scatter> {
    vec![
        costs(rows, candidate, reference),
        predictions(rows, candidate),
    ]
}

/// The lines of a policy begin at the shortest deadline.
fn trade(rows: &[Row]) -> LineChart {
    let series = |name: &str| {
        let point = |deadline: &f64| {
            let overhead = mean(rows, name, *deadline, |policy| policy.recovery_overhead);
            let late = mean(rows, name, *deadline, |policy| {
                policy.preventable_late_share
            });
            (overhead, late)
        };
        Series {
            name: name.to_owned(),
            points: deadlines(rows).iter().map(point).collect(),
        }
    };
    LineChart {
        title: "What was late for want of symbols, over what the symbols cost".to_owned(),
        caption: format!(
            "Left and low is better. {}{} Zeros are left out of logarithmic axes.",
            match deadlines(rows).len() {
                0 | 1 => "",
                _ => "Each line joins the deadlines, the shortest at its upper end as a rule. ",
            },
            averaged(rows)
        ),
        x_label: "recovery overhead".to_owned(),
        y_label: "late, preventable".to_owned(),
        x_unit: Unit::Share,
        y_unit: Unit::Share,
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        series: names(rows).into_iter().map(series).collect(),
        ..LineChart::default()
    }
}

fn cost_over_deadline(rows: &[Row]) -> LineChart {
    let floor = Series {
        name: "floor".to_owned(),
        points: floors(rows, |row| row.floor_recovery_overhead.unwrap_or(0.0)),
    };
    LineChart {
        title: "Recovery overhead over the deadline".to_owned(),
        caption: format!(
            "{} Floor: what is lost replaced, and nothing else.",
            averaged(rows)
        ),
        y_label: "recovery overhead".to_owned(),
        y_scale: Scale::Log,
        series: over_deadline(rows, floor, |policy| policy.recovery_overhead),
        ..deadline_axes(rows)
    }
}

fn late_over_deadline(rows: &[Row]) -> LineChart {
    let floor = Series {
        name: "floor".to_owned(),
        points: floors(rows, |row| row.floor_late_share),
    };
    LineChart {
        title: "Late messages over the deadline, all causes".to_owned(),
        caption: format!("{} Floor: late whatever is sent.", averaged(rows)),
        y_label: "late".to_owned(),
        y_scale: Scale::Log,
        series: over_deadline(rows, floor, |policy| policy.late_share),
        ..deadline_axes(rows)
    }
}

/// What a point stands for.
fn averaged(rows: &[Row]) -> String {
    match rows.len() / deadlines(rows).len().max(1) {
        0 | 1 => "A point is one row.".to_owned(),
        rows => format!("A point is the mean over {rows} rows: recordings, targets and sizes."),
    }
}

fn deadline_axes(rows: &[Row]) -> LineChart {
    LineChart {
        x_label: "deadline in median round trips".to_owned(),
        x_scale: Scale::Log,
        x_ticks: deadlines(rows),
        y_unit: Unit::Share,
        ..LineChart::default()
    }
}

fn over_deadline(rows: &[Row], floor: Series, of: fn(&PolicyRow) -> f64) -> Vec<Series> {
    let series = |name: &str| Series {
        name: name.to_owned(),
        points: deadlines(rows)
            .iter()
            .map(|&deadline| (deadline, mean(rows, name, deadline, of)))
            .collect(),
    };
    let policies = names(rows).into_iter().map(series);
    policies.chain([floor]).collect()
}

fn costs(rows: &[Row], candidate: &str, reference: &str) -> Scatter {
    let axes = LineChart {
        title: format!("Cost of {candidate} beside {reference}, row by row"),
        caption: "Recovery overhead beyond the floor, and 0.05 pp. On the line both spend the same; below it the candidate spends less."
            .to_owned(),
        x_label: reference.to_owned(),
        y_label: candidate.to_owned(),
        ..LineChart::default()
    };
    row_by_row(rows, axes, |row| {
        Some((
            cost(row, row.policy(reference)?),
            cost(row, row.policy(candidate)?),
        ))
    })
}

fn predictions(rows: &[Row], candidate: &str) -> Scatter {
    let axes = LineChart {
        title: format!("What {candidate} predicted, and what came"),
        caption: "On the line as many were late as were predicted; above it more. Rows without a late message are left out."
            .to_owned(),
        x_label: "predicted late".to_owned(),
        y_label: "late".to_owned(),
        ..LineChart::default()
    };
    row_by_row(rows, axes, |row| {
        let policy = row.policy(candidate)?;
        Some((policy.predicted_late_share?, policy.late_share))
    })
}

/// A point a row, both values shares, with the line on which they are the same.
fn row_by_row(
    rows: &[Row],
    axes: LineChart,
    point: impl Fn(&Row) -> Option<(f64, f64)>,
) -> Scatter {
    let series = |part: Part| Series {
        name: part.to_string(),
        points: rows
            .iter()
            .filter(|row| row.part == part)
            .filter_map(&point)
            .collect(),
    };
    Scatter {
        chart: LineChart {
            x_unit: Unit::Share,
            y_unit: Unit::Share,
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            series: vec![series(Part::Tuning), series(Part::Judged)],
            ..axes
        },
        has_diagonal: true,
    }
}

fn names(rows: &[Row]) -> Vec<&str> {
    let first = rows.first().map_or(&[][..], |row| &row.policies);
    first.iter().map(|policy| policy.policy.as_str()).collect()
}

/// In rising order.
fn deadlines(rows: &[Row]) -> Vec<f64> {
    let mut deadlines: Vec<f64> = rows.iter().map(|row| row.deadline_rtt).collect();
    deadlines.sort_by(f64::total_cmp);
    deadlines.dedup();
    deadlines
}

/// Over the rows of a deadline.
fn mean(rows: &[Row], name: &str, deadline: f64, of: fn(&PolicyRow) -> f64) -> f64 {
    let rows = rows.iter().filter(|row| row.deadline_rtt == deadline);
    mean_of(rows.filter_map(|row| row.policy(name)).map(of))
}

fn floors(rows: &[Row], of: fn(&Row) -> f64) -> Vec<(f64, f64)> {
    let point = |deadline: f64| {
        let rows = rows.iter().filter(|row| row.deadline_rtt == deadline);
        (deadline, mean_of(rows.map(of)))
    };
    deadlines(rows).into_iter().map(point).collect()
}

fn mean_of(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}
