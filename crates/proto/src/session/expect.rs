//! What is to be expected of a message before it is sent: whether it keeps its deadline, and at what cost.

use core::time::Duration;

use punctual_policy::{Answers, Burst, Policy, Situation, expected_cost, predict_miss};

use super::{Session, Shared};

/// Rounds that a prediction looks ahead; what later rounds could still save is not counted.
const PREDICTED_ROUNDS: usize = 16;
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
    /// Probability of a miss and expected symbols of a block.
    pub(super) fn predict_block(
        &self,
        situation: &Situation,
        miss_target: f32,
        shared: &Shared<'_>,
    ) -> (f64, f64) {
        let policy = shared.config.policies.policy(miss_target);
        if situation.rounds_left == 0 {
            let loss = self.expected_loss(situation).min(0.99);
            return (1.0, f64::from(situation.deficit) / (1.0 - loss));
        }
        let (miss, loss, later) = self.expected_miss(situation, policy);
        (miss, expected_cost(policy, situation, loss, &later))
    }

    /// Probability of a miss of one block, with the loss and the shares in time that it was reckoned with.
    fn expected_miss(
        &self,
        situation: &Situation,
        policy: &dyn Policy,
    ) -> (f64, f64, [f64; PREDICTED_ROUNDS]) {
        let loss = self.expected_loss(situation);
        let (first, later) = self.on_time_by_round(situation, policy);
        let miss = 1.0 - first * (1.0 - late_by_loss(policy, situation, loss, &later));
        (miss, loss, later)
    }

    /// The prediction made last, if it was for the same.
    pub(super) fn remembered_miss(&self, key: &PredictionKey) -> Option<f64> {
        let (last, miss) = self.traffic.prediction.as_ref()?;
        (last == key).then_some(*miss)
    }

    /// Probability of a miss of one block, remembered as the one for `key`.
    pub(super) fn predict_miss(
        &mut self,
        key: PredictionKey,
        situation: &Situation,
        policy: &dyn Policy,
    ) -> f64 {
        let (miss, ..) = self.expected_miss(situation, policy);
        self.traffic.prediction = Some((key, miss));
        miss
    }

    /// With what a prediction reckons: with a price, as the policy does, the present loss.
    fn expected_loss(&self, situation: &Situation) -> f64 {
        match situation.price {
            Some(_) => f64::from(situation.loss_mean),
            None => self.path.loss.mean(),
        }
    }

    /// What a prediction for a block with this first situation is made for.
    pub(super) fn prediction_key(&self, first: &Situation, policy: &dyn Policy) -> PredictionKey {
        // A new look at every packet of a young session, and at every 32nd later: what has been seen of the path then changes
        // little from one to the next. A change of the loss shows in the key itself.
        let acked = self.largest_acked.unwrap_or(0);
        let loss = [self.path.loss.upper_bound(), self.path.level.mean()];
        let action = policy.decide(first);
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

    /// Probability that the first flight comes in time, loss aside; and that a symbol of each round does, given that.
    ///
    /// The symbols of a flight share the delay of their moment: when it is too long for one, it is for all, and no redundancy
    /// helps. What a later round adds to that is counted symbol by symbol.
    fn on_time_by_round(
        &self,
        situation: &Situation,
        policy: &dyn Policy,
    ) -> (f64, [f64; PREDICTED_ROUNDS]) {
        let first = self.path.on_time(situation.timing.time_left);
        let mut later = [1.0; PREDICTED_ROUNDS];
        let (mut rounds, mut lasts) = (situation.rounds_left, self.path.rtt.smoothed());
        if situation.may_hurry() {
            let wait = policy.decide(situation).look_again;
            if let Some(wait) = wait.filter(|wait| *wait < situation.timing.round_time) {
                (rounds, lasts) = (PREDICTED_ROUNDS as u16, lasts.max(wait));
            }
        }
        let rounds = usize::from(rounds).min(PREDICTED_ROUNDS);
        for (round, share) in later.iter_mut().enumerate().take(rounds).skip(1) {
            // A later round begins when feedback is back, mostly; at the latest when the round time is over.
            let begins = lasts.saturating_mul(round as u32);
            let in_time = self
                .path
                .on_time(situation.timing.time_left.saturating_sub(begins));
            *share = (in_time / first.max(1e-9)).min(1.0);
        }
        (first, later)
    }
}

/// Probability that a block is late although its first flight would have been in time: by losses, or in a later round by the delay.
///
/// Its rounds are followed as if losses were independent and all answers came; what bursts and lost answers change about that is what they
/// change at the same price (an approximation: neither is followed through a varying delay).
fn late_by_loss(policy: &dyn Policy, situation: &Situation, loss: f64, on_time: &[f64]) -> f64 {
    let plain = Situation {
        burst: Burst::default(),
        answers: Answers {
            lost: 0.0,
            ..situation.answers
        },
        ..*situation
    };
    let independent = predict_miss(policy, &plain, loss, on_time);
    let miss = |situation| policy.miss_at_price(situation).map(f64::from);
    let change = miss(situation).zip(miss(&plain));
    let change = change.map_or(0.0, |(miss, plain)| miss - plain);
    (independent + change).clamp(0.0, 1.0)
}
