//! A distribution by some of its quantiles, for what is only known so.

/// Quantiles (share, value), both rising; shares from 0 to below 1, values above 0.
///
/// Between two of them the share above falls as a power of the value, so a straight line on paper that is logarithmic both ways:
/// what a tail is usually drawn on. Beyond the last there is nothing.
#[derive(Debug, Clone, Copy)]
pub struct Quantiles(pub &'static [(f64, f64)]);

impl Quantiles {
    /// The value that a share of all lies below.
    pub fn at(&self, share: f64) -> f64 {
        let nodes = self.0;
        let after = nodes.partition_point(|&(at, _)| at <= share);
        let (Some(&(low, low_value)), Some(&(high, high_value))) =
            (nodes.get(after.wrapping_sub(1)), nodes.get(after))
        else {
            let end = if after == 0 {
                nodes.first()
            } else {
                nodes.last()
            };
            return end.map_or(0.0, |&(_, value)| value);
        };
        let way = libm::log((1.0 - low) / (1.0 - share)) / libm::log((1.0 - low) / (1.0 - high));
        low_value * libm::pow(high_value / low_value, way)
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        // In the middle of a million equal shares: to a part in a thousand, for tails as they occur here.
        const STEPS: u32 = 100_000;
        let at = |step: u32| self.at((f64::from(step) + 0.5) / f64::from(STEPS));
        (0..STEPS).map(at).sum::<f64>() / f64::from(STEPS)
    }
}
