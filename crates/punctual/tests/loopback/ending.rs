//! How sessions and endpoints end, and that every accepted message gets its outcome whatever happens.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread;

use punctual::{
    CloseCode, CloseReason, ConnectError, Event, MissReason, Outcome, SendError, SendOptions,
};

use crate::support::{PATIENCE, Pair, pair, recv, stream};

/// Goal: the peer hears why a session was closed.   Method: close with a code and words of the application's.
#[test]
fn a_close_is_told_with_its_reason() {
    let pair = pair();
    let out = stream(&pair.theirs);
    pair.ours.close(CloseCode(0x101), "banned");
    assert_eq!(
        pair.ours.closed_blocking(),
        CloseReason::Local {
            code: CloseCode(0x101)
        }
    );
    let why = CloseReason::Peer {
        code: CloseCode(0x101),
        reason: "banned".into(),
    };
    assert_eq!(pair.theirs.closed_blocking(), why);
    assert_eq!(pair.theirs.recv_blocking().unwrap_err().why, why);
    let error = out.send(b"too late", SendOptions::default()).unwrap_err();
    assert_eq!(error, SendError::Closed { why: Some(why) });
    assert!(pair.theirs.stats().is_some(), "the counts at the end");
}

/// Goal: `finish` delivers everything before it ends.   Method: many messages, finish at once, count at the other side.
#[test]
fn finish_sees_everything_delivered() {
    let pair = pair();
    let out = stream(&pair.ours);
    for number in 0..200u8 {
        out.send([number; 500], SendOptions::default()).unwrap();
    }
    let reading = thread::spawn(move || {
        let all: BTreeSet<u8> = (0..200).map(|_| recv(&pair.theirs).1[0]).collect();
        (all.len(), pair.theirs.closed_blocking(), pair.server)
    });
    let why = CloseReason::Local {
        code: CloseCode::DONE,
    };
    assert_eq!(pair.ours.finish_blocking(), why);
    let late = out.send(b"more", SendOptions::default());
    assert_eq!(late, Err(SendError::Closed { why: Some(why) }));
    for _ in 0..200 {
        let (_, outcome) = out.next_outcome_timeout(PATIENCE).unwrap().unwrap();
        assert!(matches!(outcome, Outcome::OnTime { .. }));
    }
    let (count, theirs, _server) = reading.join().unwrap();
    assert_eq!(count, 200);
    assert!(matches!(
        theirs,
        CloseReason::Peer {
            code: CloseCode::DONE,
            ..
        }
    ));
}

/// Goal: every message has exactly one outcome when its endpoint goes, and the peer hears of it.   Method: as Ctrl-C does:
/// drop the endpoint with messages on their way.
#[test]
fn outcomes_survive_their_endpoint() {
    let pair = pair();
    let out = stream(&pair.ours);
    let mut accepted = BTreeSet::new();
    for _ in 0..8 {
        accepted.insert(out.send(vec![7; 100_000], SendOptions::default()).unwrap());
    }
    drop(pair.client);
    while let Ok(outcome) = out.next_outcome_timeout(PATIENCE) {
        let (id, outcome) = outcome.expect("the end is certain");
        assert!(accepted.remove(&id), "a second outcome for {id:?}");
        let closed = MissReason::Closed;
        assert!(
            matches!(outcome, Outcome::OnTime { .. })
                || outcome == Outcome::Dropped { why: closed },
            "{outcome:?}"
        );
    }
    assert!(accepted.is_empty(), "without an outcome: {accepted:?}");
    assert!(matches!(
        pair.theirs.closed_blocking(),
        CloseReason::Peer {
            code: CloseCode::SHUTDOWN,
            ..
        }
    ));
}

/// Goal: handles own: the last handle of a session closes it.   Method: clones, a stream, and the peer's view.
#[test]
fn the_last_handle_closes_the_session() {
    let pair = pair();
    let out = stream(&pair.ours);
    drop(pair.ours);
    out.send(b"a stream holds its session", SendOptions::default())
        .unwrap();
    assert_eq!(recv(&pair.theirs).1, b"a stream holds its session");
    assert_eq!(out.session().close_reason(), None);
    drop(out);
    assert!(matches!(
        pair.theirs.closed_blocking(),
        CloseReason::Peer {
            code: CloseCode::DONE,
            ..
        }
    ));
    assert!(matches!(
        pair.theirs.next_event_blocking(),
        Ok(Event::Closed { .. })
    ));
    assert!(pair.theirs.next_event_blocking().is_err());
}

/// Goal: a closed endpoint says so, to those who wait too.   Method: close a server from another thread while one accepts.
#[test]
fn a_closed_endpoint_says_so() {
    let pair = pair();
    let waiting = pair.server.clone();
    let accepting = thread::spawn(move || waiting.accept_blocking().map(drop));
    let url = pair.server.url("127.0.0.1").unwrap();
    pair.server.close();
    assert!(accepting.join().unwrap().is_err());
    assert!(pair.server.try_accept().is_err());

    pair.client.close();
    let error = pair.client.connect_blocking(&url).unwrap_err();
    assert!(matches!(error, ConnectError::EndpointClosed), "{error}");
}

/// A regression: who took no messages did not hear that the session had ended, and `finish`, `closed` and `close_reason` never
/// answered. What had arrived can still be taken.   Method: more than an inbox holds, and nobody takes any of it.
#[test]
fn the_end_is_told_while_messages_wait() {
    let pair = pair();
    let out = stream(&pair.ours);
    for _ in 0..2000 {
        out.send_blocking([7; 20], SendOptions::default()).unwrap();
    }
    let why = CloseReason::Local {
        code: CloseCode::DONE,
    };
    assert_eq!(pair.ours.finish_blocking(), why);
    let theirs = pair.theirs.closed_blocking();
    assert!(matches!(theirs, CloseReason::Peer { .. }), "{theirs:?}");
    let taken = std::iter::from_fn(|| pair.theirs.try_recv().ok().flatten());
    assert_eq!(taken.count(), 2000);
}

/// Wakes as a broken runtime does.
struct Broken;

impl Wake for Broken {
    fn wake(self: Arc<Self>) {
        panic!("expected: a waker panics");
    }
}

/// A regression: when the thread of an endpoint panicked, as a waker of the application can make it, whoever waited for anything else of the endpoint
/// waited for good. Method: two sessions, one of which is awaited with such a waker.
#[test]
fn a_panic_of_the_thread_ends_what_waits_for_it() {
    let Pair {
        server,
        client,
        theirs,
        ours,
    } = pair();
    let url = server.url("127.0.0.1").unwrap();
    let other = client.connect_blocking(&url).unwrap();
    let waker = Waker::from(Arc::new(Broken));
    let mut awaited = Box::pin(ours.recv());
    let first = awaited.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(first.is_pending());
    // (`event-listener` has not counted that it woke it, and would find one too few if it were dropped.)
    std::mem::forget(awaited);
    stream(&theirs)
        .send(b"hello", SendOptions::default())
        .unwrap();
    let error = other.recv_timeout(PATIENCE).unwrap_err();
    assert_eq!(
        error.why,
        CloseReason::Local {
            code: CloseCode::SHUTDOWN
        }
    );
    assert!(matches!(theirs.closed_blocking(), CloseReason::Peer { .. }));
    let again = client.connect_blocking(&url);
    assert!(matches!(again, Err(ConnectError::EndpointClosed)));
}
