//! Moves the price of a miss so that the share of misses comes to the target.
//!
//! Two signals. The *expected* miss of every message at the present price (from the tables) says at once whether the price is too
//! high or too low for the path as it is known; being a probability and no throw of a die, it moves the price smoothly, and
//! between two prices it makes the mixture that spends the target exactly. The *seen* misses that symbols could have prevented
//! are added up against the target: where they run away from it by more than chance does, expectations are corrected until
//! they do not. So bursts, lost feedback and whatever else the model lacks raise the price until what is seen meets the target; and
//! where expectations are right, nobody pays for the luck of the last misses (at one in a thousand, they are too rare to
//! learn from).

use core::time::Duration;

use crate::{Burst, Policy, Price, Situation};

/// Octaves that the price moves by for an expected miss probability of one target too much or too little, at last ..
const STEP: f32 = 0.02;
/// .. and at the first message. It falls with the root of the messages.
const FIRST_STEP: f32 = 0.5;
/// Excess beyond this many targets counts as this many: a message that is all but lost says no more about the price.
const EXCESS_MAX: f32 = 50.0;
/// Standard deviations of what is expected by which it may be too much before the price rises, less as misses are seen beyond what is allowed, ..
const DOUBTED: f32 = 2.0;
/// .. by this share of the target at most, ..
const DOUBTED_MAX: f32 = 0.5;
/// .. and not at all where one of them is more than this share: who knows so little is careful.
const DOUBT_MAX: f32 = 0.5;
/// Expected misses beyond this many targets too much, message after message, say that the path has changed ..
const FAR: f32 = 0.5;
/// .. where chance does not explain them: a mixture that just meets the target makes a message that misses 1 + x times as much with a probability of
/// 1 / (1 + x) at most, and a run of them with the product of these. So many bits of it are chance, ..
const FAR_CHANCE_BITS: f32 = 6.0;
/// .. and with each beyond, steps grow by one ..
const FAR_STEPS_MAX: f32 = 16.0;
/// .. (one message says at most so many bits).
const FAR_BITS_MAX: f32 = 3.0;
/// Where what is expected takes a search, it is looked for at one message in so many, which stands for all since the last one ..
const SEARCHED_EVERY: u16 = 4;
/// .. after so many first ones.
const SEARCHED_FIRST: u32 = 32;
/// What a seen miss adds to the logarithm of the correction; a message takes off the target's share of it.
const GAIN: f32 = 0.15;
/// Logarithms of the correction that chance explains: two misses more or less than the target, ..
const CHANCE: f32 = 2.0 * GAIN;
/// .. and as many deviations of the misses that the target allows of so many messages (Poisson): of a hundred, ten more or less are luck, and paying
/// for it costs more than it saves when it turns.
const DEVIATIONS: f32 = 2.0;
/// Where losses come in bursts, or flights lose unevenly, what is expected of what is bought is an approximation: one miss is chance, ..
const CHANCE_BURSTY: f32 = GAIN;
/// .. and each beyond that says so many times as much.
const STEEPER: f32 = 3.0;
/// The same where losses seem independent, from so many misses on that chance does not explain: that is wrong then.
const REFUTED: f32 = 2.0 * GAIN;
/// There the target is kept away from, since what an approximation gets wrong shows late: by the deviation of the misses that it allows of the messages
/// so far, but at least this share of it is aimed at.
const AIM_LEAST: f32 = 0.5;
/// How far away at most, times [`GAIN`]: twenty misses.
const MARGIN_MAX: f32 = 20.0 * GAIN;
/// More than so many are not allowed for: that the path has become another is to be noticed some time.
const ALLOWED_MAX: f32 = 1600.0;
/// Where messages would miss so much more than they may if nothing were bought, as a share of it, for long, doubt of that ends when what can be forgiven has been. (Nearer to the
/// target what is seen tells in the end, and doubt saves all that copies cost.)
const PLAIN_EXCESS: f32 = 0.25;
/// What messages would miss for which nothing is bought is averaged over so many misses that the target allows.
const PLAIN_MISSES: f32 = 50.0;
/// Octaves that the price falls by where messages need nothing that it buys. (Along expectations it would fall by [`STEP`], and all that it buys on
/// the way is for nothing.)
const FALL: f32 = 0.25;
/// Correlation of losses from which on they are said to. (Over cellular 4 it is 0.22, and of each two copies two milliseconds apart the second is lost with the first
/// in 39 %, twice as often as expected.)
const BURSTY: f32 = 0.2;
/// .. if this much of it is no chance.
const SURELY: f32 = 0.05;
/// The logarithm of the greatest correction, 32. Above, something is wrong that no symbols cure.
const MOST: f32 = 3.47;
/// That of the least, a quarter.
const LEAST: f32 = -1.39;
/// What a target's worth of misses is worth at most, as multiples of the message: where even that does not bring the misses
/// down, symbols do not help ..
const SYMBOLS_MAX: f32 = 64.0;
/// .. and so much while what is paid for is more than the target itself: to keep away from it, or what was seen beyond what chance explains.
const CAREFUL_MAX: f32 = 16.0;
/// Deviations of the misses that the target allows by which more are counted at the greatest price than when it came there: paths on which that is just enough come there
/// now and then, and would miss what is not counted.
const COUNTED_MORE: f32 = 0.3;

