//! Punctual itself, on its own sockets: an endpoint at the server, and one for each client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_lab::arm::{Arm, ArmError, Places, Refused, SOURCE_SYMBOLS, SYMBOLS_SENT, Side, Task};
use punctual_net::clock::Clock;
use punctual_net::crypto::AwsLc;
use punctual_net::entropy;
use punctual_net::udp::{Poller, Socket, SocketOptions};
use punctual_policy::{Library, PolicyKind};
use punctual_proto::{
    ConnectOptions, EndpointConfig, Event, SendOptions, ServerConfig, ServerKey, SessionId,
    StreamId,
};

use crate::failure::Failure;
use crate::lab::end::{End, client_socket};
use crate::tables;

/// Clients that connect at once; the others follow as these are through.
const CONNECT_BATCH: usize = 32;
/// A session that lost its peer for so long is over: longer than any outage that is played.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Punctual under a policy.
pub(super) struct Punctual {
    name: String,
    policy: PolicyKind,
    tuning: Tuning,
    key: ServerKey,
}

/// What an experiment sets otherwise than users would.
#[derive(Debug, Clone, Default)]
pub(in crate::lab) struct Tuning {
    /// Source symbols of a message; None leaves it to the policy.
    pub(in crate::lab) symbols: Option<u8>,
    /// By flow: the deadline of its messages; empty for the task's.
    pub(in crate::lab) deadlines: Arc<[Duration]>,
}

impl Punctual {
    pub(super) fn new(name: &str, policy: PolicyKind, tuning: Tuning) -> Result<Self, Failure> {
        Ok(Self {
            name: name.to_owned(),
            policy,
            tuning,
            key: ServerKey::from_private(entropy::seed().map_err(Failure::failed)?),
        })
    }

    fn policies(&self, task: &Task) -> Arc<Library> {
        tables::library(
            self.policy,
            task.message_bytes,
            self.options(task).miss_target(),
        )
    }

    fn options(&self, task: &Task) -> SendOptions {
        SendOptions {
            source_symbols: self.tuning.symbols,
            ..SendOptions::within(task.deadline).on_time(task.on_time as f32)
        }
    }

    fn failed(&self, why: impl ToString) -> ArmError {
        ArmError::Failed {
            arm: self.name.clone(),
            why: why.to_string(),
        }
    }
}

impl Arm for Punctual {
    fn name(&self) -> &str {
        &self.name
    }

    fn settings(&self) -> String {
        format!(
            "Punctual's protocol with the policy {}, reliable and unordered, told deadline and target",
            self.policy
        )
    }

    fn server(&self, places: &Places, task: &Task) -> Result<Box<dyn Side>, ArmError> {
        let config = EndpointConfig::server(
            Arc::new(AwsLc),
            self.policies(task),
            ServerConfig::new(self.key.clone()),
        );
        let options = SocketOptions::default();
        let socket = Socket::bind(places.server(), &options).map_err(|why| self.failed(why))?;
        let ends = Ends::new(self, places, task, true, vec![(socket, config)])?;
        Ok(Box::new(Server(ends)))
    }

    fn client(&self, places: &Places, task: &Task) -> Result<Box<dyn Side>, ArmError> {
        let policies = self.policies(task);
        let options = client_socket();
        let ends = (0..places.flows()).map(|flow| {
            let socket = Socket::bind(places.client(flow), &options);
            let config = EndpointConfig::client(Arc::new(AwsLc), Arc::clone(&policies));
            Ok((socket.map_err(|why| self.failed(why))?, config))
        });
        let ends = ends.collect::<Result<_, ArmError>>()?;
        Ok(Box::new(Client {
            ends: Ends::new(self, places, task, false, ends)?,
            server_key: self.key.public(),
            begun: 0,
            over: 0,
        }))
    }
}

