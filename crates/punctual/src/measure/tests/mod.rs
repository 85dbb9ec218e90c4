//! Client and server over channels of the lab, in virtual time: what was put into the network must come out of the trace.

mod network;

use std::time::Duration;

use punctual_lab::channel::{ChannelSpec, LossModel, Reorder};
use punctual_lab::stats::wilson;
use punctual_proto::Instant;

use super::options::MeasureOptions;
use super::packet::{MeasuredPacket, Way};
use super::prober::{Output, Prober};
use super::report::{Copies, MeasureEnd};
use super::responder::{Counts, Responder};
use super::wire::{Arrival, Down, PART_MAX, Probe, RECEIPT_MAX, Receipt, Terms, Up};
use network::{Event, Network};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn channel(delay_ms: u64, loss: f64) -> ChannelSpec {
    ChannelSpec {
        loss: LossModel::Uniform(loss),
        ..ChannelSpec::fixed(ms(delay_ms))
    }
}

fn options(messages: u32) -> MeasureOptions {
    MeasureOptions {
        messages: Some(messages),
        ..MeasureOptions::default()
    }
}

/// (lost, known) of first sendings in one direction.
fn losses(packets: &[MeasuredPacket], way: impl Fn(&MeasuredPacket) -> Way) -> (u64, u64) {
    let first = packets.iter().filter(|packet| packet.attempt == 0);
    let known: Vec<Way> = first.map(way).filter(|way| *way != Way::Unknown).collect();
    let lost = known.iter().filter(|way| **way == Way::Lost).count();
    (lost as u64, known.len() as u64)
}

/// Goal: what the network does in each direction is found again, and the server has the same trace as the client.
/// Method: 5 % lost up, 1 % down, 40 and 25 ms, a server whose clock is far ahead and wraps in the middle.
#[test]
fn a_known_network_is_found_again() {
    let mut network = Network::new(options(4000), 5, channel(40, 0.05), channel(25, 0.01));
    let measured = network.run();
    assert_eq!(measured.end, MeasureEnd::Complete);
    assert_eq!((measured.messages, measured.held), (4000, 0));
    let packets = &measured.packets;
    assert_eq!(packets.len() as u64, network.sent);
    // The network's own count is met exactly; the parameters lie in the interval.
    let count = |is: fn(&MeasuredPacket) -> bool| packets.iter().filter(|p| is(p)).count() as u64;
    let found = [
        count(|packet| packet.up == Way::Lost),
        count(|packet| packet.down == Way::Lost),
    ];
    assert_eq!(found, network.lost);
    let (up, of_up) = losses(packets, |packet| packet.up);
    let (down, of_down) = losses(packets, |packet| packet.down);
    assert_eq!(of_up, 20_000);
    assert_eq!(of_down, of_up - up);
    assert!(wilson(up, of_up).contains(0.05), "{up} of {of_up}");
    assert!(wilson(down, of_down).contains(0.01), "{down} of {of_down}");
    // Round trips are right; one way they are half each, and the bound covers the truth.
    for packet in packets {
        assert!(packet.rtt().is_none_or(|rtt| rtt == ms(65)), "{packet:?}");
    }
    let clocks = measured.clocks.unwrap();
    let ups = packets.iter().filter_map(|packet| match packet.up {
        Way::Took(took) => Some(took.abs_diff(ms(40))),
        _ => None,
    });
    assert!(ups.max().unwrap() <= clocks.bound, "{clocks:?}");
    assert!(clocks.residual < ms(1), "{clocks:?}");
    assert_eq!(network.parts, *packets);
    assert_eq!((measured.kept as usize, network.ends), (packets.len(), 1));
    assert!(packets.is_sorted_by_key(|packet| packet.sent));
}

