//! What is in doubt of what is expected, and what is bought for it: as little as is needed.
#![cfg(feature = "solve")]

#[path = "support/steering.rs"]
mod parts;
#[path = "support/steered.rs"]
mod support;

use std::time::Duration;

use parts::{burst_of_20_ms, for_ever, in_bursts, means};
use punctual_policy::{Burst, Doubt, Policy, Situation, Steering, Timing};
use support::{Random, steered};

/// The share of messages that is expected to miss, where so much of it is in doubt: in three runs of 70,000 that follow each other.
fn expected_in_doubt(first: Situation, doubt: Doubt) -> [f64; 3] {
    let policy = steered(1e-3);
    let miss = |priced: &Situation| f64::from(policy.miss_at_price(priced).expect("tables"));
    means(&policy, first, doubt, 70_000, miss)
}

/// A regression: what was in doubt was never paid for. Between two decisions, of which one misses a tenth too often, the price stayed where it was:
/// 0.106 % late for 0.1 at 20 %, in two rounds.
#[test]
fn what_is_forgiven_is_not_forgiven_for_ever() {
    let doubt = Doubt {
        deviation: 0.07,
        lasting: 0.07,
        learned_for: 20_000.0,
        passes_after: 0.0,
    };
    let expected = expected_in_doubt(Situation::first(1, 2, 0.2), doubt);
    // Of seventy misses 2.8 may be forgiven, once.
    assert!((0.000_98..0.001_05).contains(&expected[0]), "{expected:?}");
    assert!((0.000_99..0.001_01).contains(&expected[2]), "{expected:?}");
}

/// A regression: what it is in doubt for a while was forgiven for as long as what may last. One repair symbol misses 18 % too often at 2 %, k = 2; two seldom:
/// 0.112 % late for 0.1 after 20,000 messages and 50,000 more, with nothing to excuse it but that it was not known for half a minute which level of loss it was.
#[test]
fn what_may_not_last_is_forgiven_for_a_while() {
    let doubt = Doubt {
        deviation: 0.25,
        lasting: 0.05,
        learned_for: 60_000.0,
        passes_after: 1_000.0,
    };
    let expected = expected_in_doubt(Situation::first(2, 1, 0.02), doubt);
    assert!((0.000_99..0.001_03).contains(&expected[0]), "{expected:?}");
}

/// Goal: what is expected to miss too much by no more than it may be off by is not paid for before it is seen; what nobody knows, is.
#[test]
fn a_doubt_is_no_reason_to_pay() {
    let policy = steered(1e-3);
    // One copy misses a fifth too much, if that is the loss.
    let first = Situation::first(1, 1, 0.0012);
    let copies = |doubt| {
        let mut steering = Steering::default();
        let mut sent = 0.0;
        for message in 0..10_000 {
            let price = steering.on_message(&policy, &first, 1e-3, for_ever(doubt));
            if message >= 5000 {
                sent += f64::from(policy.decide(&Situation { price, ..first }).symbols);
            }
        }
        sent / 5000.0
    };
    assert!(copies(0.2) < 1.001, "{}", copies(0.2));
    for (doubt, why) in [(0.0, "sure"), (0.05, "nearly sure"), (0.8, "unknown")] {
        assert!(
            (1.1..1.25).contains(&copies(doubt)),
            "{why}: {}",
            copies(doubt)
        );
    }
    // The more misses are seen, the less is in doubt, ..
    let bought = Situation::first(1, 2, 0.0354);
    let expected = |seen_each: u32| {
        let mut steering = Steering::default();
        let mut expected = 0.0;
        for message in 0..20_000 {
            let price = steering.on_message(&policy, &bought, 1e-3, for_ever(0.2));
            steering.on_outcome(message % seen_each == 0, 1e-3);
            if message >= 15_000 {
                let priced = Situation { price, ..bought };
                expected += policy.miss_at_price(&priced).expect("it has tables");
            }
        }
        assert!(steering.correction(1e-3) <= 1.0);
        expected / 5000.0
    };
    assert!(expected(1000) > 0.001_2, "{}", expected(1000));
    assert!(expected(770) < 0.001_05, "{}", expected(770));
    // .. and beyond chance, it is paid for whatever was doubted.
    let mut steering = Steering::default();
    for message in 0..20_000 {
        steering.on_message(&policy, &first, 1e-3, for_ever(0.2));
        steering.on_outcome(message % 500 == 0, 1e-3);
    }
    assert!(steering.correction(1e-3) > 1.0);
    let price = steering.price();
    assert!(policy.decide(&Situation { price, ..first }).symbols > 1);
}

