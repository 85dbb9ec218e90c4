//! Delivery modes, messages taken back, ticks, and what streams count.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use punctual::{
    Cancel, Delivery, Fairness, OpenError, Outcome, SendError, SendOptions, SessionStats,
    StreamConfig, StreamId,
};

use crate::support::{PATIENCE, noise, outcome, pair, recv, stream, stream_of};

/// Longer than any test: what waits for a tick waits until it is flushed.
const TICK: Duration = Duration::from_secs(3600);

fn number(data: &[u8]) -> u32 {
    u32::from_be_bytes(data[..4].try_into().unwrap())
}

/// Goal: an ordered stream hands on in the order of sending.   Method: all sizes and importances, so that nothing else keeps them
/// in order.
#[test]
fn an_ordered_stream_keeps_the_order() {
    let pair = pair();
    let out = stream_of(&pair.ours, Delivery::ReliableOrdered);
    for count in 0..300u32 {
        let mut data = noise(count as usize, 4 + (count as usize * 977) % 9000);
        data[..4].copy_from_slice(&count.to_be_bytes());
        let options = SendOptions::default().importance((count * 37) as u8);
        out.send_blocking(data, options).unwrap();
    }
    for count in 0..300 {
        assert_eq!(number(&recv(&pair.theirs).1), count);
    }
}

/// Goal: of a sequenced stream no message comes after a newer one, and of an unreliable one none comes twice.   Method: bursts, so
/// that some are lost or overtaken; every one has its outcome, and then a farewell on another stream ends the count.
#[test]
fn unreliable_messages_come_at_most_once() {
    for delivery in [Delivery::UnreliableSequenced, Delivery::Unreliable] {
        let pair = pair();
        let out = stream_of(&pair.ours, delivery);
        for count in 0..500u32 {
            out.send_blocking(count.to_be_bytes(), SendOptions::default())
                .unwrap();
        }
        let outcomes: BTreeSet<_> = (0..500).map(|_| outcome(&out).0).collect();
        assert_eq!(outcomes.len(), 500);
        let end = stream(&pair.ours);
        end.send(b"", SendOptions::default()).unwrap();
        let (mut seen, mut newest) = (BTreeSet::new(), None);
        loop {
            let (from, data) = recv(&pair.theirs);
            if from == end.id() {
                break;
            }
            let count = number(&data);
            assert!(seen.insert(count), "{count} came twice");
            if delivery == Delivery::UnreliableSequenced {
                assert!(newest < Some(count), "{count} came after {newest:?}");
                newest = Some(count);
            }
        }
        assert!(!seen.is_empty());
    }
}

/// Goal: the newest message of each key arrives, no older one after it, and the rest is superseded.   Method: more updates of four
/// keys than one packet holds, in one tick.
#[test]
fn the_latest_of_each_key_arrives() {
    const UPDATES: u32 = 400;
    let pair = pair();
    let out = stream_of(&pair.ours, Delivery::Latest);
    pair.ours.set_tick(Some(TICK));
    for count in 0..UPDATES {
        let mut data = vec![0; 700];
        data[..4].copy_from_slice(&count.to_be_bytes());
        let options = SendOptions::default().key(u64::from(count % 4));
        out.send(data, options).unwrap();
    }
    pair.ours.flush();
    let mut newest = BTreeMap::new();
    while newest.values().copied().collect::<Vec<_>>() != [396, 397, 398, 399] {
        let count = number(&recv(&pair.theirs).1);
        let before = newest.insert(count % 4, count);
        assert!(before < Some(count), "{count} came after {before:?}");
    }
    let outcomes: Vec<Outcome> = (0..UPDATES).map(|_| outcome(&out).1).collect();
    let superseded = |it: &&Outcome| matches!(it, Outcome::Superseded);
    // In one tick: none of the older ones has left.
    assert_eq!(outcomes.iter().filter(superseded).count(), 396);
    let stats = out.stats();
    assert_eq!(
        (stats.accepted, stats.superseded, stats.on_time),
        (400, 396, 4)
    );
}

/// Goal: what is taken back before it left never arrives, and the peer never hears of it.   Method: it waits for its tick when it
/// is cancelled; another message follows.
#[test]
fn a_queued_message_is_cancelled_without_a_trace() {
    let pair = pair();
    let out = stream(&pair.ours);
    pair.ours.set_tick(Some(TICK));
    let first = out.send(b"no", SendOptions::default()).unwrap();
    let second = out.send(b"yes", SendOptions::default()).unwrap();
    assert_eq!(out.cancel(first), Cancel::Dropped);
    assert_eq!(out.cancel(first), Cancel::TooLate);
    assert_eq!(outcome(&out), (first, Outcome::Cancelled { sent: false }));
    pair.ours.flush();
    assert_eq!(recv(&pair.theirs).1, b"yes");
    assert_eq!(outcome(&out).0, second);
    assert_eq!(out.cancel(second), Cancel::TooLate);
    assert_eq!(out.stats().cancelled, 1);
}