/// Goal: bursts, varying delay and reordering are in the trace.   Method: Gilbert-Elliott bursts up; jitter and held-back packets.
#[test]
fn bursts_and_reordering_are_found() {
    let bursts = ChannelSpec {
        loss: LossModel::Gilbert {
            loss_share: 0.03,
            mean_burst: ms(30),
            loss_in_good: 0.0,
            loss_in_bad: 1.0,
        },
        jitter: ms(8),
        ..ChannelSpec::fixed(ms(30))
    };
    let back = ChannelSpec {
        reorder: Reorder {
            share: 0.1,
            extra: ms(15),
        },
        ..ChannelSpec::fixed(ms(30))
    };
    let mut network = Network::new(options(3000), 9, bursts, back);
    let measured = network.run();
    assert!(measured.reordered_up > 500 && measured.reordered_down > 500);
    let count = |is: fn(&MeasuredPacket) -> bool| measured.packets.iter().filter(|p| is(p)).count();
    assert_eq!(count(|p| p.up == Way::Lost) as u64, network.lost[0]);
    assert_eq!(count(|p| p.down == Way::Lost), 0);
    // Of the five packets of a message a burst takes all: far more often than 3 % chance losses would.
    let whole = measured
        .packets
        .chunk_by(|a, b| a.message == b.message && a.attempt == b.attempt)
        .filter(|burst| burst.len() == 5 && burst.iter().all(|p| p.up == Way::Lost));
    assert!(whole.count() > 30);
    // What jitter adds up is seen up, within what the clock allows.
    let clocks = measured.clocks.unwrap();
    let ups: Vec<Duration> = measured
        .packets
        .iter()
        .filter_map(|packet| match packet.up {
            Way::Took(took) => Some(took),
            _ => None,
        })
        .collect();
    let spread = *ups.iter().max().unwrap() - *ups.iter().min().unwrap();
    assert!(spread + clocks.residual * 2 >= ms(7) && spread <= ms(9) + clocks.residual * 2);
}

/// Goal: what waits in the sessions is not measured as path.   Method: 20 ms in each of them.
#[test]
fn waiting_in_the_sessions_is_left_out() {
    let mut network = Network::new(options(50), 1, channel(40, 0.0), channel(40, 0.0));
    network.held = ms(20);
    let measured = network.run();
    for packet in &measured.packets {
        assert_eq!(packet.rtt(), Some(ms(80)));
    }
}

/// Goal: how long an echo was held is told even when a receipt came between its probe's arrival and its leaving.
#[test]
fn an_echo_that_waits_is_told_of_again() {
    let now = Instant::from_micros(5);
    let mut responder = Responder::new(now);
    responder.handle_control(now, Up::Ask, terms(), Counts::default());
    let probe = Probe::Up { number: 3 }.encode(1000);
    responder.handle_probe(now, &probe).unwrap();
    let mut report = |departed: Option<Option<Instant>>| {
        if let Some(at) = departed {
            responder.on_departed(3, at);
        }
        let up = Up::Receipt { ask: 1 };
        let answer = responder.handle_control(now, up, terms(), Counts::default());
        let Some(Down::Receipt(receipt)) = answer.reply else {
            panic!("{answer:?}")
        };
        let held = receipt.arrivals.iter().map(|arrival| arrival.held_us);
        held.collect::<Vec<_>>()
    };
    assert_eq!(report(None), [None]);
    assert_eq!(report(Some(Some(now + ms(40)))), [Some(40_000)]);
    assert_eq!(report(None), []);
}

/// Goal: a packet is sent again five times and no more, and the side of the loss is right when nothing comes back.
#[test]
fn a_packet_is_repeated_five_times_at_most() {
    for (up, down) in [(1.0, 0.0), (0.0, 1.0)] {
        let mut network = Network::new(options(10), 3, channel(20, up), channel(20, down));
        let measured = network.run();
        assert_eq!(measured.packets.len(), 10 * 5 * 6);
        assert_eq!(network.sent, 10 * 5 * 6);
        for packet in &measured.packets {
            let (expected_up, expected_down) = if up > 0.0 {
                (Way::Lost, Way::Unknown)
            } else {
                // It arrived, but no answer ever told the server's clock.
                (Way::Unknown, Way::Lost)
            };
            assert_eq!((packet.up, packet.down), (expected_up, expected_down));
        }
        let most = measured.packets.iter().map(|packet| packet.attempt).max();
        assert_eq!(most, Some(5));
        assert_eq!(measured.clocks, None);
        assert_eq!(network.parts, measured.packets);
    }
}

