//! Sessions that their server knows nothing of any more: their clients hear of it, from nobody else and about nothing else.

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use punctual_proto::wire::Gone;
use punctual_proto::{CloseReason, Ecn, Outcome, SendOptions};
use support::{Duo, ms, path};

fn restart(duo: &mut Duo) {
    let server = duo.server;
    duo.world.with_endpoint(server, |server, _| server.reset());
}

/// What the server answers to the client's newest packet, once it has restarted.
fn genuine(duo: &mut Duo) -> Gone {
    restart(duo);
    duo.send(&[1; 100], SendOptions::default());
    duo.run(ms(30));
    Gone::decode(duo.world.last_datagram().expect("it answered")).expect("it is a GONE")
}

/// Goal: a client that sends knows within a round trip that its server has restarted, and what becomes of its messages.
#[test]
fn a_restarted_server_says_so() {
    let mut duo = Duo::connect(1, &path(ms(40), |_| {}));
    restart(&mut duo);
    let lost = duo.send(&[1; 100], SendOptions::within(ms(100)));
    duo.run(ms(41));
    assert_eq!(duo.closed, [(duo.client, CloseReason::Gone)]);
    assert!(matches!(
        duo.outcome_of(lost),
        Some(Outcome::Dropped { .. })
    ));
    let stats = duo.world.endpoint(duo.server).stats();
    assert_eq!((stats.unknown_session, stats.gone), (1, 1));
    // Nothing of it is left, and the next session is one like any other.
    assert_eq!(duo.world.endpoint(duo.client).sessions(), 0);
    let (client, server) = (duo.client, duo.server);
    duo.at_client = (duo.world)
        .connect(client, server, support::key().public())
        .unwrap();
    duo.run(ms(100));
    duo.send(&[2; 100], SendOptions::within(ms(100)));
    duo.run(ms(100));
    assert_eq!(duo.received.len(), 1);
}

/// Goal: so does one that only watches, well before the idle timeout: it asks when it hears nothing.
#[test]
fn who_only_watches_hears_of_a_restart() {
    let mut duo = Duo::connect(1, &path(ms(40), |_| {}));
    let (server, at_server) = (duo.server, duo.at_server.expect("it is connected"));
    for _ in 0..100 {
        (duo.world)
            .send(server, at_server, &[7; 100], SendOptions::default())
            .unwrap();
        duo.run(ms(33));
    }
    restart(&mut duo);
    duo.run(Duration::from_secs(1));
    assert_eq!(duo.closed, [(duo.client, CloseReason::Gone)]);
}

/// Forged, from elsewhere, of another session: nobody else ends a session so. And a server that knows a session never says that it does not.
#[test]
fn only_its_server_ends_a_session_so() {
    let connected = || Duo::connect(1, &path(ms(40), |_| {}));
    // (Equal seeds: the same ids, addresses and server key.)
    let gone = genuine(&mut connected());
    let mut duo = connected();
    let server = duo.world.address(duo.server);
    let elsewhere: SocketAddr = "192.0.2.7:4000".parse().unwrap();
    for bit in 8..Gone::LEN * 8 {
        let mut forged = gone.encode();
        forged[bit / 8] ^= 1 << (bit % 8);
        duo.world.inject(duo.client, server, &forged);
    }
    for len in 0..Gone::LEN {
        duo.world.inject(duo.client, server, &gone.encode()[..len]);
    }
    duo.world.inject(duo.client, elsewhere, &gone.encode());
    // Nor does a server listen to it.
    duo.world.inject(duo.server, server, &gone.encode());
    duo.send(&[1; 100], SendOptions::default());
    duo.run(ms(100));
    assert_eq!((duo.closed.len(), duo.received.len()), (0, 1));
    // A packet of the session that somebody else has changed, and one from another address.
    let from = duo.world.address(duo.client);
    let mut packet = duo.world.last_datagram().expect("they talk").to_vec();
    packet[1..5].copy_from_slice(&gone.source.0.to_be_bytes());
    for from in [from, elsewhere] {
        duo.world.inject(duo.server, from, &packet);
    }
    assert_eq!(duo.world.endpoint(duo.server).stats().gone, 0);
    duo.world.inject(duo.client, server, &gone.encode());
    duo.run(ms(1));
    assert_eq!(duo.closed, [(duo.client, CloseReason::Gone)]);
}

/// Whoever asks another server of the same key for a session that it has seen gets another token than the session's client was given.
#[test]
fn a_token_is_for_an_address() {
    let connected = || Duo::connect(1, &path(ms(40), |_| {}));
    let gone = genuine(&mut connected());
    let mut other = connected();
    restart(&mut other);
    let mut asks = vec![0xa0; 40];
    asks[1..5].copy_from_slice(&gone.source.0.to_be_bytes());
    let mut answer = vec![0; 1500];
    let transmit = other.world.with_endpoint(other.server, |server, now| {
        let thief: SocketAddr = "192.0.2.7:4000".parse().unwrap();
        server.handle_datagram(now, thief, Ecn::NotEct, &mut asks);
        server.poll_transmit(now, &mut answer).expect("it answers")
    });
    let told = Gone::decode(&answer[..transmit.len]).expect("it is a GONE");
    assert_eq!(told.source, gone.source);
    assert_ne!(told.token, gone.token);
}

/// Answers are smaller than what they answer, few enough a second, and a client gives none: two ends cannot keep each other busy.
#[test]
fn answers_to_strangers_are_few_and_small() {
    let mut duo = Duo::connect(1, &path(ms(40), |_| {}));
    let from: SocketAddr = "192.0.2.7:4000".parse().unwrap();
    let hosts = [duo.server, duo.client];
    for host in hosts {
        for i in 0..20_000u32 {
            // The smallest packet of a session.
            let mut packet = [0xa0; 23];
            packet[1..5].copy_from_slice(&(i << 8 & 0x03ff_ffff).to_be_bytes());
            duo.world.inject(host, from, &packet);
        }
    }
    duo.run(ms(1));
    const { assert!(Gone::LEN < 23) };
    let [server, client] = hosts.map(|host| duo.world.endpoint(host).stats());
    assert!((1..=8192).contains(&server.gone), "{}", server.gone);
    assert_eq!(client.gone, 0);
}
