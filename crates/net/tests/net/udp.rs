//! Real sockets on loopback: what is sent arrives, with its marks, whatever the kernel joins and splits on the way.

use std::net::SocketAddr;

use crate::support::{LOOPBACK_V4, LOOPBACK_V6, Receiver, backends, put};
use punctual_net::udp::{BindError, Ecn, SendBatch, SendLimits, Sent, Socket, SocketOptions};

const MARKS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

fn bind(address: &str, options: &SocketOptions) -> Socket {
    Socket::bind(address.parse().unwrap(), options).unwrap()
}

/// Goal: single datagrams of all sizes arrive in both families, from whom they say.   Method: sizes that never join.
#[test]
fn datagrams_arrive_in_both_families() {
    for options in backends() {
        for address in [LOOPBACK_V4, LOOPBACK_V6] {
            let mut receiver = Receiver::bind(address, &options);
            let sender = bind(address, &options);
            let mut batch = SendBatch::new(SendLimits::default());
            let sizes = [1, 2, 45, 100, 1200, 1472];
            for (mark, len) in sizes.into_iter().enumerate() {
                put(&mut batch, mark as u8, len, receiver.address(), Ecn::NotEct);
            }
            let sent = sender.send(&mut batch).unwrap();
            assert_eq!((sent.datagrams, sent.bytes), (6, sizes.iter().sum()));
            assert!(batch.is_empty());
            for (mark, got) in receiver.collect(6).into_iter().enumerate() {
                assert_eq!(got.from, sender.local_addr());
                assert_eq!(got.payload, vec![mark as u8; sizes[mark]]);
            }
            assert_eq!(receiver.socket.stats().datagrams_received, 6);
        }
    }
}

/// Goal: marks survive joined receives (a known backend loses them there).   Method: runs of equal datagrams, one a mark.
#[test]
fn marks_survive_joined_receives() {
    for options in backends() {
        for address in [LOOPBACK_V4, LOOPBACK_V6] {
            let mut receiver = Receiver::bind(address, &options);
            let sender = bind(address, &options);
            let mut batch = SendBatch::new(SendLimits::default());
            for ecn in MARKS {
                for _ in 0..12 {
                    put(&mut batch, ecn.bits(), 1200, receiver.address(), ecn);
                }
            }
            assert_eq!(sender.send(&mut batch).unwrap().datagrams, 48);
            for (at, got) in receiver.collect(48).into_iter().enumerate() {
                assert_eq!(got.ecn, MARKS[at / 12], "{address}, datagram {at}");
                assert_eq!(got.payload, vec![got.ecn.bits(); 1200]);
            }
            let (out, back) = (sender.stats(), receiver.socket.stats());
            assert_eq!(back.truncated_control, 0);
            if out.gso_messages > 0 {
                assert_eq!((out.gso_messages, back.gro_messages), (4, 4));
            }
        }
    }
}

/// Goal: runs of any length and with a shorter last datagram come out as they went in.   Method: run lengths around the limit.
#[test]
fn runs_keep_their_boundaries() {
    for options in backends() {
        for run in [2, 3, 63, 64, 65, 130] {
            let mut receiver = Receiver::bind(LOOPBACK_V4, &options);
            let sender = bind(LOOPBACK_V4, &options);
            let mut batch = SendBatch::new(SendLimits {
                datagrams: 200,
                ..SendLimits::default()
            });
            for at in 0..run {
                put(&mut batch, at as u8, 300, receiver.address(), Ecn::Ect0);
            }
            put(&mut batch, run as u8, 7, receiver.address(), Ecn::Ect0);
            assert_eq!(sender.send(&mut batch).unwrap().datagrams, run + 1);
            let arrived = receiver.collect(run + 1);
            for (at, got) in arrived.iter().enumerate() {
                let len = if at == run { 7 } else { 300 };
                assert_eq!(got.payload, vec![at as u8; len], "run of {run}");
            }
            assert!(receiver.is_quiet());
        }
    }
}

/// Goal: without offload the same bytes arrive.   Method: both switched off; the counters say so.
#[test]
fn offload_can_be_switched_off() {
    for options in backends() {
        let options = SocketOptions {
            offload: false,
            ..options
        };
        let mut receiver = Receiver::bind(LOOPBACK_V4, &options);
        let sender = bind(LOOPBACK_V4, &options);
        let mut batch = SendBatch::new(SendLimits {
            datagrams: 150,
            ..SendLimits::default()
        });
        for _ in 0..150 {
            put(&mut batch, 9, 500, receiver.address(), Ecn::Ect1);
        }
        assert_eq!(sender.send(&mut batch).unwrap().datagrams, 150);
        let arrived = receiver.collect(150);
        assert!(
            arrived
                .iter()
                .all(|got| got.payload == [9; 500] && got.ecn == Ecn::Ect1)
        );
        let (out, back) = (sender.stats(), receiver.socket.stats());
        assert_eq!((out.gso_messages, back.gro_messages), (0, 0));
    }
}