/// Goal: the switch stops a client at once, at the beginning and in the middle.
#[test]
fn the_switch_stops_at_once() {
    let off = Terms {
        is_on: false,
        sample: 1,
        packets_max: 1000,
    };
    let mut network = Network::new(options(100), 1, channel(20, 0.0), channel(20, 0.0));
    network.terms = off;
    assert_eq!(network.run().end, MeasureEnd::Off);
    assert_eq!(network.sent, 0);

    let mut network = Network::new(options(100), 1, channel(20, 0.5), channel(20, 0.0));
    let at = network.now + Duration::from_secs(10);
    network.at(at, Event::Switch(off));
    let measured = network.run();
    assert_eq!(measured.end, MeasureEnd::Off);
    assert!(network.now <= at + ms(100), "{:?}", network.now);
    assert!((9..=11).contains(&measured.messages), "{measured:?}");
    assert_eq!(measured.packets.len() as u64, network.sent);
}

/// Goal: a stop sends nothing more, settles what is under way, and uploads it.
#[test]
fn a_stop_settles_and_uploads() {
    let mut network = Network::new(
        MeasureOptions::default(),
        2,
        channel(20, 0.3),
        channel(20, 0.0),
    );
    let at = network.now + Duration::from_millis(20_140);
    network.at(at, Event::Stop);
    let measured = network.run();
    assert_eq!(measured.end, MeasureEnd::Stopped);
    assert!(network.now <= at + Duration::from_secs(4));
    let last = measured.packets.last().unwrap().sent;
    assert!(last <= at.since(Instant::ZERO));
    assert!(!measured.packets.iter().any(|p| p.up == Way::Unknown));
    assert_eq!(network.parts, measured.packets);
}

/// Goal: the more seldom of both samples holds; a server that says nothing ends the attempt.
#[test]
fn the_server_sets_how_often() {
    let mut network = Network::new(
        MeasureOptions {
            sample: Some(3),
            lasts: Some(Duration::from_secs(100)),
            ..MeasureOptions::default()
        },
        2,
        channel(20, 0.0),
        channel(20, 0.0),
    );
    network.terms.sample = 10;
    let measured = network.run();
    assert_eq!((measured.sample, measured.messages), (10, 10));

    let now = Instant::from_micros(5);
    let mut prober = Prober::new(now, MeasureOptions::default());
    let at = prober.poll_timeout().unwrap();
    prober.handle_timeout(at);
    let measured = prober.take_result(Copies::default()).unwrap();
    assert_eq!(measured.end, MeasureEnd::NoAnswer);
    assert_eq!(at.since(now), Duration::from_secs(10));
}

/// Goal: a server that stops answering does not keep a client for ever.
#[test]
fn a_silent_server_is_not_waited_for() {
    let now = Instant::from_micros(5);
    let mut prober = Prober::new(now, options(1));
    prober.handle_control(now, Down::Terms(terms()));
    while let Some(output) = prober.poll_output() {
        if let Output::Probe(number) = output {
            prober.on_departed(number, now);
        }
    }
    let mut at = now;
    while !prober.is_over() {
        at = prober.poll_timeout().expect("it is not over");
        prober.handle_timeout(at);
        while let Some(output) = prober.poll_output() {
            if let Output::Probe(number) = output {
                prober.on_departed(number, at);
            }
        }
    }
    assert!(at.since(now) <= Duration::from_secs(60), "{at:?}");
    let measured = prober.take_result(Copies::default()).unwrap();
    assert_eq!(measured.packets.len(), 30);
    assert!(measured.packets.iter().all(|p| p.up == Way::Unknown));
}

/// Goal: what the session does not let out is taken back and left out, and no more is put behind it.
#[test]
fn probes_that_do_not_leave_are_taken_back() {
    let now = Instant::from_micros(5);
    let mut prober = Prober::new(now, options(2));
    prober.handle_control(now, Down::Terms(terms()));
    let mut sent = Vec::new();
    let mut cancelled = Vec::new();
    let mut at = now;
    while !prober.is_over() {
        while let Some(output) = prober.poll_output() {
            match output {
                Output::Probe(number) => sent.push((number, at)),
                Output::Cancel(number) => cancelled.push(number),
                Output::Control(_) => {}
            }
        }
        at = prober.poll_timeout().expect("it is not over");
        prober.handle_timeout(at);
    }
    assert_eq!(cancelled, (0..5).collect::<Vec<_>>());
    // The messages due after one and two seconds were not begun.
    let second = sent.iter().find(|(number, _)| *number == 5).unwrap().1;
    assert_eq!(second.since(now), Duration::from_secs(3));
    let measured = prober.take_result(Copies::default()).unwrap();
    assert_eq!((measured.packets.len(), measured.held), (0, 10));
}

