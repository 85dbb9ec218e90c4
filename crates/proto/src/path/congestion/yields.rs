//! Whether more comes back when more is sent. Where chance loses a share, it does; beyond what a policer lets through it does not, and nothing waits
//! there that would tell.

/// Periods that are remembered, about.
const MEMORY: u8 = 8;
/// What is sent varies by a tenth: only then it tells.
const VARIANCE: f32 = 0.01;
/// Below it more does not come of more: one where chance loses, none beyond a policer, and both are seen through the noise of twenty packets.
const SLOPE: f32 = 0.5;

/// A regression of the logarithm of what came back on that of what was sent, period by period.
#[derive(Default)]
pub(super) struct Yields {
    sent: f32,
    came: f32,
    variance: f32,
    covariance: f32,
    periods: u8,
}

impl Yields {
    /// Bytes a second of a period, or anything in proportion: both above 0.
    pub(super) fn record(&mut self, sent: f64, came: f64) {
        self.periods = (self.periods + 1).min(MEMORY);
        let weight = 1.0 / f32::from(self.periods);
        let of_sent = libm::log(sent) as f32 - self.sent;
        let of_came = libm::log(came) as f32 - self.came;
        self.sent += weight * of_sent;
        self.came += weight * of_came;
        let fade = |mean: f32, product: f32| (1.0 - weight) * (mean + weight * product);
        self.variance = fade(self.variance, of_sent * of_sent);
        self.covariance = fade(self.covariance, of_sent * of_came);
    }

    /// Whether what is sent beyond what passes is lost, without a queue.
    pub(super) fn is_policed(&self) -> bool {
        self.variance > VARIANCE && self.covariance < SLOPE * self.variance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates that go up and down by a third.
    fn told(came: impl Fn(f64) -> f64) -> bool {
        let mut yields = Yields::default();
        for period in 0..20 {
            let sent = 1e5 * [1.0, 1.2, 1.44, 1.0][period % 4];
            yields.record(sent, came(sent));
        }
        yields.is_policed()
    }

    #[test]
    fn a_policer_and_chance_are_told_apart() {
        assert!(!told(|sent| sent));
        assert!(!told(|sent| sent * 0.6));
        assert!(told(|_| 1e5));
        assert!(told(|sent| sent.min(1.1e5)));
        // Nothing is known of a path that is sent as much all the time.
        let mut steady = Yields::default();
        (0..20).for_each(|_| steady.record(1e5, 5e4));
        assert!(!steady.is_policed());
    }
}
