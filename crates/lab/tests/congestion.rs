//! What downloads do to a link, to each other, to TCP beside them, and to small messages.

mod support;

use std::time::Duration;

use punctual_lab::channel::{LossModel, PathSpec};
use punctual_lab::stats::jain;
use punctual_lab::world::LinkSpec;
use support::bulk::{Bulk, gained, sec};
use support::{ms, path};

fn plain(rtt: Duration) -> PathSpec {
    path(rtt, |_| {})
}

struct Alone {
    used: f64,
    wait_p99_ms: f64,
    wait_max_ms: f64,
    small_p50_ms: f64,
    small_p99_ms: f64,
    dropped: u64,
    marked: u64,
}

fn alone(seed: u64, path: &PathSpec, rtt: Duration, link: LinkSpec) -> Alone {
    let mut bulk = Bulk::new(seed, rtt, link);
    bulk.download(path, Duration::ZERO);
    bulk.run(ms(500));
    if std::env::var("TRACE").is_err() {
        bulk.run(sec(3));
    }
    bulk.restart();
    bulk.small_every(ms(20));
    if std::env::var("TRACE").is_ok() {
        let mut last = 0;
        for _ in 0..200 {
            bulk.run(ms(50));
            let link = bulk.world.link(bulk.link);
            let bytes = link.stats().bytes;
            println!(
                "{:.2} window {} queue {:.2} rate {:.2} lost {}",
                bulk.world.now().0 as f64 / 1e9,
                bulk.path_window(0),
                link.queue_delay(bulk.world.now()).as_secs_f64() * 1e3,
                (bytes - last) as f64 * 8.0 / 0.05 / 1e6,
                bulk.stats(0).packets_lost,
            );
            last = bytes;
        }
    }
    bulk.run(sec(30));
    let link = bulk.world.link(bulk.link);
    let quantile =
        |latencies: &punctual_lab::stats::Latencies, q| latencies.quantile_ms(q).unwrap_or(1e9);
    let result = Alone {
        used: link.utilisation(bulk.world.now()),
        wait_p99_ms: quantile(&link.stats().waits, 0.99),
        wait_max_ms: link.stats().queue_max.as_secs_f64() * 1e3,
        small_p50_ms: quantile(&bulk.small, 0.5),
        small_p99_ms: quantile(&bulk.small, 0.99),
        dropped: link.stats().dropped,
        marked: link.stats().marked,
    };
    println!(
        "seed {seed} {:.0} Mbit/s {rtt:?}: used {:.3} wait p99 {:.2} max {:.2} ms, small p50 {:.2} p99 {:.2} ms, dropped {} marked {} lost {} of {}",
        link.spec().rate_bits_per_second as f64 / 1e6,
        result.used,
        result.wait_p99_ms,
        result.wait_max_ms,
        result.small_p50_ms,
        result.small_p99_ms,
        result.dropped,
        result.marked,
        bulk.stats(0).packets_lost,
        bulk.stats(0).packets_sent,
    );
    result
}

#[test]
fn print_alone() {
    for seed in 1..=3 {
        let lossy = path(ms(130), |c| c.loss = LossModel::Uniform(0.02));
        alone(
            seed,
            &lossy,
            ms(130),
            LinkSpec::drop_tail(8_000_000, ms(130), 1.0),
        );
    }
    alone(
        1,
        &plain(ms(130)),
        ms(130),
        LinkSpec::drop_tail(8_000_000, ms(130), 1.0),
    );
    alone(
        1,
        &plain(ms(20)),
        ms(20),
        LinkSpec::drop_tail(50_000_000, ms(20), 1.0),
    );
    let wifi = path(ms(40), |c| {
        c.delay = punctual_lab::channel::DelayModel::Normal {
            mean: ms(25),
            sd: ms(5),
            min: ms(20),
        };
    });
    println!("coherent jitter");
    alone(
        1,
        &wifi,
        ms(40),
        LinkSpec::drop_tail(8_000_000, ms(40), 1.0),
    );
    let wifi = path(ms(40), |c| c.jitter = ms(10));
    println!("reordering jitter");
    alone(
        1,
        &wifi,
        ms(40),
        LinkSpec::drop_tail(8_000_000, ms(40), 1.0),
    );
    println!("ecn");
    let mut link = LinkSpec::drop_tail(10_000_000, ms(40), 1.0);
    link.ecn_mark_bytes = Some(link.queue_bytes / 10);
    alone(1, &plain(ms(40)), ms(40), link);
}

fn beside(seed: u64, ours: usize, rivals: usize, products: f64) -> (f64, f64, f64) {
    let mut bulk = Bulk::new(
        seed,
        ms(40),
        LinkSpec::drop_tail(10_000_000, ms(40), products),
    );
    for index in 0..ours {
        bulk.download(&plain(ms(40)), ms(137 * index as u64 + seed * 31));
    }
    for index in 0..rivals {
        bulk.rival(ms(151 * index as u64 + 50 + seed * 17));
    }
    bulk.run(sec(20));
    bulk.restart();
    if std::env::var("TRACE").is_ok() {
        for _ in 0..200 {
            bulk.run(ms(50));
            let queue = bulk.world.link(bulk.link).queue_delay(bulk.world.now());
            let windows: Vec<u64> = (0..ours).map(|i| bulk.path_window(i)).collect();
            println!(
                "{:.2} queue {:.1} windows {windows:?}",
                bulk.world.now().0 as f64 / 1e9,
                queue.as_secs_f64() * 1e3,
            );
        }
    }
    let before = (bulk.received(), bulk.rivals_received());
    bulk.run(sec(60));
    let mine = gained(&before.0, &bulk.received());
    let theirs = gained(&before.1, &bulk.rivals_received());
    let half = (mine.iter().sum::<f64>() + theirs.iter().sum::<f64>()) / 2.0;
    let share = mine.iter().sum::<f64>() / half;
    let now = bulk.world.now();
    let mean = bulk.world.link_mut(bulk.link).queue_mean(now);
    let link = bulk.world.link(bulk.link);
    println!(
        "seed {seed} {ours}+{rivals} at {products} BDP: share {share:.3} jain {:.3} theirs {:.3}; used {:.3} queue mean {:.1?} dropped {:.3}",
        jain(&mine),
        jain(&theirs),
        link.utilisation(now),
        mean,
        link.stats().dropped as f64 / link.stats().packets as f64,
    );
    (share, jain(&mine), jain(&theirs))
}

#[test]
fn one_alone() {
    alone(
        2,
        &path(ms(130), |c| c.loss = LossModel::Uniform(0.02)),
        ms(130),
        LinkSpec::drop_tail(8_000_000, ms(130), 1.0),
    );
}

#[test]
fn print_beside() {
    for products in [0.5, 1.0, 4.0] {
        for seed in 1..=2 {
            beside(seed, 8, 8, products);
        }
        beside(1, 0, 16, products);
    }
}

#[test]
fn one_beside() {
    beside(1, 4, 0, 1.0);
}

#[test]
fn print_ours() {
    for products in [0.5, 1.0, 4.0] {
        for ours in [2, 4, 16] {
            beside(1, ours, 0, products);
        }
    }
}
