use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use super::{Arm, Contest, Datagrams, Entry, NEVER, Places, Sender, Task, Tcp, play};

#[test]
fn a_flow_is_told_by_its_address() {
    let places = Places::loopback(7, 300);
    for flow in [0, 1, 255, 299] {
        assert_eq!(places.flow_of(places.client(flow).ip()), Some(flow));
    }
    assert_eq!(places.flow_of(places.server().ip()), None);
    assert_eq!(
        places.flow_of(IpAddr::V4(Ipv4Addr::new(127, 77, 1, 45))),
        None
    );
    let mapped = Ipv4Addr::new(127, 77, 0, 2).to_ipv6_mapped();
    assert_eq!(places.flow_of(IpAddr::V6(mapped)), Some(1));
}

#[test]
fn there_are_no_addresses_after_the_last() {
    let server = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    assert!(Places::new(server, Ipv4Addr::BROADCAST, 1).is_none());
    assert!(Places::new(server, Ipv4Addr::BROADCAST, 0).is_some());
}

#[test]
fn what_one_turn_leaves_unread_is_read_in_the_next() {
    let mut sockets = Datagrams::new().unwrap();
    let local = Places::loopback(0, 1).server();
    let receiver = sockets.open(local, None).unwrap();
    let to = sockets.local_addr(receiver).unwrap();
    let sender = sockets.open(local, Some(to)).unwrap();
    for number in 0..100u8 {
        assert!(sockets.send(sender, to, &[number]));
    }
    let mut seen = Vec::new();
    let until = Instant::now() + Duration::from_secs(10);
    while seen.len() < 100 && Instant::now() < until {
        let collect = |id, _, datagram: &[u8]| {
            assert_eq!(id, receiver);
            seen.push(datagram[0]);
        };
        sockets.wait(until, collect).unwrap();
    }
    assert_eq!(seen, (0..100).collect::<Vec<u8>>());
}

#[test]
fn every_message_of_a_contest_arrives_once() {
    for sender in [Sender::Server, Sender::Client] {
        let contest = Contest {
            task: Task {
                sender,
                message_bytes: 2048,
                interval: Duration::from_millis(5),
                deadline: Duration::from_millis(100),
                on_time: 0.999,
                rtt: Duration::from_millis(1),
            },
            messages: 40,
            connect_max: Duration::from_secs(10),
            drain: Duration::from_millis(100),
            seed: 1,
        };
        let arms = [&Tcp::ALL[0], &Tcp::ALL[3]];
        let entry = |(port, arm)| Entry {
            arm: arm as &dyn Arm,
            places: Places::loopback(port, 3),
            enter: &|_| Ok(()),
        };
        let first = if sender == Sender::Server {
            45_311
        } else {
            45_321
        };
        let entries: Vec<_> = (first..).zip(arms).map(entry).collect();
        let played = play(&contest, &entries, |_| true).unwrap();
        assert_eq!(played.len(), 2);
        for played in played {
            assert_eq!(played.latencies_us.len(), 3);
            let missing = played.latencies_us.iter().flatten();
            assert_eq!(missing.filter(|&&latency| latency == NEVER).count(), 0);
            assert_eq!((played.duplicates, played.corrupt), (0, 0));
            assert_eq!((played.refused, played.unconnected), (0, 0));
        }
    }
}

#[test]
fn a_port_in_use_is_named() {
    let places = Places::loopback(45_331, 1);
    let _taken = std::net::TcpListener::bind(places.server()).unwrap();
    let task = Task {
        sender: Sender::Server,
        message_bytes: 100,
        interval: Duration::from_secs(1),
        deadline: Duration::from_secs(1),
        on_time: 0.99,
        rtt: Duration::ZERO,
    };
    let error = Tcp::ALL[0]
        .server(&places, &task)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("listening on TCP 127.0.0.1:45331"),
        "{error}"
    );
}
