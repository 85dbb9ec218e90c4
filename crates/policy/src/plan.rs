//! What following a policy looks like: its decisions in the order of time, each with the probability that it is taken.

use alloc::vec::Vec;
use core::time::Duration;

use crate::limits::{ROUNDS_MAX, SOURCE_SYMBOLS_MAX};
use crate::{Action, Answers, Burst, Deficit, Hurries, Policy, Situation, chance};

/// One decision of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Which round, from 0.
    pub round: u16,
    /// When, since the first; of several ways that lead here the mean, weighted by their probability.
    pub at: Duration,
    /// Probability that it comes to this.
    pub probability: f64,
    /// What the policy sees.
    pub situation: Situation,
    /// What it answers.
    pub action: Action,
}

/// States less likely than this are left out.
const NEGLIGIBLE: f64 = 1e-9;

/// A round as it is reached with one deficit.
#[derive(Clone, Copy, Default)]
struct Reached {
    probability: f64,
    /// Seconds, times the probability.
    at: f64,
    /// Symbols sent before, times the probability.
    sent: f64,
    /// Rounds left, at most.
    rounds_left: u16,
    /// Flights in a row of which nothing arrived, and whose answers were waited for.
    silent_flights: u16,
}

/// Follows `policy` from `first` through its rounds, if every loss is known when a round ends: by round, then by what is still needed,
/// most first. Symbols sent together share their moment, which takes all of them as often as [`Situation::burst`] says; those that are
/// spread are lost one by one, with probability [`Situation::loss_mean`]. O(rounds x deficit x symbols).
#[must_use]
pub fn plan(policy: &dyn Policy, first: &Situation) -> Vec<Step> {
    const STATES: usize = SOURCE_SYMBOLS_MAX as usize + 1;
    // A later round is reached when something of the one before was lost.
    let after_loss = Burst {
        was_lost: true,
        age: first.timing.round_time,
        ..first.burst
    };
    let mut now = [Reached::default(); STATES];
    let begins = &mut now[usize::from(first.deficit.min(SOURCE_SYMBOLS_MAX))];
    (begins.probability, begins.rounds_left) = (1.0, first.rounds_left);
    begins.silent_flights = first.answers.silent_flights;
    let mut steps = Vec::new();
    for round in 0..ROUNDS_MAX {
        let mut next = [Reached::default(); STATES];
        for deficit in (1..STATES).rev() {
            let reached = now[deficit];
            if reached.probability < NEGLIGIBLE || reached.rounds_left == 0 {
                continue;
            }
            let at = duration(reached.at / reached.probability);
            let sent = libm::round(reached.sent / reached.probability) as u16;
            let situation = Situation {
                deficit: deficit as u8,
                sent: first.sent.saturating_add(sent),
                rounds_left: reached.rounds_left,
                answers: Answers {
                    silent_flights: reached.silent_flights,
                    ..first.answers
                },
                timing: first.timing.after(at),
                burst: if round == 0 { first.burst } else { after_loss },
                hurries: if round == 0 {
                    first.hurries
                } else {
                    Hurries::NONE
                },
                ..*first
            };
            let action = policy.decide(&situation);
            steps.push(Step {
                round,
                at,
                probability: reached.probability,
                situation,
                action,
            });
            let wait = action.look_again.unwrap_or(situation.timing.round_time);
            let ends = at
                .saturating_add(action.leaves_after(action.symbols.saturating_sub(1)))
                .saturating_add(wait);
            let rounds_left = situation.after(ends - at).rounds_left;
            let lead = |left: usize, chance: f64| {
                let part = reached.probability * chance;
                next[left].probability += part;
                next[left].at += part * ends.as_secs_f64();
                next[left].sent += part * f64::from(sent.saturating_add(action.symbols));
                next[left].rounds_left = next[left].rounds_left.max(rounds_left);
                // (Of source symbols as many may be missing when repair symbols have come.)
                if left == deficit && policy.counts() == Deficit::Rank {
                    let in_vain = action.symbols > 0 && wait >= situation.timing.round_time;
                    next[left].silent_flights = reached.silent_flights + u16::from(in_vain);
                }
            };
            leave_missing(policy.counts(), &situation, action, lead);
        }
        now = next;
    }
    steps
}

