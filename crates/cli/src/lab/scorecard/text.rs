//! A scorecard on a terminal.

use punctual_lab::stats::Interval;

use super::figures::{ArmRow, Row, Scorecard};
use crate::output;

pub(super) fn text(scorecard: &Scorecard) -> String {
    let networks = scorecard.networks.iter();
    let blocks = networks.map(|row| block(row, scorecard.on_time_target));
    let text = blocks.collect::<Vec<_>>().join("\n");
    let remark = scorecard.remark().map(|remark| output::remark(&remark));
    text + &remark.unwrap_or_default()
}

fn block(row: &Row, on_time_target: f64) -> String {
    let possible = if row.promise_possible {
        ""
    } else {
        " (nobody can keep the promise here)"
    };
    let floor = row.floors.recovery_overhead;
    format!(
        "{}: median round trip {:.1} ms, deadline {:.0} ms, {} on time asked for\n\
         at best {} late{possible}, recovery of {}; {}\n{}{}{}{}\n",
        row.network,
        row.rtt_median_ms,
        row.deadline_ms,
        percent(on_time_target),
        percent(row.floors.late_share),
        floor.map_or_else(|| "-".to_owned(), percent),
        row.timing,
        output::table(&rows(row)),
        reasons(row),
        row.remarks()
            .map(|remark| remark + "\n")
            .collect::<String>(),
        row.verdict()
    )
}

/// Why arms failed, a line each.
fn reasons(row: &Row) -> String {
    let here = row.failed.iter().map(|failed| format!("{}\n", failed.why));
    let plain = row.failed_without_loss.iter();
    let plain = plain.map(|failed| format!("without loss {}\n", failed.why));
    here.chain(plain).collect()
}

/// Heading and cells; of arms that failed, just that.
pub(super) fn rows(row: &Row) -> Vec<Vec<String>> {
    let heading = "arm|late [95 %]|over Punctual, pp|p50 ms|p99 ms|p99.9 ms|lost|recovery|total overhead|packets|CPU us";
    let failed = row.failed.iter();
    let failed = failed.map(|failed| vec![failed.arm.clone(), FAILED.to_owned()]);
    output::headed(heading, row.arms.iter().map(cells).chain(failed))
}

/// In place of the figures of an arm that did not play to the end.
pub(super) const FAILED: &str = "failed";

fn cells(arm: &ArmRow) -> Vec<String> {
    let figures = &arm.figures;
    let late = Interval {
        low: 1.0 - figures.on_time_share_95.high,
        high: 1.0 - figures.on_time_share_95.low,
    };
    let ms = |value: Option<f64>| value.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.1}"));
    let over = arm.over_punctual.map_or_else(
        || "-".to_owned(),
        |over| {
            let pp = |share: f64| share * 100.0;
            let interval = over.on_time_share_95.map(|interval| {
                let (low, high) = (pp(interval.low), pp(interval.high));
                format!(" [{low:+.3}, {high:+.3}]")
            });
            let interval = interval.unwrap_or_default();
            format!("{:+.3}{interval}", pp(over.on_time_share))
        },
    );
    vec![
        figures.arm.clone(),
        format!(
            "{} [{}, {}]",
            percent(1.0 - figures.on_time_share),
            bare(late.low),
            bare(late.high)
        ),
        over,
        ms(figures.latency_ms.p50),
        ms(figures.latency_ms.p99),
        ms(figures.latency_ms.p99_9),
        figures.messages_lost.to_string(),
        figures
            .recovery_overhead
            .map_or_else(|| "-".to_owned(), percent),
        percent(figures.total_overhead),
        format!("{:.2}", figures.packets_per_message),
        format!("{:.0}", figures.cpu_us_per_message),
    ]
}

/// `0.05 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", bare(share))
}

fn bare(share: f64) -> String {
    let percent = share * 100.0;
    // Rounding leaves a minus before some zeros.
    if percent.abs() < 0.0005 {
        "0".to_owned()
    } else if percent.abs() < 1.0 {
        format!("{percent:.3}")
    } else {
        format!("{percent:.1}")
    }
}
