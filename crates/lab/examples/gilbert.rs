//! A table: what the shipping protocol achieves over paths with bursts of losses, beside a sender that knows them (rows) and `pangolin`.
//! Shares in percent; `met` of the rows that can be met, and the cost over that of the sender that knows. About ten minutes.

#[path = "../tests/support/knowing.rs"]
mod knowing;

use std::time::Duration;

use knowing::{Gilbert, Row};
use punctual_policy::PolicyKind;

fn main() {
    let messages = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let messages = messages.unwrap_or(200_000);
    println!(
        "burst ms  loss  T ms  k  target | knows | late [95 %] recovery | ratio met | pangolin late, recovery"
    );
    let (mut met, mut could, mut dear) = (0, 0, 0);
    for symbols in [1, 4] {
        for burst_ms in [5.0, 20.0, 100.0] {
            for loss in [0.01, 0.02, 0.05, 0.1] {
                for deadline_ms in [78, 120, 180] {
                    for target in [0.01, 0.001] {
                        let row = Row {
                            path: Gilbert { loss, burst_ms },
                            symbols,
                            deadline: Duration::from_millis(deadline_ms),
                            target,
                            messages,
                        };
                        let (is_met, ratio) = tell(&row);
                        could += u32::from(ratio.is_some());
                        met += u32::from(is_met && ratio.is_some());
                        dear += u32::from(ratio.is_some_and(|ratio| ratio > 1.5));
                    }
                }
            }
        }
    }
    println!("met {met} of {could}; at more than 1.5 times the cost: {dear}");
}

/// Whether the target is met, and the cost as a multiple of that of the sender that knows.
fn tell(row: &Row) -> (bool, Option<f64>) {
    let compared = row.play(&[PolicyKind::Steered, PolicyKind::Pangolin]);
    let [steered, pangolin] = &compared.results[..] else {
        unreachable!("two policies were played");
    };
    let (ours, theirs) = (&steered.summary, &pangolin.summary);
    let percent = |share: f64| share * 100.0;
    let dash = || "-".to_owned();
    let is_met = ours.late_share_95.low <= row.target;
    let ratio = compared.knows.map(|knows| ours.recovery_overhead / knows);
    let met = if is_met { "yes" } else { "NO" };
    println!(
        "{:8} {:5} {:5} {:2} {:7} | {} | {:.3} [{:.3}, {:.3}] {:.2} | {} | {:.3} {:.2}",
        row.path.burst_ms,
        row.path.loss,
        row.deadline.as_millis(),
        row.symbols,
        row.target,
        compared
            .knows
            .map_or_else(dash, |knows| format!("{:.2}", percent(knows))),
        percent(ours.late_share),
        percent(ours.late_share_95.low),
        percent(ours.late_share_95.high),
        percent(ours.recovery_overhead),
        ratio.map_or_else(dash, |ratio| format!("{ratio:.2} {met}")),
        percent(theirs.late_share),
        percent(theirs.recovery_overhead),
    );
    (is_met, ratio)
}
