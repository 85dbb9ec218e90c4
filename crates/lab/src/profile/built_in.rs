//! The numbers.
//!
//! A round trip is measured, directions are what a path needs. Its base is divided evenly, and each direction varies on its own
//! with 1/sqrt(2) of the round trip's standard deviation, so that the round trip has the measured mean and deviation.

use std::sync::Arc;
use std::time::Duration;

use crate::channel::{
    ChannelSpec, DelayModel, GammaDelay, LossModel, Outages, PathSpec, RateSpec, RttSplit, Slow,
    Variation,
};

const fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

const fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A base plus gamma, from microseconds.
fn gamma(base: u64, mean: u64, sd: u64) -> DelayModel {
    let fitted = GammaDelay::fit(micros(base), micros(mean), micros(sd));
    DelayModel::Gamma(Arc::new(fitted.expect("constants of this file, tested")))
}

const fn bursts(loss_share: f64, mean_burst: Duration) -> LossModel {
    LossModel::Gilbert {
        loss_share,
        mean_burst,
        loss_in_good: 0.0,
        loss_in_bad: 1.0,
    }
}

const fn varying(coherence: Duration) -> Variation {
    Variation {
        coherence,
        slow: None,
    }
}

pub(super) fn busy_hour() -> PathSpec {
    let each_way = ChannelSpec {
        delay: gamma(59_000, 65_000, 4_000),
        variation: varying(millis(50)),
        loss: LossModel::Gilbert {
            loss_share: 0.03,
            mean_burst: millis(20),
            loss_in_good: 0.02,
            loss_in_bad: 0.5,
        },
        ..ChannelSpec::default()
    };
    PathSpec::symmetric(
        "busy-hour",
        "Synthetic. 130 ms round trip and 2 % random loss are what the authors of the thin-streams paper chose after measuring \
         from Norwegian providers to the US and Europe. Chosen, to have everything at once: the delay's variation (standard \
         deviation 4 ms each way, above a base of 59 ms) and bursts of 20 ms on average, in which half of the packets are lost, \
         for another 1 % of loss. Both directions are alike.",
        each_way,
    )
}

pub(super) fn bursty_wifi() -> PathSpec {
    let each_way = ChannelSpec {
        // Wi-Fi access of the traces, half each way: base 4.0, mean 10.3, sd 9.7/sqrt(2) = 6.9 ms; plus 20 ms of wide area.
        delay: gamma(24_000, 30_300, 6_900),
        variation: varying(millis(50)),
        loss: bursts(0.02, millis(12)),
        ..ChannelSpec::default()
    };
    PathSpec::symmetric(
        "bursty-wifi",
        "Synthetic, from two data sets. Delay: 7 recorded cloud-gaming sessions over Wi-Fi (SparkTraces/Hairpin, 150,903 \
         slots of 15 ms: round trip mean 20.6, sd 9.7, p50 18.8, p99 62, p99.9 77 ms, cut at 80 ms by the publisher; \
         correlation 0.5-0.7 after 15 ms, 0.2-0.4 after 60 ms), plus a chosen fixed 40 ms of wide-area round trip. Loss: 360 \
         Wi-Fi sessions with fitted Gilbert parameters (gilbert-model-regression): 2.0 % is their mean, and far above their \
         median of 0.12 % (75 %: 1.4 %, 90 %: 6.2 %), so this is a bad session, not a typical one; bursts of 12 ms lie between \
         the median (3 video packets, some 5 ms) and the 90 % point (11 packets, some 16 ms). Loss on the way back is assumed \
         to be alike; it was not measured.",
        each_way,
    )
}

pub(super) fn lte() -> PathSpec {
    let direction = |bits_per_second| ChannelSpec {
        // Round trip mean 39.3, sd 11.1 ms: half each way with sd 7.8, plus 5 ms of wide area.
        delay: gamma(15_000, 24_600, 7_800),
        variation: varying(millis(20)),
        loss: bursts(0.006, millis(3)),
        rate: Some(RateSpec::constant(bits_per_second, 150_000)),
        ..ChannelSpec::default()
    };
    PathSpec::new(
        "lte",
        "Synthetic, from three data sets. Delay: 2 recorded cloud-gaming sessions over cellular (SparkTraces/Hairpin, 108,719 \
         slots: round trip mean 39.3, sd 11.1, p99 74 ms, cut at 80 ms; correlation 0.3-0.4 after 15 ms), plus a chosen 10 ms \
         of wide area. Loss: the 90 % point of 234 cellular sessions (0.60 %; median 0.013 %), bursts of 1.8 packets = some \
         3 ms. Rate: means of mahimahi's three LTE recordings are 8.8 Mbit/s down and 7.1 up; 8 and 6 chosen, constant, with \
         a chosen queue of 100 full packets. No handovers: the traces have none.",
        direction(6_000_000),
        direction(8_000_000),
    )
}

