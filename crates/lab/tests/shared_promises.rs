//! Promises that several receivers share: a message goes to all of them, and so many of all copies are to be on time.

mod support;

use std::sync::Arc;

use punctual_lab::channel::{LossModel, PathSpec};
use punctual_lab::simulate::{SimulateOptions, simulate};
use punctual_lab::world::{Forward, Happening, Moment, World};
use punctual_policy::PolicyKind;
use punctual_proto::{
    Delivery, EndpointConfig, Event, Outcome, Promise, PromiseGroup, SendOptions, SessionId,
    StreamConfig, StreamId,
};
use support::{client_config, key, library, ms, path, server_config};

/// Receivers: as many with good paths as with bad ones.
const RECEIVERS: usize = 8;
const MESSAGES: u64 = 6000;
const TARGET: f64 = 0.01;
/// Share of packets lost towards the good and the bad ones.
const LOSSES: [f64; 2] = [0.005, 0.08];

/// Whose promise it is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Whose {
    Each,
    All,
    Group,
}

/// What came of the copies.
#[derive(Debug, Default)]
struct Copies {
    /// By receivers with good paths, and with bad ones.
    late: [f64; 2],
    /// Symbols sent for each that was needed, less 1.
    overhead: f64,
}

/// A message each 50 ms to all receivers, of four symbols, with time for one round.
fn broadcast(whose: Whose) -> Copies {
    let mut world = World::new(1).with_forward(Forward::ToClient);
    let config = EndpointConfig {
        policies: library(PolicyKind::Steered),
        promise: match whose {
            Whose::All => Promise::AllSessions,
            Whose::Each | Whose::Group => Promise::EachStream,
        },
        ..server_config()
    };
    let server = world.add_server(config);
    let mut addresses = Vec::new();
    for receiver in 0..RECEIVERS {
        let client = world.add_client(client_config(), &to_receiver(receiver));
        world
            .connect(client, server, key().public())
            .expect("there is room");
        addresses.push(world.address(client));
    }
    let mut sessions: Vec<SessionId> = Vec::new();
    let mut late = [0_u64; 2];
    let mut is_bad = std::collections::BTreeMap::new();
    let stream = StreamConfig::new(Delivery::Reliable).number(7);
    let stream = match whose {
        Whose::Group => stream.group(PromiseGroup(42)),
        Whose::Each | Whose::All => stream,
    };
    for message in 0..MESSAGES + 100 {
        let until = Moment::default().after(ms(500) + ms(50) * message as u32);
        world.run(until, |world, happening| {
            let Happening {
                host,
                session,
                event,
                ..
            } = happening;
            match event {
                Event::Connected { .. } if host == server => {
                    let remote = world.endpoint(host).remote(session);
                    let receiver = addresses.iter().position(|own| Some(*own) == remote);
                    is_bad.insert(session, receiver.expect("a client") % 2);
                    sessions.push(session);
                    let opened = world
                        .with_endpoint(host, |endpoint, _| endpoint.open_stream(session, stream));
                    assert_eq!(opened, Ok(StreamId(7)));
                }
                Event::Outcome { outcome, .. } if host == server => {
                    let is_late = !matches!(outcome, Outcome::OnTime { .. });
                    late[is_bad[&session]] += u64::from(is_late);
                }
                _ => {}
            }
        });
        if message >= MESSAGES {
            continue;
        }
        assert_eq!(sessions.len(), RECEIVERS);
        let options = SendOptions::within(ms(100)).on_time(1.0 - TARGET as f32);
        let options = SendOptions {
            source_symbols: Some(4),
            ..options
        };
        for &session in &sessions {
            let sent = world.with_endpoint(server, |endpoint, now| {
                endpoint.send(now, session, StreamId(7), &[1; 1000], options)
            });
            sent.expect("there is room");
        }
    }
    let stats = sessions
        .iter()
        .filter_map(|&session| world.endpoint(server).session_stats(session));
    let (sent, needed) = stats.fold((0, 0), |(sent, needed), stats| {
        (sent + stats.symbols_sent, needed + stats.source_symbols)
    });
    let copies = MESSAGES as f64 * RECEIVERS as f64 / 2.0;
    Copies {
        late: late.map(|late| late as f64 / copies),
        overhead: sent as f64 / needed as f64 - 1.0,
    }
}

fn to_receiver(receiver: usize) -> PathSpec {
    let mut path = path(ms(80), |_| {});
    Arc::make_mut(&mut path.forward).loss = LossModel::Uniform(LOSSES[receiver % 2]);
    path
}

/// Goal: the share is kept over all copies, for less than when each receiver's is kept, and nobody is abandoned.
#[test]
fn a_promise_that_is_shared_is_kept_for_less() {
    let each = broadcast(Whose::Each);
    for late in each.late {
        assert!(late <= 1.25 * TARGET, "{each:?}");
    }
    for whose in [Whose::All, Whose::Group] {
        let shared = broadcast(whose);
        let late = f64::midpoint(shared.late[0], shared.late[1]);
        assert!((0.6 * TARGET..=1.25 * TARGET).contains(&late), "{shared:?}");
        assert!(
            shared.overhead < 0.995 * each.overhead,
            "{shared:?} {each:?}"
        );
        for late in shared.late {
            assert!(late <= 10.0 * TARGET, "{shared:?}");
        }
    }
}

/// Goal: sessions too short to learn much by themselves learn together, and `simulate` can say so.   Method: a hundred messages of each of
/// 200 sessions, with one round and 2 % lost.
#[test]
fn short_sessions_with_one_promise_learn_together() {
    let play = |promise| {
        let mut network = path(ms(60), |_| {});
        Arc::make_mut(&mut network.forward).loss = LossModel::Uniform(0.02);
        let options = SimulateOptions {
            symbols: Some(2),
            sessions: 200,
            messages: 20_000,
            promise,
            ..SimulateOptions::new(network, ms(70))
        };
        simulate(&options, |_| {})
            .expect("sessions begin")
            .remove(0)
            .summary
    };
    let (each, all) = (play(Promise::EachStream), play(Promise::AllSessions));
    for summary in [&each, &all] {
        assert!(summary.late_share_95.low <= 0.001, "{summary:?}");
    }
    // (It was 7 % less while some messages stood for others' that were missed more often: 0.134 % was expected for 0.1.)
    assert!(
        all.recovery_overhead < each.recovery_overhead && all.late_share <= each.late_share,
        "{all:?} {each:?}"
    );
    let predicted = all.predicted_late_share.expect("it predicts");
    assert!((0.8e-3..1.25e-3).contains(&predicted), "{all:?}");
}
