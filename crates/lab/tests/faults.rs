//! What networks and hosts do that they should not: marks that are dropped or set on everything, clocks that stand still.

mod support;

use std::time::Duration;

use punctual_lab::channel::{LossModel, RateSpec};
use punctual_lab::world::{EcnFault, World};
use punctual_proto::{MessageId, Outcome, SendOptions};
use support::{Duo, client_config, ms, path, server_config};

fn with_fault(fault: EcnFault) -> Duo {
    let narrow = path(ms(40), |channel| {
        channel.rate = Some(RateSpec::constant(8_000_000, 100_000));
    });
    let world = World::new(1).with_ecn_fault(Some(fault));
    Duo::connect_in(world, &narrow, server_config(), client_config())
}

/// The handshake got through, which carries no mark, and nothing else ever did.
#[test]
fn a_path_that_drops_ecn_capable_packets_is_used_without() {
    let mut duo = with_fault(EcnFault::Drops);
    duo.send(&[1; 200], SendOptions::default());
    duo.run(Duration::from_secs(10));
    assert_eq!(duo.received.len(), 1);
    // The other way, too, where acknowledgements alone have been getting through for long.
    let (server, session) = (duo.server, duo.at_server.expect("it is connected"));
    for _ in 0..50 {
        duo.send(&[1; 200], SendOptions::default());
        duo.run(ms(100));
    }
    let sent = (duo.world).send(server, session, &[2; 200], SendOptions::default());
    assert!(sent.is_ok());
    duo.run(Duration::from_secs(10));
    assert_eq!(duo.received.len(), 52);
}

/// A client that came to a network which drops ECN-capable packets lost its session: nothing that its server answers got through, its answers to challenges
/// included, while a new session there would have found out.
#[test]
fn a_path_that_begins_to_drop_ecn_capable_packets_is_used_without() {
    let mut duo = Duo::connect(1, &path(ms(40), |_| {}));
    let within = SendOptions::within(ms(100));
    for _ in 0..20 {
        duo.send(&[1; 200], within);
        duo.run(ms(100));
    }
    duo.world.set_ecn_fault(Some(EcnFault::Drops));
    let mut later = Vec::new();
    for tick in 0..600 {
        let id = duo.send(&[1; 200], within);
        // After three seconds.
        if tick >= 30 {
            later.push(id);
        }
        duo.run(ms(100));
    }
    assert!(duo.closed.is_empty(), "{:?}", duo.closed);
    assert_eq!(duo.received.len(), 620);
    let is_on_time = |id: &&MessageId| matches!(duo.outcome_of(**id), Some(Outcome::OnTime { .. }));
    let on_time = later.iter().filter(is_on_time).count();
    assert!(on_time >= 565, "{on_time} of 570");
}

/// Every mark halved the window, so that 4 of 100 messages arrived.
#[test]
fn marks_on_every_packet_say_nothing() {
    let mut duo = with_fault(EcnFault::MarksAll);
    for _ in 0..100 {
        duo.send(&[1; 80_000], SendOptions::default());
        duo.run(ms(100));
    }
    duo.run(Duration::from_secs(1));
    assert_eq!(duo.received.len(), 100);
}

/// Flights of one packet that arrived were not counted: four that chance lost, ever, made a black hole.
#[test]
fn chance_losses_do_not_narrow_the_path() {
    let mut duo = Duo::connect(
        1,
        &path(ms(40), |channel| channel.loss = LossModel::Uniform(0.01)),
    );
    for _ in 0..1800 {
        duo.send(&[7; 1400], SendOptions::default());
        duo.run(Duration::from_micros(33_333));
        let now = duo.world.local_time(duo.client);
        let endpoint = duo.world.endpoint(duo.client);
        let report = endpoint.path_report(now, duo.at_client).unwrap();
        assert_eq!(report.mtu, 1472);
    }
}

/// The offset of before was averaged with that of after for eight minutes.
#[test]
fn outcomes_are_right_after_the_peer_slept() {
    let mut duo = Duo::connect(1, &path(ms(60), |_| {}));
    for second in 0..120 {
        if second == 60 {
            duo.world.jump_clock(duo.server, Duration::from_secs(20));
            duo.outcomes.clear();
        }
        for _ in 0..20 {
            duo.send(&[7; 400], SendOptions::within(ms(130)));
            duo.run(ms(50));
        }
    }
    let took_30_ms = |outcome: &Outcome| matches!(outcome, Outcome::OnTime { latency, .. } if latency.abs_diff(ms(30)) < ms(1));
    let wrong = (duo.outcomes.iter())
        .filter(|(_, outcome)| !took_30_ms(outcome))
        .count();
    assert!(
        wrong < 5,
        "{wrong} of {} are not told as they were",
        duo.outcomes.len()
    );
}

/// In the dark a packet each round trip told the peer of messages that had been given up, besides what the application sent.
#[test]
fn what_is_given_up_in_the_dark_is_told_of_ever_more_seldom() {
    let seconds = Duration::from_secs;
    let dark = path(ms(20), |channel| {
        channel.blackouts = vec![(seconds(2), seconds(20))];
    });
    let mut duo = Duo::connect(1, &dark);
    duo.run(ms(1000));
    let mut sent = Vec::new();
    for _ in 0..25 {
        let before = duo.stats().packets_sent;
        for _ in 0..50 {
            duo.send(&[7; 200], SendOptions::within(ms(100)).drop_when_late());
            duo.run(ms(20));
        }
        sent.push(duo.stats().packets_sent - before);
    }
    // What the application sends still leaves, once, and something asks whether there is light, once a second.
    assert!(sent[4..16].iter().all(|packets| *packets <= 53), "{sent:?}");
    // Once there is, the peer hears of all of it, and of what comes after.
    assert_eq!(duo.outcomes.len(), 25 * 50);
    let received = duo.received.len();
    assert!((5 * 50..10 * 50).contains(&received), "{received}");
}
