//! Look-ups and predictions, as a session makes them, and what it takes to build the tables of one k.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use punctual_policy::{
    Answers, Burst, Doubt, Exact, Hurries, Hurry, Pangolin, Policy, Price, Situation, Steered,
    Steering, Timing, predict_miss,
};

/// Situations over k 1..=16, losses 1..50 % and 1..=4 rounds, in no order that a processor could foresee.
fn situations() -> Vec<Situation> {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |end: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 16) % end
    };
    let mut situation = || {
        let (source_symbols, rounds) = (1 + below(16) as u8, 1 + below(4) as u16);
        let first = Situation::first(source_symbols, rounds, (1 + below(50)) as f32 / 100.0);
        Situation {
            price: Some(Price::from_log2(below(20) as f32)),
            deficit: 1 + below(u64::from(source_symbols)) as u8,
            rounds_left: 1 + below(u64::from(rounds)) as u16,
            draw: below(1 << 32) as u32,
            ..first
        }
    };
    (0..1024).map(|_| situation()).collect()
}

fn lookups(criterion: &mut Criterion) {
    let (pangolin, exact) = (
        Pangolin::new(1e-3).expect("in range"),
        Exact::new(1e-3).expect("in range"),
    );
    for k in 1..=16 {
        pangolin.build(k);
        exact.build(k);
    }
    let steered = Steered::new(1e-3).expect("in range");
    steered.build_all();
    let situations = situations();
    for policy in [&pangolin as &dyn Policy, &exact, &steered] {
        let mut next = situations.iter().cycle();
        criterion.bench_function(&format!("lookup/{}", policy.name()), |bench| {
            bench.iter(|| policy.decide(black_box(next.next().expect("endless"))));
        });
    }
    // Reckoned without tables.
    for (flights, uneven) in [("only flights", 0.0), ("uneven flights", 0.15)] {
        let only = |situation: &Situation| Situation {
            rounds_planned: 1,
            rounds_left: 1,
            deficit: situation.source_symbols,
            burst: Burst {
                uneven,
                ..situation.burst
            },
            ..*situation
        };
        let situations: Vec<_> = situations.iter().map(only).collect();
        let mut next = situations.iter().cycle();
        criterion.bench_function(&format!("lookup/steered, {flights}"), |bench| {
            bench.iter(|| steered.decide(black_box(next.next().expect("endless"))));
        });
    }
}

fn searches(criterion: &mut Criterion) {
    let steered = Steered::new(1e-3).expect("in range");
    steered.build_all();
    let situations = situations();
    let bursty = |situation: &Situation| Situation {
        rounds_planned: 1,
        rounds_left: 1,
        deficit: situation.source_symbols,
        burst: Burst {
            correlation: 0.6,
            lasts: Duration::from_millis(20),
            ..situation.burst
        },
        timing: Timing {
            time_left: Duration::from_millis(90),
            slack: Duration::from_millis(50),
            round_time: Duration::from_millis(70),
            rtt: Duration::from_millis(60),
            rtt_deviation: Duration::from_millis(3),
        },
        ..*situation
    };
    let chancy = |situation: &Situation| Situation {
        rounds_planned: 1,
        rounds_left: 1,
        deficit: situation.source_symbols,
        hurries: Hurries::one(Hurry {
            more: 1,
            wait: Duration::from_millis(40),
            late: 0.05,
            in_time: 0.85,
        }),
        ..*situation
    };
    let silent = |situation: &Situation| Situation {
        sent: u16::from(situation.source_symbols),
        deficit: situation.source_symbols,
        answers: Answers {
            unaccounted: u16::from(situation.source_symbols),
            missing: 0.4,
            ..Answers::default()
        },
        ..*situation
    };
    for (name, of) in [
        (
            "last flights in bursts",
            &bursty as &dyn Fn(&Situation) -> Situation,
        ),
        ("a last flight may be late", &chancy),
        ("after a silence", &silent),
    ] {
        let situations: Vec<_> = situations.iter().map(of).collect();
        let mut next = situations.iter().cycle();
        criterion.bench_function(&format!("search/steered, {name}"), |bench| {
            bench.iter(|| steered.decide(black_box(next.next().expect("endless"))));
        });
    }
}

fn steering(criterion: &mut Criterion) {
    let policy = Steered::new(1e-3).expect("in range");
    policy.build_all();
    let first = Situation::first(4, 2, 0.02);
    let mut steering = Steering::default();
    criterion.bench_function("steering/message and outcome", |bench| {
        bench.iter(|| {
            steering.on_outcome(black_box(false), 1e-3);
            steering.on_message(&policy, black_box(&first), 1e-3, Doubt::default())
        });
    });
}

fn predictions(criterion: &mut Criterion) {
    let exact = Exact::new(1e-3).expect("in range");
    for (k, rounds) in [(1, 1), (1, 2), (4, 2), (16, 3), (64, 4)] {
        exact.build(k);
        let first = Situation::first(k, rounds, 0.02);
        criterion.bench_function(&format!("predict_miss/k={k} N={rounds}"), |bench| {
            bench.iter(|| predict_miss(&exact, black_box(&first), 0.015, &[0.99, 0.98]));
        });
    }
}

fn builds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("build");
    group.sample_size(10);
    for k in [1, 4, 16, 64] {
        group.bench_function(format!("exact k={k}"), |bench| {
            bench.iter(|| Exact::new(1e-3).expect("in range").build(black_box(k)));
        });
    }
    group.finish();
}

criterion_group!(benches, lookups, searches, steering, predictions, builds);
criterion_main!(benches);
