//! What a server holds for all of its clients together: those that take too much are held back, and end at last; nobody else notices.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{LossModel, PathSpec};
use punctual_lab::world::{Happening, HostId, World};
use punctual_proto::wire::{Frame, Preamble, Symbol, Writer};
use punctual_proto::{
    Capacity, CloseCode, CloseReason, Delivery, EndpointConfig, Event, MessageId, SendOptions,
    SessionId, StreamConfig, StreamId,
};
use support::lies::{Lies, LyingAead};
use support::{client_config, key, ms, path, server_config};

const ROOM: usize = 16 << 20;
/// Of messages that are put together whole.
const LEN: usize = 250_000;
const PIECE: [u8; 8192] = [7; 8192];

struct Client {
    host: HostId,
    session: SessionId,
    stream: StreamId,
    /// What is being written, and the bytes that are still to be handed in.
    writing: Vec<(MessageId, usize)>,
}

/// A server with little room, and its clients.
struct Crowd {
    world: World,
    server: HostId,
    clients: Vec<Client>,
    /// Their sessions there.
    at_server: Vec<SessionId>,
    /// Messages that the server's application has taken, by their first byte.
    taken: BTreeMap<u8, usize>,
    closed: Vec<(HostId, CloseReason)>,
    /// Whether the server's application takes anything ..
    takes: bool,
    /// .. and what is kept for it, of each session, by whoever takes it in its place.
    kept: Option<BTreeMap<SessionId, usize>>,
}

impl Crowd {
    fn new(seed: u64) -> Self {
        let config = EndpointConfig {
            capacity: Capacity {
                received_bytes_max: ROOM,
                ..Capacity::default()
            },
            ..server_config()
        };
        let mut world = World::new(seed);
        let server = world.add_server(config.build().unwrap());
        Self {
            world,
            server,
            clients: Vec::new(),
            at_server: Vec::new(),
            taken: BTreeMap::new(),
            closed: Vec::new(),
            takes: true,
            kept: None,
        }
    }

    fn join(&mut self, path: &PathSpec) -> usize {
        self.join_as(client_config(), path)
    }

    fn join_as(&mut self, config: EndpointConfig, path: &PathSpec) -> usize {
        let host = self.world.add_client(config, path);
        let (server, key) = (self.server, key().public());
        let session = self.world.connect(host, server, key).unwrap();
        let there = self.at_server.len();
        while self.at_server.len() == there {
            self.run(ms(100));
        }
        self.run(ms(50));
        let stream = self.world.with_endpoint(host, |endpoint, _| {
            let config = StreamConfig::new(Delivery::Reliable);
            endpoint.open_stream(session, config).unwrap()
        });
        self.clients.push(Client {
            host,
            session,
            stream,
            writing: Vec::new(),
        });
        self.clients.len() - 1
    }

    fn run(&mut self, span: Duration) {
        let until = self.world.now().after(span);
        let (server, takes) = (self.server, self.takes);
        let (taken, closed, at_server) = (&mut self.taken, &mut self.closed, &mut self.at_server);
        let kept = &mut self.kept;
        self.world.run(until, |world, happening| {
            let Happening {
                host,
                session,
                event,
                ..
            } = happening;
            match event {
                Event::Connected { .. } if host == server => {
                    at_server.push(session);
                    world.with_endpoint(server, |endpoint, _| {
                        endpoint.hold_messages(session, !takes);
                    });
                }
                Event::Message { data, .. } if host == server => {
                    *taken.entry(data[0]).or_default() += 1;
                    if let Some(kept) = kept {
                        let kept = kept.entry(session).or_default();
                        *kept += data.len();
                        world.with_endpoint(server, |endpoint, now| {
                            endpoint.set_kept(now, session, 0, *kept);
                        });
                    }
                    world.recycle(server, data);
                }
                Event::Closed { why } => closed.push((host, why)),
                _ => {}
            }
        });
    }

    /// Begins messages of `LEN` bytes.
    fn begin(&mut self, client: usize, count: usize) {
        let Client {
            host,
            session,
            stream,
            ..
        } = self.clients[client];
        for _ in 0..count {
            let message = self.world.with_endpoint(host, |endpoint, now| {
                let options = SendOptions::default();
                endpoint.begin(now, session, stream, LEN, options)
            });
            if let Ok(message) = message {
                self.clients[client].writing.push((message, LEN));
            }
        }
    }

    /// Hands in what there is room for.
    fn write(&mut self) {
        for client in &mut self.clients {
            for (message, left) in &mut client.writing {
                while *left > 0 {
                    let piece = &PIECE[..(*left).min(PIECE.len())];
                    let session = client.session;
                    let taken = self.world.with_endpoint(client.host, |endpoint, _| {
                        endpoint.append(session, *message, piece)
                    });
                    let Ok(1..) = taken else { break };
                    *left -= taken.unwrap_or(0);
                }
            }
        }
    }

    fn send(&mut self, client: usize, data: &[u8]) {
        let Client {
            host,
            session,
            stream,
            ..
        } = self.clients[client];
        self.world.with_endpoint(host, |endpoint, now| {
            let options = SendOptions::within(ms(150));
            let _ = endpoint.send(now, session, stream, data, options);
        });
    }

    /// Packets for which there was no room.
    fn refused(&self) -> u64 {
        (self.at_server.iter())
            .filter_map(|id| self.world.session_stats(self.server, *id))
            .map(|stats| stats.packets_refused)
            .sum()
    }

    fn held_bytes(&self) -> usize {
        self.world.endpoint(self.server).stats().held_bytes as usize
    }

