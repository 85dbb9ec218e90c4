//! The rounds of a block: when one begins the policy says how many symbols go; it ends when all of them are accounted for, or
//! when the round time is over (DESIGN section 5; decision 0001 for what happens at the start and after the deadline).

use core::cmp::Reverse;
use core::time::Duration;

use punctual_policy::{Action, Policy, Situation, expected_cost, predict_miss};

use super::{Event, Session, Shared};
use crate::limits::BACKOFF_MAX;
use crate::message::Block;
use crate::schedule::NO_DEADLINE;
use crate::stream::{MissReason, Outcome, WhenLate};
use crate::time::Instant;

/// Rounds that a prediction looks ahead; what later rounds could still save is not counted.
const PREDICTED_ROUNDS: usize = 16;
/// With so many rounds or more a prediction is the same: what eight rounds lose is below all targets.
const ROUNDS_ALIKE: u16 = 8;
/// Symbols of one flight, whatever a policy asks for.
const FLIGHT_MAX: u16 = 255;

/// What a prediction was made for. Messages of one kind follow each other, and a prediction costs more than all else that is
/// done for a message.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct PredictionKey {
    /// Where the policy lies in memory; it stays there.
    policy: usize,
    source_symbols: u8,
    rounds: (u16, u16),
    time_left: Duration,
    /// The bound and the mean, to about an eighth of an octave.
    loss: (u32, u32),
    acked: u64,
}

impl Session {
    /// Begins a round of block `number`: asks the policy and queues what it says.
    pub(super) fn begin_round(&mut self, now: Instant, number: u64, shared: &mut Shared<'_>) {
        if let Some((deadline, rounds_left, symbols)) = self.decide(now, number, shared) {
            self.begin_flight(now, number, deadline, rounds_left, symbols);
        }
    }

    /// The block's deadline, the rounds left before it, and the symbols to send now.
    fn decide(
        &mut self,
        now: Instant,
        number: u64,
        shared: &Shared<'_>,
    ) -> Option<(Option<Instant>, u16, u16)> {
        let round_time = self.path.round_time();
        let residual = self.clock.residual(now).unwrap_or_default();
        let loss = self.path.loss.upper_bound();
        let block = self.traffic.outbox.block(number)?;
        let message = self.traffic.outbox.message(block.message)?;
        let (deadline, options) = (message.deadline, message.options);
        let time_left = deadline.map_or(Duration::MAX, |deadline| deadline.since(now));
        let rounds_left = if deadline.is_some() {
            self.path.rounds_within(time_left, residual)
        } else {
            0
        };
        let is_first = block.sent == 0;
        let action = if rounds_left == 0 {
            // No deadline, or none that can be kept: nothing to buy with redundancy.
            Action::burst(u16::from(block.deficit()))
        } else {
            let situation = Situation {
                source_symbols: block.source_symbols,
                deficit: block.deficit(),
                unaccounted: block.unaccounted,
                sent: block.sent,
                rounds_left,
                rounds_planned: block.rounds_planned,
                loss,
                draw: draw(message.id.0),
                time_left,
                round_time,
            };
            let policy = shared.config.policies.policy(options.miss_target());
            if is_first {
                self.predict_message(&situation, policy, block.message);
            }
            policy.decide(&situation)
        };
        if rounds_left == 0 && is_first && deadline.is_some() {
            self.predict_late(number);
        }
        Some((deadline, rounds_left, action.symbols.min(FLIGHT_MAX)))
    }

