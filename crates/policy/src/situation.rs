//! What a policy sees and what it answers.

use core::time::Duration;

use crate::chance::Losses;
use crate::{Hurries, Price, chance};

/// How losses depend on each other: bad moments, which last, take all symbols, as in the Gilbert model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Burst {
    /// Correlation of the fates of two symbols sent together, 0..=1. 0: independent.
    pub correlation: f32,
    /// The part of it, or of that of symbols some time apart, that chance does not explain, 0..=1.
    pub surely: f32,
    /// Time between two symbols after which it has fallen to 1/e.
    pub lasts: Duration,
    /// What is surely left of it after a round, 0..=1: a symbol sent again for a lost one is lost with probability p + `again` (1 - p).
    pub again: f32,
    /// The share by which the loss that is expected grows with one more, at least 0, for what that says of the path. Later rounds are decided knowing of
    /// the loss that made them necessary.
    pub tells: f32,
    /// Where bursts take a part of what is sent in them, and not all: the correlation of the fates of symbols that leave in one flight, as far as it
    /// is no chance, 0..1. The share that is lost differs so much from flight to flight. 0 where bursts take all, or nothing is known.
    pub uneven: f32,
    /// Whether the newest packet heard of was lost, and how long ago it was sent.
    pub was_lost: bool,
    /// See `was_lost`.
    pub age: Duration,
}

/// Time left, and what a round takes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// Time left until the deadline.
    pub time_left: Duration,
    /// Time left in which a symbol can be sent that still arrives in time, if it takes no longer than most.
    pub slack: Duration,
    /// Time after which missing feedback means loss.
    pub round_time: Duration,
    /// Smoothed round-trip time and its mean deviation, both as in RFC 9002 section 5.3; zero when nothing is known.
    pub rtt: Duration,
    /// See `rtt`.
    pub rtt_deviation: Duration,
}

impl Timing {
    /// The same so much later.
    pub(crate) const fn after(&self, passed: Duration) -> Self {
        Self {
            time_left: self.time_left.saturating_sub(passed),
            slack: self.slack.saturating_sub(passed),
            ..*self
        }
    }
}

/// What the peer has answered for, and whether that can be relied on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answers {
    /// Symbols sent that are neither acknowledged nor known to be lost.
    pub unaccounted: u16,
    /// Flights of the block in a row whose rounds are over and of which nothing was answered for, nor anything sent after them.
    pub silent_flights: u16,
    /// Probability that of the unaccounted symbols the feedback is late or lost, and not they themselves.
    pub missing: f32,
    /// Probability that a flight that arrives is not answered in time, nor is anything after it.
    pub lost: f32,
}

/// What a policy sees when it decides about one block of one message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Situation {
    /// k, the source symbols of the block, 1..=64.
    pub source_symbols: u8,
    /// What the policy counts ([`crate::Policy::counts`]), 1..=k: symbols still needed to rebuild the block, or source symbols
    /// that are not acknowledged. Symbols on the way are not subtracted.
    pub deficit: u8,
    /// Symbols of the block sent so far; 0 before the first flight.
    pub sent: u16,
    /// Rounds that were available when the first flight was sent. It names the table, and stays as it is for the whole block.
    pub rounds_planned: u16,
    /// Rounds, this one included, whose symbols can still arrive in time; 0 when it is too late for any.
    pub rounds_left: u16,
    /// Upper credible bound of the probability that a symbol sent now is lost, 0..=1.
    pub loss: f32,
    /// Expected probability that a symbol sent now is lost, 0..=1.
    pub loss_mean: f32,
    /// How the losses depend on each other; independent unless set.
    pub burst: Burst,
    /// What a miss is worth; `None` leaves it to the policy. Policies without a multiplier do not ask.
    pub price: Option<Price>,
    /// Probability that a symbol sent in the last of the rounds left arrives in time, if it is not lost.
    pub on_time: f32,
    /// Probability that a symbol sent when the rounds left are over arrives in time nevertheless: there is one more flight, and a miss is one only
    /// where that is late too.
    pub last_chance: f32,
    /// Probability that what is under way of the block beside its rounds, as copies in the spare room of other packets, completes it in time.
    pub comes_anyway: f32,
    /// What has been answered, and whether that can be relied on.
    pub answers: Answers,
    /// What more rounds than are left could be made of. See [`Situation::with_hurry`].
    pub hurries: Hurries,
    /// Uniform over all values, fixed for the message: mixed policies draw with it, once a message.
    pub draw: u32,
    /// How much time there is, and what a round takes of it.
    pub timing: Timing,
}

