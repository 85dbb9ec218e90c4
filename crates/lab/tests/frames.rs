//! Hosts that look at their network once a frame, as a game's loop does.

mod support;

use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{LossModel, RateSpec};
use punctual_lab::simulate::{PolicyResult, SimulateOptions, simulate};
use punctual_lab::world::Moment;
use punctual_policy::PolicyKind;
use punctual_proto::{EndpointConfig, SendOptions, StreamId};
use support::{Duo, client_config, ms, path, server_config};

/// A round trip of 60 ms and 2 % loss, four symbols a message, at 60 frames a second.
fn play(deadline: Duration, messages: u64) -> Vec<PolicyResult> {
    let mut lossy = path(ms(60), |channel| channel.loss = LossModel::Uniform(0.02));
    Arc::make_mut(&mut lossy.backward).loss = LossModel::None;
    let options = SimulateOptions {
        sessions: 8,
        messages,
        interval: ms(50),
        message_bytes: 1000,
        symbols: Some(4),
        frame: Duration::from_nanos(16_666_667),
        policies: vec![PolicyKind::Exact, PolicyKind::Steered],
        ..SimulateOptions::new(lossy, deadline)
    };
    simulate(&options, |_| {}).expect("the path lets sessions begin")
}

/// A second round was planned as if its timer fired when it was due, and began up to a frame later, too late for the deadline: 0.8 to 1.3 % late
/// where 0.1 were asked for and 0.05 predicted. How late timers are is learned, and what they lead to is due that much earlier.
#[test]
fn a_frame_is_time_that_rounds_do_not_have() {
    for deadline in [110, 120, 130] {
        for result in play(ms(deadline), 40_000) {
            let summary = result.summary;
            assert!(summary.late_share_95.low <= 0.001, "{summary:?}");
            let predicted = summary.predicted_late_share.expect("it predicts");
            assert!(predicted < 0.001_3, "{summary:?}");
        }
    }
}

/// Answers are there when the loop looks, or they are not there until it looks again: a round is over when it looks the time nearest to its end, not the
/// time after that. (2.6 % of redundancy with time for two rounds of 67 ms, 10 % if they take 83.)
#[test]
fn a_round_does_not_wait_for_a_frame_that_brings_nothing() {
    // (0.108 % of 400,000 are late, and of the first 160,000 by chance 0.116.)
    let steered = &play(ms(150), 400_000)[1].summary;
    assert!(steered.recovery_overhead < 0.04, "{steered:?}");
    assert!(steered.late_share_95.low <= 0.001, "{steered:?}");
}

/// The share of a path's rate that uploads of ten seconds get, where one side looks once a frame, and the other at once.
fn carried(rtt: Duration, bits_per_second: u64, is_client: bool, frame: Duration) -> f64 {
    static MESSAGE: [u8; 20_000] = [7; 20_000];
    let narrow = path(rtt, |channel| {
        channel.rate = Some(RateSpec::constant(bits_per_second, 1_000_000));
    });
    let client = EndpointConfig {
        is_polled: is_client,
        ..client_config()
    };
    let mut duo = Duo::connect_with(1, &narrow, server_config(), client);
    let (looks, (client, session)) = (
        if is_client { duo.client } else { duo.server },
        (duo.client, duo.at_client),
    );
    duo.world.set_frame(looks, frame, Duration::ZERO);
    for _ in 0..2000 {
        // What is refused, for want of room, is not sent.
        let _ = duo
            .world
            .send(client, session, &MESSAGE, SendOptions::default());
        duo.run(ms(5));
    }
    duo.received.len() as f64 * MESSAGE.len() as f64 * 8.0 / (10.0 * bits_per_second as f64)
}

/// What an answer waits for until a loop looks at it was taken for a queue: uploads at 30 frames a second got a sixth to a half of 4 Mbit/s.
#[test]
fn the_frames_of_who_sends_are_no_queue() {
    for rtt in [20, 30, 40, 60, 80, 100] {
        let share = carried(ms(rtt), 4_000_000, true, Duration::from_micros(33_333));
        assert!(share > 0.85, "{share} at {rtt} ms");
    }
}

/// The same on the other side: a download to a game at 60 frames a second got a third to a half of 20 Mbit/s. Nothing tells the sender of frames but that what
/// it sends is answered for together.
#[test]
fn the_frames_of_who_receives_are_no_queue() {
    for rtt in [10, 30, 60, 100] {
        let share = carried(ms(rtt), 20_000_000, false, Duration::from_micros(16_667));
        assert!(share > 0.64, "{share} at {rtt} ms");
    }
}

