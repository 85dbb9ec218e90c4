//! Sessions and endpoints that stood still, or never stopped: found by a reader with a harness of random calls and hostile peers.

mod support;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual_lab::channel::{LossModel, PathSpec, RateSpec, RttSplit};
use punctual_lab::simulate::{SimulateOptions, simulate};
use punctual_lab::stats::Summary;
use punctual_lab::world::{HostId, LabAead, Moment, World};
use punctual_proto::crypto::{Aead, AeadKey, Algorithm, OpenError};
use punctual_proto::wire::{Frame, Header, Kind, TAG_LEN, Writer, classify};
use punctual_proto::{
    CloseCode, CloseReason, ConnectOptions, Delivery, Ecn, Endpoint, EndpointConfig, Event,
    Instant, SendError, SendOptions, SessionId, StreamConfig, StreamId, Uplink,
};
use support::{Duo, client_config, key, library, ms, path, server_config};

/// 100 Mbit/s over a round trip of 10 ms, of which one packet in a thousand is lost.
fn fast() -> PathSpec {
    path(ms(10), |channel| {
        channel.loss = LossModel::Uniform(0.001);
        channel.rate = Some(RateSpec::constant(100_000_000, 200_000));
    })
}

/// Packets that the server sent in each half second of eight, with never less than two messages of 32 MB before it.
fn download(uplink: Uplink) -> Vec<u64> {
    let server = EndpointConfig {
        uplink,
        ..server_config()
    };
    let mut duo = Duo::connect_with(5, &fast(), server, client_config());
    let (server, session) = (duo.server, duo.at_server.expect("it is connected"));
    let content: Arc<[u8]> = vec![7; 32 << 20].into();
    let mut sent = Vec::new();
    for _ in 0..16 {
        let before = duo.server_stats().packets_sent;
        for _ in 0..2 {
            let content = content.clone();
            duo.world.with_endpoint(server, |endpoint, now| {
                let stream = StreamId::DEFAULT;
                // Refused when enough waits.
                let _ = endpoint.send_shared(
                    now,
                    session,
                    stream,
                    Arc::new(content),
                    SendOptions::default(),
                );
            });
        }
        duo.run(ms(500));
        sent.push(duo.server_stats().packets_sent - before);
    }
    sent
}

/// Everything behind a lost packet was remembered for three seconds, and nothing left any more, acknowledgements included, once 16,384 packets were: with
/// nothing under way, nothing woke the session either.
#[test]
fn a_lost_packet_does_not_stop_a_fast_session() {
    let sent = download(Uplink::Unknown);
    assert!(sent[2..].iter().all(|packets| *packets > 1000), "{sent:?}");
}

/// A regression: where a second download took over from the first, the queue grew by more than the round time knew, and 120 packets were taken for lost.
#[test]
fn a_download_after_another_takes_nothing_for_lost() {
    let mut duo = Duo::connect(
        1,
        &path(ms(100), |channel| {
            channel.rate = Some(RateSpec::constant(50_000_000, 1_000_000));
        }),
    );
    let (server, session) = (duo.server, duo.at_server.expect("it is connected"));
    for _ in 0..2 {
        let content: Arc<[u8]> = vec![7; 32 << 20].into();
        let sent = duo.world.with_endpoint(server, |endpoint, now| {
            let (stream, options) = (StreamId::DEFAULT, SendOptions::default());
            endpoint.send_shared(now, session, stream, Arc::new(content), options)
        });
        sent.expect("there is room");
    }
    duo.run(Duration::from_secs(8));
    let stats = duo.server_stats();
    assert!(stats.messages_on_time > 0, "{stats:?}");
    assert_eq!(stats.packets_lost, 0);
}

/// The same session in the line for a known uplink: it said that it had something, had nothing, and was put into the line again, for ever.
#[test]
fn who_has_nothing_after_all_leaves_the_line() {
    let sent = download(Uplink::BytesPerSecond(9_300_000));
    assert!(sent[2..].iter().all(|packets| *packets > 1000), "{sent:?}");
}