impl Situation {
    /// Before the first flight of a block, with a draw of 0 and no clock: what reports and tests begin with.
    #[must_use]
    pub const fn first(source_symbols: u8, rounds: u16, loss: f32) -> Self {
        Self {
            source_symbols,
            deficit: source_symbols,
            sent: 0,
            rounds_planned: rounds,
            rounds_left: rounds,
            loss,
            loss_mean: loss,
            burst: Burst {
                correlation: 0.0,
                surely: 0.0,
                lasts: Duration::ZERO,
                again: 0.0,
                tells: 0.0,
                uneven: 0.0,
                was_lost: false,
                age: Duration::ZERO,
            },
            price: None,
            on_time: 1.0,
            last_chance: 0.0,
            comes_anyway: 0.0,
            answers: Answers {
                unaccounted: 0,
                silent_flights: 0,
                missing: 0.0,
                lost: 0.0,
            },
            hurries: Hurries::NONE,
            draw: 0,
            timing: Timing {
                time_left: Duration::ZERO,
                slack: Duration::ZERO,
                round_time: Duration::ZERO,
                rtt: Duration::ZERO,
                rtt_deviation: Duration::ZERO,
            },
        }
    }
}

impl Situation {
    /// Whether a flight is the first and the last, and bursts take a part of it and not all. (Of several each has others to make up for it.)
    pub(crate) fn is_uneven(&self) -> bool {
        self.rounds_left <= 1 && self.sent == 0 && self.burst.uneven > 0.0
    }

    /// Whether it makes a difference how far apart symbols are.
    pub(crate) fn is_bursty(&self) -> bool {
        self.burst.is_notable() && !self.is_uneven()
    }

    /// Expected loss of symbols that are sent again for lost ones, where that is notably more than of others. (Where losses come in bursts,
    /// that is reckoned with otherwise.)
    pub(crate) fn loss_again(&self) -> Option<f32> {
        let again = self.burst.again * (1.0 - self.loss_mean);
        let is_more = again > NOTABLY_MORE * self.loss_mean && !self.is_bursty();
        is_more.then_some(self.loss_mean + again)
    }

    /// Expected loss by which later rounds will be decided. (Where it is a matter of one more symbol or not, a thousandth more loss makes a fiftieth more of
    /// them.)
    pub(crate) fn loss_later(&self) -> f32 {
        if self.rounds_left > 1 && self.burst.tells > 0.0 {
            self.loss_mean * (1.0 + self.burst.tells)
        } else {
            self.loss_mean
        }
    }

    /// Share of the blocks that rounds have not saved which a flight after them still does.
    pub(crate) fn saved_at_last(&self) -> f64 {
        let together = f64::from(self.burst.correlation).clamp(0.0, 1.0);
        let arrives = (1.0 - chance::loss_within_bounds(self.loss_mean)) * (1.0 - together);
        let in_time = if self.last_chance > 0.0 {
            self.last_chance.min(1.0)
        } else {
            0.0
        };
        f64::from(in_time) * arrives
    }

    /// The situation after a round that waited so long, and changed nothing else.
    pub(crate) fn after(&self, wait: Duration) -> Self {
        let timing = self.timing.after(wait);
        let round_time = self.timing.round_time;
        let is_hurried = wait < round_time;
        let before = self.rounds_left.saturating_sub(u16::from(!is_hurried));
        let rounds_left = if round_time.is_zero() {
            // Without a clock rounds are all there is.
            before
        } else if timing.time_left.is_zero() {
            0
        } else {
            // What is left may be less than a round, and is enough for a flight; and one that waited longer than it had to has used up more than one.
            let more = timing.slack.as_nanos() / round_time.as_nanos();
            let rounds = 1 + u16::try_from(more).unwrap_or(u16::MAX - 1);
            rounds.min(before)
        };
        Self {
            rounds_left,
            timing,
            hurries: Hurries::NONE,
            ..*self
        }
    }
}

