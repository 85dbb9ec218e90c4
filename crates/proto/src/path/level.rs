//! The present loss of a direction, as a state that lasts: a path has a level of loss for some time, and then another.
//!
//! A Bayesian filter over [`LEVELS`] levels, 0.8 octaves apart. Each packet that arrives or is lost weighs the levels by how likely
//! they make that; with time the level may have changed for one that this path has been at before (or, at first, that paths
//! are at). So redundancy comes when two or three losses say that a bad spell has begun, and goes when some dozen packets
//! say that it has ended; on a steady path the levels it has never been at hardly count, and the estimate is as good as a long
//! memory's. What bursts explain ([`super::burst`]) says nothing of the level: of four packets lost together, one counts.

use core::ops::RangeInclusive;
use core::time::Duration;

use punctual_policy::Doubt;

use super::burst::Dependence;
use crate::time::Instant;

/// Levels of loss: from 2^-13 (one in 8,192) to one half.
const LEVELS: usize = 16;
const LOSS: [f32; LEVELS] = [
    1.220_7e-4, 2.125_4e-4, 3.700_6e-4, 6.443_2e-4, 1.121_8e-3, 1.953_1e-3, 3.400_7e-3, 5.921e-3,
    1.030_9e-2, 1.794_9e-2, 3.125e-2, 5.441e-2, 9.473_6e-2, 1.649_4e-1, 2.871_7e-1, 0.5,
];
/// A level lies where the loss that is met while the path is at it does, at most so many times above or below where it began.
const MOVED_MAX: f32 = 1.32;
/// Losses over which that is averaged at first ..
const MOVED_LOSSES: f32 = 100.0;
/// .. and when as many have been met at the level. (Misses grow with the third power of the loss, or more: a seventh too much of it, which is
/// what chance does to the mean of a hundred, costs half a repair symbol where a whole one more would just be too much. Of 4,000 a hundredth and a half remains: 0.1 points at
/// 20 % of loss and two rounds.)
const MOVED_LOSSES_MAX: f32 = 16_000.0;
/// Losses over which those beyond what was expected are counted ..
const DRIFT_LOSSES: f32 = 2000.0;
/// .. and how many of them say that a level lies elsewhere now: four and a half deviations of chance (which are the root of half of [`DRIFT_LOSSES`]).
const DRIFTED: f32 = 142.0;
/// Levels beyond so many times the mean loss count as if they were there.
const UNSURE_MAX: f32 = 2.0;
/// Losses that where a level lies is known by before any was met at it: they are 0.8 octaves apart, so that it is off by a sixth. (Deciding by the
/// mean, 0.112 % were late for 0.1 in the seconds after a step from 0.1 to 10 %.)
const PLACED: f32 = 40.0;
/// Losses after which it is known which level the path was at, mostly.
const TELLING: f32 = 40.0;
/// Not to know which level the path is at is a doubt up to this deviation of what is expected: it is known well enough to doubt it.
const UNSETTLED_MAX: f32 = 0.45;
/// While it is not known which level the path is at, one loss tells more than this, but then what follows is too uncertain to reckon with it: what is missed over two rounds
/// in the first seconds was expected too low.
const TOLD_MAX: f32 = 0.05;
/// Higher powers than this are as good as this.
const POWER_MAX: u32 = 8;
/// More losses than this are not told apart.
const LOSSES_MAX: f32 = 64.0;
/// Where the highest level lies at most.
const LOSS_MAX: f32 = 0.6;
/// How often a session's mean loss is nearest to each level, in 1,000: of the 1,577 sessions in the Gilbert parameters of
/// hkust-spark/gilbert-model-regression.
const PRIOR: [f32; LEVELS] = [
    252.0, 90.0, 106.0, 101.0, 75.0, 56.0, 50.0, 44.0, 40.0, 31.0, 33.0, 48.0, 51.0, 16.0, 6.0, 2.0,
];
/// How long a level lasts, on average, before the next may be another.
const DWELL: Duration = Duration::from_secs(30);
/// How long it takes to learn which levels a path is at.
const LEARNING: Duration = Duration::from_secs(30);
/// Packets that arrived over which it is counted how many were taken for lost before: of those after one that was not, and of those after one that was.
const VERDICTS: [f32; 2] = [1024.0, 128.0];
/// So many count as if they had not been, at first.
const VERDICTS_LEAST: f32 = 16.0;
/// No level is ever thought less likely to come than this.
const UNLIKELIEST: f32 = 0.002;