/// A HELLO could say that its session ends after a millisecond of silence: it was not counted as half open any more, and cookies were never asked for.
#[test]
fn a_short_idle_timeout_is_no_way_around_cookies() {
    let mut server = Endpoint::new(server_config(), [9; 32]);
    let mut buffer = [0; 2048];
    let (mut now, mut events) = (Instant::from_nanos(1_000_000_000), 0);
    let at = |now: Instant| now + Duration::from_millis(1);
    for number in 0..500_u32 {
        let mut seed = [1; 32];
        seed[..4].copy_from_slice(&number.to_le_bytes());
        let hasty = EndpointConfig {
            idle_timeout: Duration::from_millis(1),
            ..EndpointConfig::client(
                Arc::new(LabAead),
                library(punctual_policy::PolicyKind::default()),
            )
        };
        let mut client = Endpoint::new(hasty, seed);
        let options = ConnectOptions {
            remote: "10.0.0.2:1".parse().unwrap(),
            server_key: key().public(),
            token: None,
        };
        client.connect(now, &options).expect("there is room");
        let hello = client.poll_transmit(now, &mut buffer).expect("a HELLO");
        let mut hello = buffer[..hello.len].to_vec();
        let from = format!("10.1.{}.{}:77", number / 250, number % 250);
        server.handle_datagram(
            now,
            from.parse::<SocketAddr>().unwrap(),
            Ecn::NotEct,
            &mut hello,
        );
        now = at(now);
        server.handle_timeout(now);
        while server.poll_transmit(now, &mut buffer).is_some() {}
        while server.poll_event().is_some() {
            events += 1;
        }
    }
    assert!(server.sessions() <= 64, "{}", server.sessions());
    assert_eq!(events, 0, "nobody was ever connected");
}

/// A pair whose server takes no messages.
fn untaken(seed: u64) -> (Duo, HostId, SessionId) {
    let mut duo = Duo::connect(seed, &path(ms(40), |_| {}));
    let (server, session) = (duo.server, duo.at_server.expect("it is connected"));
    duo.world
        .with_endpoint(server, |endpoint, _| endpoint.hold_messages(session, true));
    (duo, server, session)
}

/// Who refused all that came said nothing any more, and was taken for gone.
#[test]
fn who_takes_no_messages_keeps_its_session() {
    let (mut duo, _, _) = untaken(6);
    let at_client = duo.at_client;
    for _ in 0..8000 {
        let client = duo.client;
        duo.world.with_endpoint(client, |endpoint, now| {
            let _ = endpoint.send(
                now,
                at_client,
                StreamId::DEFAULT,
                &[5; 100],
                SendOptions::default(),
            );
        });
        duo.run(ms(10));
    }
    assert_eq!(duo.closed.len(), 0, "{:?}", duo.closed);
    assert!(duo.server_stats().packets_refused > 0);
}

/// A regression: nothing told a sender that its peer's application was slower than the path but refused packets, which are losses to it (over loopback 16 MB took
/// a third more for them).   Method: a download over 100 Mbit/s, and an application that takes nothing for 0.4 s of each half second.
#[test]
fn a_slow_application_slows_the_sender() {
    let mut duo = Duo::connect(
        10,
        &path(ms(10), |channel| {
            channel.rate = Some(RateSpec::constant(100_000_000, 200_000));
        }),
    );
    let (client, server, at_client) = (duo.client, duo.server, duo.at_client);
    let session = duo.at_server.expect("it is connected");
    let content: Arc<[u8]> = vec![7; 32 << 20].into();
    let sent = duo.world.with_endpoint(server, |endpoint, now| {
        let (stream, options) = (StreamId::DEFAULT, SendOptions::default());
        endpoint.send_shared(now, session, stream, Arc::new(content), options)
    });
    sent.expect("there is room");
    for _ in 0..8 {
        for (is_held, span) in [(true, ms(400)), (false, ms(100))] {
            duo.world.with_endpoint(client, |endpoint, _| {
                endpoint.hold_messages(at_client, is_held);
            });
            duo.run(span);
        }
    }
    let stats = duo.stats();
    assert_eq!(stats.packets_refused, 0);
    // As much as a stall leaves room for, and more: 32 MB are 27,000 packets.
    assert!(stats.packets_received > 18_000, "{stats:?}");
}

