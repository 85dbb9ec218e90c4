//! What strangers, forgers and broken peers can do: nothing. Named after the classes of bugs that peers of this protocol had.

mod support;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use punctual_lab::channel::PathSpec;
use punctual_lab::world::{LabAead, World};
use punctual_proto::wire::{ConnectionId, HandshakePacket, Hello};
use punctual_proto::{
    Cancel, CloseReason, ConnectOptions, Delivery, Ecn, Endpoint, Event, Instant, MessageId,
    SendError, SendOptions, StreamConfig, StreamError, StreamId, TokenClaims, TokenKey, limits,
};
use support::{Duo, key, ms, path, server_config};

fn quiet() -> PathSpec {
    path(ms(40), |_| {})
}

fn hello(source: u32, noise: &[u8]) -> Vec<u8> {
    let mut buffer = [0; 1400];
    let packet = HandshakePacket::Hello(Hello {
        source: ConnectionId(source),
        cookie: &[],
        noise,
    });
    let len = packet.encode(&mut buffer).unwrap();
    buffer[..len].to_vec()
}

/// State before address validation: HELLOs from ever new addresses cost the server a bounded amount, and answers are never
/// larger than what was sent.
#[test]
fn state_before_address_validation_is_bounded() {
    let mut world = World::new(1);
    let server = world.add_server(server_config());
    // A genuine first message, captured from a client, then repeated from everywhere.
    let client = world.add_client(support::client_config(), &quiet());
    world.connect(client, server, key().public()).unwrap();
    world.step(punctual_lab::world::Moment(0));
    let genuine = world.last_datagram().unwrap().to_vec();
    assert_eq!(genuine.len(), 1200);
    let before = world.traffic();
    for i in 0..20_000u32 {
        let from: SocketAddr = format!(
            "192.0.{}.{}:{}",
            i / 250 % 200,
            1 + i % 250,
            1000 + i / 50_000
        )
        .parse()
        .unwrap();
        world.inject(server, from, &genuine);
        if i % 100 == 0 {
            world.run(world.now().after(Duration::from_millis(1)), |_, _| {});
        }
    }
    world.run(world.now().after(Duration::from_millis(100)), |_, _| {});
    let stats = world.endpoint(server).stats();
    assert!(
        stats.handshakes <= limits::COOKIE_THRESHOLD as u64 + 1,
        "{stats:?}"
    );
    assert!(world.endpoint(server).sessions() <= limits::COOKIE_THRESHOLD + 1);
    let answered = world.traffic().sent_bytes - before.sent_bytes;
    assert!(
        answered < 20_000 * 128,
        "amplification: {answered} bytes for {} of HELLO",
        20_000 * 1200
    );
    // And what little there was goes again.
    world.run(world.now().after(Duration::from_secs(20)), |_, _| {});
    assert_eq!(
        world.endpoint(server).sessions(),
        1,
        "the genuine client only"
    );
}

/// Handshakes that a client at this address gets half open, cookies and all, of so many that it begins; it never shows that it has the ACCEPT.
fn half_open(server: &mut Endpoint, now: Instant, from: SocketAddr, wanted: usize) -> usize {
    let mut client = Endpoint::new(support::client_config(), [from.port() as u8; 32]);
    let options = to_server();
    let before = server.sessions();
    let (mut hello, mut answer) = ([0; 2048], [0; 2048]);
    for _ in 0..wanted {
        client.connect(now, &options).expect("there is room");
        while let Some(sent) = client.poll_transmit(now, &mut hello) {
            server.handle_datagram(now, from, Ecn::NotEct, &mut hello[..sent.len]);
            while let Some(sent) = server.poll_transmit(now, &mut answer) {
                let answer = &mut answer[..sent.len];
                if matches!(
                    HandshakePacket::decode(answer),
                    Ok(HandshakePacket::Retry(_))
                ) {
                    client.handle_datagram(now, options.remote, Ecn::NotEct, answer);
                }
            }
        }
    }
    server.sessions() - before
}

