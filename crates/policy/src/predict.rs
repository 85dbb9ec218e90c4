//! What following a policy leads to: the probability of a miss and the symbols spent.
//!
//! The policy decides with the upper bound of loss, as the protocol lets it; the world is predicted with the mean. Predicted
//! and achieved agreeing is a tested promise (design, section 2), so nothing is binned here.

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
    let mut before = [0.0; SOURCE_SYMBOLS_MAX as usize + 1];
    let mut after = before;
    let deficit_max = usize::from(first.deficit.min(SOURCE_SYMBOLS_MAX));
    before[deficit_max] = 1.0;
    let (mut symbols, mut dropped) = (0.0, 0.0);
    let mut now = *first;
    for round in 0..usize::from(ROUNDS_MAX) {
        if now.rounds_left == 0 {
            break;
        }
        let arrives = within_bounds(1.0 - loss_mean);
        let in_time = within_bounds(on_time.get(round).copied().unwrap_or(1.0));
        after[..=deficit_max].fill(0.0);
        let (mut sent_most, mut likeliest, mut wait) = (0, 0.0, now.timing.round_time);
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
            if probability > likeliest {
                likeliest = probability;
                wait = action
                    .look_again
                    .unwrap_or(now.timing.round_time)
                    .min(now.timing.round_time);
            }
            symbols += probability * f64::from(flight);
            after[deficit] += probability * (1.0 - in_time);
            let probability = probability * in_time;
            match policy.counts() {
                Deficit::Rank => {
                    chance::arrivals_below(flight, arrives, deficit as u16, |arrived, chance| {
                        after[deficit - usize::from(arrived)] += probability * chance;
                    });
                }
                Deficit::Source => {
                    let repair = flight.saturating_sub(deficit as u16);
                    chance::source_still_missing(
                        deficit as u8,
                        repair,
                        arrives,
                        |still, chance| {
                            after[usize::from(still)] += probability * chance;
                        },
                    );
                }
            }
        }
        core::mem::swap(&mut before, &mut after);
        (now.answers.unaccounted, now.answers.missing) = (0, 0.0);
        now.sent = now.sent.saturating_add(sent_most);
        now = now.after(wait);
    }
    let miss: f64 = before[1..=deficit_max].iter().sum();
    Prediction {
        miss: (miss + dropped) * (1.0 - first.saved_at_last()),
        symbols,
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

/// The symbols that [`predict`] expects.
#[must_use]
pub fn expected_cost(
    policy: &dyn Policy,
    first: &Situation,
    loss_mean: f64,
    on_time: &[f64],
) -> f64 {
    predict(policy, first, loss_mean, on_time).symbols
}