    fn begin_flight(
        &mut self,
        now: Instant,
        number: u64,
        deadline: Option<Instant>,
        rounds_left: u16,
        symbols: u16,
    ) {
        let round_time = self.path.round_time();
        let last_acked = self.liveness.last_acked;
        let flight_from = self.sent.next_number();
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        let was_queued = block.to_send > 0;
        block.to_send = symbols;
        block.flight_from = flight_from;
        block.flight_acked_to = flight_from;
        block.flight_acked = false;
        block.reordering_ends = None;
        // Inside the deadline there is no backoff. After it (or without one) each round that nobody answered doubles the next.
        let was_silent = block.sent > 0 && last_acked < block.flight_began;
        block.backoff = if rounds_left == 0 && was_silent {
            (block.backoff + 1).min(16)
        } else {
            0
        };
        block.flight_began = now;
        block.round_ends = None;
        if block.to_send == 0 {
            // The policy gives the deadline up. Delivery goes on after it.
            block.round_ends = deadline.map(|deadline| deadline.max(now + round_time));
        }
        let is_queued = block.to_send > 0;
        let order = deadline.unwrap_or(NO_DEADLINE);
        match (was_queued, is_queued) {
            (false, true) => self.traffic.schedule.push(order, number),
            (true, false) => self.traffic.schedule.remove(order, number),
            _ => {}
        }
        self.arm(number);
    }

    /// When the round of a block ends whose last symbol leaves now.
    pub(super) fn round_end(&self, now: Instant, backoff: u8) -> Instant {
        let round_time = self.path.round_time();
        now + round_time
            .saturating_mul(1 << backoff.min(16))
            .min(BACKOFF_MAX.max(round_time))
    }

    /// Sees to it that the session wakes when the block is due.
    pub(super) fn arm(&mut self, number: u64) {
        self.arm_not_before(number, Instant::ZERO);
    }

    /// The same, but not before `earliest`: whatever a block's state says, its timer cannot spin.
    pub(super) fn arm_not_before(&mut self, number: u64, earliest: Instant) {
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        let Some(due) = block.due().map(|due| due.max(earliest)) else {
            return;
        };
        if block.armed.is_none_or(|armed| due < armed) {
            block.armed = Some(due);
            self.traffic.timers.push(Reverse((due, number)));
        }
    }

    /// Something of the block was acknowledged, or taken for lost: is its flight settled?
    pub(super) fn settle_flight(&mut self, now: Instant, number: u64, shared: &mut Shared<'_>) {
        self.lose_overtaken(now, number);
        let Some(block) = self.traffic.outbox.block(number) else {
            return;
        };
        if !block.is_round_over() || block.is_complete() {
            return;
        }
        self.end_round(now, number, shared);
    }

    /// Takes the symbols for lost that a later one of their flight has overtaken.
    fn lose_overtaken(&mut self, now: Instant, number: u64) {
        let allowance = self.path.reordering.allowance();
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        let (from, to) = (block.flight_from, block.flight_acked_to);
        if from >= to || block.unaccounted == 0 {
            block.reordering_ends = None;
            return;
        }
        if !allowance.is_zero() {
            let ends = *block.reordering_ends.get_or_insert(now + allowance);
            if now < ends {
                self.arm(number);
                return;
            }
        }
        block.reordering_ends = None;
        block.flight_from = to;
        for packet in from..to {
            if self.holds_symbol_of(packet, number) {
                self.lose_packet(now, packet, crate::recovery::PacketState::LostByOrder);
            }
        }
    }

    /// The round time is over: what is unaccounted for is lost.
    pub(super) fn expire_round(&mut self, now: Instant, number: u64, shared: &mut Shared<'_>) {
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        block.round_ends = None;
        let from = block.flight_from;
        for packet in from..self.sent.next_number() {
            if self.holds_symbol_of(packet, number) {
                self.lose_packet(now, packet, crate::recovery::PacketState::LostByTime);
            }
        }
        self.end_round(now, number, shared);
    }

    /// The path answers again: what waited out a backoff goes on at once.
    pub(super) fn resume_after_silence(&mut self, now: Instant) {
        let mut number = self.traffic.outbox.oldest_block();
        while number < self.traffic.outbox.next_block() {
            if let Some(block) = self
                .traffic
                .outbox
                .block_mut(number)
                .filter(|block| block.backoff > 0)
            {
                block.backoff = 0;
                block.round_ends = block.round_ends.map(|_| now);
                self.arm(number);
            }
            number += 1;
        }
    }

