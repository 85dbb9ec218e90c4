//! How long losses last: how likely a packet is lost when the one before it was, by the time between them.
//!
//! Losses come in bursts (on the Internet, mostly): what is sent right after a lost packet is lost too, far more often than
//! the share of losses says. By how much, and for how long, decides whether symbols sent together help each other, and whether
//! a lost flight says that the path has become worse or only that one moment was bad.

use core::ops::Range;
use core::time::Duration;

use punctual_policy::Burst;

use super::fading::{Fading, Lags, Seen};
use crate::time::{Instant, nanos};

/// Upper ends of the classes of time between two packets, in milliseconds. Beyond the last, fates are independent.
const ENDS_MS: [u64; CLASSES] = [2, 8, 32, 128, 512];
const CLASSES: usize = 5;
/// Packets after a loss that a class remembers at most.
const MEMORY: u16 = 384;
/// .. and so many of those beyond, since each loss has many.
const MEMORY_BEYOND: u16 = 3072;
/// Packets after a loss that agree with what was thought before any was seen.
const PRIOR: f32 = 4.0;
/// The same where packets do not leave together: there, what was thought before is that losses are independent, and two that met by
/// chance must not look like a burst.
const PRIOR_APART: f32 = 16.0;
/// Packets after a loss from which on a class of times apart says something of the correlation of packets sent together.
pub(super) const ENOUGH: f32 = 8.0;
/// Standard deviations by which packets apart are to be lost more often than chance would have it before they say that those sent together are.
pub(super) const CHANCES: f32 = 2.0;
/// The same before flights are said to lose unevenly.
const SURE_CHANCES: f32 = 3.0;
/// By this times the loss the variance of a count of pairs is greater than if each pair were by itself: of flights of 16 two thirds of that, less one.
const ALIKE: f32 = 9.0;
/// Less than this is not worth it.
const UNEVEN_LEAST: f32 = 0.02;
/// Bursts take a part of what is sent in them where the correlation beyond a packet that arrived is at least this part of that with the next one. Where
/// they take all it is nothing, where losses are a beta distribution's about as much.
const PARTLY: f32 = 0.3;
/// While nothing was seen beyond the next one, they do where at least so many of those after a lost one arrive, by one deviation of chance.
const ARRIVED_LEAST: f32 = 0.05;
/// Share of the packets right after a lost one that are lost, before any was seen. (Paths differ too much to expect more.)
const PRIOR_TOGETHER: f32 = 0.1;

/// Correlation of packets sent together until enough of them were seen to know it, at most. If copies seem to be lost with what they repeat, none is sent, and
/// nobody ever sees whether they are.
const UNTESTED: f32 = 0.5;

/// Fates are not taken for more alike than this where it is decided, ..
pub(super) const DECIDED_MOST: f32 = 0.995;
/// .. and where they say how bad the path is now.
const HEARD_MOST: f32 = 0.9995;
/// Correlations below this cannot be told from none, and after few losses, as much as bursts of the usual length would leave ..
pub(super) const GONE: f32 = 0.03;
/// .. which is this, in seconds.
const USUAL_S: f32 = 0.02;
/// Correlations below this are as good as none.
const NOTABLE: f32 = 0.1;

/// Packets that came after a lost one, and how many of them were lost: both halved when there are as many as are remembered.
#[derive(Clone, Copy, Default)]
pub(super) struct After {
    packets: u16,
    lost: u16,
}

impl After {
    /// Whether older ones were halved.
    pub(super) fn note(&mut self, lost: bool, memory: u16) -> bool {
        let is_full = self.packets >= memory;
        if is_full {
            (self.packets, self.lost) = (self.packets / 2, self.lost / 2);
        }
        self.packets += 1;
        self.lost += u16::from(lost);
        is_full
    }

