use std::time::Duration;

use super::*;
use crate::world::{LinkSpec, Moment, RivalSpec, World};

const RTT: Duration = Duration::from_millis(40);

fn world(rivals: u64, spec: LinkSpec) -> World {
    let mut world = World::new(1);
    let link = world.add_link(spec);
    for index in 0..rivals {
        world.add_rival(RivalSpec {
            link,
            to_receiver: RTT / 2,
            to_sender: RTT / 2,
            starts_at: Moment(index * 700_000_000),
        });
    }
    world
}

/// Packets' worth of data that each rival brought over between two seconds.
fn delivered(world: &mut World, rivals: u32, from: u64, to: u64) -> Vec<f64> {
    let counts = |world: &World| -> Vec<u64> {
        (0..rivals)
            .map(|id| world.rival_stats(crate::world::RivalId(id)).delivered)
            .collect()
    };
    world.run(Moment(from * 1_000_000_000), |_, _| {});
    let before = counts(world);
    world.run(Moment(to * 1_000_000_000), |_, _| {});
    counts(world)
        .iter()
        .zip(before)
        .map(|(after, before)| (after - before) as f64)
        .collect()
}

#[test]
fn alone_it_fills_a_link() {
    let mut world = world(1, LinkSpec::drop_tail(10_000_000, RTT, 1.0));
    let packets = delivered(&mut world, 1, 5, 65)[0];
    let used = packets * 1500.0 * 8.0 / (60.0 * 10e6);
    assert!(used > 0.95, "{used}");
}

#[test]
fn two_share_evenly() {
    for products in [0.5, 1.0, 4.0] {
        let mut world = world(2, LinkSpec::drop_tail(10_000_000, RTT, products));
        let packets = delivered(&mut world, 2, 20, 80);
        let jain = crate::stats::jain(&packets);
        assert!(jain >= 0.95, "{products}: {packets:?}");
    }
}

#[test]
fn a_loss_leaves_seven_tenths_and_the_curve_comes_back() {
    let mut cubic = Cubic::default();
    for _ in 0..990 {
        cubic.on_acked(0.0, 1.0, 0.04);
    }
    assert!((cubic.window() - 1000.0).abs() < 1e-9);
    cubic.on_loss();
    assert!((cubic.window() - 700.0).abs() < 1e-9);
    // K = cbrt(300 / 0.4) = 9.09 s: the old window is back then, and hardly exceeded.
    let mut now = 1.0;
    while now < 1.0 + 9.1 {
        for _ in 0..cubic.window() as u64 {
            cubic.on_acked(now, 1.0, 0.04);
        }
        now += 0.04;
    }
    assert!((cubic.window() - 1000.0).abs() < 5.0, "{}", cubic.window());
}

#[test]
fn a_small_window_grows_as_renos() {
    let mut cubic = Cubic::default();
    cubic.on_loss();
    let (mut now, before) = (1.0, cubic.window());
    for _ in 0..10 {
        now += 0.01;
        for _ in 0..cubic.window() as u64 {
            cubic.on_acked(now, 1.0, 0.01);
        }
    }
    // 0.53 packets a round trip until the old window is reached.
    let grown = cubic.window() - before;
    assert!((3.0..7.0).contains(&grown), "{grown}");
}

#[test]
fn silence_leaves_one_packet_and_doubles_the_timeout() {
    let mut sender = Sender::default();
    let mut now = Moment::default();
    let count = std::iter::from_fn(|| sender.poll_send(now)).count();
    assert_eq!(count, 10);
    for seconds in [1, 2, 4] {
        let at = sender.timeout_at().unwrap();
        assert_eq!(at.since(now), Duration::from_secs(seconds));
        now = at;
        sender.on_timeout(now);
        let count = std::iter::from_fn(|| sender.poll_send(now)).count();
        assert_eq!(count, 1);
    }
}

#[test]
fn what_was_overtaken_by_three_is_sent_again_first() {
    let mut sender = Sender::default();
    let now = Moment::default();
    while sender.poll_send(now).is_some() {}
    let later = now.after(RTT);
    sender.on_ack(later, &[1, 2]);
    assert_eq!(sender.stats().lost, 0);
    sender.on_ack(later, &[3]);
    assert_eq!(sender.stats().lost, 1);
    // Ten were under way and twelve allowed; six are under way, and 0.7 times twelve allowed.
    let next = sender.poll_send(later).unwrap();
    assert_eq!((next.number, next.position), (10, 0));
}

/// A regression: each further timeout in a row cut the threshold again, and rivals came back slower than TCP does.
#[test]
fn timeouts_in_a_row_are_one_loss_event() {
    let comes_back_to = |timeouts: u32| {
        let mut cubic = Cubic::default();
        (0..100).for_each(|_| cubic.on_acked(1.0, 1.0, 0.1));
        (0..timeouts).for_each(|before| cubic.on_timeout(before > 0));
        (0..50).for_each(|_| cubic.on_acked(2.0, 1.0, 0.1));
        cubic.window()
    };
    assert!(comes_back_to(1) > 50.0);
    assert_eq!(comes_back_to(1), comes_back_to(3));
}
