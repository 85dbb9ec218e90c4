//! Random operations on real endpoints over a hostile network, checked after every step against a model that is too simple to be
//! wrong.
//!
//! The same operations serve as test (choices from a seed) and as fuzz target (choices from the fuzzer's bytes). A seed that
//! fails is the bug report: [`Broken`] prints the command that replays it.

mod choices;
mod model;
mod mutant;
mod network;
mod streams;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use choices::{ByteChoices, Choices, SeedChoices};
pub use model::{Model, Rule, Sent};
pub use mutant::Mutant;
use mutant::Mutator;
use punctual_policy::{Library, PolicyKind};
use punctual_proto::limits::{MTU_MIN, UDP_IP_HEADER};
use punctual_proto::{
    CloseCode, ConnectOptions, Endpoint, EndpointConfig, Event, Piece, SendOptions, ServerConfig,
    ServerKey, SessionId, ThinStreams, TokenClaims, TokenKey, Uplink,
};
use streams::Appending;

use crate::world::{Happening, HostId, LabAead, Moment, World};

/// What a storm saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StormReport {
    /// Hash of all datagrams and events: equal for equal choices.
    pub hash: u64,
    /// Messages accepted.
    pub accepted: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Sessions that ended before the storm did.
    pub closed: u64,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub rule: Rule,
    /// When, in the world's time.
    pub at: Moment,
    /// What exactly.
    pub detail: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} at {:.6} s: {}",
            self.rule,
            self.at.0 as f64 / 1e9,
            self.detail
        )
    }
}

impl std::error::Error for Broken {}

/// Operations of a storm, at most.
const OPERATIONS_MAX: usize = 120;
/// Steps of the world that one operation may take: a timer that spins takes more.
const STEPS_MAX: u32 = 200_000;

/// One session from both ends.
struct Pair {
    client: HostId,
    at_client: SessionId,
    at_server: Option<SessionId>,
    /// Messages of the two directions: 0 from the client, 1 from the server.
    sides: [Model; 2],
    /// Messages whose content is not all handed in yet.
    appending: Vec<Appending>,
    is_over: bool,
}

impl Pair {
    /// Where one of the two sides is; `None` before the server knows the client.
    fn at(&self, side: usize, server: HostId) -> Option<(HostId, SessionId)> {
        match side {
            0 => Some((self.client, self.at_client)),
            _ => self.at_server.map(|session| (server, session)),
        }
    }
}

/// A storm under way.
struct Storm<'a> {
    choices: &'a mut dyn Choices,
    world: World,
    server: HostId,
    pairs: Vec<Pair>,
    /// Datagrams worth replaying or changing.
    captured: Vec<Vec<u8>>,
    payload: Vec<u8>,
    next_number: u64,
    /// Messages that come in pieces which may still be sent: they take long.
    large_left: u32,
    mutator: Option<Mutator>,
}

/// Messages of a storm that come in pieces, at most.
const LARGE_MAX: u32 = 2;

/// Bytes of the largest packets, IP header included, that every path carries.
const NARROWEST: u16 = MTU_MIN + UDP_IP_HEADER as u16;

/// On-time targets of messages.
const TARGETS: [f32; 4] = [0.9, 0.99, 0.999, 0.9999];

/// A library of each kind with tables for small messages, shared by all storms. Larger ones are served by the stopgap: tables
/// that came into being during a storm would make it depend on the storms before.
fn libraries() -> &'static [Arc<Library>; 5] {
    static LIBRARIES: OnceLock<[Arc<Library>; 5]> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let kinds = [
            PolicyKind::Steered,
            PolicyKind::Exact,
            PolicyKind::Pangolin,
            PolicyKind::Retransmit,
            PolicyKind::Fixed(1),
        ];
        kinds.map(|kind| {
            let library = Library::new(kind);
            for target in TARGETS {
                let miss_target = SendOptions::default().on_time(target).miss_target();
                library.prepare(miss_target, 1..=6);
            }
            Arc::new(library)
        })
    })
}

fn thin_streams(choices: &mut dyn Choices) -> ThinStreams {
    match choices.below(3) {
        0 => ThinStreams::default(),
        _ => ThinStreams {
            linear_timeouts: choices.below(2) == 0,
            one_later_ack: choices.below(2) == 0,
            bundling: choices.below(4) > 0,
            bundle_bytes_max: choices.below(1500) as u16,
        },
    }
}

