use alloc::vec;
use alloc::vec::Vec;

use super::Rule;
use super::hull::{Optimum, rounds_not_trivial};
use super::trellis::{Game, Plan, Trellis};
use crate::loss::{LossBins, Octaves, Percents};
use crate::shelf::Scheme;
use crate::{Exact, OutOfRange, PolicyKind, Situation, chance, predict_miss, solve};

const PAPER: solve::Problem = solve::Problem {
    loss: 0.02,
    source_symbols: 4,
    rounds: 2,
    miss_target: 1e-3,
};

fn game(source_symbols: u8, rounds: u16, loss: f64, rule: Rule) -> Game {
    Game {
        loss,
        source_symbols,
        rounds,
        rule,
    }
}

fn find(game: &Game, miss_target: f64) -> Optimum {
    Optimum::find(
        &mut Trellis::new(),
        game,
        miss_target,
        &mut (1.0 / miss_target),
    )
}

/// Binomial probability from the definition, independent of the crate's recursions.
fn binomial(symbols: u8, arrived: u8, arrives: f64) -> f64 {
    let ways: f64 = (0..arrived)
        .map(|i| f64::from(symbols - i) / f64::from(i + 1))
        .product();
    ways * arrives.powi(i32::from(arrived)) * (1.0 - arrives).powi(i32::from(symbols - arrived))
}

/// (expected symbols, miss probability) of actions by rounds left, from the definition.
fn evaluate(actions: &[u8], game: &Game, left: u16, deficit: u8) -> (f64, f64) {
    if deficit == 0 || left == 0 {
        return (0.0, f64::from(u8::from(deficit > 0)));
    }
    let symbols = actions
        [usize::from(left - 1) * usize::from(game.source_symbols) + usize::from(deficit) - 1];
    let mut result = (f64::from(symbols), 0.0);
    for arrived in 0..=symbols {
        let chance = binomial(symbols, arrived, 1.0 - game.loss);
        let (cost, miss) = evaluate(actions, game, left - 1, deficit.saturating_sub(arrived));
        result.0 += chance * cost;
        result.1 += chance * miss;
    }
    result
}

/// Every deterministic policy with actions up to `most`, as points. States that cannot be reached are left out.
fn all_points(game: &Game, most: u8) -> Vec<(f64, f64)> {
    let (k, rounds) = (usize::from(game.source_symbols), usize::from(game.rounds));
    let states: Vec<usize> = (0..(rounds - 1) * k).chain([rounds * k - 1]).collect();
    let least = |state: usize| {
        if game.rule == Rule::MustDeliver {
            (state % k) as u8 + 1
        } else {
            0
        }
    };
    let mut actions = vec![0; rounds * k];
    states
        .iter()
        .for_each(|state| actions[*state] = least(*state));
    let mut points = Vec::new();
    loop {
        points.push(evaluate(&actions, game, game.rounds, game.source_symbols));
        // Counts the actions up like the digits of a number.
        let Some(digit) = states.iter().find(|state| actions[**state] < most) else {
            return points;
        };
        actions[*digit] += 1;
        states
            .iter()
            .take_while(|state| *state < digit)
            .for_each(|state| actions[*state] = least(*state));
    }
}

