//! A virtual network of real endpoints: hosts, paths between them, and one queue of events in virtual time.
//!
//! The code that runs here is the code that ships: only time, randomness and datagrams come from elsewhere. Each host has
//! a clock of its own (an offset and a drift drawn from the seed), so that nothing can lean on a common one; what a test
//! or a report judges by is the world's time.
//!
//! The shape is a star: servers in the middle, each client on a path of its own. A path's *forward* direction is from
//! client to server unless [`World::with_forward`] says otherwise.
//!
//! Several clients' traffic may share a bottleneck ([`World::add_link`]), also with bulk TCP flows ([`World::add_rival`]).
//!
//! All datagrams that arrive at one instant are handed over before anything is sent, as a driver does that empties its socket
//! first.

mod aead;
mod datagrams;
mod ended;
mod faults;
mod frames;
mod hash;
mod host;
mod link;
mod queue;
mod rivals;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

pub use aead::LabAead;
use datagrams::Datagrams;
pub use ended::EndedSessions;
pub use faults::EcnFault;
use hash::Hasher;
use host::Host;
pub use host::LocalClock;
pub use link::{Link, LinkFigures, LinkId, LinkSpec, LinkStats};
use punctual_proto::{
    ConnectError, ConnectOptions, Ecn, Endpoint, EndpointConfig, Event, MessageId, SendError,
    SendOptions, SessionId, SessionStats, StreamId, limits,
};
use queue::{Kind, Queue};
use rivals::Rival;
pub use rivals::{RivalId, RivalSpec};

use crate::chance::{Chance, Purpose};
use crate::channel::{Channel, Direction, Fate, PathSpec};

/// A point in the world's time: nanoseconds since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// Time since an earlier moment; zero when it is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment so much later.
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.as_nanos() as u64))
    }
}

/// Names a host of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// Something that an application would have been told.
#[derive(Debug)]
pub struct Happening {
    /// When, by the world's time.
    pub at: Moment,
    /// Where.
    pub host: HostId,
    /// Of which session.
    pub session: SessionId,
    /// What.
    pub event: Event,
}

/// What crossed the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of them, IP and UDP headers included.
    pub sent_bytes: u64,
    /// Datagrams that the network lost.
    pub lost: u64,
    /// Datagrams for addresses where nobody is (any more).
    pub unreachable: u64,
}

/// Which way a path's forward direction goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Forward {
    /// From clients to servers.
    #[default]
    ToServer,
    /// From servers to clients.
    ToClient,
}

impl Forward {
    /// A path whose forward direction is a client's way up, as one whose forward direction is this one.
    #[must_use]
    pub fn facing(self, up_first: PathSpec) -> PathSpec {
        match self {
            Self::ToServer => up_first,
            Self::ToClient => up_first.turned(),
        }
    }
}

/// The virtual network.
pub struct World {
    seed: u64,
    now: Moment,
    forward: Forward,
    queue: Queue,
    hosts: Vec<Host>,
    links: Vec<Link>,
    rivals: Vec<Rival>,
    datagrams: Datagrams,
    dirty: Vec<HostId>,
    happenings: Vec<Happening>,
    ended: EndedSessions,
    traffic: Traffic,
    mtu: Option<u16>,
    ecn_fault: Option<EcnFault>,
    hasher: Option<Hasher>,
    is_calm: bool,
}

