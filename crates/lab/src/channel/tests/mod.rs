use std::time::Duration;

use super::*;

mod recorded;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn channel(spec: ChannelSpec, seed: u64) -> Channel {
    Channel::new(Arc::new(spec), seed, 0, Direction::Forward)
}

fn gilbert(loss_share: f64, burst: Duration) -> LossModel {
    LossModel::Gilbert {
        loss_share,
        mean_burst: burst,
        loss_in_good: 0.0,
        loss_in_bad: 1.0,
    }
}

fn gamma(base: u64, mean: u64, sd: u64) -> DelayModel {
    DelayModel::Gamma(Arc::new(
        GammaDelay::fit(ms(base), ms(mean), ms(sd)).unwrap(),
    ))
}

/// Everything at once, but no queue.
fn rich() -> ChannelSpec {
    ChannelSpec {
        delay: gamma(9, 21, 9),
        loss: LossModel::Gilbert {
            loss_share: 0.05,
            mean_burst: ms(12),
            loss_in_good: 0.01,
            loss_in_bad: 0.8,
        },
        jitter: Duration::from_micros(300),
        reorder: Reorder {
            share: 0.05,
            extra: ms(7),
        },
        duplicate: 0.05,
        blackouts: vec![(ms(900), ms(950)), (ms(300), ms(320))],
        outages: Some(Outages {
            period: ms(700),
            length: ms(20),
            share: 0.7,
        }),
        variation: Variation {
            coherence: ms(40),
            slow: Some(Slow {
                share: 0.3,
                coherence: ms(500),
            }),
        },
        rate: None,
    }
}

fn is_lost(fate: Fate) -> bool {
    matches!(fate, Fate::Lost(_))
}

fn delay(fate: Fate) -> u64 {
    match fate {
        Fate::Delivered { delay_us, .. } => delay_us,
        Fate::Lost(reason) => panic!("lost: {reason:?}"),
    }
}

#[test]
fn fates_do_not_depend_on_what_else_is_sent() {
    let mut dense = channel(rich(), 5);
    let mut sparse = channel(rich(), 5);
    for slot in 0..5000 {
        let fates: Vec<_> = (0..3)
            .map(|i| dense.fate(slot * 1000 + i * 250, 1200))
            .collect();
        if slot % 7 == 0 {
            assert_eq!(sparse.fate(slot * 1000, 60), fates[0], "slot {slot}");
        }
    }
    // The same index at another microsecond of the slot: lost or not, as before.
    let mut shifted = channel(rich(), 5);
    let mut again = channel(rich(), 5);
    for slot in 0..5000 {
        let first = shifted.fate(slot * 1000 + 999, 9);
        assert_eq!(
            is_lost(first),
            is_lost(again.fate(slot * 1000, 9)),
            "slot {slot}"
        );
    }
}

#[test]
fn steps_back_are_right() {
    let times: Vec<u64> = (0..20_000).map(|i| i * 400).collect();
    let mut forward = channel(rich(), 9);
    let in_order: Vec<_> = times.iter().map(|&t| forward.fate(t, 100)).collect();
    // Blocks of 16 packets (6 ms), the later half first. Within a slot the order stays, hence whole slots move.
    let mut shuffled = channel(rich(), 9);
    for (block, fates) in times.chunks(20).zip(in_order.chunks(20)) {
        for range in [10..20, 0..10] {
            for i in range {
                assert_eq!(shuffled.fate(block[i], 100), fates[i], "at {}", block[i]);
            }
        }
    }
    // A long step back walks the spells again: the state, and so the loss, is what it was.
    let mut far = channel(ChannelSpec::default().with_loss(gilbert(0.3, ms(20))), 9);
    let before: Vec<_> = (0..60_000).map(|slot| far.fate(slot * 1000, 1)).collect();
    for slot in [0u64, 17, 400, 3000, 59_000] {
        assert_eq!(far.fate(slot * 1000, 1), before[slot as usize]);
    }
}

#[test]
fn seeds_paths_and_directions_are_different() {
    let spec = Arc::new(ChannelSpec::default().with_loss(LossModel::Uniform(0.5)));
    let pattern = |seed, path, direction| -> Vec<bool> {
        let mut channel = Channel::new(Arc::clone(&spec), seed, path, direction);
        (0..200)
            .map(|i| is_lost(channel.fate(i * 500, 1)))
            .collect()
    };
    let first = pattern(1, 0, Direction::Forward);
    assert_eq!(first, pattern(1, 0, Direction::Forward));
    for other in [
        pattern(2, 0, Direction::Forward),
        pattern(1, 1, Direction::Forward),
        pattern(1, 0, Direction::Backward),
    ] {
        let equal = first.iter().zip(&other).filter(|(a, b)| a == b).count();
        assert!((70..130).contains(&equal), "{equal} of 200 alike");
    }
}

