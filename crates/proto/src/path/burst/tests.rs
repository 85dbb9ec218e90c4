use super::*;

/// Two packets together every 20 ms; every 50th moment begins a burst of so many moments.
fn met(bursts: usize, moments: u64) -> Bursts {
    let mut met = Bursts::default();
    for moment in 0..10_000_u64 {
        let lost = moment % 50 < bursts as u64;
        for packet in 0..2 {
            let sent_at = Instant::from_micros(1_000_000 + moment * moments * 1000 + packet);
            let (before_at, before_lost) = met.last();
            met.record(sent_at, lost, 0.02 * bursts as f32);
            if before_lost {
                met.note_after_loss(sent_at.since(before_at), lost);
            }
        }
    }
    met
}

/// Flights of 16 packets, of which `is_lost` says what becomes, by flight and draw: how unevenly they lose.
fn uneven(loss: f32, is_lost: impl Fn(u32, u32) -> bool) -> f32 {
    let mut met = Bursts::default();
    let mut random = 7_u32;
    for flight in 0..20_000 {
        let lost: [bool; 16] = core::array::from_fn(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            is_lost(flight, random >> 16)
        });
        for (at, &lost_now) in lost.iter().enumerate() {
            let lag = |packets: u64| Duration::from_micros(50 * packets);
            if at >= 1 && lost[at - 1] {
                met.note_after_loss(lag(1), lost_now);
            }
            for first in (0..at.saturating_sub(1)).filter(|first| lost[*first] && !lost[first + 1])
            {
                met.note_beyond(lag((at - first) as u64), lost_now);
            }
        }
    }
    met.uneven(loss)
}

#[test]
fn flights_are_uneven_where_bursts_take_a_part() {
    // One flight in a hundred loses a fifth.
    let partly = uneven(0.002, |flight, random| flight % 100 == 0 && random % 5 == 0);
    assert!((0.12..0.28).contains(&partly), "{partly}");
    let wholly = uneven(0.01, |flight, _| flight % 100 == 0);
    assert!(wholly == 0.0, "{wholly}");
    for part in [2, 10, 100] {
        let alone = uneven(1.0 / part as f32, |_, random| random % part == 0);
        assert!(alone == 0.0, "{part}: {alone}");
    }
}

/// A regression: of flights of two nothing ever showed that bursts leave a part. Over Wi-Fi 13, where three quarters of what a bad moment meets are lost, a second copy was
/// thought to be for nothing for ever, and 0.14 % were late where 0.1 was asked.
#[test]
fn pairs_of_which_some_arrive_show_that_bursts_take_a_part() {
    let lag = Duration::from_micros(50);
    let of_pairs = |lost: u32, of: u32| {
        let mut met = Bursts::default();
        for pair in 0..of {
            met.note_after_loss(lag, pair * lost / of != (pair + 1) * lost / of);
        }
        met.uneven(0.002)
    };
    let partly = of_pairs(30, 40);
    assert!((0.6..0.8).contains(&partly), "{partly}");
    assert_eq!(of_pairs(40, 40), 0.0, "bursts take all");
    assert_eq!(of_pairs(5, 6), 0.0, "so few say nothing");
}

/// A regression: only the packet after next was looked at. Over wired network 2 one packet of 16 in three thousand was lost, in ten flights of 5,000 two, and
/// by the eighth of them nobody knew that flights lose unevenly.
#[test]
fn a_few_flights_that_lose_two_show_it() {
    let mut met = Bursts::default();
    for flight in 0..12 {
        met.note_after_loss(Duration::from_micros(50), false);
        for beyond in 2..12 {
            let is_second = beyond == 5 && flight % 3 == 0;
            met.note_beyond(Duration::from_micros(50 * beyond), is_second);
        }
    }
    let uneven = met.uneven(0.0003);
    assert!((0.02..0.05).contains(&uneven), "{uneven}");
    let beyond = Pair {
        lag: Duration::from_micros(250),
        lost: false,
        between: Between::Arrived,
    };
    for _ in 0..3 {
        met.correct_second(beyond);
    }
    assert!(met.uneven(0.0003) <= 0.0, "one may be chance");
}

