//! A path that carries smaller packets than it did when what is on its way was cut.

mod support;

use std::sync::Arc;
use std::time::Duration;

use punctual_proto::{Delivery, Outcome, SendOptions, StreamConfig, StreamId};
use support::{Duo, ms, path};

/// An Ethernet frame, and what a tunnel leaves of it.
const WIDE: Option<u16> = None;
const NARROW: Option<u16> = Some(1330);

fn wide() -> Duo {
    let mut duo = Duo::connect(1, &path(ms(40), |_| {}));
    duo.world.set_mtu(WIDE);
    duo.run(Duration::from_secs(2));
    duo
}

/// Sends a message of `len` bytes over a path that becomes narrow after `wide_for`, with something small each 100 ms or alone. How long it took, and what it cost in bytes.
fn send_while_it_narrows(
    delivery: Delivery,
    len: usize,
    wide_for: Duration,
    is_alone: bool,
) -> (Duration, u64) {
    let mut duo = wide();
    let (stream, other) = (
        duo.open(StreamConfig::new(delivery)),
        duo.open(StreamConfig::new(Delivery::Reliable)),
    );
    let (client, session) = (duo.client, duo.at_client);
    let content: Vec<u8> = (0..len).map(|at| (at / 7) as u8).collect();
    let shared: Arc<[u8]> = content.clone().into();
    if wide_for.is_zero() {
        duo.world.set_mtu(NARROW);
    }
    let message = duo.world.with_endpoint(client, |endpoint, now| {
        let options = SendOptions::default();
        let content = Arc::new(shared);
        endpoint
            .send_shared(now, session, stream, content, options)
            .unwrap()
    });
    let before = duo.stats().symbol_bytes;
    duo.run(wide_for);
    duo.world.set_mtu(NARROW);
    for _ in 0..300 {
        if !is_alone {
            duo.world.with_endpoint(client, |endpoint, now| {
                let options = SendOptions::default();
                endpoint
                    .send(now, session, other, &[9; 10], options)
                    .unwrap();
            });
        }
        duo.run(ms(100));
    }
    let what = format!("{delivery:?}, {len} bytes, alone: {is_alone}");
    assert!(duo.closed.is_empty(), "{what}: {:?}", duo.closed);
    let received: Vec<&[u8]> = duo
        .received
        .iter()
        .map(|entry| &entry.2[..])
        .filter(|data| data.len() > 10)
        .collect();
    if len <= 256 << 10 {
        assert_eq!(received.len(), 1, "{what}");
        assert!(received[0] == content, "{what}");
    } else {
        assert!(duo.pieces > 10 && duo.aborted == 0, "{what}");
    }
    let outcome = duo.outcomes.iter().find(|entry| entry.0 == message);
    let Some((_, Outcome::OnTime { latency, .. })) = outcome else {
        panic!("{what}: {outcome:?}");
    };
    (*latency, duo.stats().symbol_bytes - before)
}

/// A regression: what was cut for a wide path was sent in symbols that a narrower one drops, for ever: 50 MB in five minutes for one message, and an ordered stream stood still.
/// Method: messages of one block, of several, and more than are joined, under way when the path becomes narrow; with something else that passes, and without.
#[test]
fn what_was_cut_for_a_wide_path_arrives_over_a_narrow_one() {
    for delivery in [Delivery::Reliable, Delivery::ReliableOrdered] {
        for (len, wide_for) in [
            (1400, 0),
            (10_000, 0),
            (60_000, 5),
            (200_000, 30),
            (2_000_000, 90),
        ] {
            for is_alone in [false, true] {
                let (took, bytes) = send_while_it_narrows(delivery, len, ms(wide_for), is_alone);
                let what = format!("{delivery:?}, {len} bytes, alone: {is_alone}");
                assert!(took < Duration::from_secs(2), "{what}: {took:?}");
                assert!(
                    bytes < 200_000 + len as u64 * 5 / 4,
                    "{what}: {bytes} bytes"
                );
            }
        }
    }
}

