//! The price in a closed loop: messages over a channel of independent loss or bursts, their price moved by what came of them.
#![cfg(feature = "solve")]

#[path = "support/steering.rs"]
mod parts;
#[path = "support/steered.rs"]
mod support;

use std::time::Duration;

use parts::{SURE, burst_of_20_ms, in_bursts, means};
use punctual_policy::solve::{Problem, solve};
use punctual_policy::{
    Action, Burst, ParityPrice, Policy, PolicyKind, Situation, Steered, Steering, Timing,
    predict_miss,
};
use support::{Random, steered};

/// Symbols sent, and messages missed.
struct Achieved {
    symbols: f64,
    /// Of the symbols of a message.
    variance: f64,
    missed: f64,
}

/// Sends `messages` of k symbols in `rounds`; of each symbol the policy thinks that it is lost with `believed`.
fn achieve(
    steering: &mut Steering,
    policy: &Steered,
    first: &Situation,
    loss: f64,
    messages: u32,
    random: &mut Random,
) -> Achieved {
    let mut achieved = Achieved {
        symbols: 0.0,
        variance: 0.0,
        missed: 0.0,
    };
    let mut squares = 0.0;
    let target = policy.miss_target() as f32;
    for _ in 0..messages {
        let draw = (random.unit() * 4e9) as u32;
        let first = Situation { draw, ..*first };
        let price = steering.on_message(policy, &first, target, SURE);
        let mut now = Situation { price, ..first };
        while now.rounds_left > 0 && now.deficit > 0 {
            let flight = policy.decide(&now).symbols;
            now.sent += flight;
            achieved.symbols += f64::from(flight);
            let arrived = (0..flight).filter(|_| random.unit() >= loss).count();
            now.deficit = now.deficit.saturating_sub(arrived as u8);
            now.rounds_left -= 1;
        }
        squares += f64::from(now.sent).powi(2);
        steering.on_outcome(now.deficit > 0, target);
        achieved.missed += f64::from(u8::from(now.deficit > 0));
    }
    let mean = achieved.symbols / f64::from(messages);
    achieved.variance = squares / f64::from(messages) - mean * mean;
    achieved
}

/// Goal: under independent loss, the cost of the constrained optimum: within 0.1 pp for two rounds and more, within 2 pp for one,
/// with the target met; beyond that, what chance does to the messages that were drawn (three standard deviations).
#[test]
fn uniform_loss_costs_what_the_optimum_costs() {
    const MESSAGES: u32 = 40_000;
    let policy = steered(1e-3);
    for loss in [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2] {
        for (k, rounds) in [
            (1, 1),
            (4, 1),
            (16, 1),
            (1, 2),
            (4, 2),
            (16, 2),
            (4, 3),
            (16, 3),
            (4, 4),
        ] {
            let mut random = Random(0x1234_5678_9ABC_DEF1);
            let first = Situation::first(k, rounds, loss as f32);
            let mut steering = Steering::default();
            let mut achieve =
                |messages| achieve(&mut steering, &policy, &first, loss, messages, &mut random);
            achieve(20_000);
            let achieved = achieve(MESSAGES);
            let problem = Problem {
                loss,
                source_symbols: k,
                rounds,
                miss_target: 1e-3,
            };
            let optimum = solve(PolicyKind::Exact, &problem).expect("in range");
            let (messages, k) = (f64::from(MESSAGES), f64::from(k));
            let cost = achieved.symbols / messages / k - 1.0;
            let best = optimum.expected_symbols / k - 1.0;
            let allowed = if rounds == 1 { 0.02 } else { 0.001 };
            let chance = 3.0 * (achieved.variance / messages).sqrt() / k;
            assert!(
                cost <= best + allowed + chance,
                "{problem:?}: {cost} beside {best}, {chance} by chance"
            );
            let missed = achieved.missed / messages;
            let chance = 3.0 * (1e-3 / messages).sqrt();
            assert!(missed <= 1e-3 + chance, "{problem:?}: {missed}");
        }
    }
}