/// A regression: two addresses that receive what is sent to them had all places of those who are half-way in, 2,048 each, for 820 HELLOs a second; everybody
/// else was told that the server is full.
#[test]
fn a_few_addresses_do_not_take_all_places() {
    let v4 = |host| SocketAddr::from(([192, 0, 2, host], 1000 + u16::from(host)));
    let mapped = |host| {
        let address = Ipv4Addr::new(192, 0, 2, host).to_ipv6_mapped();
        SocketAddr::from((address, 1000 + u16::from(host)))
    };
    // Who has one of these has them all.
    let v6 = |host| SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, host], 1000 + host));
    let attackers = [
        vec![v4(1)],
        vec![v4(1), v4(2)],
        (0..6).map(v4).collect(),
        (0..6).map(mapped).collect(),
        (0..40).map(v6).collect(),
    ];
    for addresses in attackers {
        let mut server = Endpoint::new(server_config(), [9; 32]);
        let now = Instant::from_nanos(1_000_000_000);
        let taken = addresses.into_iter();
        let taken = taken.map(|from| half_open(&mut server, now, from, 1500));
        let taken: Vec<usize> = taken.collect();
        for honest in [v4(77), mapped(78)] {
            let got_in = half_open(&mut server, now, honest, 100);
            assert_eq!(got_in, 100, "{taken:?}");
        }
    }
}

fn to_server() -> ConnectOptions {
    ConnectOptions {
        remote: "10.0.0.2:1".parse().unwrap(),
        server_key: key().public(),
        token: None,
    }
}

fn somebody(number: u32) -> SocketAddr {
    SocketAddr::from((
        [10, (number >> 16) as u8, (number >> 8) as u8, number as u8],
        1000,
    ))
}

/// The answer to a datagram.
fn answer(
    server: &mut Endpoint,
    now: Instant,
    from: SocketAddr,
    datagram: &[u8],
) -> Option<Vec<u8>> {
    server.handle_datagram(now, from, Ecn::NotEct, &mut datagram.to_vec());
    let mut buffer = [0; 2048];
    let len = server.poll_transmit(now, &mut buffer)?.len;
    Some(buffer[..len].to_vec())
}

/// A regression: HELLOs that do not open leave nothing half-open, so that no cookie was ever asked for, and 5,300 a second from anywhere took a core.
#[test]
fn who_may_not_be_there_is_computed_for_seldom() {
    let mut server = Endpoint::new(server_config(), [9; 32]);
    for second in 1..=3 {
        let now = Instant::from_micros(second * 1_000_000);
        for number in 0..2_000 {
            let hello = hello(number, &[0xa5; 96]);
            answer(&mut server, now, somebody(number), &hello).expect("a refusal or a cookie");
        }
        let stats = server.stats();
        assert_eq!(stats.handshakes, second * limits::HELLOS_UNASKED_MAX as u64);
        assert_eq!(stats.handshakes + stats.retries, second * 2_000);
    }
    // Meanwhile one who means it gets in.
    let now = Instant::from_micros(3_500_000);
    assert_eq!(half_open(&mut server, now, somebody(77), 1), 1);
}

/// Goal: who can receive at an address spoils it for nobody else, with as much junk as it likes.
#[test]
fn junk_with_a_cookie_is_soon_left_alone() {
    let mut config = server_config();
    config.server.as_mut().expect("it is one").cookie_threshold = 0;
    let mut server = Endpoint::new(config, [9; 32]);
    let now = Instant::from_micros(1_000_000);
    let junk = |server: &mut Endpoint, from, number| {
        let asked = answer(server, now, from, &hello(number, &[0xa5; 96]));
        let asked = asked.expect("a cookie is asked for");
        let Ok(HandshakePacket::Retry(retry)) = HandshakePacket::decode(&asked) else {
            panic!("{asked:?}");
        };
        let mut buffer = [0; 1400];
        let packet = HandshakePacket::Hello(Hello {
            source: ConnectionId(number),
            cookie: retry.cookie,
            noise: &[0xa5; 96],
        });
        let len = packet.encode(&mut buffer).unwrap();
        answer(server, now, from, &buffer[..len])
    };
    for number in 0..1_000 {
        let is_heard = junk(&mut server, somebody(1), number).is_some();
        assert_eq!(is_heard, number < limits::HELLOS_FAILED_PER_ADDRESS as u32);
    }
    assert_eq!(half_open(&mut server, now, somebody(2), 1), 1);
    for number in 10..1_000 {
        for _ in 0..10 {
            junk(&mut server, somebody(number), number);
        }
    }
    // (Of these each has failed, and many only once.)
    let failed = server.stats().handshakes - 1;
    let most = limits::HELLOS_FAILED_MAX as u64;
    assert!((most..2 * most).contains(&failed), "{failed}");
    assert_eq!(half_open(&mut server, now, somebody(5_000), 1), 1);
    let now = Instant::from_micros(2_000_000);
    assert_eq!(half_open(&mut server, now, somebody(1), 1), 1);
}

