use super::*;

/// A regression: after a long good time what was expected of approximations counted for a thousandth, and the first 28 misses of a path that had begun to lose in bursts
/// bought nothing.
#[test]
fn a_good_time_is_worth_a_quarter_at_most() {
    let mut steering = Steering::default();
    for _ in 0..400_000 {
        steering.count();
        steering.on_outcome(false, 0.001);
    }
    for correction in [
        steering.correction(0.001),
        steering.correction_of_approximation(),
    ] {
        assert!((0.24..0.26).contains(&correction), "{correction}");
    }
}

/// A regression: after 2^32 messages none was drawn any more, and the price of an intricate path moved no more.
#[test]
fn however_many_messages_some_are_drawn() {
    let mut steering = Steering {
        messages: u32::MAX - 100,
        ..Steering::default()
    };
    let drawn = (0..10_000)
        .filter(|_| {
            steering.count();
            is_drawn(steering.messages)
        })
        .count();
    assert!((2400..2600).contains(&drawn), "{drawn}");
    assert!(steering.price().is_some());
}

/// A regression: four misses of a promise of one in ten million were never paid off.
#[test]
fn misses_of_a_strict_promise_are_paid_off() {
    let mut steering = Steering::default();
    for _ in 0..5 {
        steering.on_outcome(true, 1e-7);
    }
    let corrected = steering.correction(1e-7);
    for _ in 0..50_000_000 {
        steering.on_outcome(false, 1e-7);
    }
    assert!(corrected > 2.0, "{corrected}");
    assert!(
        (steering.correction(1e-7) - 1.0).abs() < 1e-6,
        "{steering:?}"
    );
}

#[test]
fn a_miss_that_was_none_leaves_no_trace() {
    let (mut steering, mut other) = (Steering::default(), Steering::default());
    for message in 0..1000 {
        let is_wrong = message % 100 == 7;
        steering.on_outcome(is_wrong, 0.001);
        other.on_outcome(false, 0.001);
        if is_wrong {
            assert!(steering.correction_of_approximation() >= other.correction_of_approximation());
            steering.on_correction(-0.25, 0.001);
            steering.on_correction(-0.75, 0.001);
        }
    }
    assert!((steering.excess - other.excess).abs() < 1e-6);
}

/// A policy whose messages miss so often.
struct Missing<F>(F);

impl<F: Fn(&Situation) -> Option<f32> + Send + Sync> Policy for Missing<F> {
    fn name(&self) -> &'static str {
        "missing"
    }
    fn decide(&self, situation: &Situation) -> crate::Action {
        crate::Action::burst(situation.deficit.into())
    }
    fn expected_symbols(&self, _: u8, _: u16, _: f32) -> f32 {
        0.0
    }
    fn miss_at_price(&self, situation: &Situation) -> Option<f32> {
        (self.0)(situation)
    }
}

/// What so many messages, each in its situation, miss on average in the second half of them.
fn missed_late(
    steering: &mut Steering,
    policy: &dyn Policy,
    messages: u32,
    miss_target: f32,
    situation_of: impl Fn(u32) -> Situation,
) -> f32 {
    let mut missed = 0.0;
    for message in 0..messages {
        let first = situation_of(message);
        let price = steering.on_message(policy, &first, miss_target, Doubt::default());
        if message >= messages / 2 {
            missed += (policy.miss_at_price(&Situation { price, ..first })).expect("always");
        }
    }
    missed / (messages / 2) as f32
}

/// Two sessions under one price: one on a path that loses, and takes a search, and one on a path that loses nothing and needs none.
/// A regression: messages that take no search stood for those between two searches, and the price of both came to rest where four times as many were missed as may be.
#[test]
fn what_is_looked_up_stands_for_nothing_else() {
    let clean = Situation::first(1, 2, 0.01);
    let bursty = Situation {
        burst: Burst {
            correlation: 0.9,
            lasts: Duration::from_millis(5),
            ..Burst::default()
        },
        ..clean
    };
    assert!(bursty.is_intricate() && !clean.is_intricate());
    let unlike = Missing(|situation: &Situation| {
        let missed = libm::exp2f(-situation.price?.log2());
        Some(if situation.is_intricate() {
            missed
        } else {
            0.0
        })
    });
    let share = missed_late(&mut Steering::default(), &unlike, 40_000, 0.01, |message| {
        if message % 2 == 0 { bursty } else { clean }
    });
    assert!((0.008..0.012).contains(&share), "{share}");
}

/// A regression: where targets were steered together (a stream's fifth is, with its fourth), what the lax one kept the misses below was less than what the strict
/// one allows, and `clamp` panicked.
#[test]
fn targets_that_are_steered_together_do_no_harm() {
    let mut steering = Steering::default();
    for round in 0..40_000_u32 {
        let miss_target = if round % 100 < 2 { 0.5 } else { 0.001 };
        steering.count();
        steering.on_outcome(round % 3 == 0, miss_target);
        let most = [-30.0, 100.0][round as usize / 7 % 2];
        steering.move_to(0.0, most, miss_target);
        assert!(steering.correction(miss_target).is_finite());
    }
}

/// A regression: with bursts of 20 ms, 10 % and one flight five symbols just meet one in a hundred, and the price ended before the fifth. What just meets the target with fewer
/// is not to have one more, to keep away from it: that cost 1.8 times as much.
#[test]
fn the_target_itself_is_worth_more_than_keeping_away_from_it() {
    let bursty = Situation {
        burst: Burst {
            correlation: 0.9,
            surely: 0.9,
            lasts: Duration::from_millis(20),
            age: Duration::MAX,
            ..Burst::default()
        },
        ..Situation::first(1, 1, 0.1)
    };
    let careful = libm::log2f(CAREFUL_MAX / 0.01);
    for (at_first, expected) in [(1.03, 0.995..1.005), (0.99, 0.985..0.995)] {
        let edge = Missing(|situation: &Situation| {
            let share = match situation.price?.log2() - careful {
                ..0.0 => 40.0,
                ..0.3 => at_first,
                _ => at_first - 0.05,
            };
            Some(share * 0.01)
        });
        let mut steering = Steering::default();
        let share = missed_late(&mut steering, &edge, 400_000, 0.01, |_| bursty) / 0.01;
        assert!(steering.looked.is_approximate());
        assert!(expected.contains(&share), "{at_first}: {share}");
    }
}
