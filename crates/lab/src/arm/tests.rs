use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use super::{Datagrams, Places};

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