/// A regression: a server without room opened every HELLO before it said so.
#[test]
fn a_full_server_computes_nothing() {
    let mut config = server_config();
    config.capacity.sessions_max = 10;
    let mut server = Endpoint::new(config, [9; 32]);
    let now = Instant::from_nanos(1_000_000_000);
    let got_in: Vec<usize> = (0..20)
        .map(|number| half_open(&mut server, now, somebody(number), 1))
        .collect();
    assert_eq!(got_in, [[1; 10], [0; 10]].concat());
    assert_eq!(server.stats().handshakes, 10);
    assert_eq!(server.stats().refusals, 10);
}

/// A regression: who was half-way in had places of sessions, and nobody else could come to a small server: neither was a cookie asked for before all of its places
/// were gone, nor did one address leave any.
#[test]
fn a_small_server_is_not_filled_by_who_does_not_come() {
    let small = |sessions_max| {
        let mut config = server_config();
        config.capacity.sessions_max = sessions_max;
        Endpoint::new(config, [9; 32])
    };
    // Addresses that may be a pretence: HELLOs without a cookie.
    for sessions_max in [1, 2, 10, 64] {
        let mut server = small(sessions_max);
        let now = Instant::from_micros(1_000_000);
        for number in 0..100 {
            let mut client = Endpoint::new(support::client_config(), [number; 32]);
            client.connect(now, &to_server()).expect("there is room");
            let mut buffer = [0; 2048];
            let len = client.poll_transmit(now, &mut buffer).expect("a HELLO").len;
            let answered = answer(&mut server, now, somebody(number.into()), &buffer[..len]);
            answered.expect("it is let in, or asked for a cookie");
        }
        assert!(server.sessions() < sessions_max);
        assert_eq!(half_open(&mut server, now, somebody(999), 1), 1);
    }
    // One that is none, again and again.
    let mut server = small(10);
    for second in 1..=20 {
        let now = Instant::from_micros(second * 1_000_000);
        server.handle_timeout(now);
        half_open(&mut server, now, somebody(1), 20);
        assert_eq!(
            half_open(&mut server, now, somebody(1_000 + second as u32), 1),
            1
        );
    }
}

/// A regression: with one IPv6 network, of which a customer has 65,536 parts, all places of those who are half-way in were taken.
#[test]
fn one_network_does_not_take_all_places() {
    let of = |network: u16, part| {
        SocketAddr::from(([0x2001, 0xdb8, network, part, 0, 0, 0, 1], 1000 + part))
    };
    let mut server = Endpoint::new(server_config(), [9; 32]);
    let now = Instant::from_micros(1_000_000);
    for part in 0..30 {
        half_open(&mut server, now, of(1, part), 400);
    }
    assert!(server.sessions() < limits::HALF_OPEN_MAX / 2);
    assert_eq!(half_open(&mut server, now, of(2, 0), 100), 100);
    // With many of them, there is room again a second later, for who has fewer.
    for network in 3..40 {
        half_open(&mut server, now, of(network, 0), 400);
    }
    assert!(
        server.sessions() > limits::HALF_OPEN_MAX - 10,
        "{}",
        server.sessions()
    );
    let later = now + Duration::from_secs(1);
    assert_eq!(half_open(&mut server, later, of(99, 0), 100), 0);
    assert_eq!(server.sessions(), limits::HALF_OPEN_MAX);
    let is_in = server.stats();
    half_open(&mut server, later, of(98, 0), 1);
    assert_eq!(server.stats().handshakes, is_in.handshakes + 1);
}