/// The levels that an endpoint's paths have been at: what a new session begins with.
#[derive(Clone, Copy)]
pub(crate) struct UsualLoss([f32; LEVELS]);

/// Packets whose level an endpoint remembers: of some dozens of sessions.
const EXPERIENCE: f32 = 20_000.0;
/// Packets that the sessions of [`PRIOR`] count for.
const PRIOR_PACKETS: f32 = 200.0;
/// Packets between two reports of a session, at least and at most as many as count.
const REPORTED: RangeInclusive<u8> = 32..=64;

impl Default for UsualLoss {
    fn default() -> Self {
        Self(PRIOR.map(|share| share * PRIOR_PACKETS / 1000.0))
    }
}

impl UsualLoss {
    /// Takes note of where a path is now, every some dozen packets.
    pub(crate) fn observe(&mut self, level: &mut LossLevel) {
        let (fewest, most) = REPORTED.into_inner();
        // One a second: a download, or who means ill, does not speak for the paths of all others.
        let second = level.changed_at.since(Instant::ZERO).as_secs() as u16;
        if level.unreported < fewest || level.reported_in == second {
            return;
        }
        let packets: f32 = self.0.iter().sum();
        let keep = (EXPERIENCE / packets).min(1.0);
        for (usual, share) in self.0.iter_mut().zip(level.now) {
            *usual = *usual * keep + share * f32::from(level.unreported.min(most));
        }
        level.unreported = 0;
        level.reported_in = second;
    }
}

/// Packets that arrived, and how many of them were taken for lost before.
#[derive(Clone, Copy, Default)]
struct Verdicts {
    arrived: f32,
    wrong: f32,
}

/// What is known of the present loss.
#[derive(Clone, Copy)]
pub(crate) struct LossLevel {
    /// Probability of each level.
    now: [f32; LEVELS],
    /// Share of the time that the path is at each.
    usual: [f32; LEVELS],
    /// Where each lies.
    loss: [f32; LEVELS],
    /// Losses met at each.
    met: [f32; LEVELS],
    /// Of packets after one that was not taken for lost, and after one that was. Where later packets overtake, a loss says little until it is known for one.
    verdicts: [Verdicts; 2],
    /// Losses beyond those that were expected, of late.
    unexpected: f32,
    changed_at: Instant,
    /// Packets since the endpoint was last told, and in which second that was.
    unreported: u8,
    reported_in: u16,
}

impl LossLevel {
    /// A path of which nothing is known but what paths of this endpoint are like.
    pub(crate) fn among(usual: &UsualLoss) -> Self {
        let mut level = Self {
            now: usual.0,
            usual: usual.0,
            loss: LOSS,
            met: [0.0; LEVELS],
            verdicts: [Verdicts::default(); 2],
            unexpected: 0.0,
            changed_at: Instant::ZERO,
            unreported: 0,
            reported_in: 0,
        };
        level.normalise();
        level.usual = level.now;
        level
    }

    /// Probability that a packet sent now is lost.
    pub(crate) fn mean(&self) -> f32 {
        self.expect(|loss| loss)
    }

