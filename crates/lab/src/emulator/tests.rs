//! What needs namespaces is skipped, with a word, where they cannot be made.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::files::Dropped;
use super::network::{Network, Verdict};
use super::packet::{self, Header};
use super::{
    Cable, Capture, DropLog, Emulator, EmulatorError, EmulatorOptions, FIRST_CLIENT, Namespace,
    PathCounts, Process, SERVER, SOUNDING, Site, contained,
};
use crate::arm::Stack;
use crate::channel::{ChannelSpec, LossModel, LossReason, PathSpec, RttSplit};
use crate::stats::wilson;
use crate::world::{Forward, LinkSpec};

fn options(paths: Vec<PathSpec>) -> EmulatorOptions {
    EmulatorOptions {
        paths,
        forward: Forward::ToServer,
        link: None,
        seed: 1,
        mtu: 1500,
        cables: vec![Cable::default()],
    }
}

/// An IPv4 packet of UDP.
fn datagram(from: SocketAddr, to: SocketAddr, bytes: usize) -> Vec<u8> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (from.ip(), to.ip()) else {
        panic!("addresses of IPv4");
    };
    let mut packet = vec![0; bytes];
    packet[0] = 0x45;
    packet[8] = 64;
    packet[9] = 17;
    packet[12..16].copy_from_slice(&source.octets());
    packet[16..20].copy_from_slice(&destination.octets());
    packet[20..22].copy_from_slice(&from.port().to_be_bytes());
    packet[22..24].copy_from_slice(&to.port().to_be_bytes());
    let sum = !checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// The ones' complement sum of a header: 0xffff when its checksum is right (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn client(number: u32) -> SocketAddr {
    let address = std::net::Ipv4Addr::from_bits(FIRST_CLIENT.to_bits() + number);
    SocketAddr::from((address, 4000))
}

fn server() -> SocketAddr {
    SocketAddr::from((SERVER, 7000))
}

#[test]
fn headers_say_whose_path_it_is() {
    let packet = datagram(client(3), server(), 100);
    let header = Header::read(&packet).unwrap();
    assert_eq!(packet::client_of(header.source), Some(3));
    assert!(packet::is_server(header.destination));
    assert_eq!(header.ports(&packet), Some((4000, 7000)));
    assert_eq!(
        (header.protocol_name(), header.sequence(&packet)),
        ("udp", None)
    );

    let mut packet = vec![0; 44];
    packet[0] = 0x60;
    packet[6] = 6;
    packet[8..24].copy_from_slice(&packet::SERVER_V6.octets());
    let second = packet::CLIENTS_V6.to_bits() + 2;
    packet[24..40].copy_from_slice(&second.to_be_bytes());
    let header = Header::read(&packet).unwrap();
    assert!(packet::is_server(header.source));
    assert_eq!(packet::client_of(header.destination), Some(1));
    // TCP without a sequence number: cut off.
    assert_eq!(
        (header.protocol_name(), header.sequence(&packet)),
        ("tcp", None)
    );
}

#[test]
fn cut_and_strange_packets_are_no_packets() {
    let packet = datagram(client(0), server(), 60);
    for len in 0..20 {
        assert_eq!(Header::read(&packet[..len]), None, "{len}");
    }
    let mut network = Network::new(&options(vec![path(10, 0.0)]));
    let mut others = vec![
        vec![],
        vec![0xff; 100],
        // A header that is said to be longer than the packet.
        [vec![0x4f], vec![0; 25]].concat(),
        datagram(client(1), server(), 60),
        datagram(server(), client(0), 60),
        datagram(client(0), client(0), 60),
    ];
    let count = others.len() as u64;
    for packet in &mut others {
        assert_eq!(
            network.handle_packet(0, Site::Client, packet),
            Verdict::Foreign
        );
    }
    assert_eq!(network.counts.foreign, count);
    let mut sounding = datagram(client(0), SocketAddr::from((SOUNDING, 9)), 36);
    let verdict = network.handle_packet(0, Site::Client, &mut sounding);
    assert_eq!(verdict, Verdict::Sounding);
    assert_eq!(network.next_due_ns(), None);
}

