//! What a miss is worth to the messages of a stream: found when one is sent, moved by what comes of it (decision 0012).

use punctual_policy::{Policy, Price, Situation, Steering};

use super::blame::Blamed;
use super::{Session, Shared};
use crate::message::OutgoingMessage;
use crate::stream::{MissReason, Outcome, PromiseGroup, StreamId};
use crate::time::Instant;

/// Messages over which it is learned whether they are held back.
const HELD_MESSAGES: f32 = 16.0;
/// One of them by itself changes nothing: the price is found without regard to it, and would be missed by.
const HELD_ALONE: f32 = 1.0 / HELD_MESSAGES;
/// Octaves that a miss is worth less where every message is held back.
const HELD_OCTAVES: f32 = 12.0;

impl Session {
    /// A message's first block is about to be sent: its price is found, and moves.
    pub(super) fn steer(
        &mut self,
        stream: StreamId,
        miss_target: f32,
        policy: &dyn Policy,
        first: &Situation,
        shared: &mut Shared<'_>,
    ) {
        let doubt = self
            .path
            .level
            .doubt(miss_target, first.rounds_left, first.source_symbols);
        self.each_steering(stream, miss_target, shared, |steering, target| {
            steering.on_message(policy, first, target, doubt);
        });
    }

    /// What a miss is worth to a stream's messages with this target.
    pub(super) fn price(
        &self,
        stream: StreamId,
        miss_target: f32,
        shared: &Shared<'_>,
    ) -> Option<Price> {
        let stream = self.traffic.streams.get(stream)?;
        let own = stream.promises.price(miss_target)?;
        let price = match shared.pooled(stream.config.group) {
            None => own,
            Some(pool) => {
                let all = pool.price(miss_target)?;
                if own > all { own } else { all }
            }
        };
        // Where messages wait for each other, what one gets more than it needs makes others late.
        let held = (self.traffic.held_share - HELD_ALONE).max(0.0);
        let octaves = HELD_OCTAVES * held / (1.0 - HELD_ALONE);
        Some(Price::from_log2(price.log2() - octaves))
    }

    /// A message with a deadline has its outcome: misses that symbols could have prevented move the price.
    pub(super) fn learn_from(
        &mut self,
        message: &OutgoingMessage,
        outcome: &Outcome,
        shared: &mut Shared<'_>,
    ) {
        let is_missed = match outcome {
            Outcome::OnTime { .. } => false,
            Outcome::Late { why, .. } | Outcome::Dropped { why } => {
                *why == MissReason::Loss && !message.course.was_held
            }
            _ if is_lost_in_full(message) => true,
            _ => return,
        };
        let held = f32::from(u8::from(message.course.was_held));
        self.traffic.held_share += (held - self.traffic.held_share) / HELD_MESSAGES;
        let miss_target = message.options.miss_target();
        self.each_steering(message.stream, miss_target, shared, |steering, target| {
            steering.on_outcome(is_missed, target);
        });
        if is_missed {
            self.blame_losses(message, shared);
        }
    }

    /// What a message has missed was counted, and losses are blamed for it. As long as that is not known it counts as much less as such misses of its stream were none, lately.
    fn blame_losses(&mut self, message: &OutgoingMessage, shared: &mut Shared<'_>) {
        let Some(stream) = self.traffic.streams.get(message.stream) else {
            return;
        };
        let counted = 1.0 - stream.surprise.excused_share();
        let Some(blamed) = Blamed::new(message, counted) else {
            return;
        };
        self.correct(&blamed, counted - 1.0, shared);
        if let Some(forgotten) = self.traffic.blame.note(blamed) {
            self.on_judged(&forgotten, true, shared);
        }
    }

    /// It is known now whether losses were to blame for a miss that has moved the price.
    pub(super) fn on_judged(&mut self, blamed: &Blamed, is_missed: bool, shared: &mut Shared<'_>) {
        if let Some(stream) = self.traffic.streams.get_mut(blamed.stream) {
            stream.surprise.on_judged(is_missed);
        }
        let missed = f32::from(u8::from(is_missed));
        self.correct(blamed, missed - blamed.counted, shared);
    }

    /// So much more of a miss was one, or less.
    fn correct(&mut self, blamed: &Blamed, missed: f32, shared: &mut Shared<'_>) {
        self.each_steering(
            blamed.stream,
            blamed.miss_target,
            shared,
            |steering, target| {
                steering.on_correction(missed, target);
            },
        );
    }

    /// Nothing more comes of what was lost so long ago: losses were to blame for the misses of that time.
    pub(super) fn confirm_misses(&mut self, now: Instant, shared: &mut Shared<'_>) {
        if self.traffic.blame.is_empty() {
            return;
        }
        let before = self.lost_before(now);
        while let Some(confirmed) = self.traffic.blame.confirm_before(before) {
            self.on_judged(&confirmed, true, shared);
        }
    }

    /// What steers messages of a stream with this target, each with the target that it holds them to: what the stream shares its promise with, if it does, and
    /// the stream by itself.
    fn each_steering(
        &mut self,
        stream: StreamId,
        miss_target: f32,
        shared: &mut Shared<'_>,
        mut call: impl FnMut(&mut Steering, f32),
    ) {
        let mut own_target = miss_target;
        if let Some(pool) = shared.pooled_mut(self.group_of(stream)) {
            call(pool.steering_mut(miss_target), miss_target);
            own_target = floor_target(miss_target);
        }
        if let Some(stream) = self.traffic.streams.get_mut(stream) {
            call(stream.promises.steering_mut(miss_target), own_target);
        }
    }

    fn group_of(&self, stream: StreamId) -> Option<PromiseGroup> {
        self.traffic.streams.get(stream)?.config.group
    }
}

/// Whether all of a message had left, and it was lost: when it is replaced or taken back then, it has missed what was bought for it, as others are kept by that. (Of what
/// had not left one cannot say. Streams whose messages replace each other within a round trip learned of those alone that arrived, and bought ever less.)
pub(super) fn is_lost_in_full(message: &OutgoingMessage) -> bool {
    message.course.chances.miss_reason() == MissReason::Loss && !message.course.was_held
}

/// What a stream is promised by itself where it shares its promise with others: ten times as many misses, up to half of its messages, but never fewer than it asks for.
fn floor_target(miss_target: f32) -> f32 {
    (10.0 * miss_target).min(0.5).max(miss_target)
}