/// It may be looked at once a session has ended, and nothing follows its last event.
#[test]
fn nothing_follows_the_end() {
    let mut duo = Duo::connect(7, &path(ms(40), |_| {}));
    let (client, session) = (duo.client, duo.at_client);
    let events = duo.world.with_endpoint(client, |endpoint, now| {
        let mut sent = 0;
        loop {
            match endpoint.send(
                now,
                session,
                StreamId::DEFAULT,
                b"x",
                SendOptions::default(),
            ) {
                Ok(_) => sent += 1,
                Err(SendError::Full { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(sent > 100);
        endpoint.close(now, session, CloseCode::DONE, "");
        assert!(
            endpoint
                .forecast(now, session, 10, &SendOptions::default())
                .is_err()
        );
        std::iter::from_fn(|| endpoint.poll_event()).collect::<Vec<_>>()
    });
    let last = events.last().map(|(_, event)| event);
    assert!(matches!(last, Some(Event::Closed { .. })), "{last:?}");
}

/// A session that is finished before it is open never opens.
#[test]
fn a_session_that_is_finished_while_it_connects_ends() {
    let mut client = Endpoint::new(client_config(), [3; 32]);
    let now = Instant::from_nanos(1_000_000_000);
    let options = ConnectOptions {
        remote: "10.0.0.2:1".parse().unwrap(),
        server_key: key().public(),
        token: None,
    };
    let session = client.connect(now, &options).expect("there is room");
    client.finish(now, session, CloseCode::DONE, "");
    assert!(matches!(
        client.poll_event(),
        Some((_, Event::Closed { .. }))
    ));
}

/// Four runs of blocks that were given up were told in a round trip; where a lossy path makes more, blocks half received filled the receiver's room, and it
/// refused all that was new (nothing was delivered after forty seconds, and the session ended). Beside a larger message runs were not joined: a download stood still
/// for ten seconds, and packets left three times.
#[test]
fn what_is_given_up_takes_no_room_at_the_peer() {
    for has_download in [false, true] {
        given_up_takes_no_room(has_download);
    }
}

fn given_up_takes_no_room(has_download: bool) {
    let lossy = path(ms(100), |channel| channel.loss = LossModel::Uniform(0.2));
    let mut duo = Duo::connect(8, &lossy);
    let (client, session) = (duo.client, duo.at_client);
    let stream = duo.world.with_endpoint(client, |endpoint, now| {
        if has_download {
            let content: Arc<[u8]> = vec![7; 64 << 20].into();
            let (stream, options) = (StreamId::DEFAULT, SendOptions::default());
            let download = endpoint.send_shared(now, session, stream, Arc::new(content), options);
            download.expect("there is room");
        }
        endpoint.open_stream(session, StreamConfig::new(Delivery::Unreliable))
    });
    let stream = stream.expect("there is room");
    let mut delivered = Vec::new();
    for _ in 0..6 {
        let before = duo.received.len();
        for _ in 0..4000 {
            duo.world.with_endpoint(client, |endpoint, now| {
                let _ = endpoint.send(now, session, stream, &[7; 2400], SendOptions::default());
            });
            duo.run(Duration::from_micros(2500));
        }
        delivered.push(duo.received.len() - before);
    }
    assert_eq!(duo.closed.len(), 0, "{:?}", duo.closed);
    assert_eq!(duo.server_stats().packets_refused, 0);
    assert!(
        delivered.iter().all(|messages| *messages > 1800),
        "{delivered:?}"
    );
}

/// A regression: two sides that ended at the same moment answered each other's CLOSE for three round times.
#[test]
fn who_ends_together_does_not_answer_each_other() {
    let mut duo = Duo::connect(3, &path(ms(2), |_| {}));
    duo.run(Duration::from_secs(1));
    let before = duo.world.traffic().sent;
    let ends = [
        (duo.client, duo.at_client),
        (duo.server, duo.at_server.expect("it is connected")),
    ];
    for (host, session) in ends {
        duo.world.with_endpoint(host, |endpoint, now| {
            endpoint.close(now, session, CloseCode(1), "enough");
        });
    }
    duo.run(Duration::from_secs(2));
    assert_eq!(duo.world.traffic().sent - before, 2);
}

/// Four forged RETRYs, and a client took no other, not its server's either: they can delay it, and no more.
#[test]
fn forged_retries_do_not_shut_a_client_out() {
    let mut server = server_config();
    server.server.as_mut().expect("it is one").cookie_threshold = 0;
    let mut world = World::new(9);
    let server = world.add_server(server);
    let client = world.add_client(client_config(), &path(ms(40), |_| {}));
    world
        .connect(client, server, key().public())
        .expect("there is room");
    world.run(Moment(1_000_000), |_, _| {});
    let id = world.last_datagram().expect("a HELLO")[5..9].to_vec();
    for forged in 0..4 {
        let mut retry = vec![0x81, 0, 0, 0, 1];
        retry.extend(&id);
        retry.extend([1, forged]);
        let from = world.address(server);
        world.inject(client, from, &retry);
        world.run(Moment(2_000_000 + u64::from(forged)), |_, _| {});
    }
    let mut is_connected = false;
    world.run(Moment(5_000_000_000), |_, happening| {
        is_connected |=
            happening.host == client && matches!(happening.event, Event::Connected { .. });
    });
    assert!(is_connected);
}

/// A regression: what met a burst of losses was sent in each of the hundred rounds that fit (24 % of redundancy against 1 % of losses).
/// Method: a round trip of 1 ms, bursts of 50 ms, 120 ms of time; beside a policy that goes on at once.
#[test]
fn a_blackout_is_waited_out() {
    let mut network = PathSpec::fixed("a test", ms(1), RttSplit::EVEN);
    Arc::make_mut(&mut network.forward).loss = LossModel::Gilbert {
        loss_share: 0.01,
        mean_burst: ms(50),
        loss_in_good: 0.0,
        loss_in_bad: 1.0,
    };
    let options = SimulateOptions {
        symbols: Some(1),
        message_bytes: 800,
        sessions: 4,
        interval: ms(33),
        messages: 20_000,
        policies: ["steered", "retransmit"]
            .map(|name| name.parse().expect("a policy"))
            .into(),
        ..SimulateOptions::new(network, ms(120))
    };
    let results = simulate(&options, |_| {}).expect("sessions begin");
    let [steered, at_once] = [0, 1].map(|policy: usize| &results[policy].summary);
    assert!(at_once.recovery_overhead > 0.2, "{at_once:?}");
    assert!(steered.recovery_overhead < 0.12, "{steered:?}");
    assert!(steered.late_share <= at_once.late_share, "{steered:?}");
    // What comes after the burst ends the wait.
    let slow = |summary: &Summary| summary.latency_ms.p99_5.expect("they arrive");
    assert!(slow(steered) < slow(at_once) + 8.0, "{steered:?}");
}

/// What is begun and too late goes to the back, with what it holds of the room for large messages: eight that wait for that room hid it
/// for ever.
#[test]
fn large_messages_go_on_after_an_outage() {
    let mut dark = path(ms(40), |channel| {
        channel.rate = Some(RateSpec::constant(25_000_000, 100_000));
    });
    Arc::make_mut(&mut dark.forward).blackouts =
        vec![(Duration::from_secs(10), Duration::from_secs(12))];
    let mut duo = Duo::connect(1, &dark);
    for _ in 0..450 {
        duo.send(&[1; 80_000], SendOptions::within(ms(150)));
        duo.run(ms(66));
    }
    duo.run(Duration::from_secs(60));
    assert_eq!(duo.received.len(), 450);
}

/// The same with block numbers: the oldest block is of what has no deadline, and waits behind messages that have one and wait
/// for its number.
#[test]
fn a_block_behind_more_urgent_ones_does_not_end_the_session() {
    let mut duo = Duo::connect(
        1,
        &path(ms(40), |channel| {
            channel.rate = Some(RateSpec::constant(4_000_000, 100_000));
        }),
    );
    duo.send(&[1; 60_000], SendOptions::default());
    duo.run(ms(5));
    let mut accepted = 1;
    for _ in 0..4000 {
        let session = duo.at_client;
        accepted += duo.world.with_endpoint(duo.client, |endpoint, now| {
            let options = SendOptions::within(Duration::from_secs(5));
            let send = || endpoint.send(now, session, StreamId::DEFAULT, &[2; 450], options);
            std::iter::repeat_with(send)
                .take_while(Result::is_ok)
                .count()
        });
        duo.run(ms(5));
    }
    duo.run(Duration::from_secs(60));
    assert_eq!(duo.received.len(), accepted);
}

/// Messages that had arrived counted among the outcomes that `send` must have room for: who answers each message on the thread that takes
/// it stood still, since what would have made room was its own to take.
#[test]
fn what_has_arrived_takes_no_room_to_send() {
    let (mut duo, server, session) = untaken(6);
    for _ in 0..6000 {
        let _ = duo
            .world
            .send(duo.client, duo.at_client, &[5; 100], SendOptions::default());
        duo.run(ms(5));
    }
    assert!(duo.server_stats().packets_refused > 0, "it is full");
    let sent = duo
        .world
        .send(server, session, &[5; 100], SendOptions::default());
    assert!(sent.is_ok(), "{sent:?}");
}

/// Its end stayed behind the messages that an application held back, which may never ask for them again.
#[test]
fn the_end_of_a_session_is_told_to_who_takes_no_messages() {
    let (mut duo, server, _) = untaken(7);
    for _ in 0..100 {
        duo.send(&[5; 100], SendOptions::default());
    }
    duo.run(ms(500));
    assert_eq!((duo.received.len(), duo.closed.len()), (0, 0));
    let at_client = duo.at_client;
    duo.world.with_endpoint(duo.client, |endpoint, now| {
        endpoint.close(now, at_client, CloseCode::DONE, "");
    });
    duo.run(Duration::from_secs(2));
    let at_server = |(host, _): &&(HostId, CloseReason)| *host == server;
    assert_eq!(duo.closed.iter().filter(at_server).count(), 1);
    assert_eq!(duo.received.len(), 100);
    assert_eq!(duo.world.endpoint(server).sessions(), 0);
}

/// What a side seals with: the key, and the nonce of its first packet.
type Told = (Algorithm, Vec<u8>, [u8; 12]);

/// Tells it.
#[derive(Clone, Default)]
struct TellingAead(Arc<Mutex<Option<Told>>>);

struct TellingKey(TellingAead, Algorithm, Vec<u8>);

impl Aead for TellingAead {
    fn key(&self, algorithm: Algorithm, key: &[u8]) -> Box<dyn AeadKey> {
        Box::new(TellingKey(self.clone(), algorithm, key.to_vec()))
    }

    fn preferred(&self) -> Algorithm {
        LabAead.preferred()
    }
}

impl AeadKey for TellingKey {
    fn seal(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> [u8; 16] {
        let Self(TellingAead(told), algorithm, key) = self;
        told.lock()
            .unwrap()
            .get_or_insert_with(|| (*algorithm, key.clone(), nonce));
        LabAead.key(*algorithm, key).seal(nonce, header, buffer)
    }

    fn open(&self, nonce: [u8; 12], header: &[u8], buffer: &mut [u8]) -> Result<usize, OpenError> {
        LabAead.key(self.1, &self.2).open(nonce, header, buffer)
    }
}

/// A regression: a session that had used up its key (a peer asks for eight million acknowledgements, and acknowledges none) sends nothing more, but wanted to be woken
/// for what it would have sent, at a time in the past, again and again.
#[test]
fn who_has_used_up_its_key_sleeps() {
    let mut server = Endpoint::new(server_config(), [9; 32]);
    let telling = TellingAead::default();
    let client = EndpointConfig {
        aead: Arc::new(telling.clone()),
        ..client_config()
    };
    let mut client = Endpoint::new(client, [1; 32]);
    let [at_client, at_server]: [SocketAddr; 2] =
        ["10.0.0.1:1", "10.0.0.2:1"].map(|at| at.parse().unwrap());
    let mut now = Instant::from_nanos(1_000_000_000);
    let options = ConnectOptions {
        remote: at_server,
        server_key: key().public(),
        token: None,
    };
    client.connect(now, &options).expect("there is room");
    let (mut buffer, mut first) = ([0; 2048], None);
    while first.is_none() {
        while let Some(sent) = client.poll_transmit(now, &mut buffer) {
            let datagram = &mut buffer[..sent.len];
            if classify(datagram) == Kind::Protected {
                first = first.or_else(|| Header::decode(datagram).ok());
            }
            server.handle_datagram(now, at_client, Ecn::Ect0, datagram);
        }
        while let Some(sent) = server.poll_transmit(now, &mut buffer) {
            client.handle_datagram(now, at_server, Ecn::Ect0, &mut buffer[..sent.len]);
        }
    }
    let (algorithm, key, iv) = telling.0.lock().unwrap().clone().expect("it has sealed");
    let (key, to) = (LabAead.key(algorithm, &key), first.unwrap().destination);
    let mut ask = |server: &mut Endpoint, now: Instant, number: u64, from: SocketAddr| {
        let mut datagram = [0; 60];
        let mut writer = Writer::new(&mut datagram[..60 - TAG_LEN]);
        Header::for_number(to, false, number, number.checked_sub(1)).encode(&mut writer);
        let header = writer.len();
        Frame::Ping.encode(&mut writer);
        let mut nonce = iv;
        for (byte, part) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= part;
        }
        let (head, content) = datagram.split_at_mut(header);
        let (content, tag) = content.split_at_mut(60 - TAG_LEN - header);
        tag.copy_from_slice(&key.seal(nonce, head, content));
        server.handle_datagram(now, from, Ecn::Ect0, &mut datagram);
        let mut answers = 0;
        while server.poll_transmit(now, &mut buffer).is_some() {
            answers += 1;
        }
        answers
    };
    let mut asked = 100;
    let mut silent = 0;
    while silent < 100 {
        asked += 1;
        now = now + Duration::from_micros(20);
        if server.poll_timeout().is_some_and(|at| at <= now) {
            server.handle_timeout(now);
        }
        let answers = ask(&mut server, now, asked, at_client);
        silent = if answers == 0 { silent + 1 } else { 0 };
        assert!(asked < 9 << 20, "it is not stopped");
    }
    ask(&mut server, now, asked + 1, "10.0.0.3:1".parse().unwrap());
    for _ in 0..3 {
        now = now + Duration::from_micros(20);
        server.handle_timeout(now);
        while server.poll_transmit(now, &mut [0; 2048]).is_some() {}
        while server.poll_event().is_some() {}
    }
    let next = server.poll_timeout().expect("it is idle at last");
    assert!(next > now, "{next:?} {now:?} after {asked}");
}