/// A regression: answers of a server whose IPv4 address was written as one of IPv6 were taken for somebody else's.
#[test]
fn a_mapped_address_connects() {
    let mut server = Endpoint::new(server_config(), [9; 32]);
    let mut client = Endpoint::new(support::client_config(), [1; 32]);
    let now = Instant::from_nanos(1_000_000_000);
    let options = ConnectOptions {
        remote: "[::ffff:10.0.0.2]:1".parse().unwrap(),
        server_key: key().public(),
        token: None,
    };
    client.connect(now, &options).expect("there is room");
    let mut buffer = [0; 2048];
    let hello = client.poll_transmit(now, &mut buffer).expect("a HELLO");
    let plain: SocketAddr = "10.0.0.2:1".parse().unwrap();
    assert_eq!(hello.to, plain);
    let accept = answer(&mut server, now, somebody(1), &buffer[..hello.len]);
    client.handle_datagram(now, plain, Ecn::NotEct, &mut accept.expect("an ACCEPT"));
    let connected = client.poll_event().expect("it is connected");
    assert!(matches!(connected.1, Event::Connected { .. }));
}

/// A regression: the time by which tokens expire was taken once, and ran by a clock that stands still while a machine sleeps.
#[test]
fn tokens_expire_by_the_time_that_is_told() {
    let token_key = TokenKey([8; 32]);
    let claims = TokenClaims {
        identity: b"anna".to_vec(),
        expires_unix_s: 1_000_000,
        servers: Vec::new(),
        psk: [3; 32],
    };
    let token = claims.seal(&LabAead, &token_key, [4; 32]).unwrap();
    let mut config = server_config();
    config.server.as_mut().expect("it is one").token_key = Some(token_key);
    let mut server = Endpoint::new(config, [9; 32]);
    let options = ConnectOptions {
        remote: "10.0.0.2:1".parse().unwrap(),
        server_key: key().public(),
        token: Some(token),
    };
    // The machine slept between these two, and the clock with it.
    for (now_s, unix_s, is_admitted) in [(10, 999_900, true), (11, 1_000_100, false)] {
        let now = Instant::from_micros(now_s * 1_000_000);
        server.set_unix_time(now, unix_s);
        let mut client = Endpoint::new(support::client_config(), [now_s as u8; 32]);
        client.connect(now, &options).expect("there is room");
        let mut buffer = [0; 2048];
        let hello = client.poll_transmit(now, &mut buffer).expect("a HELLO");
        let answer = answer(&mut server, now, somebody(1), &buffer[..hello.len]);
        let answer = answer.expect("it is answered");
        let accepted = HandshakePacket::decode(&answer);
        let accepted = matches!(accepted, Ok(HandshakePacket::Accept(_)));
        assert_eq!(accepted, is_admitted, "at {unix_s}");
    }
}

/// A first message that does not open is refused by a packet smaller than itself, and leaves nothing.
#[test]
fn noise_in_a_hello_leaves_nothing() {
    let mut world = World::new(1);
    let server = world.add_server(server_config());
    let from: SocketAddr = "192.0.2.1:999".parse().unwrap();
    for len in [0, 1, 31, 32, 48, 96, 500, 1100] {
        world.inject(server, from, &hello(5, &vec![0xa5; len]));
    }
    world.inject(server, from, &hello(5, &[])[..1199]);
    world.run(world.now().after(Duration::from_secs(1)), |_, _| {});
    assert_eq!(world.endpoint(server).sessions(), 0);
    assert_eq!(world.endpoint(server).stats().refusals, 8);
    assert_eq!(world.endpoint(server).stats().malformed, 1);
}

