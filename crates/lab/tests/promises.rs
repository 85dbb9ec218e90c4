//! What a sender is promised, one drawing of a network at a time.

mod support;

use std::time::Duration;

use punctual_lab::channel::{DelayModel, GammaDelay, LossModel, PathSpec, Reorder, RttSplit};
use punctual_lab::simulate::{SimulateOptions, simulate};
use punctual_proto::{Delivery, MissReason, Outcome, SendOptions, StreamConfig};
use support::{Duo, ms, path};

/// Goal: the target is met at a few percent of redundancy, and the prediction is right.
/// Method: the reference network, a twentieth of its size.
#[test]
fn the_exact_policy_keeps_its_promise_cheaply() {
    let mut network = PathSpec::fixed("even", ms(250), RttSplit::EVEN);
    std::sync::Arc::make_mut(&mut network.forward).loss = LossModel::Uniform(0.02);
    let mut options = SimulateOptions::new(network, ms(400));
    options.symbols = Some(4);
    options.sessions = 50;
    options.messages = 50_000;
    options.policies = ["exact", "pangolin", "retransmit", "fixed(1)"]
        .map(|name| name.parse().unwrap())
        .into();
    let results = simulate(&options, |_| {}).unwrap();
    let [exact, pangolin, retransmit, fixed] = &results[..] else {
        panic!("four policies")
    };
    for result in &results {
        assert_eq!(result.summary.lost_messages, 0);
        assert_eq!(result.summary.messages, 50_000);
    }
    let late = &exact.summary.late_share_95;
    assert!(late.low <= 0.001, "{late:?}");
    assert!(
        late.contains(exact.summary.predicted_late_share.unwrap()),
        "{:?}",
        exact.summary
    );
    assert!(
        exact.summary.recovery_overhead <= 0.045,
        "{}",
        exact.summary.recovery_overhead
    );
    assert!(
        (pangolin.summary.recovery_overhead - 0.0394).abs() <= 0.004,
        "{}",
        pangolin.summary.recovery_overhead
    );
    // What the others pay, or miss: late shares of retransmission alone are 4 p^2 = 0.16 %.
    assert!(retransmit.summary.late_share > exact.summary.late_share);
    assert!(fixed.summary.recovery_overhead > 0.24);
}

/// A regression: where most messages get a copy and few do not, each of the few was predicted as the many around it (0.06 % for 0.09).
/// Method: one flight of one symbol, 2 % loss, which needs 97 copies for 100 messages.
#[test]
fn who_gets_no_copy_is_predicted_to_be_lost_as_often() {
    let mut network = PathSpec::fixed("a test", ms(60), RttSplit::EVEN);
    std::sync::Arc::make_mut(&mut network.forward).loss = LossModel::Uniform(0.02);
    let (late, predicted) = late_and_predicted(&network, ms(78), 1);
    assert!(
        (0.9..1.1).contains(&(predicted / late)),
        "{predicted} {late}"
    );
}

/// A regression: rounds were to begin when the one before is over and not when its losses are known, so one too few was reckoned with (0.07 % for 0.04; now
/// 0.045 to 0.05).
/// Method: packets overtake each other, four symbols, two rounds and a bit.
#[test]
fn a_round_that_early_answers_make_room_for_is_predicted() {
    let mut network = PathSpec::fixed("a test", ms(60), RttSplit::EVEN);
    for channel in [&mut network.forward, &mut network.backward] {
        let channel = std::sync::Arc::make_mut(channel);
        let delay = GammaDelay::fit(ms(15), ms(30), ms(10)).expect("it can be fitted");
        channel.delay = DelayModel::Gamma(std::sync::Arc::new(delay));
        channel.variation.coherence = Duration::ZERO;
    }
    std::sync::Arc::make_mut(&mut network.forward).loss = LossModel::Uniform(0.02);
    let (late, predicted) = late_and_predicted(&network, ms(180), 4);
    assert!(
        (0.7..1.5).contains(&(predicted / late)),
        "{predicted} {late}"
    );
}