/// Goal: an IPv6 socket serves IPv4 peers, with plain addresses and marks.   Method: a dual-stack socket echoes one.
#[test]
fn dual_stack_serves_v4_peers() {
    for options in backends() {
        let dual = SocketOptions {
            dual_stack: true,
            ..options.clone()
        };
        let mut server = Receiver::bind("[::]:0", &dual);
        let mut client = Receiver::bind(LOOPBACK_V4, &options);
        let mut batch = SendBatch::new(SendLimits::default());
        let server_address = SocketAddr::from(([127, 0, 0, 1], server.address().port()));
        for _ in 0..5 {
            put(&mut batch, 1, 64, server_address, Ecn::Ce);
        }
        client.socket.send(&mut batch).unwrap();
        for got in server.collect(5) {
            assert_eq!((got.from, got.ecn), (client.address(), Ecn::Ce));
            put(&mut batch, 2, 64, got.from, Ecn::Ect0);
        }
        assert_eq!(server.socket.send(&mut batch).unwrap().datagrams, 5);
        for got in client.collect(5) {
            assert_eq!((got.from, got.ecn), (server_address, Ecn::Ect0));
        }
    }
}

/// Goal: a socket bound to all addresses answers from the one that it was asked at.   Method: another one of loopback's, in both
/// families of sockets; datagrams of a run, so that all of it is asked for at once.
#[cfg(target_os = "linux")]
#[test]
fn answers_leave_from_the_address_that_was_asked() {
    for options in backends() {
        let dual = SocketOptions {
            dual_stack: true,
            ..options.clone()
        };
        for bound in ["0.0.0.0:0", "[::]:0"] {
            #[cfg(feature = "portable")]
            if bound == "[::]:0" && options.backend == punctual_net::udp::Backend::Portable {
                // Not on every system.
                continue;
            }
            let mut server = Receiver::bind(bound, &dual);
            let mut client = Receiver::bind(LOOPBACK_V4, &options);
            let asked = SocketAddr::from(([127, 0, 0, 2], server.address().port()));
            let mut batch = SendBatch::new(SendLimits::default());
            for _ in 0..3 {
                put(&mut batch, 1, 64, asked, Ecn::Ect0);
            }
            client.socket.send(&mut batch).unwrap();
            for got in server.collect(3) {
                assert_eq!((got.to, got.ecn), (Some(asked.ip()), Ecn::Ect0));
                batch.space().expect("room")[..64].fill(2);
                batch.commit_from(got.to, 64, got.from, Ecn::Ect0);
            }
            assert_eq!(server.socket.send(&mut batch).unwrap().datagrams, 3);
            for got in client.collect(3) {
                assert_eq!((got.from, got.ecn), (asked, Ecn::Ect0), "{bound}");
                assert_eq!(got.to, None, "it is bound to one");
            }
        }
    }
}

/// Goal: what the kernel refuses is counted and holds up nothing.   Method: too large, and to port 0, between good ones.
#[test]
fn refused_datagrams_are_skipped() {
    for options in backends() {
        let mut receiver = Receiver::bind(LOOPBACK_V4, &options);
        let sender = bind(LOOPBACK_V4, &options);
        let to = receiver.address();
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut batch = SendBatch::new(SendLimits {
            datagrams: 8,
            datagram_bytes_max: 65_535,
        });
        put(&mut batch, 1, 10, to, Ecn::Ect0);
        put(&mut batch, 2, 65_535, to, Ecn::Ect0);
        put(&mut batch, 3, 10, nowhere, Ecn::Ect0);
        put(&mut batch, 4, 10, nowhere, Ecn::Ect0);
        put(&mut batch, 5, 10, "[::1]:9".parse().unwrap(), Ecn::Ect0);
        put(&mut batch, 6, 10, to, Ecn::Ect0);
        put(&mut batch, 7, 10, to, Ecn::Ect0);
        let sent = sender.send(&mut batch).unwrap();
        let expected = Sent {
            datagrams: 3,
            bytes: 30,
            too_large: 1,
            refused: 3,
            blocked: false,
        };
        assert_eq!(sent, expected, "{:?}", options.backend);
        assert!(batch.is_empty());
        let marks: Vec<_> = receiver
            .collect(3)
            .iter()
            .map(|got| got.payload[0])
            .collect();
        assert_eq!(marks, [1, 6, 7]);
        // A run to port 0 failed with EINVAL, as a device without offload does; single datagrams failed too, so the
        // offload is not to blame and goes on.
        assert_eq!(sender.stats().segmentation_disabled, 0);
    }
}

/// Goal: a peer that is gone does not disturb the socket.   Method: send to a closed port until the ICMP answer is there.
#[test]
fn closed_peers_do_not_disturb() {
    for options in backends() {
        let mut server = Receiver::bind(LOOPBACK_V4, &options);
        let gone = bind(LOOPBACK_V4, &options).local_addr();
        let mut batch = SendBatch::new(SendLimits::default());
        for _ in 0..4 {
            put(&mut batch, 0, 33, gone, Ecn::NotEct);
            let sent = server.socket.send(&mut batch).unwrap();
            assert_eq!(sent.datagrams + sent.refused, 1);
            assert!(server.is_quiet());
        }
        put(&mut batch, 1, 33, server.address(), Ecn::NotEct);
        server.socket.send(&mut batch).unwrap();
        assert_eq!(server.collect(1).len(), 1);
    }
}