/// The endpoints of a side.
struct Ends {
    /// The arm's name, for errors.
    arm: String,
    places: Places,
    options: SendOptions,
    /// By flow: deadlines that take the place of that of `options`; may be empty.
    deadlines: Arc<[Duration]>,
    poller: Poller,
    ends: Vec<End>,
    /// The server has one endpoint for all flows, clients have one each.
    is_server: bool,
    /// By flow: the endpoint and the session.
    sessions: Vec<Option<(usize, SessionId)>>,
    ready: u32,
}

/// What happened to a session.
enum Change {
    Connected(usize, SessionId),
    Closed(usize, SessionId),
}

impl Ends {
    fn new(
        arm: &Punctual,
        places: &Places,
        task: &Task,
        is_server: bool,
        ends: Vec<(Socket, EndpointConfig)>,
    ) -> Result<Self, ArmError> {
        let waiting = ArmError::system(&arm.name, "waiting for sockets");
        let mut poller = Poller::new().map_err(waiting)?;
        let clock = Clock::start();
        let ends = ends.into_iter().map(|(socket, config)| {
            let config = EndpointConfig {
                idle_timeout: IDLE_TIMEOUT,
                ..config
            };
            End::new(config, socket, clock, &mut poller).map_err(|why| arm.failed(why))
        });
        let ends = ends.collect::<Result<_, ArmError>>()?;
        Ok(Self {
            arm: arm.name.clone(),
            places: places.clone(),
            options: arm.options(task),
            deadlines: Arc::clone(&arm.tuning.deadlines),
            poller,
            ends,
            is_server,
            sessions: vec![None; places.flows() as usize],
            ready: 0,
        })
    }

    fn send(&mut self, flow: u32, message: &[u8]) -> Result<(), Refused> {
        let (end, session) = self.sessions[flow as usize].ok_or(Refused)?;
        let mut options = self.options;
        if let Some(&deadline) = self.deadlines.get(flow as usize) {
            options.within = Some(deadline);
        }
        let end = &mut self.ends[end];
        let now = end.driver.now();
        let endpoint = end.driver.endpoint_mut();
        endpoint
            .send(now, session, StreamId::DEFAULT, message, options)
            .map_err(|_| Refused)?;
        end.send();
        Ok(())
    }

    fn drive(
        &mut self,
        until: Instant,
        on_message: &mut dyn FnMut(u32, &[u8]),
        on_change: &mut dyn FnMut(Change),
    ) -> Result<(), ArmError> {
        let due = self.ends.iter().filter_map(|end| end.due).min();
        let until = due.map_or(until, |due| due.min(until));
        let patience = until.saturating_duration_since(Instant::now());
        let waited = self.poller.wait(Some(patience));
        waited.map_err(|error| ArmError::system(&self.arm, "waiting for sockets")(error))?;
        let now = Instant::now();
        for index in 0..self.ends.len() {
            if self.ends[index].is_ready(now, &self.poller) {
                let turned = self.ends[index].turn(now);
                turned.map_err(|error| ArmError::system(&self.arm, "using a socket")(error))?;
                self.take_events(index, on_message, on_change);
            }
        }
        Ok(())
    }

    fn take_events(
        &mut self,
        index: usize,
        on_message: &mut dyn FnMut(u32, &[u8]),
        on_change: &mut dyn FnMut(Change),
    ) {
        let end = &mut self.ends[index];
        while let Some((session, event)) = end.driver.endpoint_mut().poll_event() {
            match event {
                Event::Message { data, .. } => {
                    let remote = end.driver.endpoint().remote(session);
                    let flow = if self.is_server {
                        remote.and_then(|remote| self.places.flow_of(remote.ip()))
                    } else {
                        Some(index as u32)
                    };
                    if let Some(flow) = flow {
                        on_message(flow, &data);
                    }
                    end.driver.endpoint_mut().recycle(data);
                }
                Event::Connected { .. } => on_change(Change::Connected(index, session)),
                Event::Closed { .. } => on_change(Change::Closed(index, session)),
                // The outcomes say the same as the receiver's clock, only later.
                _ => {}
            }
        }
    }

