//! Silence: what to send when nobody has answered, and what becomes of messages whose answers are lost (docs/notes/redundancy.md#silence).

use super::State;
use super::grid::{DEFICITS, TablePoint};
use super::memo::{Axis, Memo, key};
use crate::limits::FLIGHT_MAX;
use crate::{Answers, Price, Situation, chance, only_answers_missing};

/// Symbols that a target's worth of misses is worth at least, when it has to be decided whether to send anything.
const DOUBTED_MISSES: f64 = 0.25;
/// Shares of lost answers below this make no difference.
const NOTABLE: f32 = 1e-3;
/// Where it is less likely that only the answers are missing, a silence is a loss, and the tables decide: what they lead to is reckoned with.
const DOUBTFUL: f32 = 0.1;
/// With more rounds, what a lost answer leads to is below all targets.
const ROUNDS_MAX: u16 = 4;

/// With more symbols that nobody answered for, it is reckoned each time.
const UNACCOUNTED_MAX: u16 = 63;
/// Points of the probability that all is lost.
const ALL_LOST: Axis = Axis::new(-14, 8, 7);
/// Bits of a key.
const KEY_BITS: u32 = TablePoint::BITS + 6 + 7;

/// What is sent in a silence, and one more; as of all of the process.
pub(super) static SILENCES: Memo<KEY_BITS> = Memo::new();

impl Situation {
    /// Whether what is expected takes more than to look it up: losses come in bursts, answers are lost, or a round may be hurried.
    pub(crate) fn is_intricate(&self) -> bool {
        self.is_bursty()
            || self.loss_again().is_some()
            || self.loses_answers(self.rounds_left)
            || self.may_hurry()
    }

    fn loses_answers(&self, rounds: u16) -> bool {
        self.answers.lost > NOTABLE && (2..=ROUNDS_MAX).contains(&rounds)
    }
}

/// A first flight that nobody has answered for.
struct Silence {
    /// Rounds planned, that of the flight included.
    rounds: u16,
    /// Symbols of the flight.
    sent: u16,
    /// Probability that a symbol of the last flight is in time, if it is not lost.
    in_time: f64,
    /// Probability, as far as the sender can tell, that only the answers are missing.
    missing: f64,
    miss_target: f64,
}

