//! What one miss is worth: the multiplier of a whole stream of messages.

use core::fmt;

/// What a miss is worth, in symbols: the Lagrange multiplier of "least symbols, but no more misses than promised". Sending one symbol
/// more pays when it lowers the probability of a miss by more than one price-th.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Price {
    log2: f32,
}

impl Price {
    /// One symbol a miss: nothing but the deficit is ever worth sending.
    pub const LEAST: Self = Self { log2: 0.0 };
    /// 2^27 symbols a miss, enough for miss targets of one in 10 million. (Stricter ones are aimed at with no more than that.)
    pub const GREATEST: Self = Self { log2: 27.0 };

    /// A price of 2^`log2` symbols, kept within [`Price::LEAST`]..=[`Price::GREATEST`]; the least when it is not a number.
    #[must_use]
    pub fn from_log2(log2: f32) -> Self {
        if log2.is_nan() {
            return Self::LEAST;
        }
        Self {
            log2: log2.clamp(Self::LEAST.log2, Self::GREATEST.log2),
        }
    }

    /// The logarithm to base 2 of the symbols, 0..=27.
    #[must_use]
    pub const fn log2(self) -> f32 {
        self.log2
    }

    /// The symbols.
    #[must_use]
    pub fn symbols(self) -> f64 {
        libm::exp2(f64::from(self.log2))
    }

    /// The price of a miss that can be avoided with this probability only: of symbols that arrive in time, if they arrive at
    /// all, this often. A share of 0 (or no number) makes it the least.
    #[must_use]
    pub fn discounted(self, share: f32) -> Self {
        if share >= 1.0 {
            return self;
        }
        Self::from_log2(self.log2 + libm::log2f(share.max(f32::MIN_POSITIVE)))
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} symbols a miss", self.symbols())
    }
}
