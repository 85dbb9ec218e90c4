//! Moves the price of a miss so that the share of misses comes to the target.
//!
//! Two signals. The *expected* miss of every message at the present price (from the tables) says at once whether the price is too
//! high or too low for the path as it is known; being a probability and no throw of a die, it moves the price smoothly, and
//! between two prices it makes the mixture that spends the target exactly. The *seen* misses that symbols could have prevented
//! say how wrong the expectations are: where both differ by more than chance explains, their ratio corrects them. So bursts, lost
//! feedback and whatever else the model lacks raise the price until what is seen meets the target; and where expectations are
//! right, nobody pays for the luck of the last misses (at one in a thousand, they are too rare to learn from).

use crate::{Policy, Price, Situation};

/// Octaves that the price moves by for an expected miss probability of one target too much or too little, at last ..
const STEP: f32 = 0.02;
/// .. and at the first message. It falls with the root of the messages.
const FIRST_STEP: f32 = 0.5;
/// Excess beyond this many targets counts as this many: a message that is all but lost says no more about the price.
const EXCESS_MAX: f32 = 50.0;
/// Misses that agree with what was expected, before any was seen.
const PRIOR_MISSES: f32 = 2.0;
/// Expected or seen misses that are remembered; then both fade. More would tell smaller errors, of 12 % and below.
const MEMORY: f32 = 256.0;
/// While a correction is needed, misses are remembered for so many messages as bring this many at the target: what contradicts
/// the model (a bad hour) mostly ends, and at the corrected price hardly a miss is expected that would show it.
const MEMORY_CORRECTED: f32 = 8.0;
/// Standard deviations by which seen and expected misses may differ by chance.
const Z: f32 = 2.0;
/// What a target's worth of misses is worth at most, as multiples of the message: where even that does not bring the misses
/// down, symbols do not help.
const SYMBOLS_MAX: f32 = 8.0;
/// The correction's bounds. Above, something is wrong that no symbols cure.
const CORRECTION: core::ops::RangeInclusive<f32> = 0.25..=32.0;

/// The price of one promise, and what it is learned from. 16 bytes, copied freely.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steering {
    /// Octaves.
    log2: f32,
    /// Misses expected of the messages remembered, and seen.
    expected: f32,
    seen: f32,
    /// Messages steered; 0 before the first price.
    messages: u32,
}

impl Steering {
    /// The price for the next message; `None` before the first.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        (self.messages > 0).then(|| Price::from_log2(self.log2))
    }

    /// How many times more misses are seen than expected, at least (or, where fewer are, at most); 1 where chance explains what
    /// is seen. The square root of a number of misses has a standard deviation of 1/2.
    #[must_use]
    pub fn correction(&self) -> f32 {
        let expected = libm::sqrtf(PRIOR_MISSES + self.expected);
        let seen = libm::sqrtf(PRIOR_MISSES + self.seen);
        let likelier = if seen > expected {
            (seen - Z / 2.0).max(expected)
        } else {
            (seen + Z / 2.0).min(expected)
        };
        let ratio = likelier / expected;
        (ratio * ratio).clamp(*CORRECTION.start(), *CORRECTION.end())
    }

    /// A message is sent: takes note of how likely it misses at the present price, which moves towards where messages like
    /// it would just meet `miss_target`. Returns the price for it. `None` where the policy has no multiplier, or no tables yet.
    pub fn on_message(
        &mut self,
        policy: &dyn Policy,
        first: &Situation,
        miss_target: f32,
    ) -> Option<Price> {
        let price = match self.price() {
            Some(price) => price,
            None => first_price(policy, first, miss_target)?,
        };
        let priced = Situation {
            price: Some(price),
            ..*first
        };
        let miss = policy.miss_at_price(&priced)?;
        let correction = self.correction();
        let excess = (miss * correction / miss_target - 1.0).min(EXCESS_MAX);
        let step = STEP.max(FIRST_STEP / libm::sqrtf(self.messages as f32 + 1.0));
        let most = libm::log2f(SYMBOLS_MAX * f32::from(first.source_symbols) / miss_target);
        let log2 = (price.log2() + step * excess).min(most);
        self.log2 = Price::from_log2(log2).log2();
        self.messages = self.messages.saturating_add(1);
        self.expected += miss;
        if correction != 1.0 {
            self.remember(1.0 - miss_target / MEMORY_CORRECTED);
        }
        self.bound();
        Some(price)
    }

    /// A message has its outcome: on time, or missed although symbols could have prevented it. One that missed for another
    /// reason (delay, a queue, a path that carried nothing) is not told.
    pub fn on_outcome(&mut self, is_missed: bool) {
        if is_missed {
            self.seen += 1.0;
            self.bound();
        }
    }

    fn bound(&mut self) {
        if self.expected.max(self.seen) > MEMORY {
            self.remember(0.5);
        }
    }

    fn remember(&mut self, share: f32) {
        self.expected *= share;
        self.seen *= share;
    }
}

/// The least price at which messages like this one meet the target.
fn first_price(policy: &dyn Policy, first: &Situation, miss_target: f32) -> Option<Price> {
    let mut log2 = Price::LEAST.log2();
    loop {
        let price = Price::from_log2(log2);
        let priced = Situation {
            price: Some(price),
            ..*first
        };
        if policy.miss_at_price(&priced)? <= miss_target || price == Price::GREATEST {
            return Some(price);
        }
        log2 += 1.0;
    }
}
