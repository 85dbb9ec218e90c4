//! What the policies answer, with their tables and before they are built.
#![cfg(feature = "solve")]

use punctual_policy::{Exact, Fixed, Pangolin, Policy, Retransmit, Situation, predict};

fn symbols(policy: &dyn Policy, situation: Situation) -> u16 {
    policy.decide(&situation).symbols
}

fn first(source_symbols: u8, rounds: u16, loss: f32) -> Situation {
    Situation::first(source_symbols, rounds, loss)
}

#[test]
fn the_simple_policies() {
    let now = first(4, 2, 0.1);
    let later = Situation {
        deficit: 2,
        sent: 5,
        rounds_left: 1,
        ..now
    };
    assert_eq!(
        (symbols(&Retransmit, now), symbols(&Retransmit, later)),
        (4, 2)
    );
    assert_eq!(
        (
            symbols(&Fixed { repair: 1 }, now),
            symbols(&Fixed { repair: 1 }, later)
        ),
        (5, 2)
    );
    let costs = |policy: &dyn Policy| {
        let predicted = predict(policy, &now, f64::from(now.loss), &[]).symbols;
        assert!((f64::from(policy.expected_symbols(4, 2, 0.1)) - predicted).abs() < 1e-5);
    };
    costs(&Retransmit);
    costs(&Fixed { repair: 1 });
}

/// k = 4, 2 % loss, 2 rounds, 0.1 %: the deficit, then one more (paper, section 7.1).
#[test]
fn the_paper_s_example_from_the_tables() {
    let pangolin = Pangolin::new(1e-3).expect("in range");
    assert!(pangolin.build(4) > 0);
    assert_eq!(pangolin.build(4), 0, "built already");
    let now = first(4, 2, 0.02);
    assert_eq!(symbols(&pangolin, now), 4);
    for deficit in 1..=4 {
        let later = Situation {
            deficit,
            rounds_left: 1,
            sent: 4,
            ..now
        };
        assert_eq!(symbols(&pangolin, later), u16::from(deficit) + 1);
    }
    assert!((pangolin.expected_symbols(4, 2, 0.02) - 4.1576).abs() < 1e-4);
    // 1.1 % is served as 2 %, and above 50 % as 50 %.
    assert_eq!(
        pangolin.expected_symbols(4, 2, 0.011),
        pangolin.expected_symbols(4, 2, 0.02)
    );
    assert_eq!(
        pangolin.expected_symbols(4, 2, 0.9),
        pangolin.expected_symbols(4, 2, 0.5)
    );
}

/// The planned rounds name the table: the last round of a block planned with 2 is not the only round of one planned with 1.
#[test]
fn planned_rounds_name_the_table() {
    let pangolin = Pangolin::new(1e-3).expect("in range");
    pangolin.build(4);
    let last = |rounds_planned| Situation {
        rounds_planned,
        rounds_left: 1,
        ..first(4, 1, 0.02)
    };
    assert_eq!(symbols(&pangolin, last(1)), 6);
    assert_eq!(symbols(&pangolin, last(2)), 5);
    assert_eq!(
        symbols(&pangolin, last(3)),
        4,
        "in 3 rounds just the deficit does"
    );
    assert_eq!(
        symbols(&pangolin, last(0)),
        6,
        "planned is at least what is left"
    );
    assert_eq!(
        symbols(
            &pangolin,
            Situation {
                rounds_left: 0,
                ..last(1)
            }
        ),
        4,
        "too late: the deficit"
    );
}

#[test]
fn nothing_out_of_range_panics() {
    let exact = Exact::new(1e-3).expect("in range");
    for _built in [false, true] {
        for source_symbols in [0, 1, 64, 65, 255] {
            for deficit in [0, 1, 64, 255] {
                for rounds in [0, 1, 17, 100, u16::MAX] {
                    for loss in [f32::NAN, -1.0, 0.0, 1e-30, 0.5, 2.0, f32::INFINITY] {
                        let now = Situation {
                            deficit,
                            ..first(source_symbols, rounds, loss)
                        };
                        assert!(symbols(&exact, now) <= 255);
                        assert!(
                            exact
                                .expected_symbols(source_symbols, rounds, loss)
                                .is_finite()
                        );
                    }
                }
            }
        }
        exact.build(1);
        exact.build(64);
    }
}