/// Goal: streams are opened and closed within their limits, with typed errors.   Method: all of them, and one more.
#[test]
fn streams_have_limits() {
    let pair = pair();
    let open = |config| pair.ours.open_stream(config);
    let plain = StreamConfig::new(Delivery::Latest);
    let error = open(plain.number(1024)).unwrap_err();
    assert_eq!(error, OpenError::Number { max: 1023 });
    let error = open(plain.weight(0)).unwrap_err();
    assert_eq!(error, OpenError::Weight { max: 1000 });

    let mut streams: Vec<_> = (0..1024).map(|_| open(plain).unwrap()).collect();
    let limit = 1024;
    let error = open(plain).unwrap_err();
    assert_eq!(error, OpenError::TooManyStreams { limit });
    drop(streams.remove(500));
    let config = plain.weight(7).fairness(Fairness::Quality);
    let again = open(config).unwrap();
    assert_eq!(again.id(), StreamId(500));
    again.set_weight(3);
    again.send(b"still works", SendOptions::default()).unwrap();
    assert_eq!(recv(&pair.theirs), (StreamId(500), b"still works".to_vec()));

    pair.ours.close(punctual::CloseCode::DONE, "");
    let why = pair.ours.closed_blocking();
    assert_eq!(
        open(plain).unwrap_err(),
        OpenError::Closed { why: Some(why) }
    );
}

/// Goal: a stream whose number was another's before does not see the other's outcomes.   Method: close and reopen at once, many
/// times over.
#[test]
fn a_number_that_serves_again_brings_no_old_outcomes() {
    let pair = pair();
    let config = StreamConfig::new(Delivery::Reliable);
    for round in 0..200u32 {
        let out = pair.ours.open_stream(config).unwrap();
        let id = out
            .send(round.to_be_bytes(), SendOptions::default())
            .unwrap();
        assert_eq!(number(&recv(&pair.theirs).1), round);
        if round % 2 == 0 {
            assert_eq!(outcome(&out).0, id);
        }
    }
}

/// Goal: a stream says what was promised, what was achieved and what it cost, also after the end.   Method: messages with a
/// deadline that holds, and one without.
#[test]
fn streams_count() {
    let pair = pair();
    let (timed, plain) = (stream(&pair.ours), stream(&pair.ours));
    for _ in 0..10 {
        let options = SendOptions::within(PATIENCE).on_time(0.99);
        timed.send([1; 3000], options).unwrap();
        recv(&pair.theirs);
        outcome(&timed);
    }
    plain.send([2; 100], SendOptions::default()).unwrap();
    outcome(&plain);
    let stats = timed.stats();
    assert_eq!((stats.accepted, stats.accepted_bytes), (10, 30_000));
    assert_eq!((stats.promised, stats.kept, stats.on_time), (10, 10, 10));
    assert_eq!(stats.achieved(), Some(1.0));
    assert!(stats.symbols_sent >= stats.source_symbols && stats.symbol_bytes >= 30_000);
    assert_eq!((plain.stats().promised, plain.stats().on_time), (0, 1));
    pair.ours.finish_blocking();
    assert_eq!(timed.stats(), stats);
    assert_eq!(plain.stats().on_time, 1);
}

/// Goal: a session that is full says so with its limit, and says when there is room.   Method: the peer does not read until
/// nothing more is accepted.   (The stream keeps no order: on a busy machine, where a socket's buffer overflows, the last may come before others.)
#[test]
fn a_full_session_tells_when_there_is_room() {
    let pair = pair();
    let out = stream(&pair.ours);
    let mut accepted = 0;
    let error = loop {
        match out.send([3; 50_000], SendOptions::default()) {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, SendError::Full { limit: 1 << 20 });
    let waiting = {
        let out = out.clone();
        thread::spawn(move || {
            out.writable_blocking();
            out.send_blocking(b"the last", SendOptions::default())
                .unwrap();
        })
    };
    let came: Vec<_> = (0..=accepted).map(|_| recv(&pair.theirs).1).collect();
    let large = came.iter().filter(|content| content[..] == [3; 50_000]);
    assert_eq!(large.count(), accepted);
    assert!(came.iter().any(|content| content[..] == *b"the last"));
    waiting.join().unwrap();
}

/// A regression: messages that had come counted among the outcomes that `send` must have room for, and who answers each message on
/// the thread that takes it stood still.   Method: the peer floods this side until it takes in no more; then each is answered.
#[test]
fn what_came_is_not_in_the_way() {
    const FLOOD: usize = 8000;
    let pair = pair();
    let flood = stream(&pair.theirs);
    let flooding = thread::spawn(move || {
        for _ in 0..FLOOD {
            flood.send_blocking(b"", SendOptions::default()).unwrap();
        }
        flood
    });
    let is_full = |stats: SessionStats| stats.packets_refused > 0;
    while !pair.ours.stats().is_some_and(is_full) {
        thread::yield_now();
    }
    let out = stream(&pair.ours);
    for _ in 0..FLOOD {
        recv(&pair.ours);
        out.send_blocking(b"answer", SendOptions::default())
            .unwrap();
        recv(&pair.theirs);
    }
    flooding.join().unwrap();
}