#[test]
fn uniform_loss_has_its_share() {
    let mut channel = channel(
        ChannelSpec::default().with_loss(LossModel::Uniform(0.02)),
        3,
    );
    let n = 400_000u64;
    let lost = (0..n).filter(|i| is_lost(channel.fate(i * 333, 1))).count() as f64;
    // Standard error 0.00022.
    assert!((lost / n as f64 - 0.02).abs() < 0.0009, "{lost} of {n}");
}

#[test]
fn bursts_have_their_share_and_length_in_time() {
    for packets_per_ms in [1u64, 4] {
        let mut channel = channel(ChannelSpec::default().with_loss(gilbert(0.05, ms(20))), 11);
        let slots = 4_000_000u64;
        let (mut lost, mut bursts, mut was_lost) = (0u64, 0u64, false);
        for slot in 0..slots {
            for i in 0..packets_per_ms {
                let is_lost = is_lost(channel.fate(slot * 1000 + i * 1000 / packets_per_ms, 1));
                lost += u64::from(is_lost);
                bursts += u64::from(is_lost && !was_lost);
                was_lost = is_lost;
            }
        }
        // 10,000 bursts: standard error of the share 1.4 %, of the mean length 1 %, relatively. Looked at once a
        // millisecond, a burst of mean 20 ms lasts 1/(1 - e^(-1/20)) = 20.5 slots (less good gaps that are not seen).
        let share = lost as f64 / (slots * packets_per_ms) as f64;
        let mean_ms = lost as f64 / packets_per_ms as f64 / bursts as f64;
        assert!((share - 0.05).abs() < 0.003, "share {share}");
        assert!((mean_ms - 20.5).abs() < 1.2, "mean burst {mean_ms} ms");
    }
}

#[test]
fn bursts_may_lose_a_part_and_good_spells_as_well() {
    let loss = LossModel::Gilbert {
        loss_share: 0.03,
        mean_burst: ms(10),
        loss_in_good: 0.01,
        loss_in_bad: 0.5,
    };
    let mut channel = channel(ChannelSpec::default().with_loss(loss), 2);
    let (mut burst, mut random) = (0.0, 0.0);
    let n = 2_000_000u64;
    for slot in 0..n {
        match channel.fate(slot * 1000, 1) {
            Fate::Lost(LossReason::Burst) => burst += 1.0 / n as f64,
            Fate::Lost(_) => random += 1.0 / n as f64,
            Fate::Delivered { .. } => {}
        }
    }
    // bad share = 0.02 / 0.49 = 4.08 %, so 2.04 % in bursts and 0.96 % elsewhere.
    assert!((burst - 0.0204).abs() < 0.0012, "{burst}");
    assert!((random - 0.0096).abs() < 0.0005, "{random}");
}

fn moments(delays: &[u64]) -> (f64, f64) {
    let n = delays.len() as f64;
    let mean = delays.iter().sum::<u64>() as f64 / n;
    let variance = delays
        .iter()
        .map(|&d| (d as f64 - mean).powi(2))
        .sum::<f64>()
        / n;
    (mean, variance.sqrt())
}

#[test]
fn delays_have_their_distribution_at_every_phase() {
    for slow in [
        None,
        Some(Slow {
            share: 0.4,
            coherence: ms(900),
        }),
    ] {
        let variation = Variation {
            coherence: ms(50),
            slow,
        };
        let spec = ChannelSpec {
            delay: gamma(10, 30, 10),
            variation,
            ..ChannelSpec::default()
        };
        let mut channel = channel(spec, 21);
        // Every 17 ms: all phases between the knots come up.
        let mut delays: Vec<_> = (0..600_000)
            .map(|i| delay(channel.fate(i * 17_000, 1)))
            .collect();
        let (mean, sd) = moments(&delays);
        assert!((mean - 30_000.0).abs() < 200.0, "mean {mean}");
        assert!((sd - 10_000.0).abs() < 200.0, "sd {sd}");
        delays.sort_unstable();
        // Gamma(4, 5 ms) + 10 ms: half the 99.9 % point of chi-square with 8 degrees of freedom is 13.062.
        let tail = delays[delays.len() * 999 / 1000] as f64;
        assert!(
            (tail - (10_000.0 + 13.062 * 5000.0)).abs() < 1500.0,
            "p99.9 {tail}"
        );
        assert!(delays[0] >= 10_000);
    }
}

