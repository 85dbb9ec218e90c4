//! How sessions are closed: once, soon, and for good.

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use punctual_proto::{
    CloseCode, CloseReason, ConnectOptions, Ecn, Endpoint, Event, Instant, SendOptions, StreamId,
};
use support::{Duo, ms, path};

/// All that an endpoint has to send now.
fn datagrams(endpoint: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2048];
    core::iter::from_fn(|| {
        let len = endpoint.poll_transmit(now, &mut buffer)?.len;
        Some(buffer[..len].to_vec())
    })
    .collect()
}

/// A regression: a CLOSE behind an acknowledgement was taken for something else, and answered with another CLOSE.
#[test]
fn two_that_close_together_do_not_answer_each_other() {
    let address = |host| SocketAddr::from(([10, 0, 0, host], 1));
    let now = Instant::from_micros(1_000_000);
    let mut ends = [
        Endpoint::new(support::client_config(), [1; 32]),
        Endpoint::new(support::server_config(), [2; 32]),
    ];
    // What both have to send now reaches the other.
    let exchange = |ends: &mut [Endpoint; 2]| {
        let sent = ends.each_mut().map(|end| datagrams(end, now));
        for (from, datagrams) in sent.iter().enumerate() {
            for datagram in datagrams {
                let remote = address(from as u8);
                ends[1 - from].handle_datagram(now, remote, Ecn::NotEct, &mut datagram.clone());
            }
        }
        sent.map(|datagrams| datagrams.len())
    };
    let options = ConnectOptions {
        remote: address(1),
        server_key: support::key().public(),
        token: None,
    };
    ends[0].connect(now, &options).expect("there is room");
    while exchange(&mut ends) != [0, 0] {}
    let sessions = ends.each_mut().map(|end| {
        let (session, event) = end.poll_event().expect("it is connected");
        assert!(matches!(event, Event::Connected { .. }));
        session
    });
    // Messages cross; each is there, and not yet answered for, when both sides close.
    let stream = StreamId::DEFAULT;
    for (end, session) in ends.iter_mut().zip(sessions) {
        end.send(now, session, stream, &[1; 100], SendOptions::default())
            .expect("there is room");
    }
    assert_eq!(exchange(&mut ends), [1, 1]);
    for (end, session) in ends.iter_mut().zip(sessions) {
        end.close(now, session, CloseCode::DONE, "");
    }
    assert_eq!(exchange(&mut ends), [1, 1]);
    assert_eq!(exchange(&mut ends), [0, 0]);
}

/// A regression: a client that came late with its first packet was a slow path, and its session was kept three times as long after it was closed: 19 s.
#[test]
fn a_closed_session_goes_soon() {
    let slow = path(ms(40), |channel| {
        channel.blackouts = vec![(ms(30), ms(4_600))];
    });
    let mut duo = Duo::connect(1, &slow);
    while duo.at_server.is_none() {
        duo.run(ms(1));
    }
    let at_server = duo.at_server.expect("it is connected");
    let server = duo.server;
    let report = duo.world.with_endpoint(server, |endpoint, now| {
        let report = endpoint.path_report(now, at_server);
        endpoint.close(now, at_server, CloseCode::DONE, "");
        report.expect("it is there")
    });
    assert!(report.rtt > Duration::from_secs(1), "{:?}", report.rtt);
    duo.run(ms(2_900));
    assert_eq!(duo.world.endpoint(server).sessions(), 1);
    duo.run(ms(200));
    assert_eq!(duo.world.endpoint(server).sessions(), 0);
    let by_peer = |(_, why): &(_, CloseReason)| matches!(why, CloseReason::Peer { .. });
    assert!(duo.closed.iter().any(by_peer), "{:?}", duo.closed);
}

/// A regression: a packet that was refused could be sent again by whoever had seen it, for ever, and a session whose peer was gone lived on.
#[test]
fn a_refused_packet_is_no_sign_of_life_for_ever() {
    let mut duo = Duo::connect(6, &path(ms(40), |_| {}));
    let (client, server) = (duo.client, duo.server);
    let at_server = duo.at_server.expect("it is connected");
    // Its application takes no messages.
    duo.world.with_endpoint(server, |endpoint, _| {
        endpoint.hold_messages(at_server, true);
    });
    let from = duo.world.address(client);
    let send = |duo: &mut Duo| {
        let _ = duo
            .world
            .send(client, duo.at_client, &[5; 100], SendOptions::default());
        duo.world.step(duo.world.now());
        duo.world.last_datagram().expect("it was sent").to_vec()
    };
    let mut refused = Vec::new();
    while duo.server_stats().packets_refused == 0 {
        refused = send(&mut duo);
        duo.run(ms(30));
    }
    // The client is gone without a word.
    duo.world
        .with_endpoint(client, |endpoint, _| endpoint.reset());
    let before = duo.server_stats().packets_refused;
    for second in 0..60 {
        duo.world.inject(server, from, &refused);
        duo.run(Duration::from_secs(1));
        if second == 9 {
            assert!(duo.server_stats().packets_refused >= before + 10);
        }
    }
    let idle = (server, CloseReason::IdleTimeout);
    assert!(duo.closed.contains(&idle), "{:?}", duo.closed);
}