/// The neighbours on the lower convex hull on both sides of the target: (dear, cheap).
fn hull_edge(mut points: Vec<(f64, f64)>, miss_target: f64) -> ((f64, f64), (f64, f64)) {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if hull.last().is_some_and(|last| point.1 >= last.1) {
            continue;
        }
        while let [.., a, b] = hull[..] {
            let b_lies_above = (b.1 - a.1) * (point.0 - a.0) >= (point.1 - a.1) * (b.0 - a.0);
            if !b_lies_above {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    let dear = hull
        .iter()
        .position(|point| point.1 <= miss_target)
        .expect("the target can be met");
    (hull[dear], hull[dear - 1])
}

/// Tiny games: (k, rounds, loss, miss target, most symbols tried).
const TINY: [(u8, u16, f64, f64, u8); 8] = [
    (1, 1, 0.3, 0.01, 6),
    (1, 3, 0.2, 0.001, 5),
    (2, 1, 0.1, 0.001, 8),
    (2, 2, 0.2, 0.01, 7),
    (2, 2, 0.05, 0.001, 6),
    (2, 3, 0.3, 0.02, 4),
    (3, 2, 0.1, 0.003, 6),
    (3, 2, 0.4, 0.1, 8),
];

#[test]
fn the_optimum_is_that_of_all_policies_enumerated() {
    for (k, rounds, loss, miss_target, most) in TINY {
        for rule in [Rule::MayGiveUp, Rule::MustDeliver] {
            let game = game(k, rounds, loss, rule);
            let (dear, cheap) = hull_edge(all_points(&game, most), miss_target);
            let found = find(&game, miss_target);
            let close = |plan: &Plan, point: (f64, f64)| {
                (plan.cost - point.0).abs() < 1e-9 && (plan.miss - point.1).abs() < 1e-9
            };
            assert!(
                close(&found.dear, dear),
                "{game:?}: {found:?}, enumerated {dear:?}"
            );
            assert!(
                close(&found.cheap, cheap),
                "{game:?}: {found:?}, enumerated {cheap:?}"
            );
            assert!((found.mixed_miss() - miss_target).abs() < 1e-12);
        }
    }
}

#[test]
fn plans_lead_where_the_dynamic_programme_says() {
    for rule in [Rule::MayGiveUp, Rule::MustDeliver] {
        for (k, rounds, loss) in [(4, 2, 0.02), (5, 3, 0.3), (3, 5, 0.5)] {
            let game = game(k, rounds, loss, rule);
            let found = find(&game, 1e-3);
            for plan in [&found.dear, &found.cheap] {
                let (cost, miss) = evaluate(&plan.actions, &game, rounds, k);
                assert!(
                    (plan.cost - cost).abs() < 1e-9 && (plan.miss - miss).abs() < 1e-9,
                    "{game:?} {plan:?}"
                );
            }
        }
    }
}

/// The paper's own way (section 5.4): halve the range of the price until it holds one vertex on either side.
#[test]
fn the_chord_finds_what_bisection_finds() {
    let mut trellis = Trellis::new();
    for (k, rounds, loss) in [
        (1, 2, 0.1),
        (7, 3, 0.15),
        (20, 2, 0.02),
        (33, 5, 0.4),
        (64, 2, 0.3),
    ] {
        for rule in [Rule::MayGiveUp, Rule::MustDeliver] {
            let game = game(k, rounds, loss, rule);
            let (mut low, mut high) = (0.0, 1e9);
            for _ in 0..70 {
                let price = (low + high) / 2.0;
                let (_, miss) = trellis.solve(&game, price);
                *(if miss <= 1e-3 { &mut high } else { &mut low }) = price;
            }
            let (cost, miss) = trellis.solve(&game, high);
            let found = find(&game, 1e-3).dear;
            assert!(
                (found.cost - cost).abs() < 1e-6 && (found.miss - miss).abs() < 1e-8,
                "{game:?}: {found:?} {cost} {miss}"
            );
        }
    }
}

/// The paper's example (section 7.1), and the figures of docs/notes/redundancy.md.
#[test]
fn known_answers() {
    let pangolin = solve::solve(PolicyKind::Pangolin, &PAPER).expect("in range");
    assert_eq!(pangolin.actions, [[1, 2, 3, 4], [2, 3, 4, 5]]);
    assert!((pangolin.expected_symbols - 4.1576).abs() < 1e-4);
    assert!((pangolin.miss_probability - 3.3e-5).abs() < 1e-6);
    // (k, rounds, loss, overhead of the exact optimum in percent)
    for (source_symbols, rounds, loss, overhead) in [
        (4, 2, 0.02, 2.71),
        (4, 1, 0.02, 44.3),
        (2, 1, 0.02, 58.0),
        (1, 2, 0.1, 20.0),
    ] {
        let problem = solve::Problem {
            source_symbols,
            rounds,
            loss,
            ..PAPER
        };
        let exact = solve::solve(PolicyKind::Exact, &problem).expect("in range");
        let found = (exact.expected_symbols / f64::from(source_symbols) - 1.0) * 100.0;
        assert!((found - overhead).abs() < 0.05, "{problem:?}: {found} %");
        assert!((exact.miss_probability - 1e-3).abs() < 1e-9);
    }
}

#[test]
fn where_the_deficit_does_nothing_is_mixed() {
    let problem = solve::Problem { rounds: 3, ..PAPER };
    for kind in [
        PolicyKind::Exact,
        PolicyKind::Pangolin,
        PolicyKind::Retransmit,
    ] {
        let solution = solve::solve(kind, &problem).expect("in range");
        assert_eq!(solution.actions, vec![vec![1, 2, 3, 4]; 3]);
        assert_eq!(solution.mixture.len(), 1);
        assert!((solution.expected_symbols - 4.0816).abs() < 1e-9);
        assert!((solution.miss_probability - chance::retransmit_miss(4, 3, 0.02)).abs() < 1e-12);
    }
}

#[test]
fn fixed_repair_in_closed_form_is_that_of_its_actions() {
    for (repair, rounds) in [(0, 1), (1, 2), (2, 3)] {
        let problem = solve::Problem {
            rounds,
            loss: 0.2,
            ..PAPER
        };
        let solution = solve::solve(PolicyKind::Fixed(repair), &problem).expect("in range");
        let actions: Vec<u8> = solution
            .actions
            .iter()
            .rev()
            .flatten()
            .map(|symbols| *symbols as u8)
            .collect();
        let (cost, miss) = evaluate(&actions, &game(4, rounds, 0.2, Rule::MayGiveUp), rounds, 4);
        assert!(
            (solution.expected_symbols - cost).abs() < 1e-9
                && (solution.miss_probability - miss).abs() < 1e-9
        );
    }
}

#[test]
fn not_giving_up_and_mixing_never_costs_more_where_the_paper_does_not_give_up() {
    let mut compared = 0;
    for (k, rounds) in [(1, 1), (2, 2), (4, 2), (8, 3), (16, 2), (24, 4)] {
        for loss in [0.001, 0.02, 0.05, 0.2, 0.5] {
            let problem = solve::Problem {
                loss,
                source_symbols: k,
                rounds,
                miss_target: 1e-3,
            };
            let pangolin = solve::solve(PolicyKind::Pangolin, &problem).expect("in range");
            let exact = solve::solve(PolicyKind::Exact, &problem).expect("in range");
            let never_less = |row: &Vec<u16>| {
                row.iter()
                    .zip(1..)
                    .all(|(symbols, deficit)| *symbols >= deficit)
            };
            assert!(
                exact
                    .mixture
                    .iter()
                    .all(|mixed| mixed.actions.iter().all(never_less))
            );
            assert!(exact.miss_probability <= 1e-3 * (1.0 + 1e-9));
            if pangolin.actions.iter().all(never_less) {
                compared += 1;
                assert!(
                    exact.expected_symbols <= pangolin.expected_symbols + 1e-9,
                    "{problem:?}"
                );
            }
        }
    }
    assert!(compared > 10, "only {compared}");
}

#[test]
fn the_paper_s_policies_do_not_idle() {
    // Less than the deficit is sent only to give up for good, never to put off what has to be sent anyhow.
    for (k, rounds, loss) in [(8, 10, 0.5), (16, 6, 0.3), (64, 4, 0.1)] {
        let dear = find(&game(k, rounds, loss, Rule::MayGiveUp), 1e-3).dear;
        for (left, row) in dear.actions.chunks_exact(usize::from(k)).enumerate() {
            for (symbols, deficit) in row.iter().zip(1..) {
                assert!(
                    *symbols == 0 || *symbols >= deficit,
                    "{left} {deficit}: {row:?}"
                );
            }
        }
    }
}

/// 22,968 tables by the paper; the rule that names the trivial ones is ours, and counts 1.6 % more.
#[test]
fn as_many_tables_as_the_paper_stores() {
    let per_bin = |(bin, k): (usize, u8)| {
        usize::from(rounds_not_trivial(k, Percents::upper_end(bin), 1e-3, 100))
    };
    let tables: usize = (1..Percents::COUNT)
        .flat_map(|bin| (1..=64).map(move |k| (bin, k)))
        .map(per_bin)
        .sum();
    assert!(tables.abs_diff(22_968) * 100 <= 22_968 * 3, "{tables}");
}

fn check_round_trip<S: Scheme>(k: u8, miss_target: f64, rounds: impl Iterator<Item = u16> + Clone) {
    let tables = super::block_tables::<S>(k, miss_target);
    let mut trellis = Trellis::new();
    for bin in (1..S::Bins::COUNT).step_by(4) {
        let loss = S::Bins::upper_end(bin);
        let stored = rounds_not_trivial(k, loss, miss_target, S::ROUNDS_MAX);
        assert_eq!(tables.symbols(bin, stored + 1, 1, k, 0), None);
        for rounds in rounds.clone().filter(|rounds| *rounds <= stored) {
            let game = game(k, rounds, loss, S::RULE);
            let raw = Optimum::find(&mut trellis, &game, miss_target, &mut 1e3);
            for (draw, plan) in [(0, &raw.dear), (u32::MAX, &raw.cheap)] {
                if S::RULE == Rule::MayGiveUp && draw != 0 {
                    continue;
                }
                let read =
                    (1..=rounds).flat_map(|left| (1..=k).map(move |deficit| (left, deficit)));
                let read =
                    read.map(|(left, deficit)| tables.symbols(bin, rounds, left, deficit, draw));
                let read: Vec<u8> = read.map(|symbols| symbols.expect("stored") as u8).collect();
                // Ties between rows that are next to never reached may fall differently when the search starts elsewhere.
                let (cost, miss) = followed(&read, &game);
                assert!(
                    (cost - plan.cost).abs() < 1e-7 && (miss - plan.miss).abs() < 1e-9,
                    "{game:?}: {cost} {miss} {plan:?}"
                );
            }
            let cost = if S::RULE == Rule::MayGiveUp {
                raw.dear.cost
            } else {
                raw.mixed_cost()
            };
            assert!(
                (f64::from(tables.cost(bin, rounds).expect("stored")) - cost).abs() < 1e-5 * cost
            );
        }
    }
}

/// As `evaluate`, with every state visited once.
fn followed(actions: &[u8], game: &Game) -> (f64, f64) {
    let k = usize::from(game.source_symbols);
    let mut after = vec![(0.0, 1.0); k + 1];
    after[0].1 = 0.0;
    for row in actions.chunks_exact(k) {
        let mut now = after.clone();
        for (symbols, deficit) in row.iter().zip(1..=k) {
            now[deficit] = (f64::from(*symbols), 0.0);
            for arrived in 0..=*symbols {
                let chance = binomial(*symbols, arrived, 1.0 - game.loss);
                let then = after[deficit.saturating_sub(usize::from(arrived))];
                now[deficit].0 += chance * then.0;
                now[deficit].1 += chance * then.1;
            }
        }
        after = now;
    }
    after[k]
}

#[test]
fn what_is_stored_is_what_was_solved() {
    for k in [1, 3, 12] {
        check_round_trip::<crate::pangolin::PaperScheme>(k, 1e-3, 1..=100);
        check_round_trip::<crate::exact::DeliverScheme>(k, 1e-3, 1..=16);
    }
    check_round_trip::<crate::pangolin::PaperScheme>(64, 1e-3, [1, 2, 5].into_iter());
}

/// Miss probability over all draws at this very loss.
fn mean_miss(exact: &Exact, source_symbols: u8, rounds: u16, loss: f32) -> f64 {
    let miss = |draw| {
        let first = Situation {
            draw,
            ..Situation::first(source_symbols, rounds, loss)
        };
        predict_miss(exact, &first, f64::from(loss), &[])
    };
    let tables = exact
        .shelf()
        .tables(source_symbols)
        .expect("built by the test");
    let weight = tables
        .dear_weight(Octaves::bin_of(loss), rounds.min(16))
        .unwrap_or(1.0);
    weight * miss(0) + (1.0 - weight) * miss(u32::MAX)
}

#[test]
fn exact_meets_its_target_at_every_bin() {
    let exact = Exact::new(1e-3).expect("in range");
    for k in [1, 4, 16] {
        exact.build(k);
        for bin in 1..Octaves::COUNT {
            for rounds in 1..=18 {
                let loss = Octaves::upper_end(bin);
                let miss = mean_miss(&exact, k, rounds, loss as f32);
                assert!(
                    miss <= exact.miss_target() * (1.0 + 1e-6),
                    "k {k}, loss {loss}, {rounds} rounds: {miss}"
                );
            }
        }
    }
}

#[test]
fn out_of_range_is_an_error() {
    let check = |problem: solve::Problem| problem.check();
    assert_eq!(check(PAPER), Ok(()));
    assert_eq!(
        check(solve::Problem { loss: 1.0, ..PAPER }),
        Err(OutOfRange::Loss(1.0))
    );
    assert!(matches!(
        check(solve::Problem {
            loss: f64::NAN,
            ..PAPER
        }),
        Err(OutOfRange::Loss(_))
    ));
    for source_symbols in [0, 65] {
        let error = Err(OutOfRange::SourceSymbols(source_symbols));
        assert_eq!(
            check(solve::Problem {
                source_symbols,
                ..PAPER
            }),
            error
        );
    }
    for rounds in [0, 101] {
        assert_eq!(
            check(solve::Problem { rounds, ..PAPER }),
            Err(OutOfRange::Rounds(rounds))
        );
    }
    for miss_target in [0.0, 1.0, -1.0, 1e-12] {
        assert_eq!(
            check(solve::Problem {
                miss_target,
                ..PAPER
            }),
            Err(OutOfRange::MissTarget(miss_target))
        );
        assert_eq!(
            Exact::new(miss_target as f32).map(|_| ()),
            Err(OutOfRange::MissTarget(f64::from(miss_target as f32)))
        );
    }
}

#[test]
fn a_hopeless_path_gets_the_best_there_is() {
    let problem = solve::Problem {
        loss: 0.99,
        source_symbols: 64,
        rounds: 1,
        miss_target: 1e-6,
    };
    for kind in [PolicyKind::Pangolin, PolicyKind::Exact] {
        let solution = solve::solve(kind, &problem).expect("in range");
        assert!(
            solution.miss_probability > 0.99 && solution.miss_probability <= 1.0,
            "{solution:?}"
        );
    }
}
