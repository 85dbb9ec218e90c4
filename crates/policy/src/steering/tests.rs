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

/// Two paths under one price: one that loses, and takes a search, and one that loses nothing and needs none.
struct Unlike;

impl Policy for Unlike {
    fn name(&self) -> &'static str {
        "unlike"
    }
    fn decide(&self, situation: &Situation) -> crate::Action {
        crate::Action::burst(situation.deficit.into())
    }
    fn expected_symbols(&self, _: u8, _: u16, _: f32) -> f32 {
        0.0
    }
    fn miss_at_price(&self, situation: &Situation) -> Option<f32> {
        let missed = libm::exp2f(-situation.price?.log2());
        Some(if situation.is_intricate() {
            missed
        } else {
            0.0
        })
    }
}

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
    let mut steering = Steering::default();
    let mut missed = 0.0;
    for message in 0..40_000 {
        let first = if message % 2 == 0 { bursty } else { clean };
        let price = steering.on_message(&Unlike, &first, 0.01, Doubt::default());
        if message >= 20_000 {
            missed += Unlike
                .miss_at_price(&Situation { price, ..first })
                .expect("always");
        }
    }
    let share = missed / 20_000.0;
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

/// Bursts of which a symbol more than sixteen times a target's worth of misses buys a twentieth: what is missed below that, as a share of the target.
struct Edge(f32);

const EDGE_TARGET: f32 = 0.01;

impl Edge {
    fn careful() -> f32 {
        libm::log2f(CAREFUL_MAX / EDGE_TARGET)
    }
}

impl Policy for Edge {
    fn name(&self) -> &'static str {
        "edge"
    }
    fn decide(&self, situation: &Situation) -> crate::Action {
        crate::Action::burst(situation.deficit.into())
    }
    fn expected_symbols(&self, _: u8, _: u16, _: f32) -> f32 {
        0.0
    }
    fn miss_at_price(&self, situation: &Situation) -> Option<f32> {
        let log2 = situation.price?.log2();
        let share = match log2 - Self::careful() {
            ..0.0 => 40.0,
            ..0.3 => self.0,
            _ => self.0 - 0.05,
        };
        Some(share * EDGE_TARGET)
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
    for (at_first, expected) in [(1.03, 0.995..1.005), (0.99, 0.985..0.995)] {
        let edge = Edge(at_first);
        let mut steering = Steering::default();
        let mut missed = 0.0;
        for message in 0..400_000 {
            let price = steering.on_message(&edge, &bursty, EDGE_TARGET, Doubt::default());
            let of_price = edge.miss_at_price(&Situation { price, ..bursty });
            if message >= 200_000 {
                missed += of_price.expect("always");
            }
        }
        assert!(steering.looked.is_approximate());
        let share = missed / 200_000.0 / EDGE_TARGET;
        assert!(expected.contains(&share), "{at_first}: {share}");
    }
}
