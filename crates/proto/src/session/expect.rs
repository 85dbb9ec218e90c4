//! What is to be expected of a message before it is sent: whether it keeps its deadline, and at what cost.

use core::time::Duration;

use punctual_policy::{Action, Answers, Burst, Policy, Prediction, Situation, follow};

use super::Session;
use crate::time::Instant;

/// With so many rounds or more a prediction is the same: what eight rounds lose is below all targets.
const ROUNDS_ALIKE: u16 = 8;

/// What a prediction was made for. Messages of one kind follow each other, and a prediction costs more than all else that is
/// done for a message.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct PredictionKey {
    /// Where the policy lies in memory; it stays there.
    policy: usize,
    source_symbols: u8,
    rounds: u16,
    time_left: Duration,
    /// What is sent at first: at a price where one message gets a copy and the next none, they miss as differently.
    symbols: u16,
    is_hurried: bool,
    /// The bound and the present loss, to about an eighth of an octave.
    loss: [u32; 2],
    price: Option<u8>,
    acked: u64,
}

impl Session {
    /// Probability of a miss and expected symbols of a block, which begins with this action.
    pub(super) fn predict_block(
        &self,
        now: Instant,
        situation: &Situation,
        policy: &dyn Policy,
        action: Action,
    ) -> Prediction {
        let loss = self.expected_loss(situation);
        if situation.rounds_left == 0 {
            return Prediction {
                miss: 1.0,
                symbols: f64::from(situation.deficit) / (1.0 - loss.min(0.99)),
            };
        }
        // Its rounds are followed as if losses were independent and all answers came; what bursts and lost answers change about that is what they
        // change at the same price (an approximation: neither is followed through a varying delay).
        let wait = action.look_again.unwrap_or_default();
        let plain = Situation {
            hurries: situation.hurries.answered(wait),
            burst: Burst::default(),
            answers: Answers {
                lost: 0.0,
                ..situation.answers
            },
            ..*situation
        };
        let in_time = self.path.on_time(situation.timing.time_left);
        let independent = self.follow_rounds(now, &plain, policy, loss, in_time);
        let miss_at_price = |situation| policy.miss_at_price(situation).map(f64::from);
        let change = miss_at_price(situation).zip(miss_at_price(&plain));
        let change = change.map_or(0.0, |(miss, plain)| miss - plain);
        let late = (independent.miss + change).clamp(0.0, 1.0);
        // The symbols of a flight share the delay of their moment: when it is too long for one, it is for all, and no redundancy helps.
        Prediction {
            miss: 1.0 - in_time * (1.0 - late),
            ..independent
        }
    }

    /// What comes of a block whose first flight is in time so likely, given that it is: followed through rounds that begin when it is known what the one
    /// before has lost.
    fn follow_rounds(
        &self,
        now: Instant,
        first: &Situation,
        policy: &dyn Policy,
        loss: f64,
        in_time: f64,
    ) -> Prediction {
        let follow_if = |answered: Duration| {
            follow(policy, first, loss, 1.0, |round, wait| {
                // A symbol that is missing alone is that of which nothing arrived, and no answer comes.
                let is_answered = round.deficit > 1;
                let wait = if is_answered {
                    wait.min(answered)
                } else {
                    wait
                };
                let time_left = round.timing.time_left.saturating_sub(wait);
                let rounds = self.path.rounds_within(time_left, self.clock_margin(now));
                // What a later round adds is counted symbol by symbol.
                let later = self.path.on_time(time_left) / in_time.max(1e-9);
                (self.with_time(now, *round, time_left, rounds), later)
            })
        };
        // Nothing overtakes what was lost last in its flight.
        let flight = f64::from(policy.decide(first).symbols.max(1));
        let last = if first.deficit > 1 { 1.0 / flight } else { 1.0 };
        let answered = self.path.losses_known_after();
        let each = (1.0 - last) / answered.len() as f64;
        let mut mean = Prediction {
            miss: 0.0,
            symbols: 0.0,
        };
        let ways = [(Duration::MAX, last)].into_iter();
        for (answered, share) in ways.chain(answered.map(|after| (after, each))) {
            if share > 0.0 {
                let one = follow_if(answered);
                mean.miss += share * one.miss;
                mean.symbols += share * one.symbols;
            }
        }
        mean
    }

    /// The prediction made last, if it was for the same.
    pub(super) fn remembered_miss(&self, key: &PredictionKey) -> Option<f64> {
        let (last, miss) = self.traffic.prediction.as_ref()?;
        (last == key).then_some(*miss)
    }

    /// Remembers the probability of a miss of one block as the one for `key`.
    pub(super) fn remember_miss(&mut self, key: PredictionKey, miss: f64) {
        self.traffic.prediction = Some((key, miss));
    }

    /// With what a prediction reckons: with a price, as the policy does, the present loss.
    fn expected_loss(&self, situation: &Situation) -> f64 {
        match situation.price {
            Some(_) => f64::from(situation.loss_mean),
            None => self.path.loss.mean(),
        }
    }

    /// What a prediction for a block with this first situation and action is made for.
    pub(super) fn prediction_key(
        &self,
        first: &Situation,
        policy: &dyn Policy,
        action: Action,
    ) -> PredictionKey {
        // A new look at every packet of a young session, and at every 32nd later: what has been seen of the path then changes
        // little from one to the next. A change of the loss shows in the key itself.
        let acked = self.largest_acked.unwrap_or(0);
        let loss = [self.path.loss.upper_bound(), self.path.level.mean()];
        let timing = first.timing;
        PredictionKey {
            policy: core::ptr::from_ref(policy).cast::<()>() as usize,
            source_symbols: first.source_symbols,
            rounds: first.rounds_left.min(ROUNDS_ALIKE),
            time_left: timing.time_left,
            symbols: action.symbols,
            is_hurried: action
                .look_again
                .is_some_and(|wait| wait < timing.round_time),
            loss: loss.map(|loss| loss.to_bits() >> 20),
            // To half an octave.
            price: first.price.map(|price| (2.0 * price.log2()) as u8),
            acked: if acked < 256 { acked } else { acked | 31 },
        }
    }
}
