//! Every rival over a bad network in virtual time: two engines, delay, loss from a seed, an outage. No sockets, no waiting.
//!
//! The rivals draw random numbers of their own, so no two runs are equal; what is asserted holds in all of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use punctual_lab::arm::{Sender, Task};

use crate::engine::{Engine, Link, Rival, Role};
use crate::{enet, kcp, quic, renet, webrtc};

const ONE_WAY: Duration = Duration::from_millis(25);
const MESSAGES: u32 = 150;
const MESSAGE_BYTES: usize = 2_048;
/// Messages are sent for 5 s.
const INTERVAL: Duration = Duration::from_millis(33);
/// Longer than doubling timeouts can take after the outage.
const LIMIT: Duration = Duration::from_secs(200);

/// What the network does to packets, in both directions.
#[derive(Clone, Copy)]
struct Network {
    seed: u64,
    /// Of 100, before the first message.
    lost_early: u64,
    /// Of 100, from then on.
    lost: u64,
    /// Nothing gets through, counted from the first message.
    outage: Option<(Duration, Duration)>,
}

/// splitmix64: a different number for each call.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

struct World<F> {
    ends: [F; 2],
    addresses: [SocketAddr; 2],
    timeouts: [Option<Instant>; 2],
    /// What is on its way, by receiving end; delay is constant, so it arrives in order.
    on_its_way: [VecDeque<(Instant, Vec<u8>)>; 2],
    arrived: BTreeMap<Vec<u8>, u32>,
    now: Instant,
    network: Network,
    first_message_at: Option<Instant>,
}

impl<F: Engine> World<F> {
    fn new(rival: &impl Rival<Flow = F>, network: Network) -> Self {
        let server: SocketAddr = "127.0.0.1:7000".parse().unwrap();
        let client: SocketAddr = "127.77.0.1:7001".parse().unwrap();
        let task = Task {
            sender: Sender::Client,
            message_bytes: MESSAGE_BYTES,
            interval: INTERVAL,
            deadline: Duration::from_millis(200),
            on_time: 0.999,
            rtt: 2 * ONE_WAY,
        };
        let make = |role, local| {
            let link = Link {
                flow: 0,
                role,
                local,
                server,
            };
            rival.maker(&task).unwrap()(link).unwrap()
        };
        let ends = [make(Role::Server, server), make(Role::Client, client)];
        let now = Instant::now();
        Self {
            ends,
            addresses: [server, client],
            timeouts: [Some(now); 2],
            on_its_way: Default::default(),
            arrived: BTreeMap::new(),
            now,
            network,
            first_message_at: None,
        }
    }

    fn is_dark(&self) -> bool {
        let Some((from, until)) = self.network.outage else {
            return false;
        };
        self.first_message_at
            .is_some_and(|start| (start + from..start + until).contains(&self.now))
    }

    /// Takes out of an end what it has to deliver and to send.
    fn settle(&mut self, end: usize) {
        let arrived = &mut self.arrived;
        self.ends[end].poll_messages(&mut |message| {
            *arrived.entry(message.to_vec()).or_default() += 1;
        });
        let mut sent = Vec::new();
        self.ends[end].poll_transmit(self.now, &mut |datagram| sent.push(datagram.to_vec()));
        let lost = match self.first_message_at {
            None => self.network.lost_early,
            Some(_) => self.network.lost,
        };
        for datagram in sent {
            if draw(&mut self.network.seed) % 100 >= lost && !self.is_dark() {
                self.on_its_way[1 - end].push_back((self.now + ONE_WAY, datagram));
            }
        }
        let soonest = self.now + Duration::from_micros(100);
        self.timeouts[end] = self.ends[end]
            .next_timeout(self.now)
            .map(|at| at.max(soonest));
    }

    /// Goes on to `until`.
    fn run(&mut self, until: Instant) {
        loop {
            let due = |end: usize| {
                let packet = self.on_its_way[end].front().map(|&(at, _)| at);
                packet.into_iter().chain(self.timeouts[end]).min()
            };
            let next = [0, 1].into_iter().filter_map(|end| Some((due(end)?, end)));
            let Some((at, end)) = next.min().filter(|&(at, _)| at <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(at);
            let packet = self.on_its_way[end].pop_front_if(|&mut (at, _)| at <= self.now);
            match packet {
                Some((_, datagram)) => {
                    let from = self.addresses[1 - end];
                    self.ends[end].handle_datagram(self.now, from, &datagram);
                }
                None => self.ends[end].handle_timeout(self.now),
            }
            self.settle(end);
        }
    }

    fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let limit = self.now + LIMIT;
        while !done(self) {
            assert!(self.now < limit, "{what}: {} arrived", self.arrived.len());
            self.run(self.now + Duration::from_millis(10));
        }
    }

