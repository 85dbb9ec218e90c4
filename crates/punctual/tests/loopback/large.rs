//! Messages that do not fit a datagram, by far: shared, whole, in pieces, written as they go.

use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::sync::{Arc, mpsc};
use std::thread::{self, ThreadId};
use std::time::Instant;

use futures_lite::future;
use punctual::{
    Capacity, CloseCode, CloseReason, Config, Delivery, Endpoint, Event, Outcome, Piece, Receive,
    SendOptions, ServerKey, SharedContent, Stream, StreamConfig, StreamId, StreamStats, WriteError,
    frame,
};

use crate::support::{PATIENCE, noise, outcome, pair, pair_of, recv, stream};

const LARGE: usize = 20_000_000;

fn in_pieces() -> Config {
    Config {
        receive: Receive::Pieces,
        ..Config::default()
    }
}

/// Goal: a large shared message arrives whole, in one buffer of its size, and small ones pass it.   Method: 20 MB of weight 1, and
/// a message of another stream sent after it.
#[test]
fn a_large_shared_message_arrives_whole() {
    let pair = pair();
    let map: SharedContent = Arc::new(noise(1, LARGE));
    let background = stream(&pair.ours);
    let shots = StreamConfig::new(Delivery::Reliable).weight(100);
    let shots = pair.ours.open_stream(shots).unwrap();
    let id = background
        .send_shared(Arc::clone(&map), SendOptions::default())
        .unwrap();
    shots.send(b"bang", SendOptions::default()).unwrap();
    assert_eq!(recv(&pair.theirs), (shots.id(), b"bang".to_vec()));
    let (from, data) = recv(&pair.theirs);
    assert_eq!(from, background.id());
    assert!(data == (*map).as_ref(), "the content differs");
    assert_eq!(data.capacity(), LARGE);
    let (message, outcome) = outcome(&background);
    assert!(message == id && matches!(outcome, Outcome::OnTime { .. }));
    // The content is let go of with the outcome.
    let since = Instant::now();
    while Arc::strong_count(&map) > 1 {
        assert!(since.elapsed() < PATIENCE);
        thread::yield_now();
    }
}

/// A regression: content was dropped under the endpoint's lock, and what called the endpoint when it was dropped stopped it for ever.
#[test]
fn content_may_call_the_endpoint_when_it_is_dropped() {
    struct Last(Vec<u8>, Stream, mpsc::Sender<StreamStats>);
    impl AsRef<[u8]> for Last {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            self.2.send(self.1.stats()).unwrap();
        }
    }
    let pair = pair();
    let out = stream(&pair.ours);
    let (told, tells) = mpsc::channel();
    let content = Arc::new(Last(noise(1, 100_000), out.clone(), told.clone()));
    out.send_shared(content, SendOptions::default()).unwrap();
    assert!(recv(&pair.theirs).1 == noise(1, 100_000));
    assert!(matches!(outcome(&out).1, Outcome::OnTime { .. }));
    assert_eq!(tells.recv_timeout(PATIENCE).unwrap().accepted, 1);
    // And with what is refused.
    let content = Arc::new(Last(noise(1, 100_000), out.clone(), told));
    pair.ours.close(CloseCode::DONE, "");
    out.send_shared(content, SendOptions::default())
        .unwrap_err();
    tells.recv_timeout(PATIENCE).unwrap();
}

/// A regression: content that closed the endpoint when it was dropped, while another handle was closing it, waited for who waited for it, for ever.
#[test]
fn content_may_close_the_endpoint_that_is_closing() {
    struct Last(Vec<u8>, Endpoint, mpsc::Sender<()>);
    impl AsRef<[u8]> for Last {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            self.1.close();
            self.2.send(()).unwrap();
        }
    }
    let pair = pair();
    let (told, tells) = mpsc::channel();
    let content = Arc::new(Last(noise(1, LARGE), pair.client.clone(), told));
    stream(&pair.ours)
        .send_shared(content, SendOptions::default())
        .unwrap();
    let client = pair.client.clone();
    let closing = thread::spawn(move || client.close());
    tells.recv_timeout(PATIENCE).unwrap();
    closing.join().unwrap();
}