/// Goal: where bursts take whole messages, and no more of them than may be late, nothing is bought, neither for chance that was seen nor because a bad
/// second has raised the price. (With bursts of 20 ms and 1 % of loss for a target of 1 %, one round and k = 4 cost 11 % where 1 will do.)
#[test]
fn where_nothing_is_needed_nothing_is_bought() {
    let policy = steered(1e-2);
    let at = |loss| Situation {
        burst: Burst {
            correlation: 0.98,
            lasts: Duration::from_millis(20),
            age: Duration::from_secs(1),
            ..Burst::default()
        },
        timing: Timing {
            slack: Duration::from_millis(47),
            ..Timing::default()
        },
        ..Situation::first(1, 1, loss)
    };
    let mut steering = Steering::default();
    let mut copies = |messages: u32, loss| {
        let mut copies = 0;
        for message in 0..messages {
            let price = steering.on_message(&policy, &at(loss), 1e-2, for_ever(0.05));
            let sent = policy.decide(&Situation { price, ..at(loss) }).symbols;
            copies += u32::from(sent) - 1;
            // Six too many of the first thousand: luck.
            let is_missed = message.is_multiple_of(100) || messages > 900 && message % 150 == 1;
            steering.on_outcome(is_missed, 1e-2);
        }
        f64::from(copies) / f64::from(messages)
    };
    assert!(copies(1000, 0.01) < 0.01);
    assert!(copies(800, 0.3) > 0.5, "a bad spell");
    let after = copies(800, 0.01);
    assert!(after < 0.1, "0.31 if it falls step by step: {after}");
}

/// A regression: where messages just meet their target with nothing bought, the price stayed where those after a loss, of which a tenth is lost, had copies: one message in a
/// hundred.
#[test]
fn after_a_loss_no_more_is_bought_than_is_needed() {
    let policy = steered(1e-2);
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let mut steering = Steering::default();
    let mut copies = |messages: u32, loss: f32| {
        let mut copies = 0;
        for message in 0..messages {
            let is_after = message.is_multiple_of(100);
            let burst = Burst {
                was_lost: is_after,
                age: Duration::from_millis(if is_after { 50 } else { 1000 }),
                ..burst_of_20_ms(0.98)
            };
            let first = Situation {
                loss,
                loss_mean: loss,
                ..in_bursts(burst, 1, 47, &mut random)
            };
            let price = steering.on_message(&policy, &first, 1e-2, for_ever(0.05));
            copies += policy.decide(&Situation { price, ..first }).symbols - 1;
            steering.on_outcome(is_after, 1e-2);
        }
        f64::from(copies) / f64::from(messages)
    };
    copies(800, 0.3);
    copies(4000, 0.0105);
    let after = copies(10_000, 0.0105);
    assert!(after < 0.005, "{after}");
}

/// A regression: what is doubted of plain sending was paid for after a bad second, when copies were bought, where it was not before: misses seen, which were
/// luck, counted against the doubt then. (With bursts of 20 ms and 1 % of loss for a target of 1 %, one round and k = 1 cost 5.6 % where 1 will do.)
#[test]
fn a_doubt_is_the_same_whatever_is_bought() {
    let policy = steered(1e-2);
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let mut steering = Steering::default();
    let mut copies = |messages: u32, loss, lucky_each: u32| {
        let mut copies = 0;
        for message in 0..messages {
            let first = Situation {
                loss,
                loss_mean: loss,
                ..in_bursts(burst_of_20_ms(0.98), 1, 47, &mut random)
            };
            let price = steering.on_message(&policy, &first, 1e-2, for_ever(0.05));
            copies += policy.decide(&Situation { price, ..first }).symbols - 1;
            let is_missed = message % 100 == 0 || message % lucky_each == 1;
            steering.on_outcome(is_missed, 1e-2);
        }
        f64::from(copies) / f64::from(messages)
    };
    let before = copies(10_000, 0.0108, 800);
    assert!(before < 0.05, "{before}");
    assert!(copies(800, 0.3, 800) > 0.5, "a bad spell");
    let after = copies(4000, 0.0108, 4000);
    assert!(after < 0.05, "{after}");
}