/// A regression: an acknowledgement named 12 runs of what had arrived, and a frame's packets of a download with losses have more. What lay below was never
/// acknowledged, and sent again: a ninth of all that arrived, where acknowledgements were lost, too.
#[test]
fn all_that_arrives_within_a_frame_is_acknowledged() {
    // Losses there and back, and the share of what arrived that may be taken for lost for good.
    for (there, back, most) in [(0.1, 0.0, 0.001), (0.3, 0.0, 0.001), (0.1, 0.1, 0.02)] {
        let mut lossy = path(ms(40), |channel| {
            channel.loss = LossModel::Uniform(there);
            channel.rate = Some(RateSpec::constant(40_000_000, 400_000));
        });
        Arc::make_mut(&mut lossy.forward).loss = LossModel::Uniform(back);
        let mut duo = Duo::connect(1, &lossy);
        let frame = if there > 0.2 { 16 } else { 33 };
        duo.world.set_frame(duo.client, ms(frame), Duration::ZERO);
        let (server, session) = (duo.server, duo.at_server.expect("it is connected"));
        let lost_before = duo.world.lost_to(duo.client);
        for _ in 0..20 {
            let content: Arc<[u8]> = vec![7; 16 << 20].into();
            duo.world.with_endpoint(server, |endpoint, now| {
                let (stream, options) = (StreamId::DEFAULT, SendOptions::default());
                // Refused when enough waits.
                let _ = endpoint.send_shared(now, session, stream, Arc::new(content), options);
            });
            duo.run(ms(500));
        }
        let (stats, arrived) = (duo.server_stats(), duo.stats().packets_received);
        let lost = duo.world.lost_to(duo.client) - lost_before;
        let wrongly = stats.packets_lost as f64 - stats.packets_spurious as f64 - lost as f64;
        assert!(wrongly < most * arrived as f64, "{wrongly} of {arrived}");
    }
}

/// Goal: a game whose loops flush soon after they look sends a datagram a frame, with what it has to say and what it has to acknowledge; it was two.
/// Method: both sides send in each frame, 1 ms after they have looked or 4.
#[test]
fn answers_share_the_datagrams_of_their_frame() {
    let us = Duration::from_micros;
    for work in [us(1000), us(4000)] {
        let polled = |config| EndpointConfig {
            is_polled: true,
            ..config
        };
        let lossless = path(ms(60), |_| {});
        let (server, client) = (polled(server_config()), polled(client_config()));
        let mut duo = Duo::connect_with(1, &lossless, server, client);
        let (server, at_server) = (duo.server, duo.at_server.expect("it is connected"));
        let frame = us(16_667);
        for (host, phase) in [(duo.client, us(6_000)), (server, Duration::ZERO)] {
            duo.world.set_frame(host, frame, phase);
            duo.world.set_work(host, work);
        }
        let since_look = duo.world.now().since(Moment(0)).as_nanos() % frame.as_nanos();
        duo.run(frame - Duration::from_nanos(since_look as u64) + us(500));
        let before = (duo.stats().packets_sent, duo.server_stats().packets_sent);
        let frames = 1000;
        for _ in 0..frames {
            // Half a millisecond after each has looked.
            let options = SendOptions::within(ms(150));
            let state = duo.world.send(server, at_server, &[2; 500], options);
            state.expect("there is room");
            duo.run(us(6_000));
            duo.send(&[1; 60], options);
            duo.run(frame - us(6_000));
        }
        let stats = [duo.stats(), duo.server_stats()];
        for (stats, before) in stats.iter().zip([before.0, before.1]) {
            let sent = stats.packets_sent - before;
            assert!(sent < frames * 104 / 100, "{work:?}: {sent}");
            // (Before it is known how long answers take.)
            assert!(stats.packets_lost < 40, "{work:?}: {stats:?}");
        }
        duo.run(Duration::from_secs(1));
        for stats in [duo.stats(), duo.server_stats()] {
            assert_eq!(stats.messages_on_time, frames, "{work:?}: {stats:?}");
        }
    }
}

/// A regression: where a loop had stood still three times for a third of a second, or took three frames for one now and then, its frames were taken to be as
/// long: rounds ended before an answer could come, and packets left twice.
#[test]
fn hitches_end_no_rounds_early() {
    let frame = Duration::from_nanos(16_666_667);
    for rtt in [60, 100] {
        for frames_left_out in [1, 2, 3, 18] {
            let client = EndpointConfig {
                is_polled: true,
                ..client_config()
            };
            let mut duo = Duo::connect_with(1, &path(ms(rtt), |_| {}), server_config(), client);
            let mut frames = 300;
            duo.world.set_frame(duo.client, frame, Duration::ZERO);
            let run_until = |duo: &mut Duo, at: Duration| {
                let now = duo.world.now().since(Moment(0));
                duo.run(at - now);
            };
            let mut before = duo.stats();
            for message in 0..600 {
                if message == 100 {
                    before = duo.stats();
                }
                frames += 2 + message % 3;
                run_until(&mut duo, frame * frames);
                // (Long ones all the time are a reason to send early.)
                if message % 10 == 3 && (frames_left_out < 10 || [13, 33, 53].contains(&message)) {
                    frames += frames_left_out;
                    duo.world.set_frame(duo.client, frame, frame * frames);
                    run_until(&mut duo, frame * frames);
                }
                duo.send(&[7; 200], SendOptions::within(ms(4 * rtt)));
            }
            let after = duo.stats();
            assert_eq!(after.packets_lost, before.packets_lost);
            // Answers to what the server sends leave by themselves now and then.
            let sent = after.packets_sent - before.packets_sent;
            assert!(sent < 510, "{frames_left_out} of {rtt} ms: {sent}");
        }
    }
}