/// A regression: where the session refused the last probes, nothing was waited for, for a minute.
#[test]
fn who_waits_for_nothing_comes_to_an_end() {
    let now = Instant::from_micros(5);
    let mut prober = Prober::new(now, options(1));
    prober.handle_control(now, Down::Terms(terms()));
    let mut at = now;
    while !prober.is_over() {
        while let Some(output) = prober.poll_output() {
            if let Output::Probe(number) = output {
                prober.on_held(number);
            }
        }
        at = at.max(prober.poll_timeout().expect("it is not over"));
        prober.handle_timeout(at);
    }
    assert!(at.since(now) <= Duration::from_secs(2), "{at:?}");
    let measured = prober.take_result(Copies::default()).unwrap();
    assert_eq!((measured.packets.len(), measured.held), (0, 5));
}

/// Goal: a client stops at what a trace may hold, and neither side's memory grows past its bounds.
#[test]
fn memory_is_bounded() {
    let mut network = Network::new(
        MeasureOptions::default(),
        2,
        channel(20, 0.2),
        channel(20, 0.0),
    );
    network.terms.packets_max = 500;
    let measured = network.run();
    assert_eq!(measured.end, MeasureEnd::Complete);
    assert!((450..=500).contains(&measured.packets.len()));
    assert!(!measured.is_refused);

    // Probes that nobody asks receipts for, faster than is answered.
    let now = Instant::from_micros(5);
    let mut responder = Responder::new(now);
    let echoes = (0..10_000).filter(|&number| {
        let probe = Probe::Up { number }.encode(1000);
        responder.handle_probe(now, &probe).is_some()
    });
    assert_eq!(echoes.count(), 1000);
    // Nor such as would be many in a packet.
    for bytes in [5, 739, 1161] {
        let probe = Probe::Up { number: 1 }.encode(bytes);
        assert!(responder.handle_probe(now + ms(60_000), &probe).is_none());
    }
    let receipt = Up::Receipt { ask: 7 };
    let answer = responder.handle_control(now, receipt, terms(), Counts::default());
    let Some(Down::Receipt(receipt)) = answer.reply else {
        panic!("{answer:?}")
    };
    assert_eq!(receipt.arrivals.len(), RECEIPT_MAX);
    assert_eq!(receipt.forgotten as usize, 10_000 - RECEIPT_MAX);
}

const fn terms() -> Terms {
    Terms {
        is_on: true,
        sample: 1,
        packets_max: 100_000,
    }
}

fn row(sent_ms: u64) -> MeasuredPacket {
    MeasuredPacket {
        sent: ms(sent_ms),
        message: 0,
        index: 0,
        attempt: 0,
        up: Way::Lost,
        down: Way::Unknown,
    }
}

