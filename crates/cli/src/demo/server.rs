//! The server's side: one endpoint a policy, one thread for all of them, and the same message at the same time through each.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use punctual_lab::stats::Latencies;
use punctual_net::clock::Clock;
use punctual_net::udp::{Driver, Poller};
use punctual_proto::{CloseCode, CloseReason, Event, SendOptions, SessionId};

use super::board::{Board, add, add32};
use super::settings::Settings;
use super::stamp;
use super::tally::Totals;

/// Longest wait, so that signals from other threads are seen.
const WAIT_MAX: Duration = Duration::from_millis(5);

/// What a policy's endpoint did.
#[derive(Debug)]
pub(super) struct Sent {
    /// Messages that were to be sent, by cluster ([`Settings::turns`]).
    pub(super) of_cluster: Vec<u32>,
    /// Messages that the endpoint did not accept.
    pub(super) refused: u64,
    /// Sessions that ended while messages were sent, and why the last of them did.
    pub(super) closed: u64,
    pub(super) why_closed: Option<CloseReason>,
    /// What the sessions counted.
    pub(super) totals: Totals,
    /// Datagrams that the kernel dropped before the endpoint took them.
    pub(super) kernel_drops: u64,
    /// Datagrams that the endpoint sent.
    pub(super) datagrams: u64,
}

/// What the thread leaves behind.
#[derive(Debug)]
pub(super) struct ServerReport {
    pub(super) lanes: Vec<Sent>,
    /// How long after they were due messages were sent.
    pub(super) lateness: Latencies,
    /// Clients that got no messages since they were not connected under every policy.
    pub(super) missing: u32,
}

/// One policy's endpoint.
struct Lane {
    driver: Driver,
    /// By client.
    sessions: Vec<Option<SessionId>>,
    of_cluster: Vec<u32>,
    refused: u64,
    closed: u64,
    why_closed: Option<CloseReason>,
}

/// The thread's state.
pub(super) struct Server<'a> {
    settings: &'a Settings,
    board: &'a Board,
    clock: Clock,
    poller: Poller,
    lanes: Vec<Lane>,
    /// Which client is behind which of the relay's addresses.
    clients: HashMap<SocketAddr, usize>,
    options: SendOptions,
    message: Vec<u8>,
    /// The next message.
    number: u64,
    lateness: Latencies,
    /// Who takes part; known with the first message. Empty before.
    takes_part: Vec<bool>,
}