/// A regression: where what is expected takes a search, messages between two of them were not counted after the price had fallen too low, and
/// twice as many as were meant were expected to miss.
#[test]
fn messages_between_two_searches_count() {
    let policy = steered(1e-2);
    // In bursts a deviation less than the 40 to 120 that are allowed is aimed at.
    for (correlation, aimed) in [(0.0, 1.0), (0.25, 0.88), (0.6, 0.88)] {
        let mut steering = Steering::default();
        let (mut random, mut expected) = (Random(0x1234_5678_9ABC_DEF1), 0.0);
        for message in 0..12_000 {
            let first = in_bursts(burst_of_20_ms(correlation), 4, 100, &mut random);
            let price = steering.on_message(&policy, &first, 1e-2, SURE);
            if message >= 4000 {
                let priced = Situation { price, ..first };
                expected += policy.miss_at_price(&priced).expect("it has tables");
            }
        }
        let share = expected / 8000.0 / aimed;
        assert!((0.009..0.011).contains(&share), "{correlation}: {share}");
    }
}

/// Goal: where losses come in bursts and expectations are approximations, less than the target is aimed at while few misses would have been allowed, and
/// the target itself when many were.
#[test]
fn an_approximation_aims_lower_until_much_is_seen() {
    let policy = steered(1e-2);
    let mut steering = Steering::default();
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let mut expected = |messages: u32| {
        let mut expected = 0.0;
        for _ in 0..messages {
            let first = in_bursts(burst_of_20_ms(0.6), 4, 100, &mut random);
            let price = steering.on_message(&policy, &first, 1e-2, SURE);
            let priced = Situation { price, ..first };
            let miss = policy.miss_at_price(&priced).expect("it has tables");
            steering.on_outcome(random.unit() < f64::from(miss), 1e-2);
            expected += miss;
        }
        f64::from(expected) / f64::from(messages)
    };
    let early = expected(1000);
    assert!((0.003..0.0085).contains(&early), "{early}");
    expected(39_000);
    let late = expected(20_000);
    assert!((0.0085..0.0115).contains(&late), "{late}");
}

/// A regression: what was decided in bursts is drawn from the points of a grid, and what was expected was that of the best decision. A session that two losses had
/// taught of bursts, which there were not, spent 7 points too much.
#[test]
fn what_is_decided_misses_as_often_as_expected() {
    let policy = steered(1e-3);
    let mut steering = Steering::default();
    let (mut random, mut expected, mut missed) = (Random(0x1234_5678_9ABC_DEF1), 0.0, 0.0);
    let burst = Burst {
        correlation: 0.29,
        lasts: Duration::from_micros(1900),
        age: Duration::from_millis(77),
        ..Burst::default()
    };
    for message in 0..50_000 {
        let first = in_bursts(burst, 1, 18, &mut random);
        let price = steering.on_message(&policy, &first, 1e-3, SURE);
        if message >= 10_000 {
            let priced = Situation { price, ..first };
            expected += f64::from(policy.miss_at_price(&priced).expect("it has tables"));
            // Spread so far apart, copies are lost each by itself.
            missed += 0.05_f64.powi(policy.decide(&priced).symbols.into());
        }
    }
    let (expected, missed) = (expected / 40_000.0, missed / 40_000.0);
    assert!((0.000_96..0.001_04).contains(&expected), "{expected}");
    assert!((0.000_93..0.001_04).contains(&missed), "{missed}");
}

/// A regression: of two flights the last was expected to be as the tables have it, where only one symbol was lost, but leaves spread as after a burst, for another price
/// of a second symbol. Between the two prices half as many misses were expected as came: 0.126 % were late for 0.1 with bursts of 5 ms.
#[test]
fn two_flights_in_bursts_miss_as_often_as_expected() {
    let policy = steered(1e-3);
    let burst = Burst {
        correlation: 0.56,
        lasts: Duration::from_millis(7),
        age: Duration::from_secs(1),
        ..Burst::default()
    };
    let timed = |rounds, slack_ms, burst| Situation {
        burst,
        timing: Timing {
            slack: Duration::from_millis(slack_ms),
            round_time: Duration::from_millis(60),
            ..Timing::default()
        },
        ..Situation::first(1, rounds, 0.05)
    };
    // Copies of a flight leave so far apart that they are lost each by itself.
    let lost = |symbols: u16| 0.05_f64.powi(symbols.into());
    let missed = |priced: &Situation| {
        let sent = policy.decide(priced).symbols;
        let again = Situation {
            draw: priced.draw,
            price: priced.price,
            sent,
            rounds_planned: 2,
            ..timed(
                1,
                30,
                Burst {
                    was_lost: true,
                    age: Duration::from_millis(60),
                    ..burst
                },
            )
        };
        lost(sent) * lost(policy.decide(&again).symbols)
    };
    let [_, missed, _] = means(&policy, timed(2, 90, burst), SURE, 20_000, missed);
    assert!((0.0009..0.0011).contains(&missed), "{missed}");
}