    /// Both together.
    fn and(&self, other: &Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            lost: self.lost + other.lost,
        }
    }

    /// One that was noted as lost was not.
    pub(super) fn correct(&mut self) {
        self.lost = self.lost.saturating_sub(1);
    }

    /// One that was noted is none.
    pub(super) fn forget(&mut self, lost: bool) {
        self.packets = self.packets.saturating_sub(1);
        self.lost = (self.lost.saturating_sub(u16::from(lost))).min(self.packets);
    }

    pub(super) fn packets(&self) -> f32 {
        self.packets.into()
    }

    /// The share that was lost.
    pub(super) fn lost_share(&self) -> f32 {
        f32::from(self.lost) / self.packets().max(1.0)
    }

    /// Correlation as far as it is no chance: so many standard deviations less than seen, with a prior of none of the weight of so many packets.
    fn surely(&self, loss: f32, weight: f32, deviations: f32) -> f32 {
        if self.packets() < ENOUGH {
            return 0.0;
        }
        let seen = self.correlation(loss, loss, weight);
        self.less_chance(seen, loss, deviations).max(0.0)
    }

    /// Whether packets after a lost one arrive surely now and then.
    fn is_partly(&self) -> bool {
        let arrived = 1.0 - self.lost_share();
        let chance = chance_alone(arrived, self.packets().max(1.0));
        self.packets() >= ENOUGH && arrived - chance > ARRIVED_LEAST
    }

    /// A correlation seen, less so many standard deviations of what chance makes of independent losses.
    fn less_chance(&self, seen: f32, loss: f32, deviations: f32) -> f32 {
        seen - deviations * chance_alone(loss, self.packets().max(1.0))
    }

    /// What counts of a correlation seen: all of it from 4.5 standard deviations of chance on, none up to three. (Where symbols are kept apart nearly none
    /// leave together any more. With 20 % of loss one session in four had seen 8 of 20 lost, and took that for bursts for the rest of its time.)
    fn no_chance(&self, seen: f32, loss: f32) -> f32 {
        (3.0 * self.less_chance(seen, loss, SURE_CHANCES)).clamp(0.0, seen)
    }

    /// Correlation with the loss before on a path that loses `loss`, with a prior share of the weight of so many packets.
    pub(super) fn correlation(&self, loss: f32, prior: f32, weight: f32) -> f32 {
        self.correlation_up_to(DECIDED_MOST, loss, prior, weight)
    }

    /// The same, but taken for no more than `most`.
    fn correlation_up_to(&self, most: f32, loss: f32, prior: f32, weight: f32) -> f32 {
        let share = (f32::from(self.lost) + weight * prior) / (self.packets() + weight);
        ((share - loss) / (1.0 - loss).max(0.01)).clamp(0.0, most)
    }
}

/// What is known of bursts in a direction.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bursts {
    after_loss: [After; CLASSES],
    /// By class but the first: the times since the loss.
    lags: [Lags; CLASSES - 1],
    /// Packets sent together with a lost one, beyond the next, which arrived.
    beyond: After,
    fading: Fading,
    /// When the packet heard of last was sent, ..
    last_sent_at: Instant,
    /// .. and the one of all that were heard of that was sent last.
    newest_sent_at: Instant,
    /// Whether they were lost.
    last_lost: bool,
    newest_lost: bool,
}

/// How the fate of a packet depends on that of the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dependence {
    /// The one before was lost.
    pub(crate) after_loss: bool,
    /// Correlation of both fates, 0..1.
    pub(crate) correlation: f32,
}

impl Dependence {
    pub(crate) const NONE: Self = Self {
        after_loss: false,
        correlation: 0.0,
    };
}

/// A packet that was sent after a lost one.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    /// How long after.
    pub(crate) lag: Duration,
    /// It was lost as well.
    pub(crate) lost: bool,
    pub(crate) between: Between,
}

/// What was sent between the packets of a pair.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Between {
    Nothing,
    /// The packet after the first arrived.
    Arrived,
    /// It did not, or that is not known yet.
    NotArrived,
}

impl Bursts {
    /// A packet arrived, or is taken for lost, on a path that loses `loss` of them. Returns how that depends on the packet heard
    /// of before.
    pub(crate) fn record(&mut self, sent_at: Instant, lost: bool, loss: f32) -> Dependence {
        let before = self.last_sent_at;
        let lag = sent_at.since(before).max(before.since(sent_at));
        let class = class_of(lag);
        let dependence = Dependence {
            after_loss: self.last_lost,
            correlation: class.map_or(0.0, |class| self.correlation_heard(class, loss)),
        };
        (self.last_sent_at, self.last_lost) = (sent_at, lost);
        if sent_at >= self.newest_sent_at {
            (self.newest_sent_at, self.newest_lost) = (sent_at, lost);
        }
        dependence
    }

    /// The packet that was sent next after a lost one, this long after it, was lost or not: pairs that skip one which arrived would make bursts look shorter than they
    /// are.
    pub(super) fn note_after_loss(&mut self, lag: Duration, lost: bool) {
        let Some(class) = class_of(lag) else {
            return;
        };
        let is_halved = self.after_loss[class].note(lost, MEMORY);
        if let Some(lags) = self.lags_mut(class) {
            lags.note(lag, span_of(class), is_halved);
        }
    }

    /// A packet beyond the one after a lost one, which arrived, was lost or not, this long after it. Where bursts take all, that is as any other. To be called
    /// for all of a flight: each lost packet then says something of many others, while most have a next one that arrived.
    pub(crate) fn note_beyond(&mut self, lag: Duration, lost: bool) {
        if class_of(lag) == Some(0) {
            self.beyond.note(lost, MEMORY_BEYOND);
        }
    }

