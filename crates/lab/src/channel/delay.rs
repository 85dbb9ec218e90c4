//! How long a packet takes.
//!
//! Real delay varies, but not from packet to packet: two packets a millisecond apart meet nearly the same queues. (In the
//! recorded Wi-Fi traces the correlation is 0.5 to 0.7 after 15 ms and 0.2 to 0.4 after 60 ms.) Independent delays would
//! reorder nearly everything. So the delay is a random function of time:
//!
//! 1. At knots every `coherence` there are independent standard normal numbers z, hashed from the knot's number.
//! 2. Between two knots, z = ((1-f) z0 + f z1) / sqrt((1-f)^2 + f^2): a straight line, rescaled so that z is standard normal
//!    at every instant, not only at the knots.
//! 3. A second, slower function of the same kind may be mixed in: sqrt(1-s) fast + sqrt(s) slow; still standard normal.
//! 4. The model maps z to a delay through its quantile function, so the delay has exactly the model's distribution at every
//!    instant, and changes smoothly.
//!
//! All of it is pure and takes constant time; the numbers at the two current knots are remembered only because
//! logarithms and cosines cost more than a comparison.

use std::sync::Arc;
use std::time::Duration;

use super::playback::DelayPlayback;
use super::{DelayModel, Variation, micros};
use crate::chance::{Chance, Purpose};

#[derive(Debug, Clone)]
pub(super) enum DelayField {
    Fixed(u64),
    Normal {
        mean_us: f64,
        sd_us: f64,
        min_us: f64,
        z: Field,
    },
    Gamma {
        quantiles: Arc<GammaDelay>,
        z: Field,
    },
    Trace(DelayPlayback),
}

impl DelayField {
    pub(super) fn new(
        model: &DelayModel,
        variation: &Variation,
        chance: Chance,
        shared: Chance,
    ) -> Self {
        match model {
            DelayModel::Fixed(delay) => Self::Fixed(micros(*delay)),
            DelayModel::Normal { mean, sd, min } => Self::Normal {
                mean_us: micros(*mean) as f64,
                sd_us: micros(*sd) as f64,
                min_us: micros(*min) as f64,
                z: Field::new(variation, chance),
            },
            DelayModel::Gamma(gamma) => Self::Gamma {
                quantiles: Arc::clone(gamma),
                z: Field::new(variation, chance),
            },
            DelayModel::Trace(trace) => Self::Trace(DelayPlayback::new(Arc::clone(trace), shared)),
        }
    }

    /// Whether packets of one instant differ.
    pub(super) const fn is_drawn_by_packet(&self) -> bool {
        match self {
            Self::Fixed(_) | Self::Trace(_) => false,
            Self::Normal { z, .. } | Self::Gamma { z, .. } => z.is_drawn_by_packet(),
        }
    }

    #[inline]
    pub(super) fn at(&mut self, at_us: u64, slot: u64, index: u64) -> u64 {
        match self {
            Self::Fixed(delay) => *delay,
            Self::Normal {
                mean_us,
                sd_us,
                min_us,
                z,
            } => (*mean_us + *sd_us * z.at(at_us, slot, index)).max(*min_us) as u64,
            Self::Gamma { quantiles, z } => quantiles.at(z.at(at_us, slot, index)) as u64,
            Self::Trace(playback) => playback.delay_us(at_us),
        }
    }
}

/// A function of time that is standard normal at every instant.
#[derive(Debug, Clone)]
pub(super) struct Field {
    fast: Knots,
    slow: Option<(Knots, f64, f64)>,
    chance: Chance,
}

impl Field {
    fn new(variation: &Variation, chance: Chance) -> Self {
        Self {
            fast: Knots::new(variation.coherence, Purpose::Knot),
            slow: variation.slow.as_ref().map(|slow| {
                let knots = Knots::new(slow.coherence, Purpose::SlowKnot);
                (knots, libm::sqrt(1.0 - slow.share), libm::sqrt(slow.share))
            }),
            chance,
        }
    }

    const fn is_drawn_by_packet(&self) -> bool {
        self.fast.span_us == 0
    }