    fn closed_for_room(&self) -> u64 {
        self.world.endpoint(self.server).stats().closed_for_room
    }
}

/// Twelve clients send parts of a message that never begins: with 4 MiB each that is three times what the server has room for.
#[test]
fn who_never_finishes_is_closed_and_nobody_else() {
    let path = path(ms(20), |_| {});
    let mut crowd = Crowd::new(3);
    let lies: Vec<Lies> = (0..12).map(|_| Lies::default()).collect();
    for lies in &lies {
        let aead = Arc::new(LyingAead(Arc::clone(lies)));
        crowd.join_as(
            EndpointConfig {
                aead,
                ..client_config()
            },
            &path,
        );
    }
    let small = crowd.join(&path);
    let large = crowd.join(&path);
    for part in 1..4800_u16 {
        for (client, lies) in lies.iter().enumerate() {
            lies.lock().unwrap().push_back(part_of_nothing(part));
            // The lie takes the place of it.
            crowd.send(client, &[0; 1200]);
        }
        if part % 8 == 0 {
            crowd.send(small, &[1; 200]);
        }
        crowd.run(ms(2));
    }
    assert!(crowd.closed_for_room() >= 4, "{}", crowd.closed_for_room());
    let honest = [crowd.clients[small].host, crowd.clients[large].host];
    assert!(!crowd.closed.iter().any(|(host, _)| honest.contains(host)));
    for (host, why) in &crowd.closed {
        let code = match why {
            CloseReason::Local { code } if *host == crowd.server => *code,
            CloseReason::Peer { code, .. } if *host != crowd.server => *code,
            _ => panic!("{host:?}: {why:?}"),
        };
        assert_eq!(code, CloseCode::NO_ROOM);
    }
    crowd.run(ms(200));
    assert_eq!(crowd.taken.get(&1), Some(&599));
    // Who begins now, with all that the others still hold, is served.
    crowd.begin(large, 8);
    for _ in 0..400 {
        crowd.write();
        crowd.run(ms(20));
    }
    assert_eq!(crowd.taken.get(&7), Some(&8));
    // Nothing is left of who goes.
    assert!(crowd.held_bytes() > ROOM / 4);
    crowd.world.with_endpoint(crowd.server, |endpoint, now| {
        endpoint.close_all(now, CloseCode::DONE, "");
    });
    crowd.run(ms(5000));
    assert_eq!(crowd.held_bytes(), 0);
}

/// A packet with one block: this part of the message that would have begun with block 20,000.
fn part_of_nothing(part: u16) -> Vec<u8> {
    let mut data = [0; 1100];
    let preamble = Preamble::Later {
        distance: part.into(),
        index: part,
    };
    preamble.encode(&mut Writer::new(&mut data));
    let symbol = Symbol {
        source_symbols: 1,
        truncated_block: 20_000 + part,
        esi: 0,
        data: &data,
    };
    let mut frame = vec![0; 1200];
    let mut writer = Writer::new(&mut frame);
    Frame::Symbol(symbol).encode(&mut writer);
    let len = writer.finish().unwrap();
    frame.truncate(len);
    frame
}

/// Sixty clients send a message of 250 kB each at once, over a path that loses a tenth: the fair share of each is less than that. They are held back, and all of
/// it arrives; without the blocks that come in one by one, the messages would wait for each other for ever.
#[test]
fn who_finishes_is_held_back_and_not_closed() {
    let path = path(ms(40), |spec| spec.loss = LossModel::Uniform(0.1));
    let mut crowd = Crowd::new(4);
    for client in 0..60 {
        crowd.join(&path);
        crowd.begin(client, 1);
    }
    for _ in 0..3000 {
        crowd.write();
        crowd.run(ms(20));
    }
    assert_eq!(crowd.closed_for_room(), 0);
    assert_eq!(crowd.taken.get(&7), Some(&60));
    assert!(crowd.refused() > 100, "{}", crowd.refused());
    assert_eq!(crowd.held_bytes(), 0);
}

/// An application that takes nothing from twelve clients has the half of the room for them, and ends no session: it is not they that hold too much. The same where
/// somebody takes it in its place, and keeps it.
#[test]
fn what_the_application_does_not_take_ends_no_session() {
    let path = path(ms(20), |_| {});
    for is_kept in [false, true] {
        let mut crowd = Crowd::new(5);
        crowd.takes = is_kept;
        crowd.kept = is_kept.then(BTreeMap::new);
        for _ in 0..12 {
            crowd.join(&path);
        }
        for _ in 0..200 {
            for client in 0..12 {
                if crowd.clients[client].writing.len() < 40 {
                    crowd.begin(client, 4);
                }
            }
            crowd.write();
            crowd.run(ms(20));
        }
        assert_eq!((crowd.closed_for_room(), crowd.closed.len()), (0, 0));
        let held = crowd.held_bytes();
        assert!((ROOM / 4..ROOM * 5 / 8).contains(&held), "{is_kept} {held}");
        // As soon as it is taken, all goes on.
        let server = crowd.server;
        (crowd.takes, crowd.kept) = (true, None);
        for session in crowd.at_server.clone() {
            crowd.world.with_endpoint(server, |endpoint, now| {
                endpoint.hold_messages(session, false);
                endpoint.set_kept(now, session, 0, 0);
            });
        }
        for _ in 0..2000 {
            crowd.write();
            crowd.run(ms(20));
        }
        assert_eq!(crowd.taken.get(&7), Some(&(12 * 40)));
        assert_eq!(crowd.held_bytes(), 0);
    }
}
