//! What following a policy leads to: the probability of a miss and the symbols spent.
//!
//! The policy decides with the upper bound of loss, as the protocol lets it; the world is predicted with the mean. Predicted
//! and achieved agreeing is a tested promise (design, section 2), so nothing is binned here.

use core::time::Duration;

use crate::limits::{ROUNDS_MAX, SOURCE_SYMBOLS_MAX};
use crate::{Deficit, Policy, Situation, chance};

/// What following a policy leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Probability that the block is not rebuilt in time.
    pub miss: f64,
    /// Expected symbols sent in the rounds that are left.
    pub symbols: f64,
}

/// States less likely than this count as missed without being followed: nobody promises 1e-18, and in a block of 64 symbols
/// most states are that unlikely.
const NEGLIGIBLE: f64 = 1e-18;

/// Follows `policy` from `first` through its `rounds_left`.
///
/// Each symbol of the i-th round (from 0) arrives with probability `1 - loss_mean`, and all of its flight are in time with probability
/// `on_time[i]`, since they share the delay of their moment; entries that the slice lacks count as 1. Decisions see `first` with deficit, rounds, sent and time moved on, and all symbols accounted for. For a
/// mixed policy this is the prediction for the message's own draw. What a flight after the last round saves is taken off at the end. Of a policy
/// that counts source symbols, repair symbols of earlier rounds are of no use: a receiver that keeps them does a little better.
#[must_use]
pub fn predict(
    policy: &dyn Policy,
    first: &Situation,
    loss_mean: f64,
    on_time: &[f64],
) -> Prediction {
    let mut in_time = on_time.iter().copied().chain(core::iter::repeat(1.0));
    let mut next_in_time = || in_time.next().unwrap_or(1.0);
    let mut found = follow(policy, first, loss_mean, next_in_time(), |now, wait| {
        (now.after(wait), next_in_time())
    });
    found.miss *= 1.0 - first.saved_at_last();
    found
}

/// [`predict`] where it is known when rounds begin: `next` is told the situation that was likeliest in a round, before its flight, and how long that waits
/// for answers at most; it says what decisions see in the next round, and how likely that is in time, as `in_time` says of the first. (The deficit, the symbols
/// sent and what is unaccounted for are seen to.) It ends where no rounds are left.
#[must_use]
pub fn follow(
    policy: &dyn Policy,
    first: &Situation,
    loss_mean: f64,
    mut in_time: f64,
    mut next: impl FnMut(&Situation, Duration) -> (Situation, f64),
) -> Prediction {
    let arrives = within_bounds(1.0 - loss_mean);
    let mut before = [0.0; SOURCE_SYMBOLS_MAX as usize + 1];
    let mut after = before;
    let deficit_max = usize::from(first.deficit.min(SOURCE_SYMBOLS_MAX));
    before[deficit_max] = 1.0;
    let (mut symbols, mut dropped) = (0.0, 0.0);
    let mut now = *first;
    for _ in 0..ROUNDS_MAX {
        if now.rounds_left == 0 {
            break;
        }
        after[..=deficit_max].fill(0.0);
        in_time = within_bounds(in_time);
        let (mut sent_most, mut likeliest) = (0, (0.0, now, now.timing.round_time));
        for deficit in 1..=deficit_max {
            let probability = before[deficit];
            if probability < NEGLIGIBLE {
                dropped += probability;
                continue;
            }
            now.deficit = deficit as u8;
            let action = policy.decide(&now);
            let flight = action.symbols;
            sent_most = sent_most.max(flight);
            if probability > likeliest.0 {
                let round_time = now.timing.round_time;
                let wait = action.look_again.unwrap_or(round_time).min(round_time);
                likeliest = (probability, now, wait);
            }
            symbols += probability * f64::from(flight);
            after[deficit] += probability * (1.0 - in_time);
            arrivals(policy.counts(), deficit, flight, arrives, |left, chance| {
                after[left] += probability * in_time * chance;
            });
        }
        core::mem::swap(&mut before, &mut after);
        let (probability, before_flight, wait) = likeliest;
        if probability == 0.0 {
            break;
        }
        let sent = now.sent.saturating_add(sent_most);
        (now, in_time) = next(&before_flight, wait);
        now.sent = sent;
        (now.answers.unaccounted, now.answers.missing) = (0, 0.0);
        now.answers.silent_flights = 0;
    }
    let miss: f64 = before[1..=deficit_max].iter().sum();
    Prediction {
        miss: miss + dropped,
        symbols,
    }
}

/// Tells what may still be missing after a flight that is in time, and how likely each is.
fn arrivals(
    counts: Deficit,
    deficit: usize,
    flight: u16,
    arrives: f64,
    mut left: impl FnMut(usize, f64),
) {
    match counts {
        Deficit::Rank => {
            chance::arrivals_below(flight, arrives, deficit as u16, |arrived, chance| {
                left(deficit - usize::from(arrived), chance);
            });
        }
        Deficit::Source => {
            let repair = flight.saturating_sub(deficit as u16);
            chance::source_still_missing(deficit as u8, repair, arrives, |still, chance| {
                left(usize::from(still), chance);
            });
        }
    }
}

/// A probability, whatever it is; 0 if it is no number.
fn within_bounds(probability: f64) -> f64 {
    if probability > 0.0 {
        probability.min(1.0)
    } else {
        0.0
    }
}

/// The probability of [`predict`] that the block is not rebuilt in time.
#[must_use]
pub fn predict_miss(
    policy: &dyn Policy,
    first: &Situation,
    loss_mean: f64,
    on_time: &[f64],
) -> f64 {
    predict(policy, first, loss_mean, on_time).miss
}