    /// What became of a packet after a lost one is known. To be called once for each pair, whichever of the two is heard of first.
    pub(crate) fn note_pair(&mut self, pair: Pair) {
        self.fading.note(pair.lag, pair.lost);
        match pair.between {
            Between::Nothing => self.note_after_loss(pair.lag, pair.lost),
            Between::Arrived => self.note_beyond(pair.lag, pair.lost),
            Between::NotArrived => {}
        }
    }

    /// The second packet of a pair that was noted as lost has arrived after all.
    pub(crate) fn correct_second(&mut self, pair: Pair) {
        self.fading.correct_second(pair.lag);
        if let Some(after) = self.after_mut(pair) {
            after.correct();
        }
    }

    /// The first packet of a pair that was noted was not lost: it is none.
    pub(crate) fn forget_pair(&mut self, pair: Pair) {
        self.fading.forget(pair.lag, pair.lost);
        let Some(after) = self.after_mut(pair) else {
            return;
        };
        after.forget(pair.lost);
        if pair.between == Between::Nothing
            && let Some(class) = class_of(pair.lag)
            && let Some(lags) = self.lags_mut(class)
        {
            lags.forget(pair.lag, span_of(class));
        }
    }

    /// Where a pair is counted by what was sent between.
    fn after_mut(&mut self, pair: Pair) -> Option<&mut After> {
        let class = class_of(pair.lag)?;
        match pair.between {
            Between::Nothing => Some(&mut self.after_loss[class]),
            Between::Arrived => (class == 0).then_some(&mut self.beyond),
            Between::NotArrived => None,
        }
    }

    /// How unevenly flights lose: see [`Burst::uneven`]. Bursts take a part of what is sent in them where packets beyond one that arrived are lost,
    /// too, more often than by chance.
    pub(crate) fn uneven(&self, loss: f32) -> f32 {
        // Losses of one flight are counted with each other.
        let deviations = SURE_CHANCES * libm::sqrtf(1.0 + ALIKE * loss);
        let surely = |after: &After| after.surely(loss, PRIOR, deviations);
        let next = surely(&self.after_loss[0]);
        if self.beyond.packets() < ENOUGH {
            return if self.after_loss[0].is_partly() {
                next
            } else {
                0.0
            };
        }
        let beyond = surely(&self.beyond);
        if beyond < UNEVEN_LEAST || beyond < PARTLY * next {
            return 0.0;
        }
        surely(&self.after_loss[0].and(&self.beyond))
    }

    fn lags_mut(&mut self, class: usize) -> Option<&mut Lags> {
        self.lags.get_mut(class.checked_sub(1)?)
    }

    /// Correlation of the fates of packets with this class of time between them.
    fn correlation_in(&self, class: usize, loss: f32) -> f32 {
        let prior = if class == 0 {
            PRIOR_TOGETHER.max(loss)
        } else {
            loss
        };
        self.after_loss[class].correlation(loss, prior, PRIOR)
    }

    /// The same for what the fate of one says of the present loss, when that of the other is known: of packets sent together the prior fades as they are
    /// met. (A hundredth less than all of them would be that much news in each packet of a flight, and always good news, since none of them turns bad.)
    fn correlation_heard(&self, class: usize, loss: f32) -> f32 {
        if class > 0 {
            return self.correlation_in(class, loss);
        }
        let after = &self.after_loss[0];
        let weight = PRIOR * PRIOR / (PRIOR + after.packets());
        after.correlation_up_to(HEARD_MOST, loss, PRIOR_TOGETHER.max(loss), weight)
    }

    /// That of packets sent together: at least that of packets apart, since it falls with the time between them. (Of single packets none are
    /// sent together.)
    fn correlation_together(&self, loss: f32) -> f32 {
        let apart = self.after_loss[1..].iter();
        let apart = apart.map(|after| after.correlation(loss, loss, PRIOR_APART));
        apart.fold(self.correlation_in(0, loss), f32::max)
    }

    /// The same as it was seen, with next to no prior: where bursts there are, the prior would make them look shorter than they are.
    fn seen_in(&self, class: usize, loss: f32) -> f32 {
        let prior = if class == 0 { 1.0 } else { loss };
        self.after_loss[class].correlation(loss, prior, 1.0)
    }