/// Runs a storm to its end.
///
/// # Errors
/// The first rule that was broken.
pub fn storm(seed: u64, choices: &mut dyn Choices) -> Result<StormReport, Broken> {
    storm_with(seed, choices, None)
}

/// Runs a storm of which one happening is not told as it was: whoever checks it must notice.
///
/// # Errors
/// The first rule that was broken.
pub fn storm_with(
    seed: u64,
    choices: &mut dyn Choices,
    mutant: Option<Mutant>,
) -> Result<StormReport, Broken> {
    let mut storm = Storm::new(seed, choices);
    storm.mutator = mutant.map(|mutant| Mutator::new(seed, mutant));
    let operations = 10 + storm.choices.below(OPERATIONS_MAX as u64 - 10);
    for _ in 0..operations {
        if storm.choices.is_exhausted() {
            break;
        }
        storm.operate()?;
    }
    storm.settle()?;
    Ok(storm.report())
}

/// What the server's tokens are sealed with.
const TOKEN_KEY: TokenKey = TokenKey([8; 32]);

fn server_key() -> ServerKey {
    ServerKey::from_private([9; 32])
}

/// A client's session, with a token that says which pair it is of.
fn connect(world: &mut World, pair: usize, client: HostId, server: HostId) -> SessionId {
    let claims = TokenClaims {
        identity: vec![pair as u8],
        expires_unix_s: u64::MAX,
        servers: Vec::new(),
        psk: [3; 32],
    };
    let token = claims.seal(&LabAead, &TOKEN_KEY, [4; 32]);
    let options = ConnectOptions {
        remote: world.address(server),
        server_key: server_key().public(),
        token: Some(token.expect("the claims are short")),
    };
    let connect = |endpoint: &mut Endpoint, now| endpoint.connect(now, &options);
    world
        .with_endpoint(client, connect)
        .expect("a new endpoint has room, and the key is a key")
}

impl<'a> Storm<'a> {
    fn new(seed: u64, choices: &'a mut dyn Choices) -> Self {
        let library = Arc::clone(&libraries()[choices.below(5) as usize]);
        let mut world = World::new(seed).with_hash();
        let mut server_config = ServerConfig::new(server_key());
        server_config.token_key = Some(TOKEN_KEY);
        server_config.cookie_threshold = choices.below(3) as usize;
        let worn = 20 + choices.below(200);
        let thin_streams = thin_streams(choices);
        let uplink = match choices.below(6) {
            0 => Uplink::BytesPerSecond(50_000 + choices.below(3_000_000)),
            1 => Uplink::Unlimited,
            _ => Uplink::Unknown,
        };
        let config = |config: EndpointConfig| EndpointConfig {
            key_update_packets: worn,
            thin_streams,
            ..config
        };
        let aead = Arc::new(LabAead);
        let server = world.add_server(EndpointConfig {
            uplink,
            ..config(EndpointConfig::server(
                aead.clone(),
                library.clone(),
                server_config,
            ))
        });
        let mut pairs = Vec::new();
        for _ in 0..=choices.below(3) {
            let path = network::path(choices);
            let client = world.add_client(
                config(EndpointConfig::client(aead.clone(), library.clone())),
                &path,
            );
            let at_client = connect(&mut world, pairs.len(), client, server);
            pairs.push(Pair {
                client,
                at_client,
                at_server: None,
                sides: [Model::default(), Model::default()],
                appending: Vec::new(),
                is_over: false,
            });
        }
        Self {
            choices,
            world,
            server,
            pairs,
            captured: Vec::new(),
            payload: Vec::new(),
            next_number: 0,
            large_left: LARGE_MAX,
            mutator: None,
        }
    }

    fn operate(&mut self) -> Result<(), Broken> {
        match self.choices.below(33) {
            0..=12 => self.send()?,
            13 | 14 => self.open_stream()?,
            15 => self.close_stream(),
            16 => self.change_stream(),
            17..=19 => self.cancel()?,
            20 | 21 => self.append()?,
            22 => self.tick(),
            23 => self.change_address(),
            24 => self.inject(),
            25 if self.choices.below(8) == 0 => self.close(),
            32 => self.change_width(),
            26 => {
                let pause = Duration::from_millis(1 + self.choices.below(3000));
                self.advance(pause)?;
            }
            _ => {
                let pause = Duration::from_micros(self.choices.below(300_000));
                self.advance(pause)?;
            }
        }
        let pause = Duration::from_micros(self.choices.below(20_000));
        self.advance(pause)
    }

