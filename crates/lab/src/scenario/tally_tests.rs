//! Tallies: what is counted, and what is not.

use punctual_proto::{MessageId, Outcome, Piece, StreamId};

use super::tally::{Fate, ProtocolCounts, Reason, StreamTally};
use super::{Scenario, StreamSpec, stamp};
use crate::chance::{Chance, Purpose};
use crate::stats::wilson;
use crate::world::Moment;

const MS: u64 = 1_000_000;

fn spec(fields: &str) -> StreamSpec {
    let text = format!(
        "[network]\nrtt_ms = 100\n[[stream]]\nname = 'a'\ntraffic = {{ every_ms = 50, bytes = 100 }}\n{fields}"
    );
    Scenario::parse("f.toml", &text).unwrap().streams.remove(0)
}

/// Measured from 1 s until 11 s.
fn tally(fields: &str, sessions: u32, seed: u64) -> StreamTally {
    let (from, until) = (Moment(1000 * MS), Moment(11_000 * MS));
    StreamTally::new(&spec(fields), sessions, seed, from, until)
}

/// Sends a message of 100 bytes and returns it.
fn send(tally: &mut StreamTally, session: u32, at: u64, id: u64) -> [u8; 100] {
    let mut message = [0; 100];
    stamp::write(&mut message, tally.next_number(session));
    tally.on_sent(session, Moment(at * MS), MessageId(id), 100);
    message
}

#[test]
fn everything_is_counted_once() {
    let mut tally = tally(
        "delivery = 'latest'\nkeys = 2\ndeadline_ms = 100\nbounds_ms = [60, 500]\n",
        2,
        9,
    );
    // Names have gaps, for other streams have messages too.
    let sent: Vec<_> = (0..8)
        .map(|i| send(&mut tally, 0, 1000 + i, 3 * i))
        .collect();
    let other = send(&mut tally, 1, 1000, 0);
    tally.on_refused();
    tally.on_message(0, Moment(1050 * MS), &sent[0]);
    tally.on_message(0, Moment(1101 * MS), &sent[1]);
    // A nanosecond after the deadline.
    tally.on_message(0, Moment(1102 * MS + 1), &sent[2]);
    // Twice, and one of key 1 after a later one of key 0, which is in order.
    tally.on_message(0, Moment(1110 * MS), &sent[2]);
    tally.on_message(0, Moment(1110 * MS), &sent[4]);
    tally.on_message(0, Moment(1110 * MS), &sent[3]);
    tally.on_message(1, Moment(900 * MS), &other);
    // Never sent, and too short to be a message.
    let mut ghost = [0; 100];
    stamp::write(&mut ghost, 77);
    tally.on_message(0, Moment(1110 * MS), &ghost);
    tally.on_message(0, Moment(1110 * MS), &[1, 2]);
    let fates = [
        Fate::OnTime,
        Fate::OnTime,
        // Wrong by a nanosecond.
        Fate::OnTime,
        Fate::Late(Reason::Loss),
        Fate::Late(Reason::Queue),
        Fate::Superseded,
        Fate::Cancelled { was_sent: true },
    ];
    for (i, fate) in fates.into_iter().enumerate() {
        tally.on_outcome(0, MessageId(3 * i as u64), fate);
    }
    tally.on_outcome(0, MessageId(1), Fate::OnTime);
    assert!(tally.is_waiting());
    let why = punctual_proto::MissReason::PathDown;
    tally.on_outcome(0, MessageId(21), (&Outcome::Dropped { why }).into());
    tally.on_outcome(1, MessageId(0), Fate::OnTime);
    assert!(!tally.is_waiting());

    let result = tally.result();
    assert_eq!(
        (
            result.messages_sent,
            result.sent_bytes,
            result.messages_refused
        ),
        (9, 900, 1)
    );
    assert_eq!(
        (result.messages_delivered, result.delivered_bytes),
        (6, 600)
    );
    assert_eq!((result.messages_lost, result.duplicates), (1, 1));
    assert_eq!((result.out_of_order, result.ghosts), (0, 2));
    let outcomes = result.outcomes;
    assert_eq!((outcomes.on_time, outcomes.superseded), (4, 1));
    assert_eq!((outcomes.cancelled_sent, outcomes.cancelled_unsent), (1, 0));
    assert_eq!(
        (
            outcomes.late.total(),
            outcomes.late.loss,
            outcomes.late.queue
        ),
        (2, 1, 1)
    );
    assert_eq!(
        (outcomes.dropped.total(), outcomes.dropped.path_down),
        (1, 1)
    );
    assert_eq!(outcomes.unsettled, 0);
    // 1102.000001 was late and said to be on time; 3 and 4 took 107 and 106 ms.
    assert_eq!(outcomes.misjudged, 1);
    // Of 7 that count: 0 (50 ms), 1 (100 ms) and the other session's are on time.
    assert_eq!(result.on_time_share, Some(3.0 / 7.0));
    assert_eq!(result.on_time_target, Some(0.999));
    assert!((result.within[0].share - 2.0 / 7.0).abs() < 1e-12);
    assert!((result.within[1].share - 6.0 / 7.0).abs() < 1e-12);
    // 500 bytes within 10 s; the other session's came before the measuring.
    assert_eq!(result.goodput_bits_per_s, 400.0);
    assert_eq!(tally.bytes_by_second(), [500]);
    assert_eq!(result.latency_ms.p99_9, None, "one never arrived");
    assert_eq!(result.predicted_on_time_share, None);
}