#[test]
fn a_mark_keeps_the_checksum_right() {
    for ecn in [0b01, 0b10, 0b11] {
        for ports in 0..200u16 {
            let from = SocketAddr::from((FIRST_CLIENT, 4000 + ports));
            let mut packet = datagram(from, server(), 60);
            packet[4..6].copy_from_slice(&(ports.wrapping_mul(331)).to_be_bytes());
            packet[1] = ecn;
            packet[10..12].fill(0);
            let sum = !checksum(&packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            assert!(packet::is_ecn_capable(&packet));
            packet::mark(&mut packet);
            assert_eq!(packet[1] & 0b11, 0b11);
            assert_eq!(checksum(&packet[..20]), 0xffff);
        }
    }
    assert!(!packet::is_ecn_capable(&datagram(client(0), server(), 60)));
}

fn path(rtt_ms: u64, loss: f64) -> PathSpec {
    let mut path = PathSpec::fixed("test", Duration::from_millis(rtt_ms), RttSplit::EVEN);
    if loss > 0.0 {
        let spec = ChannelSpec::fixed(Duration::from_millis(rtt_ms / 2));
        path.forward = spec.with_loss(LossModel::Uniform(loss)).into();
    }
    path
}

#[test]
fn each_client_has_its_own_path() {
    let mut network = Network::new(&options(vec![path(10, 0.0), path(30, 0.0)]));
    for number in [1, 0] {
        let mut packet = datagram(client(number), server(), 100 + number as usize);
        let verdict = network.handle_packet(1_000_000, Site::Client, &mut packet);
        assert_eq!(verdict, Verdict::Taken);
    }
    assert_eq!(network.poll_departure(5_999_999), None);
    let (due_ns, from, packet) = network.poll_departure(6_000_000).unwrap();
    assert_eq!((due_ns, from, packet.len()), (6_000_000, Site::Client, 100));
    assert_eq!(network.next_due_ns(), Some(16_000_000));
    let counts = network.counts.paths[1][Site::Client as usize];
    assert_eq!((counts.packets, counts.bytes), (1, 101));
    assert_eq!(network.counts.total(Site::Client).packets, 2);
    assert_eq!(network.counts.total(Site::Server), PathCounts::default());
}

#[test]
fn a_link_is_shared_and_drops_what_its_queue_does_not_hold() {
    let mut network = Network::new(&EmulatorOptions {
        // A packet of 1,250 bytes a millisecond.
        link: Some(LinkSpec {
            rate_bits_per_second: 10_000_000,
            queue_bytes: 3750,
            ecn_mark_bytes: None,
            is_policer: false,
        }),
        ..options(vec![path(10, 0.0), path(10, 0.0)])
    });
    let verdicts: Vec<_> = (0..4)
        .map(|number| {
            let mut packet = datagram(client(number % 2), server(), 1250);
            network.handle_packet(0, Site::Client, &mut packet)
        })
        .collect();
    let dropped = Verdict::Dropped(1, Dropped::Link);
    assert_eq!(
        verdicts,
        [Verdict::Taken, Verdict::Taken, Verdict::Taken, dropped]
    );
    let due = [6_000_000, 7_000_000, 8_000_000];
    for due_ns in due {
        let departure = network.poll_departure(u64::MAX).unwrap();
        assert_eq!(departure.0, due_ns);
    }
    // The way back does not pass it.
    let mut packet = datagram(server(), client(0), 1250);
    network.handle_packet(0, Site::Server, &mut packet);
    assert_eq!(network.next_due_ns(), Some(5_000_000));
}

#[test]
fn loss_is_counted_by_its_reason() {
    let mut network = Network::new(&options(vec![path(10, 0.1)]));
    let lost = (0..2000).filter(|number| {
        let mut packet = datagram(client(0), server(), 100);
        let verdict = network.handle_packet(number * 1_000_000, Site::Client, &mut packet);
        verdict == Verdict::Dropped(0, Dropped::Path(LossReason::Random))
    });
    let lost = lost.count() as u64;
    assert_eq!(network.counts.drops, [lost, 0, 0, 0, 0, 0]);
    assert_eq!(network.counts.total(Site::Client).dropped, lost);
    assert!(wilson(lost, 2000).contains(0.1), "{lost}");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let mtu = EmulatorOptions {
        mtu: 100,
        ..options(vec![path(10, 0.0)])
    };
    let cases = [
        (options(vec![]), "1 to 100000 clients, not 0"),
        (
            EmulatorOptions {
                cables: vec![],
                ..options(vec![path(10, 0.0)])
            },
            "1 to 64 cables, not 0",
        ),
        (mtu, "576 to 65535 bytes, not 100"),
        (options(vec![path(10, 2.0)]), "between 0 and 1, not 2"),
    ];
    for (options, expected) in cases {
        let error = Emulator::start(options).unwrap_err();
        assert!(error.is_bad_input());
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// An emulator, or None, said aloud, where there cannot be one.
fn start(options: EmulatorOptions) -> Option<Emulator> {
    match Emulator::start(options) {
        Ok(emulator) => Some(emulator),
        Err(error) if error.is_unavailable() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn socket(namespace: &Namespace, at: SocketAddr) -> UdpSocket {
    let open = || {
        namespace.enter().unwrap();
        let socket = UdpSocket::bind(at).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(400)))
            .unwrap();
        socket
    };
    thread::scope(|scope| scope.spawn(open).join().unwrap())
}

/// Packets of clients that have different paths, written down twice.
#[test]
fn files_tell_of_every_packet() {
    let directory = std::env::temp_dir().join(format!("punctual-emulator-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let drops = directory.join("drops.csv");
    let cable = Cable {
        drop_log: Some(DropLog::create(&drops).unwrap()),
        capture: Some(Capture::create(&directory).unwrap()),
        ..Cable::default()
    };
    let paths = vec![path(2, 0.0), path(2, 0.3)];
    let Some(emulator) = start(EmulatorOptions {
        cables: vec![cable],
        ..options(paths)
    }) else {
        return;
    };
    let at_server = socket(emulator.namespace(0, Site::Server), server());
    let clients = [0, 1].map(|number| socket(emulator.namespace(0, Site::Client), client(number)));
    // No more than the receiver's buffer holds.
    let sent = 100u64;
    for number in 0..sent {
        for client in &clients {
            client.send_to(&number.to_le_bytes(), server()).unwrap();
        }
    }
    let mut arrived = [0u64; 2];
    let mut buffer = [0; 100];
    loop {
        match at_server.recv_from(&mut buffer) {
            Ok((8, from)) => arrived[usize::from(from != client(0))] += 1,
            Ok((len, from)) => panic!("{len} bytes from {from}"),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    let report = emulator.stop().unwrap();
    let counts = &report.cables[0].paths;
    let dropped = counts[1][Site::Client as usize].dropped;
    assert_eq!(arrived, [sent, sent - dropped]);
    // When packets are sent is not up to the seed here.
    assert!((1..sent).contains(&dropped), "{dropped}");
    assert_eq!(counts[0][Site::Client as usize].dropped, 0);
    assert!(report.timing.lag.messages() > 0);

    let log = fs::read_to_string(&drops).unwrap();
    let mut lines = log.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("time_s,from,client,reason,bytes,protocol,source,")
    );
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len() as u64, dropped);
    for line in lines {
        let fields: Vec<_> = line.split(',').collect();
        assert_eq!(
            fields[1..6],
            ["client", "1", "random", "36", "udp"],
            "{line}"
        );
        assert_eq!(
            fields[6..],
            ["10.128.0.2:4000", "10.0.0.1:7000", ""],
            "{line}"
        );
    }
    let packets = |name| {
        let file = fs::File::open(directory.join(name)).unwrap();
        let mut reader = pcap_file::pcap::PcapReader::new(file).unwrap();
        let mut count = 0;
        while let Some(packet) = reader.next_packet() {
            let packet = packet.unwrap();
            count += u64::from(
                Header::read(&packet.data).unwrap().ports(&packet.data) == Some((4000, 7000)),
            );
        }
        count
    };
    assert_eq!(packets("client.pcap"), 2 * sent);
    assert_eq!(packets("server.pcap"), 2 * sent - dropped);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_kernel_setting_that_does_not_exist_is_named() {
    let stack = Stack {
        sysctls: vec![("tcp_telepathy", "1".to_owned())],
        ..Stack::default()
    };
    let cables = vec![Cable {
        stack,
        ..Cable::default()
    }];
    match Emulator::start(EmulatorOptions {
        cables,
        ..options(vec![path(2, 0.0)])
    }) {
        Err(EmulatorError::Setting { name, .. }) => assert_eq!(name, "tcp_telepathy"),
        Err(error) if error.is_unavailable() => println!("skipped: {error}"),
        other => panic!("{other:?}"),
    }
}

/// A server that needs a moment to begin was met by its client before it listened: `lab run --server` asks first.
#[test]
fn a_namespace_tells_who_listens() {
    let Some(emulator) = start(options(vec![path(2, 0.0)])) else {
        return;
    };
    let place = emulator.namespace(0, Site::Server);
    let listens = || place.has_listener().unwrap();
    assert!(!listens());
    let datagrams = socket(place, server());
    assert!(listens());
    drop(datagrams);
    assert!(!listens());
    let connections = place.within(|| TcpListener::bind(server())).unwrap();
    assert!(listens());
    drop(connections);
    assert!(!listens());
}

#[test]
fn programs_are_in_their_namespace_and_end_with_it() {
    let Some(emulator) = start(options(vec![path(2, 0.0)])) else {
        return;
    };
    let line = "ip -brief address show punctual0 | grep -q 10.0.0.1 && exit 3".to_owned();
    let command = contained("sh", &["-c".to_owned(), line]);
    let process = Process::start(emulator.namespace(0, Site::Server), command).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(3));
    // A name that no other process has.
    let seconds = format!("{}", 1_000_000 + std::process::id());
    let line = format!("setsid sleep {seconds} & sleep {seconds}");
    let command = contained("sh", &["-c".to_owned(), line]);
    let process = Process::start(emulator.namespace(0, Site::Client), command).unwrap();
    // The kernel kills them one after the other.
    let count = || {
        let wanted = format!("sleep\0{seconds}\0");
        let processes = fs::read_dir("/proc").unwrap();
        let lines = processes
            .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("cmdline")).ok());
        lines.filter(|line| *line == wanted).count()
    };
    let becomes = |expected| (0..1000).any(|_| count() == expected);
    assert!(becomes(2), "the programs do not start");
    drop(process);
    assert!(becomes(0), "programs are left behind");
}

/// What the programs of programs compute counts too.
#[test]
fn it_is_known_how_long_programs_computed() {
    let Some(emulator) = start(options(vec![path(2, 0.0)])) else {
        return;
    };
    let is_said = |name: &str| fs::exists(format!("/proc/thread-self/{name}")).unwrap();
    if !is_said("schedstat") || !is_said("children") {
        println!("skipped: this kernel does not say it");
        return;
    }
    let started = |line: &str| {
        let command = contained("sh", &["-c".to_owned(), line.to_owned()]);
        Process::start(emulator.namespace(0, Site::Client), command).unwrap()
    };
    let busy = started("sh -c 'while :; do :; done' & wait");
    let is_enough = |_| busy.cpu() >= Duration::from_millis(50);
    assert!((0..20_000).any(is_enough), "{:?}", busy.cpu());
    let over = started("true");
    while !over.is_over() {
        thread::yield_now();
    }
    assert_eq!(over.cpu(), Duration::ZERO);
}

#[test]
fn a_program_that_is_not_there_says_so() {
    let Some(emulator) = start(options(vec![path(2, 0.0)])) else {
        return;
    };
    let missing = Command::new("/nowhere/at/all");
    let error = Process::start(emulator.namespace(0, Site::Client), missing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