/// Replay: every packet of a session, sent again from another address a little later, changes nothing.
#[test]
fn replayed_packets_change_nothing() {
    let mut duo = Duo::connect(2, &quiet());
    let from: SocketAddr = "192.0.2.1:999".parse().unwrap();
    for round in 0..50u8 {
        duo.send(&[round; 300], SendOptions::within(ms(100)));
        duo.world.step(duo.world.now());
        let captured = duo.world.last_datagram().unwrap().to_vec();
        duo.run(ms(100));
        duo.world.inject(duo.server, from, &captured);
        duo.run(ms(100));
    }
    assert_eq!(duo.received.len(), 50);
    assert_eq!(duo.server_stats().packets_replayed, 50);
    assert_eq!(duo.server_stats().address_changes, 0);
    assert_eq!(
        duo.world
            .endpoint(duo.server)
            .remote(duo.at_server.unwrap()),
        Some(duo.world.address(duo.client))
    );
}

/// Forgery: a packet with any one bit changed does not open.
#[test]
fn forged_packets_are_counted_and_dropped() {
    let mut duo = Duo::connect(2, &quiet());
    duo.send(&[9; 100], SendOptions::default());
    duo.world.step(duo.world.now());
    let captured = duo.world.last_datagram().unwrap().to_vec();
    let from = duo.world.address(duo.client);
    for bit in 0..captured.len() * 8 {
        let mut forged = captured.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        duo.world.inject(duo.server, from, &forged);
    }
    for len in 0..captured.len() {
        duo.world.inject(duo.server, from, &captured[..len]);
    }
    duo.run(Duration::from_secs(2));
    assert_eq!(duo.received.len(), 1);
    assert!(duo.server_stats().packets_forged > 500);
    assert!(duo.closed.is_empty());
}

/// A spoofed address: packets of a session that arrive from elsewhere are tried there with no more bytes than came, and the
/// session stays where its client is.
#[test]
fn a_forwarder_cannot_move_a_session() {
    let mut duo = Duo::connect(2, &quiet());
    let elsewhere: SocketAddr = "192.0.2.7:4000".parse().unwrap();
    for round in 0..30u8 {
        duo.send(&[round; 100], SendOptions::default());
        duo.world.step(duo.world.now());
        let captured = duo.world.last_datagram().unwrap().to_vec();
        // It overtakes the original.
        duo.world.inject(duo.server, elsewhere, &captured);
        duo.run(ms(200));
    }
    assert_eq!(duo.received.len(), 30);
    let at_server = duo.at_server.unwrap();
    assert_eq!(
        duo.world.endpoint(duo.server).remote(at_server),
        Some(duo.world.address(duo.client))
    );
    assert_eq!(duo.server_stats().address_changes, 0);
}

/// Sequence wrap: more packets and blocks than 16 bits count, both ways, with a pause longer than the window.
#[test]
fn sequence_wrap_on_a_long_lived_session() {
    let mut duo = Duo::connect(2, &path(ms(2), |_| {}));
    let mut count = 0;
    for round in 0..700 {
        for _ in 0..100 {
            duo.send(&[1; 8], SendOptions::default());
            count += 1;
        }
        duo.run(ms(8));
        if round % 300 == 0 {
            duo.run(Duration::from_secs(25));
        }
    }
    duo.run(Duration::from_secs(2));
    assert_eq!(count, 70_000);
    assert_eq!(duo.received.len(), count);
    assert!(duo.closed.is_empty(), "{:?}", duo.closed);
}

/// Nobody there: one clear reason, after the handshake timeout.
#[test]
fn an_unreachable_server_is_given_up() {
    let dark = path(ms(40), |channel| {
        channel.blackouts = vec![(ms(0), Duration::from_secs(600))];
    });
    let mut duo = Duo::connect(2, &dark);
    duo.run(Duration::from_secs(10));
    assert_eq!(duo.closed, [(duo.client, CloseReason::HandshakeTimeout)]);
}

