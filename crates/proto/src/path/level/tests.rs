//! The level of loss, met packet by packet.

use alloc::vec::Vec;

use super::*;
use crate::path::Bursts;

fn unknown() -> LossLevel {
    LossLevel::among(&UsualLoss::default())
}

const ALONE: Dependence = Dependence {
    after_loss: false,
    correlation: 0.0,
};

/// A number from 0 to 1 for each place: splitmix64, but for its last step.
fn drawn(place: u64) -> f32 {
    let draw = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let draw = (draw ^ (draw >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40;
    draw as f32 / (1 << 24) as f32
}

/// Packets every 8 ms, every `n`th lost (none with 0), shuffled a little.
fn pass(level: &mut LossLevel, from_ms: u64, to_ms: u64, n: u32) {
    for ms in (from_ms..to_ms).step_by(8) {
        let lost = n > 0
            && ((ms / 8) as u32)
                .wrapping_mul(2_654_435_761)
                .is_multiple_of(n);
        level.record(Instant::from_micros(1000 * ms + 1), lost, ALONE);
    }
}

#[test]
fn nothing_seen_is_what_sessions_are_like() {
    let mean = unknown().mean();
    assert!((0.01..0.02).contains(&mean), "{mean}");
}

#[test]
fn a_steady_loss_is_learnt() {
    for n in [10, 50, 1000] {
        let mut level = unknown();
        pass(&mut level, 0, 200_000, n);
        let (mean, truth) = (level.mean(), 1.0 / n as f32);
        assert!(mean > 0.6 * truth && mean < 1.6 * truth, "{n}: {mean}");
    }
}

/// A regression: a loss too rare for its level to be told from others was known by the losses at one of them, four of twenty, and paid for as what
/// nobody knows: 2 points of redundancy with 0.1 %, a target of as much, one round and k = 1, where nothing will do.
#[test]
fn losses_at_levels_that_cannot_be_told_apart_are_known_together() {
    let mut level = unknown();
    let mut doubts = 0.0;
    for packet in 1..=30_000_u64 {
        let lost = packet % 1000 == 0;
        level.record(Instant::from_micros(packet * 50_000), lost, ALONE);
        if packet > 20_000 {
            doubts += 1.0 / libm::sqrtf(level.losses_met()) / 10_000.0;
        }
    }
    assert!((0.15..0.4).contains(&doubts), "{doubts}");
    // Of one level alone those met at it count.
    level.now = [0.0; LEVELS];
    (level.now[3], level.met[3]) = (1.0, 100.0);
    assert!((level.losses_met() - 100.0).abs() < 0.1);
}

/// A regression: a path that lies between two levels seemed to be known by all losses that it had met, while the estimate wandered from one to the other: what a
/// minute lost too many by a fifth was paid for (bursts of 20 ms, 1 % of loss for a target of 1 %, k = 4: 7 % where 1 will do).
#[test]
fn which_level_it_is_is_in_doubt_but_not_for_long() {
    let mut level = unknown();
    let place = LOSS.iter().position(|loss| *loss > 0.01).unwrap();
    level.now = [0.0; LEVELS];
    let is_at = |level: &mut LossLevel, shares: [f32; 2]| {
        for (at, share) in shares.into_iter().enumerate() {
            (level.now[place + at], level.met[place + at]) = (share, 1000.0);
        }
        level.doubt(0.02, 1, 1)
    };
    let (sure, between) = (is_at(&mut level, [1.0, 0.0]), is_at(&mut level, [0.5, 0.5]));
    assert!(sure.deviation < 0.035, "{sure:?}");
    assert!((0.2..0.4).contains(&between.deviation), "{between:?}");
    // What lasts of it is where a level lies, which all losses have told.
    let losses = |doubt: Doubt, mean: f32| doubt.lasting * doubt.learned_for * mean;
    let (at_one, at_both) = (losses(sure, LOSS[place]), losses(between, level.mean()));
    assert!((at_one - 1000.0_f32.sqrt()).abs() < 1.0, "{at_one}");
    assert!((at_both - 2000.0_f32.sqrt()).abs() < 1.0, "{at_both}");
    // The rest is known before long.
    assert!(between.passes_after * level.mean() < 41.0);
}

/// 20 minutes of a packet every 40 ms, after 13 minutes.
#[test]
fn a_steady_loss_is_known_well_after_a_thousand_losses() {
    for loss in [0.05, 0.1, 0.2] {
        let mut level = unknown();
        let mut seen = [0.0; 2];
        for packet in 0..50_000_u64 {
            let lost = drawn(packet) < loss;
            level.record(Instant::from_micros(1 + packet * 40_000), lost, ALONE);
            if packet >= 20_000 {
                let ratio = f64::from(level.mean() / loss);
                seen = [seen[0] + ratio, seen[1] + ratio * ratio];
            }
        }
        let mean = seen[0] / 30_000.0;
        let deviation = libm::sqrt(seen[1] / 30_000.0 - mean * mean);
        assert!((mean - 1.0).abs() < 0.03, "{loss}: {mean}");
        assert!(deviation < 0.03, "{loss}: {deviation}");
    }
}

/// A level's place is the mean of 16,000 losses at most: what changes by a fifth or more is known long before as many have been met again.
#[test]
fn where_a_level_lies_is_learned_anew_when_that_changes() {
    for (before, after) in [(0.15, 0.19), (0.1, 0.08), (0.02, 0.026)] {
        let mut level = unknown();
        let mut at = Instant::from_micros(1);
        let mut lose = |level: &mut LossLevel, loss: f32, losses: f32, seed: u64| {
            for packet in 0..(losses / loss) as u64 {
                at = at + Duration::from_millis(5);
                level.record(at, drawn(packet + seed) < loss, ALONE);
            }
        };
        lose(&mut level, before, 20_000.0, 0);
        let (losses, mean) = (level.losses_met(), level.mean());
        assert!(losses > 15_000.0, "{before}: by chance, after {losses}");
        assert!((mean / before - 1.0).abs() < 0.02, "{before}: {mean}");
        lose(&mut level, after, 3000.0, 10_000_000);
        let mean = level.mean();
        assert!((mean / after - 1.0).abs() < 0.06, "{after}: {mean}");
    }
}

/// A regression: of packets sent together a hundredth less was taken for alike than all of them were, and each that arrived was good news. With four in a
/// flight, bursts of 20 ms and 12 ms to the next flight 9.3 % seemed to be lost for 10, and 8.6 over a path.
#[test]
fn flights_that_bursts_take_whole_say_no_more_than_one_packet() {
    let (mut level, mut bursts) = (unknown(), Bursts::default());
    let (mut is_bad, mut before) = (false, false);
    let mut ratios = 0.0;
    for flight in 0..60_000_u64 {
        // A tenth of the time, 20 ms in the mean.
        let kept = libm::expf(-12.0 / 18.0);
        let was_bad = f32::from(u8::from(is_bad));
        is_bad = drawn(flight) < 0.1 + (was_bad - 0.1) * kept;
        for packet in 0..4 {
            let at = Instant::from_micros(1 + flight * 12_000 + packet * 20);
            let dependence = bursts.record(at, is_bad, 0.1);
            level.record(at, is_bad, dependence);
            if before {
                let lag = if packet == 0 { 11_940 } else { 20 };
                bursts.note_after_loss(Duration::from_micros(lag), is_bad);
            }
            before = is_bad;
        }
        if flight >= 20_000 {
            ratios += level.mean() / 0.1 / 40_000.0;
        }
    }
    assert!((ratios - 1.0).abs() < 0.05, "{ratios}");
}

#[test]
fn a_bad_spell_shows_within_a_second_and_ends_within_two() {
    let mut level = unknown();
    pass(&mut level, 0, 60_000, 1000);
    assert!(level.mean() < 0.003, "{}", level.mean());
    pass(&mut level, 60_000, 61_000, 10);
    assert!(level.mean() > 0.04, "{}", level.mean());
    pass(&mut level, 61_000, 63_000, 0);
    assert!(level.mean() < 0.005, "{}", level.mean());
}

#[test]
fn a_new_session_begins_with_what_others_met() {
    let mut usual = UsualLoss::default();
    for _ in 0..30 {
        let mut level = LossLevel::among(&usual);
        for ms in 0..20_u64 {
            pass(&mut level, ms * 256, ms * 256 + 256, 50);
            usual.observe(&mut level);
        }
    }
    let (young, sure) = (LossLevel::among(&usual), usual.0.iter().sum::<f32>());
    assert!((0.012..0.04).contains(&young.mean()), "{}", young.mean());
    assert!(sure <= EXPERIENCE + 256.0);
}

/// A regression: a session counted by its packets, so that seven seconds of one download were all that new sessions knew.
#[test]
fn a_download_does_not_speak_for_all_paths() {
    let mut usual = UsualLoss::default();
    let mut games: Vec<_> = (0..50).map(|_| LossLevel::among(&usual)).collect();
    let mut download = LossLevel::among(&usual);
    for second in 0..60_u64 {
        for game in &mut games {
            for frame in 0..30 {
                let at = Instant::from_micros(second * 1_000_000 + frame * 33_000);
                game.record(at, false, ALONE);
                usual.observe(game);
            }
        }
        for packet in 0..1000 {
            let at = Instant::from_micros(second * 1_000_000 + packet * 1000);
            download.record(at, packet % 5 == 0, ALONE);
            usual.observe(&mut download);
        }
    }
    let young = LossLevel::among(&usual);
    assert!(young.mean() < 0.01, "{}", young.mean());
}

/// Although it is sure which level it is: where misses grow with a high power of the loss, deciding by the mean lets more miss than are meant to.
#[test]
fn where_a_level_lies_is_not_known_from_few_losses() {
    let over_mean = |losses| {
        let mut level = unknown();
        let place = LOSS.iter().position(|loss| *loss > 0.09).unwrap();
        level.now = [0.0; LEVELS];
        (level.now[place], level.met[place]) = (1.0, losses);
        level.for_misses(0.001, 1, 4) / level.mean()
    };
    assert!(
        (1.02..1.06).contains(&over_mean(10.0)),
        "{}",
        over_mean(10.0)
    );
    assert!(over_mean(4000.0) < 1.001, "{}", over_mean(4000.0));
}

/// A loss more says little where the level is known, and what it will be after one is what was told.
#[test]
fn what_one_more_loss_tells_is_known_before() {
    let mut settled = unknown();
    pass(&mut settled, 0, 200_000, 50);
    let (before, told) = (settled.mean(), settled.told_by_a_loss());
    settled.record(settled.changed_at, true, Dependence::NONE);
    let grown = settled.mean() / before - 1.0;
    assert!((0.5..1.5).contains(&(grown / told)), "{grown} for {told}");
    assert!(told < 0.02, "{told}");
    assert_eq!(unknown().told_by_a_loss(), TOLD_MAX);
}

#[test]
fn what_is_not_known_for_sure_weighs_more_where_misses_are_rare() {
    let level = unknown();
    assert!(level.for_misses(0.0001, 1, 1) > 1.05 * level.mean());
    assert!(level.for_misses(0.001, 2, 1) > 2.0 * level.mean());
    let mut settled = unknown();
    pass(&mut settled, 0, 200_000, 50);
    assert!(settled.for_misses(0.001, 1, 1) < 1.15 * settled.mean());
}

/// k = 16 at 10 %: ten of 25 lost are a miss where 2.5 are expected.
#[test]
fn misses_grow_with_a_power_of_the_loss() {
    let whole = |target, loss, symbols| power_of_a_miss(target, loss, symbols).whole;
    assert_eq!(whole(0.0011, 0.1, 1), 3);
    assert_eq!(whole(0.001, 0.02, 4), 3);
    assert_eq!(whole(0.001, 0.1, 16), 8);
    assert_eq!(whole(0.001, 1e-4, 1), 1);
    assert_eq!(whole(0.5, 0.9, 64), 1);
    // One message in twenty gets a copy.
    let nearly_plain = power_of_a_miss(0.001, 0.00105, 1);
    assert_eq!(nearly_plain.whole, 2);
    assert!(nearly_plain.in_mean < 1.02, "{}", nearly_plain.in_mean);
}

#[test]
fn a_late_arrival_takes_the_loss_back() {
    let mut level = unknown();
    pass(&mut level, 0, 10_000, 0);
    let before = level.mean();
    level.record(Instant::from_micros(10_000_001), true, ALONE);
    level.correct(ALONE);
    assert!(
        (level.mean() - before).abs() < 0.1 * before,
        "{before} {}",
        level.mean()
    );
}

/// A regression: of six packets that a jump of the delay let others overtake, and that came after all, each took back more than it had said, and the path seemed to
/// lose next to nothing, until the next jump made it lose a third. (2 % of loss, 250 ms +- 100 each way: 0.25 % late for 0.1, with 175 % of redundancy.)
#[test]
fn what_is_overtaken_makes_no_other_level() {
    let mut level = unknown();
    let (mut least, mut most) = (1.0_f32, 0.0_f32);
    let at = |packet: u64| Instant::from_micros(8000 * packet + 1);
    let after = |after_loss| Dependence {
        after_loss,
        ..ALONE
    };
    for packet in 0..15_000_u64 {
        let in_jump = packet % 125;
        let is_lost = packet.wrapping_mul(2_654_435_761) % 50 == 0;
        level.record(
            at(packet),
            in_jump < 6 || is_lost,
            after((1..7).contains(&in_jump)),
        );
        if (20..26).contains(&in_jump) {
            level.correct(after(in_jump > 20));
        }
        if packet >= 125 && (packet - 125).wrapping_mul(2_654_435_761) % 50 == 0 && in_jump >= 6 {
            level.confirm(after(in_jump == 6));
        }
        if packet > 5000 && in_jump > 30 {
            (least, most) = (least.min(level.mean()), most.max(level.mean()));
        }
    }
    assert!(least > 0.008 && most < 0.05, "{least} {most}");
}

/// A regression: an arrival was as likely as the packet was not lost, however often what arrives is taken for lost before. That added up to a change of the path each few thousand
/// packets, and where levels lie was learned anew for ever.
#[test]
fn wrong_verdicts_are_no_change_of_the_path() {
    let mut level = unknown();
    let at = |packet: u64| Instant::from_micros(20_000 * packet + 1);
    let fate = |packet| {
        let draw = drawn(packet);
        // (Lost, taken for lost.)
        (draw < 0.1, draw < 0.1 + 0.9 * 0.02)
    };
    for packet in 0..60_000 {
        level.record(at(packet), fate(packet).1, ALONE);
        if let Some(before) = packet.checked_sub(3) {
            match fate(before) {
                (false, true) => level.correct(ALONE),
                (true, _) => level.confirm(ALONE),
                _ => {}
            }
        }
    }
    let met: f32 = level.met.iter().sum();
    assert!(met > 3000.0, "{met}");
    assert!((level.mean() - 0.1).abs() < 0.01, "{}", level.mean());
}