#[test]
fn independent_losses_have_no_correlation() {
    let mut met = Bursts::default();
    for i in 0..20_000_u64 {
        let lost = (i as u32).wrapping_mul(2_654_435_761) >> 16 & 63 == 0;
        let (_, before_lost) = met.last();
        met.record(Instant::from_micros(1_000_000 + i * 500), lost, 1.0 / 64.0);
        if before_lost {
            met.note_after_loss(Duration::from_micros(500), lost);
        }
    }
    assert!(
        met.shape(1.0 / 64.0, true).0 < 0.1,
        "{:?}",
        met.shape(1.0 / 64.0, true)
    );
}

#[test]
fn a_moment_that_loses_all_is_seen_and_so_is_its_length() {
    let (together, time) = met(1, 20).shape(0.02, true);
    assert!(together > 0.9, "{together}");
    assert!(time < Duration::from_millis(8), "{time:?}");
    let (together, time) = met(5, 20).shape(0.1, true);
    assert!(together > 0.9, "{together}");
    assert!(
        time > Duration::from_millis(40) && time < Duration::from_millis(160),
        "{time:?}"
    );
    let independent = 0.02_f64.powi(4);
    assert!(met(1, 20).all_lost(4, 0.02) > 100.0 * independent);
}

/// A regression: five of ten packets that happened to be lost some milliseconds after others made every flight a burst, where a fifth of all
/// is lost. It cost 5 points of redundancy with k = 4 and one round.
#[test]
fn a_few_losses_that_met_by_chance_are_no_burst() {
    let mut met = Bursts::default();
    for pair in 0..200 {
        met.note_after_loss(Duration::from_micros(100), pair % 5 == 0);
    }
    for pair in 0..10 {
        met.note_after_loss(Duration::from_millis(5), pair % 2 == 0);
    }
    let (together, _) = met.shape(0.2, true);
    assert!(together < 0.15, "{together}");
}

/// A regression: where a fifth is lost, 8 of 20 copies lost with what they repeat were a burst for good, since copies then leave apart: a quarter of all sessions
/// with two rounds sent a copy more than they had to.
#[test]
fn some_that_met_by_chance_before_copies_left_apart_are_no_burst() {
    let met = |lost: usize, of: usize| {
        let mut met = Bursts::default();
        (0..of).for_each(|pair| {
            met.note_after_loss(Duration::from_micros(100), pair < lost);
        });
        met
    };
    let by_chance = met(8, 20).shape(0.2, false).0;
    assert!(by_chance < NOTABLE, "{by_chance}");
    let burst = met(8, 20).shape(0.01, false).0;
    assert!(burst > 0.35, "{burst}");
}

/// A regression: where a fifth is lost, two copies that were lost together by chance were a burst for good, since what is thought to be lost together leaves
/// apart, and is never seen together. So four sessions in eight steered as if they knew little, and spent 358 % where 347 will do.
#[test]
fn two_that_met_by_chance_are_not_surely_a_burst() {
    let mut by_chance = Bursts::default();
    for _ in 0..2 {
        by_chance.note_after_loss(Duration::from_micros(100), true);
    }
    for pair in 0..300 {
        by_chance.note_after_loss(Duration::from_millis(4), pair % 5 == 0);
    }
    let (seems, surely) = (by_chance.shape(0.2, true).0, by_chance.surely(0.2));
    assert!(seems > 0.2 && surely < 0.01, "{seems} {surely}");
    let bursts = met(5, 20).surely(0.1);
    assert!(bursts > 0.7, "{bursts}");
    assert!(Bursts::default().surely(0.1) <= 0.0);
}

#[test]
fn what_is_left_after_a_round_is_no_chance() {
    let round = Duration::from_millis(60);
    let again = |lost_of_100: u32| {
        let mut met = Bursts::default();
        for after_loss in 0..200_u32 {
            met.note_after_loss(round, after_loss * 37 % 100 < lost_of_100);
        }
        met.again(round, 0.05)
    };
    assert!(again(5) < 1e-6, "as many as ever: {}", again(5));
    assert!((0.04..0.1).contains(&again(14)), "{}", again(14));
    assert!(Bursts::default().again(round, 0.05) < 1e-6);
}

