//! Which packets a channel loses.
//!
//! Bursts (Gilbert and Elliott's model) are an alternating sequence of good and bad spells whose lengths are exponential
//! in *time*: a sender that sends twice as often loses twice as many packets in a burst, as on a real path. (The usual
//! per-packet chain would make bursts shorter in time the more is sent, and would depend on what is sent.)

use std::sync::Arc;
use std::time::Duration;

use super::playback::LossPlayback;
use super::{Direction, LossModel, LossReason};
use crate::chance::{Chance, Purpose};

#[derive(Debug, Clone)]
pub(super) enum LossField {
    None,
    Uniform {
        share: f64,
        chance: Chance,
    },
    Gilbert {
        spells: Spells,
        loss_in_good: f64,
        loss_in_bad: f64,
        chance: Chance,
    },
    Trace {
        playback: LossPlayback,
        chance: Chance,
    },
}

impl LossField {
    pub(super) fn new(
        model: &LossModel,
        chance: Chance,
        shared: Chance,
        direction: Direction,
    ) -> Self {
        match *model {
            LossModel::None => Self::None,
            LossModel::Uniform(share) => Self::Uniform { share, chance },
            LossModel::Gilbert {
                loss_share,
                mean_burst,
                loss_in_good,
                loss_in_bad,
            } => {
                let bad_share = (loss_share - loss_in_good) / (loss_in_bad - loss_in_good);
                Self::Gilbert {
                    spells: Spells::new(bad_share, mean_burst, chance),
                    loss_in_good,
                    loss_in_bad,
                    chance,
                }
            }
            LossModel::Trace(ref trace) => Self::Trace {
                playback: LossPlayback::new(Arc::clone(trace), shared, direction),
                chance,
            },
        }
    }

    /// Why the packet is lost, if it is. `at_us` is the start of its slot.
    #[inline]
    pub(super) fn lost(&mut self, at_us: u64, slot: u64, index: u64) -> Option<LossReason> {
        let (share, reason, chance) = self.at(at_us)?;
        // Without the draw when it decides nothing: most packets meet a good spell without loss.
        let lost =
            share >= 1.0 || (share > 0.0 && chance.share(Purpose::Loss, slot, index) < share);
        lost.then_some(reason)
    }

    /// The share of packets lost in the slot that starts at `at_us`.
    pub(super) fn share(&mut self, at_us: u64) -> f64 {
        self.at(at_us).map_or(0.0, |(share, ..)| share)
    }

    /// The share lost at a time, why, and the chance that draws; `None` on a channel that loses nothing.
    #[inline]
    fn at(&mut self, at_us: u64) -> Option<(f64, LossReason, &Chance)> {
        match self {
            Self::None => None,
            Self::Uniform { share, chance } => Some((*share, LossReason::Random, chance)),
            Self::Gilbert {
                spells,
                loss_in_good,
                loss_in_bad,
                chance,
            } => {
                let (share, reason) = if spells.is_bad(at_us) {
                    (*loss_in_bad, LossReason::Burst)
                } else {
                    (*loss_in_good, LossReason::Random)
                };
                Some((share, reason, chance))
            }
            Self::Trace { playback, chance } => {
                Some((playback.share(at_us), LossReason::Trace, chance))
            }
        }
    }
}

/// The sequence of good and bad spells. Spell i has a length drawn for i, so the sequence is the same however it is
/// walked; the last few are kept for steps back, and a step further back walks again from the beginning.
#[derive(Debug, Clone)]
pub(super) struct Spells {
    chance: Chance,
    first_is_bad: bool,
    mean_good_ns: f64,
    mean_bad_ns: f64,
    /// Start of spell i at i % KEPT, for the spells (number + 1 - KEPT)..=number.
    starts_ns: [u64; Self::KEPT as usize],
    /// The current spell: its number, and where it ends.
    number: u64,
    end_ns: u64,
}

impl Spells {
    const KEPT: u64 = 8;

    fn new(bad_share: f64, mean_bad: Duration, chance: Chance) -> Self {
        let mean_bad_ns = mean_bad.as_nanos() as f64;
        // bad_share = bad / (bad + good). With no bad share the first good spell never ends.
        let mean_good_ns = mean_bad_ns * (1.0 - bad_share) / bad_share;
        let mut spells = Self {
            chance,
            // In equilibrium from the start; what is left of an exponential spell is exponential again.
            first_is_bad: chance.share(Purpose::Sojourn, 0, 1) < bad_share,
            mean_good_ns,
            mean_bad_ns,
            starts_ns: [0; Self::KEPT as usize],
            number: 0,
            end_ns: 0,
        };
        spells.end_ns = spells.length_ns(0);
        spells
    }

    #[inline]
    fn is_bad(&mut self, at_us: u64) -> bool {
        let at_ns = at_us.saturating_mul(1000);
        if at_ns < self.start_ns(self.number) {
            return self.was_bad(at_ns);
        }
        while at_ns >= self.end_ns {
            self.number += 1;
            self.starts_ns[(self.number % Self::KEPT) as usize] = self.end_ns;
            // At least a nanosecond, so that the walk ends.
            self.end_ns = self
                .end_ns
                .saturating_add(self.length_ns(self.number).max(1));
            if self.end_ns == u64::MAX {
                break;
            }
        }
        self.is_bad_spell(self.number)
    }

    /// The state at a time before the current spell.
    #[cold]
    fn was_bad(&mut self, at_ns: u64) -> bool {
        let oldest = (self.number + 1).saturating_sub(Self::KEPT);
        for number in (oldest..self.number).rev() {
            if at_ns >= self.start_ns(number) {
                return self.is_bad_spell(number);
            }
        }
        let mut again = self.clone();
        again.number = 0;
        again.starts_ns = [0; Self::KEPT as usize];
        again.end_ns = again.length_ns(0);
        again.is_bad(at_ns / 1000)
    }

    fn start_ns(&self, number: u64) -> u64 {
        self.starts_ns[(number % Self::KEPT) as usize]
    }

    const fn is_bad_spell(&self, number: u64) -> bool {
        self.first_is_bad ^ (number % 2 == 1)
    }

    fn length_ns(&self, number: u64) -> u64 {
        let mean = if self.is_bad_spell(number) {
            self.mean_bad_ns
        } else {
            self.mean_good_ns
        };
        // A cast saturates, and NaN (0 * infinity) cannot be: exponentials are above 0.
        (mean * self.chance.exponential(Purpose::Sojourn, number, 0)) as u64
    }
}
