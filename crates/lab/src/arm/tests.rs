use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener};
use std::time::{Duration, Instant};

use super::{
    Arm, ArmError, Contest, Datagrams, Due, Entry, NEVER, Places, Planned, Refused, Script, Sender,
    Side, Task, Tcp, Workload, play,
};

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
    let mut sockets = Datagrams::new("test").unwrap();
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
        let entries = arms.map(|arm| Entry {
            arm: arm as &dyn Arm,
            places: Places::loopback(free_port(), 3),
            enter: &|_| Ok(()),
        });
        let played = play(&contest, &entries, |_| true);
        assert_eq!(played.len(), 2);
        for played in played {
            let played = played.unwrap();
            assert_eq!(played.latencies_us.len(), 3);
            let missing = played.latencies_us.iter().flatten();
            assert_eq!(missing.filter(|&&latency| latency == NEVER).count(), 0);
            assert_eq!((played.duplicates, played.corrupt), (0, 0));
            assert_eq!((played.refused, played.unconnected), (0, 0));
        }
    }
}

/// One that the system has just chosen: it chooses another next.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// An arm whose server fails.
#[derive(Clone, Copy, PartialEq)]
enum Breaks {
    AtOnce,
    /// Once it has sent a message.
    Later,
    /// It panics then.
    Badly,
}

impl Breaks {
    fn error() -> ArmError {
        ArmError::Failed {
            arm: "breaks".to_owned(),
            why: "it always does".to_owned(),
        }
    }
}

impl Arm for Breaks {
    fn name(&self) -> &'static str {
        "breaks"
    }

    fn settings(&self) -> String {
        String::new()
    }

    fn server(&self, _: &Places, _: &Task) -> Result<Box<dyn Side>, ArmError> {
        let side = BreakingSide {
            breaks: *self,
            has_sent: false,
        };
        match self {
            Self::AtOnce => Err(Self::error()),
            Self::Later | Self::Badly => Ok(Box::new(side)),
        }
    }

    fn client(&self, _: &Places, _: &Task) -> Result<Box<dyn Side>, ArmError> {
        Ok(Box::new(BreakingSide {
            breaks: *self,
            has_sent: false,
        }))
    }
}

struct BreakingSide {
    breaks: Breaks,
    has_sent: bool,
}

impl Side for BreakingSide {
    fn ready(&self) -> u32 {
        1
    }

    fn send(&mut self, _: u32, _: &[u8]) -> Result<(), Refused> {
        self.has_sent = true;
        Ok(())
    }

    fn drive(&mut self, until: Instant, _: &mut dyn FnMut(u32, &[u8])) -> Result<(), ArmError> {
        match self.breaks {
            Breaks::Badly if self.has_sent => panic!("nobody saw this coming"),
            _ if self.has_sent => return Err(Breaks::error()),
            _ => {}
        }
        std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
        Ok(())
    }
}

/// Goal: an arm that fails, before the messages or among them, takes no other arm with it; nor does one that panics.
#[test]
fn whoever_fails_fails_alone() {
    let messages = [vec![planned(&[(0, 100), (100, 100)])], vec![vec![]]];
    let arms: [&dyn Arm; 4] = [
        &Breaks::AtOnce,
        &Tcp::ALL[0],
        &Breaks::Later,
        &Breaks::Badly,
    ];
    let entries = arms.map(|arm| Entry {
        arm,
        places: Places::loopback(free_port(), 1),
        enter: &|_| Ok(()),
    });
    let played = play(&script(messages, false), &entries, |_| true);
    let [Err(first), Ok(tcp), Err(later), Err(badly)] = &played[..] else {
        panic!("{played:?}");
    };
    for (error, why) in [
        (first, "it always does"),
        (later, "it always does"),
        (badly, "it panicked: nobody saw this coming"),
    ] {
        assert_eq!(error.to_string(), format!("breaks failed: {why}"));
        assert_eq!(error.arm(), "breaks");
    }
    let arrived = &tcp.ways[0].latencies_us[0];
    assert!(arrived.iter().all(|&latency| latency != NEVER));
}

