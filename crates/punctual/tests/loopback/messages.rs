//! Messages of all sizes, their outcomes, and an application that does not keep up.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use punctual::{Delivery, OpenError, Outcome, SendError, SendOptions, StreamConfig, StreamId};

use crate::support::{PATIENCE, pair, recv, stream};

/// Goal: every size arrives whole, both ways, and is reported.   Method: the empty, the largest, and those around a packet.
#[test]
fn every_size_arrives_whole() {
    let pair = pair();
    for (from, to) in [(&pair.ours, &pair.theirs), (&pair.theirs, &pair.ours)] {
        let stream = stream(from);
        for size in [0, 1, 1100, 1500, 70_000, 256 * 1024, 256 * 1024 + 1] {
            let data: Vec<u8> = (0..size).map(|at: usize| (at * 7 + size) as u8).collect();
            let id = stream.send(&data, SendOptions::default()).unwrap();
            assert_eq!(recv(to), (StreamId(0), data));
            let outcome = stream.next_outcome_timeout(PATIENCE).unwrap().unwrap();
            assert_eq!(outcome.0, id);
            assert!(matches!(outcome.1, Outcome::OnTime { .. }), "{outcome:?}");
        }
        let error = stream.send(vec![0; (64 << 20) + 1], SendOptions::default());
        assert!(matches!(
            error,
            Err(SendError::TooLarge {
                size: 67_108_865,
                ..
            })
        ));
        let never = SendOptions::default().on_time(1.0);
        assert!(matches!(
            stream.send(b"", never),
            Err(SendError::Options { .. })
        ));
    }
}

/// Goal: streams keep their numbers and their outcomes apart.   Method: three streams, one with a number of its own.
#[test]
fn streams_are_told_apart() {
    let pair = pair();
    let numbered = StreamConfig::new(Delivery::Reliable).number(77);
    let streams = [
        stream(&pair.ours),
        pair.ours.open_stream(numbered).unwrap(),
        stream(&pair.ours),
    ];
    assert_eq!(streams.each_ref().map(|stream| stream.id().0), [0, 77, 1]);
    let again = pair.ours.open_stream(numbered);
    assert_eq!(again.unwrap_err(), OpenError::AlreadyOpen { number: 77 });

    let options = SendOptions::within(Duration::from_secs(20));
    let sent = streams.each_ref().map(|stream| {
        let data = stream.id().0.to_be_bytes();
        stream.send(data, options).unwrap()
    });
    for _ in &streams {
        let (number, data) = recv(&pair.theirs);
        assert_eq!(data, number.0.to_be_bytes());
    }
    for (stream, id) in streams.iter().zip(sent) {
        let outcome = stream.next_outcome_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(outcome.0, id);
    }
    let forecast = pair.ours.forecast(2048, options).unwrap();
    assert!(
        forecast.on_time > 0.99 && forecast.rounds > 0,
        "{forecast:?}"
    );
    assert!(pair.ours.path().unwrap().rtt > Duration::ZERO);
    assert_eq!(pair.ours.stats().unwrap().messages_on_time, 3);
}

/// Goal: an application that does not take its messages stops its peer, and loses nothing.   Method: the receiver waits until
/// its protocol refuses packets, and only then reads; the sender waits for room.
#[test]
fn a_slow_reader_stops_its_peer_and_loses_nothing() {
    const COUNT: u32 = 2000;
    let pair = pair();
    let out = stream(&pair.ours);
    let sending = thread::spawn(move || {
        for number in 0..COUNT {
            let mut data = vec![0; 4096];
            data[..4].copy_from_slice(&number.to_be_bytes());
            out.send_blocking(data, SendOptions::default()).unwrap();
        }
        out
    });
    // 8 MB do not fit what a session may hold; the outcomes of what does go on in the meantime.
    while pair.theirs.stats().unwrap().packets_refused == 0 {
        thread::yield_now();
    }
    let mut seen = BTreeSet::new();
    for _ in 0..COUNT {
        let (_, data) = recv(&pair.theirs);
        let number = u32::from_be_bytes(data[..4].try_into().unwrap());
        assert!(number < COUNT && seen.insert(number), "{number} came twice");
    }
    let out = sending.join().unwrap();
    let mut outcomes = BTreeSet::new();
    while outcomes.len() < COUNT as usize {
        let (id, outcome) = out.next_outcome_timeout(PATIENCE).unwrap().unwrap();
        assert!(matches!(outcome, Outcome::OnTime { .. }) && outcomes.insert(id));
    }
    assert_eq!(out.missed_outcomes(), 0);
}

/// A regression: an application that had emptied its inbox waited until the driver thread had filled it again, which had packets to receive, and to refuse
/// (16 MB over loopback took a third more packets).   Method: twice as many messages as an inbox holds have arrived; all can be taken without waiting.
#[test]
fn what_has_arrived_is_taken_without_waiting() {
    const COUNT: u32 = 2000;
    let pair = pair();
    let out = stream(&pair.ours);
    for _ in 0..COUNT {
        out.send_blocking([1; 16], SendOptions::default()).unwrap();
    }
    for _ in 0..COUNT {
        out.next_outcome_timeout(PATIENCE).unwrap().unwrap();
    }
    for taken in 0..COUNT {
        let message = pair.theirs.try_recv().unwrap();
        assert!(message.is_some(), "after {taken}");
    }
}

/// Goal: outcomes reach an application that does not take its messages.   Method: the peer floods this side, which reads
/// nothing, sends, and waits for the outcome.
#[test]
fn outcomes_pass_messages_that_are_not_taken() {
    let pair = pair();
    let flood = stream(&pair.theirs);
    for _ in 0..900 {
        flood
            .send_blocking([1; 1500], SendOptions::default())
            .unwrap();
    }
    for _ in 0..900 {
        flood.next_outcome_timeout(PATIENCE).unwrap().unwrap();
    }
    let out = stream(&pair.ours);
    let id = out.send(b"still here", SendOptions::default()).unwrap();
    assert_eq!(out.next_outcome_timeout(PATIENCE).unwrap().unwrap().0, id);
    assert_eq!(recv(&pair.theirs).1, b"still here");
    for _ in 0..900 {
        assert_eq!(recv(&pair.ours).1, [1; 1500]);
    }
    assert!(pair.ours.try_recv().unwrap().is_none());
}

/// Goal: who does not care for outcomes need do nothing.   Method: none are kept; the missed ones are counted.
#[test]
fn outcomes_can_be_ignored() {
    let pair = pair();
    let config = StreamConfig::new(Delivery::Reliable).outcomes_kept(0);
    let out = pair.ours.open_stream(config).unwrap();
    for _ in 0..3000 {
        out.send_blocking(b"fire and forget", SendOptions::default())
            .unwrap();
        recv(&pair.theirs);
    }
    pair.ours.finish_blocking();
    assert_eq!(out.missed_outcomes(), 3000);
    assert!(out.try_next_outcome().is_err());
}