/// Calls `lead` with what is still missing after a flight, and how likely that is, where something is.
fn leave_missing(
    counts: Deficit,
    situation: &Situation,
    flight: Action,
    mut lead: impl FnMut(usize, f64),
) {
    let deficit = situation.deficit;
    let loss = chance::loss_within_bounds(situation.loss_mean);
    let (bad, lost) = if flight.spacing.is_zero() {
        situation.burst.moments(loss)
    } else {
        (0.0, loss)
    };
    lead(usize::from(deficit), bad);
    let good = 1.0 - bad;
    match counts {
        Deficit::Rank => {
            let below = u16::from(deficit);
            chance::arrivals_below(flight.symbols, 1.0 - lost, below, |arrived, chance| {
                lead(usize::from(below - arrived), good * chance);
            });
        }
        Deficit::Source => {
            let repair = flight.symbols.saturating_sub(u16::from(deficit));
            chance::source_still_missing(deficit, repair, 1.0 - lost, |still, chance| {
                lead(usize::from(still), good * chance);
            });
        }
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fixed, Retransmit, Timing, predict};

    fn first() -> Situation {
        Situation {
            timing: Timing {
                round_time: Duration::from_millis(60),
                slack: Duration::from_millis(150),
                time_left: Duration::from_millis(180),
                ..Timing::default()
            },
            ..Situation::first(4, 3, 0.1)
        }
    }

    #[test]
    fn rounds_follow_each_other_by_the_round_time() {
        let steps = plan(&Retransmit, &first());
        let ms = |step: &Step| step.at.as_millis();
        let of_round = |round| steps.iter().filter(move |step| step.round == round);
        assert_eq!(of_round(0).count(), 1);
        assert_eq!(of_round(1).map(ms).collect::<Vec<_>>(), [60; 4]);
        let some_lost: f64 = of_round(1).map(|step| step.probability).sum();
        let expected = 1.0 - (1.0 - f64::from(0.1_f32)).powi(4);
        assert!((some_lost - expected).abs() < 1e-12);
        let twice = of_round(2).find(|step| step.situation.deficit == 1);
        assert_eq!(
            twice.unwrap().situation.timing.slack,
            Duration::from_millis(30)
        );
    }

    #[test]
    fn bursts_take_all_that_is_sent_together() {
        let bursty = Situation {
            burst: Burst {
                correlation: 1.0,
                lasts: Duration::from_millis(5),
                ..first().burst
            },
            ..first()
        };
        let steps = plan(&Retransmit, &bursty);
        let second: Vec<_> = steps.iter().filter(|step| step.round == 1).collect();
        assert_eq!(second.len(), 1, "all or none");
        assert_eq!(second[0].situation.deficit, 4);
        assert!((second[0].probability - 0.1).abs() < 1e-6);
        assert!(second[0].situation.burst.was_lost);
    }

    #[test]
    fn senseless_situations_do_no_harm() {
        let senseless = Situation {
            timing: Timing {
                round_time: Duration::MAX,
                time_left: Duration::MAX,
                slack: Duration::MAX,
                ..Timing::default()
            },
            sent: u16::MAX,
            loss_mean: f32::NAN,
            ..Situation::first(u8::MAX, u16::MAX, 0.5)
        };
        assert!(!plan(&Retransmit, &senseless).is_empty());
    }

    #[test]
    fn what_is_sent_is_what_is_predicted() {
        let policy = Fixed { repair: 1 };
        let steps = plan(&policy, &first());
        let symbols = |step: &Step| step.probability * f64::from(step.action.symbols);
        let sent: f64 = steps.iter().map(symbols).sum();
        let predicted = predict(&policy, &first(), f64::from(first().loss_mean), &[]).symbols;
        assert!((sent - predicted).abs() < 1e-6, "{sent} {predicted}");
    }
}