    fn change_address(&mut self) {
        let pair = self.choices.below(self.pairs.len() as u64) as usize;
        self.world.change_address(self.pairs[pair].client);
    }

    /// All paths become narrower or wider, for good unless it comes again.
    fn change_width(&mut self) {
        let mtu = match self.choices.below(3) {
            0 => None,
            1 => Some(NARROWEST),
            _ => Some(NARROWEST + self.choices.below(272) as u16),
        };
        self.world.set_mtu(mtu);
    }

    /// A replay, a forgery or noise, from an address that was in use or one that never was.
    fn inject(&mut self) {
        let mut datagram = match self.choices.below(3) {
            0 => {
                let len = self.choices.below(1500) as usize;
                (0..len).map(|_| self.choices.below(256) as u8).collect()
            }
            _ => {
                let Some(last) = self.world.last_datagram() else {
                    return;
                };
                if self.captured.len() < 32 {
                    self.captured.push(last.to_vec());
                }
                let index = self.choices.below(self.captured.len() as u64) as usize;
                self.captured[index].clone()
            }
        };
        if self.choices.below(2) == 0 && !datagram.is_empty() {
            let at = self.choices.below(datagram.len() as u64) as usize;
            datagram[at] ^= 1 << self.choices.below(8);
        }
        if self.choices.below(4) == 0 {
            datagram.truncate(self.choices.below(datagram.len() as u64 + 1) as usize);
        }
        let pair = &self.pairs[self.choices.below(self.pairs.len() as u64) as usize];
        let (client, server) = (pair.client, self.server);
        let (to, from) = if self.choices.below(2) == 0 {
            (server, client)
        } else {
            (client, server)
        };
        let mut from = self.world.address(from);
        if self.choices.below(3) == 0 {
            from.set_port(1 + self.choices.below(60_000) as u16);
        }
        self.world.inject(to, from, &datagram);
    }

    fn close(&mut self) {
        let pair = self.choices.below(self.pairs.len() as u64) as usize;
        let is_graceful = self.choices.below(2) == 0;
        let (host, session) = match (self.choices.below(2), self.pairs[pair].at_server) {
            (1, Some(session)) => (self.server, session),
            _ => (self.pairs[pair].client, self.pairs[pair].at_client),
        };
        self.world
            .with_endpoint(host, |endpoint: &mut Endpoint, now| {
                if is_graceful {
                    endpoint.finish(now, session, CloseCode::DONE, "storm");
                } else {
                    endpoint.close(now, session, CloseCode::DONE, "storm");
                }
            });
    }

    fn advance(&mut self, span: Duration) -> Result<(), Broken> {
        let until = self.world.now().after(span);
        let mut steps = 0;
        loop {
            let went_on = self.world.step(until);
            for happening in self.world.take_happenings() {
                self.on_happening(happening)?;
            }
            if !went_on {
                return Ok(());
            }
            steps += 1;
            if steps > STEPS_MAX {
                return Err(Broken {
                    rule: Rule::NoSpinning,
                    at: self.world.now(),
                    detail: format!("{steps} steps in {span:?}"),
                });
            }
        }
    }

    fn on_happening(&mut self, happening: Happening) -> Result<(), Broken> {
        if let Event::Connected { identity } = &happening.event {
            if happening.host == self.server {
                self.on_connected(happening.session, identity);
            }
            if let Some((pair, side)) = self.find(happening.host, happening.session) {
                self.open_first_streams(pair, side)?;
            }
            return Ok(());
        }
        let Some((pair, side)) = self.find(happening.host, happening.session) else {
            return Ok(());
        };
        let Some(mutator) = &mut self.mutator else {
            return self.observe(pair, side, happening);
        };
        for (side, happening) in mutator.tamper(&self.pairs, self.server, (pair, side), happening) {
            self.observe(pair, side, happening)?;
        }
        Ok(())
    }

