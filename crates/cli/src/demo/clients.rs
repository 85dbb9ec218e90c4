//! The clients' side: all clients of a policy share an endpoint, all endpoints a thread. Here a message's latency is taken.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual_net::clock::Clock;
use punctual_net::udp::{Driver, Poller};
use punctual_proto::{CloseCode, CloseReason, ConnectOptions, Event, SessionId};

use super::board::{Board, add, add32};
use super::server::wait;
use super::settings::Settings;
use super::tally::{Arrival, Arrivals};

/// Time between two clients that connect: 500 take a second and a half, 8,000 handshakes a second would not fit two cores.
pub(super) const CONNECT_EVERY: Duration = Duration::from_millis(3);
/// Times that a client tries to connect again.
const RETRIES_MAX: u8 = 3;
/// Longest wait, so that signals from other threads are seen.
const WAIT_MAX: Duration = Duration::from_millis(5);

/// What a policy's clients saw.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) arrivals: Arrivals,
    /// Datagrams that the kernel dropped before the endpoint took them.
    pub(super) kernel_drops: u64,
    /// Datagrams that the endpoint sent.
    pub(super) datagrams: u64,
}

/// One policy's endpoint.
struct Lane {
    driver: Driver,
    /// Which client each session is.
    clients: HashMap<SessionId, usize>,
    /// By client: times that it tried again.
    retries: Vec<u8>,
    received: Received,
}

/// The thread's state.
pub(super) struct Clients<'a> {
    board: &'a Board,
    clock: Clock,
    poller: Poller,
    lanes: Vec<Lane>,
    /// Where each client connects to.
    relay: Vec<SocketAddr>,
    server_key: [u8; 32],
    /// The next client to connect, and when.
    next_client: usize,
    connects_at: u64,
}

impl<'a> Clients<'a> {
    pub(super) fn new(
        settings: &Settings,
        board: &'a Board,
        clock: Clock,
        drivers: Vec<Driver>,
        relay: &[SocketAddr],
        server_key: [u8; 32],
    ) -> io::Result<Self> {
        let mut poller = Poller::new()?;
        for driver in &drivers {
            poller.watch(Arc::clone(driver.socket()))?;
        }
        let lane = |driver| Lane {
            driver,
            clients: HashMap::new(),
            retries: vec![0; relay.len()],
            received: Received {
                arrivals: Arrivals::new(settings),
                kernel_drops: 0,
                datagrams: 0,
            },
        };
        Ok(Self {
            board,
            clock,
            poller,
            lanes: drivers.into_iter().map(lane).collect(),
            relay: relay.to_vec(),
            server_key,
            next_client: 0,
            connects_at: 0,
        })
    }

    /// Connects, and receives until the board says stop.
    pub(super) fn run(mut self) -> io::Result<Vec<Received>> {
        let mut first = 0;
        while !self.board.is_stopped() {
            let mut wait = WAIT_MAX.min(self.connect_due());
            first += 1;
            for turn in 0..self.lanes.len() {
                let index = (first + turn) % self.lanes.len();
                wait = wait.min(self.turn(index)?);
            }
            if !wait.is_zero() {
                self.poller.wait(Some(wait))?;
            }
        }
        Ok(self.finish())
    }

    /// Connects the next client under every policy when its time has come; how long until the next one's.
    fn connect_due(&mut self) -> Duration {
        if self.next_client == self.relay.len() {
            return WAIT_MAX;
        }
        let now = self.clock.now_nanos();
        if now >= self.connects_at {
            for index in 0..self.lanes.len() {
                self.connect(index, self.next_client);
            }
            self.next_client += 1;
            self.connects_at = now + CONNECT_EVERY.as_nanos() as u64;
        }
        self.clock.until(self.connects_at)
    }

    fn connect(&mut self, index: usize, client: usize) {
        let options = ConnectOptions {
            remote: self.relay[client],
            server_key: self.server_key,
            token: None,
        };
        let lane = &mut self.lanes[index];
        let now = lane.driver.now();
        // A key of our own making and fewer sessions than an endpoint takes: it cannot fail; if it does, a client is missed.
        if let Ok(session) = lane.driver.endpoint_mut().connect(now, &options) {
            lane.clients.insert(session, client);
        }
    }

    /// Lets an endpoint do what there is to do; how long it can wait then.
    fn turn(&mut self, index: usize) -> io::Result<Duration> {
        let lane = &mut self.lanes[index];
        let turn = lane.driver.turn()?;
        let counts = &self.board.lanes[index];
        let mut again = Vec::new();
        while let Some((session, event)) = lane.driver.endpoint_mut().poll_event() {
            match event {
                Event::Message { data, .. } => {
                    let now = self.clock.now_nanos();
                    match lane.received.arrivals.on_message(now, &data) {
                        Arrival::OnTime => add(&counts.arrived),
                        Arrival::Late => {
                            add(&counts.late);
                            add(&counts.arrived);
                        }
                        Arrival::Wrong => {}
                    }
                    lane.driver.endpoint_mut().recycle(data);
                }
                Event::Connected { .. } => add32(&counts.connected),
                Event::Closed { why } => {
                    if let Some(client) = lane.clients.remove(&session)
                        && matches!(why, CloseReason::HandshakeTimeout)
                        && lane.retries[client] < RETRIES_MAX
                    {
                        lane.retries[client] += 1;
                        again.push(client);
                    }
                }
                _ => {}
            }
        }
        let wait = wait(&lane.driver, turn);
        if again.is_empty() {
            return Ok(wait);
        }
        for client in again {
            self.connect(index, client);
        }
        Ok(Duration::ZERO)
    }

    fn finish(self) -> Vec<Received> {
        let finish = |mut lane: Lane| {
            let now = lane.driver.now();
            lane.received.kernel_drops = lane.driver.socket().kernel_drops().unwrap_or(0);
            lane.received.datagrams = lane.driver.socket().stats().datagrams_sent;
            #[expect(
                clippy::iter_over_hash_type,
                reason = "the order in which sessions are closed shows nowhere"
            )]
            for &session in lane.clients.keys() {
                let endpoint = lane.driver.endpoint_mut();
                endpoint.close(now, session, CloseCode::DONE, "");
            }
            // Nobody is hurt when the farewell is not heard: the server goes as well.
            let _ = lane.driver.send();
            lane.received
        };
        self.lanes.into_iter().map(finish).collect()
    }
}