#[test]
fn delays_change_smoothly_and_keep_packets_in_order() {
    let spec = ChannelSpec {
        delay: gamma(9, 21, 9),
        ..ChannelSpec::default()
    };
    let mut channel = channel(spec, 4);
    let arrivals: Vec<_> = (0..200_000u64)
        .map(|i| i * 1000 + delay(channel.fate(i * 1000, 1)))
        .collect();
    let overtaken = arrivals.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(overtaken < 2000, "{overtaken} of 200000 packets overtaken"); // 1 %, in steep falls
    let delays: Vec<_> = (0..).zip(&arrivals).map(|(i, &at)| at - i * 1000).collect();
    let (mean, sd) = moments(&delays);
    let correlation = |lag: usize| {
        let pairs = delays.windows(lag + 1);
        let n = pairs.len() as f64;
        let product = |w: &[u64]| (w[0] as f64 - mean) * (w[lag] as f64 - mean);
        pairs.map(product).sum::<f64>() / n / (sd * sd)
    };
    assert!(correlation(5) > 0.9, "{}", correlation(5));
    assert!((0.3..0.8).contains(&correlation(30)), "{}", correlation(30));
    assert!(correlation(120).abs() < 0.1, "{}", correlation(120));
}

#[test]
fn normal_delays_are_cut_and_independent_ones_are_independent() {
    let delay_model = DelayModel::Normal {
        mean: ms(50),
        sd: ms(10),
        min: ms(45),
    };
    let variation = Variation {
        coherence: Duration::ZERO,
        slow: None,
    };
    let spec = ChannelSpec {
        delay: delay_model,
        variation,
        ..ChannelSpec::default()
    };
    let mut channel = channel(spec, 4);
    let delays: Vec<_> = (0..100_000)
        .map(|i| delay(channel.fate(i * 100, 1)))
        .collect();
    let at_minimum = delays.iter().filter(|&&d| d == 45_000).count() as f64 / 1e5;
    assert!((at_minimum - 0.3085).abs() < 0.01, "{at_minimum}");
    let changes = delays
        .windows(2)
        .filter(|pair| pair[0].abs_diff(pair[1]) > 5000)
        .count();
    assert!(changes > 30_000);
}

#[test]
fn blackouts_and_outages_are_dark() {
    let spec = ChannelSpec {
        blackouts: vec![(ms(50), ms(60)), (ms(55), ms(70)), (ms(10), ms(20))],
        ..ChannelSpec::default()
    };
    let mut plain = channel(spec, 1);
    let dark: Vec<_> = (0..100)
        .filter(|&slot| is_lost(plain.fate(slot * 1000, 1)))
        .collect();
    assert_eq!(dark, (10..20).chain(50..70).collect::<Vec<_>>());

    let outages = Some(Outages {
        period: ms(15_000),
        length: ms(480),
        share: 1.0,
    });
    let spec = Arc::new(ChannelSpec {
        outages,
        ..ChannelSpec::default()
    });
    let dark = |direction| -> Vec<u64> {
        let mut channel = Channel::new(Arc::clone(&spec), 8, 3, direction);
        (0..150_000)
            .filter(|&slot| is_lost(channel.fate(slot * 1000, 1)))
            .collect()
    };
    let forward = dark(Direction::Forward);
    assert_eq!(forward.len(), 4800);
    assert_eq!(forward, dark(Direction::Backward));
}

#[test]
fn reorder_and_duplicate_have_their_shares() {
    let spec = ChannelSpec {
        delay: DelayModel::Fixed(ms(20)),
        reorder: Reorder {
            share: 0.1,
            extra: ms(30),
        },
        duplicate: 0.2,
        ..ChannelSpec::default()
    };
    let mut channel = channel(spec, 6);
    let (mut held, mut doubled) = (0, 0);
    for i in 0..100_000 {
        let Fate::Delivered {
            delay_us,
            duplicate,
        } = channel.fate(i * 100, 1)
        else {
            panic!("nothing is lost")
        };
        assert!(delay_us == 20_000 || delay_us == 50_000);
        held += u32::from(delay_us == 50_000);
        doubled += u32::from(duplicate.is_some_and(|copy| copy > delay_us));
    }
    assert!((9700..10_300).contains(&held), "{held}");
    assert!((19_500..20_500).contains(&doubled), "{doubled}");
}

#[test]
fn nonsense_is_refused() {
    let losses = [
        LossModel::Uniform(1.5),
        LossModel::Uniform(f64::NAN),
        gilbert(1.0, ms(5)),
    ];
    for loss in losses {
        assert!(ChannelSpec::default().with_loss(loss).check().is_err());
    }
    assert!(
        ChannelSpec::default()
            .with_loss(gilbert(0.1, Duration::ZERO))
            .check()
            .is_err()
    );
    assert!(
        ChannelSpec::default()
            .with_loss(gilbert(0.0, ms(5)))
            .check()
            .is_ok()
    );
    let no_rate = ChannelSpec {
        rate: Some(RateSpec::constant(0, 1)),
        ..ChannelSpec::default()
    };
    assert_eq!(no_rate.check(), Err(SpecError::Zero { what: "the rate" }));
    let backwards = ChannelSpec {
        blackouts: vec![(ms(2), ms(1))],
        ..ChannelSpec::default()
    };
    assert_eq!(backwards.check(), Err(SpecError::Blackout));
}
