use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

fn entry(position: u64, importance: u8, deadline: Instant) -> Entry {
    Entry {
        unimportance: 255 - importance,
        rank: deadline,
        position,
        item: Item::Message(position as u32),
        deadline,
        is_live: deadline != NO_DEADLINE,
        is_begun: false,
        bytes: 1000,
        needed_bytes: 1000,
    }
}

fn position(schedule: &Schedule) -> u64 {
    schedule
        .first()
        .expect("something is to be sent")
        .1
        .position
}

/// Sends the first entry and charges `bytes` for it.
fn send(schedule: &mut Schedule, bytes: u64) -> (u16, u64) {
    let (stream, entry) = schedule.first().expect("something is to be sent");
    schedule.charge(stream, bytes * UNIT);
    schedule.remove(stream, &entry);
    (stream.0, entry.position)
}

#[test]
fn within_a_stream_importance_then_deadline_then_position() {
    let mut schedule = Schedule::default();
    schedule.open(StreamId(0), 1);
    for (id, importance, deadline) in [
        (1, 128, NO_DEADLINE),
        (2, 128, at(50)),
        (3, 128, at(20)),
        (4, 128, at(50)),
        (5, 200, NO_DEADLINE),
        (6, 0, at(1)),
    ] {
        schedule.push(StreamId(0), entry(id, importance, deadline));
    }
    schedule.remove(StreamId(0), &entry(2, 128, at(50)));
    schedule.remove(StreamId(0), &entry(99, 128, at(50)));
    let mut order = Vec::new();
    while !schedule.is_empty() {
        order.push(send(&mut schedule, 1).1);
    }
    assert_eq!(order, [5, 3, 4, 1, 6]);
}

#[test]
fn what_was_begun_goes_on_before_more_of_the_message_is_cut() {
    let mut schedule = Schedule::default();
    schedule.open(StreamId(0), 1);
    let message = entry(7, 128, NO_DEADLINE);
    let block = Entry {
        item: Item::Block(3),
        ..message
    };
    schedule.push(StreamId(0), message);
    schedule.push(StreamId(0), block);
    assert_eq!(schedule.first().unwrap().1, block);
    assert!(schedule.has_blocks());
}

/// Copies that waited counted as what the application sends: a thin session was a download then, for a window of copies.
#[test]
fn redundancy_that_waits_is_not_what_the_application_sends() {
    let mut schedule = Schedule::default();
    schedule.open(StreamId(0), 1);
    let flight = Entry {
        bytes: 32_000,
        needed_bytes: 4_000,
        ..entry(1, 128, at(50))
    };
    let late = Entry {
        needed_bytes: 0,
        deadline: NO_DEADLINE,
        ..entry(2, 128, at(50))
    };
    schedule.push(StreamId(0), flight);
    schedule.push(StreamId(0), late);
    schedule.push(StreamId(0), entry(3, 128, NO_DEADLINE));
    assert_eq!(schedule.needed_bytes(), (5_000, 4_000));
    assert_eq!(schedule.bytes_before(true), 32_000);
    schedule.remove(StreamId(0), &flight);
    assert_eq!(schedule.needed_bytes(), (1_000, 0));
}

#[test]
fn shares_follow_weights() {
    let mut schedule = Schedule::default();
    let weights = [1u16, 2, 4, 1000];
    for (stream, &weight) in weights.iter().enumerate() {
        schedule.open(StreamId(stream as u16), weight);
    }
    let mut sent = [0u64; 4];
    for round in 0..100_000u64 {
        for stream in 0..4u16 {
            // Never idle: who has nothing to send for a moment has no claim to that moment.
            if schedule.entries_of(StreamId(stream)).count() < 2 {
                schedule.push(StreamId(stream), entry(round, 128, NO_DEADLINE));
            }
        }
        // Symbols of different streams differ in size.
        let stream = schedule.first().unwrap().0;
        let bytes = 100 + 300 * u64::from(stream.0);
        send(&mut schedule, bytes);
        sent[usize::from(stream.0)] += bytes;
    }
    let total: u64 = sent.iter().sum();
    for (bytes, weight) in sent.into_iter().zip(weights) {
        let share = bytes as f64 / total as f64;
        let wanted = f64::from(weight) / 1007.0;
        assert!((share / wanted - 1.0).abs() < 0.02, "{weight}: {share}");
    }
}