    fn end_round(&mut self, now: Instant, number: u64, shared: &mut Shared<'_>) {
        let Some(block) = self.traffic.outbox.block(number) else {
            return;
        };
        if block.sent > 0 {
            let size = block.symbol_len() + crate::wire::SYMBOL_HEADER + crate::wire::TAG_LEN + 7;
            if block.flight_acked {
                self.path.mtu.on_flight_seen();
                self.path.reordering.on_orderly_flight();
            } else {
                self.path.mtu.on_flight_lost(size, now);
            }
        }
        self.begin_round(now, number, shared);
    }

    /// A message's own time is over, and it was not to be delivered late.
    pub(super) fn drop_late(&mut self, now: Instant, slot: u32, shared: &mut Shared<'_>) {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return;
        };
        debug_assert_eq!(
            message.options.when_late,
            WhenLate::Drop,
            "only these have a time to be dropped at"
        );
        let why = self.miss_reason(now, slot);
        self.give_up_message(slot, Outcome::Dropped { why }, shared);
        self.after_outcome(now, shared);
    }

    /// Takes a message out without its delivery having been seen; the peer is told not to wait.
    pub(super) fn give_up_message(&mut self, slot: u32, outcome: Outcome, shared: &mut Shared<'_>) {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return;
        };
        let (first, count) = (message.first_block, u64::from(message.blocks));
        let order = message.deadline.unwrap_or(NO_DEADLINE);
        let mut was_sent = false;
        for number in first..first + count {
            self.traffic.schedule.remove(order, number);
            if let Some(block) = self.traffic.outbox.remove_block(number) {
                was_sent |= block.sent > 0;
                shared.pool.give(block.data);
            }
        }
        if was_sent {
            self.abandon(first, count);
        }
        let Some(message) = self.traffic.outbox.remove_message(slot) else {
            return;
        };
        self.statistics.messages_dropped += 1;
        self.push_event(Event::Outcome {
            message: message.id,
            outcome,
        });
    }

    fn abandon(&mut self, first: u64, count: u64) {
        let waiting = &mut self.control.abandoned;
        let len = waiting.len();
        // The run that is being told is not changed under way.
        let is_fixed = self
            .control
            .abandon_told
            .is_some_and(|told| usize::from(told.1) == len);
        match waiting.back_mut() {
            Some(last) if last.0 + last.1 == first && !is_fixed => last.1 += count,
            _ if len < crate::limits::ABANDON_MAX => waiting.push_back((first, count)),
            // Untold, they only take room at the peer until its window has passed them.
            _ => {}
        }
    }

    /// After outcomes: tells that there is room, and ends a session that waited for the last one.
    pub(super) fn after_outcome(&mut self, now: Instant, shared: &mut Shared<'_>) {
        let outbox = &self.traffic.outbox;
        if outbox.is_empty() {
            self.traffic.timers.clear();
        }
        if self.traffic.was_full && outbox.held_bytes() * 2 < crate::limits::SEND_QUEUE_MAX {
            self.traffic.was_full = false;
            self.push_event(Event::Writable);
        }
        self.close_when_finished(now, shared);
    }

    /// Why a message missed its deadline, or is about to.
    pub(super) fn miss_reason(&self, now: Instant, slot: u32) -> MissReason {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return MissReason::Closed;
        };
        let least = self.path.owd.min();
        let Some(first_sent_at) = message.first_sent_at else {
            return MissReason::Queue;
        };
        let deadline = message.deadline.unwrap_or(now);
        if first_sent_at + least > deadline && message.accepted_at + least <= deadline {
            return MissReason::Queue;
        }
        if self.liveness.last_acked < first_sent_at && message.lost_symbols > 0 {
            return MissReason::PathDown;
        }
        if message.lost_symbols > 0 {
            MissReason::Loss
        } else {
            MissReason::Delay
        }
    }

    /// Probability of a miss and expected symbols of a block.
    pub(super) fn predict_block(
        &self,
        situation: &Situation,
        miss_target: f32,
        shared: &Shared<'_>,
    ) -> (f64, f64) {
        let policy = shared.config.policies.policy(miss_target);
        let loss = self.path.loss.mean();
        if situation.rounds_left == 0 {
            return (1.0, f64::from(situation.deficit) / (1.0 - loss.min(0.99)));
        }
        let (first, later) = self.on_time_by_round(situation);
        let miss = 1.0 - first * (1.0 - predict_miss(policy, situation, loss, &later));
        (miss, expected_cost(policy, situation, loss, &later))
    }

    fn predict_message(&mut self, situation: &Situation, policy: &dyn Policy, slot: u32) {
        let key = self.prediction_key(situation, policy);
        let miss = match self.traffic.prediction.filter(|(last, _)| *last == key) {
            Some((_, miss)) => miss,
            None => {
                let (first, later) = self.on_time_by_round(situation);
                let miss = 1.0
                    - first
                        * (1.0 - predict_miss(policy, situation, self.path.loss.mean(), &later));
                self.traffic.prediction = Some((key, miss));
                miss
            }
        };
        if let Some(message) = self.traffic.outbox.message_mut(slot) {
            message.predicted_on_time *= 1.0 - miss;
        }
    }

    fn prediction_key(&self, situation: &Situation, policy: &dyn Policy) -> PredictionKey {
        // A new look at every packet of a young session, and at every 32nd later: what has been seen of the path then changes
        // little from one to the next. A change of the loss shows in the key itself.
        let acked = self.largest_acked.unwrap_or(0);
        PredictionKey {
            policy: core::ptr::from_ref(policy).cast::<()>() as usize,
            source_symbols: situation.source_symbols,
            rounds: (
                situation.rounds_left.min(ROUNDS_ALIKE),
                situation.rounds_planned.min(ROUNDS_ALIKE),
            ),
            time_left: situation.time_left,
            loss: (
                situation.loss.to_bits() >> 20,
                (self.path.loss.mean() as f32).to_bits() >> 20,
            ),
            acked: if acked < 256 { acked } else { acked | 31 },
        }
    }

    fn predict_late(&mut self, number: u64) {
        let slot = self.traffic.outbox.block(number).map(|block| block.message);
        if let Some(message) = slot.and_then(|slot| self.traffic.outbox.message_mut(slot)) {
            message.predicted_on_time = 0.0;
        }
    }

    /// Probability that the first flight comes in time, loss aside; and that a symbol of each round does, given that.
    ///
    /// The symbols of a flight share the delay of their moment: when it is too long for one, it is for all, and no redundancy
    /// helps. What a later round adds to that is counted symbol by symbol.
    fn on_time_by_round(&self, situation: &Situation) -> (f64, [f64; PREDICTED_ROUNDS]) {
        let first = self.path.on_time(situation.time_left);
        let mut later = [1.0; PREDICTED_ROUNDS];
        let rounds = usize::from(situation.rounds_left).min(PREDICTED_ROUNDS);
        for (round, share) in later.iter_mut().enumerate().take(rounds).skip(1) {
            // A later round begins when feedback is back, mostly; at the latest when the round time is over.
            let begins = self.path.rtt.smoothed().saturating_mul(round as u32);
            let in_time = self
                .path
                .on_time(situation.time_left.saturating_sub(begins));
            *share = (in_time / first.max(1e-9)).min(1.0);
        }
        (first, later)
    }

    /// Adds what was predicted of a message to the statistics.
    pub(super) fn note_prediction(&mut self, slot: u32) {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return;
        };
        if message.deadline.is_some() {
            self.statistics.messages_promised += 1;
            self.statistics.predicted_misses += 1.0 - message.predicted_on_time;
        }
    }

    /// Whether packet `number` is under way and holds a symbol of `block`.
    fn holds_symbol_of(&self, number: u64, block: u64) -> bool {
        self.sent
            .get(number)
            .is_some_and(|packet| packet.state == crate::recovery::PacketState::Outstanding)
            && self
                .sent
                .symbols_of(number)
                .any(|position| self.sent.symbol(number, position).block == block)
    }
}

/// A number for mixed policies: uniform over messages, the same for a message whatever else happens (splitmix64).
const fn draw(message: u64) -> u32 {
    let mut z = message.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 32) as u32
}

/// The block, when it is still there and has symbols to send.
pub(super) fn sendable(block: Option<&Block>) -> Option<&Block> {
    block.filter(|block| block.to_send > 0)
}
