//! Random operations against the reference model, the same twice, and what the model must notice.
//!
//! `PUNCTUAL_STORMS=1000000 cargo test --release -p punctual-lab --test storms` runs more; `PUNCTUAL_SEED=n` replays one.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_lab::storm::{Broken, Mutant, SeedChoices, StormReport, storm, storm_with};

fn run(seed: u64) -> Result<StormReport, Broken> {
    storm(seed, &mut SeedChoices::new(seed))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn replay_of(seed: u64, broken: &Broken) -> String {
    format!(
        "seed {seed}: {broken}\nreplay: PUNCTUAL_SEED={seed} cargo test --release -p punctual-lab --test storms replay -- --nocapture"
    )
}

/// Goal: every promise holds under every mixture of faults.   Method: random operations, a model beside them; on all cores.
#[test]
fn promises_hold_in_storms() {
    let storms = number("PUNCTUAL_STORMS").unwrap_or(10_000);
    let first = number("PUNCTUAL_FIRST").unwrap_or(0);
    let next = AtomicU64::new(first);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let (mut accepted, mut delivered, mut broken) = (0, 0, Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + storms {
                return (accepted, delivered, broken);
            }
            match run(seed) {
                Ok(report) => {
                    accepted += report.accepted;
                    delivered += report.delivered;
                }
                Err(what) => broken.push((seed, what)),
            }
            if broken.len() > 20 {
                return (accepted, delivered, broken);
            }
        }
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .expect("a storm panicked: its message is above")
            })
            .collect()
    });
    let mut broken: Vec<_> = results.iter().flat_map(|result| &result.2).collect();
    broken.sort_by_key(|(seed, _)| *seed);
    let details: Vec<String> = broken
        .iter()
        .map(|(seed, what)| replay_of(*seed, what))
        .collect();
    assert!(broken.is_empty(), "{}", details.join("\n"));
    // The storms are storms of something.
    let accepted: u64 = results.iter().map(|result| result.0).sum();
    let delivered: u64 = results.iter().map(|result| result.1).sum();
    assert!(
        accepted > storms * 5,
        "{accepted} messages in {storms} storms"
    );
    assert!(
        delivered * 10 > accepted * 4,
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

/// Goal: what is checked can fail.   Method: one happening of a storm is tampered with; the rule that it breaks is the one that is
/// reported, in every storm in which the mutant finds a victim.
#[test]
fn every_mutant_is_noticed() {
    let mut others = Vec::new();
    for mutant in Mutant::ALL {
        let mut noticed = 0;
        for seed in 0..400 {
            let mut choices = SeedChoices::new(seed);
            if let Err(broken) = storm_with(seed, &mut choices, Some(mutant)) {
                if broken.rule != mutant.breaks() {
                    others.push(format!("{mutant:?}, seed {seed}: {broken}"));
                }
                noticed += 1;
            }
            if noticed == 3 {
                break;
            }
        }
        if noticed == 0 {
            others.push(format!("{mutant:?} was never noticed"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn replay() {
    if let Some(seed) = number("PUNCTUAL_SEED") {
        match run(seed) {
            Ok(report) => println!("seed {seed}: {report:?}"),
            Err(broken) => panic!("{}", replay_of(seed, &broken)),
        }
    }
}
