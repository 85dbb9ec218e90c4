//! Random operations on real endpoints over a hostile network, checked after every step against a model that is too simple to be
//! wrong.
//!
//! The same operations serve as test (choices from a seed) and as fuzz target (choices from the fuzzer's bytes). A seed that
//! fails is the bug report: [`Broken`] prints the command that replays it.

mod choices;
mod model;
mod network;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use choices::{ByteChoices, Choices, SeedChoices};
pub use model::{Model, Rule};
use punctual_policy::{Library, PolicyKind};
use punctual_proto::{
    CloseCode, Endpoint, EndpointConfig, Event, SendError, SendOptions, ServerConfig, ServerKey,
    SessionId, limits,
};

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
    is_over: bool,
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
}

/// On-time targets of messages.
const TARGETS: [f32; 4] = [0.9, 0.99, 0.999, 0.9999];

/// A library of each kind with tables for small messages, shared by all storms. Larger ones are served by the stopgap: tables
/// that came into being during a storm would make it depend on the storms before.
fn libraries() -> &'static [Arc<Library>; 4] {
    static LIBRARIES: OnceLock<[Arc<Library>; 4]> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let kinds = [
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

/// Runs a storm to its end.
///
/// # Errors
/// The first rule that was broken.
pub fn storm(seed: u64, choices: &mut dyn Choices) -> Result<StormReport, Broken> {
    let mut storm = Storm::new(seed, choices);
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

impl<'a> Storm<'a> {
    fn new(seed: u64, choices: &'a mut dyn Choices) -> Self {
        let library = Arc::clone(&libraries()[choices.below(4) as usize]);
        let mut world = World::new(seed).with_hash();
        let key = ServerKey::from_private([9; 32]);
        let mut server_config = ServerConfig::new(key.clone());
        server_config.cookie_threshold = choices.below(3) as usize;
        let worn = 20 + choices.below(200);
        let config = |config: EndpointConfig| EndpointConfig {
            key_update_packets: worn,
            ..config
        };
        let aead = Arc::new(LabAead);
        let server = world.add_server(config(EndpointConfig::server(
            aead.clone(),
            library.clone(),
            server_config,
        )));
        let mut pairs = Vec::new();
        for _ in 0..=choices.below(3) {
            let path = network::path(choices);
            let client = world.add_client(
                config(EndpointConfig::client(aead.clone(), library.clone())),
                &path,
            );
            let at_client = world
                .connect(client, server, key.public())
                .expect("a new endpoint has room, and the key is a key");
            pairs.push(Pair {
                client,
                at_client,
                at_server: None,
                sides: [Model::default(), Model::default()],
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
        }
    }

    fn operate(&mut self) -> Result<(), Broken> {
        match self.choices.below(16) {
            0..=6 => self.send()?,
            7 => self.change_address(),
            8 => self.inject(),
            9 if self.choices.below(8) == 0 => self.close(),
            10 => {
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

    fn send(&mut self) -> Result<(), Broken> {
        let pair = self.choices.below(self.pairs.len() as u64) as usize;
        let side = self.choices.below(2) as usize;
        let (host, session) = match (side, self.pairs[pair].at_server) {
            (0, _) => (self.pairs[pair].client, self.pairs[pair].at_client),
            (_, Some(session)) => (self.server, session),
            (_, None) => return Ok(()),
        };
        let len = match self.choices.below(16) {
            0 => 0,
            1..=9 => self.choices.below(300) as usize,
            10..=14 => self.choices.below(5000) as usize,
            _ => self.choices.below(limits::WHOLE_MAX as u64 + 100) as usize,
        };
        let options = self.options();
        let number = self.next_number;
        self.next_number += 1;
        model::fill(&mut self.payload, number, len);
        let sent = self.world.send(host, session, &self.payload, options);
        let at = self.world.now();
        match sent {
            Ok(id) => {
                self.pairs[pair].sides[side].on_accepted(id, number, len, options.when_late);
                Ok(())
            }
            Err(SendError::TooLarge { .. }) if len <= limits::WHOLE_MAX => Err(Broken {
                rule: Rule::Limits,
                at,
                detail: format!("a message of {len} bytes was refused"),
            }),
            Err(_) => Ok(()),
        }
    }

    fn options(&mut self) -> SendOptions {
        let mut options = match self.choices.below(4) {
            0 => SendOptions::default(),
            _ => SendOptions::within(Duration::from_millis(1 + self.choices.below(1500))),
        };
        options = options.on_time(TARGETS[self.choices.below(4) as usize]);
        if self.choices.below(3) == 0 {
            options = options.drop_when_late();
        }
        if self.choices.below(4) == 0 {
            options = options.source_symbols(1 + self.choices.below(64) as u8);
        }
        options
    }

    fn change_address(&mut self) {
        let pair = self.choices.below(self.pairs.len() as u64) as usize;
        self.world.change_address(self.pairs[pair].client);
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
        let Happening {
            at,
            host,
            session,
            event,
        } = happening;
        if let (Event::Connected { .. }, true) = (&event, host == self.server) {
            self.on_connected(session);
            return Ok(());
        }
        let Some((pair, side)) = self.find(host, session) else {
            return Ok(());
        };
        let pair = &mut self.pairs[pair];
        let broken = |(rule, detail)| Broken { rule, at, detail };
        match event {
            Event::Message { data, .. } => {
                // What one side receives, the other has sent.
                let result = pair.sides[1 - side].on_delivered(&data).map_err(broken);
                self.world.recycle(host, data);
                result
            }
            Event::Outcome {
                message, outcome, ..
            } => pair.sides[side]
                .on_outcome(message, &outcome)
                .map_err(broken),
            Event::Closed { .. } => {
                pair.is_over = true;
                pair.sides[side].on_closed().map_err(broken)
            }
            _ => Ok(()),
        }
    }

    /// A server's session belongs to the client at its remote address.
    fn on_connected(&mut self, session: SessionId) {
        let Some(remote) = self.world.endpoint(self.server).remote(session) else {
            return;
        };
        let owner = crate::world::host_at(remote);
        if let Some(pair) = self
            .pairs
            .iter_mut()
            .find(|pair| Some(pair.client) == owner)
        {
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
        for _ in 0..60 {
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
        Ok(())
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