/// The same for content that comes piece by piece, where no part of the message but the last may have padding, and for who moves to a narrow path.
#[test]
fn what_is_written_piece_by_piece_arrives_over_a_path_that_becomes_narrow() {
    const LEN: usize = 300_000;
    for moves in [false, true] {
        let mut duo = wide();
        let (server, session) = (duo.server, duo.at_server.unwrap());
        let message = duo.world.with_endpoint(server, |endpoint, now| {
            let options = SendOptions::default();
            endpoint
                .begin(now, session, StreamId::DEFAULT, LEN, options)
                .unwrap()
        });
        let mut written = 0;
        for round in 0..400 {
            // Pieces of many lengths, in a sum that no symbol length divides.
            let piece = vec![round as u8; (1009 * (1 + round % 13)).min(LEN - written)];
            if !piece.is_empty() {
                written += duo.world.with_endpoint(server, |endpoint, _| {
                    endpoint.append(session, message, &piece).unwrap()
                });
            }
            duo.run(ms(10));
            if round == 17 {
                duo.world.set_mtu(NARROW);
                if moves {
                    duo.world.change_address(duo.client);
                }
            }
        }
        // (A client that only receives, and was quiet until then, is found by its keep-alive.)
        duo.run(Duration::from_secs(10));
        assert_eq!(written, LEN);
        let outcomes = &duo.outcomes[..];
        assert_eq!(outcomes.len(), 1, "{moves}");
        let is_on_time = |entry: &(_, Outcome)| matches!(entry.1, Outcome::OnTime { .. });
        assert!(outcomes.iter().all(is_on_time), "{outcomes:?}");
        assert_eq!(duo.aborted, 0);
        assert!(duo.closed.is_empty(), "{:?}", duo.closed);
    }
}

/// A regression: what a client sent in vain counted as life, and put its keep-alive off until its session had ended.
/// Method: from some time on nothing that the client sends passes but the smallest, and a message that waits for its outcome.
#[test]
fn who_sends_in_vain_keeps_its_session() {
    let mut duo = wide();
    duo.world.set_mtu(Some(100));
    duo.send(&[1; 10_000], SendOptions::default());
    duo.run(Duration::from_secs(120));
    assert!(duo.closed.is_empty(), "{:?}", duo.closed);
    duo.world.set_mtu(WIDE);
    duo.run(Duration::from_secs(10));
    assert_eq!(duo.received.len(), 1);
}

/// A regression: losses of what was given up before they were known did not count, and of an ordered stream that gives up at once nothing ever arrived.
#[test]
fn what_is_given_up_early_tells_that_a_path_is_narrow() {
    for delivery in [Delivery::ReliableOrdered, Delivery::Unreliable] {
        let mut duo = Duo::connect(1, &path(ms(80), |_| {}));
        duo.run(Duration::from_secs(2));
        let (large, small) = (
            duo.open(StreamConfig::new(delivery)),
            duo.open(StreamConfig::new(Delivery::Unreliable)),
        );
        let (client, session) = (duo.client, duo.at_client);
        duo.world.set_mtu(NARROW);
        for _ in 0..200 {
            duo.world.with_endpoint(client, |endpoint, now| {
                // Less than a round trip.
                let options = SendOptions::within(ms(60)).drop_when_late();
                let whole = options.source_symbols(1);
                endpoint
                    .send(now, session, large, &[1; 1434], whole)
                    .unwrap();
                endpoint
                    .send(now, session, small, &[9; 10], options)
                    .unwrap();
            });
            duo.run(ms(20));
        }
        let arrived = duo
            .received
            .iter()
            .filter(|entry| entry.2.len() > 10)
            .count();
        assert!(arrived > 150, "{delivery:?}: {arrived} of 200");
    }
}

/// A regression: what was cut for the path that a client left was sent over its new one as it was, and lost where that is narrower: 19 of 45 messages were late.
#[test]
fn nothing_is_sent_over_a_new_path_that_has_not_been_seen_to_pass() {
    for narrow in [WIDE, Some(1268)] {
        let mut duo = wide();
        let (server, session) = (duo.server, duo.at_server.unwrap());
        for message in 0..150 {
            if message == 100 {
                duo.world.set_mtu(narrow);
                duo.world.change_address(duo.client);
                duo.send(&[1], SendOptions::default());
            }
            duo.world.with_endpoint(server, |endpoint, now| {
                let options = SendOptions::within(ms(400));
                endpoint
                    .send(now, session, StreamId::DEFAULT, &[2; 5000], options)
                    .unwrap();
            });
            duo.run(ms(20));
        }
        duo.run(Duration::from_secs(1));
        let late = duo.outcomes.iter();
        let late = late.filter(|(_, outcome)| !matches!(outcome, Outcome::OnTime { .. }));
        assert_eq!((duo.outcomes.len(), late.count()), (151, 0), "{narrow:?}");
    }
}
