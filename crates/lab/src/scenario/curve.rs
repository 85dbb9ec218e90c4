//! A distribution through known quantiles, whose mean fits.
//!
//! Published tables of traffic give a few quantiles and the mean. Between two quantiles the curve is a power,
//! `from + (to - from) * v^a` for v from 0 to 1, whose mean lies at the share f = 1 / (1 + a) of the way. Each segment has a
//! share of its own; all are moved together (by one number added to their logits) until the mean of the whole is right. So the
//! quantiles are exact whatever the mean, and the mean is exact whenever the quantiles admit it.

/// A monotone distribution function given by its quantiles.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantileCurve {
    segments: Vec<Segment>,
}

/// From one quantile to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Segment {
    /// Probability below it, and in it.
    below: f64,
    weight: f64,
    from: f64,
    to: f64,
    /// The exponent a.
    power: f64,
}

/// A quantile, and how the values between it and the next lie before the mean is fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knot {
    /// Share of the draws below `value`; of the first knot 0, of the last 1.
    pub share: f64,
    /// The value.
    pub value: f64,
    /// Where the mean of the values up to the next knot lies between both: 0.5 for evenly, less when most are near this knot.
    pub lean: f64,
}

/// No segment's mean comes nearer to its ends than logits of 12 allow (6 millionths of its length).
const LOGIT_MAX: f64 = 12.0;

impl QuantileCurve {
    /// The curve through `knots` whose mean is `mean`, or as near to that as the knots admit ([`QuantileCurve::mean`] says
    /// how near). None unless the shares rise from 0 to 1, the values never fall, and the leans lie between 0 and 1.
    pub fn fit(knots: &[Knot], mean: f64) -> Option<Self> {
        let is_ordered = knots.windows(2).all(|pair| {
            pair[0].share < pair[1].share
                && pair[0].value <= pair[1].value
                && (pair[0].lean > 0.0 && pair[0].lean < 1.0)
        });
        let ends = (knots.first()?, knots.last()?);
        let is_whole = knots.len() >= 2 && ends.0.share == 0.0 && ends.1.share == 1.0;
        let is_finite = knots.iter().all(|knot| knot.value.is_finite());
        if !(is_ordered && is_whole && is_finite && mean.is_finite()) {
            return None;
        }
        let (mut low, mut high) = (-2.0 * LOGIT_MAX, 2.0 * LOGIT_MAX);
        // 60 halvings: to the last bit.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if Self::shifted(knots, middle).mean() < mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(Self::shifted(knots, f64::midpoint(low, high)))
    }

    fn shifted(knots: &[Knot], shift: f64) -> Self {
        let segment = |pair: &[Knot]| {
            let logit = libm::log(pair[0].lean / (1.0 - pair[0].lean)) + shift;
            Segment {
                below: pair[0].share,
                weight: pair[1].share - pair[0].share,
                from: pair[0].value,
                to: pair[1].value,
                // f = 1 / (1 + e^-logit) = 1 / (1 + a).
                power: libm::exp(-logit.clamp(-LOGIT_MAX, LOGIT_MAX)),
            }
        };
        Self {
            segments: knots.windows(2).map(segment).collect(),
        }
    }

    /// The value below which a share `share` of the draws lies: put a uniform random number in, and have a draw.
    pub fn value(&self, share: f64) -> f64 {
        let last = self.segments.len() - 1;
        let at = self.segments[..last].partition_point(|s| s.below + s.weight <= share);
        let segment = &self.segments[at];
        let within = ((share - segment.below) / segment.weight).clamp(0.0, 1.0);
        segment.from + (segment.to - segment.from) * libm::pow(within, segment.power)
    }

    /// The share of draws that are `value` or less.
    pub fn share_within(&self, value: f64) -> f64 {
        self.segments.iter().map(|s| s.share_within(value)).sum()
    }

    /// The mean of the draws.
    pub fn mean(&self) -> f64 {
        let mean_of = |s: &Segment| s.weight * (s.from + (s.to - s.from) / (1.0 + s.power));
        self.segments.iter().map(mean_of).sum()
    }
}

impl Segment {
    fn share_within(&self, value: f64) -> f64 {
        if value >= self.to {
            self.weight
        } else if value < self.from {
            0.0
        } else {
            let way = (value - self.from) / (self.to - self.from);
            self.weight * libm::pow(way, 1.0 / self.power)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOTS: [Knot; 4] = [
        knot(0.0, 1.0, 0.5),
        knot(0.25, 2.0, 0.7),
        knot(0.75, 10.0, 0.3),
        knot(1.0, 100.0, 0.5),
    ];

    const fn knot(share: f64, value: f64, lean: f64) -> Knot {
        Knot { share, value, lean }
    }

    #[test]
    fn the_mean_fits_and_quantiles_stay() {
        for mean in [5.0, 10.0, 20.0, 30.0] {
            let curve = QuantileCurve::fit(&KNOTS, mean).unwrap();
            assert!((curve.mean() - mean).abs() < 1e-9, "{mean}");
            for knot in &KNOTS {
                assert!((curve.value(knot.share) - knot.value).abs() < 1e-9);
            }
            // The same by adding up the curve itself.
            let n = 1_000_000;
            let sum: f64 = (0..n)
                .map(|i| curve.value((f64::from(i) + 0.5) / f64::from(n)))
                .sum();
            assert!((sum / f64::from(n) - mean).abs() < 1e-3, "{mean}");
        }
    }

    #[test]
    fn share_and_value_are_inverse() {
        let curve = QuantileCurve::fit(&KNOTS, 12.0).unwrap();
        for i in 1..1000 {
            let share = f64::from(i) / 1000.0;
            assert!((curve.share_within(curve.value(share)) - share).abs() < 1e-9);
        }
        assert_eq!(
            (curve.share_within(0.9), curve.share_within(100.0)),
            (0.0, 1.0)
        );
    }

    #[test]
    fn what_the_quantiles_do_not_admit_is_met_as_nearly_as_can_be() {
        // Between 0.25 * 1 + 0.5 * 2 + 0.25 * 10 = 3.75 and 0.25 * 2 + 0.5 * 10 + 0.25 * 100 = 30.5.
        let low = QuantileCurve::fit(&KNOTS, 1.0).unwrap().mean();
        let high = QuantileCurve::fit(&KNOTS, 90.0).unwrap().mean();
        assert!((low - 3.75).abs() < 0.001 && (high - 30.5).abs() < 0.001);
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(QuantileCurve::fit(&KNOTS[..1], 5.0), None);
        assert_eq!(QuantileCurve::fit(&KNOTS[1..], 5.0), None);
        assert_eq!(QuantileCurve::fit(&[], 5.0), None);
        assert_eq!(QuantileCurve::fit(&KNOTS, f64::NAN), None);
        let falling = [knot(0.0, 2.0, 0.5), knot(1.0, 1.0, 0.5)];
        assert_eq!(QuantileCurve::fit(&falling, 1.5), None);
    }

    #[test]
    fn equal_quantiles_are_an_atom() {
        let knots = [
            knot(0.0, 0.0, 0.5),
            knot(0.5, 0.0, 0.3),
            knot(1.0, 10.0, 0.5),
        ];
        let curve = QuantileCurve::fit(&knots, 2.0).unwrap();
        assert_eq!((curve.value(0.2), curve.share_within(0.0)), (0.0, 0.5));
        assert!(curve.value(0.9) > 0.0);
    }
}
