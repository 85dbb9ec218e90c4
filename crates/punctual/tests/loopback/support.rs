//! A server and a client, and patience: long enough for any machine, never waited for when all is well.

use std::time::Duration;

use punctual::{
    Config, Delivery, Endpoint, MessageId, Outcome, ServerKey, ServerUrl, Session, Stream,
    StreamConfig, StreamId,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn server(config: Config) -> (Endpoint, ServerUrl) {
    let key = ServerKey::generate().unwrap();
    let server = Endpoint::server(config, "127.0.0.1:0".parse().unwrap(), key).unwrap();
    let url = server.url("127.0.0.1").unwrap();
    (server, url)
}

pub(crate) fn client() -> Endpoint {
    Endpoint::client(Config::default()).unwrap()
}

pub(crate) fn accept(server: &Endpoint) -> Session {
    let session = server.accept_timeout(PATIENCE).unwrap();
    session.expect("a client comes")
}

/// A session from both ends, and the endpoints that keep it alive.
pub(crate) struct Pair {
    pub(crate) server: Endpoint,
    pub(crate) client: Endpoint,
    pub(crate) theirs: Session,
    pub(crate) ours: Session,
}

pub(crate) fn pair() -> Pair {
    pair_of(Config::default())
}

/// A session whose server is configured so.
pub(crate) fn pair_of(config: Config) -> Pair {
    let (server, url) = server(config);
    let client = client();
    let ours = client.connect_blocking(&url).unwrap();
    let theirs = accept(&server);
    Pair {
        server,
        client,
        theirs,
        ours,
    }
}

pub(crate) fn stream(session: &Session) -> Stream {
    stream_of(session, Delivery::Reliable)
}

pub(crate) fn stream_of(session: &Session, delivery: Delivery) -> Stream {
    session.open_stream(StreamConfig::new(delivery)).unwrap()
}

/// The next outcome of a stream.
pub(crate) fn outcome(stream: &Stream) -> (MessageId, Outcome) {
    let outcome = stream.next_outcome_timeout(PATIENCE).unwrap();
    outcome.expect("an outcome comes")
}

/// Bytes that differ from place to place, and by `seed`.
pub(crate) fn noise(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| ((at ^ seed).wrapping_mul(0x9E37_79B1) >> 13) as u8)
        .collect()
}

/// The next message, of stream and bytes.
pub(crate) fn recv(session: &Session) -> (StreamId, Vec<u8>) {
    let message = session.recv_timeout(PATIENCE).unwrap();
    let message = message.expect("a message comes");
    (message.stream, message.data)
}
