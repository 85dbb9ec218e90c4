//! Several messages whose content comes piece by piece, from writers that take turns.

mod support;

use punctual_proto::{Delivery, MessageId, SendOptions, StreamConfig};
use support::{Duo, ms, path};

/// What a writer hands in at once.
const PIECE: [u8; 8192] = [5; 8192];

struct Writer {
    message: MessageId,
    missing: usize,
}

/// So many writers of messages of `len` bytes on one stream, each a piece in turn and again after it was told that there is room; the last ones first, if so asked.
/// How many messages are done within 20 s, and whether a small one was still accepted meanwhile.
fn write(delivery: Delivery, count: usize, len: usize, is_last_first: bool) -> (usize, bool) {
    let mut duo = Duo::connect(1, &path(ms(20), |_| {}));
    let (client, session) = (duo.client, duo.at_client);
    let stream = duo.world.with_endpoint(client, |endpoint, _| {
        endpoint
            .open_stream(session, StreamConfig::new(delivery))
            .unwrap()
    });
    let mut writers: Vec<Writer> = (0..count)
        .map(|_| Writer {
            message: duo.world.with_endpoint(client, |endpoint, now| {
                let options = SendOptions::default();
                endpoint.begin(now, session, stream, len, options).unwrap()
            }),
            missing: len,
        })
        .collect();
    if is_last_first {
        writers.reverse();
    }
    // Whose turn it is, and how often anybody was told that there is room.
    let (mut turn, mut told, mut may_try) = (0, 0, true);
    for _ in 0..2000 {
        if may_try {
            let mut idle = 0;
            while idle < count {
                let writer = &mut writers[turn % count];
                turn += 1;
                let piece = &PIECE[..writer.missing.min(PIECE.len())];
                let taken = duo.world.with_endpoint(client, |endpoint, _| {
                    if piece.is_empty() {
                        return 0;
                    }
                    endpoint.append(session, writer.message, piece).unwrap()
                });
                writer.missing -= taken;
                idle = if taken > 0 { 0 } else { idle + 1 };
            }
        }
        duo.run(ms(10));
        may_try = duo.writable > told;
        told = duo.writable;
    }
    let accepts = duo.world.with_endpoint(client, |endpoint, now| {
        let options = SendOptions::default();
        endpoint
            .send(now, session, stream, &[1; 100], options)
            .is_ok()
    });
    (duo.outcomes.len(), accepts)
}

/// A regression: what may not begin yet took all room for content, and what had begun got none: no message went on, and none was accepted.
#[test]
fn writers_that_take_turns_all_finish() {
    for (delivery, count, len) in [
        (Delivery::Reliable, 4, 200_000),
        (Delivery::Reliable, 16, 200_000),
        (Delivery::Reliable, 40, 1_000_000),
        (Delivery::ReliableOrdered, 5, 1_000_000),
        (Delivery::ReliableOrdered, 8, 250_000),
    ] {
        for is_last_first in [false, true] {
            let (done, accepts) = write(delivery, count, len, is_last_first);
            assert_eq!(done, count, "{delivery:?}, {len} bytes, {is_last_first}");
            assert!(accepts);
        }
    }
}
