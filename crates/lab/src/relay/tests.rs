use std::net::UdpSocket as StdSocket;

use super::emulation::Departure;
use super::queue::DelayQueue;
use super::*;
use crate::channel::{ChannelSpec, DelayModel, LossModel, RttSplit};
use crate::profile::Profile;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn nowhere() -> Lane {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    Lane {
        client: anywhere,
        server: anywhere,
    }
}

fn emulation(path: PathSpec, lanes: usize, forward: Forward) -> Emulation {
    Emulation::new(&RelayOptions {
        path,
        paths: 3,
        forward,
        seed: 11,
        lanes: vec![nowhere(); lanes],
    })
}

/// What leaves, and when: (due, path, lane, way, first byte).
fn drain(emulation: &mut Emulation) -> Vec<(u64, usize, usize, Way, u8)> {
    let mut out = Vec::new();
    while let Some(Departure {
        due_us,
        path,
        lane,
        way,
        datagram,
    }) = emulation.poll_departure(u64::MAX)
    {
        out.push((due_us, path, lane, way, datagram[0]));
    }
    out
}

#[test]
fn packets_leave_when_due_and_in_order() {
    let mut queue = DelayQueue::new(3);
    assert!(queue.push(30, 'c', &[3]));
    assert!(queue.push(10, 'a', &[1, 1]));
    assert!(queue.push(10, 'b', &[2]));
    assert!(!queue.push(5, 'd', &[4]), "no room for a fourth");
    assert_eq!(queue.next_due(), Some(10));
    assert_eq!(queue.pop_due(9), None);
    assert_eq!(queue.pop_due(12), Some((10, 'a', &[1, 1][..])));
    assert_eq!(queue.pop_due(12), Some((10, 'b', &[2][..])));
    assert_eq!(queue.pop_due(12), None);
    assert!(queue.push(20, 'e', &[5]), "a place is free again");
    assert_eq!(queue.pop_due(40), Some((20, 'e', &[5][..])));
    assert_eq!(queue.pop_due(40), Some((30, 'c', &[3][..])));
    assert_eq!(queue.next_due(), None);
}

/// Goal: lanes that send alike fare alike.   Method: two lanes send the same over a path with bursts and varying delay.
#[test]
fn equal_sending_meets_equal_fates() {
    let mut emulation = emulation(Profile::BurstyWifi.path(), 2, Forward::ToClient);
    for step in 0..20_000u64 {
        let (path, way) = (
            (step % 3) as usize,
            [Way::ToClient, Way::ToServer][(step % 2) as usize],
        );
        // The lanes' packets come in some 30 us after each other, within a millisecond.
        for lane in 0..2 {
            let at = step * 1000 + 100 + 30 * lane as u64;
            emulation.handle_datagram(at, path, lane, way, &[step as u8; 900]);
        }
    }
    let lost = emulation.lost();
    assert!(lost > 0 && lost.is_multiple_of(2), "{lost}");
    let all = drain(&mut emulation);
    let of_lane = |lane| all.iter().filter(move |packet| packet.2 == lane);
    let count = of_lane(0).count();
    assert_eq!(count, of_lane(1).count());
    let mut first: Vec<_> = of_lane(0).map(|p| (p.1, p.3 as u8, p.0, p.4)).collect();
    let mut second: Vec<_> = of_lane(1).map(|p| (p.1, p.3 as u8, p.0, p.4)).collect();
    first.sort_unstable();
    second.sort_unstable();
    for (a, b) in first.iter().zip(&second) {
        assert_eq!((a.0, a.1), (b.0, b.1));
        // The delay is a continuous function of time: what came 30 us later is due at nearly the same distance.
        assert!(a.2.abs_diff(b.2) < 2000, "{a:?} {b:?}");
    }
}