impl<'a> Server<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        board: &'a Board,
        clock: Clock,
        drivers: Vec<Driver>,
        relay: &[SocketAddr],
    ) -> io::Result<Self> {
        let mut poller = Poller::new()?;
        for driver in &drivers {
            poller.watch(Arc::clone(driver.socket()))?;
        }
        let clients = settings.clients as usize;
        let lane = |driver| Lane {
            driver,
            sessions: vec![None; clients],
            of_cluster: vec![0; settings.turns().count()],
            refused: 0,
            closed: 0,
            why_closed: None,
        };
        // A payload that no link could shrink, and that is never the same at two places.
        let message = (0..settings.message_bytes).map(|i| (i.wrapping_mul(167) >> 3) as u8);
        Ok(Self {
            settings,
            board,
            clock,
            poller,
            lanes: drivers.into_iter().map(lane).collect(),
            clients: relay.iter().enumerate().map(|(i, &at)| (at, i)).collect(),
            options: settings.send_options(),
            message: message.collect(),
            number: 0,
            lateness: Latencies::default(),
            takes_part: Vec::new(),
        })
    }

    /// Serves until the board says stop.
    pub(super) fn run(mut self) -> io::Result<ServerReport> {
        while !self.board.is_stopped() {
            let is_sending = self.send_due();
            let mut wait = WAIT_MAX;
            for turn in 0..self.lanes.len() {
                // Each goes first in its turn: the first is a few microseconds ahead of the last.
                let lane = (self.number as usize + turn) % self.lanes.len();
                wait = wait.min(self.turn(lane)?);
            }
            if is_sending {
                wait = wait.min(self.clock.until(self.next_due()));
            }
            if !wait.is_zero() {
                self.poller.wait(Some(wait))?;
            }
        }
        self.finish()
    }

    /// Sends what is due; whether more is to come.
    fn send_due(&mut self) -> bool {
        if self.board.has_sent_all() || self.board.start_nanos().is_none() {
            return false;
        }
        if self.board.is_halted() || self.number == self.settings.messages() {
            self.board.on_sent_all();
            return false;
        }
        // One after the other, with a turn between: what is sent is on its way before the next is made.
        let due = self.next_due();
        let now = self.clock.now_nanos();
        if due <= now {
            self.lateness.record((now - due) / 1000);
            self.send();
            self.number += 1;
        }
        self.number < self.settings.messages() || !self.board.has_sent_all()
    }

    fn next_due(&self) -> u64 {
        let start = self.board.start_nanos().unwrap_or(u64::MAX / 2);
        start + self.settings.due_nanos(self.number)
    }

    /// Sends the next message through every policy.
    fn send(&mut self) {
        let client = (self.number % u64::from(self.settings.clients)) as usize;
        if self.takes_part.is_empty() {
            let is_everywhere = |client: usize| {
                self.lanes
                    .iter()
                    .all(|lane| lane.sessions[client].is_some())
            };
            self.takes_part = (0..self.settings.clients as usize)
                .map(is_everywhere)
                .collect();
        }
        if !self.takes_part[client] {
            return;
        }
        let cluster = self.settings.turns().cluster_of(self.number);
        for turn in 0..self.lanes.len() {
            let index = (self.number as usize + turn) % self.lanes.len();
            let lane = &mut self.lanes[index];
            let now = lane.driver.now();
            stamp::write(&mut self.message, self.number, now.as_nanos());
            let sent = lane.sessions[client].map(|session| {
                let endpoint = lane.driver.endpoint_mut();
                endpoint.send(
                    now,
                    session,
                    punctual_proto::StreamId::DEFAULT,
                    &self.message,
                    self.options,
                )
            });
            // What is refused is late as well.
            lane.of_cluster[cluster] += 1;
            match sent {
                Some(Ok(_)) => add(&self.board.lanes[index].sent),
                Some(Err(_)) | None => lane.refused += 1,
            }
        }
    }

    /// Lets an endpoint do what there is to do; how long it can wait then.
    fn turn(&mut self, index: usize) -> io::Result<Duration> {
        let lane = &mut self.lanes[index];
        let turn = lane.driver.turn()?;
        while let Some((session, event)) = lane.driver.endpoint_mut().poll_event() {
            match event {
                Event::Connected { .. } => {
                    let remote = lane.driver.endpoint().remote(session);
                    let client = remote.and_then(|remote| self.clients.get(&remote));
                    if let Some(&client) = client
                        && lane.sessions[client].replace(session).is_none()
                    {
                        add32(&self.board.lanes[index].admitted);
                    }
                }
                Event::Closed { why } => {
                    for known in &mut lane.sessions {
                        if *known == Some(session) {
                            *known = None;
                            self.board.lanes[index]
                                .admitted
                                .fetch_sub(1, Ordering::Relaxed);
                            lane.closed += u64::from(!self.takes_part.is_empty());
                            lane.why_closed = Some(why.clone());
                        }
                    }
                }
                Event::Message { data, .. } => lane.driver.endpoint_mut().recycle(data),
                // The outcomes say the same as the clients' clock, only later.
                _ => {}
            }
        }
        Ok(wait(&lane.driver, turn))
    }

    fn finish(mut self) -> io::Result<ServerReport> {
        let mut lanes = Vec::new();
        for lane in &mut self.lanes {
            let datagrams = lane.driver.socket().stats().datagrams_sent;
            let mut totals = Totals::default();
            for session in lane.sessions.iter().flatten() {
                if let Some(stats) = lane.driver.endpoint().session_stats(*session) {
                    totals.add(&stats);
                }
                let now = lane.driver.now();
                let endpoint = lane.driver.endpoint_mut();
                endpoint.close(now, *session, CloseCode::DONE, "");
            }
            lane.driver.send()?;
            lanes.push(Sent {
                of_cluster: std::mem::take(&mut lane.of_cluster),
                refused: lane.refused,
                closed: lane.closed,
                why_closed: lane.why_closed.take(),
                totals,
                kernel_drops: lane.driver.socket().kernel_drops().unwrap_or(0),
                datagrams,
            });
        }
        Ok(ServerReport {
            lanes,
            missing: self
                .takes_part
                .iter()
                .filter(|&&takes_part| !takes_part)
                .count() as u32,
            lateness: self.lateness,
        })
    }
}

/// How long an endpoint can wait after a turn.
pub(super) fn wait(driver: &Driver, turn: punctual_net::udp::Turn) -> Duration {
    if turn.has_more {
        return Duration::ZERO;
    }
    let patience = driver.patience().unwrap_or(WAIT_MAX).min(WAIT_MAX);
    if turn.is_blocked {
        // Loopback takes what it is given within microseconds.
        patience.min(Duration::from_micros(200))
    } else {
        patience
    }
}
