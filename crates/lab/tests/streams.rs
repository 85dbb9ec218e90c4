//! What streams promise, one drawing of a network at a time.

mod support;

use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{LossModel, PathSpec, RateSpec};
use punctual_lab::world::Moment;
use punctual_proto::{
    Cancel, Delivery, EndpointConfig, Fairness, MessageId, MissReason, Outcome, SendError,
    SendOptions, SharedContent, StreamConfig, StreamError, StreamId, ThinStreams, WhenLate, limits,
};
use support::{Duo, client_config, ms, path, server_config};

/// A path whose client sends at `kilobytes_per_second` at most, with a queue of 100 kB.
fn narrow(kilobytes_per_second: u64) -> PathSpec {
    let mut narrow = path(ms(40), |_| {});
    Arc::make_mut(&mut narrow.forward).rate =
        Some(RateSpec::constant(kilobytes_per_second * 8000, 100_000));
    narrow
}

fn milliseconds(at: Moment, since: Moment) -> f64 {
    at.since(since).as_secs_f64() * 1e3
}

/// Goal: a large message delays a small urgent one by not more than one packet's time.
/// Method: 60 MB under way; every 50 ms a small message with a deadline on another stream, or a more important one on
/// the same.
#[test]
fn a_large_message_does_not_delay_a_small_urgent_one() {
    for same_stream in [false, true] {
        let mut duo = Duo::connect(1, &path(ms(40), |_| {}));
        let bulk = duo.open(StreamConfig::new(Delivery::Reliable));
        let urgent = if same_stream {
            bulk
        } else {
            duo.open(StreamConfig::new(Delivery::Reliable))
        };
        let content: SharedContent = Arc::new(vec![1u8; 60_000_000]);
        let session = duo.at_client;
        let transfer = duo
            .world
            .with_endpoint(duo.client, |endpoint, now| {
                endpoint.send_shared(now, session, bulk, content, SendOptions::default())
            })
            .unwrap();
        duo.run(ms(500));
        let mut waits = Vec::new();
        for number in 0..40u8 {
            let sent_at = duo.world.now();
            duo.received.clear();
            let options = SendOptions::within(ms(100)).importance(200);
            duo.send_on(urgent, &[number; 100], options);
            duo.run(ms(50));
            let (at, ..) = *duo
                .received
                .iter()
                .find(|(_, _, data)| data.len() == 100)
                .expect("it arrives within 50 ms");
            waits.push(milliseconds(at, sent_at) - 20.0);
        }
        assert_eq!(
            duo.outcome_of(transfer),
            None,
            "the transfer is still under way"
        );
        // A packet takes less than 0.1 ms at these windows, but the pacer may hold one for 1 ms.
        let longest = waits.iter().fold(0.0, |a: f64, b| a.max(*b));
        assert!(longest < 2.0, "same stream: {same_stream}: {longest} ms");
    }
}

/// Goal: `Latest` sends the newest and no more.   Method: 100 updates of one thing at once through a narrow path.
#[test]
fn a_newer_message_takes_the_place_of_an_older_one() {
    let mut duo = Duo::connect(2, &narrow(50));
    let state = duo.open(StreamConfig::new(Delivery::Latest));
    let messages: Vec<MessageId> = (0..100u8)
        .map(|number| duo.send_on(state, &[number; 3000], SendOptions::default().key(7)))
        .collect();
    let other = duo.send_on(state, &[200; 10], SendOptions::default().key(8));
    duo.run(Duration::from_secs(5));
    let mut newest = duo.received.iter().map(|(_, _, data)| data[0]);
    assert_eq!(newest.rfind(|first| *first != 200), Some(99));
    assert!(matches!(
        duo.outcome_of(other),
        Some(Outcome::OnTime { .. })
    ));
    let stats = duo.stream_stats(state);
    assert!(stats.superseded >= 98, "{stats:?}");
    assert_eq!(stats.accepted, 101);
    assert_eq!(messages.len() + 1, duo.outcomes.len());
}