/// A regression: what was decided at a point of the grid was expected to miss as often as at that point's loss. Where of the two points around the loss the
/// lower sends a symbol less, that is too seldom: 0.111 % were late for 0.1 at 20 %, in two rounds or three.
#[test]
fn what_is_decided_at_the_points_is_expected_at_the_loss() {
    let policy = steered(1e-3);
    for (loss, rounds, k) in [
        (0.2, 2, 1),
        (0.2, 3, 1),
        (0.2, 2, 4),
        (0.17, 2, 1),
        (0.1, 3, 4),
    ] {
        let first = Situation::first(k, rounds, loss);
        let miss = |priced: &Situation| predict_miss(&policy, priced, f64::from(loss), &[]);
        let [_, missed, _] = means(&policy, first, SURE, 10_000, miss);
        assert!(
            (0.000_96..0.001_04).contains(&missed),
            "{loss}, {rounds} rounds, k = {k}: {missed}"
        );
    }
}

/// A mixture of two decisions, one of which misses ten times as often, drawn anew for each message by a share that falls as the price rises.
struct Mixture;

impl Policy for Mixture {
    fn name(&self) -> &'static str {
        "mixture"
    }
    fn decide(&self, situation: &Situation) -> Action {
        Action::burst(situation.deficit.into())
    }
    fn expected_symbols(&self, _: u8, _: u16, _: f32) -> f32 {
        0.0
    }
    fn miss_at_price(&self, situation: &Situation) -> Option<f32> {
        let often = (0.1 * (12.0 - situation.price?.log2())).clamp(0.0, 1.0);
        let is_often = (situation.draw as f32) < often * u32::MAX as f32;
        Some(if is_often { 2.5e-3 } else { 2.5e-4 })
    }
}

/// A regression: three messages in a row that missed more than half a target too much were taken for a change of the path, and the price hurried; but of a
/// mixture that just meets the target every third message is one, and chance makes such runs.
#[test]
fn a_run_that_chance_makes_is_no_change_of_the_path() {
    let miss = |priced: &Situation| f64::from(Mixture.miss_at_price(priced).expect("always"));
    let [_, expected, _] = means(&Mixture, Situation::first(1, 2, 0.05), SURE, 30_000, miss);
    assert!((0.000_97..0.001_03).contains(&expected), "{expected}");
}

/// Goal: the target is met although the policy believes in half the loss that there is: what it saw corrects what it expects.
#[test]
fn wrong_beliefs_are_corrected() {
    let policy = steered(1e-2);
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let first = Situation::first(4, 1, 0.05);
    let mut steering = Steering::default();
    achieve(&mut steering, &policy, &first, 0.1, 20_000, &mut random);
    assert!(
        steering.correction(1e-2) > 1.2,
        "{}",
        steering.correction(1e-2)
    );
    let achieved = achieve(&mut steering, &policy, &first, 0.1, 40_000, &mut random);
    let missed = achieved.missed / 40_000.0;
    assert!((0.005..0.0135).contains(&missed), "{missed}");
}

/// Goal: at the highest price misses and what the target allows of them are set off against each other, as below it; but more of them
/// than allowed raise nothing further. (Only what is allowed was counted: 1.2 % were late for a target of 1 where bursts take 10 %,
/// since the price fell when it should not.)
#[test]
fn misses_at_the_highest_price_count() {
    let policy = steered(1e-2);
    let hopeless = Situation::first(1, 1, 0.9);
    let mut steering = Steering::default();
    // So many that what is chance does not grow with their number any more.
    for _ in 0..40_000 {
        steering.on_message(&policy, &Situation::first(1, 1, 0.001), 1e-2, SURE);
    }
    for _ in 0..50 {
        steering.on_outcome(true, 1e-2);
    }
    for _ in 0..100 {
        steering.on_message(&policy, &hopeless, 1e-2, SURE);
    }
    let highest = steering.correction(1e-2);
    assert!(highest > 2.0, "{highest}");
    let mut send = |messages: u32, is_missed: fn(u32) -> bool| {
        for message in 1..=messages {
            steering.on_message(&policy, &hopeless, 1e-2, SURE);
            steering.on_outcome(is_missed(message), 1e-2);
        }
        steering.correction(1e-2) / highest
    };
    let as_promised = send(2000, |message| message.is_multiple_of(100));
    assert!((0.6..=1.0).contains(&as_promised), "{as_promised}");
    let far_more = send(20_000, |_| true);
    assert!((0.8..=1.001).contains(&far_more), "{far_more}");
    let none = send(1000, |_| false);
    assert!(none < 0.5, "{none}");
}