    /// The loss to decide with, where misses are to be as rare as `miss_target`: more than the mean, since each further loss that makes a miss is
    /// a sign of a worse level.
    ///
    /// Over several rounds the path may turn bad: the loss whose `rounds`th power is the probability that as many rounds all lose a packet.
    /// And while it is not known which level it is, nor where that lies, the power counts by which misses grow with the loss, over levels up to
    /// [`UNSURE_MAX`] times the mean (the few that are far worse would count for all else).
    pub(crate) fn for_misses(&self, miss_target: f32, rounds: u16, source_symbols: u8) -> f32 {
        let mean = self.mean();
        let turning = match rounds {
            0 | 1 => mean,
            2 => self.power_mean(2, 1.0),
            _ => self.power_mean(3, 1.0),
        };
        let power = power_in_rounds(miss_target, mean, rounds, source_symbols);
        // That of a gamma distribution, which knows so many losses: its mean times this is the root of its mean power.
        let beyond_mean = power.in_mean.min(POWER_MAX as f32) - 1.0;
        let unplaced = beyond_mean / (2.0 * (self.losses_met() + PLACED));
        turning.max(self.power_mean(power.whole, UNSURE_MAX * mean)) * (1.0 + unplaced)
    }

    /// The share by which the loss that is expected grows with one more: worse levels are more likely then (Bayes), and each lies higher. Up to [`TOLD_MAX`].
    pub(crate) fn told_by_a_loss(&self) -> f32 {
        let mean = self.mean();
        let told = self.variance(mean) + (1.0 - mean) / self.losses_met().max(MOVED_LOSSES);
        told.min(TOLD_MAX)
    }

    /// How far the misses that are expected may be wrong, since only so many losses have said where the level lies, nor which it is at present. (On a path that
    /// lies between two, the estimate wanders from one to the other and back.)
    pub(crate) fn doubt(&self, miss_target: f32, rounds: u16, source_symbols: u8) -> Doubt {
        let (mean, losses) = (self.mean(), self.losses_met().max(1.0));
        let power = power_in_rounds(miss_target, mean, rounds, source_symbols).in_mean;
        let lasting = power / libm::sqrtf(losses);
        let both = power * libm::sqrtf(1.0 / losses + self.variance(mean));
        let messages_for = |losses| losses / (mean * f32::from(source_symbols.max(1)));
        Doubt {
            deviation: both.min(lasting.max(UNSETTLED_MAX)),
            lasting,
            learned_for: messages_for(losses),
            passes_after: messages_for(TELLING),
        }
    }

    /// How far the present level may be another: the variance of its loss, in squares of the mean.
    fn variance(&self, mean: f32) -> f32 {
        let mean_square = self.expect(|loss| loss * loss);
        (mean_square / (mean * mean) - 1.0).max(0.0)
    }

    /// Losses that have told where the present level lies. (A path between two levels, or one that loses too rarely to tell them apart, has met
    /// some at each.)
    fn losses_met(&self) -> f32 {
        let met = sum(core::array::from_fn(|level| {
            self.now[level] * self.met[level]
        }));
        met / sum(self.now.map(|share| share * share))
    }

    /// The root of the mean power of the loss, of which no more than `most` counts.
    fn power_mean(&self, power: u32, most: f32) -> f32 {
        let square = |x: f32| x * x;
        match power {
            0 | 1 => self.expect(|loss| loss.min(most)),
            2 => libm::sqrtf(self.expect(|loss| square(loss.min(most)))),
            3 => libm::cbrtf(self.expect(|loss| square(loss.min(most)) * loss.min(most))),
            _ => {
                // Of the share of the most that counts: the powers would be too small for numbers.
                let power = power.min(POWER_MAX);
                let mean = self.expect(|loss| powi((loss / most).min(1.0), power));
                most * libm::powf(mean, 1.0 / power as f32)
            }
        }
    }

    /// Asked for once a round, where levels are weighed with every packet: so not kept.
    fn expect(&self, value: impl Fn(f32) -> f32) -> f32 {
        sum(core::array::from_fn(|level| {
            self.now[level] * value(self.loss[level])
        }))
    }

