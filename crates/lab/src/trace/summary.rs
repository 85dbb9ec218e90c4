//! What a trace looks like in a few numbers: what profiles are chosen by, and what a user checks first.

use std::fmt;
use std::time::Duration;

use super::{Content, Outcome, Sample, Trace};

/// A trace in a few numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSummary {
    /// Probes, slots or opportunities.
    pub samples: usize,
    /// From the first to the last.
    pub duration: Duration,
    /// Median time between two.
    pub spacing: Duration,
    /// Share lost, of probes or (in cloud-gaming logs) mean of the slots' shares.
    pub loss_share: f64,
    /// Share of probes or slots with any loss.
    pub lossy_share: f64,
    /// Mean number of samples with loss in a row; 0 without loss.
    pub loss_run: f64,
    /// Longest number of samples with loss in a row.
    pub loss_run_max: usize,
    /// Round-trip times in milliseconds: least, median, 95 %, 99 %, 99.9 %, greatest. Zero for capacity traces.
    pub rtt_ms: [f64; 6],
    /// Mean round-trip time in milliseconds.
    pub rtt_mean_ms: f64,
    /// Its standard deviation.
    pub rtt_sd_ms: f64,
    /// Correlation of the round-trip time with that of the next sample.
    pub rtt_correlation: f64,
    /// Mean capacity in bits a second, of capacity traces.
    pub bits_per_second: Option<f64>,
}

impl Trace {
    /// The trace in a few numbers.
    pub fn summary(&self) -> TraceSummary {
        match &self.content {
            Content::Samples(samples) => of_samples(samples),
            Content::Capacity(opportunities) => of_capacity(opportunities),
        }
    }
}

fn of_samples(samples: &[Sample]) -> TraceSummary {
    let mut rtt: Vec<f64> = samples
        .iter()
        .filter_map(|s| s.outcome.rtt_us())
        .map(|us| f64::from(us) / 1000.0)
        .collect();
    let losses: Vec<f64> = samples
        .iter()
        .map(|sample| lost_share(&sample.outcome))
        .collect();
    let runs: Vec<usize> = losses
        .split(|&loss| loss == 0.0)
        .map(<[f64]>::len)
        .filter(|&run| run > 0)
        .collect();
    let lossy: usize = runs.iter().sum();
    let n = samples.len().max(1) as f64;
    let (mean, sd, correlation) = moments(&rtt);
    rtt.sort_by(f64::total_cmp);
    TraceSummary {
        samples: samples.len(),
        duration: Duration::from_micros(samples.last().map_or(0, |sample| sample.at_us)),
        spacing: spacing(
            samples
                .windows(2)
                .map(|pair| pair[1].at_us - pair[0].at_us)
                // Packets that left together are one moment.
                .filter(|&gap| gap > 0)
                .collect(),
        ),
        loss_share: losses.iter().sum::<f64>() / n,
        lossy_share: lossy as f64 / n,
        loss_run: lossy as f64 / runs.len().max(1) as f64,
        loss_run_max: runs.iter().copied().max().unwrap_or(0),
        rtt_ms: [0.0, 0.5, 0.95, 0.99, 0.999, 1.0].map(|q| quantile(&rtt, q)),
        rtt_mean_ms: mean,
        rtt_sd_ms: sd,
        rtt_correlation: correlation,
        bits_per_second: None,
    }
}

fn of_capacity(opportunities: &[u32]) -> TraceSummary {
    let last_ms = u64::from(opportunities.last().copied().unwrap_or(0)).max(1);
    let gaps = opportunities
        .windows(2)
        .map(|pair| u64::from(pair[1] - pair[0]) * 1000)
        .collect();
    TraceSummary {
        samples: opportunities.len(),
        duration: Duration::from_millis(last_ms),
        spacing: spacing(gaps),
        loss_share: 0.0,
        lossy_share: 0.0,
        loss_run: 0.0,
        loss_run_max: 0,
        rtt_ms: [0.0; 6],
        rtt_mean_ms: 0.0,
        rtt_sd_ms: 0.0,
        rtt_correlation: 0.0,
        bits_per_second: Some(opportunities.len() as f64 * 12_000_000.0 / last_ms as f64),
    }
}

fn lost_share(outcome: &Outcome) -> f64 {
    match *outcome {
        Outcome::Slot { loss, .. } => f64::from(loss),
        _ if outcome.rtt_us().is_some() => 0.0,
        _ => 1.0,
    }
}

fn spacing(mut gaps: Vec<u64>) -> Duration {
    if gaps.is_empty() {
        return Duration::ZERO;
    }
    let middle = gaps.len() / 2;
    Duration::from_micros(*gaps.select_nth_unstable(middle).1)
}

/// Mean, standard deviation, and correlation with the next.
fn moments(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum::<f64>()
        / n;
    let products = values
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean));
    let correlation = if variance > 0.0 {
        products.sum::<f64>() / n / variance
    } else {
        0.0
    };
    (mean, variance.sqrt(), correlation)
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.clamp(1, sorted.len().max(1)) - 1)
        .copied()
        .unwrap_or(0.0)
}

impl fmt::Display for TraceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.duration.as_secs_f64();
        if let Some(rate) = self.bits_per_second {
            return write!(f, "{:.0} s, mean {:.2} Mbit/s", seconds, rate / 1e6);
        }
        let [min, p50, p95, p99, p99_9, max] = self.rtt_ms;
        write!(
            f,
            "{seconds:.0} s, {} samples each {:.1?}, loss {:.3} % (runs of {:.1}, at most {}), rtt min {min:.1} p50 \
             {p50:.1} p95 {p95:.1} p99 {p99:.1} p99.9 {p99_9:.1} max {max:.1} ms, mean {:.1} +- {:.1}, correlation {:.2}",
            self.samples,
            self.spacing,
            self.loss_share * 100.0,
            self.loss_run,
            self.loss_run_max,
            self.rtt_mean_ms,
            self.rtt_sd_ms,
            self.rtt_correlation
        )
    }
}