/// An application that takes nothing: the session refuses more than its bound, and loses nothing that it accepted.
#[test]
fn queues_are_bounded_and_say_so() {
    let dark = path(ms(40), |channel| {
        channel.blackouts = vec![(Duration::from_secs(2), Duration::from_secs(4))];
    });
    let mut duo = Duo::connect(2, &dark);
    let mut accepted = 0;
    let error = loop {
        match duo.world.send(
            duo.client,
            duo.at_client,
            &[4; 10_000],
            SendOptions::default(),
        ) {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 1000, "without bound");
    };
    assert!(matches!(error, SendError::Full { .. }), "{error}");
    let too_large = duo.world.send(
        duo.client,
        duo.at_client,
        &vec![0; limits::MESSAGE_MAX + 1],
        SendOptions::default(),
    );
    assert!(matches!(too_large, Err(SendError::TooLarge { .. })));
    duo.run(Duration::from_secs(30));
    assert_eq!(duo.received.len(), accepted);
    assert_eq!(duo.outcomes.len(), accepted);
}

/// An application that opens streams without end, takes back what is not there, and hands in what it did not announce: each has
/// its answer.
#[test]
fn what_an_application_gets_wrong_has_its_answer() {
    let mut duo = Duo::connect(2, &quiet());
    let (client, session) = (duo.client, duo.at_client);
    duo.world.with_endpoint(client, |endpoint, now| {
        let config = StreamConfig::new(Delivery::Latest);
        for number in 0..limits::STREAMS_MAX as u16 {
            assert_eq!(endpoint.open_stream(session, config), Ok(StreamId(number)));
        }
        let limit = limits::STREAMS_MAX;
        let too_many = endpoint.open_stream(session, config);
        assert_eq!(too_many, Err(StreamError::TooManyStreams { limit }));
        endpoint.close_stream(session, StreamId(77));
        let options = SendOptions::default();
        let closed = endpoint.send(now, session, StreamId(77), &[1], options);
        assert_eq!(closed, Err(SendError::NoStream { stream: 77 }));
        assert_eq!(endpoint.open_stream(session, config), Ok(StreamId(77)));
        for unknown in [0, 1, 1 << 16, u64::MAX] {
            let answer = endpoint.cancel(now, session, MessageId(unknown));
            assert_eq!(answer, Cancel::TooLate);
            let answer = endpoint.append(session, MessageId(unknown), &[1]);
            assert_eq!(answer, Err(SendError::NoMessage));
        }
        let message = endpoint
            .begin(now, session, StreamId(1), 10, options)
            .unwrap();
        assert_eq!(endpoint.append(session, message, &[7; 8]), Ok(8));
        assert_eq!(endpoint.append(session, message, &[7; 8]), Ok(2));
        let size = limits::MESSAGE_MAX + 1;
        let limit = limits::MESSAGE_MAX;
        let too_large = endpoint.begin(now, session, StreamId(1), size, options);
        assert_eq!(too_large, Err(SendError::TooLarge { size, limit }));
        let options = [
            options.on_time(1.0),
            options.source_symbols(65),
            options.key(1 << 62),
            options.loss_tolerance(f32::NAN),
            options.quality(0.0),
        ];
        for options in options {
            let wrong = endpoint.send(now, session, StreamId(1), &[1], options);
            assert!(
                matches!(wrong, Err(SendError::Options { .. })),
                "{options:?}"
            );
        }
    });
    duo.run(Duration::from_secs(1));
    assert_eq!(duo.received.len(), 1);
    assert_eq!(duo.received[0].2, [7; 10]);
}

/// A session that hears nothing ends by its idle timeout, with an outcome for what was under way.
#[test]
fn an_idle_session_ends_with_outcomes() {
    let dark = path(ms(40), |channel| {
        channel.blackouts = vec![(Duration::from_secs(3), Duration::from_secs(600))];
    });
    let mut duo = Duo::connect(2, &dark);
    duo.run(Duration::from_secs(2));
    duo.send(&[4; 100], SendOptions::within(ms(100)));
    duo.run(Duration::from_secs(60));
    assert_eq!(duo.outcomes.len(), 1);
    assert_eq!(duo.closed.len(), 2);
    assert!(
        duo.closed
            .iter()
            .all(|(_, why)| *why == CloseReason::IdleTimeout)
    );
    assert_eq!(duo.world.endpoint(duo.server).sessions(), 0);
}