/// Goal: the newest arrives even when it is lost again and again, and nothing stale after it.
#[test]
fn the_newest_message_is_reliable() {
    let lossy = path(ms(60), |channel| channel.loss = LossModel::Uniform(0.4));
    let mut duo = Duo::connect(5, &lossy);
    let state = duo.open(StreamConfig::new(Delivery::Latest));
    for number in 0..200u8 {
        for key in 0..3 {
            duo.send_on(state, &[number, key as u8], SendOptions::default().key(key));
        }
        duo.run(ms(7));
    }
    duo.run(Duration::from_secs(10));
    for key in 0..3u8 {
        let seen: Vec<u8> = duo
            .received
            .iter()
            .filter(|(_, _, data)| data[1] == key)
            .map(|(_, _, data)| data[0])
            .collect();
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
        assert_eq!(seen.last(), Some(&199));
    }
}

/// Goal: what is cancelled before it left is never seen; what is under way says what became of it; too late is told.
#[test]
fn cancelling_says_what_happened() {
    let mut duo = Duo::connect(3, &narrow(50));
    let stream = duo.open(StreamConfig::new(Delivery::ReliableOrdered));
    let first = duo.send_on(stream, &[1; 100], SendOptions::default());
    duo.run(ms(10));
    assert_eq!(duo.cancel(first), Cancel::InFlight);
    assert_eq!(duo.cancel(first), Cancel::TooLate, "once is enough");
    let large = duo.send_on(stream, &[2; 200_000], SendOptions::default());
    let queued = duo.send_on(stream, &[3; 100], SendOptions::default());
    let last = duo.send_on(stream, &[4; 100], SendOptions::default());
    duo.run(ms(200));
    assert_eq!(duo.cancel(queued), Cancel::Dropped);
    assert_eq!(duo.cancel(large), Cancel::Dropped);
    duo.run(Duration::from_secs(2));
    assert_eq!(duo.cancel(last), Cancel::TooLate);
    assert_eq!(duo.cancel(MessageId(12345)), Cancel::TooLate);
    assert!(
        matches!(duo.outcome_of(first), Some(Outcome::OnTime { .. })),
        "it was delivered: too late to cancel"
    );
    assert_eq!(
        duo.outcome_of(large),
        Some(Outcome::Cancelled { sent: true })
    );
    assert_eq!(
        duo.outcome_of(queued),
        Some(Outcome::Cancelled { sent: false })
    );
    let seen: Vec<u8> = duo.received.iter().map(|(_, _, data)| data[0]).collect();
    assert_eq!(
        seen,
        [1, 4],
        "those after a cancelled one do not wait for it"
    );
    assert!(duo.world.endpoint(duo.server).is_quiet());
}

/// Goal: sends of one tick leave in as few packets as fit, and a tick that nobody ends, ends.
#[test]
fn a_tick_shares_packets() {
    let packets = |tick: Option<Duration>, flush: bool| {
        let mut duo = Duo::connect(4, &path(ms(40), |_| {}));
        let (client, session) = (duo.client, duo.at_client);
        duo.world
            .with_endpoint(client, |endpoint, _| endpoint.set_tick(session, tick));
        duo.run(ms(100));
        let before = duo.stats().packets_sent;
        let started = duo.world.now();
        for number in 0..10u8 {
            duo.send(&[number; 100], SendOptions::default());
            // The driver looks for something to send after each.
            duo.world.step(started);
        }
        if flush {
            duo.world
                .with_endpoint(client, |endpoint, _| endpoint.flush(session));
        }
        duo.run(ms(200));
        assert_eq!(duo.received.len(), 10);
        let first = milliseconds(duo.received[0].0, started);
        (duo.stats().packets_sent - before, first)
    };
    assert_eq!(packets(None, false), (10, 20.0));
    assert_eq!(packets(Some(ms(33)), true), (1, 20.0));
    let (count, first) = packets(Some(ms(33)), false);
    assert_eq!(count, 1);
    assert!((53.0..53.1).contains(&first), "{first}");
}

