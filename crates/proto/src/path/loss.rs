//! How likely a packet is lost: a mean, with which lateness is predicted, and an upper bound, with which policies decide.
//!
//! The bound is the one-sided 95 % Wilson bound of the (fading) counts and of a prior worth 26 packets without a loss. It lies
//! a little above the 95 % credible bound of the prior Beta(1/2, 26) (a test compares them) and needs one square root.
//! Before the first packet it is 9.5 %: of the 1,577 cloud-gaming sessions in the Gilbert parameters of
//! hkust-spark/gilbert-model-regression, 95 % lost less. It is 5.6 % after 20 packets without a loss, 2.1 % after 100,
//! 0.26 % after 1,000 (decision 0001).
//!
//! The mean starts from those sessions' mean, 1.5 %, with the weight of 10 packets, because a prediction must be a number
//! before the first packet; it is forgotten as fast as packets come.
//!
//! Two memories are kept, of about 8,000 and 200 packets. When the short one contradicts the long one (their intervals do not
//! touch), the path has changed, and the long one starts again from the short one.

/// Packets that the long memory holds.
const SLOW: f32 = 8192.0;
/// Packets that the short memory holds.
const FAST: f32 = 192.0;
/// One-sided 95 % of the normal distribution.
const Z: f32 = 1.645;
/// For a change of the path to be believed: one in ten thousand by chance at each look.
const Z_CHANGE: f32 = 3.7;
const PRIOR_MEAN: f64 = 0.015;
const PRIOR_WEIGHT: f64 = 10.0;
/// Packets without a loss that the bound starts from: z^2 / (25.8 + z^2) = 9.5 %.
const PRIOR_PACKETS: f32 = 25.8;

#[derive(Clone, Copy, Default)]
struct Counts {
    packets: f32,
    lost: f32,
}

impl Counts {
    fn record(&mut self, lost: bool, memory: f32) {
        let keep = 1.0 - 1.0 / memory;
        self.packets = self.packets * keep + 1.0;
        self.lost = self.lost * keep + f32::from(u8::from(lost));
    }

    /// The Wilson interval's lower and upper end, when `more` packets without a loss are added.
    fn interval(&self, z: f32, more: f32) -> (f32, f32) {
        let n = self.packets + more;
        let p = if n > 0.0 { self.lost / n } else { 0.5 };
        let z2 = z * z;
        let middle = p * n + z2 / 2.0;
        let half = z * libm::sqrtf(n * p * (1.0 - p) + z2 / 4.0);
        (
            ((middle - half) / (n + z2)).max(0.0),
            ((middle + half) / (n + z2)).min(1.0),
        )
    }
}

/// Loss of one direction.
#[derive(Clone, Copy, Default)]
pub(crate) struct Loss {
    slow: Counts,
    fast: Counts,
}

impl Loss {
    /// A packet has arrived, or is taken for lost.
    pub(crate) fn record(&mut self, lost: bool) {
        self.slow.record(lost, SLOW);
        self.fast.record(lost, FAST);
        // Not where nothing is lost: a path that has become better is known as the long memory fades. (Notes on steering: looking for it among arrivals as well.)
        if lost {
            self.notice_change();
        }
    }

    /// A packet that was taken for lost has arrived after all. It counts once, as arrived.
    pub(crate) fn correct(&mut self) {
        self.slow.lost = (self.slow.lost - 1.0).max(0.0);
        self.fast.lost = (self.fast.lost - 1.0).max(0.0);
    }

    fn notice_change(&mut self) {
        let (fast_low, fast_high) = self.fast.interval(Z_CHANGE, 0.0);
        let (slow_low, slow_high) = self.slow.interval(Z_CHANGE, 0.0);
        if fast_low > slow_high || fast_high < slow_low {
            self.slow = self.fast;
        }
    }

    /// The best single estimate.
    pub(crate) fn mean(&self) -> f64 {
        let packets = f64::from(self.slow.packets) + PRIOR_WEIGHT;
        (f64::from(self.slow.lost) + PRIOR_MEAN * PRIOR_WEIGHT) / packets
    }

    /// What loss is at most, with 95 % confidence.
    pub(crate) fn upper_bound(&self) -> f32 {
        self.slow.interval(Z, PRIOR_PACKETS).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 95 % quantile of Beta(lost + 1/2, arrived + 26), by summing its density.
    fn credible_bound(packets: u32, lost: u32) -> f64 {
        let (a, b) = (f64::from(lost) + 0.5, f64::from(packets - lost) + 26.0);
        let log_density = |x: f64| (a - 1.0) * libm::log(x) + (b - 1.0) * libm::log(1.0 - x);
        let steps = 400_000;
        let peak = (1..steps)
            .map(|i| log_density(f64::from(i) / f64::from(steps)))
            .fold(f64::MIN, f64::max);
        let density: alloc::vec::Vec<f64> = (1..steps)
            .map(|i| libm::exp(log_density(f64::from(i) / f64::from(steps)) - peak))
            .collect();
        let total: f64 = density.iter().sum();
        let mut below = 0.0;
        for (i, part) in density.iter().enumerate() {
            below += part;
            if below >= 0.95 * total {
                return (i + 1) as f64 / f64::from(steps);
            }
        }
        1.0
    }

    #[test]
    fn the_bound_is_honest_and_close_to_the_credible_bound() {
        for (packets, lost) in [
            (0, 0),
            (4, 0),
            (20, 0),
            (20, 2),
            (100, 0),
            (100, 2),
            (1000, 0),
            (1000, 20),
            (1000, 100),
        ] {
            let mut counts = Counts::default();
            for i in 0..packets {
                counts.record(i < lost, f32::MAX);
            }
            let (bound, credible) = (
                f64::from(counts.interval(Z, PRIOR_PACKETS).1),
                credible_bound(packets, lost),
            );
            assert!(
                bound >= credible * 0.97,
                "{packets} {lost}: {bound} below {credible}"
            );
            assert!(
                bound <= credible * 1.5 + 0.001,
                "{packets} {lost}: {bound} far above {credible}"
            );
        }
        assert!(
            (Loss::default().upper_bound() - 0.095).abs() < 0.001,
            "nothing seen"
        );
    }

    #[test]
    fn a_late_arrival_is_not_a_loss() {
        let mut loss = Loss::default();
        for _ in 0..100 {
            loss.record(false);
        }
        let before = loss.mean();
        loss.record(true);
        loss.correct();
        assert!((loss.mean() - before).abs() < 0.001);
    }

    #[test]
    fn a_changed_path_is_noticed() {
        let mut loss = Loss::default();
        for _ in 0..8000 {
            loss.record(false);
        }
        for i in 0..100 {
            loss.record(i % 5 == 0);
        }
        assert!(loss.mean() > 0.05, "{}", loss.mean());
        for _ in 0..400 {
            loss.record(false);
        }
        assert!(loss.upper_bound() < 0.05, "{}", loss.upper_bound());
    }

    #[test]
    fn a_steady_path_is_learnt() {
        let mut loss = Loss::default();
        for i in 0..8000u32 {
            // Every fiftieth, shuffled a little: 2 %.
            loss.record(i.wrapping_mul(2_654_435_761) % 50 == 0);
        }
        assert!((loss.mean() - 0.02).abs() < 0.004, "{}", loss.mean());
        assert!(loss.upper_bound() < 0.027);
    }
}