/// A regression: what was lent for a message that was refused was kept until the endpoint had something else to do.
#[test]
fn content_that_is_refused_is_let_go_at_once() {
    let pair = pair();
    let out = stream(&pair.ours);
    pair.ours.close(CloseCode::DONE, "");
    pair.ours.closed_blocking();
    let content: SharedContent = Arc::new(noise(1, LARGE));
    let refused = out.send_shared(Arc::clone(&content), SendOptions::default());
    assert!(refused.is_err());
    assert_eq!(Arc::strong_count(&content), 1);
}

/// A regression: a panic of an application's content ended the sessions of everybody.
#[test]
fn content_that_panics_is_zeros() {
    struct Broken(ThreadId);
    impl AsRef<[u8]> for Broken {
        fn as_ref(&self) -> &[u8] {
            // When it is sent, and not when it is handed over.
            assert_eq!(thread::current().id(), self.0, "as it is meant to");
            &[1; 100_000]
        }
    }
    let pair = pair();
    let out = stream(&pair.ours);
    let content = Arc::new(Broken(thread::current().id()));
    out.send_shared(content, SendOptions::default()).unwrap();
    assert!(recv(&pair.theirs).1 == [0; 100_000]);
    assert!(matches!(outcome(&out).1, Outcome::OnTime { .. }));
}

/// Goal: an application gets a large message in pieces as they come, beside whole ones.   Method: 20 MB, checked piece by piece
/// and never held; a small message after it.
#[test]
fn a_large_message_arrives_in_pieces() {
    let pair = pair_of(in_pieces());
    let map = Arc::new(noise(2, LARGE));
    let out = stream(&pair.ours);
    out.send_shared(map.clone(), SendOptions::default())
        .unwrap();
    let mut at = 0;
    while at < LARGE {
        let piece = pair.theirs.recv_piece_timeout(PATIENCE).unwrap().unwrap();
        let is_last = piece.is_last();
        let Piece::Data {
            stream,
            offset,
            message_len,
            data,
            ..
        } = piece
        else {
            panic!("it is aborted");
        };
        assert_eq!((stream, offset, message_len), (out.id(), at, LARGE));
        assert!(data == map[at..][..data.len()], "the content differs");
        at += data.len();
        assert_eq!(is_last, at == LARGE);
        pair.theirs.recycle(data);
    }
    out.send(b"small", SendOptions::default()).unwrap();
    assert_eq!(recv(&pair.theirs), (out.id(), b"small".to_vec()));
}

/// Goal: a message that is taken back half way ends for its receiver too.   Method: cancelled when the first piece is there, with
/// nobody taking more.
#[test]
fn a_cancelled_message_is_aborted_at_the_receiver() {
    let pair = pair_of(in_pieces());
    let out = stream(&pair.ours);
    let map = Arc::new(noise(3, LARGE));
    let id = out.send_shared(map, SendOptions::default()).unwrap();
    let first = pair.theirs.recv_piece_timeout(PATIENCE).unwrap().unwrap();
    let Piece::Data { message, .. } = first else {
        panic!("it is aborted");
    };
    out.cancel(id);
    assert_eq!(outcome(&out), (id, Outcome::Cancelled { sent: true }));
    loop {
        match pair.theirs.recv_piece_timeout(PATIENCE).unwrap().unwrap() {
            Piece::Data { .. } => {}
            aborted => {
                let stream = out.id();
                assert_eq!(aborted, Piece::Aborted { stream, message });
                break;
            }
        }
    }
}

/// Goal: several large messages at once are put together, each for itself.   Method: three streams, of whose messages the blocks
/// alternate.
#[test]
fn large_messages_at_the_same_time_are_kept_apart() {
    let pair = pair();
    let streams: Vec<_> = (0..3).map(|_| stream(&pair.ours)).collect();
    for (seed, out) in streams.iter().enumerate() {
        let data = Arc::new(noise(seed, 3_000_000));
        out.send_shared(data, SendOptions::default()).unwrap();
    }
    for _ in &streams {
        let (from, data) = recv(&pair.theirs);
        let seed = usize::from(from.0);
        assert!(data == noise(seed, 3_000_000), "{from:?} differs");
    }
}

