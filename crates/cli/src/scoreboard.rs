//! Policies as columns, what was measured as rows: a table that fits 80 columns of a terminal.

use punctual_lab::stats::Summary;

use crate::output;

/// A heading, and what stands beside it.
type Row = (&'static str, fn(&Summary) -> String);

const ROWS: [Row; 13] = [
    ("latency p50 (ms)", |s| millis(s.latency_ms.p50)),
    ("        p95", |s| millis(s.latency_ms.p95)),
    ("        p99", |s| millis(s.latency_ms.p99)),
    ("        p99.5", |s| millis(s.latency_ms.p99_5)),
    ("        p99.9", |s| millis(s.latency_ms.p99_9)),
    ("        max", |s| millis(s.latency_ms.max)),
    ("late", |s| percent(s.late_share)),
    ("  95 % interval", |s| {
        let (low, high) = (percent(s.late_share_95.low), percent(s.late_share_95.high));
        format!("{}..{high}", low.trim_end_matches(" %"))
    }),
    ("  predicted", |s| {
        s.predicted_late_share.map_or_else(output::dash, percent)
    }),
    ("recovery overhead", |s| percent(s.recovery_overhead)),
    ("encapsulation overhead", |s| {
        s.encapsulation_overhead.map_or_else(output::dash, percent)
    }),
    ("messages", |s| count(s.messages)),
    ("  lost", |s| count(s.lost_messages)),
];

/// The table.
pub(crate) fn table(policies: &[Summary]) -> String {
    let heading = std::iter::once(String::new()).chain(policies.iter().map(|s| s.policy.clone()));
    let row = |(name, cell): &Row| {
        let cells = policies.iter().map(cell);
        std::iter::once((*name).to_owned()).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(heading.collect())
        .chain(ROWS.iter().map(row))
        .collect();
    output::table(&rows)
}

/// Whether the promise was kept, in a sentence that fits a terminal.
pub(crate) fn verdict(summary: &Summary, on_time: f64) -> String {
    let limit = 1.0 - on_time;
    let (late, interval) = (percent(summary.late_share), summary.late_share_95);
    let words = if summary.messages == 0 {
        "sent nothing"
    } else if interval.high <= limit {
        "kept its promise"
    } else if interval.low > limit {
        "broke its promise"
    } else if summary.late_share <= limit {
        "kept its promise, as far as so few messages can tell"
    } else {
        "missed its promise, by no more than chance may do"
    };
    let sentence = format!(
        "{} {words}: {late} late where at most {} was asked for, at {} recovery overhead.",
        summary.policy,
        percent(limit),
        percent(summary.recovery_overhead)
    );
    output::wrapped(&sentence, "  ")
}

/// A share as a percentage of three digits: `12.3 %`, `0.0123 %`.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() < 1e-7 {
        return "0 %".to_owned();
    }
    // The place of the first digit, counted from the point: 1 for 10..100.
    let place = value.abs().log10().floor() as i32;
    let decimals = (2 - place).clamp(0, 7) as usize;
    format!("{value:.decimals$} %")
}

/// A count with thousands apart.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn millis(ms: Option<f64>) -> String {
    ms.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0 %"),
            (1.0, "100 %"),
            (0.123_456, "12.3 %"),
            (0.000_5, "0.0500 %"),
            (1.2e-7, "0.0000120 %"),
            (-0.01, "-1.00 %"),
            (12.5, "1250 %"),
        ];
        for (share, text) in cases {
            assert_eq!(percent(share), text);
        }
        assert_eq!((count(0), count(999)), ("0".into(), "999".into()));
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