    /// A packet has arrived, or is taken for lost, which depends on the one before as `dependence` says.
    pub(crate) fn record(&mut self, now: Instant, lost: bool, dependence: Dependence) {
        let passed = now.since(self.changed_at).as_secs_f32();
        // The first packet finds everything as it was.
        let is_first = self.changed_at == Instant::ZERO;
        self.changed_at = now;
        self.unreported = self.unreported.saturating_add(1);
        let passed = if is_first { 0.0 } else { passed };
        let changed = (passed / DWELL.as_secs_f32()).min(1.0);
        let learned = (passed / LEARNING.as_secs_f32()).min(1.0);
        let wrongly = self.wrongly(dependence);
        let (mut of_all, mut of_loss) = likelihood(lost, dependence);
        if lost {
            // A verdict is one on what arrives, too.
            of_all += (1.0 - of_all) * wrongly;
            of_loss *= 1.0 - wrongly;
        } else {
            self.note_verdict(dependence, false);
        }
        // Of a loss that the one before explains as much counts as it does not.
        let news = if dependence.after_loss {
            1.0 - dependence.correlation
        } else {
            1.0
        };
        let levels = self.now.iter_mut().zip(&mut self.usual);
        let places = self.loss.iter_mut().zip(&mut self.met).zip(LOSS);
        for ((now, usual), ((loss, met), began)) in levels.zip(places) {
            *usual = (*usual + learned * (*now - *usual)).max(UNLIKELIEST);
            *now += changed * (*usual - *now);
            let is_lost = if lost {
                *loss / (*loss + (1.0 - *loss) * wrongly)
            } else {
                0.0
            };
            *met = (*met + *now * news * is_lost).min(MOVED_LOSSES_MAX);
            let moved = *loss + *now * (began / met.max(MOVED_LOSSES)) * (is_lost - *loss);
            *now *= of_all + of_loss * *loss;
            *loss = (moved.max(began / MOVED_MAX)).min((began * MOVED_MAX).min(LOSS_MAX));
        }
        let likelihood = self.normalise();
        // (An arrival is also one that was not taken for lost before. Without that, verdicts that were wrong added up, and where levels lie was learned anew for ever.)
        let at_once = if lost { 1.0 } else { 1.0 - wrongly };
        self.look_for_drift(lost, likelihood * at_once);
    }

    /// Where levels lie is learned anew when the losses say so: a packet was lost or arrived, which was as likely as this.
    fn look_for_drift(&mut self, lost: bool, likelihood: f32) {
        // (What levels a path is usually at add up to a little more than one.)
        let unlikelihood = (1.0 - likelihood).max(0.0);
        let beyond = if lost { unlikelihood } else { -unlikelihood };
        // (The variance of one fate is about the losses that are expected of it.)
        let forgotten = likelihood * unlikelihood / DRIFT_LOSSES;
        self.unexpected += beyond - self.unexpected * forgotten;
        if self.unexpected.abs() > DRIFTED {
            self.unexpected = 0.0;
            self.met = self.met.map(|met| met.min(MOVED_LOSSES));
        }
    }

    /// A packet that was taken for lost, with this dependence, has arrived after all.
    pub(crate) fn correct(&mut self, dependence: Dependence) {
        let wrongly = self.wrongly(dependence);
        self.weigh(dependence, |lost| {
            (1.0 - lost) / (lost + (1.0 - lost) * wrongly)
        });
        self.note_verdict(dependence, true);
    }

    /// A packet that was taken for lost, with this dependence, has not arrived for so long that it never will.
    pub(crate) fn confirm(&mut self, dependence: Dependence) {
        let wrongly = self.wrongly(dependence);
        // Where nothing overtakes, that was known before.
        if wrongly > 1e-6 {
            self.weigh(dependence, |lost| lost / (lost + (1.0 - lost) * wrongly));
        }
    }

    /// Weighs the levels by their probability that a packet with this dependence is lost.
    fn weigh(&mut self, dependence: Dependence, by: impl Fn(f32) -> f32) {
        let (of_all, of_loss) = likelihood(true, dependence);
        for (now, loss) in self.now.iter_mut().zip(self.loss) {
            // (What bursts explain wholly would be certain, and leave nothing to weigh.)
            *now *= by((of_all + of_loss * loss).max(1e-6));
        }
        self.normalise();
    }