/// Goal: no peer makes a session hold more than it is willing to.   Method: a message above the limit closes the session, and both
/// sides hear why; one below it passes.
#[test]
fn a_message_above_the_limit_ends_the_session() {
    let pair = pair_of(Config {
        receive: Receive::Whole {
            bytes_max: 1_000_000,
        },
        ..Config::default()
    });
    let out = stream(&pair.ours);
    out.send(noise(0, 1_000_000), SendOptions::default())
        .unwrap();
    assert!(recv(&pair.theirs).1 == noise(0, 1_000_000));
    out.send(noise(0, 1_000_001), SendOptions::default())
        .unwrap();
    let code = CloseCode::TOO_LARGE;
    assert_eq!(pair.theirs.closed_blocking(), CloseReason::Local { code });
    let CloseReason::Peer { code, reason } = pair.ours.closed_blocking() else {
        panic!("the peer closed it");
    };
    assert_eq!(code, CloseCode::TOO_LARGE);
    assert!(reason.contains("1000001 bytes"), "{reason}");
}

/// Goal: what all peers together make an endpoint hold is bounded, large messages that are put together included, and who sends little does not notice.
/// Method: room for 16 MiB; three clients whose messages of 8 MB never get their last byte, and one that sends a word.
#[test]
fn who_fills_the_room_of_all_is_closed() {
    const LEN: usize = 8_000_000;
    let capacity = Capacity {
        received_bytes_max: 16 << 20,
        ..Capacity::default()
    };
    let config = Config {
        capacity,
        ..Config::default()
    };
    let local = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Endpoint::server(config, local, ServerKey::generate().unwrap()).unwrap();
    let url = server.url("127.0.0.1").unwrap();
    let client = Endpoint::client(Config::default()).unwrap();
    let honest = client.connect_blocking(&url).unwrap();
    let at_server = server.accept_blocking().unwrap();
    let greedy: Vec<_> = (0..3)
        .map(|_| client.connect_blocking(&url).unwrap())
        .collect();
    let writing: Vec<_> = (greedy.iter().map(stream))
        .map(|out| {
            thread::spawn(move || {
                let mut writer = out.writer(LEN, SendOptions::default()).unwrap();
                let _ = writer.write_all(&noise(9, LEN - 1));
                writer
            })
        })
        .collect();
    let deadline = Instant::now() + PATIENCE;
    while server.stats().closed_for_room == 0 {
        assert!(Instant::now() < deadline, "nobody was closed");
        thread::yield_now();
    }
    stream(&honest)
        .send(b"word", SendOptions::default())
        .unwrap();
    assert_eq!(recv(&at_server).1, b"word");
    drop(client);
    drop(writing);
}

/// Goal: what waits in an inbox counts among what an endpoint holds, until it is taken.   Method: a message of 3 MB, not taken and taken.
#[test]
fn what_waits_in_an_inbox_counts_as_held() {
    let pair = pair();
    let out = stream(&pair.ours);
    out.send(noise(5, 3_000_000), SendOptions::default())
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    let until = |is_met: &dyn Fn(u64) -> bool| {
        while !is_met(pair.server.stats().held_bytes) {
            assert!(Instant::now() < deadline, "{:?}", pair.server.stats());
            thread::yield_now();
        }
    };
    outcome(&out);
    until(&|held| held >= 3_000_000);
    assert_eq!(recv(&pair.theirs).1.len(), 3_000_000);
    until(&|held| held < 1 << 16);
}

/// Goal: content that is not in memory is sent as it is read.   Method: 8 MB through `io::copy`, while the receiver takes it.
#[test]
fn a_writer_streams_from_a_thread() {
    const LEN: usize = 8_000_000;
    let pair = pair();
    let out = stream(&pair.ours);
    let writing = thread::spawn(move || {
        let mut source = io::Cursor::new(noise(4, LEN)).take(LEN as u64);
        let mut writer = out.writer(LEN, SendOptions::default()).unwrap();
        assert_eq!(io::copy(&mut source, &mut writer).unwrap(), LEN as u64);
        let error = writer.write(b"more").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let id = writer.finish().unwrap();
        assert_eq!(outcome(&out).0, id);
    });
    assert!(recv(&pair.theirs).1 == noise(4, LEN), "the content differs");
    writing.join().unwrap();
}

