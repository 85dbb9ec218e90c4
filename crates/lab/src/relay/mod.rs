//! A network between real sockets of this machine: every packet gets the delay and the loss of a path. Needs no privilege.
//!
//! ```text
//! client of lane a --+                                    +-- server of lane a
//!                    +--> socket of path 0, path 1, .. <--+
//! client of lane b --+    (fate, delay queue)             +-- server of lane b
//! ```
//!
//! A *path* is one client's way to the server, a *lane* is one of the contenders that are compared over the same paths.
//! Each path has one socket, so that servers see one address a path; each lane has one client socket and one server socket,
//! known to the relay beforehand, so that the sender's address tells lane and way. Descriptors: one a path and a few more.
//!
//! **Same fates.** Each (path, lane) has its own pair of [`Channel`](crate::channel::Channel)s of the same seed and path
//! number. So a fate is a function of seed, path, direction, millisecond and index among *that lane's* packets of the
//! millisecond: lanes that send alike fare alike, and none is harmed by what another sends.
//!
//! `emulation.rs` is the network without sockets and clocks, `queue.rs` its packets under way. Here is what moves packets:
//! one thread that waits for sockets, and sleeps until the next packet is due. How late it released packets is recorded
//! ([`RelayReport::lateness`]), since a relay that the machine holds up is a network that nobody asked for.

mod emulation;
mod queue;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};

use crate::channel::PathSpec;
use crate::stats::Latencies;
use crate::world::Forward;
use emulation::{Emulation, Way};
pub(crate) use queue::{DelayQueue, PACKETS_MAX};

/// One contender's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// The socket of all of its clients.
    pub client: SocketAddr,
    /// The socket of its server.
    pub server: SocketAddr,
}

/// What to relay, and over which network.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// The network.
    pub path: PathSpec,
    /// How many paths are drawn from it.
    pub paths: u32,
    /// Which way is forward.
    pub forward: Forward,
    /// Repeats the fates.
    pub seed: u64,
    /// Who is compared.
    pub lanes: Vec<Lane>,
}

/// What became of the packets.
#[derive(Debug, Clone, Default)]
pub struct RelayReport {
    /// Packets that came from a lane.
    pub received: u64,
    /// Packets passed on, copies included.
    pub forwarded: u64,
    /// Packets lost as the path had it.
    pub lost: u64,
    /// Packets dropped since too many were under way. Not part of the emulated network.
    pub overflowed: u64,
    /// Packets that the kernel would not take. Not part of the emulated network.
    pub refused: u64,
    /// Packets from nobody's address.
    pub foreign: u64,
    /// How long after they were due packets were passed on.
    pub lateness: Latencies,
}

/// Why a relay could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum RelayError {
    /// A socket could not be opened.
    Socket {
        /// Sockets opened before.
        opened: u32,
        /// Sockets needed.
        of: u32,
        /// What the system said.
        source: io::Error,
    },
    /// The system does not let us wait for sockets.
    Poll(io::Error),
    /// The path makes no sense.
    Path(crate::channel::SpecError),
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket { opened, of, source } => write!(
                f,
                "the relay opened {opened} of the {of} sockets that it needs, then: {source}; take fewer clients, or allow \
                 more open files (ulimit -n)"
            ),
            Self::Poll(source) => write!(f, "the relay cannot wait for its sockets: {source}"),
            Self::Path(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RelayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Socket { source, .. } | Self::Poll(source) => Some(source),
            Self::Path(error) => Some(error),
        }
    }
}

/// Sockets with a network between them. Nothing moves until [`Relay::run`].
pub struct Relay {
    poll: Poll,
    sockets: Vec<UdpSocket>,
    addresses: Vec<SocketAddr>,
    lanes: Vec<Lane>,
    emulation: Emulation,
    report: RelayReport,
}

/// Longest wait, so that a request to stop is seen.
const WAIT_MAX: Duration = Duration::from_millis(10);
/// Waits for sockets end at whole milliseconds. What is left below that is slept away in naps of this length, and sockets
/// are looked at between them: the most that a packet waits until its arrival is noticed.
const NAP: Duration = Duration::from_micros(100);
/// Largest UDP payload that can exist.
const DATAGRAM_MAX: usize = 65_535;

