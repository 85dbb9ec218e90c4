use std::sync::Arc;

use super::*;
use crate::channel::{Capacity, Channel, ChannelSpec, Direction, Fate, LossModel, RateSpec};

#[test]
fn names_are_parsed_and_wrong_ones_answered_with_the_list() {
    for profile in Profile::ALL {
        assert_eq!(profile.name().parse(), Ok(profile));
        assert_eq!(profile.path().name, profile.name());
        assert!(!profile.summary().is_empty());
    }
    let error = "wifi".parse::<Profile>().unwrap_err().to_string();
    assert_eq!(
        error,
        "no profile is called `wifi`; there are busy-hour, bursty-wifi, lte, starlink, transatlantic, pangolin-table2, \
         thin-streams, dsl, clean"
    );
    assert_eq!(Profile::default().name(), "busy-hour");
}

/// Round-trip times (ms, sorted) and losses (forward, backward) of a packet each 20 ms.
fn play(profile: Profile, packets: u64) -> (Vec<f64>, [f64; 2]) {
    let path = profile.path();
    path.check().unwrap();
    let mut forward = Channel::new(Arc::clone(&path.forward), 1, 0, Direction::Forward);
    let mut backward = Channel::new(Arc::clone(&path.backward), 1, 0, Direction::Backward);
    let mut rtt = Vec::new();
    let mut lost = [0.0; 2];
    for i in 0..packets {
        let at = i * 20_000;
        let (out, back) = (forward.fate(at, 100), backward.fate(at, 100));
        let mut delay = |fate, direction: usize| match fate {
            Fate::Delivered { delay_us, .. } => Some(delay_us),
            Fate::Lost(_) => {
                lost[direction] += 1.0 / packets as f64;
                None
            }
        };
        if let (Some(out), Some(back)) = (delay(out, 0), delay(back, 1)) {
            rtt.push((out + back) as f64 / 1000.0);
        }
    }
    rtt.sort_by(f64::total_cmp);
    (rtt, lost)
}

#[test]
fn profiles_are_as_they_say() {
    for (profile, rtt_mean, loss) in [
        (Profile::BusyHour, 130.0, [0.03, 0.03]),
        (Profile::BurstyWifi, 60.6, [0.02, 0.02]),
        (Profile::Lte, 49.2, [0.006, 0.006]),
        // 0.5 s of each 15 s in 95 % of them, and 0.1 %.
        (Profile::Starlink, 47.5, [0.0327, 0.0327]),
        (Profile::Transatlantic, 90.0, [0.001, 0.001]),
        (Profile::PangolinTable2, 250.0, [0.02, 0.0]),
        (Profile::ThinStreams, 130.0, [0.02, 0.02]),
        (Profile::Dsl, 28.7, [0.001, 0.001]),
        (Profile::Clean, 20.0, [0.0, 0.0]),
    ] {
        let (rtt, lost) = play(profile, 400_000);
        let mean = rtt.iter().sum::<f64>() / rtt.len() as f64;
        assert!(
            (mean - rtt_mean).abs() < 0.04 * rtt_mean,
            "{profile}: mean {mean}"
        );
        for (lost, stated) in lost.iter().zip(loss) {
            assert!(
                (lost - stated).abs() <= 0.0003 + 0.1 * stated,
                "{profile}: loss {lost}, stated {stated}"
            );
        }
        let at = |q: f64| rtt[(q * (rtt.len() - 1) as f64) as usize];
        println!(
            "{profile:16} rtt min {:.1} p50 {:.1} p95 {:.1} p99 {:.1} p99.9 {:.1} ms, loss {:.3} % {:.3} %",
            rtt[0],
            at(0.5),
            at(0.95),
            at(0.99),
            at(0.999),
            lost[0] * 100.0,
            lost[1] * 100.0
        );
    }
}

/// A regression: what a server sent to clients behind an access line had its way up.
#[test]
fn messages_to_a_client_take_its_way_down() {
    let bits = |channel: &ChannelSpec| match &channel.rate {
        Some(RateSpec {
            capacity: Capacity::Constant { bits_per_second },
            ..
        }) => *bits_per_second,
        other => panic!("{other:?}"),
    };
    for (messages, forward, backward) in [
        (Forward::ToClient, 16_000_000, 1_000_000),
        (Forward::ToServer, 1_000_000, 16_000_000),
    ] {
        let path = Profile::Dsl.path_of(messages);
        assert_eq!(
            (bits(&path.forward), bits(&path.backward)),
            (forward, backward)
        );
    }
    let lossy = Profile::PangolinTable2.path_of(Forward::ToClient).forward;
    assert!(matches!(lossy.loss, LossModel::Uniform(_)));
}
