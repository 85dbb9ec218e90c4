//! How failures are shown.

use punctual_lab::genie::Floors;

use super::figures::{FailedArm, Row, Scorecard};
use super::{page, text};

fn failed(arm: &str, why: &str) -> FailedArm {
    FailedArm {
        arm: arm.to_owned(),
        why: format!("{arm} failed: {why}"),
    }
}

fn row(network: &str, failures: Vec<FailedArm>) -> Row {
    Row {
        network: network.to_owned(),
        source: String::new(),
        rtt_median_ms: 50.0,
        deadline_ms: 100.0,
        floors: Floors::default(),
        timing: String::new(),
        timing_error_ms_p99: 0.0,
        began_s: vec![4.0],
        timing_held: true,
        promise_possible: true,
        ahead_of_punctual: Vec::new(),
        cheaper_redundancy: Vec::new(),
        arms: Vec::new(),
        failed: failures,
        failed_without_loss: vec![failed("kcp", "no luck")],
    }
}

/// A regression: arms of heats that had connected at different times stood side by side as if they had met the same network.
#[test]
fn heats_that_began_apart_are_told_of() {
    let remarks = |began_s: &[f64]| {
        let row = Row {
            began_s: began_s.to_vec(),
            ..row("here", Vec::new())
        };
        row.remarks().count()
    };
    assert_eq!(remarks(&[4.003, 4.01]), 0);
    assert_eq!(remarks(&[4.0, 8.0]), 1);
    assert_eq!(remarks(&[]), 0);
}

#[test]
fn whoever_failed_has_a_row_and_a_reason() {
    let networks = vec![
        row("here", vec![failed("enet", "port in use")]),
        row("there", Vec::new()),
    ];
    let scorecard = Scorecard {
        command: String::new(),
        version: "",
        kernel: String::new(),
        flows: 1,
        message_bytes: 100,
        interval_ms: 100.0,
        on_time_target: 0.999,
        seed: 1,
        is_complete: true,
        networks_planned: networks.len(),
        networks,
    };
    assert_eq!(scorecard.arms(), ["enet"]);
    let failures = [
        "over a network without loss kcp failed: no luck",
        "over here enet failed: port in use",
    ];
    assert_eq!(scorecard.failures(), failures);
    let text = text::text(&scorecard);
    let has_row = text
        .lines()
        .any(|line| line.split_whitespace().eq(["enet", "failed"]));
    assert!(has_row, "{text}");
    assert!(text.contains("\nenet failed: port in use\n"), "{text}");
    assert!(
        text.contains("\nwithout loss kcp failed: no luck\n"),
        "{text}"
    );
    let page = page::html(&scorecard);
    assert!(failures.iter().all(|failure| page.contains(failure)));
}
