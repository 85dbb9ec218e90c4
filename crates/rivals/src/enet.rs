//! ENet: reliable packets on one channel.

use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use punctual_lab::arm::{ArmError, Refused, Task};
use rusty_enet::{EventNoRef, Host, HostSettings, Packet, PacketKind, PeerID, ReadWrite};

use crate::engine::{Engine, Link, Maker, Rival, Role};
use crate::{DEAD_AFTER, QUEUE_BYTES_MAX, failed};

/// ENet does not tell when it wants to be served next. Games serve it once a frame; this is more often.
const TICK: Duration = Duration::from_millis(4);
const CHANNEL: u8 = 0;

/// The arm.
pub(crate) struct ENet;

impl Rival for ENet {
    type Flow = Flow;

    fn name(&self) -> &'static str {
        "enet"
    }

    fn settings(&self) -> String {
        format!(
            "reliable packets on one channel, no bandwidth limits, flushed at each send and served at each datagram and every \
             {} ms; a host of its own for each flow, so that no flow waits for a look at all peers; a peer times out after {} s \
             (its default of 5 s would end flows in an outage); its resend timeout, round trip + 4 x variance and doubling, \
             cannot be set",
            TICK.as_millis(),
            DEAD_AFTER.as_secs()
        )
    }

    fn maker(&self, _: &Task) -> Result<Maker<'_, Flow>, ArmError> {
        Ok(Box::new(Flow::new))
    }
}

type Wire = ReadWrite<SocketAddr, Infallible>;

/// A message that says when ENet lets go of it, which is when it is acknowledged: ENet itself does not tell how much waits.
struct Counted {
    message: Vec<u8>,
    queued: Rc<Cell<usize>>,
}

impl Counted {
    fn new(message: &[u8], queued: &Rc<Cell<usize>>) -> Self {
        queued.set(queued.get() + message.len());
        Self {
            message: message.to_vec(),
            queued: Rc::clone(queued),
        }
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.queued.set(self.queued.get() - self.message.len());
    }
}

/// A flow.
pub(crate) struct Flow {
    host: Host<Wire>,
    /// What ENet takes for the time.
    clock: Rc<Cell<Duration>>,
    /// None until connected, and after.
    peer: Option<PeerID>,
    /// Bytes of messages that ENet holds.
    queued: Rc<Cell<usize>>,
    arrived: Vec<Packet>,
    /// When the clock was last moved.
    last: Instant,
    last_service: Instant,
}

impl Flow {
    fn new(link: Link) -> Result<Self, ArmError> {
        let epoch = Instant::now();
        // ENet takes the time 0 for "never".
        let clock = Rc::new(Cell::new(Duration::from_secs(1)));
        let hosts_clock = Rc::clone(&clock);
        let settings = HostSettings {
            peer_limit: 1,
            channel_limit: 1,
            time: Box::new(move || hosts_clock.get()),
            ..HostSettings::default()
        };
        let mut host = Host::new(Wire::new(), settings).map_err(|error| failed("enet", error))?;
        if link.role == Role::Client {
            let peer = host
                .connect(link.server, 1, 0)
                .map_err(|error| failed("enet", error))?;
            be_patient(peer);
        }
        Ok(Self {
            host,
            clock,
            peer: None,
            queued: Rc::default(),
            arrived: Vec::new(),
            last: epoch,
            last_service: epoch,
        })
    }

    fn move_clock(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.last);
        self.last += passed;
        self.clock.set(self.clock.get() + passed);
    }

    fn service(&mut self, now: Instant) {
        self.move_clock(now);
        self.last_service = now;
        while let Ok(Some(event)) = self.host.service() {
            match event.no_ref() {
                EventNoRef::Connect { peer, .. } => {
                    be_patient(self.host.peer_mut(peer));
                    self.peer = Some(peer);
                }
                EventNoRef::Disconnect { .. } => self.peer = None,
                EventNoRef::Receive { packet, .. } => self.arrived.push(packet),
            }
        }
    }
}

/// Lets a peer live through outages.
fn be_patient(peer: &mut rusty_enet::Peer<Wire>) {
    let dead_after_ms = DEAD_AFTER.as_millis() as u32;
    peer.set_timeout(0, dead_after_ms, dead_after_ms);
}

impl Engine for Flow {
    fn is_ready(&self) -> bool {
        self.peer.is_some()
    }

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.host.socket_mut().write(from, datagram.to_vec());
        self.service(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.service(now);
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> Result<(), Refused> {
        self.move_clock(now);
        let peer = self.peer.ok_or(Refused)?;
        if self.queued.get() + message.len() > QUEUE_BYTES_MAX {
            return Err(Refused);
        }
        let message = Box::new(Counted::new(message, &self.queued));
        let packet = Packet::new(message, PacketKind::Reliable);
        self.host
            .peer_mut(peer)
            .send(CHANNEL, &packet)
            .map_err(|_| Refused)?;
        self.host.flush();
        Ok(())
    }

    fn poll_messages(&mut self, deliver: &mut dyn FnMut(&[u8])) {
        for packet in self.arrived.drain(..) {
            deliver(packet.data());
        }
    }

    fn poll_transmit(&mut self, _: Instant, transmit: &mut dyn FnMut(&[u8])) {
        while let Some((_, datagram)) = self.host.socket_mut().read() {
            transmit(&datagram);
        }
    }

    fn next_timeout(&mut self, _: Instant) -> Option<Instant> {
        Some(self.last_service + TICK)
    }
}