#[test]
fn order_is_by_key() {
    let mut tally = tally("delivery = 'latest'\nkeys = 2\n", 1, 1);
    let sent: Vec<_> = (0..4).map(|i| send(&mut tally, 0, 1000, i)).collect();
    for i in [2, 0, 3, 1] {
        tally.on_message(0, Moment(1050 * MS), &sent[i]);
    }
    assert_eq!(tally.result().out_of_order, 2);
}

/// Of a message of 1,000 bytes.
fn piece(message: u64, offset: usize, data: &[u8]) -> Piece {
    Piece::Data {
        stream: StreamId(0),
        message,
        offset,
        message_len: 1000,
        data: data.to_vec(),
    }
}

#[test]
fn large_messages_come_in_parts() {
    let mut tally = tally("delivery = 'reliable'\n", 1, 1);
    let mut data = vec![0; 1000];
    stamp::write(&mut data, tally.next_number(0));
    tally.on_sent(0, Moment(1000 * MS), MessageId(4), 1000);
    for (at, part) in data.chunks(300).enumerate() {
        let now = Moment((1500 + 1000 * at as u64) * MS);
        tally.on_piece(0, now, &piece(77, 300 * at, part));
        let delivered = tally.result().messages_delivered;
        assert_eq!(delivered, u64::from(at == 3));
    }
    let result = tally.result();
    assert_eq!((result.delivered_bytes, result.duplicates), (1000, 0));
    assert_eq!(result.latency_ms.max, Some(3500.0));
    assert_eq!(tally.bytes_by_second(), [300, 300, 300, 100]);
    assert_eq!((result.deadline_ms, result.on_time_share), (None, None));
    // The end of one of which there was no beginning.
    tally.on_piece(0, Moment(9000 * MS), &piece(78, 900, &data[..100]));
    assert_eq!(tally.result().ghosts, 1);
}

#[test]
fn what_came_before_the_measuring_stands_apart() {
    let mut tally = tally("delivery = 'reliable'\nbounds_ms = [60]\n", 1, 1);
    for (at, took, id) in [(500, 300, 0), (900, 200, 1), (1000, 50, 2)] {
        let message = send(&mut tally, 0, at, id);
        tally.on_message(0, Moment((at + took) * MS), &message);
    }
    let result = tally.result();
    assert_eq!((result.messages_sent, result.messages_delivered), (1, 1));
    assert_eq!(
        (result.latency_ms.max, result.within[0].share),
        (Some(50.0), 1.0)
    );
    let settling = result.settling.unwrap();
    assert_eq!((settling.messages, settling.messages_lost), (2, 0));
    assert_eq!(settling.latency_ms.max, Some(300.0));
    // What arrives while measured is measured, whenever it was sent.
    assert_eq!((result.sent_bytes, result.goodput_bits_per_s), (300, 160.0));
}

