//! The real server: a [`Driver`] with many sessions, to each of which it sends a message a tick.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_net::clock::Clock;
use punctual_net::crypto::AwsLc;
use punctual_net::udp::{Driver, Poller, Socket, SocketOptions};
use punctual_policy::{Library, PolicyKind};
use punctual_proto::{EndpointConfig, Event, SendOptions, ServerConfig, ServerKey, SessionId};

use crate::BATCH;
use crate::allocator;
use crate::clients::Clients;
use crate::support::load::Load;
use crate::support::reckoning::{Measured, Meter};

/// Without an outcome for so long, the rest is taken for lost.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// Nothing is measured before each session has sent this many: the path MTU is found, buffers have their size.
pub(crate) const WARM_UP: usize = 300;

pub(crate) struct Server {
    driver: Driver,
    poller: Poller,
    sessions: Vec<SessionId>,
    clients: Option<Clients>,
    outcomes: usize,
    lost: usize,
    data: Vec<u8>,
}

impl Server {
    /// A server without clients.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let options = SocketOptions::default();
        let socket = Arc::new(Socket::bind("127.0.0.1:0".parse()?, &options)?);
        let policies = Arc::new(Library::new(PolicyKind::default()));
        // The tables are the process's, not the sessions'.
        policies.prepare(SendOptions::default().miss_target(), [1]);
        let server = ServerConfig::new(ServerKey::from_private([7; 32]));
        let config = EndpointConfig::server(Arc::new(AwsLc), policies, server);
        Ok(Self {
            driver: Driver::new(config, socket, Clock::start())?,
            poller: Poller::new()?,
            sessions: Vec::new(),
            clients: None,
            outcomes: 0,
            lost: 0,
            data: vec![0x5a; 1 << 16],
        })
    }

    /// Starts clients and waits until all are connected.
    pub(crate) fn connect(&mut self, count: usize, sockets: usize) -> Result<(), Box<dyn Error>> {
        let address = self.driver.socket().local_addr();
        let key = ServerKey::from_private([7; 32]).public();
        let mut clients = Clients::start(address, key, count, sockets)?;
        let start = Instant::now();
        while self.sessions.len() < count {
            if start.elapsed() > Duration::from_secs(30) {
                return Err(format!("only {} clients came", self.sessions.len()).into());
            }
            self.turn()?;
            self.poller.wait(Some(Duration::from_micros(500)))?;
        }
        let connected = clients.connected()?;
        assert_eq!(connected, count, "both sides count the same");
        self.clients = Some(clients);
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Box<dyn Error>> {
        while self.driver.turn()?.has_more {}
        let endpoint = self.driver.endpoint_mut();
        while let Some((id, event)) = endpoint.poll_event() {
            match event {
                Event::Connected { .. } => self.sessions.push(id),
                Event::Outcome { outcome, .. } => {
                    self.outcomes += 1;
                    let is_lost = matches!(outcome, punctual_proto::Outcome::Dropped { .. });
                    self.lost += usize::from(is_lost);
                }
                Event::Message { data, .. } => endpoint.recycle(data),
                Event::Closed { why } => return Err(why.to_string().into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends one message to every session, and a batch whenever there is one, as the bare loop does.
    fn send_round(&mut self, bytes: usize, options: SendOptions) -> Result<(), Box<dyn Error>> {
        for batch in self.sessions.chunks(BATCH) {
            let now = self.driver.now();
            let endpoint = self.driver.endpoint_mut();
            for &session in batch {
                endpoint.send(
                    now,
                    session,
                    punctual_proto::StreamId::DEFAULT,
                    &self.data[..bytes],
                    options,
                )?;
            }
            self.driver.send()?;
        }
        Ok(())
    }

    /// Sends `rounds` messages to every session, one a tick, and waits for their outcomes.
    pub(crate) fn run(
        &mut self,
        load: &Load,
        rounds: usize,
        bytes: usize,
        options: SendOptions,
    ) -> Result<Run, Box<dyn Error>> {
        let (before, outcomes) = (self.driver.socket().stats(), self.outcomes);
        let (meter, allocations) = (Meter::start(), allocator::allocations());
        let messages = rounds * self.sessions.len();
        let (mut sent, mut last) = (0, (outcomes, Instant::now()));
        while self.outcomes - outcomes < messages && last.1.elapsed() < SILENCE_MAX {
            if sent < rounds {
                self.send_round(bytes, options)?;
                sent += 1;
            }
            self.turn()?;
            if self.outcomes > last.0 {
                last = (self.outcomes, Instant::now());
            }
            self.poller.wait(Some(load.tick))?;
        }
        let allocations = allocator::allocations() - allocations;
        let acked = self.outcomes - outcomes - self.lost;
        let mut measured = meter.stop(messages, acked, self.driver.socket().stats());
        let stats = &mut measured.stats;
        stats.datagrams_sent -= before.datagrams_sent;
        stats.datagrams_received -= before.datagrams_received;
        stats.bytes_sent -= before.bytes_sent;
        stats.bytes_received -= before.bytes_received;
        stats.send_syscalls -= before.send_syscalls;
        stats.recv_syscalls -= before.recv_syscalls;
        Ok(Run {
            measured,
            allocations,
        })
    }

    /// Does what is due for so long, without sending messages.
    pub(crate) fn idle(&mut self, time: Duration) -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        while start.elapsed() < time {
            self.turn()?;
            self.poller.wait(Some(Duration::from_millis(5)))?;
        }
        Ok(())
    }
}

/// One run of the server.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) measured: Measured,
    /// Allocations on the server's thread.
    pub(crate) allocations: u64,
}

impl Run {
    /// Mean size of a datagram sent and of one received.
    pub(crate) fn wire_bytes(&self) -> (usize, usize) {
        let stats = &self.measured.stats;
        let mean = |bytes: u64, count: u64| (bytes as f64 / count.max(1) as f64).round() as usize;
        (
            mean(stats.bytes_sent, stats.datagrams_sent),
            mean(stats.bytes_received, stats.datagrams_received),
        )
    }
}