    /// Correlation of the fates of packets sent together, and the time over which it falls to 1/e: as it is for a single flight, or for flights that follow
    /// each other. In a single flight they are such that correlations at the times at which they were seen are as seen ([`Fading`]). Where these do not say it, and a
    /// correlation is taken for less than it seems, it is taken to last longer there, so that what was seen of packets apart stays; over rounds that would count twice.
    pub(crate) fn shape(&self, loss: f32, is_single: bool) -> (f32, Duration) {
        let cautious = self.correlation_together(loss);
        if cautious < NOTABLE {
            // Mostly: then nobody asks for how long.
            return (cautious, Duration::ZERO);
        }
        // The largest of several is what chance made large, if nothing else did.
        let surely = |class: usize| {
            self.after_loss[class].less_chance(self.seen_in(class, loss), loss, CHANCES)
        };
        let apart = (1..CLASSES).filter(|class| self.after_loss[*class].packets() >= ENOUGH);
        let apart = apart.map(surely).fold(0.0, f32::max);
        let together = apart.max(self.after_loss[0].no_chance(self.seen_in(0, loss), loss));
        let tested = (self.after_loss[0].packets() / ENOUGH).min(1.0);
        let untested = together.min(UNTESTED);
        let believed = untested + tested * (together - untested);
        if is_single {
            // What is sent together is one more time at which it was seen, or is taken for what it was at the others.
            let at_once = (tested >= 1.0).then(|| Seen::of(&self.after_loss[0], believed, loss));
            if let Some((fits, lasts)) = self.fading.shape(loss, at_once) {
                return (if tested < 1.0 { fits } else { believed }, lasts);
            }
        }
        let together = if is_single { believed } else { together };
        (believed, self.lasts(loss, together))
    }

    /// The time over which the correlation falls to 1/e, if that of packets sent together is this: the mean of what each class says.
    fn lasts(&self, loss: f32, together: f32) -> Duration {
        let (mut weights, mut sum_s) = (0.0, 0.0);
        // By many packets, and by few.
        let (mut at_most_s, mut perhaps_at_most_s) = (1.0_f32, 1.0_f32);
        for class in 1..CLASSES {
            let after = &self.after_loss[class];
            let packets = after.packets();
            if packets < 1.0 {
                continue;
            }
            let correlation = self.seen_in(class, loss);
            let lag_s = self.lags[class - 1].mean_s(packets, span_of(class));
            let usual = libm::expf(-lag_s / USUAL_S);
            let told_from_none = GONE.max(usual / (1.0 + packets));
            let ratio = (together / correlation.max(told_from_none)).max(1.1);
            let time_s = lag_s / libm::logf(ratio);
            if correlation > told_from_none {
                weights += packets;
                sum_s += packets * time_s;
            } else if packets >= ENOUGH {
                // It went faster than this, no more.
                at_most_s = at_most_s.min(time_s);
            } else {
                perhaps_at_most_s = perhaps_at_most_s.min(time_s);
            }
        }
        let time_s = if weights > 0.0 {
            sum_s / weights
        } else {
            perhaps_at_most_s
        };
        Duration::from_secs_f32(time_s.min(at_most_s).clamp(0.0, 1.0))
    }

    /// Correlation of the fates of packets a round of this length apart, as far as it is no chance: a standard deviation less than seen.
    pub(crate) fn again(&self, round: Duration, loss: f32) -> f32 {
        class_of(round).map_or(0.0, |class| {
            self.after_loss[class].surely(loss, PRIOR_APART, 1.0)
        })
    }

    /// Probability that all of `packets` sent together are lost, if the first is with probability `loss`, by bursts as they were seen.
    pub(crate) fn all_lost(&self, packets: u16, loss: f32) -> f64 {
        let together = Burst {
            correlation: self.correlation_together(loss),
            ..Burst::default()
        };
        together.all_lost(f64::from(loss), packets)
    }

    /// The greatest correlation seen of packets together, or so far apart that any is left, as far as it is no chance.
    pub(crate) fn surely(&self, loss: f32) -> f32 {
        let surely = |after: &After| {
            after.less_chance(after.correlation(loss, loss, 1.0), loss, SURE_CHANCES)
        };
        self.after_loss.iter().map(surely).fold(0.0, f32::max)
    }

    /// When the newest packet heard of was sent, and whether it was lost.
    pub(crate) const fn last(&self) -> (Instant, bool) {
        (self.newest_sent_at, self.newest_lost)
    }
}

/// Standard deviation of the share that is lost, or that arrives, of so many packets, each by itself.
pub(super) fn chance_alone(loss: f32, packets: f32) -> f32 {
    libm::sqrtf(loss * (1.0 - loss).max(0.0) / packets)
}

/// The times of a class, in milliseconds.
fn span_of(class: usize) -> Range<u64> {
    let begin = class.checked_sub(1).map_or(0, |before| ENDS_MS[before]);
    begin..ENDS_MS[class]
}

fn class_of(lag: Duration) -> Option<usize> {
    let lag_ms = nanos(lag) / 1_000_000;
    ENDS_MS.iter().position(|end| lag_ms < *end)
}

#[cfg(test)]
mod tests;