/// A run: sessions whose messages take 50 ms and up to `spread(session)` more.
fn run(seed: u64, sessions: u32, messages: u64, spread: impl Fn(u32) -> f64) -> StreamTally {
    let mut tally = tally("delivery = 'reliable'\ndeadline_ms = 100\n", sessions, seed);
    let chance = Chance::new(seed, 5);
    for session in 0..sessions {
        for i in 0..messages {
            let message = send(&mut tally, session, 1000 + i, i);
            let more = chance.share(Purpose::Workload, u64::from(session), i) * spread(session);
            tally.on_message(
                session,
                Moment((1050 + i) * MS + (more * 1e6) as u64),
                &message,
            );
            tally.on_outcome(session, MessageId(i), Fate::OnTime);
        }
    }
    let counts = ProtocolCounts {
        messages_promised: u64::from(sessions) * messages,
        predicted_misses: (u64::from(sessions) * messages) as f64 * 0.25,
        source_symbols: 1000,
        symbols_sent: 1100,
        encapsulation_bytes: 30,
        message_bytes: 100,
    };
    tally.add_protocol(&counts);
    tally
}

#[test]
fn quantiles_have_intervals_that_tell_how_sure_they_are() {
    // Evenly from 50 to 150 ms.
    let result = run(1, 40, 1000, |_| 100.0).result();
    let [low, high] = result.latency_ms_95.p99.map(Option::unwrap);
    // The standard error of the 99 % quantile of 40,000 such values is 100 ms * sqrt(0.99 * 0.01 / 40,000) = 0.05 ms.
    assert!(
        low < 149.0 && 149.0 < high && high - low < 0.6,
        "{low}..{high}"
    );
    let [low, high] = result.latency_ms_95.p50.map(Option::unwrap);
    assert!(
        low < 100.3 && 99.7 < high && (0.5..2.5).contains(&(high - low)),
        "{low}..{high}"
    );
    assert!((result.on_time_share.unwrap() - 0.5).abs() < 0.01);
    assert_eq!(result.predicted_on_time_share, Some(0.75));
    assert!((result.recovery_overhead.unwrap() - 0.1).abs() < 1e-12);
    // Sessions that differ: much less is known.
    let differing = run(1, 40, 1000, |session| f64::from(session) * 5.0).result();
    let [low, high] = differing.latency_ms_95.p50.map(Option::unwrap);
    assert!(high - low > 5.0, "{low}..{high}");
    // 100 messages bound no 99.9 % quantile from above.
    let few = run(1, 1, 100, |_| 100.0).result();
    assert_eq!(few.latency_ms_95.p99_9[1], None);
}

#[test]
fn seeds_are_pooled() {
    let mut pooled = run(1, 3, 200, |_| 100.0);
    pooled.merge(run(2, 3, 200, |_| 100.0));
    let result = pooled.result();
    assert_eq!((result.seeds, result.messages_sent), (vec![1, 2], 1200));
    let (one, two) = (
        run(1, 3, 200, |_| 100.0).result(),
        run(2, 3, 200, |_| 100.0).result(),
    );
    let mean = (one.goodput_bits_per_s + two.goodput_bits_per_s) / 2.0;
    assert!((result.goodput_bits_per_s - mean).abs() < 1e-6);
    assert_eq!(result.predicted_on_time_share, Some(0.75));
    assert_eq!(result.recovery_overhead, one.recovery_overhead);
    assert!(result.on_time_share_95.unwrap().contains(0.5));
}

#[test]
#[should_panic(expected = "only runs of one scenario are pooled")]
fn other_streams_are_not_pooled() {
    let mut one = tally("delivery = 'reliable'\n", 1, 1);
    one.merge(tally("delivery = 'latest'\n", 1, 1));
}

