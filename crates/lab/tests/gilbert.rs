//! Losses in bursts, which the shipping protocol has to learn: what it achieves beside a sender that knows them. `cargo run --release -p
//! punctual-lab --example gilbert` has the whole table.

#[path = "support/knowing.rs"]
mod knowing;

use std::time::Duration;

use knowing::{Gilbert, Row};
use punctual_policy::PolicyKind;

/// Goal: where the sender that knows meets the target, so does the one that learns, at no more than one and a half times its cost. A round trip
/// is 60 ms, so 120 ms are two rounds and 180 ms three.
#[test]
fn what_can_be_met_by_knowing_bursts_is_met_by_learning_them() {
    let rows = [
        (5.0, 0.02, 120, 4, 0.001),
        (5.0, 0.05, 120, 4, 0.001),
        (5.0, 0.1, 180, 4, 0.001),
        (20.0, 0.01, 120, 4, 0.001),
        (20.0, 0.02, 120, 4, 0.001),
        (20.0, 0.05, 180, 4, 0.001),
        (20.0, 0.1, 120, 4, 0.01),
        (100.0, 0.01, 180, 4, 0.01),
        // Bursts swallow whole messages, and what is left of the target is for the others.
        (20.0, 0.05, 78, 1, 0.01),
        (20.0, 0.02, 78, 4, 0.01),
        // What is missing together leaves together: one by one, 4.5 times as much as there is to send.
        (20.0, 0.05, 78, 4, 0.01),
        // Where a burst takes a message as it takes a packet, nothing is needed.
        (5.0, 0.01, 78, 1, 0.01),
        (5.0, 0.01, 78, 4, 0.01),
        // Of one flight, copies are far enough apart.
        (5.0, 0.05, 78, 1, 0.001),
        (5.0, 0.02, 78, 1, 0.001),
        // How fast bursts end is learned from what is sent at several times, whatever is bought: at one time alone they seemed to last ten times as long.
        (5.0, 0.1, 78, 1, 0.001),
        // Just enough is five symbols 12 ms apart: four cost a quarter less, and miss a twentieth more.
        (20.0, 0.1, 78, 4, 0.01),
    ];
    for (burst_ms, loss, deadline_ms, symbols, target) in rows {
        // One copy at a time tells little of a burst's length: what is missed until it is known is to be a small part of all.
        let messages = if symbols == 1 { 100_000 } else { 30_000 };
        let row = Row {
            path: Gilbert { loss, burst_ms },
            symbols,
            deadline: Duration::from_millis(deadline_ms),
            target,
            messages,
        };
        let compared = row.play(&[PolicyKind::Steered]);
        let summary = &compared.results[0].summary;
        let knows = compared.knows.expect("it can be met");
        assert!(summary.late_share_95.low <= target, "{row:?} {summary:?}");
        // What is sent before anything is known; and a burst of 100 ms also takes what is sent again after a round, which a sender that knows
        // it waits for.
        let most = 1.5 * knows + 0.0065;
        assert!(
            summary.recovery_overhead <= most,
            "{row:?} {knows} {summary:?}"
        );
    }
}