/// A stream that woke while no other was active kept all of its share from before: a download that began between two of a game's messages went before all of them
/// until it had sent as much as the game ever had.
#[test]
fn a_stream_that_wakes_between_others_has_saved_nothing() {
    let (game, download) = (StreamId(0), StreamId(1));
    let mut schedule = Schedule::default();
    schedule.open(game, 1);
    schedule.open(download, 1);
    for id in 0..30_000 {
        schedule.push(game, entry(id, 128, at(id)));
        send(&mut schedule, 1000);
    }
    for id in 0..100 {
        schedule.push(download, entry(id, 128, NO_DEADLINE));
    }
    // What it sends while nobody else wants to, it had for nothing, too.
    for _ in 0..10 {
        assert_eq!(send(&mut schedule, 1000).0, 1);
    }
    for id in 0..20 {
        schedule.push(game, entry(id, 128, at(40_000 + id)));
        assert_eq!(send(&mut schedule, 1000).0, 0, "{id}: it has a deadline");
        assert_eq!(send(&mut schedule, 1000).0, 1);
    }
    // Without deadlines they take turns.
    schedule.push(game, entry(1, 128, NO_DEADLINE));
    schedule.push(game, entry(2, 128, NO_DEADLINE));
    let turns = [(); 4].map(|()| send(&mut schedule, 1000).0);
    assert_eq!(turns.iter().filter(|stream| **stream == 0).count(), 2);
}

/// Paceline's rule 1: a new stream neither starves the old ones nor waits for them.
#[test]
fn a_new_stream_starts_at_the_least_active_time() {
    let mut schedule = Schedule::default();
    schedule.open(StreamId(0), 1);
    for id in 0..1000 {
        schedule.push(StreamId(0), entry(id, 128, NO_DEADLINE));
    }
    for _ in 0..500 {
        send(&mut schedule, 1000);
    }
    schedule.open(StreamId(1), 1);
    for id in 1000..1100 {
        schedule.push(StreamId(1), entry(id, 128, NO_DEADLINE));
    }
    let streams: Vec<u16> = (0..20).map(|_| send(&mut schedule, 1000).0).collect();
    let new = streams.iter().filter(|stream| **stream == 1).count();
    assert_eq!(new, 10, "{streams:?}");
}

/// Rule 1, the other half: with nobody active a new stream starts where the furthest idle one is.
#[test]
fn a_new_stream_among_idle_ones_starts_at_the_greatest() {
    let mut schedule = Schedule::default();
    schedule.open(StreamId(0), 1);
    schedule.push(StreamId(0), entry(0, 128, NO_DEADLINE));
    send(&mut schedule, 1_000_000);
    schedule.open(StreamId(1), 1);
    for id in 0..40 {
        schedule.push(StreamId(0), entry(id, 128, NO_DEADLINE));
        schedule.push(StreamId(1), entry(100 + id, 128, NO_DEADLINE));
    }
    let streams: Vec<u16> = (0..20).map(|_| send(&mut schedule, 1000).0).collect();
    assert_eq!(streams.iter().filter(|stream| **stream == 1).count(), 10);
}

/// Rule 2: what a stream did not use while it was idle is gone.
#[test]
fn a_waking_stream_has_saved_nothing() {
    let mut schedule = Schedule::default();
    schedule.open(StreamId(0), 1);
    schedule.open(StreamId(1), 1);
    for id in 0..1000 {
        schedule.push(StreamId(0), entry(id, 128, NO_DEADLINE));
    }
    for _ in 0..500 {
        send(&mut schedule, 1000);
    }
    for id in 1000..1100 {
        schedule.push(StreamId(1), entry(id, 128, NO_DEADLINE));
    }
    let streams: Vec<u16> = (0..20).map(|_| send(&mut schedule, 1000).0).collect();
    assert_eq!(streams.iter().filter(|stream| **stream == 1).count(), 10);
}

#[test]
fn a_deadline_goes_first_until_its_stream_is_far_ahead_of_its_share() {
    let mut schedule = Schedule::default();
    schedule.open(StreamId(0), 1);
    schedule.open(StreamId(1), 1);
    for id in 0..1000 {
        schedule.push(StreamId(0), entry(id, 128, NO_DEADLINE));
        schedule.push(StreamId(1), entry(5000 + id, 128, at(100)));
    }
    let first: Vec<u16> = (0..60).map(|_| send(&mut schedule, 1000).0).collect();
    assert!(
        first.iter().all(|stream| *stream == 1),
        "a burst goes at once"
    );
    let later: Vec<u16> = (0..1000).map(|_| send(&mut schedule, 1000).0).collect();
    let share = later.iter().filter(|stream| **stream == 1).count();
    assert!((495..=510).contains(&share), "{share} of 1000 afterwards");
}

#[test]
fn virtual_time_is_set_back_before_it_overflows() {
    let mut schedule = Schedule::default();
    schedule.open(StreamId(0), 1);
    schedule.open(StreamId(1), 1);
    schedule.push(StreamId(0), entry(1, 128, NO_DEADLINE));
    schedule.push(StreamId(1), entry(2, 128, NO_DEADLINE));
    for _ in 0..1000 {
        // Each a terabyte: thirty years at 10 Gbit/s in all.
        let (stream, _) = schedule.first().unwrap();
        schedule.charge(stream, UNIT << 40);
    }
    schedule.spread();
    let [a, b] = [&schedule.by_time[0], &schedule.by_time[1]];
    assert!(b.0 - a.0 <= (1 << 40) * UNIT && b.0 < TIME_MAX + (1 << 57));
    assert!([1, 2].contains(&position(&schedule)));
}