#[test]
fn results_have_exactly_the_documented_fields() {
    let mut one = tally(
        "delivery = 'unreliable'\ndeadline_ms = 100\nbounds_ms = [60]\n",
        1,
        7,
    );
    let message = send(&mut one, 0, 1000, 0);
    one.on_message(0, Moment(1050 * MS), &message);
    let text = serde_json::to_string(&one.result()).unwrap();
    let reasons = "{\"queue\":0,\"loss\":0,\"delay\":0,\"path_down\":0,\"thinned\":0,\"closed\":0,\"other\":0}";
    // One message says nothing of the median, and that the quantiles above it are hardly lower.
    let wilson = serde_json::to_string(&wilson(1, 1)).unwrap();
    let expected = format!(
        "{{\"stream\":\"a\",\"delivery\":\"unreliable\",\"sessions\":1,\"seeds\":[7],\"measured_s\":10.0,\"messages_sent\":1,\
         \"sent_bytes\":100,\"messages_refused\":0,\"messages_delivered\":1,\"delivered_bytes\":100,\"messages_lost\":0,\
         \"outcomes\":{{\"on_time\":0,\"late\":{reasons},\"dropped\":{reasons},\"superseded\":0,\"cancelled_unsent\":0,\
         \"cancelled_sent\":0,\"unsettled\":1,\"misjudged\":0}},\"duplicates\":0,\"out_of_order\":0,\"ghosts\":0,\
         \"latency_ms\":{{\"p50\":50.0,\"p95\":50.0,\"p99\":50.0,\"p99_5\":50.0,\"p99_9\":50.0,\"max\":50.0}},\
         \"latency_ms_95\":{{\"p50\":[null,null],\"p95\":[null,null],\"p99\":[50.0,null],\"p99_5\":[50.0,null],\
         \"p99_9\":[50.0,null]}},\"deadline_ms\":100.0,\"on_time_target\":0.999,\"on_time_share\":1.0,\
         \"on_time_share_95\":{wilson},\"predicted_on_time_share\":null,\"within\":[{{\"bound_ms\":60.0,\"share\":1.0,\
         \"share_95\":{wilson}}}],\"goodput_bits_per_s\":80.0,\
         \"goodput_by_second_bits_per_s\":[800.0],\"quality_per_s\":null,\"weight\":1,\"settling\":null,\"recovery_overhead\":null,\"encapsulation_overhead\":null}}"
    );
    assert_eq!(text, expected);
    let read: super::StreamResult = serde_json::from_str(&text).unwrap();
    assert_eq!(read, one.result());
    let nothing = tally("delivery = 'unreliable'\ndeadline_ms = 100\n", 1, 7).result();
    assert_eq!(
        (nothing.on_time_share, nothing.latency_ms.p50),
        (None, None)
    );
}

/// A regression: sessions behind one link were taken as independent. A queue that overflows once in ten ticks makes messages of all of them late, and a share of a
/// tenth was said to be known to a hundredth.
#[test]
fn what_goes_through_one_link_is_late_together() {
    let width = |shares_link| {
        let fields = "delivery = 'unreliable'\ndeadline_ms = 100\n";
        let mut tally = tally(fields, 400, 1).through_one_link(shares_link);
        for tick in 0..10 {
            let at = 1500 + 1000 * tick;
            for session in 0..400 {
                let message = send(&mut tally, session, at, tick);
                let took = if tick == 4 { 150 } else { 50 };
                tally.on_message(session, Moment((at + took) * MS), &message);
            }
        }
        let result = tally.result();
        assert_eq!(result.on_time_share, Some(0.9));
        let share = result.on_time_share_95.unwrap();
        share.high - share.low
    };
    let (alone, together) = (width(false), width(true));
    assert!(alone < 0.02, "{alone}");
    assert!((0.2..0.6).contains(&together), "{together}");
}

/// A regression: where so many never arrived that the quantile is one of them, its interval took messages as independent, though all were lost in one session's outage.
#[test]
fn a_quantile_that_never_arrived_is_no_surer_than_others() {
    let mut tally = tally("delivery = 'unreliable'\n", 40, 1);
    for session in 0..40 {
        for number in 0..100 {
            let at = 1000 + 100 * number;
            let message = send(&mut tally, session, at, number);
            if session > 0 {
                let took = 50 + number % 10;
                tally.on_message(session, Moment((at + took) * MS), &message);
            }
        }
    }
    let result = tally.result();
    assert_eq!(result.latency_ms.p99, None);
    // One session of forty, or none of others like them.
    assert!(result.latency_ms_95.p99[0].is_some_and(|low| low < 60.0));
}