/// A regression: of packets sent together a half of the correlation was believed until they were tested, and with it a half of what had been seen of
/// those 46 ms apart: 0.12 % were late for 0.1 where copies leave 46 ms apart, with bursts of 20 ms.
#[test]
fn what_was_seen_of_packets_apart_stays() {
    let mut met = Bursts::default();
    for after_loss in 0..250 {
        met.note_after_loss(Duration::from_millis(46), after_loss % 10 == 0);
    }
    met.note_after_loss(Duration::from_micros(100), true);
    let (together, time) = met.shape(0.01, true);
    assert!(together <= 0.6, "{together}");
    let apart = together * libm::expf(-0.046 / time.as_secs_f32());
    assert!((0.07..0.11).contains(&apart), "{apart}");
}

/// A regression: one packet that arrived 3 ms after a lost one made all bursts shorter than a millisecond, for good where no other pair was
/// as close.
#[test]
fn one_packet_does_not_end_all_bursts() {
    let mut met = Bursts::default();
    met.note_after_loss(Duration::from_millis(3), false);
    for after_loss in 0..200 {
        met.note_after_loss(Duration::from_millis(12), after_loss % 10 == 0);
    }
    for _ in 0..20 {
        met.note_after_loss(Duration::from_micros(100), true);
    }
    let (together, time) = met.shape(0.01, true);
    assert!(together > 0.9, "{together}");
    assert!(time > Duration::from_millis(4), "{time:?}");
}

/// A regression: one that arrived 100 ms after a lost one left bursts of half a second possible. Sessions of 150 messages spent 15 % on repairs in
/// the busy hour, where 10 keep the same promise.
#[test]
fn bursts_of_unknown_length_are_not_long() {
    let mut met = Bursts::default();
    for pair in 0..4 {
        met.note_after_loss(Duration::from_micros(100), pair % 2 == 0);
    }
    met.note_after_loss(Duration::from_millis(100), false);
    let (together, time) = met.shape(0.03, true);
    assert!(together > 0.4, "{together}");
    assert!(time < Duration::from_millis(60), "{time:?}");
}

/// A regression: single packets, each fifth of which was lost 20 ms after a lost one, made two together as good as one. So no two left together, and
/// over a cellular network 2.5 % were late for 1, in one session of four: in truth half of the copies arrive.
#[test]
fn a_belief_that_nobody_tests_is_not_held() {
    let mut met = Bursts::default();
    for after_loss in 0..100 {
        met.note_after_loss(Duration::from_millis(20), after_loss % 5 == 0);
    }
    let (together, _) = met.shape(0.03, true);
    assert!(together <= UNTESTED, "{together}");
    for _ in 0..20 {
        met.note_after_loss(Duration::from_micros(100), true);
    }
    let (together, _) = met.shape(0.03, true);
    assert!(together > 0.9, "{together}");
}

/// A regression: of packets that leave one by one, bursts were not seen, since none of them left together with another.
#[test]
fn bursts_are_seen_by_single_packets() {
    let mut met = Bursts::default();
    let lag = Duration::from_millis(50);
    for after_loss in 0..40 {
        met.note_after_loss(lag, after_loss % 5 < 3);
    }
    let (together, time) = met.shape(0.05, true);
    assert!(together > 0.4, "{together}");
    assert!(time > lag, "{time:?}");
    let mut met = Bursts::default();
    met.note_after_loss(lag, true);
    let (together, _) = met.shape(0.01, true);
    assert!(together < NOTABLE, "one may be chance: {together}");
}

#[test]
fn what_was_no_loss_is_no_pair() {
    for between in [Between::Nothing, Between::Arrived, Between::NotArrived] {
        for lag_us in [100, 5000, 50_000, 300_000, 900_000] {
            let mut met = Bursts::default();
            let pair = Pair {
                lag: Duration::from_micros(lag_us),
                lost: true,
                between,
            };
            met.note_pair(pair);
            met.correct_second(pair);
            met.forget_pair(Pair {
                lost: false,
                ..pair
            });
            let counted = met.after_loss.iter().chain([&met.beyond]);
            let counted: f32 = counted.map(After::packets).sum();
            assert!(counted == 0.0, "{lag_us}");
        }
    }
}
