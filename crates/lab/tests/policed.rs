//! Policers: buckets that fill at a rate, in which nothing waits. What comes on top is lost.

mod support;

use std::time::Duration;

use punctual_lab::channel::DelayModel;
use punctual_lab::world::LinkSpec;
use support::bulk::{Bulk, sec};
use support::{ms, path};

/// What a download sends into a policer and loses there, in shares of the rate and of the packets, for each five seconds.
fn downloads(seed: u64, mbit: u64, bucket: u64, rtt: Duration) -> Vec<(f64, f64)> {
    let network = path(rtt, |channel| {
        let (mean, sd, min) = (rtt / 2, ms(1) / 2, rtt / 2 - ms(2));
        channel.delay = DelayModel::Normal { mean, sd, min };
    });
    let mut bulk = Bulk::new(seed, rtt, LinkSpec::policer(mbit * 1_000_000, bucket));
    bulk.download(&network, Duration::ZERO);
    let seconds = 5;
    let spans = (0..8).map(|_| {
        bulk.restart();
        bulk.run(sec(seconds));
        let link = bulk.world.link(bulk.link);
        let (passed, dropped) = (link.stats().packets as f64, link.stats().dropped as f64);
        (
            link.utilisation(bulk.world.now()),
            dropped / (passed + dropped).max(1.0),
        )
    });
    spans.collect()
}

/// What was lost in a policer was taken for chance, since what had come back at first (its bucket was full) was much more: each cut was taken back, and 30 to 74 % of all packets
/// were lost for as long as the first was remembered, and longer.
#[test]
fn a_policer_is_not_taken_for_chance() {
    // (At 2 Mbit/s and 20 ms three packets are too many.)
    for (mbit, bucket, most) in [(5, 64_000, 0.25), (20, 1_000_000, 0.12), (2, 30_000, 0.35)] {
        for rtt in [20, 40, 100] {
            for seed in 1..=3 {
                let spans = downloads(seed, mbit, bucket, ms(rtt));
                let (used, lost): (Vec<f64>, Vec<f64>) = spans[1..].iter().copied().unzip();
                let told = format!("{mbit} Mbit/s, {rtt} ms, seed {seed}: {used:.2?} {lost:.2?}");
                assert!(lost.iter().sum::<f64>() / 7.0 <= most, "{told}");
                assert!(used.iter().sum::<f64>() / 7.0 >= 0.8, "{told}");
            }
        }
    }
}
