//! A client: four ranks, four parameters, a path.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::{Region, Structure};
use crate::chance::{Chance, Purpose};
use crate::channel::{ChannelSpec, DelayModel, GammaDelay, LossModel, Outages, PathSpec};

/// What a rank is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    Rtt,
    Variation,
    Loss,
    Outage,
}

/// The rank of a client on an axis, in [0, 1): multiples of a quadratic irrational (its fractional part), another for each axis, from a beginning
/// that the seed says. Of all sequences these leave the smallest gaps, however many clients are taken.
pub(super) fn rank(chance: &Chance, place: u32, axis: Axis) -> f64 {
    let step = match axis {
        // (sqrt(5) - 1) / 2, sqrt(2) - 1, sqrt(3) - 1, (sqrt(13) - 3) / 2.
        Axis::Rtt => 0.618_033_988_749_894_9,
        Axis::Variation => 0.414_213_562_373_095_03,
        Axis::Loss => 0.732_050_807_568_877_2,
        Axis::Outage => 0.302_775_637_731_994_6,
    };
    let begin = chance.share(Purpose::Offset, axis as u64, 0);
    let at = begin + step * f64::from(place);
    at - libm::floor(at)
}

/// A synthetic client.
#[derive(Debug, Clone)]
pub struct Client {
    /// Where it is.
    pub region: &'static Region,
    /// Its mean round trip.
    pub rtt_mean: Duration,
    /// The 90 % quantile of its round trips less their 10 % quantile.
    pub variation: Duration,
    /// Share of its packets that are lost, outages among it.
    pub loss: f64,
    /// How long its outages last; None when it has none.
    pub outage: Option<Duration>,
    /// Its path. The way of the messages has half of the least round trip, all of the variation, and the loss; the way back has
    /// the other half of the least round trip. Outages darken both.
    pub path: PathSpec,
}

/// For an exponential distribution of mean 1: ln 10 - ln(10/9), its 90 % quantile less its 10 % quantile.
const SPREAD: f64 = 2.197_224_577_336_219_4;

/// The exponential distribution, of which each client's is a copy at its own scale.
static EXPONENTIAL: LazyLock<GammaDelay> = LazyLock::new(|| {
    GammaDelay::new(Duration::ZERO, 1.0, Duration::from_millis(10))
        .expect("its shape and scale are within range")
});

impl Client {
    pub(super) fn new(
        region: &'static Region,
        structure: &Structure,
        number: u32,
        rank: impl Fn(Axis) -> f64,
    ) -> Self {
        let rtt_ms = region.rtt_mean_ms.at(rank(Axis::Rtt));
        let variation_ms = rtt_ms * region.variation_per_rtt.at(rank(Axis::Variation));
        let lossy = (rank(Axis::Loss) - region.lossless) / (1.0 - region.lossless);
        let loss = if lossy < 0.0 {
            0.0
        } else {
            region.loss.at(lossy)
        };
        let dark = structure.dark(loss, rank(Axis::Outage));
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let (rtt_mean, variation) = (ms(rtt_ms), ms(variation_ms));
        let mut client = Self {
            region,
            rtt_mean,
            variation,
            loss,
            outage: dark.as_ref().map(|dark| dark.length),
            path: PathSpec::fixed("", Duration::ZERO, crate::channel::RttSplit::EVEN),
        };
        client.path = client.make_path(structure, number, dark);
        client
    }

    /// The least round trip.
    fn rtt_min(&self) -> Duration {
        self.rtt_mean.saturating_sub(self.scale())
    }

    /// Mean of what varies.
    fn scale(&self) -> Duration {
        self.variation.div_f64(SPREAD)
    }

    /// How long the way back takes: what a latency lacks to be the round trip that the paper means by a message's delivery time.
    pub fn way_back(&self) -> Duration {
        self.rtt_min() / 2
    }

    fn make_path(&self, structure: &Structure, number: u32, dark: Option<Outages>) -> PathSpec {
        let way_back = self.way_back();
        let scale = self.scale().max(Duration::from_micros(1));
        let forward = ChannelSpec {
            delay: DelayModel::Gamma(Arc::new(EXPONENTIAL.moved(way_back, scale))),
            loss: match self.loss - dark.as_ref().map_or(0.0, dark_share) {
                rest if rest > 0.0 => structure.bursts(rest),
                _ => LossModel::None,
            },
            outages: dark.clone(),
            ..ChannelSpec::default()
        };
        let backward = ChannelSpec {
            outages: dark,
            ..ChannelSpec::fixed(way_back)
        };
        PathSpec::new(
            format!("{}-{number}", self.region.name),
            "a synthetic client",
            forward,
            backward,
        )
    }
}

/// Share of time that is dark.
fn dark_share(outages: &Outages) -> f64 {
    outages.share * outages.length.as_secs_f64() / outages.period.as_secs_f64()
}