    /// Connects and sends all messages from the client; those that were taken.
    fn send_all(&mut self, name: &str) -> BTreeSet<Vec<u8>> {
        self.run_until(name, |world| world.ends.iter().all(Engine::is_ready));
        self.first_message_at = Some(self.now);
        let mut taken = BTreeSet::new();
        for number in 0..MESSAGES {
            let mut message = vec![number as u8; MESSAGE_BYTES];
            message[..4].copy_from_slice(&number.to_be_bytes());
            if self.ends[1].send(self.now, &message).is_ok() {
                taken.insert(message);
            }
            self.settle(1);
            self.run(self.now + INTERVAL);
        }
        taken
    }

    /// What arrived is some of what was sent, and nothing arrived twice.
    fn assert_intact(&self, name: &str, taken: &BTreeSet<Vec<u8>>) {
        let is_known = |message| taken.contains(message);
        assert!(self.arrived.keys().all(is_known), "{name}: not intact");
        assert!(
            self.arrived.values().all(|&times| times == 1),
            "{name}: more than once"
        );
    }
}

const LOSSY: Network = Network {
    seed: 0,
    lost_early: 15,
    lost: 15,
    outage: None,
};
const DARK: Network = Network {
    seed: 3,
    lost_early: 1,
    lost: 1,
    outage: Some((Duration::from_secs(1), Duration::from_secs(6))),
};
/// For WebRTC: str0m lets DTLS try five times and SCTP begin with 3 s, so that with much loss a connection may never come about.
const LOSSY_LATER: Network = Network {
    lost_early: 2,
    lost: 10,
    ..LOSSY
};

/// A reliable rival delivers all, whatever is lost, and lives through an outage of seconds.
fn check(rival: &impl Rival<Flow: Engine>, lossy: Network) {
    let name = rival.name();
    for network in [lossy, Network { seed: 1, ..lossy }, DARK] {
        let mut world = World::new(rival, network);
        let taken = world.send_all(name);
        assert_eq!(taken.len(), MESSAGES as usize, "{name}");
        world.run_until(name, |world| world.arrived.len() >= taken.len());
        world.assert_intact(name, &taken);
    }
}

/// An unreliable rival delivers what it can, nothing twice.
fn check_unreliable(rival: &impl Rival<Flow: Engine>, lossy: Network, at_least: usize) {
    let name = rival.name();
    let mut world = World::new(rival, lossy);
    let taken = world.send_all(name);
    world.run(world.now + Duration::from_secs(5));
    world.assert_intact(name, &taken);
    let arrived = world.arrived.len();
    assert!(arrived >= at_least, "{name}: {arrived}");
    assert!(arrived < MESSAGES as usize, "{name} cannot deliver all");
}

#[test]
fn enet_repairs_and_lives_on() {
    check(&enet::ENet, LOSSY);
}

#[test]
fn kcp_repairs_and_lives_on() {
    check(&kcp::KcpTurbo, LOSSY);
}

#[test]
fn quic_streams_repair_and_live_on() {
    let rival = quic::Quic::new(quic::Carriage::Streams).unwrap();
    check(&rival, LOSSY);
}

#[test]
fn webrtc_repairs_and_lives_on() {
    let rival = webrtc::WebRtc::new(webrtc::Lifetime::Unlimited).unwrap();
    check(&rival, LOSSY_LATER);
}

#[test]
fn renet_repairs_and_lives_on() {
    check(&renet::Renet::new(), LOSSY);
}

#[test]
fn quic_datagrams_are_not_repaired() {
    let rival = quic::Quic::new(quic::Carriage::Datagrams).unwrap();
    // Both of a message's datagrams arrive of 72 % of the messages, of 150 less 5 standard deviations: 80.
    check_unreliable(&rival, LOSSY, 80);
}

#[test]
fn webrtc_with_a_lifetime_gives_messages_up() {
    let rival = webrtc::WebRtc::new(webrtc::Lifetime::Deadline).unwrap();
    let lossy = Network {
        lost: 20,
        ..LOSSY_LATER
    };
    // Without any repair 64 % would arrive.
    check_unreliable(&rival, lossy, 75);
}