impl Relay {
    /// Opens the sockets, on loopback.
    ///
    /// # Errors
    /// See [`RelayError`].
    pub fn bind(options: &RelayOptions) -> Result<Self, RelayError> {
        options.path.check().map_err(RelayError::Path)?;
        let poll = Poll::new().map_err(RelayError::Poll)?;
        let mut sockets = Vec::new();
        let mut addresses = Vec::new();
        for path in 0..options.paths {
            let (socket, address) = open(&poll, path).map_err(|source| RelayError::Socket {
                opened: path,
                of: options.paths,
                source,
            })?;
            sockets.push(socket);
            addresses.push(address);
        }
        Ok(Self {
            poll,
            sockets,
            addresses,
            lanes: options.lanes.clone(),
            emulation: Emulation::new(options),
            report: RelayReport::default(),
        })
    }

    /// The address of each path: what clients connect to instead of their server's own.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Moves packets until `stop`. Give it a thread of its own. The network's time begins now.
    ///
    /// # Errors
    /// When the system no longer lets us wait for sockets.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<RelayReport> {
        let start = Instant::now();
        let mut events = Events::with_capacity(256);
        let mut buffer = vec![0; DATAGRAM_MAX];
        while !stop.load(Ordering::Relaxed) {
            self.release(start);
            let wait = self.emulation.next_due_us().map_or(WAIT_MAX, |due_us| {
                let due = start + Duration::from_micros(due_us);
                due.saturating_duration_since(Instant::now()).min(WAIT_MAX)
            });
            let whole = Duration::from_millis(wait.as_millis() as u64);
            match self.poll.poll(&mut events, Some(whole)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            if events.is_empty() && whole.is_zero() && !wait.is_zero() {
                thread::sleep(wait.min(NAP));
            }
            for event in &events {
                self.receive(event.token().0, start, &mut buffer);
            }
        }
        self.report.lost = self.emulation.lost();
        self.report.overflowed = self.emulation.overflowed();
        Ok(self.report)
    }

    /// Passes on what is due.
    fn release(&mut self, start: Instant) {
        loop {
            let now_us = micros_since(start);
            let Some(departure) = self.emulation.poll_departure(now_us) else {
                return;
            };
            let lane = self.lanes[departure.lane];
            let to = match departure.way {
                Way::ToServer => lane.server,
                Way::ToClient => lane.client,
            };
            self.report.lateness.record(now_us - departure.due_us);
            match self.sockets[departure.path].send_to(departure.datagram, to) {
                Ok(_) => self.report.forwarded += 1,
                Err(_) => self.report.refused += 1,
            }
        }
    }

    /// Empties a socket: its next event comes only after that.
    fn receive(&mut self, path: usize, start: Instant, buffer: &mut [u8]) {
        loop {
            match self.sockets[path].recv_from(buffer) {
                Ok((len, from)) => {
                    let Some((lane, way)) = sender(&self.lanes, from) else {
                        self.report.foreign += 1;
                        continue;
                    };
                    self.report.received += 1;
                    let now_us = micros_since(start);
                    self.emulation
                        .handle_datagram(now_us, path, lane, way, &buffer[..len]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Of an earlier packet, whose receiver had gone.
                Err(_) => {}
            }
        }
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("paths", &self.sockets.len())
            .field("lanes", &self.lanes)
            .finish_non_exhaustive()
    }
}

fn open(poll: &Poll, path: u32) -> io::Result<(UdpSocket, SocketAddr)> {
    let mut socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = socket.local_addr()?;
    poll.registry()
        .register(&mut socket, Token(path as usize), Interest::READABLE)?;
    Ok((socket, address))
}

/// Whose socket an address is, and which way its packets go.
fn sender(lanes: &[Lane], from: SocketAddr) -> Option<(usize, Way)> {
    lanes.iter().enumerate().find_map(|(number, lane)| {
        if lane.client == from {
            Some((number, Way::ToServer))
        } else {
            (lane.server == from).then_some((number, Way::ToClient))
        }
    })
}

fn micros_since(start: Instant) -> u64 {
    start.elapsed().as_micros() as u64
}