impl State<'_> {
    /// Whether nobody has answered, and that may not mean a loss.
    pub(super) fn is_doubtful(&self) -> bool {
        self.situation.answers.unaccounted > 0 && self.situation.answers.missing > DOUBTFUL
    }

    /// What to send: by the tables, or, where nobody has answered and that may not mean a loss, by the belief about it.
    ///
    /// With rounds to spare, or few losses, the price may be next to nothing, and that is no reason to believe that nothing was lost: what is
    /// needed goes unless it would not either where a doubt is worth something.
    pub(super) fn symbols_now(&self, rounds_left: u16, miss_target: f64) -> u16 {
        if !self.is_doubtful() {
            return self.symbols(rounds_left);
        }
        let deficit = u16::from(self.situation.deficit);
        let best = self.best_in_silence(rounds_left);
        if best >= deficit {
            return best;
        }
        let least = Price::from_log2(libm::log2(DOUBTED_MISSES / miss_target) as f32)
            .discounted(1.0 - self.situation.comes_anyway);
        let doubted = State {
            price: Price::from_log2(self.price.log2().max(least.log2())),
            ..*self
        };
        best.max(doubted.best_in_silence(rounds_left).min(deficit))
    }

    /// What to send when nobody has answered for some symbols, neither for them nor for anything after them, by the points around the situation, which the
    /// message draws. O(1) if it was reckoned before.
    fn best_in_silence(&self, rounds_left: u16) -> u16 {
        let situation = self.situation;
        let Answers {
            unaccounted,
            missing,
            ..
        } = situation.answers;
        let point = TablePoint::around(situation, self.price, rounds_left);
        let Some(point) = point.filter(|_| unaccounted <= UNACCOUNTED_MAX) else {
            return self.reckon_in_silence(rounds_left);
        };
        let all_lost = ALL_LOST.point(1.0 - missing, situation.draw);
        let key = key(&[
            (point.key(), TablePoint::BITS),
            (u64::from(unaccounted), 6),
            (u64::from(all_lost), 7),
        ]);
        let kept = SILENCES.get(key, || {
            let situation = Situation {
                answers: Answers {
                    missing: 1.0 - ALL_LOST.value(all_lost).min(1.0),
                    ..situation.answers
                },
                ..point.of(situation)
            };
            let state = State {
                situation: &situation,
                ..*self
            };
            u64::from(state.reckon_in_silence(point.rounds)) + 1
        });
        (kept - 1) as u16
    }

    /// The same, whether it was reckoned before or not: least a + E V(..), where all of them are lost, or their answer is and each has arrived as likely as
    /// ever. O(deficit x (unaccounted + symbols sent)).
    fn reckon_in_silence(&self, rounds_left: u16) -> u16 {
        const STATES: usize = DEFICITS + 1;
        let deficit = usize::from(self.situation.deficit).min(DEFICITS);
        let loss = chance::loss_within_bounds(self.situation.loss_mean);
        let missing = f64::from(self.situation.answers.missing.clamp(0.0, 1.0));
        // Probability of each deficit as it is, whatever is known of it; that of none is not needed.
        let mut belief = [0.0; STATES];
        belief[deficit] = 1.0 - missing;
        let unaccounted = self.situation.answers.unaccounted;
        chance::arrivals_below(
            unaccounted,
            1.0 - loss,
            deficit as u16,
            |arrived, chance| {
                belief[deficit - usize::from(arrived)] += missing * chance;
            },
        );
        // Expectation of what follows, by true deficit, after the symbols so far.
        let mut after = [0.0; STATES];
        for (left, value) in after.iter_mut().enumerate().take(deficit + 1) {
            *value = self.value(rounds_left - 1, left as u16);
        }
        let mut best = (f64::INFINITY, 0);
        for symbols in 0..=FLIGHT_MAX {
            let expected: f64 = belief.iter().zip(&after).map(|(p, value)| p * value).sum();
            let value = f64::from(symbols) + expected;
            if value < best.0 {
                best = (value, symbols);
            }
            if f64::from(symbols) >= best.0 {
                break;
            }
            for left in (1..=deficit).rev() {
                after[left] = (1.0 - loss) * after[left - 1] + loss * after[left];
            }
        }
        best.1
    }

    /// Probability of a miss, where losses come in bursts, answers are lost, or come late because the round is hurried.
    ///
    /// Patient rounds may be fewer than fit; that they are then expected to miss more is left to what is seen.
    pub(super) fn miss_answered_or_not(&self, miss_target: f64) -> f64 {
        let situation = self.situation;
        let pace = self.pace();
        let is_hurried = pace.rounds > situation.rounds_left;
        let (rounds, wait) = if is_hurried {
            (
                pace.rounds,
                pace.wait.unwrap_or(situation.timing.round_time),
            )
        } else {
            (situation.rounds_left, situation.timing.round_time)
        };
        let answered = match pace.chance {
            Some(chance) => chance.miss,
            None if self.is_bursty() => self.miss_in_bursts(rounds, wait),
            None => self.miss_if_sent_again(rounds),
        };
        // What is hurried leaves no time for a flight after it.
        let missed = if is_hurried {
            1.0
        } else {
            1.0 - situation.saved_at_last()
        };
        if !is_hurried && !situation.loses_answers(rounds) {
            return missed * answered;
        }
        let come = (1.0 - f64::from(situation.answers.lost)) * (1.0 - f64::from(pace.late));
        let (sent, in_time) = match pace.chance {
            Some(chance) => (chance.symbols, chance.in_time),
            None => (self.symbols(rounds), 1.0),
        };
        let loss = chance::loss_within_bounds(situation.loss_mean);
        let all_lost = situation.burst.all_lost(loss, sent);
        let silence = Silence {
            rounds,
            sent,
            in_time,
            missing: only_answers_missing(1.0 - come, all_lost),
            miss_target,
        };
        let unanswered = self.miss_in_silence(&silence, sent);
        // A flight that is lost looks the same, and then less is sent than if that were known.
        let doubted = if silence.missing > f64::from(DOUBTFUL) {
            let known = Silence {
                missing: 0.0,
                ..silence
            };
            all_lost * (self.miss_in_silence(&silence, 0) - self.miss_in_silence(&known, 0))
        } else {
            0.0
        };
        missed * (come * (answered + doubted.max(0.0)) + (1.0 - come) * unanswered)
    }

    /// Probability of a miss of a message whose first flight nobody answers for: of its symbols so many arrive like any others, and the rest
    /// is lost.
    ///
    /// In each silent round what seems best goes, and otherwise the peer is asked (PROTOCOL.md#loss); with an answer the rounds go on as
    /// the tables say. O(deficit x symbols sent) a round, of [`ROUNDS_MAX`].
    fn miss_in_silence(&self, silence: &Silence, may_arrive: u16) -> f64 {
        let &Silence {
            rounds,
            mut sent,
            in_time,
            missing,
            miss_target,
        } = silence;
        let loss = chance::loss_within_bounds(self.situation.loss_mean);
        let deficit = u16::from(self.situation.deficit).min(DEFICITS as u16);
        let gone = sent.saturating_sub(may_arrive);
        let (mut silent, mut miss) = (1.0, 0.0);
        for rounds_left in (1..rounds.min(ROUNDS_MAX)).rev() {
            let situation = Situation {
                answers: Answers {
                    unaccounted: sent,
                    missing: missing as f32,
                    ..self.situation.answers
                },
                rounds_left,
                // (It is not alone any more.)
                sent: self.situation.sent.saturating_add(sent),
                ..*self.situation
            };
            let state = State {
                situation: &situation,
                ..*self
            };
            let symbols = state.symbols_now(rounds_left, miss_target);
            let before = sent;
            sent = sent.saturating_add(symbols);
            let lost = chance::power(loss, u32::from(symbols.max(1)));
            let is_last = rounds_left == 1;
            let answered = if is_last {
                1.0
            } else {
                (1.0 - lost) * (1.0 - f64::from(self.situation.answers.lost))
            };
            chance::arrivals_below(sent - gone, 1.0 - loss, deficit, |arrived, chance| {
                let after = if is_last {
                    in_time
                } else {
                    self.miss(rounds_left - 1, deficit - arrived)
                };
                miss += silent * answered * chance * after;
            });
            if is_last && in_time < 1.0 {
                chance::arrivals_below(before - gone, 1.0 - loss, deficit, |_, chance| {
                    miss += silent * (1.0 - in_time) * chance;
                });
            }
            silent *= 1.0 - answered;
        }
        miss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Steered;

    /// What is looked up is what is reckoned at a point around the situation: on average over the points, about as many symbols as without a grid.
    #[test]
    fn what_is_looked_up_is_about_what_is_reckoned() {
        let policy = Steered::new(1e-3).expect("in range");
        policy.build_all();
        let (mut looked_up, mut reckoned) = (0, 0);
        for case in 0..20_000_u32 {
            let of = |one_in: u32, end: u32| case / one_in % end;
            let source_symbols = 1 + of(1, 32) as u8;
            let situation = Situation {
                sent: source_symbols.into(),
                rounds_left: 1 + of(7, 4) as u16,
                answers: Answers {
                    unaccounted: source_symbols.into(),
                    missing: of(11, 256) as f32 / 255.0,
                    ..Answers::default()
                },
                price: Some(Price::from_log2(of(13, 16) as f32)),
                draw: case.wrapping_mul(0x9e37_79b9),
                ..Situation::first(source_symbols, 5, 0.01 + of(17, 32) as f32 / 100.0)
            };
            let state = policy.state(&situation).expect("tables are built");
            let best = state.best_in_silence(situation.rounds_left);
            assert_eq!(best, state.best_in_silence(situation.rounds_left));
            looked_up += u32::from(best);
            reckoned += u32::from(state.reckon_in_silence(situation.rounds_left));
        }
        let ratio = f64::from(looked_up) / f64::from(reckoned);
        assert!((ratio - 1.0).abs() < 0.02, "{looked_up} {reckoned}");
    }

    #[test]
    fn nothing_is_sent_where_only_the_answers_are_missing() {
        let policy = Steered::new(1e-3).expect("in range");
        policy.build_all();
        for (missing, is_sent) in [(1.0, false), (0.0, true)] {
            let situation = Situation {
                sent: 4,
                rounds_left: 1,
                answers: Answers {
                    unaccounted: 4,
                    missing,
                    ..Answers::default()
                },
                price: Some(Price::from_log2(8.0)),
                ..Situation::first(4, 2, 1e-5)
            };
            let state = policy.state(&situation).expect("tables are built");
            assert_eq!(state.best_in_silence(1) > 0, is_sent, "{missing}");
        }
    }
}
