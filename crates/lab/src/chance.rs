//! Random numbers that are a function of what they are for, not of how many were drawn before.
//!
//! A generator with a state would couple unrelated things: one more packet, and every later packet meets another fate.
//! Here each number is a hash of (key, purpose, two counters), so that any of them can be had in any order, any number
//! of times. The hash is the finaliser of splitmix64, applied twice; it passes the tests below, and nothing here needs
//! to resist an adversary.

/// What a random number is for. Two purposes never share a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Whether a packet is lost.
    Loss = 1,
    /// Lengths of good and bad spells.
    Sojourn,
    /// The fast part of the delay's variation.
    Knot,
    /// The slow part of the delay's variation.
    SlowKnot,
    /// The part of the delay that every packet draws for itself.
    Jitter,
    /// Whether a packet is held back behind later ones.
    Reorder,
    /// Whether a packet arrives twice.
    Duplicate,
    /// How long after the original the copy arrives.
    DuplicateDelay,
    /// Where in a trace a path begins.
    Offset,
    /// Which direction a lost round trip was lost in.
    Side,
    /// Whether a periodic outage takes place.
    Outage,
    /// Which clusters a bootstrap draws.
    Resample,
    /// Offsets and drifts of clocks, and the seeds of hosts.
    Clock,
    /// Free for users of this crate: workloads, arrival times, and the like.
    Workload,
}

/// A source of random numbers, addressed by purpose and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chance {
    key: u64,
}

impl Chance {
    /// The source of a seed and a stream (a path and direction, say); different streams are independent.
    pub const fn new(seed: u64, stream: u64) -> Self {
        Self {
            key: mix(mix(seed ^ 0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93)),
        }
    }

    /// 64 random bits.
    #[inline]
    pub const fn bits(&self, purpose: Purpose, at: u64, index: u64) -> u64 {
        let first = mix(self.key ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (purpose as u64) << 56);
        mix(first ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    /// A number in [0, 1).
    #[inline]
    pub const fn share(&self, purpose: Purpose, at: u64, index: u64) -> f64 {
        unit(self.bits(purpose, at, index))
    }

    /// A number in 0..bound; 0 when `bound` is 0. (By multiplication; the bias is below bound / 2^64.)
    #[inline]
    pub const fn below(&self, bound: u64, purpose: Purpose, at: u64, index: u64) -> u64 {
        ((self.bits(purpose, at, index) as u128 * bound as u128) >> 64) as u64
    }

    /// A standard normal number (Box and Muller's method, by libm: equal on every machine).
    pub fn normal(&self, purpose: Purpose, at: u64, index: u64) -> f64 {
        let bits = self.bits(purpose, at, index);
        let radius = libm::sqrt(-2.0 * libm::log(open_unit(bits)));
        radius * libm::cos(core::f64::consts::TAU * unit(mix(bits ^ 0xa076_1d64_78bd_642f)))
    }

    /// An exponential number of mean 1.
    pub fn exponential(&self, purpose: Purpose, at: u64, index: u64) -> f64 {
        -libm::log(open_unit(self.bits(purpose, at, index)))
    }
}

/// [0, 1) from the upper 53 bits.
const fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// (0, 1): never 0, so that its logarithm is finite.
const fn open_unit(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_different_addresses_are_uncorrelated() {
        let a = Chance::new(1, 0);
        let b = Chance::new(1, 1);
        let n = 100_000u64;
        type Pair = Box<dyn Fn(u64) -> (f64, f64)>;
        let pairs: [(&str, Pair); 4] = [
            (
                "neighbouring slots",
                Box::new(move |i| {
                    (
                        a.share(Purpose::Loss, i, 0),
                        a.share(Purpose::Loss, i + 1, 0),
                    )
                }),
            ),
            (
                "neighbouring indices",
                Box::new(move |i| (a.share(Purpose::Loss, i, 0), a.share(Purpose::Loss, i, 1))),
            ),
            (
                "purposes",
                Box::new(move |i| (a.share(Purpose::Loss, i, 0), a.share(Purpose::Jitter, i, 0))),
            ),
            (
                "streams",
                Box::new(move |i| (a.share(Purpose::Loss, i, 0), b.share(Purpose::Loss, i, 0))),
            ),
        ];
        for (what, draw) in pairs {
            let mut mean = 0.0;
            let mut product = 0.0;
            for i in 0..n {
                let (x, y) = draw(i);
                mean += x / n as f64;
                product += (x - 0.5) * (y - 0.5) * 12.0 / n as f64;
            }
            // The standard errors are 0.0009 and 0.0032.
            assert!((mean - 0.5).abs() < 0.004, "{what}: mean {mean}");
            assert!(product.abs() < 0.014, "{what}: correlation {product}");
        }
    }

    #[test]
    fn normal_and_exponential_have_their_moments() {
        let chance = Chance::new(7, 7);
        let n = 200_000u64;
        let (mut sum, mut square, mut beyond_two, mut exponential) = (0.0, 0.0, 0u64, 0.0);
        for i in 0..n {
            let z = chance.normal(Purpose::Knot, i, 0);
            sum += z;
            square += z * z;
            beyond_two += u64::from(z.abs() > 2.0);
            exponential += chance.exponential(Purpose::Sojourn, i, 0);
        }
        let n = n as f64;
        assert!((sum / n).abs() < 0.01);
        assert!((square / n - 1.0).abs() < 0.015);
        assert!((beyond_two as f64 / n - 0.0455).abs() < 0.002);
        assert!((exponential / n - 1.0).abs() < 0.01);
    }

    #[test]
    fn below_stays_below() {
        let chance = Chance::new(3, 0);
        assert!((0..1000).all(|i| chance.below(7, Purpose::Workload, i, 0) < 7));
        assert_eq!(chance.below(0, Purpose::Workload, 1, 0), 0);
    }
}