/// Goal: a lost small message travels again with the next one. Method: one message each 20 ms, a tenth of the packets lost.
#[test]
fn small_messages_are_bundled() {
    let waits = |bundling| {
        let lossy = path(ms(130), |channel| channel.loss = LossModel::Uniform(0.1));
        let thin_streams = ThinStreams {
            bundling,
            ..ThinStreams::default()
        };
        let client = EndpointConfig {
            thin_streams,
            ..client_config()
        };
        let mut duo = Duo::connect_with(6, &lossy, server_config(), client);
        let stream = duo.open(StreamConfig::new(Delivery::ReliableOrdered));
        let mut sent_at = Vec::new();
        for number in 0..2000u16 {
            sent_at.push(duo.world.now());
            duo.send_on(stream, &number.to_be_bytes(), SendOptions::default());
            duo.run(ms(20));
        }
        duo.run(Duration::from_secs(2));
        assert_eq!(duo.received.len(), 2000);
        let latencies = duo.received.iter().zip(&sent_at);
        let late = latencies.filter(|((at, ..), sent)| milliseconds(*at, **sent) > 66.0);
        (late.count(), duo.stream_stats(stream))
    };
    let (with, stats) = waits(true);
    let (without, plain) = waits(false);
    // Lost ones are late by one gap, and none waits for them: 10 % of 2,000. Without, those behind a lost one wait a round trip.
    assert!((160..250).contains(&with), "{with} late with bundling");
    assert!(without > 4 * with, "{without} late without");
    assert!(stats.symbols_bundled > 3000 && plain.symbols_bundled == 0);
    assert_eq!(stats.bundled_bytes, stats.symbols_bundled * 6);
}