    /// Symbols of all sessions.
    fn counters(&self) -> Vec<(&'static str, f64)> {
        let stats = self
            .sessions
            .iter()
            .flatten()
            .filter_map(|&(end, session)| {
                let endpoint = self.ends[end].driver.endpoint();
                endpoint.stream_stats(session, StreamId::DEFAULT)
            });
        let (needed, sent) = stats.fold((0, 0), |(needed, sent), stats| {
            (needed + stats.source_symbols, sent + stats.symbols_sent)
        });
        vec![(SOURCE_SYMBOLS, needed as f64), (SYMBOLS_SENT, sent as f64)]
    }

    fn set(&mut self, flow: u32, session: Option<(usize, SessionId)>) {
        let place = &mut self.sessions[flow as usize];
        self.ready += u32::from(session.is_some());
        self.ready -= u32::from(place.is_some());
        *place = session;
    }
}

struct Server(Ends);

impl Side for Server {
    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.0.counters()
    }

    fn ready(&self) -> u32 {
        self.0.ready
    }

    fn send(&mut self, flow: u32, message: &[u8]) -> Result<(), Refused> {
        self.0.send(flow, message)
    }

    fn drive(
        &mut self,
        until: Instant,
        on_message: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), ArmError> {
        let mut changes = Vec::new();
        let mut on_change = |change| changes.push(change);
        self.0.drive(until, on_message, &mut on_change)?;
        for change in changes {
            match change {
                Change::Connected(index, session) => {
                    let remote = self.0.ends[index].driver.endpoint().remote(session);
                    let flow = remote.and_then(|remote| self.0.places.flow_of(remote.ip()));
                    if let Some(flow) = flow {
                        self.0.set(flow, Some((index, session)));
                    }
                }
                Change::Closed(index, session) => {
                    let is_it = |known: &Option<_>| *known == Some((index, session));
                    if let Some(flow) = self.0.sessions.iter().position(is_it) {
                        self.0.set(flow as u32, None);
                    }
                }
            }
        }
        Ok(())
    }
}

struct Client {
    ends: Ends,
    server_key: [u8; 32],
    /// Flows that have begun to connect.
    begun: u32,
    /// Attempts to connect that are over, one way or the other.
    over: u32,
}

impl Client {
    fn connect(&mut self, flow: u32) -> Result<(), ArmError> {
        let options = ConnectOptions {
            remote: self.ends.places.server(),
            server_key: self.server_key,
            token: None,
        };
        let end = &mut self.ends.ends[flow as usize];
        let now = end.driver.now();
        let begun = end.driver.endpoint_mut().connect(now, &options);
        begun.map_err(|why| ArmError::Failed {
            arm: self.ends.arm.clone(),
            why: why.to_string(),
        })?;
        end.due = Some(Instant::now());
        Ok(())
    }
}

impl Side for Client {
    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.ends.counters()
    }

    fn ready(&self) -> u32 {
        self.ends.ready
    }

    fn send(&mut self, flow: u32, message: &[u8]) -> Result<(), Refused> {
        self.ends.send(flow, message)
    }

    fn drive(
        &mut self,
        until: Instant,
        on_message: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), ArmError> {
        while self.begun < self.ends.places.flows()
            && ((self.begun - self.over.min(self.begun)) as usize) < CONNECT_BATCH
        {
            self.connect(self.begun)?;
            self.begun += 1;
        }
        let mut changes = Vec::new();
        let mut on_change = |change| changes.push(change);
        self.ends.drive(until, on_message, &mut on_change)?;
        for change in changes {
            match change {
                Change::Connected(index, session) => {
                    self.over += 1;
                    self.ends.set(index as u32, Some((index, session)));
                }
                Change::Closed(index, _) => {
                    self.ends.set(index as u32, None);
                    // Also after a handshake that nobody answered: a game would try again.
                    self.connect(index as u32)?;
                }
            }
        }
        Ok(())
    }
}