/// Goal: the same in a task, for sizes around the borders; a writer that is dropped takes its message back.
#[test]
fn a_writer_streams_from_a_task() {
    let pair = pair();
    let out = stream(&pair.ours);
    for len in [0, 1, 1000, 100_000, 300_000, 2_000_000] {
        let data = noise(len, len);
        let write = async {
            let mut writer = out.writer(len, SendOptions::default()).unwrap();
            for part in data.chunks(70_001) {
                writer.append(part).await.unwrap();
            }
            assert_eq!(writer.missing(), 0);
            writer.finish().unwrap()
        };
        let (id, message) = future::block_on(future::zip(write, pair.theirs.recv()));
        assert!(*message.unwrap() == data, "{len} bytes differ");
        assert_eq!(outcome(&out).0, id);
    }
    let mut writer = out.writer(500_000, SendOptions::default()).unwrap();
    let id = writer.message();
    writer.append_blocking(&[1; 400_000]).unwrap();
    let announced = 500_000;
    let error = writer.try_append(&[1; 100_001]).unwrap_err();
    assert_eq!(error, WriteError::TooLong { announced });
    let missing = 100_000;
    assert_eq!(writer.finish(), Err(WriteError::Incomplete { missing }));
    let (message, outcome) = outcome(&out);
    assert!(
        message == id && matches!(outcome, Outcome::Cancelled { .. }),
        "{outcome:?}"
    );
    let mut writer = out.writer(500_000, SendOptions::default()).unwrap();
    out.cancel(writer.message());
    assert_eq!(writer.append_blocking(&[1]), Err(WriteError::Over));
}

/// Goal: the frame style can do all of it.   Method: one loop sends a shared and an appended message to a server that takes them
/// in pieces, cancels one, and counts.
#[test]
fn frames_send_and_receive_large_messages() {
    let address = "127.0.0.1:0".parse().unwrap();
    let key = ServerKey::generate().unwrap();
    let mut server = frame::Endpoint::server(in_pieces(), address, key).unwrap();
    let mut client = frame::Endpoint::client(Config::default()).unwrap();
    let session = client.connect(server.url("127.0.0.1").unwrap()).unwrap();
    let (shared, appended) = (Arc::new(noise(5, 2_000_000)), noise(6, 1_000_000));
    let (mut writing, mut written) = (None, 0);
    let (mut received, mut outcomes) = ([Vec::new(), Vec::new()], Vec::new());
    while outcomes.len() < 3 || received[0].len() < 2_000_000 || received[1].len() < 1_000_000 {
        client.poll().unwrap();
        while let Some((_, event)) = client.next_event() {
            match event {
                Event::Connected { .. } => {
                    let config = StreamConfig::new(Delivery::Reliable);
                    for number in 0..2 {
                        let opened = client.open_stream(session, config).unwrap();
                        assert_eq!(opened, StreamId(number));
                    }
                    client.set_weight(session, StreamId(1), 5);
                    let none = SendOptions::default();
                    client
                        .send_shared(session, StreamId(0), shared.clone(), none)
                        .unwrap();
                    let len = appended.len();
                    let begun = client.begin(session, StreamId(1), len, none).unwrap();
                    writing = Some(begun);
                    let spare = client.send(session, StreamId(1), b"never", none).unwrap();
                    client.cancel(session, spare);
                }
                Event::Outcome { outcome, .. } => outcomes.push(outcome),
                Event::Writable => {}
                other => panic!("{other:?}"),
            }
        }
        if let Some(message) = writing.filter(|_| written < appended.len()) {
            let rest = &appended[written..];
            written += client.append(session, message, rest).unwrap();
        }
        client.flush().unwrap();
        server.poll().unwrap();
        while let Some((_, event)) = server.next_event() {
            if let Event::Piece(Piece::Data { stream, data, .. }) = event {
                received[usize::from(stream.0)].extend_from_slice(&data);
                server.recycle(data);
            }
        }
        server.flush().unwrap();
        thread::yield_now();
    }
    assert!(received[0] == *shared && received[1] == appended);
    assert!(outcomes.contains(&Outcome::Cancelled { sent: false }));
    let stats = client.stream_stats(session, StreamId(1)).unwrap();
    assert_eq!((stats.accepted, stats.on_time, stats.cancelled), (2, 1, 1));
}
