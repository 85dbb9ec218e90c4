//! The steered policy before it has any table.

use punctual_policy::{COST_CAP, Policy, Situation, Steered};

/// A regression: before its tables were built, a message over a path that might lose nearly everything had 255 symbols.
#[test]
fn what_a_message_may_cost_is_bounded_without_tables_too() {
    let policy = Steered::new(1e-6).expect("in range");
    for k in [1, 4, 64] {
        for loss in [0.5, 0.9, 1.0, f32::NAN] {
            let symbols = policy.decide(&Situation::first(k, 1, loss)).symbols;
            let most = (COST_CAP * (u16::from(k) + 1)).min(255);
            assert!(
                (u16::from(k)..=most).contains(&symbols),
                "{k} {loss}: {symbols}"
            );
        }
    }
}