/// Goal: what chance does not explain is corrected until it is made up for, not only until there is no more of it. (Over Wi-Fi 5, 15 misses where four were
/// allowed were corrected by 2.7, and with copies of 17 messages in 20 one in a thousand was late from there on.)
#[test]
fn what_chance_does_not_explain_is_made_up_for() {
    let policy = steered(1e-3);
    let correction = |every: u32| {
        let mut steering = Steering::default();
        for message in 1..=4000_u32 {
            steering.on_message(&policy, &Situation::first(1, 1, 0.0045), 1e-3, SURE);
            steering.on_outcome(message.is_multiple_of(every), 1e-3);
        }
        steering.correction(1e-3)
    };
    // Allowed are four, and four more are luck.
    let [eight, ten, fifteen] = [500, 400, 266].map(correction);
    assert!(eight < 1.001, "{eight}");
    assert!((1.2..1.5).contains(&ten), "{ten}");
    assert!(fifteen > 8.0, "{fifteen}");
}

/// Goal: where expectations are right, luck costs nothing however long a stream lasts. (Of a hundred misses ten more or less are luck, and
/// were corrected as if they were none: with 10 % loss, one round and k = 1 that cost 202.9 % where 200 will do, and 201.3 now.)
/// Method: messages that are expected to miss as often as allowed, and do.
#[test]
fn luck_is_no_reason_to_correct() {
    let policy = steered(1e-2);
    let first = Situation::first(4, 1, 0.05);
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let mut corrected = 0;
    for _ in 0..100 {
        let mut steering = Steering::default();
        for _ in 0..30_000 {
            steering.on_message(&policy, &first, 1e-2, SURE);
            steering.on_outcome(random.unit() < 0.01, 1e-2);
            corrected += u32::from((steering.correction(1e-2) - 1.0).abs() > 0.2);
        }
    }
    let share = f64::from(corrected) / 3e6;
    assert!(share < 0.06, "{share}");
}

/// Goal: no oscillation: on a steady path the price comes to rest within two octaves, and stays there.
#[test]
fn the_price_comes_to_rest() {
    let policy = steered(1e-3);
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    for (loss, rounds) in [(0.02, 1), (0.02, 2), (0.2, 2)] {
        let first = Situation::first(4, rounds, loss as f32);
        let mut steering = Steering::default();
        achieve(&mut steering, &policy, &first, loss, 3000, &mut random);
        let mut range = (f32::INFINITY, 0.0_f32);
        for _ in 0..200 {
            achieve(&mut steering, &policy, &first, loss, 100, &mut random);
            let log2 = steering.price().expect("messages were sent").log2();
            range = (range.0.min(log2), range.1.max(log2));
        }
        assert!(range.1 - range.0 < 2.0, "{loss} {rounds}: {range:?}");
    }
}

/// Goal: cheaper than Hairpin's policy at the same lateness, at 10, 20 and 30 % loss and k = 8. Hairpin decides by a price of
/// parity; the miss that it comes to becomes the target.
#[test]
fn cheaper_than_hairpin_at_its_own_lateness() {
    for loss in [0.1, 0.2, 0.3] {
        for rounds in [2, 3] {
            for misses in [1e-3, 1e-4, 1e-5] {
                let price = ParityPrice::new(misses).expect("in range");
                let problem = Problem {
                    loss,
                    source_symbols: 8,
                    rounds,
                    miss_target: 1e-3,
                };
                let hairpin = solve(PolicyKind::Hairpin(price), &problem).expect("in range");
                let target = Problem {
                    miss_target: hairpin.miss_probability,
                    ..problem
                };
                let ours = solve(PolicyKind::Steered, &target).expect("in range");
                assert!(
                    ours.expected_symbols < hairpin.expected_symbols,
                    "{target:?}: {} beside {}",
                    ours.expected_symbols,
                    hairpin.expected_symbols
                );
            }
        }
    }
}
