use std::sync::Arc;
use std::time::Duration;

use punctual_proto::limits;

use super::*;
use crate::channel::{
    Channel, ChannelSpec, DelayModel, Fate, GammaDelay, LossModel, RateSpec, Reorder, RttSplit,
    Variation,
};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A path whose way out takes 50 ms and is changed by `f`.
fn network(f: impl Fn(&mut ChannelSpec)) -> PathSpec {
    let mut path = PathSpec::fixed("test", ms(100), RttSplit::EVEN);
    f(Arc::make_mut(&mut path.forward));
    path
}

/// Messages of one packet each 10 ms.
fn task(deadline: Duration, messages: u64) -> Task {
    Task {
        frame: Duration::ZERO,
        message_bytes: 1000,
        symbols: None,
        deadline,
        interval: ms(10),
        messages,
        datagram_max: 1472,
    }
}

fn flows(count: u32) -> Vec<Flow> {
    let paths: Vec<u32> = (1..=count).collect();
    Flow::in_turn(&paths, Moment::default(), ms(10))
}

fn of_one(network: &PathSpec, task: &Task) -> Floors {
    floors(
        std::slice::from_ref(network),
        Direction::Forward,
        1,
        &flows(1),
        task,
    )
}

fn uniform(share: f64) -> PathSpec {
    network(|channel| channel.loss = LossModel::Uniform(share))
}

#[test]
fn before_anything_can_arrive_all_is_late_and_after_that_nothing() {
    let lossy = uniform(0.5);
    assert_eq!(
        of_one(&lossy, &task(ms(50) - Duration::from_micros(1), 500)).late_share,
        1.0
    );
    assert_eq!(of_one(&lossy, &task(ms(50), 500)).late_share, 0.0);
}

/// 256 packets in each slot that is not too late: all of them must be lost.
#[test]
fn under_uniform_loss_a_message_is_late_as_often_as_all_packets_are_lost() {
    let awful = uniform(0.995);
    for (deadline, slots) in [(50, 1), (51, 2), (53, 4)] {
        let measured = of_one(&awful, &task(ms(deadline), 10_000));
        let expected = 0.995_f64.powi(256 * slots);
        assert!(
            measured.late_share_95.contains(expected),
            "{deadline} ms: {measured:?}, expected {expected}"
        );
    }
}

#[test]
fn the_least_overhead_is_that_of_replacing_what_is_lost() {
    for (loss, symbols) in [(0.02, None), (0.02, Some(4)), (0.3, Some(64))] {
        let task = Task {
            symbols,
            ..task(ms(100), 20_000)
        };
        let measured = floors(&[uniform(loss)], Direction::Forward, 7, &flows(50), &task);
        let interval = measured.recovery_overhead_95.expect("not all is lost");
        assert!(interval.contains(loss / (1.0 - loss)), "{measured:?}");
        assert!(interval.high - interval.low < 0.02, "{measured:?}");
    }
    let nothing = of_one(&network(|_| {}), &task(ms(100), 1000));
    assert_eq!(nothing.recovery_overhead, Some(0.0));
    let dark = network(|channel| channel.blackouts = vec![(ms(0), ms(1_000_000))]);
    let all = of_one(&dark, &task(ms(100), 1000));
    assert_eq!((all.recovery_overhead, all.late_share), (None, 1.0));
}

/// Dark from 10 s to 11 s; the last packet in time leaves 200 ms after the message: those of 10.0 s to 10.79 s are late.
#[test]
fn messages_that_a_blackout_outlasts_are_late_and_no_others() {
    let dark = network(|channel| {
        channel.blackouts = vec![(Duration::from_secs(10), Duration::from_secs(11))];
    });
    let measured = of_one(&dark, &task(ms(250), 2000));
    assert_eq!(measured.late_share, 80.0 / 2000.0);
    // And of the packets that leave with the messages, those of the whole second are lost: 100 for 1,900.
    let overhead = measured.recovery_overhead.expect("not all is lost");
    assert!((overhead - 100.0 / 1900.0).abs() < 1e-12, "{overhead}");
}

/// Two packets of 1,250 bytes with headers take 10 ms each at 1 Mbit/s.
#[test]
fn a_limited_rate_takes_its_time() {
    let narrow = network(|channel| channel.rate = Some(RateSpec::constant(1_000_000, 64_000)));
    let of = |deadline| {
        let task = Task {
            message_bytes: 2 * (1250 - limits::UDP_IP_HEADER),
            ..task(deadline, 100)
        };
        of_one(&narrow, &task).late_share
    };
    assert_eq!((of(ms(69)), of(ms(70))), (1.0, 0.0));
}