fn script(messages: [Vec<Vec<Planned>>; 2], is_relayed: bool) -> Script {
    Script {
        task: Task {
            sender: Sender::Server,
            message_bytes: 60,
            interval: Duration::from_millis(10),
            deadline: Duration::from_millis(100),
            on_time: 0.999,
            rtt: Duration::from_millis(1),
        },
        messages,
        is_relayed,
        connect_max: Duration::from_secs(10),
        drain: Duration::from_millis(100),
    }
}

fn planned(messages: &[(u64, u32)]) -> Vec<Planned> {
    let plan = |&(ms, bytes): &(u64, u32)| Planned {
        at: Duration::from_millis(ms),
        bytes,
    };
    messages.iter().map(plan).collect()
}

#[test]
fn a_script_is_played_in_the_order_of_time() {
    let messages = [
        vec![planned(&[(1, 30), (7, 31)]), planned(&[(3, 32)])],
        vec![Vec::new(); 2],
    ];
    let script = script(messages, false);
    let order: Vec<_> = script
        .dues(Sender::Server, 2)
        .map(
            |Due {
                 flow,
                 number,
                 bytes,
                 ..
             }| (flow, number, bytes),
        )
        .collect();
    assert_eq!(order, [(0, 0, 30), (1, 0, 32), (0, 1, 31)]);
    assert_eq!(script.dues(Sender::Server, 1).count(), 2);
    assert_eq!(script.length(), Duration::from_millis(7));
    assert_eq!(script.messages(Sender::Client, 1), 0);
}

#[test]
fn a_contest_has_one_message_of_each_flow_in_each_interval() {
    let contest = Contest {
        task: script(Default::default(), false).task,
        messages: 3,
        connect_max: Duration::ZERO,
        drain: Duration::ZERO,
        seed: 1,
    };
    let dues: Vec<_> = contest.dues(Sender::Server, 4).collect();
    assert_eq!(dues.len(), 12);
    assert!(dues.is_sorted_by_key(|due| due.at));
    for due in dues {
        assert_eq!(due.at.as_millis() as u32 / 10, due.number);
    }
    assert_eq!(contest.dues(Sender::Client, 4).count(), 0);
}

/// Three clients send messages of their own sizes; the server passes each on to the two others, and sends some of its own.
#[test]
fn what_is_passed_on_reaches_all_others_once() {
    let clients = [(5, 20), (6, 60), (20, 2000)];
    let messages = [
        vec![planned(&[(10, 100)]), vec![], vec![]],
        vec![planned(&clients), planned(&clients[..1]), vec![]],
    ];
    let entries = [Entry {
        arm: &Tcp::ALL[0],
        places: Places::loopback(free_port(), 3),
        enter: &|_| Ok(()),
    }];
    let mut played = play(&script(messages, true), &entries, |_| true);
    let exchange = played.remove(0).unwrap();
    let arrived = |latencies: &Vec<u32>| {
        assert!(latencies.iter().all(|&latency| latency != NEVER));
        latencies.len()
    };
    for (way, expected) in exchange.ways.iter().zip([[1, 0, 0], [3, 1, 0]]) {
        assert_eq!(
            way.latencies_us.iter().map(arrived).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(
            way.sent_us.iter().map(arrived).collect::<Vec<_>>(),
            expected
        );
        assert_eq!((way.refused, way.duplicates, way.corrupt), (0, 0, 0));
    }
    assert!(exchange.ways[1].sent_us[0][2] >= 20_000);
    for (to, from) in [(0, 1), (1, 0), (2, 0), (2, 1)] {
        let passed_on = &exchange.relayed_us[to][from];
        assert_eq!(arrived(passed_on), [3, 1, 0][from], "{from} to {to}");
        // It cannot be there before the server had it.
        let first = exchange.ways[1].latencies_us[from].iter();
        assert!(first.zip(passed_on).all(|(first, second)| first <= second));
    }
    assert!(
        exchange.relayed_us[0][0]
            .iter()
            .all(|&latency| latency == NEVER)
    );
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let places = Places::loopback(address.port(), 1);
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
        error.contains(&format!("tcp-cubic failed at listening on TCP {address}")),
        "{error}"
    );
}