/// Late share and what was predicted, of 300,000 messages.
fn late_and_predicted(network: &PathSpec, deadline: Duration, symbols: u8) -> (f64, f64) {
    let (mut late, mut predicted) = (0.0, 0.0);
    for seed in 1..=6 {
        let options = SimulateOptions {
            symbols: Some(symbols),
            message_bytes: 1000,
            sessions: 2,
            interval: ms(50),
            messages: 50_000,
            seed,
            ..SimulateOptions::new(network.clone(), deadline)
        };
        let summary = simulate(&options, |_| {}).unwrap().remove(0).summary;
        late += summary.late_share / 6.0;
        predicted += summary.predicted_late_share.unwrap() / 6.0;
    }
    (late, predicted)
}

/// Goal: where answers are lost as often as messages, silences count in what is expected, and the promise is kept from the first messages on.
/// (A symbol that was lost while the one before it was answered for was as likely taken for arrived, and got one copy where two were
/// reckoned with: 0.127 % were late, [0.115, 0.140].)
/// Method: the busy hour that is built in, sessions too short to learn it from misses.
#[test]
fn a_busy_hour_keeps_its_promise() {
    let mut options =
        SimulateOptions::new(punctual_lab::profile::Profile::default().path(), ms(258));
    options.sessions = 100;
    options.messages = 300_000;
    options.interval = ms(100);
    let steered = simulate(&options, |_| {}).unwrap().remove(0).summary;
    assert!(steered.late_share_95.low <= 0.001, "{steered:?}");
    assert!(steered.recovery_overhead < 0.085, "{steered:?}");
}

/// Goal: where bad moments take a part of the flights that they meet, and none is to follow, misses come to the target, but for what is missed while the
/// moments are met first: 0.12 % for 0.1.   (As if symbols were lost one by one, a repair symbol was reckoned to be enough, and a
/// correction of that by what was seen ends at 32: 0.20 %.)
/// Method: flights of 16 over moments of 20 ms that take a fifth, a quarter of a percent of the time.
#[test]
fn flights_of_which_moments_take_a_part_come_to_the_target() {
    let mut network = PathSpec::fixed("part", ms(60), RttSplit::EVEN);
    std::sync::Arc::make_mut(&mut network.forward).loss = LossModel::Gilbert {
        loss_share: 0.0005,
        mean_burst: ms(20),
        loss_in_good: 0.0,
        loss_in_bad: 0.2,
    };
    let mut options = SimulateOptions::new(network, ms(45));
    options.symbols = Some(16);
    options.sessions = 4;
    options.messages = 240_000;
    options.interval = ms(20);
    let steered = simulate(&options, |_| {}).unwrap().remove(0).summary;
    assert!(steered.late_share < 0.0015, "{steered:?}");
    // (Kept away from the target while few misses would have been allowed: 0.39 to 0.42; below 0.35 when all of it was aimed at.)
    assert!(steered.recovery_overhead < 0.43, "{steered:?}");
}

/// Goal: the same for one symbol and its copies.   (With one copy nothing ever showed that a moment which took both would have left a third, so none was sent: 0.145 %. And
/// half of the time none was, since what sending once misses was in doubt for ever: 0.132 %.)
/// Method: moments of 15 ms that take three quarters, a quarter of a percent of the time, and no time to wait them out.
#[test]
fn copies_of_which_moments_take_a_part_come_to_the_target() {
    let mut network = PathSpec::fixed("part", ms(34), RttSplit::EVEN);
    std::sync::Arc::make_mut(&mut network.forward).loss = LossModel::Gilbert {
        loss_share: 0.0019,
        mean_burst: ms(15),
        loss_in_good: 0.0,
        loss_in_bad: 0.75,
    };
    let mut options = SimulateOptions::new(network, ms(18));
    options.symbols = Some(1);
    options.message_bytes = 1000;
    options.sessions = 2;
    options.messages = 800_000;
    options.interval = ms(20);
    let steered = simulate(&options, |_| {}).unwrap().remove(0).summary;
    assert!(steered.late_share < 0.0011, "{steered:?}");
    assert!(steered.recovery_overhead < 3.2, "{steered:?}");
}

/// Goal: equal seeds give equal runs.   Method: the same simulation twice, compared to the last bit.
#[test]
fn a_simulation_run_twice_is_the_same() {
    let mut options =
        SimulateOptions::new(punctual_lab::profile::Profile::default().path(), ms(120));
    options.sessions = 20;
    options.messages = 1000;
    let run = || serde_json::to_string(&simulate(&options, |_| {}).unwrap()[0].summary).unwrap();
    assert_eq!(run(), run());
}