    #[inline]
    fn at(&mut self, at_us: u64, slot: u64, index: u64) -> f64 {
        let fast = if self.is_drawn_by_packet() {
            self.chance.normal(Purpose::Knot, slot, index)
        } else {
            self.fast.at(at_us, &self.chance)
        };
        match &mut self.slow {
            None => fast,
            Some((slow, fast_weight, slow_weight)) => {
                *fast_weight * fast + *slow_weight * slow.at(at_us, &self.chance)
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Knots {
    span_us: u64,
    purpose: Purpose,
    /// The knot before the last asked time, and z there and at the next: a memory of a pure function.
    number: u64,
    ends: (f64, f64),
}

impl Knots {
    fn new(span: Duration, purpose: Purpose) -> Self {
        Self {
            span_us: micros(span),
            purpose,
            number: u64::MAX,
            ends: (0.0, 0.0),
        }
    }

    #[inline]
    fn at(&mut self, at_us: u64, chance: &Chance) -> f64 {
        let number = at_us / self.span_us;
        if number != self.number {
            let draw = |number| chance.normal(self.purpose, number, 0);
            let first = if number == self.number.wrapping_add(1) && self.number != u64::MAX {
                self.ends.1
            } else {
                draw(number)
            };
            self.ends = (first, draw(number + 1));
            self.number = number;
        }
        let f = (at_us - number * self.span_us) as f64 / self.span_us as f64;
        let g = 1.0 - f;
        (g * self.ends.0 + f * self.ends.1) / (g * g + f * f).sqrt()
    }
}

/// Delay of a base plus a gamma-distributed part, with its quantile function as a table.
#[derive(Debug, Clone, PartialEq)]
pub struct GammaDelay {
    base: Duration,
    shape: f64,
    scale: Duration,
    /// Microseconds at z = -Z_LIMIT ..= Z_LIMIT, evenly in z: finer in the tails than a table in probability.
    table: Vec<f32>,
}

impl GammaDelay {
    /// `base` + Gamma(`shape`, `scale`): mean base + shape x scale, variance shape x scale^2.
    ///
    /// Takes some milliseconds (a table of 1,024 quantiles); share it between channels. None when the shape is outside
    /// 0.05..=1000 or the scale is zero.
    pub fn new(base: Duration, shape: f64, scale: Duration) -> Option<Self> {
        if !(0.05..=1000.0).contains(&shape) || scale.is_zero() {
            return None;
        }
        let scale_us = scale.as_nanos() as f64 / 1000.0;
        let base_us = base.as_nanos() as f64 / 1000.0;
        let mut low = 0.0;
        let table = (0..ENTRIES)
            .map(|i| {
                let z = -Z_LIMIT + i as f64 * STEP;
                low = gamma_quantile(shape, z, low);
                (base_us + low * scale_us) as f32
            })
            .collect();
        Some(Self {
            base,
            shape,
            scale,
            table,
        })
    }

    /// The gamma delay of a given mean and standard deviation over a base. None as for [`GammaDelay::new`], or when the
    /// mean does not exceed the base.
    pub fn fit(base: Duration, mean: Duration, sd: Duration) -> Option<Self> {
        let above = mean.checked_sub(base)?.as_secs_f64();
        let variance = sd.as_secs_f64() * sd.as_secs_f64();
        if above <= 0.0 || variance <= 0.0 {
            return None;
        }
        Self::new(
            base,
            above * above / variance,
            Duration::try_from_secs_f64(variance / above).ok()?,
        )
    }

    /// The same shape at another place and scale, at the cost of a copy.
    #[must_use]
    pub fn moved(&self, base: Duration, scale: Duration) -> Self {
        let us = |duration: Duration| duration.as_nanos() as f64 / 1000.0;
        let ratio = us(scale) / us(self.scale);
        let shift = us(base) - us(self.base) * ratio;
        let move_one = |&at: &f32| (f64::from(at) * ratio + shift) as f32;
        Self {
            base,
            shape: self.shape,
            scale,
            table: self.table.iter().map(move_one).collect(),
        }
    }

    /// The least delay.
    pub const fn base(&self) -> Duration {
        self.base
    }

    /// The mean delay.
    pub fn mean(&self) -> Duration {
        self.base + self.scale.mul_f64(self.shape)
    }

    /// The standard deviation of the delay.
    pub fn sd(&self) -> Duration {
        self.scale.mul_f64(libm::sqrt(self.shape))
    }

    /// The delay in microseconds whose probability is that of a standard normal `z`.
    #[inline]
    fn at(&self, z: f64) -> f32 {
        let position = ((z + Z_LIMIT) * (1.0 / STEP)).clamp(0.0, (ENTRIES - 1) as f64 - 1e-6);
        let below = position as usize;
        let f = (position - below as f64) as f32;
        self.table[below] + f * (self.table[below + 1] - self.table[below])
    }
}

const ENTRIES: usize = 1024;
/// P(|z| > 5) is 6e-7: what lies beyond is clamped to the last quantile.
const Z_LIMIT: f64 = 5.0;
const STEP: f64 = 2.0 * Z_LIMIT / (ENTRIES - 1) as f64;

/// The x with P(Gamma(shape, 1) <= x) = Phi(z), by bisection from below `low`.
fn gamma_quantile(shape: f64, z: f64, low: f64) -> f64 {
    // In the upper half compare the upper tails: 1 - P loses its digits where the tail is small.
    let tail = 0.5 * libm::erfc(z.abs() * core::f64::consts::FRAC_1_SQRT_2);
    let is_below = |x: f64| {
        let (lower, upper) = gamma_tails(shape, x);
        if z < 0.0 { lower < tail } else { upper > tail }
    };
    let mut low = low;
    let mut high = (low * 1.1).max(shape).max(1e-3);
    while is_below(high) {
        low = high;
        high *= 2.0;
    }
    for _ in 0..45 {
        let middle = 0.5 * (low + high);
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// P and Q = 1 - P of Gamma(a, 1) at x: a series below a + 1, Lentz's continued fraction above it.
fn gamma_tails(a: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let mut term = 1.0 / a;
        let mut sum = term;
        let mut n = a;
        while term > sum * 1e-14 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        let lower = (front * sum).min(1.0);
        return (lower, 1.0 - lower);
    }
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..10_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = an * d + b;
        d = 1.0 / if d.abs() < TINY { TINY } else { d };
        c = b + an / c;
        c = if c.abs() < TINY { TINY } else { c };
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    let upper = (front * h).min(1.0);
    (1.0 - upper, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_tails_match_known_values() {
        // Exponential, and chi-square with 4 degrees of freedom at its 95 % point 9.487729.
        assert!((gamma_tails(1.0, 2.0).1 - (-2.0f64).exp()).abs() < 1e-13);
        assert!((gamma_tails(2.0, 9.487_729_036_781_154 / 2.0).0 - 0.95).abs() < 1e-10);
        assert!((gamma_tails(0.5, 0.5).0 - 0.682_689_492_137_085_9).abs() < 1e-12);
    }

    #[test]
    fn gamma_table_gives_known_quantiles() {
        // Exponential of mean 10 ms: the quantile of 1 - q is -ln(q) x 10 ms.
        let delay =
            GammaDelay::new(Duration::from_millis(5), 1.0, Duration::from_millis(10)).unwrap();
        for (z, tail) in [
            (0.0, 0.5),
            (1.281_551_565_545, 0.1),
            (3.090_232_306_168, 0.001),
        ] {
            let expected = 5000.0 - 10_000.0 * libm::log(tail);
            assert!(
                (f64::from(delay.at(z)) - expected).abs() < 3.0,
                "z {z}: {}",
                delay.at(z)
            );
        }
        assert!(delay.table.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(delay.at(-100.0) >= 5000.0 && delay.at(100.0).is_finite());
    }

    #[test]
    fn gamma_fit_has_the_asked_moments() {
        let ms = Duration::from_millis;
        let delay = GammaDelay::fit(ms(9), ms(21), ms(9)).unwrap();
        assert!((delay.mean().as_secs_f64() - 0.021).abs() < 1e-6);
        assert!((delay.sd().as_secs_f64() - 0.009).abs() < 1e-6);
        assert_eq!(GammaDelay::fit(ms(9), ms(9), ms(9)), None);
        assert_eq!(GammaDelay::new(ms(9), f64::NAN, ms(9)), None);
    }
}