pub(super) fn starlink() -> PathSpec {
    let each_way = ChannelSpec {
        // Round trip mean 47.5, sd 20.9, least 16.7 ms.
        delay: gamma(8_300, 23_700, 14_800),
        variation: Variation {
            coherence: millis(100),
            slow: Some(Slow {
                share: 0.6,
                coherence: millis(12_000),
            }),
        },
        loss: LossModel::Uniform(0.001),
        outages: Some(Outages {
            period: millis(15_000),
            length: millis(500),
            share: 0.95,
        }),
        ..ChannelSpec::default()
    };
    PathSpec::symmetric(
        "starlink",
        "Two recordings. Delay: 35,087 answered pings over 2.7 hours to a gateway in Seattle (mmsys24-starlink: round trip \
         least 16.7, mean 47.5, sd 20.9, p50 42.8, p95 86.6, p99 118, p99.9 187 ms; correlation 0.62 after 0.15 s, 0.48 after \
         1.5 s, 0.09 after 15 s). Outages: 154 s of pings each 15 ms (LENS): in each of the 10 reconfigurations, 15 s apart, 30 \
         to 34 pings in a row are lost (0.45-0.51 s); outside them 0.1 % are lost. That all reconfigurations cost an outage is \
         true of that recording only; 95 % is chosen. The split of the round trip into halves, and that outages take both \
         directions, are assumptions. The profile's own tail is lighter than the recorded one (p99.9 147 ms).",
        each_way,
    )
}

pub(super) fn transatlantic() -> PathSpec {
    let each_way = ChannelSpec {
        delay: gamma(44_000, 45_000, 1_500),
        variation: varying(millis(50)),
        loss: bursts(0.001, millis(5)),
        ..ChannelSpec::default()
    };
    PathSpec::symmetric(
        "transatlantic",
        "Chosen, not measured: a round trip of 90 ms (34 % of the pairs of PlanetLab hosts in NetLatency-Data are closer; the \
         median is 135 ms), 0.1 % loss in bursts of 5 ms each way (the median of 983 wired sessions with fitted Gilbert \
         parameters is 0.07 %), little variation.",
        each_way,
    )
}

pub(super) fn pangolin_table2() -> PathSpec {
    let (forward, backward) = RttSplit::EVEN.apply(millis(250));
    PathSpec::new(
        "pangolin-table2",
        "Pangolin (CoNEXT 2011), section 7.2 and table 2: round trip 250 ms, 2 % uniform loss on the forward connection only. \
         The paper does not say how the round trip is divided; even is assumed.",
        ChannelSpec::fixed(forward).with_loss(LossModel::Uniform(0.02)),
        ChannelSpec::fixed(backward),
    )
}

pub(super) fn thin_streams() -> PathSpec {
    let each_way = ChannelSpec::fixed(millis(65)).with_loss(LossModel::Uniform(0.02));
    PathSpec::symmetric(
        "thin-streams",
        "Improving thin streams' latency (BZFlag study): emulated round trip of 130 ms and average loss of 2 %, which its \
         authors chose after measuring from Norwegian providers to the US and Europe. Uniform loss in each direction and the \
         even split are assumptions.",
        each_way,
    )
}

pub(super) fn dsl() -> PathSpec {
    let direction = |bits_per_second, queue_bytes| ChannelSpec {
        // Round trip mean 11.7, sd 8.0 ms: half each way with sd 5.7, plus 8 ms of wide area.
        delay: gamma(10_000, 13_900, 4_000),
        variation: varying(millis(80)),
        loss: bursts(0.001, millis(8)),
        rate: Some(RateSpec::constant(bits_per_second, queue_bytes)),
        ..ChannelSpec::default()
    };
    PathSpec::new(
        "dsl",
        "Partly measured. Delay: 6 recorded cloud-gaming sessions over Ethernet (SparkTraces/Hairpin, 166,317 slots: round trip \
         mean 11.7, p50 10.2, p99 48, p99.9 74 ms, cut at 80 ms; their sd of 8.0 ms includes differences between sessions and \
         is lowered to 5.7), plus a chosen 16 ms of wide area. Loss: 0.1 % in bursts of 8 ms, between the median (0.07 %, 7 \
         packets) and the 75 % point of 983 wired sessions. Chosen: 1 Mbit/s up with a queue of 64,000 bytes (half a second \
         when full) and 16 Mbit/s down with 256,000.",
        direction(1_000_000, 64_000),
        direction(16_000_000, 256_000),
    )
}

pub(super) fn clean() -> PathSpec {
    let mut path = PathSpec::fixed("clean", millis(20), RttSplit::EVEN);
    path.source = "Chosen: a round trip of 20 ms, nothing lost, nothing varies.".to_owned();
    path
}