/// How far what is expected may be wrong for want of losses to learn from: because of where the level of loss lies, or because of which level it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Doubt {
    /// Standard deviation of the misses that are expected, as a share of them: of both together ..
    pub deviation: f32,
    /// .. and of where the level lies alone.
    pub lasting: f32,
    /// Messages since which that has been learned: so long one such error lasts.
    pub learned_for: f32,
    /// Messages after which it is known which level it is, or which it was: so long an error of that lasts.
    pub passes_after: f32,
}

impl Doubt {
    /// Misses that one error explains which makes so much too many of them, or too few, as a share of the target: at least 0. An excess beyond what may last
    /// passes, or is none of chance.
    fn misses(self, excess: f32, miss_target: f32) -> f32 {
        let excess = excess.abs();
        let too_much = beyond_doubt(excess, DOUBTED * self.lasting);
        let may_last = 1.0 - too_much / excess.max(f32::MIN_POSITIVE);
        let lasting = may_last * self.lasting * self.learned_for;
        // (No number where nothing is in doubt for ever.)
        (DOUBTED * (lasting + self.deviation * self.passes_after) * miss_target).max(0.0)
    }
}

/// What a message is expected to miss.
struct Expected {
    /// At the present price.
    miss: f32,
    /// If nothing were bought for it, and as what was seen corrects it.
    of_nothing: f32,
    /// The correction where this is no approximation.
    exactly: f32,
    is_approximate: bool,
    /// Nothing is bought.
    is_plain: bool,
    /// So many messages it stands for.
    stands_for: f32,
}

impl Expected {
    /// Beyond what is allowed, as a multiple of that, with this correction.
    fn excess(&self, correction: f32, allowed: f32) -> f32 {
        excess_of((self.miss * correction).min(self.of_nothing), allowed)
    }
}

/// The price of one promise, and what it is learned from. 32 bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steering {
    /// Misses seen less those that the target allows, times [`GAIN`]. (In single precision what a message takes off for a target of one in ten million was lost beside
    /// four misses, which then counted for ever.)
    excess: f64,
    /// Octaves.
    log2: f32,
    /// Misses that the target allows less those that were aimed at, times [`GAIN`]: what approximations have to keep away from it.
    margin: f32,
    /// Misses that were expected beyond the target, but in doubt and so not paid for.
    forgiven: f32,
    /// What messages were expected to miss beyond the target if nothing had been bought for them, of late, where that may be doubt, as a share of it.
    plain_excess: f32,
    /// Messages steered; 0 before the first price.
    messages: u32,
    /// By how much `excess` stays below its greatest, in thousandths: while the price is as high as it gets, it does not grow beyond where it was
    /// when the price came there, but for [`COUNTED_MORE`]. Misses are set off against what the target allows; more of them would only keep the price up when the path
    /// is good again.
    kept_below: u16,
    /// How unlikely it is by chance that the last messages were all far from the target: eighths of bits.
    far_run: u8,
    looked: Looked,
}

/// Messages since what is expected was last looked for, up to 127; and whether what was found then is an approximation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Looked(u8);

impl Looked {
    const APPROXIMATE: u8 = 1 << 7;

    const fn is_approximate(self) -> bool {
        self.0 & Self::APPROXIMATE != 0
    }

    fn set_approximate(&mut self, is_approximate: bool) {
        let passed_over = self.0 & !Self::APPROXIMATE;
        self.0 = passed_over | u8::from(is_approximate) << 7;
    }

    const fn pass_over(&mut self) {
        if self.0 & !Self::APPROXIMATE < 127 {
            self.0 += 1;
        }
    }

    /// So many were passed over since the last time.
    const fn take(&mut self) -> u8 {
        let passed_over = self.0 & !Self::APPROXIMATE;
        self.0 &= Self::APPROXIMATE;
        passed_over
    }
}

