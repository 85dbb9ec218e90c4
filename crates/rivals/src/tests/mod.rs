//! Every rival over loopback, both ends on one thread; over a bad network in `virtual_time.rs`.

mod virtual_time;

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use punctual_lab::arm::{Arm, ArmError, Places, Sender, Side, Task};

const FLOWS: u32 = 3;
const MESSAGES: u32 = 50;
const MESSAGE_BYTES: usize = 2_048;
/// A run takes a fraction of a second; none may take longer than this.
const LIMIT: Duration = Duration::from_secs(20);

fn task(sender: Sender) -> Task {
    Task {
        sender,
        message_bytes: MESSAGE_BYTES,
        interval: Duration::from_millis(33),
        deadline: Duration::from_millis(200),
        on_time: 0.999,
        rtt: Duration::from_millis(2),
    }
}

/// Places with a port that was free a moment ago.
fn places() -> Places {
    let probe = UdpSocket::bind(Places::loopback(0, FLOWS).server()).unwrap();
    Places::loopback(probe.local_addr().unwrap().port(), FLOWS)
}

fn rival(name: &str) -> Box<dyn Arm> {
    let arm = crate::arm(name).unwrap().unwrap();
    assert_eq!(arm.name(), name);
    assert!(!arm.settings().is_empty());
    arm
}

/// The content of a message, which no other message has.
fn message(flow: u32, number: u32) -> Vec<u8> {
    let seed = flow * 1_000 + number;
    let mut message = seed.to_be_bytes().to_vec();
    message.extend((4..MESSAGE_BYTES).map(|at| (at as u32 * 31 + seed) as u8));
    message
}

/// How often each message arrived, by flow and content.
type Arrived = BTreeMap<(u32, Vec<u8>), u32>;

/// Drives both ends in turns until `done`.
fn drive(
    ends: &mut [Box<dyn Side>; 2],
    receiver: usize,
    arrived: &mut Arrived,
    done: impl Fn(&[Box<dyn Side>; 2], &Arrived) -> bool,
) {
    let start = Instant::now();
    while !done(ends, arrived) {
        assert!(
            start.elapsed() < LIMIT,
            "{} and {} flows ready, {} messages arrived",
            ends[0].ready(),
            ends[1].ready(),
            arrived.len()
        );
        for (index, end) in ends.iter_mut().enumerate() {
            let until = Instant::now() + Duration::from_micros(200);
            let mut collect = |flow, message: &[u8]| {
                assert_eq!(index, receiver);
                *arrived.entry((flow, message.to_vec())).or_default() += 1;
            };
            end.drive(until, &mut collect).unwrap();
        }
    }
}

/// Sends messages on every flow, one way, and expects each exactly once.
fn exchange(arm: &dyn Arm, sender: Sender) {
    let places = places();
    let task = task(sender);
    let mut ends = [
        arm.server(&places, &task).unwrap(),
        arm.client(&places, &task).unwrap(),
    ];
    let (from, to) = match sender {
        Sender::Server => (0, 1),
        Sender::Client => (1, 0),
    };
    let mut arrived = Arrived::new();
    drive(&mut ends, to, &mut arrived, |ends, _| {
        ends.iter().all(|end| end.ready() == FLOWS)
    });
    let mut expected = Arrived::new();
    for number in 0..MESSAGES {
        for flow in 0..FLOWS {
            let message = message(flow, number);
            ends[from].send(flow, &message).unwrap();
            expected.insert((flow, message), 1);
        }
        drive(&mut ends, to, &mut arrived, |_, arrived| {
            arrived.len() == expected.len()
        });
    }
    // A copy would come by now.
    let settled = Instant::now() + Duration::from_millis(20);
    drive(&mut ends, to, &mut arrived, |_, _| {
        Instant::now() >= settled
    });
    assert!(arrived == expected, "not each message once and intact");
}

/// What holds for every rival.
fn check(name: &str) {
    let arm = rival(name);
    exchange(&*arm, Sender::Client);
    exchange(&*arm, Sender::Server);
}

#[test]
fn enet() {
    check("enet");
}

#[test]
fn kcp() {
    check("kcp");
}

#[test]
fn quic_streams() {
    check("quic-streams");
}

#[test]
fn quic_datagrams() {
    check("quic-datagrams");
}

#[test]
fn webrtc() {
    check("webrtc");
}

#[test]
fn webrtc_reliable() {
    check("webrtc-reliable");
}

#[test]
fn renet() {
    check("renet");
}

#[test]
fn a_port_in_use_is_said_clearly() {
    let taken = UdpSocket::bind(Places::loopback(0, FLOWS).server()).unwrap();
    let address = taken.local_addr().unwrap();
    let places = Places::loopback(address.port(), FLOWS);
    for name in crate::all() {
        let error = rival(name)
            .server(&places, &task(Sender::Client))
            .err()
            .unwrap();
        assert!(matches!(error, ArmError::System { .. }), "{error}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
}

#[test]
fn what_has_no_room_is_refused() {
    // Nobody drives the receiver, so nothing is acknowledged.
    for name in crate::all() {
        let places = places();
        let arm = rival(name);
        let task = task(Sender::Client);
        let mut ends = [
            arm.server(&places, &task).unwrap(),
            arm.client(&places, &task).unwrap(),
        ];
        let message = vec![0; MESSAGE_BYTES];
        assert!(ends[1].send(0, &message).is_err(), "{name}: not connected");
        drive(&mut ends, 0, &mut Arrived::new(), |ends, _| {
            ends.iter().all(|end| end.ready() == FLOWS)
        });
        assert!(
            ends[1].send(FLOWS, &message).is_err(),
            "{name}: no such flow"
        );
        let taken = (0..10_000)
            .take_while(|_| ends[1].send(0, &message).is_ok())
            .count();
        let bound = crate::QUEUE_BYTES_MAX / MESSAGE_BYTES;
        if name == "quic-datagrams" {
            // What has left is not kept, so a window of it comes on top.
            assert!(taken < 2 * bound, "{name} took {taken}");
        } else {
            assert!(taken <= bound, "{name} took {taken}");
        }
        assert!(taken > bound / 2, "{name} took {taken}");
    }
}

#[test]
fn an_unknown_rival_is_none() {
    assert!(crate::arm("carrier-pigeon").unwrap().is_none());
}