/// Goal: a message whose deadline passes in the dark is delivered afterwards, and reported late with its reason.
/// Method: nothing gets through for 3 s.
#[test]
fn a_late_message_is_delivered_and_says_why() {
    let dark = path(ms(80), |channel| {
        channel.blackouts = vec![(Duration::from_secs(3), Duration::from_secs(6))];
    });
    let mut duo = Duo::connect(1, &dark);
    duo.run(ms(1100));
    let id = duo.send(&[7; 3000], SendOptions::within(ms(200)));
    duo.run(Duration::from_secs(12));
    assert_eq!(duo.received.len(), 1);
    let late_by = duo.received[0].0.0 as f64 / 1e9;
    // Backoff ends at 4 s, and a round that finds the path open ends it.
    assert!((6.0..10.5).contains(&late_by), "arrived at {late_by} s");
    let [(told, Outcome::Late { why, latency, .. })] = duo.outcomes[..] else {
        panic!("{:?}", duo.outcomes)
    };
    assert_eq!(told, id);
    assert!(latency > Duration::from_secs(2));
    assert_eq!(why, MissReason::Loss);
}

/// Goal: a message that is of no use late is given up, and the receiver keeps nothing of it.
#[test]
fn a_message_that_may_be_dropped_is_dropped_at_its_deadline() {
    let dark = path(ms(80), |channel| {
        channel.blackouts = vec![(Duration::from_secs(3), Duration::from_secs(6))];
    });
    let mut duo = Duo::connect(1, &dark);
    duo.run(ms(1100));
    duo.send(&[7; 3000], SendOptions::within(ms(200)).drop_when_late());
    duo.run(Duration::from_secs(12));
    assert!(duo.received.is_empty());
    assert!(
        matches!(
            duo.outcomes[..],
            [(
                _,
                Outcome::Dropped {
                    why: MissReason::PathDown
                }
            )]
        ),
        "{:?}",
        duo.outcomes
    );
    assert!(duo.world.endpoint(duo.server).is_quiet());
    assert!(duo.world.endpoint(duo.client).is_quiet());
}

/// Goal: a transfer survives the path going dark for 3 s.   Method: blackout both ways, no retries by the application.
/// A regression: what was dropped at its deadline had its outcome before the answer could come. With 5 % of loss and 75 ms over a round trip of 60, 4.4 % were told to be dropped where
/// all but 0.005 % had arrived in time, and steering paid for them.
#[test]
fn what_arrived_in_time_is_not_told_to_be_dropped() {
    let lossy = path(ms(60), |channel| {
        channel.loss = LossModel::Uniform(0.05);
    });
    for within in [75, 96] {
        let mut duo = Duo::connect(1, &lossy);
        let options = SendOptions::within(ms(within)).drop_when_late();
        for _ in 0..2000 {
            duo.send(&[7; 300], options);
            duo.run(ms(20));
        }
        duo.run(ms(2000));
        assert_eq!(duo.outcomes.len(), 2000);
        let dropped = |(_, outcome): &&(_, Outcome)| matches!(outcome, Outcome::Dropped { .. });
        let dropped = duo.outcomes.iter().filter(dropped).count();
        let lost = 2000 - duo.received.len();
        // An acknowledgement may be lost, too.
        assert!(
            (lost..lost + 8).contains(&dropped),
            "{dropped} for {lost} in {within} ms"
        );
    }
}

#[test]
fn a_large_message_survives_a_blackout() {
    let dark = path(ms(80), |channel| {
        channel.loss = LossModel::Uniform(0.01);
        channel.blackouts = vec![(ms(2100), ms(5100))];
    });
    let mut duo = Duo::connect(7, &dark);
    let data: Vec<u8> = (0..256 * 1024).map(|i| (i * 7 % 251) as u8).collect();
    duo.send(&data, SendOptions::default());
    duo.run(Duration::from_secs(20));
    assert_eq!(duo.received.len(), 1);
    assert!(duo.received[0].2 == data, "changed on the way");
}