impl Steering {
    /// The price for the next message; `None` before the first.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        (self.messages > 0).then(|| Price::from_log2(self.log2))
    }

    /// By how much expected misses of messages with this target are multiplied, as far as what was seen contradicts them; 1 while chance
    /// explains it.
    #[must_use]
    pub fn correction(&self, miss_target: f32) -> f32 {
        correction_by(beyond(self.excess(), self.chance(miss_target)), REFUTED)
    }

    /// The same where what is expected is an approximation.
    fn correction_of_approximation(&self) -> f32 {
        correction_by(beyond(self.excess() + self.margin, CHANCE_BURSTY), 0.0)
    }

    const fn excess(&self) -> f32 {
        self.excess as f32
    }

    /// The logarithm of the correction that chance explains where losses are independent.
    fn chance(&self, miss_target: f32) -> f32 {
        CHANCE.max(DEVIATIONS * GAIN * libm::sqrtf(self.allowed(miss_target)))
    }

    /// A message is sent: its expected miss at the present price moves the price towards where messages like it would just
    /// meet `miss_target`. Returns the price for it. `None` where the policy has no multiplier, or no tables yet.
    ///
    /// The price does not rise for what `doubt` explains, until it is seen. Where the target is just what plain sending misses, twenty losses
    /// say so to a fifth, and to pay for each that is too many costs as many copies.
    pub fn on_message(
        &mut self,
        policy: &dyn Policy,
        first: &Situation,
        miss_target: f32,
        doubt: Doubt,
    ) -> Option<Price> {
        let price = (self.price()).or_else(|| first_price(policy, first, miss_target))?;
        let is_due = !first.is_intricate()
            || self.messages < SEARCHED_FIRST
            || self.far_run > 0
            || is_drawn(self.messages);
        if !is_due {
            self.looked.pass_over();
            self.count();
            return Some(price);
        }
        let miss = miss_at(policy, first, price)?;
        if miss.is_nan() {
            return Some(price);
        }
        // Those that were looked up by themselves stand for none of the others, which may be of other sessions.
        let stands_for = if first.is_intricate() {
            1.0 + f32::from(self.looked.take())
        } else {
            1.0
        };
        self.count();
        let is_bursty = first.burst.correlation > BURSTY;
        // Asked for only where it says something.
        let is_asked = is_bursty || first.is_uneven() || self.excess > 0.0;
        let of_nothing = if first.rounds_left == 1 && is_asked {
            miss_at(policy, first, Price::LEAST)
        } else {
            None
        };
        let is_plain = of_nothing == Some(miss);
        let exactly = self.correction(miss_target);
        if let Some(plain) = of_nothing {
            let excess = excess_of(plain * exactly, miss_target);
            self.note_plain(excess, stands_for, miss_target);
        }
        let is_enough = |plain| self.is_enough(plain, exactly, doubt, miss_target);
        let falls = |plain| {
            let usual = || miss_usually(policy, first).is_some_and(is_enough);
            plain > miss && (is_enough(plain) || usual())
        };
        if is_bursty && of_nothing.is_some_and(falls) {
            (self.far_run, self.kept_below) = (0, 0);
            self.log2 = Price::from_log2(price.log2() - stands_for * FALL).log2();
            return Some(price);
        }
        // What a single flight misses by itself is no approximation.
        let is_surely_bursty = is_bursty && first.burst.surely > SURELY;
        let is_approximate = (is_surely_bursty || first.is_uneven()) && !is_plain;
        self.looked.set_approximate(is_approximate);
        let expected = Expected {
            miss,
            // Whatever approximations get wrong, what is bought makes no more miss than nothing would.
            of_nothing: of_nothing.map_or(f32::INFINITY, |plain| plain * exactly.max(1.0)),
            exactly,
            is_approximate,
            is_plain,
            stands_for,
        };
        self.follow(&expected, price, first.source_symbols, miss_target, doubt);
        Some(price)
    }

    /// Moves the price of messages of so many source symbols to where they just meet the target.
    fn follow(
        &mut self,
        expected: &Expected,
        price: Price,
        source_symbols: u8,
        miss_target: f32,
        doubt: Doubt,
    ) {
        let Expected {
            is_plain,
            stands_for,
            ..
        } = *expected;
        let correction = if expected.is_approximate {
            self.correction_of_approximation()
        } else {
            expected.exactly
        };
        let doubted = self.doubted(doubt.deviation, correction, is_plain, miss_target);
        let excess = expected.excess(correction, self.aim(miss_target) * miss_target);
        let (each, forgivable) = (stands_for * miss_target, doubt.misses(excess, miss_target));
        let excess = self.paid_for(excess, doubted, each, forgivable);
        let by_itself = if expected.is_approximate {
            either_way_beyond(expected.excess(expected.exactly, miss_target), doubted)
        } else {
            excess
        };
        let step = STEP.max(FIRST_STEP / libm::sqrtf(self.messages as f32));
        let step = stands_for * self.hurry(excess) * step;
        let most = |symbols: f32| libm::log2f(symbols * f32::from(source_symbols) / miss_target);
        let careful = most(CAREFUL_MAX);
        let mut log2 = (price.log2() + step * excess).min(careful);
        if price.log2() >= careful {
            log2 = log2.max(price.log2() + step * by_itself);
        }
        self.move_to(log2, most(SYMBOLS_MAX), miss_target);
    }

    /// So many messages would miss so much beyond the target if nothing were bought for them. (What is no doubt, as in a bad spell, is paid for.)
    fn note_plain(&mut self, excess: f32, messages: f32, miss_target: f32) {
        if excess > DOUBTED_MAX {
            return;
        }
        let of = (PLAIN_MISSES / miss_target).min(self.messages as f32);
        self.plain_excess += (excess - self.plain_excess) * (messages / of).min(1.0);
    }

    /// Whether a single flight for which nothing is bought, and which misses so often, but for the correction, misses no more than it may, within doubt.
    fn is_enough(&self, plain: f32, correction: f32, doubt: Doubt, miss_target: f32) -> bool {
        let excess = excess_of(plain * correction, miss_target);
        let may_be_forgiven = self.plain_excess <= PLAIN_EXCESS
            || self.forgiven < doubt.misses(self.plain_excess, miss_target);
        let doubted = if may_be_forgiven {
            self.doubted(doubt.deviation, correction, true, miss_target)
        } else {
            0.0
        };
        beyond_doubt(excess, doubted) <= 0.0
    }

    /// Excess that is in doubt, and not paid for, where this is the deviation of what is expected, and so it was corrected: as far as the misses seen do
    /// not speak for it. Where nothing is bought, these are the losses that the doubt is about, and say no more.
    fn doubted(&self, doubt: f32, correction: f32, is_plain: bool, miss_target: f32) -> f32 {
        // What was seen is beyond doubt.
        if correction > 1.0 || !(0.0..=DOUBT_MAX).contains(&doubt) {
            return 0.0;
        }
        let seen = (self.excess() / self.chance(miss_target)).clamp(0.0, 1.0);
        let unseen = if is_plain { 1.0 } else { 1.0 - seen };
        unseen * (DOUBTED * doubt).min(DOUBTED_MAX)
    }

    /// What moves the price of an excess of which so much may be doubt. What does not is forgiven, an excess of one being `each` misses, while these
    /// are no more than `most`; and set off where as little is expected to miss too seldom. (A loss that is not known well is found too high at one time and too
    /// low at another. And between two decisions an excess of a tenth for ever would be a tenth too many misses.)
    fn paid_for(&mut self, excess: f32, doubted: f32, each: f32, most: f32) -> f32 {
        let beyond = either_way_beyond(excess, doubted);
        let before = self.forgiven;
        self.forgiven = (before + each * (excess - beyond)).clamp(0.0, most.max(before));
        if self.forgiven == before {
            // (Of a target of nothing, nothing is forgiven.)
            excess
        } else {
            excess - (self.forgiven - before) / each
        }
    }

    /// By how many times steps are longer, since messages in a row were far from the target.
    fn hurry(&mut self, excess: f32) -> f32 {
        if excess <= FAR {
            self.far_run = 0;
            return 1.0;
        }
        let bits = libm::log2f(1.0 + excess).min(FAR_BITS_MAX);
        let bits = f32::from(self.far_run) / 8.0 + bits;
        let bits = bits.min(FAR_CHANCE_BITS + FAR_STEPS_MAX);
        self.far_run = (8.0 * bits) as u8;
        (bits - FAR_CHANCE_BITS).max(1.0)
    }

    fn move_to(&mut self, log2: f32, most: f32, miss_target: f32) {
        let most = most.min(Price::GREATEST.log2());
        if log2 < most {
            self.kept_below = 0;
        } else if self.kept_below == 0 {
            let greatest = MOST + self.chance(miss_target);
            let more = COUNTED_MORE * GAIN * libm::sqrtf(self.allowed(miss_target));
            let counted = (self.excess().max(0.0) + more).min(greatest);
            // (Zero says that the price is below its greatest.)
            self.kept_below = (1000.0 * (greatest - counted)).max(1.0) as u16;
        }
        self.log2 = Price::from_log2(log2.min(most)).log2();
    }

    /// The share of the target that is aimed at.
    fn aim(&self, miss_target: f32) -> f32 {
        if self.looked.is_approximate() {
            (1.0 - 1.0 / libm::sqrtf(self.allowed(miss_target))).max(AIM_LEAST)
        } else {
            1.0
        }
    }

    /// Misses that the target allows of the messages so far.
    fn allowed(&self, miss_target: f32) -> f32 {
        (self.messages as f32 * miss_target).min(ALLOWED_MAX)
    }

    fn count(&mut self) {
        // (So many say no more than half of them; and at a count that stands still nothing would be drawn any more.)
        self.messages = self.messages.checked_add(1).unwrap_or(1 << 31);
    }

    /// A message with this target has its outcome: on time, or missed although symbols could have prevented it. Misses for another
    /// reason (delay, a queue, a path that carried nothing) count as on time.
    pub fn on_outcome(&mut self, is_missed: bool, miss_target: f32) {
        let kept_away = GAIN * (1.0 - self.aim(miss_target)) * miss_target;
        self.margin = (self.margin + kept_away).min(MARGIN_MAX);
        let missed = f32::from(u8::from(is_missed));
        self.see(missed - miss_target, miss_target);
    }

    /// Of what it was told as missed so much more was, as is known now, or less; in messages.
    pub fn on_correction(&mut self, missed: f32, miss_target: f32) {
        self.see(missed, miss_target);
    }

    /// So many misses more were seen than are meant.
    fn see(&mut self, misses: f32, miss_target: f32) {
        let chance = self.chance(miss_target);
        let excess = self.excess + f64::from(GAIN) * f64::from(misses);
        let least = LEAST - chance;
        // What it is kept below may be another target's, where several are steered together.
        let most = (MOST + chance - f32::from(self.kept_below) / 1000.0).max(least);
        self.excess = excess.clamp(least.into(), most.into());
    }
}