#[test]
fn messages_have_the_symbols_that_the_protocol_would_give_them() {
    let of = |message_bytes, symbols| {
        let task = Task {
            message_bytes,
            symbols,
            ..task(ms(1), 1)
        };
        task.parcel().symbols
    };
    assert_eq!((of(16, None), of(1472, None), of(1473, None)), (1, 1, 2));
    assert_eq!(
        (of(2048, Some(1)), of(2048, Some(4)), of(100, Some(64))),
        (2, 4, 50)
    );
    assert_eq!(of(262_144, None), 179);
}

/// A sender that really fires through the channel, packet by packet.
fn fires_through(spec: &Arc<ChannelSpec>, at_us: u64, deadline_us: u64, symbols: usize) -> bool {
    let mut channel = Channel::new(Arc::clone(spec), 3, 1, Direction::Forward);
    let due_us = at_us + deadline_us;
    let mut arrived = 0;
    for slot in at_us / 1000..=due_us / 1000 {
        let sent_us = at_us.max(slot * 1000);
        for _ in 0..256 {
            if let Fate::Delivered { delay_us, .. } = channel.fate(sent_us, 1028)
                && sent_us + delay_us <= due_us
            {
                arrived += 1;
            }
        }
        if arrived >= symbols {
            return true;
        }
    }
    false
}

fn stormy() -> ChannelSpec {
    ChannelSpec {
        loss: LossModel::Gilbert {
            loss_share: 0.5,
            mean_burst: ms(40),
            loss_in_good: 0.1,
            loss_in_bad: 1.0,
        },
        reorder: Reorder {
            share: 0.9,
            extra: ms(3),
        },
        jitter: ms(2),
        blackouts: vec![(ms(2000), ms(2150))],
        delay: DelayModel::Fixed(ms(20)),
        ..ChannelSpec::default()
    }
}

/// The genie's look ahead against the channel itself, message by message: equal where the delay is, never worse where it varies.
#[test]
fn what_is_foreseen_is_what_becomes_of_packets() {
    let varied = ChannelSpec {
        delay: DelayModel::Gamma(Arc::new(
            GammaDelay::fit(ms(9), ms(21), ms(9)).expect("makes sense"),
        )),
        ..stormy()
    };
    let by_packet = ChannelSpec {
        variation: Variation {
            coherence: Duration::ZERO,
            slow: None,
        },
        ..varied.clone()
    };
    for (spec, is_equal) in [(stormy(), true), (varied, false), (by_packet, false)] {
        let spec = Arc::new(spec);
        let network = PathSpec {
            forward: Arc::clone(&spec),
            ..PathSpec::fixed("test", ms(100), RttSplit::EVEN)
        };
        let mut genie = Genie::new(&network, Direction::Forward, 3, 1);
        let parcel = Parcel {
            symbols: 2,
            packet_bytes: 1028,
        };
        let (mut late, mut fired_late) = (0, 0);
        for message in 0..400_u64 {
            let at_us = message * 10_007;
            let on_time = genie.is_on_time(at_us * 1000, ms(40), parcel);
            let fired = fires_through(&spec, at_us, 40_000, 2);
            assert!(
                on_time || !fired,
                "message {message} could have been in time"
            );
            late += u32::from(!on_time);
            fired_late += u32::from(!fired);
        }
        assert!(
            late > 20 && late < 380,
            "{late} late: the test would see nothing"
        );
        assert!(
            !is_equal || late == fired_late,
            "{late} late, fired {fired_late}"
        );
        assert!(fired_late - late < 20, "{late} late, fired {fired_late}");
    }
}

#[test]
fn flows_take_turns() {
    let flows = Flow::in_turn(&[4, 9], Moment(5), Duration::from_nanos(100));
    let firsts: Vec<_> = flows.iter().map(|flow| (flow.path, flow.first.0)).collect();
    assert_eq!(firsts, [(4, 5), (9, 55)]);
    assert_eq!(Flow::in_turn(&[], Moment(5), ms(1)), []);
    let none = floors(
        &[uniform(0.1)],
        Direction::Forward,
        1,
        &[],
        &task(ms(60), 10),
    );
    assert_eq!(none.late_share, 0.0);
}