    /// Probability that a packet with this dependence that arrives is taken for lost before.
    fn wrongly(&self, dependence: Dependence) -> f32 {
        let verdicts = &self.verdicts[usize::from(dependence.after_loss)];
        verdicts.wrong / (verdicts.arrived + VERDICTS_LEAST)
    }

    /// A packet with this dependence has arrived, and was taken for lost before or not.
    fn note_verdict(&mut self, dependence: Dependence, was_wrong: bool) {
        let place = usize::from(dependence.after_loss);
        let verdicts = &mut self.verdicts[place];
        let keep = 1.0 - 1.0 / VERDICTS[place];
        verdicts.arrived = verdicts.arrived * keep + 1.0;
        verdicts.wrong = verdicts.wrong * keep + f32::from(u8::from(was_wrong));
    }

    /// Returns what the levels were together: after they were weighed by a fate, the probability of that.
    fn normalise(&mut self) -> f32 {
        let all = sum(self.now);
        let scale = 1.0 / all;
        self.now.iter_mut().for_each(|share| *share *= scale);
        all
    }
}

fn powi(base: f32, power: u32) -> f32 {
    (1..power).fold(base, |product, _| product * base)
}

/// The sum, in an order that lets several be added at once.
fn sum(mut terms: [f32; LEVELS]) -> f32 {
    let mut half = LEVELS / 2;
    while half > 0 {
        let (low, high) = terms.split_at_mut(half);
        for (low, high) in low.iter_mut().zip(high) {
            *low += *high;
        }
        half /= 2;
    }
    terms[0]
}

/// By which power of the loss misses grow.
struct Power {
    /// With the redundancy that makes them rare enough.
    whole: u32,
    /// Over messages, of which some get a symbol less so that they are just as rare as they are to be.
    in_mean: f32,
}

/// By which power of the loss the misses grow, where it is `loss` in the mean.
fn power_in_rounds(miss_target: f32, loss: f32, rounds: u16, source_symbols: u8) -> Power {
    // After the first round few are missing.
    let symbols = if rounds > 1 { 1 } else { source_symbols };
    power_of_a_miss(miss_target, loss.clamp(LOSS[0], 0.9), symbols)
}

/// By which power of the loss the misses grow, where so many source symbols have one flight with as much redundancy as makes misses
/// rare enough: the binomial tail is next to its first term, of losses one more than there are repair symbols.
fn power_of_a_miss(miss_target: f32, loss: f32, source_symbols: u8) -> Power {
    let k = f32::from(source_symbols);
    let (mut losses, mut miss) = (1.0, k * loss);
    let mut part = 1.0;
    while losses < LOSSES_MAX && miss > miss_target {
        let rarer = loss * (k + losses) / (losses + 1.0);
        part = (libm::logf(miss_target / miss) / libm::logf(rarer)).clamp(0.0, 1.0);
        miss *= rarer;
        losses += 1.0;
    }
    let power = |losses: f32| {
        let expected = loss * (k + losses - 1.0);
        ((losses - expected) / (1.0 - loss)).max(1.0)
    };
    Power {
        whole: (power(losses) + 0.5) as u32,
        in_mean: power(losses - 1.0 + part),
    }
}

/// How likely a packet is lost, or arrives, at a level: a number, and what is to be added for each of its loss.
fn likelihood(lost: bool, dependence: Dependence) -> (f32, f32) {
    // In a chain of two states, one is left with the other's share, less the correlation.
    let free = 1.0 - dependence.correlation;
    match (dependence.after_loss, lost) {
        (false, true) => (0.0, free),
        (false, false) => (1.0, -free),
        (true, true) => (1.0 - free, free),
        (true, false) => (free, -free),
    }
}

#[cfg(test)]
mod tests;
