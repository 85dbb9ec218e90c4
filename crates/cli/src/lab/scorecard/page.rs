//! A scorecard as a page.

use punctual_lab::report::{self, Figures, LineChart, Scale, Series, Table, Unit};
use punctual_lab::stats::Report;
use serde_json::json;

use super::figures::{ArmRow, Row, Scorecard};
use super::text::{FAILED, percent, rows};

/// Arms whose lines are drawn first: one of each kind, as many as can be told apart in one picture.
const DRAWN_FIRST: [&str; 8] = [
    "punctual",
    "retransmit",
    "tcp-cubic",
    "enet",
    "kcp",
    "quic-streams",
    "webrtc",
    "renet",
];

pub(super) fn html(scorecard: &Scorecard) -> String {
    let mut tables = vec![
        late(scorecard),
        matrix(
            scorecard,
            "Recovery: bytes sent because of losses, as a share of the messages'",
            |arm| {
                let recovery = arm.figures.recovery_overhead;
                recovery.map_or_else(|| "-".to_owned(), percent)
            },
        ),
        matrix(scorecard, "99.9 % of messages arrived within, ms", |arm| {
            let p99_9 = arm.figures.latency_ms.p99_9;
            p99_9.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.0}"))
        }),
    ];
    tables.extend(scorecard.networks.iter().map(|row| Table {
        title: title(row),
        rows: rows(row),
    }));
    tables.push(settings(scorecard));
    tables.extend(told(
        "Transports that did not play to the end",
        "where and why",
        scorecard.failures(),
    ));
    let remarks = scorecard.networks.iter().flat_map(|row| {
        let remarks = row.remarks();
        remarks.map(|remark| format!("over {} {remark}", row.network))
    });
    tables.extend(told(
        "Late for other reasons than the network",
        "where and what",
        remarks.collect(),
    ));
    let remark = scorecard.remark();
    let early = remark.map_or_else(String::new, |remark| format!(" It was {remark}."));
    let figures = Figures {
        title: "Scorecard: what arrives in time, and what it costs".to_owned(),
        subtitle: format!(
            "{} clients of each transport, messages of {} bytes every {} ms, {} on time asked for; the same network for all, on \
             real kernels ({}). Intervals are of 95 %, by resampling clients (through one link, stretches of time).{early}",
            scorecard.flows,
            scorecard.message_bytes,
            scorecard.interval_ms,
            percent(scorecard.on_time_target),
            scorecard.kernel
        ),
        command: scorecard.command.clone(),
        charts: scorecard.networks.iter().map(chart).collect(),
        tables,
        ..Figures::default()
    };
    let report = Report {
        settings: json!({
            "command": scorecard.command,
            "version": scorecard.version,
            "kernel": scorecard.kernel,
            "seed": scorecard.seed,
        }),
        policies: Vec::new(),
        floors: None,
    };
    report::html(&report, &figures)
}

fn title(row: &Row) -> String {
    format!(
        "{}: median round trip {:.1} ms, deadline {:.0} ms; at best {} late; {}",
        row.network,
        row.rtt_median_ms,
        row.deadline_ms,
        percent(row.floors.late_share),
        row.verdict()
    )
}

/// Late messages, with what no sender can beat as the last row.
fn late(scorecard: &Scorecard) -> Table {
    let mut table = matrix(scorecard, "Messages that were late", |arm| {
        percent(1.0 - arm.figures.on_time_share)
    });
    let mut floors = vec!["at best".to_owned()];
    let rows = scorecard.networks.iter();
    floors.extend(rows.map(|row| percent(row.floors.late_share)));
    table.rows.push(floors);
    table
}

/// A figure of every arm over every network.
fn matrix(scorecard: &Scorecard, title: &str, cell: impl Fn(&ArmRow) -> String) -> Table {
    let mut heading = vec![String::new()];
    heading.extend(scorecard.networks.iter().map(|row| row.network.clone()));
    let mut rows = vec![heading];
    for name in scorecard.arms() {
        let mut cells = vec![name.to_owned()];
        cells.extend(scorecard.networks.iter().map(|row| {
            let arm = row.arms.iter().find(|arm| arm.figures.arm == name);
            arm.map_or_else(|| FAILED.to_owned(), &cell)
        }));
        rows.push(cells);
    }
    Table {
        title: title.to_owned(),
        rows,
    }
}

/// A row for each sentence; None when there are none.
fn told(title: &str, heading: &str, sentences: Vec<String>) -> Option<Table> {
    let rows = std::iter::once(heading.to_owned()).chain(sentences);
    let rows: Vec<_> = rows.map(|cell| vec![cell]).collect();
    (rows.len() > 1).then(|| Table {
        title: title.to_owned(),
        rows,
    })
}

fn settings(scorecard: &Scorecard) -> Table {
    let heading = vec!["arm".to_owned(), "how it is set".to_owned()];
    let arms = scorecard.arms().into_iter().map(|name| {
        let mut played = scorecard.networks.iter().flat_map(|row| &row.arms);
        let arm = played.find(|arm| arm.figures.arm == name);
        let settings = arm.map_or(FAILED, |arm| &arm.figures.settings);
        vec![name.to_owned(), settings.to_owned()]
    });
    Table {
        title: "The transports".to_owned(),
        rows: std::iter::once(heading).chain(arms).collect(),
    }
}

fn chart(row: &Row) -> LineChart {
    let mut arms: Vec<_> = row.arms.iter().collect();
    let place = |arm: &&ArmRow| {
        let mut names = DRAWN_FIRST.iter();
        names
            .position(|name| *name == arm.figures.arm)
            .unwrap_or(DRAWN_FIRST.len())
    };
    arms.sort_by_key(place);
    let drawn = arms.len().min(DRAWN_FIRST.len());
    let series = |arm: &&ArmRow| Series {
        name: arm.figures.arm.clone(),
        points: steps(&arm.curve),
    };
    LineChart {
        title: row.network.clone(),
        caption: format!(
            "Share of messages that arrived later than so many milliseconds; a line ends at the last that arrived. The deadline is {:.0} ms; {}.{}",
            row.deadline_ms,
            row.timing,
            if drawn < arms.len() {
                format!(" {drawn} of {} are drawn.", arms.len())
            } else {
                String::new()
            }
        ),
        x_label: "latency".to_owned(),
        y_label: "later".to_owned(),
        x_unit: Unit::Millis,
        y_unit: Unit::Share,
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        x_marks: vec![(row.deadline_ms, "deadline".to_owned())],
        series: arms.iter().take(drawn).map(series).collect(),
        ..LineChart::default()
    }
}

/// The corners of a distribution: down at each latency that occurred, level between two. The last step, to none, has no place on a logarithmic axis: without its
/// corner a line ended at the last message but some, in front of the tail that it is drawn for.
fn steps(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners = Vec::with_capacity(2 * curve.len());
    let mut level = 1.0;
    for &(latency, later) in curve {
        corners.push((latency, level));
        if later > 0.0 {
            corners.push((latency, later));
        }
        level = later;
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reaches_the_last_message() {
        let curve = [(40.0, 0.5), (50.0, 0.001), (900.0, 0.0)];
        let drawn = steps(&curve);
        assert_eq!(
            drawn,
            [
                (40.0, 1.0),
                (40.0, 0.5),
                (50.0, 0.5),
                (50.0, 0.001),
                (900.0, 0.001)
            ]
        );
        assert!(steps(&[]).is_empty());
    }
}