impl World {
    /// An empty world. Worlds of equal seeds that are treated equally stay equal.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Moment::default(),
            forward: Forward::default(),
            queue: Queue::default(),
            hosts: Vec::new(),
            links: Vec::new(),
            rivals: Vec::new(),
            datagrams: Datagrams::new(),
            dirty: Vec::new(),
            happenings: Vec::new(),
            ended: EndedSessions::default(),
            traffic: Traffic::default(),
            mtu: None,
            ecn_fault: None,
            hasher: None,
            is_calm: false,
        }
    }

    /// Says which way the forward direction of every path goes.
    #[must_use]
    pub fn with_forward(mut self, forward: Forward) -> Self {
        self.forward = forward;
        self
    }

    /// Packets of more bytes than this, IP header included, are lost. None: any size gets through.
    #[must_use]
    pub fn with_mtu(mut self, mtu: Option<u16>) -> Self {
        self.set_mtu(mtu);
        self
    }

    /// The same from now on.
    pub const fn set_mtu(&mut self, mtu: Option<u16>) {
        self.mtu = mtu;
    }

    /// Keeps a hash of all that happens, for comparing runs. Costs a pass over every datagram.
    #[must_use]
    pub fn with_hash(mut self) -> Self {
        self.hasher = Some(Hasher::default());
        self
    }

    /// The hash of all datagrams and events so far.
    pub fn hash(&self) -> Option<u64> {
        self.hasher.as_ref().map(Hasher::value)
    }

    /// The time.
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// What crossed the network so far.
    pub const fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Datagrams for this host that the network lost so far.
    ///
    /// # Panics
    /// If it is no host of this world.
    pub fn lost_to(&self, host: HostId) -> u64 {
        self.hosts[host.0 as usize].lost
    }

    /// Adds a server. Servers are in the middle: they have no path of their own.
    pub fn add_server(&mut self, config: EndpointConfig) -> HostId {
        self.add_host(config, None)
    }

    /// Adds a client at the end of a path.
    ///
    /// # Panics
    /// If the path's spec makes no sense: check what comes from users first.
    pub fn add_client(&mut self, config: EndpointConfig, path: &PathSpec) -> HostId {
        let channels = self.channels(self.hosts.len() as u32, path);
        self.add_host(config, Some(channels))
    }

    fn channels(&self, number: u32, path: &PathSpec) -> [Channel; 2] {
        let ways = [
            (&path.forward, Direction::Forward),
            (&path.backward, Direction::Backward),
        ];
        ways.map(|(spec, way)| Channel::new(Arc::clone(spec), self.seed, number, way))
    }

    /// From now on a client's packets take another way, as after a change of routes: addresses stay. What is on its way arrives.
    ///
    /// # Panics
    /// As [`World::add_client`].
    pub fn change_route(&mut self, client: HostId, path: &PathSpec) {
        let channels = self.channels(client.0, path);
        self.hosts[client.0 as usize].channels = Some(channels);
    }

    fn add_host(&mut self, config: EndpointConfig, channels: Option<[Channel; 2]>) -> HostId {
        let id = HostId(self.hosts.len() as u32);
        let chance = Chance::new(self.seed, 0x4057_0000_0000 + u64::from(id.0));
        let clock = LocalClock {
            // Up to 1,000 s apart, and up to 20 ppm fast or slow.
            offset_ns: chance.below(1_000_000_000_000, Purpose::Clock, 0, 0),
            drift_ppb: chance.below(40_000, Purpose::Clock, 1, 0) as i64 - 20_000,
        };
        let mut seed = [0; 32];
        for (index, part) in seed.chunks_exact_mut(8).enumerate() {
            part.copy_from_slice(
                &chance
                    .below(u64::MAX, Purpose::Clock, 2, index as u64)
                    .to_le_bytes(),
            );
        }
        self.hosts.push(Host::new(
            Endpoint::new(config, seed),
            address_of(id, 0),
            clock,
            channels,
        ));
        id
    }

    /// Begins a session from a client to a server whose public key is `server_key`.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub fn connect(
        &mut self,
        client: HostId,
        server: HostId,
        server_key: [u8; 32],
    ) -> Result<SessionId, ConnectError> {
        let remote = self.hosts[server.0 as usize].address;
        let options = ConnectOptions {
            remote,
            server_key,
            token: None,
        };
        self.with_endpoint(client, |endpoint, now| endpoint.connect(now, &options))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send(
        &mut self,
        host: HostId,
        session: SessionId,
        data: &[u8],
        options: SendOptions,
    ) -> Result<MessageId, SendError> {
        self.with_endpoint(host, |endpoint, now| {
            endpoint.send(now, session, StreamId::DEFAULT, data, options)
        })
    }

    /// Calls `f` with the endpoint of a host and that host's time; what it leads to happens with the next step.
    pub fn with_endpoint<R>(
        &mut self,
        host: HostId,
        f: impl FnOnce(&mut Endpoint, punctual_proto::Instant) -> R,
    ) -> R {
        let entry = &mut self.hosts[host.0 as usize];
        let now = entry.clock.local(self.now);
        let result = f(&mut entry.endpoint, now);
        self.mark(host);
        result
    }

    /// The endpoint of a host, for looking at.
    pub fn endpoint(&self, host: HostId) -> &Endpoint {
        &self.hosts[host.0 as usize].endpoint
    }

    /// What a session of a host has counted, also once it has ended. `None` when it never was.
    pub fn session_stats(&self, host: HostId, session: SessionId) -> Option<SessionStats> {
        (self.ended).session_stats(host, self.endpoint(host), session)
    }

    /// What sessions had counted when they ended.
    pub const fn ended(&self) -> &EndedSessions {
        &self.ended
    }

    /// The time on a host's own clock.
    pub fn local_time(&self, host: HostId) -> punctual_proto::Instant {
        self.hosts[host.0 as usize].clock.local(self.now)
    }

    /// Gives a message's buffer back to its host.
    pub fn recycle(&mut self, host: HostId, data: Vec<u8>) {
        self.hosts[host.0 as usize].endpoint.recycle(data);
    }

    /// Gives a client another address, as a new lease or another network would. What is under way to the old one is lost.
    pub fn change_address(&mut self, client: HostId) {
        let host = &mut self.hosts[client.0 as usize];
        host.address = address_of(client, host.address.port() + 1);
    }

    /// Hands a datagram to a host as if it had come from `from`: for forgeries and replays.
    pub fn inject(&mut self, to: HostId, from: SocketAddr, datagram: &[u8]) {
        let slot = self.datagrams.store(datagram);
        self.queue.push(
            self.now,
            Kind::Arrival {
                to,
                address: self.hosts[to.0 as usize].address,
                from,
                slot,
                ecn: Ecn::Ect0,
            },
        );
    }

    /// The newest datagram that was sent, sealed as it is on the wire: for replays and forgeries.
    pub fn last_datagram(&self) -> Option<&[u8]> {
        self.datagrams.newest()
    }

    /// From now on nothing is lost, held back, copied or limited; every packet takes 20 ms.
    pub fn calm(&mut self) {
        self.is_calm = true;
    }

    /// The address of a host.
    pub fn address(&self, host: HostId) -> SocketAddr {
        self.hosts[host.0 as usize].address
    }

    fn mark(&mut self, host: HostId) {
        let entry = &mut self.hosts[host.0 as usize];
        if !std::mem::replace(&mut entry.is_dirty, true) {
            self.dirty.push(host);
        }
    }

    /// Lets everything happen that is due at the next moment at which anything is, but not after `until`. `false` when there
    /// was nothing; the time is `until` then.
    pub fn step(&mut self, until: Moment) -> bool {
        self.flush();
        let Some(at) = self.queue.next_at().filter(|at| *at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = at;
        while let Some(kind) = self.queue.pop_at(at) {
            match kind {
                Kind::Arrival {
                    to,
                    address,
                    from,
                    slot,
                    ecn,
                } => self.arrive(to, address, from, slot, ecn),
                Kind::Wake { host } => self.wake(host),
                Kind::FrameEnd { host } => self.end_frame(host),
                Kind::RivalData { rival, segment } => self.rival_data(rival, segment),
                Kind::RivalAck { rival } => self.rival_ack(rival),
                Kind::RivalWake { rival } => self.rival_wake(rival),
            }
        }
        self.flush();
        true
    }

    /// Steps until `until`, giving every happening to `f`.
    pub fn run(&mut self, until: Moment, mut f: impl FnMut(&mut Self, Happening)) {
        loop {
            let stepped = self.step(until);
            let mut happenings = std::mem::take(&mut self.happenings);
            for happening in happenings.drain(..) {
                f(self, happening);
            }
            // Keeps the allocation, unless `f` led to more.
            if self.happenings.is_empty() {
                self.happenings = happenings;
            }
            if !stepped {
                return;
            }
        }
    }

    /// What has happened since this was last asked.
    pub fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.happenings)
    }

    fn arrive(&mut self, to: HostId, address: SocketAddr, from: SocketAddr, slot: u32, ecn: Ecn) {
        let mut datagram = self.datagrams.take(slot);
        let ecn = self.ecn_at_arrival(ecn);
        let host = &mut self.hosts[to.0 as usize];
        if let Some(ecn) = ecn
            && host.address == address
        {
            let now = host.clock.local(self.now);
            host.endpoint.handle_datagram(now, from, ecn, &mut datagram);
            self.begin_frame(to);
            self.mark(to);
        } else {
            self.traffic.unreachable += 1;
        }
        self.datagrams.free(slot, datagram);
    }

    fn wake(&mut self, id: HostId) {
        let host = &mut self.hosts[id.0 as usize];
        if host.wakes_at != Some(self.now) {
            return;
        }
        host.wakes_at = None;
        let now = host.clock.local(self.now);
        host.endpoint.handle_timeout(now);
        self.begin_frame(id);
        self.mark(id);
    }

    /// Sends what the hosts that were touched want to send, collects their events, and sets their timers.
    fn flush(&mut self) {
        while let Some(id) = self.dirty.pop() {
            self.hosts[id.0 as usize].is_dirty = false;
            self.flush_transmits(id);
            let host = &mut self.hosts[id.0 as usize];
            while let Some((session, event)) = host.endpoint.poll_event() {
                if let Some(hasher) = &mut self.hasher {
                    hasher.event(self.now, id, &event);
                }
                self.ended.on_event(id, &host.endpoint, session, &event);
                self.happenings.push(Happening {
                    at: self.now,
                    host: id,
                    session,
                    event,
                });
            }
            let wanted = host.wakes_next(self.now);
            if let Some(at) = wanted.filter(|at| host.wakes_at.is_none_or(|wakes| *at < wakes)) {
                host.wakes_at = Some(at);
                self.queue.push(at, Kind::Wake { host: id });
            }
        }
    }

    fn lose(&mut self, to: HostId) {
        self.traffic.lost += 1;
        self.hosts[to.0 as usize].lost += 1;
    }

    fn flush_transmits(&mut self, id: HostId) {
        loop {
            let host = &mut self.hosts[id.0 as usize];
            let now = host.clock.local(self.now);
            let from = host.address;
            let Some(transmit) = host.endpoint.poll_transmit(now, self.datagrams.buffer()) else {
                return;
            };
            let datagram = self.datagrams.on_sent(transmit.len);
            if let Some(hasher) = &mut self.hasher {
                hasher.datagram(self.now, id, datagram);
            }
            self.traffic.sent += 1;
            let bytes = transmit.len + limits::UDP_IP_HEADER;
            self.traffic.sent_bytes += bytes as u64;
            let Some(to) = host_at(transmit.to).filter(|to| (to.0 as usize) < self.hosts.len())
            else {
                self.traffic.unreachable += 1;
                continue;
            };
            if self.mtu.is_some_and(|mtu| bytes > usize::from(mtu)) {
                self.lose(to);
                continue;
            }
            let passage = self.pass_link(id, to, &transmit);
            let fate = passage.map(|(leaves_at, _)| self.fate(id, to, transmit.len, leaves_at));
            let (
                Some((leaves_at, ecn)),
                Some(Fate::Delivered {
                    delay_us,
                    duplicate,
                }),
            ) = (passage, fate)
            else {
                self.lose(to);
                continue;
            };
            for delay_us in std::iter::once(delay_us).chain(duplicate) {
                let slot = self.datagrams.store_newest();
                let at = leaves_at.after(Duration::from_micros(delay_us));
                let at = self.hosts[to.0 as usize].looks_at(at);
                let address = transmit.to;
                self.queue.push(
                    at,
                    Kind::Arrival {
                        to,
                        address,
                        from,
                        slot,
                        ecn,
                    },
                );
            }
        }
    }

    /// What becomes of a datagram behind the link: decided by the path of the client at its one end.
    fn fate(&mut self, from: HostId, to: HostId, len: usize, at: Moment) -> Fate {
        let sent_us = at.0 / 1000;
        let bytes = len + limits::UDP_IP_HEADER;
        let to_server = self.hosts[from.0 as usize].channels.is_some();
        let client = if to_server { from } else { to };
        let Some(channels) = &mut self.hosts[client.0 as usize].channels else {
            return Fate::Delivered {
                delay_us: 0,
                duplicate: None,
            };
        };
        if self.is_calm {
            return Fate::Delivered {
                delay_us: CALM_DELAY_US,
                duplicate: None,
            };
        }
        let is_forward = to_server == (self.forward == Forward::ToServer);
        channels[usize::from(!is_forward)].fate(sent_us, bytes)
    }
}

/// What every packet takes once the network is calm.
const CALM_DELAY_US: u64 = 20_000;

/// Hosts live in 10.0.0.0/8, numbered by their address; the port counts how often they moved.
fn address_of(id: HostId, port: u16) -> SocketAddr {
    let [_, a, b, c] = id.0.to_be_bytes();
    SocketAddr::V4(SocketAddrV4::new(
        Ipv4Addr::new(10, a, b, c),
        port.max(7000),
    ))
}

/// Which host an address belongs to, or belonged to.
pub(crate) fn host_at(address: SocketAddr) -> Option<HostId> {
    match address {
        SocketAddr::V4(address) => {
            let [ten, a, b, c] = address.ip().octets();
            (ten == 10).then(|| HostId(u32::from_be_bytes([0, a, b, c])))
        }
        SocketAddr::V6(_) => None,
    }
}
