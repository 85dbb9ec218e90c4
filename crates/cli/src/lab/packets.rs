//! What an emulated network did to packets, for reports.

use punctual_lab::emulator::{Report, Site};
use serde_json::{Map, Value, json};

use super::measure::fields;
use crate::failure::Failure;
use crate::output;

/// Why packets are dropped, in the order of `Counts::drops`.
const REASONS: [&str; 6] = ["random", "burst", "blackout", "trace", "queue", "link"];

/// The numbers, for JSON.
pub(super) fn numbers(report: &Report) -> Map<String, Value> {
    let counts = &report.cables[0];
    let way = |site| {
        let total = counts.total(site);
        json!({
            "packets": total.packets,
            "bytes": total.bytes,
            "packets_dropped": total.dropped,
            "packets_duplicated": total.duplicated,
            "packets_marked": total.marked,
        })
    };
    let reasons = REASONS.into_iter().zip(counts.drops);
    let reasons: Map<_, _> = reasons
        .map(|(reason, count)| (reason.to_owned(), json!(count)))
        .collect();
    fields(json!({
        "to_server": way(Site::Client),
        "to_client": way(Site::Server),
        "packets_dropped_by_reason": reasons,
        "packets_foreign": counts.foreign,
        "packets_overflowed": counts.overflowed,
        "packets_refused": counts.refused,
        "timing_error_ms_p99": report.timing.error_ms_p99(),
        "timing_lateness_ms_p99_9": report.timing.lateness.quantile_ms(0.999),
        "timing_held": report.timing.is_held(),
    }))
}

/// The heading of [`rows`].
pub(super) fn heading() -> Vec<String> {
    let head = ["way", "packets", "dropped", "twice", "marked"];
    head.map(ToOwned::to_owned).to_vec()
}

/// Rows of a table, one for each way.
pub(super) fn rows(report: &Report) -> Vec<Vec<String>> {
    let counts = &report.cables[0];
    let way = |(name, site): (&str, Site)| {
        let total = counts.total(site);
        let numbers = [total.packets, total.dropped, total.duplicated, total.marked];
        std::iter::once(name.to_owned())
            .chain(numbers.map(|number| number.to_string()))
            .collect()
    };
    let ways = [
        ("to the server", Site::Client),
        ("to the clients", Site::Server),
    ];
    ways.into_iter().map(way).collect()
}

/// Why packets were dropped, and what the machine did that the network did not: nothing, if all is well.
pub(super) fn remarks(report: &Report) -> Vec<String> {
    let counts = &report.cables[0];
    let reasons = REASONS.into_iter().zip(counts.drops);
    let reasons: Vec<_> = reasons
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    let mut remarks = Vec::new();
    if !reasons.is_empty() {
        remarks.push(format!("dropped by reason: {}", reasons.join(", ")));
    }
    remarks.extend(spoilt(report));
    remarks.push(report.timing.verdict());
    remarks
}

/// What is missing because of this machine.
pub(super) fn spoilt(report: &Report) -> Option<String> {
    let counts = &report.cables[0];
    let spoilt = counts.overflowed + counts.refused;
    (spoilt > 0).then(|| {
        format!(
            "{spoilt} packets were dropped that the network would have let through: the machine had no room for them"
        )
    })
}

/// Once the report is told: whether the files of drops and packets are whole.
pub(super) fn check_written(report: &Report) -> Result<(), Failure> {
    match &report.unwritten {
        Some(why) => Err(Failure::failed(why)),
        None => Ok(()),
    }
}

/// All of it for a terminal.
pub(super) fn text(report: &Report) -> String {
    let table: Vec<_> = std::iter::once(heading()).chain(rows(report)).collect();
    format!("{}{}\n", output::table(&table), remarks(report).join("\n"))
}

/// In short.
pub(super) fn sentence(report: &Report) -> String {
    let counts = &report.cables[0];
    let way = |site| {
        let total = counts.total(site);
        format!(
            "{} packets, {} of them dropped",
            total.packets, total.dropped
        )
    };
    format!(
        "to the server {}; to the client {}",
        way(Site::Client),
        way(Site::Server)
    )
}