/// Goal: what one lane sends does not touch another.   Method: with and without a talkative neighbour.
#[test]
fn lanes_do_not_touch_each_other() {
    let spec = ChannelSpec {
        jitter: ms(2),
        ..ChannelSpec::fixed(ms(10)).with_loss(LossModel::Uniform(0.3))
    };
    let run = |neighbour: bool| {
        let path = PathSpec::symmetric("test", "made up", spec.clone());
        let mut emulation = emulation(path, 2, Forward::ToServer);
        for step in 0..500u64 {
            for _ in 0..if neighbour { 3 } else { 0 } {
                emulation.handle_datagram(step * 700, 1, 1, Way::ToServer, &[1]);
            }
            emulation.handle_datagram(step * 700, 1, 0, Way::ToServer, &[0]);
        }
        let mut out = drain(&mut emulation);
        out.retain(|packet| packet.2 == 0);
        out
    };
    let alone = run(false);
    assert_eq!(alone, run(true));
    assert!((250..450).contains(&alone.len()), "{}", alone.len());
}

#[test]
fn forward_is_the_way_that_was_asked_for() {
    let path = || {
        let (forward, backward) = (ChannelSpec::fixed(ms(30)), ChannelSpec::fixed(ms(5)));
        PathSpec::new("test", "made up", forward, backward)
    };
    for (forward, to_server, to_client) in [
        (Forward::ToServer, 30_000, 5000),
        (Forward::ToClient, 5000, 30_000),
    ] {
        let mut emulation = emulation(path(), 1, forward);
        emulation.handle_datagram(0, 0, 0, Way::ToServer, &[1]);
        emulation.handle_datagram(0, 2, 0, Way::ToClient, &[2]);
        let mut out = drain(&mut emulation);
        out.sort_unstable_by_key(|packet| packet.4);
        assert_eq!(out[0], (to_server, 0, 0, Way::ToServer, 1));
        assert_eq!(out[1], (to_client, 2, 0, Way::ToClient, 2));
    }
}

#[test]
fn copies_arrive_as_well() {
    let spec = ChannelSpec {
        delay: DelayModel::Fixed(ms(1)),
        duplicate: 1.0,
        ..ChannelSpec::default()
    };
    let mut emulation = emulation(PathSpec::symmetric("test", "", spec), 1, Forward::ToServer);
    emulation.handle_datagram(0, 0, 0, Way::ToServer, &[9]);
    assert_eq!(drain(&mut emulation).len(), 2);
}

/// Goal: packets pass between real sockets, both ways, by their path.   Method: an echo over two paths and two lanes.
#[test]
fn relays_between_real_sockets() {
    let open = || {
        let socket = StdSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        // Only so that a failure ends the test.
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    };
    let ends: Vec<_> = (0..2).map(|_| (open(), open())).collect();
    let lanes = ends.iter().map(|((_, client), (_, server))| Lane {
        client: *client,
        server: *server,
    });
    let relay = Relay::bind(&RelayOptions {
        path: PathSpec::fixed("test", ms(4), RttSplit::EVEN),
        paths: 2,
        forward: Forward::ToServer,
        seed: 1,
        lanes: lanes.collect(),
    })
    .unwrap();
    let paths = relay.addresses().to_vec();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let running = scope.spawn(|| relay.run(&stop));
        let (stranger, _) = open();
        stranger.send_to(b"?", paths[0]).unwrap();
        for ((client, _), (server, _)) in &ends {
            for &path in &paths {
                let mut buffer = [0; 100];
                client.send_to(b"there", path).unwrap();
                let (len, from) = server.recv_from(&mut buffer).unwrap();
                assert_eq!(
                    (&buffer[..len], from),
                    (&b"there"[..], path),
                    "the server sees the path"
                );
                server.send_to(b"and back", from).unwrap();
                let (len, from) = client.recv_from(&mut buffer).unwrap();
                assert_eq!((&buffer[..len], from), (&b"and back"[..], path));
            }
        }
        stop.store(true, Ordering::Relaxed);
        let report = running.join().unwrap().unwrap();
        assert_eq!((report.received, report.forwarded), (8, 8));
        assert_eq!((report.lost, report.foreign, report.overflowed), (0, 1, 0));
        assert_eq!(report.lateness.messages(), 8);
    });
}