/// Goal: a full queue is an error that names its limit, and an event when there is room.
#[test]
fn a_full_queue_says_so_and_says_when_it_is_not() {
    let mut duo = Duo::connect(7, &narrow(200));
    let (client, session) = (duo.client, duo.at_client);
    let mut accepted = 0;
    let error = loop {
        match duo
            .world
            .send(client, session, &[0; 10_000], SendOptions::default())
        {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    let limit = limits::SEND_QUEUE_MAX;
    assert_eq!(error, SendError::Full { limit });
    // Seven eighths of it: another stream may send.
    assert!((90..=92).contains(&accepted), "{accepted}");
    let other = duo.open(StreamConfig::new(Delivery::Reliable));
    duo.send_on(other, &[1; 10_000], SendOptions::default());
    accepted += 1;
    duo.run(Duration::from_secs(10));
    assert_eq!(duo.received.len(), accepted);
    assert_eq!(duo.writable, 1);
}

/// A regression: what a stream was sent beyond its path's means took all places of the session, and those with a place left were refused theirs.
#[test]
fn a_stream_that_is_sent_too_much_leaves_room_to_others() {
    for bytes in [100, 3000] {
        let mut duo = Duo::connect(9, &narrow(100));
        let flood = duo.open(StreamConfig::new(Delivery::Reliable));
        let input = duo.open(StreamConfig::new(Delivery::Reliable).weight(100));
        let options = SendOptions::within(ms(200));
        let (client, session) = (duo.client, duo.at_client);
        let mut refused = 0;
        for _ in 0..1000 {
            // Three times what the path carries, and none of it is given up.
            for _ in 0..6000 / bytes {
                let sent = duo.world.with_endpoint(client, |endpoint, now| {
                    endpoint.send(now, session, flood, &vec![1; bytes], options)
                });
                refused += u32::from(sent.is_err());
            }
            duo.send_on(input, &[2; 60], options.importance(200));
            duo.run(ms(20));
        }
        assert!(refused > 1000, "{bytes}: {refused}");
        let input = duo.stream_stats(input);
        // But for a start that fills the path's queue.
        assert!(input.on_time >= 950, "{bytes}: {input:?}");
    }
}

/// Goal: when the budget is short, what tolerates loss is thinned as far as it said, and the rest goes.
#[test]
fn a_short_budget_thins_what_tolerates_it() {
    let mut duo = Duo::connect(8, &narrow(1000));
    let detail = duo.open(StreamConfig::new(Delivery::Unreliable));
    let vital = duo.open(StreamConfig::new(Delivery::Unreliable));
    for _ in 0..300 {
        // A quarter more than the path carries.
        let options = SendOptions::within(ms(200));
        duo.send_on(detail, &[1; 20_000], options.loss_tolerance(0.5));
        duo.send_on(vital, &[2; 4_000], options);
        duo.run(ms(20));
    }
    duo.run(Duration::from_secs(2));
    let (detail, vital) = (duo.stream_stats(detail), duo.stream_stats(vital));
    let thinned = detail.dropped_because(MissReason::Thinned);
    assert!((60..=150).contains(&thinned), "{thinned} of 300");
    assert_eq!(vital.dropped_because(MissReason::Thinned), 0);
    assert!(vital.on_time >= 290, "{vital:?}");
}

/// A regression: each message waited behind older ones until it could only be late, and left nevertheless: of a stream of which its path carries four fifths, 3 % were in
/// time where what is late is dropped, and half where it is delivered.
#[test]
fn what_the_path_carries_of_too_much_is_in_time() {
    for (bytes, interval_us) in [(1100, 2000), (5000, 9091), (8000, 14_545)] {
        for when_late in [WhenLate::Drop, WhenLate::Deliver] {
            let mut duo = Duo::connect(1, &narrow(500));
            let options = SendOptions {
                when_late,
                ..SendOptions::within(ms(200))
            };
            let messages = 10_000_000 / interval_us;
            for _ in 0..messages {
                // What is refused is not in time, either.
                let _ = duo
                    .world
                    .send(duo.client, duo.at_client, &vec![7; bytes], options);
                duo.run(Duration::from_micros(interval_us));
            }
            duo.run(Duration::from_secs(5));
            let share = duo.stats().messages_on_time as f64 / messages as f64;
            println!("{bytes} {when_late:?} {share}");
            assert!(share > 0.65, "{bytes} bytes, {when_late:?}: {share}");
        }
    }
}

/// Goal: a forecast counts what is queued before.
#[test]
fn a_forecast_knows_the_queue() {
    let mut duo = Duo::connect(9, &narrow(100));
    let forecast = |duo: &mut Duo| {
        let session = duo.at_client;
        duo.world
            .with_endpoint(duo.client, |endpoint, now| {
                endpoint.forecast(now, session, 500, &SendOptions::within(ms(100)))
            })
            .unwrap()
    };
    let free = forecast(&mut duo);
    assert!(
        free.on_time > 0.9 && free.queue_delay == Duration::ZERO,
        "{free:?}"
    );
    for _ in 0..100 {
        duo.send(&[0; 1000], SendOptions::within(Duration::from_secs(5)));
    }
    duo.run(ms(5));
    let behind = forecast(&mut duo);
    assert!(behind.queue_delay > ms(50), "{behind:?}");
    assert!(behind.on_time < 0.1, "{behind:?}");
}

/// Goal: too many streams is a typed error; a closed one's number serves again.
#[test]
fn streams_are_bounded() {
    let mut duo = Duo::connect(10, &path(ms(40), |_| {}));
    let (client, session) = (duo.client, duo.at_client);
    let config = StreamConfig::new(Delivery::ReliableOrdered);
    for _ in 0..limits::STREAMS_MAX {
        duo.open(config);
    }
    let limit = limits::STREAMS_MAX;
    let more = duo
        .world
        .with_endpoint(client, |endpoint, _| endpoint.open_stream(session, config));
    assert_eq!(more, Err(StreamError::TooManyStreams { limit }));
    let none = duo.world.with_endpoint(client, |endpoint, now| {
        endpoint.close_stream(session, StreamId(5));
        endpoint.send(now, session, StreamId(5), &[1], SendOptions::default())
    });
    assert_eq!(none, Err(SendError::NoStream { stream: 5 }));
    assert_eq!(duo.open(config), StreamId(5));
    duo.send_on(StreamId(5), &[1], SendOptions::default());
    duo.run(ms(100));
    assert_eq!(duo.received.len(), 1);
}

/// Goal: an ordered stream goes on past the wrap of its sequence numbers, and of the session's block numbers.
#[test]
fn an_ordered_stream_outlives_its_sequence_numbers() {
    let lossy = path(ms(10), |channel| channel.loss = LossModel::Uniform(0.05));
    let mut duo = Duo::connect(11, &lossy);
    let stream = duo.open(StreamConfig::new(Delivery::ReliableOrdered));
    let mut next = 0u32;
    while next < 150_000 {
        for _ in 0..100 {
            let message = duo.send_on(stream, &next.to_be_bytes(), SendOptions::default());
            if next.is_multiple_of(97) {
                duo.cancel(message);
            }
            next += 1;
        }
        duo.run(ms(25));
    }
    duo.run(Duration::from_secs(2));
    let numbers: Vec<u32> = duo
        .received
        .iter()
        .map(|(_, _, data)| u32::from_be_bytes(data[..].try_into().unwrap()))
        .collect();
    assert!(numbers.is_sorted_by(|a, b| a < b));
    assert_eq!(numbers.len(), 150_000 - 150_000_usize.div_ceil(97));
}

/// A smaller newer message fitted the rest of the packet with an older one's first symbol, and ended that one half sent.
#[test]
fn a_sequenced_message_that_has_begun_is_sent_to_its_end() {
    let mut duo = Duo::connect(1, &path(ms(40), |_| {}));
    duo.run(Duration::from_secs(3));
    let stream = duo.open(StreamConfig::new(Delivery::UnreliableSequenced));
    for len in [2000, 20] {
        duo.send_on(stream, &vec![7; len], SendOptions::default());
    }
    duo.run(Duration::from_secs(2));
    let received: Vec<usize> = duo.received.iter().map(|(_, _, data)| data.len()).collect();
    assert_eq!(received, [2000, 20]);
}

/// While an acknowledgement was due, block after block was cut since none fitted beside it.
#[test]
fn an_acknowledgement_cuts_nothing_ahead() {
    let mut duo = Duo::connect(1, &narrow(250));
    duo.run(Duration::from_secs(3));
    let frame = Duration::from_micros(16_667);
    duo.world.set_frame(duo.client, frame, Duration::ZERO);
    duo.send(&[1; 3_000_000], SendOptions::default());
    let (server, session) = (duo.server, duo.at_server.expect("it is connected"));
    let before = duo.stats();
    for _ in 0..100 {
        let small = duo
            .world
            .send(server, session, &[1; 50], SendOptions::default());
        assert!(small.is_ok());
        for _ in 0..4 {
            duo.run(ms(5));
            let now = duo.stats();
            let cut = now.source_symbols - before.source_symbols;
            let ahead = cut.saturating_sub(now.symbols_sent - before.symbols_sent);
            assert!(
                ahead <= 64,
                "{ahead} symbols cut and not sent: more than a block"
            );
        }
    }
}

/// What was worth less than a 1,024th a symbol was charged nothing: one of two equal streams starved the other.
#[test]
fn small_qualities_share_as_well() {
    let mut duo = Duo::connect(1, &narrow(1000));
    let config = StreamConfig::new(Delivery::Reliable).fairness(Fairness::Quality);
    let streams = [duo.open(config), duo.open(config)];
    for _ in 0..15 {
        for stream in streams {
            duo.send_on(stream, &[1; 30_000], SendOptions::default().quality(0.02));
        }
    }
    duo.run(ms(500));
    let sent = streams.map(|stream| duo.stream_stats(stream).on_time);
    assert!(sent[0] > 4 && sent[0].abs_diff(sent[1]) <= 1, "{sent:?}");
}