/// Correlations below this are not worth doing anything for.
const NOTABLE: f32 = 0.15;
/// Correlations above this are taken for it: one symbol says all of the others then.
const SURE: f64 = 0.999;
/// Symbols sent again are lost more often than others if they are by this share.
const NOTABLY_MORE: f32 = 0.1;

impl Burst {
    /// Probability that so many symbols sent together are all lost, if one is with probability `loss`. 1 for none. O(symbols).
    ///
    /// The share that is lost of what is sent together is a beta distribution's: between bursts that take all, and those in which each symbol is lost
    /// as likely as the one after a lost one, of which sixteen next to never would be.
    #[must_use]
    pub fn all_lost(&self, loss: f64, symbols: u16) -> f64 {
        let uneven = f64::from(self.correlation).clamp(0.0, SURE);
        let arrival = 1.0 - loss;
        Losses {
            loss: arrival,
            uneven,
        }
        .all_arrive(symbols)
    }

    /// Probability that a symbol is lost that leaves so long after one that was, if another is with probability `loss`.
    #[must_use]
    pub fn lost_after_loss(&self, loss: f64, apart: Duration) -> f64 {
        let again = f64::from(self.correlation).clamp(0.0, 1.0) * kept(self.lasts, apart);
        loss + again * (1.0 - loss)
    }

    /// Whether it makes a difference to what is best to send.
    pub(crate) fn is_notable(&self) -> bool {
        self.correlation > NOTABLE
    }

    /// A path of so much loss as moments that are bad or good, a bad one taking everything, a good one symbols one by one: the share of
    /// bad moments, and the probability that a symbol is lost in a good one.
    #[must_use]
    pub fn moments(&self, loss: f64) -> (f64, f64) {
        let bad = loss * f64::from(self.correlation).clamp(0.0, 1.0);
        let lost_when_good = (loss - bad) / (1.0 - bad).max(f64::MIN_POSITIVE);
        (bad, lost_when_good)
    }
}

/// What is left after this time of the influence of a moment, where 1/e is after it `lasts`.
pub(crate) fn kept(lasts: Duration, time: Duration) -> f64 {
    if time.is_zero() {
        return 1.0;
    }
    libm::exp(-time.as_secs_f64() / lasts.as_secs_f64().max(1e-6))
}

/// Probability that in a silence only the answers are missing: where they are with probability `missing`, and all symbols lost with
/// `all_lost` (Bayes).
#[must_use]
pub fn only_answers_missing(missing: f64, all_lost: f64) -> f64 {
    let unanswered = (1.0 - all_lost) * missing;
    unanswered / (unanswered + all_lost).max(f64::MIN_POSITIVE)
}

/// What a policy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Symbols to send in this round. Fewer than the deficit gives the round up; more adds repair symbols.
    pub symbols: u16,
    /// Symbols of the flight that leave back to back, 1 or more, before it pauses.
    pub together: u16,
    /// How long it pauses after those; zero sends all of it back to back.
    pub spacing: Duration,
    /// When to look again if no feedback settles the round before; the round time when `None`.
    pub look_again: Option<Duration>,
}

impl Action {
    /// A flight of `symbols` sent back to back, looked at again after a round time.
    #[must_use]
    pub const fn burst(symbols: u16) -> Self {
        Self {
            symbols,
            together: 1,
            spacing: Duration::ZERO,
            look_again: None,
        }
    }

    /// How long after the first symbol of the flight the one with this number, from 0, leaves.
    #[must_use]
    pub const fn leaves_after(&self, symbol: u16) -> Duration {
        let together = if self.together == 0 { 1 } else { self.together };
        self.spacing.saturating_mul((symbol / together) as u32)
    }
}
