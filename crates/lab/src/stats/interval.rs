//! 95 % intervals of a share.
//!
//! Messages of one path are not independent: misses come in runs. Wilson's interval, which takes them as independent, is then
//! too narrow. So whole paths (or, with a single path, blocks of time) are resampled: [`resample`].

use serde::{Deserialize, Serialize};

use crate::chance::{Chance, Purpose};

/// From `low` to `high`; written as `[low, high]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 2]", into = "[f64; 2]")]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<[f64; 2]> for Interval {
    fn from([low, high]: [f64; 2]) -> Self {
        Self { low, high }
    }
}

impl From<Interval> for [f64; 2] {
    fn from(interval: Interval) -> Self {
        [interval.low, interval.high]
    }
}

impl Interval {
    /// Whether a value lies within.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The least interval that holds both.
    #[must_use]
    pub const fn hull(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }
}

/// Something counted together: a path, or a block of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cluster {
    /// How many of `of` had the property.
    pub hits: u64,
    /// How many there were.
    pub of: u64,
}

/// Fewer clusters than this say nothing about how they differ: then paths are cut into stretches of time.
pub const CLUSTERS_MIN: usize = 20;

/// Clusters of messages that paths take turns to send: those of each path, or, where there are few paths, of stretches of its time.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    paths: u64,
    rounds: u64,
    stretches: u64,
}

impl Turns {
    /// So many messages over so many paths (one if none).
    pub fn new(paths: usize, messages: u64) -> Self {
        let paths = paths.max(1) as u64;
        let rounds = messages.div_ceil(paths).max(1);
        Self {
            paths,
            rounds,
            stretches: (CLUSTERS_MIN as u64).div_ceil(paths).min(rounds),
        }
    }

    /// Clusters.
    pub const fn count(&self) -> usize {
        (self.paths * self.stretches) as usize
    }

    /// Which one message `number` is of, counted from 0; those beyond the last are of a path's last.
    pub fn cluster_of(&self, number: u64) -> usize {
        let (round, path) = (number / self.paths, number % self.paths);
        let stretch = u128::from(round) * u128::from(self.stretches) / u128::from(self.rounds);
        (path * self.stretches) as usize + (stretch as u64).min(self.stretches - 1) as usize
    }
}

/// Wilson's 95 % interval of a share, for independent events. (0, 1) when there were none.
pub fn wilson(hits: u64, of: u64) -> Interval {
    if of == 0 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    const Z: f64 = 1.959_963_984_540_054;
    let n = of as f64;
    let share = hits as f64 / n;
    let shrink = 1.0 + Z * Z / n;
    let centre = (share + Z * Z / (2.0 * n)) / shrink;
    let half = Z / shrink * libm::sqrt(share * (1.0 - share) / n + Z * Z / (4.0 * n * n));
    // The ends are exactly 0 and 1 there, but for rounding.
    let low = if hits == 0 {
        0.0
    } else {
        (centre - half).max(0.0)
    };
    let high = if hits == of {
        1.0
    } else {
        (centre + half).min(1.0)
    };
    Interval { low, high }
}

/// 95 % interval of the share over all clusters, by drawing whole clusters with replacement (percentile bootstrap with
/// `rounds` draws, at most 100,000). None with fewer than two clusters.
pub fn resample(clusters: &[Cluster], rounds: u32, seed: u64) -> Option<Interval> {
    bootstrap(clusters.len(), rounds, seed, |drawn| {
        let (mut hits, mut of) = (0, 0);
        for &place in drawn {
            hits += clusters[place].hits;
            of += clusters[place].of;
        }
        if of == 0 {
            0.0
        } else {
            hits as f64 / of as f64
        }
    })
}

/// 95 % interval of any number over groups: `statistic` gets the places of the groups of a draw, some of them several times. Rounds and
/// None as in [`resample`].
pub fn bootstrap(
    groups: usize,
    rounds: u32,
    seed: u64,
    mut statistic: impl FnMut(&[usize]) -> f64,
) -> Option<Interval> {
    if groups < 2 || rounds == 0 {
        return None;
    }
    let chance = Chance::new(seed, 0);
    let mut drawn = vec![0; groups];
    let mut values: Vec<f64> = (0..u64::from(rounds.min(100_000)))
        .map(|round| {
            for (place, drawn) in (0..).zip(&mut drawn) {
                *drawn = chance.below(groups as u64, Purpose::Resample, round, place) as usize;
            }
            statistic(&drawn)
        })
        .collect();
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values[(q * (values.len() - 1) as f64).round() as usize];
    Some(Interval {
        low: at(0.025),
        high: at(0.975),
    })
}

/// The interval to report: whole clusters resampled, but never narrower than Wilson's. (When no cluster has a hit, or there
/// are few clusters, resampling alone would claim to be surer than the number of messages allows.)
pub fn share_interval(clusters: &[Cluster], seed: u64) -> Interval {
    let hits = clusters.iter().map(|cluster| cluster.hits).sum();
    let of = clusters.iter().map(|cluster| cluster.of).sum();
    let independent = wilson(hits, of);
    // 1,000 draws place the ends of a 95 % interval within a percent of probability.
    resample(clusters, 1000, seed).map_or(independent, |resampled| resampled.hull(independent))
}

/// Cuts a series into blocks of `length` for [`resample`]: for a single path, with blocks longer than its runs of misses.
pub fn blocks(series: &[bool], length: usize) -> Vec<Cluster> {
    series
        .chunks(length.max(1))
        .map(|block| Cluster {
            hits: block.iter().filter(|&&hit| hit).count() as u64,
            of: block.len() as u64,
        })
        .collect()
}
