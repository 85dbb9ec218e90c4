//! Random operations against the reference model, and the same twice.
//!
//! `PUNCTUAL_STORMS=1000000 cargo test --release -p punctual-lab --test storms` runs more; `PUNCTUAL_SEED=n` replays one.

use punctual_lab::storm::{SeedChoices, StormReport, storm};

fn run(seed: u64) -> StormReport {
    let mut choices = SeedChoices::new(seed);
    storm(seed, &mut choices).unwrap_or_else(|broken| {
        panic!(
            "{broken}\nreplay: PUNCTUAL_SEED={seed} cargo test --release -p punctual-lab --test storms replay -- --nocapture"
        )
    })
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Goal: every promise holds under every mixture of faults.   Method: random operations, a model beside them.
#[test]
fn promises_hold_in_storms() {
    let storms = number("PUNCTUAL_STORMS").unwrap_or(3000);
    let mut accepted = 0;
    let mut delivered = 0;
    for seed in 0..storms {
        let report = run(seed);
        accepted += report.accepted;
        delivered += report.delivered;
    }
    // The storms are storms of something.
    assert!(
        accepted > storms * 5,
        "{accepted} messages in {storms} storms"
    );
    assert!(
        delivered * 10 > accepted * 6,
        "{delivered} of {accepted} delivered"
    );
}

/// Goal: a seed replays a run exactly.   Method: the hash of every datagram and event, twice.
#[test]
fn a_storm_run_twice_is_the_same() {
    for seed in 0..60 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

#[test]
fn replay() {
    if let Some(seed) = number("PUNCTUAL_SEED") {
        println!("seed {seed}: {:?}", run(seed));
    }
}
