//! The prediction against closed forms, against the solver, and against blocks sent one by one.
#![cfg(feature = "solve")]

use std::time::Duration;

use punctual_policy::solve::{Problem, curve, solve};
use punctual_policy::{
    Action, Fixed, Pangolin, Policy, PolicyKind, Retransmit, Situation, Timing, follow, predict,
    predict_miss,
};

#[test]
fn retransmission_in_closed_form() {
    for (k, rounds, loss) in [(1, 1, 0.5), (4, 2, 0.02), (64, 3, 0.1), (64, 2, 1e-5)] {
        let now = Situation::first(k, rounds, 0.3);
        let expected = 1.0 - (1.0 - f64::powi(loss, i32::from(rounds))).powi(i32::from(k));
        let miss = predict_miss(&Retransmit, &now, loss, &[]);
        assert!(
            (miss - expected).abs() <= 1e-9 * expected + 1e-15,
            "{miss} {expected}"
        );
    }
}

#[test]
fn late_symbols_count_as_lost_in_their_round() {
    let now = Situation::first(1, 2, 0.0);
    assert_eq!(predict_miss(&Retransmit, &now, 0.0, &[]), 0.0);
    assert!((predict_miss(&Retransmit, &now, 0.5, &[1.0, 0.5]) - 0.5 * 0.75).abs() < 1e-15);
    assert_eq!(predict_miss(&Retransmit, &now, 0.5, &[0.0, 0.0]), 1.0);
    assert_eq!(
        predict_miss(
            &Retransmit,
            &Situation {
                rounds_left: 0,
                ..now
            },
            0.0,
            &[]
        ),
        1.0
    );
    assert!((predict(&Retransmit, &now, 0.5, &[]).symbols - 1.5).abs() < 1e-15);
}

/// Method: a round, and one more that the first situation knows nothing of.
#[test]
fn rounds_are_followed_as_they_begin() {
    let first = Situation::first(1, 1, 0.0);
    let mut sent_before = Vec::new();
    let found = follow(&Retransmit, &first, 0.5, 0.8, |round, _| {
        sent_before.push(round.sent);
        let rounds_left = u16::from(sent_before.len() < 2);
        let next = Situation {
            rounds_left,
            ..*round
        };
        (next, 0.5)
    });
    assert_eq!(sent_before, [0, 1]);
    assert!((found.miss - 0.6 * 0.75).abs() < 1e-15, "{found:?}");
    assert!((found.symbols - 1.6).abs() < 1e-15, "{found:?}");
}

#[test]
fn a_table_leads_where_the_solver_says() {
    let pangolin = Pangolin::new(1e-3).expect("in range");
    for (source_symbols, rounds, loss) in [(4, 2, 0.02), (4, 1, 0.5), (12, 4, 0.3)] {
        pangolin.build(source_symbols);
        let problem = Problem {
            loss,
            source_symbols,
            rounds,
            miss_target: pangolin.miss_target(),
        };
        let solved = solve(PolicyKind::Pangolin, &problem).expect("in range");
        let found = predict(
            &pangolin,
            &Situation::first(source_symbols, rounds, loss as f32),
            loss,
            &[],
        );
        assert!(
            (found.symbols - solved.expected_symbols).abs() < 1e-7,
            "{found:?} {solved:?}"
        );
        assert!(
            (found.miss - solved.miss_probability).abs() < 1e-9,
            "{found:?} {solved:?}"
        );
    }
}

/// Goal: predicted = achieved.   Method: 200 000 blocks sent symbol by symbol; four standard deviations allowed.
#[test]
fn as_often_as_blocks_really_miss() {
    let pangolin = Pangolin::new(1e-2).expect("in range");
    pangolin.build(4);
    let on_time = [0.95, 0.9, 0.6];
    for policy in [&pangolin as &dyn Policy, &Fixed { repair: 1 }] {
        let now = Situation::first(4, 3, 0.2);
        let predicted = predict(policy, &now, 0.15, &on_time);
        let mut random = Random(7);
        let (mut missed, mut sent) = (0, 0_u64);
        const BLOCKS: u32 = 200_000;
        for _ in 0..BLOCKS {
            let mut now = now;
            for share in on_time {
                let Action { symbols, .. } = policy.decide(&now);
                sent += u64::from(symbols);
                // The symbols of a flight share their delay.
                let is_in_time = random.share() < share;
                let arrived = (0..symbols)
                    .filter(|_| random.share() < 0.85 && is_in_time)
                    .count();
                now.deficit = now.deficit.saturating_sub(arrived as u8);
                now.rounds_left -= 1;
                now.sent += symbols;
                if now.deficit == 0 {
                    break;
                }
            }
            missed += u32::from(now.deficit > 0);
        }
        let (miss, cost) = (
            f64::from(missed) / f64::from(BLOCKS),
            sent as f64 / f64::from(BLOCKS),
        );
        let deviation = (predicted.miss * (1.0 - predicted.miss) / f64::from(BLOCKS)).sqrt();
        assert!(
            (miss - predicted.miss).abs() < 4.0 * deviation,
            "{miss} {predicted:?}"
        );
        assert!(
            (cost - predicted.symbols).abs() < 0.02,
            "{cost} {predicted:?}"
        );
    }
}

/// xorshift64*, a seed gives the same run everywhere.
struct Random(u64);

impl Random {
    fn share(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[test]
fn decisions_see_time_and_rounds_move_on() {
    struct Watch;
    impl Policy for Watch {
        fn name(&self) -> &'static str {
            "watch"
        }
        fn decide(&self, now: &Situation) -> Action {
            assert_eq!(
                now.timing.time_left,
                now.timing.round_time * u32::from(now.rounds_left)
            );
            assert_eq!(now.sent > 0, now.rounds_left < now.rounds_planned);
            Action::burst(u16::from(now.deficit))
        }
        fn expected_symbols(&self, _: u8, _: u16, _: f32) -> f32 {
            0.0
        }
    }
    let round_time = Duration::from_millis(10);
    let now = Situation {
        timing: Timing {
            round_time,
            time_left: round_time * 4,
            slack: round_time * 3,
            ..Timing::default()
        },
        ..Situation::first(3, 4, 0.5)
    };
    assert!(predict_miss(&Watch, &now, 0.5, &[]) > 0.1);
}

/// Figure 6 of the paper: overhead grows with loss and target, in few straight segments, above the oracle's.
#[test]
fn the_paper_s_figure_6() {
    let losses = || (1..=20).map(|percent| f64::from(percent) / 100.0);
    let problem = |miss_target| Problem {
        loss: 0.0,
        source_symbols: 4,
        rounds: 2,
        miss_target,
    };
    let points =
        |kind, miss_target| curve(kind, &problem(miss_target), losses()).expect("in range");
    let (strict, lax) = (
        points(PolicyKind::Pangolin, 1e-3),
        points(PolicyKind::Pangolin, 1e-2),
    );
    let exact = points(PolicyKind::Exact, 1e-3);
    assert!(
        (strict[1].overhead - 0.0394).abs() < 1e-4,
        "{:?}",
        strict[1]
    );
    for ((strict, lax), exact) in strict.iter().zip(&lax).zip(&exact) {
        assert!(
            strict.overhead >= lax.overhead - 1e-12 && strict.overhead >= exact.overhead - 1e-12
        );
        assert!(strict.miss_probability <= 1e-3 && lax.miss_probability <= 1e-2);
        assert!((strict.oracle - strict.loss / (1.0 - strict.loss)).abs() < 1e-15);
    }
    assert!(curve(PolicyKind::Exact, &problem(1e-3), [1.0]).is_err());
}