/// Goal: uploads that no honest client makes are refused, and end the trace.
#[test]
fn hostile_uploads_are_refused() {
    let now = Instant::from_micros(5);
    let later = now + Duration::from_secs(5);
    let kept = |parts: &[(Vec<MeasuredPacket>, bool)], terms: Terms| -> Vec<bool> {
        let mut responder = Responder::new(now);
        responder.handle_control(now, Up::Ask, terms, Counts::default());
        let mut is_open = false;
        let answers = parts.iter().map(|(rows, is_last)| {
            let (rows, is_last) = (rows.clone(), *is_last);
            let part = Up::Rows { rows, is_last };
            let answer = responder.handle_control(later, part.clone(), terms, Counts::default());
            let Some(Down::Kept { is_kept }) = answer.reply else {
                panic!("{answer:?}")
            };
            // What was begun ends when a part is refused: the application kept it open for ever.
            let handed_on = answer
                .part
                .map(|(rows, is_last)| Up::Rows { rows, is_last });
            let end = Up::Rows {
                rows: Vec::new(),
                is_last: true,
            };
            let expected = match is_kept {
                true => Some(part),
                false => is_open.then_some(end),
            };
            assert_eq!(handed_on, expected);
            is_open = is_kept && !is_last;
            assert_eq!(responder.has_open_trace(), is_open);
            is_kept
        });
        answers.collect()
    };
    let rows = |times: &[u64]| (times.iter().map(|&at| row(at)).collect(), false);
    assert_eq!(
        kept(&[rows(&[1, 2]), rows(&[2, 3]), (vec![], true)], terms()),
        [true; 3]
    );
    // Out of order, within a part and between two; after the end; from the future; measuring off; too many for the rules, and
    // for the time that has passed.
    assert_eq!(kept(&[rows(&[2, 1]), rows(&[3])], terms()), [false; 2]);
    assert_eq!(kept(&[rows(&[5]), rows(&[4])], terms()), [true, false]);
    let last = (vec![row(1)], true);
    assert_eq!(kept(&[last, rows(&[2])], terms()), [true, false]);
    assert_eq!(kept(&[rows(&[6000])], terms()), [false]);
    let off = Terms {
        is_on: false,
        ..terms()
    };
    assert_eq!(kept(&[rows(&[1])], off), [false]);
    let few = Terms {
        packets_max: 1,
        ..terms()
    };
    assert_eq!(kept(&[rows(&[1, 2])], few), [false]);
    let many = rows(&[1; 3500]);
    let three = [many.clone(), many.clone(), many];
    assert_eq!(kept(&three, terms()), [true, true, false]);

    // A session that begins one trace after the other is told that measuring is off.
    let mut responder = Responder::new(now);
    let on = (0..100).filter(|_| {
        let answer = responder.handle_control(now, Up::Ask, terms(), Counts::default());
        matches!(answer.reply, Some(Down::Terms(terms)) if terms.is_on)
    });
    assert_eq!(on.count(), 64);
}

/// Goal: bytes that nobody of ours sends give nothing, and never a panic.
#[test]
fn nonsense_is_ignored() {
    let rows = vec![row(1); 3];
    let good = [
        Up::Ask.encode(),
        Up::Rows {
            rows,
            is_last: true,
        }
        .encode(),
        Down::Terms(terms()).encode(),
        Down::Receipt(Receipt {
            arrivals: vec![
                Arrival {
                    number: 1,
                    at_us: 2,
                    held_us: None,
                };
                2
            ],
            ..Receipt::default()
        })
        .encode(),
        Probe::Up { number: 3 }.encode(20),
    ];
    let now = Instant::from_micros(5);
    let mut prober = Prober::new(now, MeasureOptions::default());
    let mut responder = Responder::new(now);
    let mut try_all = |bytes: &[u8]| {
        prober.handle_probe(now, bytes);
        responder.handle_probe(now, bytes);
        if let Some(message) = Down::decode(bytes) {
            prober.handle_control(now, message);
        }
        if let Some(message) = Up::decode(bytes) {
            responder.handle_control(now, message, terms(), Counts::default());
        }
    };
    for bytes in &good {
        for cut in 0..=bytes.len() {
            try_all(&bytes[..cut]);
        }
        for at in 0..bytes.len() {
            for byte in [0, 1, 2, 3, 255] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                try_all(&changed);
            }
        }
    }
    let too_many = Up::Rows {
        rows: vec![row(1); PART_MAX + 1],
        is_last: false,
    };
    assert_eq!(Up::decode(&too_many.encode()), None);
    let impossible = MeasuredPacket {
        down: Way::Took(ms(1)),
        ..row(1)
    };
    let mut bytes = vec![3, 0];
    impossible.encode(&mut bytes);
    assert_eq!(Up::decode(&bytes), None);
}

#[test]
fn options_are_checked() {
    let with = |change: fn(&mut MeasureOptions)| {
        let mut options = MeasureOptions::default();
        change(&mut options);
        options.check().map_err(|error| error.field)
    };
    assert_eq!(with(|_| {}), Ok(()));
    assert_eq!(with(|o| o.bytes = 100), Err("bytes"));
    assert_eq!(with(|o| o.packets = 0), Err("packets"));
    assert_eq!(with(|o| o.retries = 6), Err("retries"));
    assert_eq!(with(|o| o.sample = Some(0)), Err("sample"));
    assert_eq!(with(|o| o.interval = ms(1)), Err("interval"));
    assert_eq!(with(|o| o.messages = Some(0)), Err("messages"));
    assert_eq!(with(|o| o.lasts = Some(Duration::ZERO)), Err("lasts"));
}