/// docs/notes/redundancy.md#giving-up, in tables of ours: the paper's policy gives up, the exact one does not.
#[test]
fn only_the_paper_s_policy_gives_up() {
    let (pangolin, exact) = (
        Pangolin::new(1e-3).expect("in range"),
        Exact::new(1e-3).expect("in range"),
    );
    let mut given_up = 0;
    for k in [1, 4, 8] {
        pangolin.build(k);
        exact.build(k);
        for percent in 1..=50_u8 {
            for rounds in 1..=12 {
                for (left, deficit) in
                    (1..=rounds).flat_map(|left| (1..=k).map(move |deficit| (left, deficit)))
                {
                    let first = first(k, rounds, f32::from(percent) / 100.0);
                    let now = Situation {
                        rounds_left: left,
                        deficit,
                        ..first
                    };
                    given_up += u32::from(symbols(&pangolin, now) == 0);
                    for draw in [0, u32::MAX] {
                        assert!(
                            symbols(&exact, Situation { draw, ..now }) >= u16::from(deficit),
                            "{now:?}"
                        );
                    }
                }
            }
        }
    }
    assert!(given_up > 0);
}

#[test]
fn draws_follow_the_weight() {
    let exact = Exact::new(1e-3).expect("in range");
    exact.build(4);
    // Between 1.5 and 1.75 / 64 there is a bin end at 0.0234375, and 0.02 is served as 1.5 / 64 = 0.0234375 too.
    let last = Situation {
        deficit: 1,
        rounds_left: 1,
        ..first(4, 2, 0.02)
    };
    let problem = punctual_policy::solve::Problem {
        loss: 0.0234375,
        source_symbols: 4,
        rounds: 2,
        miss_target: 1e-3,
    };
    let solved = punctual_policy::solve::solve(punctual_policy::PolicyKind::Exact, &problem)
        .expect("in range");
    let [dear, cheap] = &solved.mixture[..] else {
        panic!("two policies: {solved:?}")
    };
    assert_ne!(
        dear.actions[1][0], cheap.actions[1][0],
        "the test looks where they differ"
    );
    let limit = (dear.weight * f64::from(u32::MAX)) as u32;
    let answer = |draw| symbols(&exact, Situation { draw, ..last });
    assert_eq!(answer(0), dear.actions[1][0]);
    assert_eq!(answer(limit - 1000), dear.actions[1][0]);
    assert_eq!(answer(limit + 1000), cheap.actions[1][0]);
    assert_eq!(answer(u32::MAX), cheap.actions[1][0]);
}

#[test]
fn before_tables_are_built_a_costlier_policy_meets_the_target() {
    let (waiting, built) = (
        Exact::new(1e-3).expect("in range"),
        Exact::new(1e-3).expect("in range"),
    );
    for k in [1, 4, 12] {
        built.build(k);
        for loss in [0.001_f32, 0.015625, 0.125, 0.5] {
            for rounds in 1..=6 {
                let now = first(k, rounds, loss);
                let stopgap = predict(&waiting, &now, f64::from(loss), &[]);
                assert!(
                    stopgap.miss <= waiting.miss_target() * (1.0 + 1e-9),
                    "{now:?}: {stopgap:?}"
                );
                let told = waiting.expected_symbols(k, rounds, loss);
                assert!(
                    (f64::from(told) - stopgap.symbols).abs() < 1e-4 * stopgap.symbols,
                    "{now:?}: {told} {stopgap:?}"
                );
                assert!(told >= built.expected_symbols(k, rounds, loss) - 1e-4);
            }
        }
        assert_eq!(waiting.wanted() >> (k - 1), 1, "asked for");
    }
    waiting.build_wanted();
    assert_eq!(waiting.wanted(), 0);
    assert_eq!(waiting.stored_bytes(), built.stored_bytes());
}

#[test]
fn a_good_path_asks_for_no_solver() {
    let exact = Exact::new(1e-3).expect("in range");
    assert_eq!(symbols(&exact, first(4, 3, 0.001)), 4);
    assert_eq!(symbols(&exact, first(64, 1, 0.0)), 64);
    assert_eq!(exact.wanted(), 0);
}

/// The whole of the paper's tables: 22,968 by its count, in less than 4 MB.
#[test]
fn all_tables() {
    let pangolin = Pangolin::new(1e-3).expect("in range");
    let built = pangolin.build_all();
    assert_eq!(built, pangolin.table_count());
    assert!(built.abs_diff(22_968) * 100 <= 22_968 * 3, "{built} tables");
    assert!(
        pangolin.stored_bytes() < 4_000_000,
        "{} bytes",
        pangolin.stored_bytes()
    );
}
