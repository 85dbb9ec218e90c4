//! Latencies of messages: quantiles over all of them, also those that never arrived.

use hdrhistogram::Histogram;

use super::LatencyMs;

/// Records latencies in microseconds, up to an hour, to within 0.1 %.
///
/// A message that never arrives counts as later than any other, so a quantile that falls among those is None: leaving them
/// out would make the policy that drops most look fastest.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
    max_us: u64,
    lost: u64,
}

const LONGEST_US: u64 = 3_600_000_000;

impl Default for Latencies {
    fn default() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, LONGEST_US, 3)
                .expect("these bounds are valid"),
            max_us: 0,
            lost: 0,
        }
    }
}

impl Latencies {
    /// A message arrived after this many microseconds.
    pub fn record(&mut self, latency_us: u64) {
        self.histogram
            .saturating_record(latency_us.clamp(1, LONGEST_US));
        self.max_us = self.max_us.max(latency_us);
    }

    /// A message never arrived.
    pub const fn record_lost(&mut self) {
        self.lost += 1;
    }

    /// Adds those of another recorder.
    pub fn merge(&mut self, other: &Self) {
        self.histogram
            .add(&other.histogram)
            .expect("both have the same bounds");
        self.max_us = self.max_us.max(other.max_us);
        self.lost += other.lost;
    }

    /// Messages, also those that never arrived.
    pub fn messages(&self) -> u64 {
        self.histogram.len() + self.lost
    }

    /// Messages that never arrived.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// The latency in milliseconds within which a share `quantile` of all messages arrived; None when so many never did.
    pub fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        let delivered = self.histogram.len();
        let rank = (quantile * self.messages() as f64).ceil().max(1.0);
        if delivered == 0 || rank > delivered as f64 {
            return None;
        }
        // The histogram multiplies and rounds up again: from the middle of a rank it comes to that rank.
        let us = (self.histogram).value_at_quantile((rank - 0.5) / delivered as f64);
        Some(us.min(self.max_us.max(1)) as f64 / 1000.0)
    }

    /// Messages that arrived after a deadline or never.
    pub fn late(&self, deadline_us: u64) -> u64 {
        let in_time = self.histogram.count_between(0, deadline_us.min(LONGEST_US));
        self.messages() - in_time
    }

    /// The quantiles that are reported.
    pub fn quantiles(&self) -> LatencyMs {
        LatencyMs {
            p50: self.quantile_ms(0.5),
            p95: self.quantile_ms(0.95),
            p99: self.quantile_ms(0.99),
            p99_5: self.quantile_ms(0.995),
            p99_9: self.quantile_ms(0.999),
            max: (!self.histogram.is_empty()).then_some(self.max_us as f64 / 1000.0),
        }
    }

    /// (latency in ms, share of messages that were later), falling in the share; a few hundred points, for plots. Ends with
    /// the share that never arrived (0 when all did).
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let total = self.messages() as f64;
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut passed = 0;
        let mut before = (0.0, 1.0);
        for step in self.histogram.iter_recorded() {
            passed += step.count_since_last_iteration();
            let latency = step.value_iterated_to().min(self.max_us.max(1)) as f64 / 1000.0;
            let here = (latency, 1.0 - passed as f64 / total);
            // A point that could not be told from the last on a plot of some hundred pixels is left out, but its
            // predecessor is drawn when a step follows.
            let &mut (x, y) = points.last_mut().unwrap_or(&mut (-1.0, 2.0));
            if here.0 > x * 1.003 + 0.01 || here.1 < y * 0.985 {
                if before.0 > x && here.0 > before.0 * 1.01 {
                    points.push(before);
                }
                points.push(here);
            }
            before = here;
        }
        if points.last().is_some_and(|&last| last != before) {
            points.push(before);
        }
        points
    }
}