/// Goal: binding says what is wrong.   Method: the same port twice, alone and shared; an address of nobody.
#[test]
fn binding_names_the_cause() {
    for options in backends() {
        let first = bind(LOOPBACK_V4, &options);
        let address = first.local_addr();
        let second = Socket::bind(address, &options);
        assert!(matches!(second, Err(BindError::AddressInUse { address: a }) if a == address));

        let nobody = SocketAddr::from(([192, 0, 2, 1], 0));
        let foreign = Socket::bind(nobody, &options);
        assert!(matches!(
            foreign,
            Err(BindError::AddressNotAvailable { .. })
        ));

        #[cfg(unix)]
        {
            let shared = SocketOptions {
                reuse_port: true,
                ..options
            };
            let first = bind(LOOPBACK_V4, &shared);
            let second = Socket::bind(first.local_addr(), &shared);
            assert_eq!(second.unwrap().local_addr(), first.local_addr());
        }
    }
}

/// Goal: the counters of kernel buffers are there.   Method: overflow a small one on purpose, and count what is missing.
#[test]
#[cfg(target_os = "linux")]
fn kernel_drops_are_told() {
    let options = SocketOptions {
        recv_buffer_bytes: 0, // the kernel grants its minimum
        ..SocketOptions::default()
    };
    let mut receiver = Receiver::bind(LOOPBACK_V4, &options);
    assert_eq!(receiver.socket.kernel_drops(), Some(0));
    assert!(receiver.socket.buffer_sizes().unwrap().recv_bytes < 1 << 16);
    let sender = bind(
        LOOPBACK_V4,
        &SocketOptions {
            offload: false,
            ..options
        },
    );
    let mut batch = SendBatch::new(SendLimits::default());
    for _ in 0..64 {
        put(&mut batch, 0, 1000, receiver.address(), Ecn::NotEct);
    }
    assert_eq!(sender.send(&mut batch).unwrap().datagrams, 64);
    let dropped = receiver.socket.kernel_drops().unwrap();
    assert!((1..64).contains(&dropped), "{dropped} dropped");
    let arrived = 64 - usize::try_from(dropped).unwrap();
    assert_eq!(receiver.collect(arrived).len(), arrived);
    assert!(receiver.is_quiet());
}

/// Set in the process that has a slow loopback of its own.
const SLOW: &str = "PUNCTUAL_TEST_SLOW_LOOPBACK";
/// A loopback that blocks: a token bucket, in namespaces that end with the process.
const SLOWED: &str = "ip link set lo up && tc qdisc add dev lo root tbf rate 20mbit burst 10k limit 3m || exit 77; exec \"$@\"";

/// Goal: a full kernel buffer stops a send half-way, and what is left follows in order.   Method: loopback itself never blocks, so
/// the test runs itself once more where it is slow.
#[test]
fn blocked_sends_resume_in_order() {
    if std::env::var_os(SLOW).is_some() {
        return send_over_slow_loopback();
    }
    let this = std::env::current_exe().unwrap();
    let mut slow = std::process::Command::new("unshare");
    slow.args(["-rn", "sh", "-c", SLOWED, "sh"])
        .arg(this)
        .args(["--exact", "udp::blocked_sends_resume_in_order"])
        .env(SLOW, "1");
    let Ok(output) = slow.output() else {
        println!("skipped: there is no unshare");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("1 passed") || said.contains("1 failed") {
        assert!(output.status.success(), "{said}");
    } else {
        let why = String::from_utf8_lossy(&output.stderr);
        println!("skipped: no namespace with a slow loopback: {why}");
    }
}

fn send_over_slow_loopback() {
    for options in backends() {
        let small = SocketOptions {
            send_buffer_bytes: 40_000,
            ..options.clone()
        };
        let mut receiver = Receiver::bind(LOOPBACK_V4, &options);
        let mut sender = Receiver::bind(LOOPBACK_V4, &small);
        let mut batch = SendBatch::new(SendLimits {
            datagrams: 250,
            ..SendLimits::default()
        });
        for at in 0..250 {
            put(&mut batch, at, 1000, receiver.address(), Ecn::Ect0);
        }
        let (mut sent, mut blocked) = (0, 0);
        while !batch.is_empty() {
            let progress = sender.socket.send(&mut batch).unwrap();
            sent += progress.datagrams;
            assert_eq!(sent + batch.len(), 250);
            blocked += usize::from(progress.blocked);
            sender.wait_for_room();
        }
        assert!(sent == 250 && blocked > 0, "{blocked} times blocked");
        let marks: Vec<_> = receiver
            .collect(250)
            .iter()
            .map(|got| got.payload[0])
            .collect();
        assert_eq!(marks, (0..250).collect::<Vec<u8>>());
    }
}
