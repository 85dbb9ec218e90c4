//! Packets with a number and a time in them, sent through an emulated network from both sides.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::emulator::{Emulator, FIRST_CLIENT, SERVER, SITES, Site, take_precedence};

/// Bytes of a packet's number and time.
pub(super) const PAYLOAD_MIN: usize = 16;
/// IP and UDP headers.
pub(super) const HEADERS: usize = 28;
/// After the last packet was sent: more than any delay that is asked for.
const DRAIN: Duration = Duration::from_millis(250);
/// How often who receives looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);
/// What waits in a socket while its thread does not run, as far as the kernel allows.
const BUFFER_BYTES: usize = 4 << 20;
/// Where both sides are; each has an address of its own.
const PORT: u16 = 7200;
/// Largest UDP payload.
const PAYLOAD_MAX: usize = 65_507;

/// What a side sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Time from one instant of sending to the next.
    pub(super) every: Duration,
    /// Packets at each of them.
    pub(super) at_once: u32,
    /// Bytes of each, headers included.
    pub(super) bytes: usize,
    /// How long.
    pub(super) length: Duration,
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) number: u32,
    pub(super) sent_ns: u64,
    pub(super) at_ns: u64,
}

impl Arrival {
    /// How long it took.
    pub(super) const fn delay_ms(&self) -> f64 {
        self.at_ns.saturating_sub(self.sent_ns) as f64 / 1e6
    }
}

/// What was sent one way, and what arrived.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    /// When each packet was sent, by number.
    pub(super) sent_ns: Vec<u64>,
    /// In order of arrival.
    pub(super) arrivals: Vec<Arrival>,
}

impl Flow {
    /// Whether each packet arrived, by number.
    pub(super) fn arrived(&self) -> Vec<bool> {
        let mut arrived = vec![false; self.sent_ns.len()];
        for arrival in &self.arrivals {
            if let Some(place) = arrived.get_mut(arrival.number as usize) {
                *place = true;
            }
        }
        arrived
    }

    /// Packets that never arrived.
    pub(super) fn lost(&self) -> u64 {
        self.arrived().iter().filter(|arrived| !**arrived).count() as u64
    }

    /// Delays in milliseconds, from the least to the greatest.
    pub(super) fn delays_ms(&self) -> Vec<f64> {
        let mut delays: Vec<_> = self.arrivals.iter().map(Arrival::delay_ms).collect();
        delays.sort_unstable_by(f64::total_cmp);
        delays
    }
}

/// Sends as planned from each side, and returns what became of it, by the side that sent.
pub(super) fn probe(
    emulator: &Emulator,
    plans: [Option<Plan>; SITES],
) -> io::Result<[Flow; SITES]> {
    let epoch = Instant::now();
    let is_over = AtomicBool::new(false);
    let [client, server] = sockets(emulator)?;
    thread::scope(|scope| {
        let receive = |socket| {
            let is_over = &is_over;
            scope.spawn(move || receive(socket, epoch, is_over))
        };
        let receivers = [receive(&server), receive(&client)];
        let send = |socket, plan: Option<Plan>| {
            let work = move |plan| send(socket, plan, epoch);
            scope.spawn(move || plan.map_or(Ok(Vec::new()), work))
        };
        let senders = [send(&client, plans[0]), send(&server, plans[1])];
        let sent = senders.map(joined);
        thread::sleep(DRAIN);
        is_over.store(true, Ordering::Relaxed);
        let received = receivers.map(joined);
        let [to_server, to_client] = sent;
        let [at_server, at_client] = received;
        let flow = |sent_ns, arrivals| Flow { sent_ns, arrivals };
        Ok([flow(to_server?, at_server?), flow(to_client?, at_client?)])
    })
}

/// One at each side, that talk to each other.
fn sockets(emulator: &Emulator) -> io::Result<[UdpSocket; SITES]> {
    let addresses = [FIRST_CLIENT, SERVER].map(|address| SocketAddr::from((address, PORT)));
    let open = |site: Site| {
        emulator.namespace(0, site).within(|| {
            let socket = UdpSocket::bind(addresses[site as usize])?;
            socket.connect(addresses[site.other() as usize])?;
            socket.set_read_timeout(Some(LOOK))?;
            // Less than asked for shows as packets that nobody dropped.
            let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(BUFFER_BYTES);
            Ok(socket)
        })
    };
    Ok([open(Site::Client)?, open(Site::Server)?])
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn send(socket: &UdpSocket, plan: Plan, epoch: Instant) -> io::Result<Vec<u64>> {
    take_precedence();
    let mut packet = vec![0; plan.bytes.clamp(PAYLOAD_MIN + HEADERS, PAYLOAD_MAX) - HEADERS];
    let mut sent_ns = Vec::new();
    let begin = Instant::now();
    let mut due = begin;
    while due < begin + plan.length {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        for _ in 0..plan.at_once {
            let now_ns = epoch.elapsed().as_nanos() as u64;
            packet[..8].copy_from_slice(&(sent_ns.len() as u64).to_le_bytes());
            packet[8..16].copy_from_slice(&now_ns.to_le_bytes());
            socket.send(&packet)?;
            sent_ns.push(now_ns);
        }
        due += plan.every;
    }
    Ok(sent_ns)
}

fn receive(socket: &UdpSocket, epoch: Instant, is_over: &AtomicBool) -> io::Result<Vec<Arrival>> {
    take_precedence();
    let mut arrivals = Vec::new();
    let mut buffer = vec![0; PAYLOAD_MAX];
    while !is_over.load(Ordering::Relaxed) {
        match socket.recv(&mut buffer) {
            Ok(_) => {
                let at_ns = epoch.elapsed().as_nanos() as u64;
                let word = |at: usize| {
                    let mut bytes = [0; 8];
                    bytes.copy_from_slice(&buffer[at..at + 8]);
                    u64::from_le_bytes(bytes)
                };
                arrivals.push(Arrival {
                    number: word(0) as u32,
                    sent_ns: word(8),
                    at_ns,
                });
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(arrivals)
}
