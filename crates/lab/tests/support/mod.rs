//! A server, a client, and what happened to them.
#![allow(dead_code, reason = "each test file uses its own part of this")]

pub(crate) mod bulk;
pub(crate) mod lies;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{ChannelSpec, PathSpec, RttSplit};
use punctual_lab::world::{Happening, HostId, LabAead, Moment, World};
use punctual_policy::{Library, PolicyKind};
use punctual_proto::{
    Cancel, EndpointConfig, Event, MessageId, Outcome, Piece, SendOptions, ServerConfig, ServerKey,
    SessionId, StreamConfig, StreamId, StreamStats,
};

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A path of this round trip, evenly split, with its two directions changed by `f`.
pub(crate) fn path(rtt: Duration, f: impl Fn(&mut ChannelSpec)) -> PathSpec {
    let mut path = PathSpec::fixed("test", rtt, RttSplit::EVEN);
    f(Arc::make_mut(&mut path.forward));
    f(Arc::make_mut(&mut path.backward));
    path
}

/// The recorded traces, when they are there.
pub(crate) fn traces() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("PUNCTUAL_TRACES") {
        return Some(PathBuf::from(path));
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    beside.is_dir().then_some(beside)
}

pub(crate) struct Duo {
    pub world: World,
    pub client: HostId,
    pub server: HostId,
    pub at_client: SessionId,
    pub at_server: Option<SessionId>,
    pub received: Vec<(Moment, HostId, Vec<u8>)>,
    pub outcomes: Vec<(MessageId, Outcome)>,
    /// Whose each of them is.
    pub outcomes_of: Vec<HostId>,
    pub closed: Vec<(HostId, punctual_proto::CloseReason)>,
    /// How often there was room again.
    pub writable: usize,
    /// Pieces of large messages, and messages that ended before they were complete.
    pub pieces: usize,
    pub aborted: usize,
    /// Messages received before the last of those.
    pub received_before_abort: usize,
}

pub(crate) fn key() -> ServerKey {
    ServerKey::from_private([3; 32])
}

pub(crate) fn library(kind: PolicyKind) -> Arc<Library> {
    let library = Arc::new(Library::new(kind));
    library.prepare(SendOptions::default().miss_target(), 1..=8);
    library
}

pub(crate) fn server_config() -> EndpointConfig {
    EndpointConfig::server(
        Arc::new(LabAead),
        library(PolicyKind::default()),
        ServerConfig::new(key()),
    )
}

pub(crate) fn client_config() -> EndpointConfig {
    EndpointConfig::client(Arc::new(LabAead), library(PolicyKind::default()))
}

impl Duo {
    /// A connected pair, or as far as it got within a second of blackout-free time.
    pub(crate) fn connect(seed: u64, path: &PathSpec) -> Self {
        Self::connect_with(seed, path, server_config(), client_config())
    }

    pub(crate) fn connect_with(
        seed: u64,
        path: &PathSpec,
        server: EndpointConfig,
        client: EndpointConfig,
    ) -> Self {
        Self::connect_in(World::new(seed).with_hash(), path, server, client)
    }

    pub(crate) fn connect_in(
        mut world: World,
        path: &PathSpec,
        server: EndpointConfig,
        client: EndpointConfig,
    ) -> Self {
        let server = world.add_server(server);
        let client = world.add_client(client, path);
        let at_client = world.connect(client, server, key().public()).unwrap();
        let mut duo = Self {
            world,
            client,
            server,
            at_client,
            at_server: None,
            received: Vec::new(),
            outcomes: Vec::new(),
            outcomes_of: Vec::new(),
            closed: Vec::new(),
            writable: 0,
            pieces: 0,
            aborted: 0,
            received_before_abort: 0,
        };
        duo.run(Duration::from_secs(2));
        duo
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.world.now().after(span);
        let mut happenings = Vec::new();
        self.world
            .run(until, |_, happening| happenings.push(happening));
        for Happening {
            at,
            host,
            session,
            event,
        } in happenings
        {
            match event {
                Event::Connected { .. } if host == self.server => self.at_server = Some(session),
                Event::Message { data, .. } => self.received.push((at, host, data)),
                Event::Outcome {
                    message, outcome, ..
                } => {
                    self.outcomes.push((message, outcome));
                    self.outcomes_of.push(host);
                }
                Event::Closed { why } => self.closed.push((host, why)),
                Event::Piece(Piece::Data { .. }) => self.pieces += 1,
                Event::Piece(Piece::Aborted { .. }) => {
                    self.aborted += 1;
                    self.received_before_abort = self.received.len();
                }
                Event::Writable => self.writable += 1,
                _ => {}
            }
        }
    }

    /// From the client to the server.
    pub(crate) fn send(&mut self, data: &[u8], options: SendOptions) -> MessageId {
        self.world
            .send(self.client, self.at_client, data, options)
            .unwrap()
    }

    /// A stream from the client to the server.
    pub(crate) fn open(&mut self, config: StreamConfig) -> StreamId {
        let session = self.at_client;
        self.world
            .with_endpoint(self.client, |endpoint, _| {
                endpoint.open_stream(session, config)
            })
            .unwrap()
    }

    pub(crate) fn send_on(
        &mut self,
        stream: StreamId,
        data: &[u8],
        options: SendOptions,
    ) -> MessageId {
        let session = self.at_client;
        self.world
            .with_endpoint(self.client, |endpoint, now| {
                endpoint.send(now, session, stream, data, options)
            })
            .unwrap()
    }

    pub(crate) fn cancel(&mut self, message: MessageId) -> Cancel {
        let session = self.at_client;
        self.world.with_endpoint(self.client, |endpoint, now| {
            endpoint.cancel(now, session, message)
        })
    }

    pub(crate) fn stream_stats(&self, stream: StreamId) -> StreamStats {
        self.world
            .endpoint(self.client)
            .stream_stats(self.at_client, stream)
            .unwrap()
    }

    pub(crate) fn outcome_of(&self, message: MessageId) -> Option<Outcome> {
        let of = |(id, _): &&(MessageId, Outcome)| *id == message;
        self.outcomes.iter().find(of).map(|(_, outcome)| *outcome)
    }

    pub(crate) fn stats(&self) -> punctual_proto::SessionStats {
        self.world
            .endpoint(self.client)
            .session_stats(self.at_client)
            .unwrap()
    }

    pub(crate) fn server_stats(&self) -> punctual_proto::SessionStats {
        self.world
            .endpoint(self.server)
            .session_stats(self.at_server.unwrap())
            .unwrap()
    }
}