    /// What the application of one side is told.
    fn observe(&mut self, pair: usize, side: usize, happening: Happening) -> Result<(), Broken> {
        let Happening {
            at, host, event, ..
        } = happening;
        let pair = &mut self.pairs[pair];
        // What one side receives, the other has sent.
        let (here, there) = (side, 1 - side);
        let (verdict, buffer) = match event {
            Event::Message { stream, data } => {
                (pair.sides[there].on_delivered(stream.0, &data), Some(data))
            }
            Event::Piece(piece) => {
                let verdict = pair.sides[there].on_piece(&piece);
                match piece {
                    Piece::Data { data, .. } => (verdict, Some(data)),
                    Piece::Aborted { .. } => (verdict, None),
                }
            }
            Event::Outcome {
                stream,
                message,
                outcome,
            } => {
                let verdict = pair.sides[here].on_outcome(message, stream.0, &outcome);
                (verdict, None)
            }
            Event::Closed { .. } => {
                pair.is_over = true;
                (pair.sides[here].on_closed(), None)
            }
            _ => (Ok(()), None),
        };
        if let Some(buffer) = buffer {
            self.world.recycle(host, buffer);
        }
        verdict.map_err(|(rule, detail)| Broken { rule, at, detail })
    }

    /// A server's session belongs to the client that its token names, wherever its HELLO came from. (Once it was the one at its remote address: a HELLO that was replayed from
    /// another's made all that its client sent messages that nobody had sent. Seed 841051.)
    fn on_connected(&mut self, session: SessionId, identity: &[u8]) {
        let owner = identity.first().copied().map(usize::from);
        if let Some(pair) = owner.and_then(|owner| self.pairs.get_mut(owner)) {
            pair.at_server.get_or_insert(session);
        }
    }

    fn find(&self, host: HostId, session: SessionId) -> Option<(usize, usize)> {
        self.pairs.iter().enumerate().find_map(|(index, pair)| {
            if host == pair.client && session == pair.at_client {
                Some((index, 0))
            } else if host == self.server && pair.at_server == Some(session) {
                Some((index, 1))
            } else {
                None
            }
        })
    }

    /// The network calms down; then everything that was promised must have come true.
    fn settle(&mut self) -> Result<(), Broken> {
        self.world.calm();
        if let Some(mutator) = &mut self.mutator {
            for (pair, side, happening) in mutator.release() {
                self.observe(pair, side, happening)?;
            }
        }
        self.stop_ticks();
        for _ in 0..90 {
            self.complete_or_cancel()?;
            self.advance(Duration::from_secs(1))?;
            let is_done = |pair: &Pair| pair.is_over || pair.sides.iter().all(Model::is_settled);
            if self.pairs.iter().all(is_done) {
                break;
            }
        }
        let at = self.world.now();
        for pair in self.pairs.iter().filter(|pair| !pair.is_over) {
            for side in &pair.sides {
                side.check_settled()
                    .map_err(|(rule, detail)| Broken { rule, at, detail })?;
            }
        }
        self.check_statistics()?;
        self.become_quiet()
    }

    /// Nothing is left in any endpoint.
    fn become_quiet(&mut self) -> Result<(), Broken> {
        let mut hosts: Vec<HostId> = self
            .pairs
            .iter()
            // A client that its server never heard of waits for its end.
            .filter(|pair| !pair.is_over && pair.at_server.is_some())
            .map(|pair| pair.client)
            .collect();
        if self.pairs.iter().all(|pair| !pair.is_over) {
            hosts.push(self.server);
        }
        for _ in 0..20 {
            if self.mutator.as_ref().is_some_and(Mutator::is_busy) {
                self.send_unnoticed();
            } else {
                self.advance(Duration::from_secs(1))?;
            }
            let is_quiet = |host: &HostId| self.world.endpoint(*host).is_quiet();
            if hosts.iter().all(is_quiet) {
                return Ok(());
            }
        }
        let loud = hosts
            .iter()
            .find(|host| !self.world.endpoint(**host).is_quiet());
        Err(Broken {
            rule: Rule::Quiet,
            at: self.world.now(),
            detail: format!("{loud:?} still holds something"),
        })
    }

    fn report(&self) -> StormReport {
        let sum = |f: fn(&Model) -> u64| {
            self.pairs
                .iter()
                .flat_map(|pair| &pair.sides)
                .map(f)
                .sum::<u64>()
        };
        StormReport {
            hash: self.world.hash().unwrap_or_default(),
            accepted: sum(Model::accepted),
            delivered: sum(Model::delivered),
            closed: self.pairs.iter().filter(|pair| pair.is_over).count() as u64,
        }
    }
}
