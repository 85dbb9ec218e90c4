//! The three ways to drive an endpoint, talking to each other.

use std::thread;
use std::time::Duration;

use futures_lite::future;
use punctual::{
    CloseCode, Config, Endpoint, Event, Outcome, SendOptions, ServerKey, ServerUrl, Session,
    StreamId, frame,
};

use crate::support::{PATIENCE, recv, server, stream};

const ROUNDS: u8 = 20;

/// Answers every message until the session ends; as a task.
async fn echo(session: Session) {
    let back = stream(&session);
    while let Ok(message) = session.recv().await {
        back.send(&*message, SendOptions::within(Duration::from_millis(100)))
            .unwrap();
        session.recycle(message);
    }
}

/// Goal: all styles meet one protocol.   Method: an async server echoes for a blocking, an async and a frame client.
#[test]
fn all_styles_talk_to_each_other() {
    let (server, url) = server(Config::default());
    let serving = thread::spawn(move || {
        future::block_on(async {
            let mut tasks = Vec::new();
            for _ in 0..3 {
                tasks.push(server.accept().await.unwrap());
            }
            let [one, two, three]: [Session; 3] = tasks.try_into().unwrap();
            future::zip(echo(one), future::zip(echo(two), echo(three))).await;
        });
        server
    });
    let clients = [blocking_client, async_client, frame_client];
    let clients = clients.map(|client| {
        let url = url.clone();
        thread::spawn(move || client(&url))
    });
    for client in clients {
        client.join().unwrap();
    }
    serving.join().unwrap();
}

fn blocking_client(url: &ServerUrl) {
    let client = Endpoint::client(Config::default()).unwrap();
    let session = client.connect_blocking(url).unwrap();
    let out = stream(&session);
    for round in 0..ROUNDS {
        out.send([round], SendOptions::default()).unwrap();
        assert_eq!(recv(&session).1, [round]);
        let (_, outcome) = out.next_outcome_timeout(PATIENCE).unwrap().unwrap();
        assert!(matches!(outcome, Outcome::OnTime { .. }));
    }
    session.finish_blocking();
}

fn async_client(url: &ServerUrl) {
    future::block_on(async {
        let client = Endpoint::client(Config::default()).unwrap();
        let session = client.connect(url).await.unwrap();
        let out = stream(&session);
        for round in 0..ROUNDS {
            let id = out.send([round], SendOptions::default()).unwrap();
            let (message, outcome) = future::zip(session.recv(), out.next_outcome()).await;
            assert_eq!(*message.unwrap(), [round]);
            assert_eq!(outcome.unwrap().0, id);
        }
        session.finish().await;
    });
}

fn frame_client(url: &ServerUrl) {
    let mut client = frame::Endpoint::client(Config::default()).unwrap();
    let session = client.connect(url).unwrap();
    let (mut sent, mut echoed, mut outcomes) = (0, 0, 0);
    loop {
        client.poll().unwrap();
        while let Some((id, event)) = client.next_event() {
            assert_eq!(id, session);
            match event {
                Event::Message(message) => {
                    assert_eq!(*message, [echoed]);
                    echoed += 1;
                    client.recycle(message);
                }
                Event::Outcome { stream, .. } => {
                    assert_eq!(stream, StreamId::DEFAULT);
                    outcomes += 1;
                }
                Event::Connected { .. } => {}
                Event::Closed { .. } => {
                    assert_eq!((echoed, outcomes), (ROUNDS, ROUNDS));
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
        if sent == echoed && sent < ROUNDS && client.path(session).is_some() {
            client
                .send(session, StreamId::DEFAULT, &[sent], SendOptions::default())
                .unwrap();
            client.flush().unwrap();
            sent += 1;
        } else if echoed == ROUNDS && outcomes == ROUNDS {
            client.finish(session);
        }
        thread::yield_now();
    }
}

/// Goal: a frame server works, and its end is told.   Method: it serves a threaded client, then is dropped.
#[test]
fn a_frame_server_serves_and_says_goodbye() {
    let key = ServerKey::generate().unwrap();
    let address = "127.0.0.1:0".parse().unwrap();
    let mut server = frame::Endpoint::server(Config::default(), address, key).unwrap();
    let url = server.url("127.0.0.1").unwrap();
    let client = thread::spawn(move || {
        let client = Endpoint::client(Config::default()).unwrap();
        let session = client.connect_blocking(&url).unwrap();
        let out = stream(&session);
        out.send(b"hello", SendOptions::default()).unwrap();
        out.next_outcome_timeout(PATIENCE).unwrap().unwrap();
        session.closed_blocking()
    });
    let mut has_heard = false;
    while !has_heard {
        server.poll().unwrap();
        while let Some((_, event)) = server.next_event() {
            has_heard |= matches!(event, Event::Message(message) if *message == *b"hello");
        }
        thread::yield_now();
    }
    drop(server);
    let why = client.join().unwrap();
    assert!(matches!(
        why,
        punctual::CloseReason::Peer {
            code: CloseCode::SHUTDOWN,
            ..
        }
    ));
}

/// Goal: handles go wherever threads and tasks do.   Method: the compiler.
#[test]
fn handles_are_shared() {
    fn is_shared<T: Send + Sync + 'static>() {}
    fn is_handle<T: Clone + Send + Sync + 'static>() {}
    is_handle::<Endpoint>();
    is_handle::<Session>();
    is_handle::<punctual::Stream>();
    is_shared::<frame::Endpoint>();
    is_shared::<punctual::ConnectError>();
}
