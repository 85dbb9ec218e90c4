//! A loss that changes at once. `cargo run --release -p punctual-lab --example step` has each second, over 10,000 sessions.

#[path = "support/step.rs"]
mod step;

use step::{AFTER_S, BAD_S, CALM_S};

/// Goal: from the second second after a step of the loss on as many messages are on time as promised, and five seconds after its end nothing
/// is spent on it any more.
#[test]
fn a_step_of_the_loss_is_followed_within_seconds() {
    let (seconds, spent) = step::play(1);
    let late = |from: u64, until: u64| {
        let range = from as usize..until as usize;
        let late: u64 = seconds.late[range.clone()].iter().sum();
        late as f64 / seconds.messages[range].iter().sum::<u64>() as f64
    };
    let back = CALM_S + BAD_S;
    assert!(late(CALM_S, CALM_S + 1) < 0.03, "before it can be known");
    // 27,000 messages: 27 late as promised, and three standard deviations.
    let settled = late(CALM_S + 1, back);
    assert!(settled < 0.0016, "{settled}");
    assert!(late(back, back + AFTER_S) < 0.001);
    assert!(spent.when_bad < 0.28, "{}", spent.when_bad);
    assert!(
        spent.after < spent.in_calm + 0.001,
        "{} {}",
        spent.after,
        spent.in_calm
    );
}
