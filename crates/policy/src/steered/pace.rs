//! How many rounds to make of the time that is left, and how long each then waits for answers (docs/notes/redundancy.md#waiting).

use core::time::Duration;

use super::State;
use super::chances::Chance;
use super::grid::ROUNDS;
use crate::Hurry;
use crate::limits::ANSWERS_APART;

/// Share of answers that take longer than the round time, by its definition (a 99 % quantile).
const LATE_ANSWERS: f64 = 0.01;
/// Of those, the share that comes within a mean deviation more (1 - 1/e: delays are taken to fall off exponentially).
const LATE_SAVED: f64 = 0.632;

/// How much longer than their deviation rounds wait at most: not at all, if they did not vary, would be by chance too short for some.
const LEAST_SPARE: Duration = Duration::from_micros(50);

/// Rounds that are left over when a silence is waited out: what is sent in them is decided as ever.
const LAST_ROUNDS: u16 = 3;
/// Flights in vain after which it is.
const IN_VAIN: u16 = 3;

/// What is made of the time.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) rounds: u16,
    /// How long this round waits for answers, if not for the round time.
    pub(super) wait: Option<Duration>,
    /// Share of answers that come too late because it is hurried.
    pub(super) late: f32,
    /// What goes now, and what comes of it, where the last flight may be late.
    pub(super) chance: Option<Chance>,
    /// Symbols and misses that come of it.
    value: f64,
}

impl State<'_> {
    /// The best pace: patient, unless a round that does not wait for the latest answers costs less than it makes room for.
    pub(super) fn pace(&self) -> Pace {
        let situation = self.situation;
        let mut best = self.patient();
        if !situation.may_hurry() {
            return best;
        }
        for hurry in situation.hurries.iter() {
            if hurry.is_chancy() && self.is_doubtful() {
                continue;
            }
            let pace = self.hurried(hurry);
            if pace.value < best.value {
                best = pace;
            }
        }
        best
    }

    fn hurried(&self, hurry: &Hurry) -> Pace {
        let deficit = u16::from(self.situation.deficit);
        let rounds = self.situation.rounds_left.saturating_add(hurry.more);
        let (value, chance) = if hurry.is_chancy() {
            let (value, chance) = self.best_chance(rounds, hurry.in_time);
            (value, Some(chance))
        } else {
            (self.value(rounds, deficit), None)
        };
        Pace {
            rounds,
            wait: Some(hurry.wait),
            late: hurry.late,
            chance,
            value: value + f64::from(hurry.late) * f64::from(deficit),
        }
    }

    /// The same where every round waits for its round time at least.
    ///
    /// The slack, but for a quarter of what is spare, is divided among the rounds: fewer rounds wait longer, and an answer that comes late,
    /// but comes, saves a flight. A round waits for a mean deviation more at most: beyond, little is gained, and what leaves at the last
    /// moment has nothing to spare for a queue.
    fn patient(&self) -> Pace {
        let situation = self.situation;
        let deficit = u16::from(situation.deficit);
        let most = situation.rounds_left.min(ROUNDS as u16);
        let pace = |rounds, wait, value| Pace {
            rounds,
            wait,
            late: 0.0,
            chance: None,
            value,
        };
        let is_short = situation.timing.slack < situation.timing.round_time;
        if most < 2 || is_short || !self.is_patient {
            // Only what is hurried is compared with it.
            let is_compared = situation.may_hurry();
            let value = is_compared.then(|| self.value(most, deficit));
            return pace(most, None, value.unwrap_or(0.0));
        }
        if let Some(wait) = self.wait_out() {
            return pace(most, Some(wait), self.value(most, deficit));
        }
        // Where more answers get lost than come late, it is their repetition that is waited for.
        let is_repeated = situation.answers.lost > LATE_ANSWERS as f32;
        let spare = if is_repeated {
            ANSWERS_APART
        } else {
            LEAST_SPARE
        };
        let most_spare = situation.timing.rtt_deviation.saturating_add(spare);
        let mut best = pace(most, None, f64::INFINITY);
        for rounds in (2..=most).rev() {
            let spare = (situation.timing.slack / u32::from(rounds - 1))
                .saturating_sub(situation.timing.round_time);
            let spare = (spare - spare / 4).min(most_spare);
            let waited = spare.as_secs_f64() / most_spare.as_secs_f64();
            let sent_twice = LATE_ANSWERS * (1.0 - LATE_SAVED * waited) * f64::from(deficit);
            let value = self.value(rounds, deficit) + sent_twice;
            if value < best.value {
                best = pace(
                    rounds,
                    Some(situation.timing.round_time.saturating_add(spare)),
                    value,
                );
            }
            // Fewer rounds wait no longer, and cost no less.
            if spare == most_spare {
                break;
            }
        }
        best
    }

    /// How long to wait after a flight, if three before were in vain and many more fit: the path carries nothing, it seems, and each wait is twice the one
    /// before, as timeouts are (RFC 8961), but that the last rounds are as ever. (With bursts of 50 ms, 1 ms of round trip and 120 ms of time, a packet that
    /// met one was sent 22 times. An answer to anything later ends the wait.)
    fn wait_out(&self) -> Option<Duration> {
        let situation = self.situation;
        let in_vain = situation.answers.silent_flights;
        let doublings = in_vain.saturating_sub(IN_VAIN - 1);
        let before_last = situation.rounds_left.saturating_sub(LAST_ROUNDS);
        if doublings == 0 || before_last == 0 {
            return None;
        }
        let rounds = (1_u32 << doublings.min(16)).min(before_last.into());
        Some(situation.timing.round_time.saturating_mul(rounds))
    }
}