/// What is seen more or less than was meant, beyond what chance explains.
fn beyond(excess: f32, chance: f32) -> f32 {
    if excess > 0.0 {
        (excess - chance).max(0.0)
    } else {
        (excess + chance).min(0.0)
    }
}

/// The correction for misses `beyond` what chance explains, each of which from `refuted` on says more.
fn correction_by(beyond: f32, refuted: f32) -> f32 {
    let log = beyond + (STEEPER - 1.0) * (beyond - refuted).max(0.0);
    if log == 0.0 {
        1.0
    } else {
        libm::expf(log.clamp(LEAST, MOST))
    }
}

/// What is missed beyond what is allowed, as a multiple of that.
fn excess_of(miss: f32, allowed: f32) -> f32 {
    (miss / allowed - 1.0).min(EXCESS_MAX)
}

/// What counts of an excess that may be `doubt` by chance: nothing up to that, all of it from twice that on. (Where prices mix, excesses are large,
/// and set off against each other in full.)
fn beyond_doubt(excess: f32, doubt: f32) -> f32 {
    (2.0 * (excess - doubt)).max(0.0).min(excess)
}

/// The same of what may be too little as well.
fn either_way_beyond(excess: f32, doubt: f32) -> f32 {
    beyond_doubt(excess.abs(), doubt).copysign(excess)
}