/// Goal: every size from nothing to the limit arrives whole.
#[test]
fn every_size_arrives_whole() {
    let lossy = path(ms(30), |channel| channel.loss = LossModel::Uniform(0.1));
    let mut duo = Duo::connect(3, &lossy);
    let sizes = [
        0, 1, 2, 100, 1150, 1170, 1440, 1500, 4096, 74_000, 75_000, 92_000, 93_000, 262_144,
    ];
    for size in sizes {
        let data: Vec<u8> = (0..size).map(|i| (i * 31 % 253) as u8).collect();
        duo.send(&data, SendOptions::within(ms(100)));
        duo.run(Duration::from_secs(8));
        let (_, _, received) = duo
            .received
            .pop()
            .unwrap_or_else(|| panic!("{size} bytes never came"));
        assert!(received == data, "{size} bytes were changed");
        assert!(duo.received.is_empty());
    }
    assert_eq!(duo.outcomes.len(), sizes.len());
}

/// Goal: reordering is learnt, and then costs next to nothing.   Method: a tenth of the packets comes 3 ms late.
#[test]
fn reordering_is_not_loss() {
    let shuffled = path(ms(60), |channel| {
        channel.reorder = Reorder {
            share: 0.1,
            extra: ms(3),
        }
    });
    let mut duo = Duo::connect(5, &shuffled);
    for _ in 0..400 {
        duo.send(&[1; 6000], SendOptions::within(ms(150)));
        duo.run(ms(100));
    }
    let before = duo.stats();
    for _ in 0..400 {
        duo.send(&[1; 6000], SendOptions::within(ms(150)));
        duo.run(ms(100));
    }
    let after = duo.stats();
    assert_eq!(duo.received.len(), 800);
    let spurious = after.packets_spurious - before.packets_spurious;
    let sent = after.symbols_sent - before.symbols_sent;
    assert!(
        spurious * 50 < sent,
        "{spurious} of {sent} symbols taken for lost that were not"
    );
    assert!(
        after.packets_lost - after.packets_spurious <= 5,
        "nothing is lost here: {after:?}"
    );
}

/// Goal: a late acknowledgement does not count as loss.   Method: the way back is slow at times, nothing is lost.
#[test]
fn a_late_acknowledgement_is_not_loss_counted_twice() {
    let mut network = path(ms(60), |_| {});
    std::sync::Arc::make_mut(&mut network.backward).reorder = Reorder {
        share: 0.05,
        extra: ms(80),
    };
    let mut duo = Duo::connect(5, &network);
    for _ in 0..600 {
        duo.send(&[1; 1000], SendOptions::within(ms(200)));
        duo.run(ms(100));
    }
    duo.run(Duration::from_secs(2));
    let report = duo
        .world
        .endpoint(duo.client)
        .path_report(duo.world.local_time(duo.client), duo.at_client)
        .unwrap();
    assert!(report.loss < 0.003, "{report:?}");
    assert_eq!(duo.received.len(), 600);
}

/// Goal: a client that changes its address goes on where it was, and every message arrives once.
#[test]
fn a_session_follows_its_client_to_another_address() {
    let mut duo = Duo::connect(
        2,
        &path(ms(50), |channel| channel.loss = LossModel::Uniform(0.02)),
    );
    for round in 0..60u8 {
        if round % 20 == 10 {
            duo.world.change_address(duo.client);
        }
        duo.send(&[round; 2000], SendOptions::within(ms(150)));
        let at_server = duo.at_server.unwrap();
        duo.world
            .send(
                duo.server,
                at_server,
                &[round; 2000],
                SendOptions::within(ms(150)),
            )
            .unwrap();
        duo.run(ms(100));
    }
    duo.run(Duration::from_secs(5));
    assert_eq!(duo.received.len(), 120);
    assert_eq!(duo.server_stats().address_changes, 3);
    assert!(duo.closed.is_empty());
}

/// Goal: the one-way delay is known once the clocks are compared, although they are minutes apart.
#[test]
fn one_way_delay_is_learnt_from_clocks_that_disagree() {
    let mut duo = Duo::connect(9, &path(ms(90), |_| {}));
    for _ in 0..20 {
        duo.send(&[0; 500], SendOptions::within(ms(100)));
        duo.run(ms(50));
    }
    let report = duo
        .world
        .endpoint(duo.client)
        .path_report(duo.world.local_time(duo.client), duo.at_client)
        .unwrap();
    assert!(report.one_way_delay.abs_diff(ms(45)) < ms(1), "{report:?}");
    assert!(report.clock_residual.unwrap() < ms(1));
    assert!(report.clock_bound.unwrap() >= ms(45));
    for (_, outcome) in &duo.outcomes {
        let Outcome::OnTime { latency, bound } = outcome else {
            panic!("{outcome:?}")
        };
        assert!(
            latency.abs_diff(ms(45)) <= *bound + Duration::from_micros(50),
            "{outcome:?}"
        );
    }
}