/// Whether what is expected is looked for at this message: at one in [`SEARCHED_EVERY`], and not in step with anything (sessions that
/// share a price take turns): the fractional part of the multiples of the golden ratio.
const fn is_drawn(message: u32) -> bool {
    const GOLDEN: u16 = 0x9e37;
    (message as u16).wrapping_mul(GOLDEN) < u16::MAX / SEARCHED_EVERY
}

fn miss_at(policy: &dyn Policy, first: &Situation, price: Price) -> Option<f32> {
    policy.miss_at_price(&Situation {
        price: Some(price),
        ..*first
    })
}

/// What a message misses for which nothing is bought, whatever was lost last: after a loss it is more. (Where messages just meet their target, those after a
/// loss once had copies for nothing: 1 % of loss in bursts of 20 ms, a message each 50 ms.)
fn miss_usually(policy: &dyn Policy, first: &Situation) -> Option<f32> {
    let burst = Burst {
        age: Duration::MAX,
        ..first.burst
    };
    miss_at(policy, &Situation { burst, ..*first }, Price::LEAST)
}

/// The least price at which messages like this one meet the target.
fn first_price(policy: &dyn Policy, first: &Situation, miss_target: f32) -> Option<Price> {
    let mut log2 = Price::LEAST.log2();
    loop {
        let price = Price::from_log2(log2);
        if miss_at(policy, first, price)? <= miss_target || price == Price::GREATEST {
            return Some(price);
        }
        log2 += 1.0;
    }
}

#[cfg(test)]
mod tests;