/// Goal: the forecast says what is to be had.   Method: compared with a deadline that cannot be kept, and one that can.
#[test]
fn a_forecast_is_honest() {
    let mut duo = Duo::connect(
        4,
        &path(ms(100), |channel| channel.loss = LossModel::Uniform(0.05)),
    );
    for _ in 0..200 {
        duo.send(&[0; 2000], SendOptions::within(ms(400)));
        duo.run(ms(50));
    }
    let session = duo.at_client;
    let mut forecast = |within| {
        duo.world.with_endpoint(duo.client, |endpoint, now| {
            endpoint
                .forecast(now, session, 2000, &SendOptions::within(within))
                .unwrap()
        })
    };
    let impossible = forecast(ms(20));
    assert_eq!((impossible.rounds, impossible.on_time), (0, 0.0));
    let tight = forecast(ms(80));
    assert_eq!(tight.rounds, 1);
    let easy = forecast(ms(400));
    assert!(easy.on_time > 0.999 && easy.rounds >= 3, "{easy:?}");
    assert!(tight.symbols_per_source_symbol > easy.symbols_per_source_symbol);
}

/// A regression: the first message of 16 KB of a session was promised within a round and a half, and its end had to wait a round trip, since no
/// more than ten packets may leave before something is heard.
#[test]
fn a_forecast_knows_the_window() {
    let mut duo = Duo::connect(4, &path(ms(100), |_| {}));
    let session = duo.at_client;
    let mut forecast = |len, within| {
        duo.world.with_endpoint(duo.client, |endpoint, now| {
            endpoint
                .forecast(now, session, len, &SendOptions::within(within))
                .unwrap()
                .on_time
        })
    };
    assert!(forecast(4_000, ms(100)) > 0.9);
    assert!(forecast(20_000, ms(100)) < 1e-6);
    assert!(forecast(20_000, ms(250)) > 0.9);
    assert!(forecast(60_000, ms(240)) < 1e-6, "12 KB, 24, 48");
}

/// Goal: keys are replaced on the way and nobody notices.   Method: every 30 packets, over a path that loses and reorders.
#[test]
fn keys_are_replaced_under_way() {
    let rough = path(ms(40), |channel| {
        channel.loss = LossModel::Uniform(0.05);
        channel.reorder = Reorder {
            share: 0.05,
            extra: ms(10),
        };
    });
    let config = |config: punctual_proto::EndpointConfig| punctual_proto::EndpointConfig {
        key_update_packets: 30,
        ..config
    };
    let mut duo = Duo::connect_with(
        6,
        &rough,
        config(support::server_config()),
        config(support::client_config()),
    );
    for _ in 0..300 {
        duo.send(&[5; 3000], SendOptions::within(ms(150)));
        duo.run(ms(30));
    }
    duo.run(Duration::from_secs(3));
    assert_eq!(duo.received.len(), 300);
    assert!(duo.stats().key_updates > 10, "{:?}", duo.stats());
    assert_eq!(duo.server_stats().packets_forged, 0);
}

/// A regression: rounds were planned for what the next message ends: of inputs on a sequenced stream, 60 a second, 1.1 % never arrived at 2 % of loss, where one in a thousand was
/// asked for and predicted.
#[test]
fn what_the_next_message_ends_has_no_second_round() {
    for loss in [0.02, 0.05] {
        let lossy = path(ms(60), |channel| channel.loss = LossModel::Uniform(loss));
        let mut duo = Duo::connect(3, &lossy);
        let input = duo.open(StreamConfig::new(Delivery::UnreliableSequenced));
        let count = 6000;
        for number in 0..count {
            duo.send_on(
                input,
                &u32::to_be_bytes(number),
                SendOptions::within(ms(100)),
            );
            duo.run(Duration::from_micros(16_667));
        }
        duo.run(Duration::from_secs(2));
        let arrived = duo.received.len();
        println!("{loss}: {arrived} {:?}", duo.stream_stats(input));
        assert!(
            arrived + 18 > count as usize,
            "{loss}: {arrived} of {count}"
        );
    }
}
