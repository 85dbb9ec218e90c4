//! Rounds that end in silence: neither what left in them was answered for, nor anything after it (docs/notes/redundancy.md#silence).

use core::time::Duration;

use punctual_policy::only_answers_missing;

use super::Session;
use crate::message::Silence;
use crate::time::Instant;

impl Session {
    /// Whether a block that is not repaired waits for another round time, or does already: where nothing later has been answered for it may be the answers that are lost, and
    /// the next ones name what has arrived.
    pub(super) fn waits_for_answers(&mut self, now: Instant, number: u64) -> bool {
        if !self.may_complete(number) {
            return false;
        }
        let round_time = self.path.round_time();
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return false;
        };
        if core::mem::replace(&mut block.silence.was_waited_for, true) {
            return block.flight.round_ends.is_some_and(|ends| ends > now);
        }
        block.flight.round_ends = Some(now + round_time);
        self.arm(number);
        true
    }

    /// Probability that the answers for `silent` packets, last sent `age` ago, are late or lost, and not the packets. All of them left in one
    /// flight from packet `from` on, if it is given: where that would have been answered for together with the one before, it is lost. `outage` is the probability
    /// that the path carried nothing for once, whatever is known of its losses.
    pub(super) fn chance_of_silence(
        &self,
        age: Duration,
        silent: u16,
        from: Option<u64>,
        outage: f64,
    ) -> f64 {
        if silent == 0 {
            return 0.0;
        }
        let apart = from.and_then(|from| self.left_after_answered(from));
        let separate = apart.map_or(1.0, |apart| self.path.feedback.separate(apart));
        let missing = separate * self.path.feedback_missing(age);
        let lost = self.path.bursts.all_lost(silent, self.path.level.mean());
        let lost = lost + (1.0 - lost) * outage;
        only_answers_missing(missing, lost)
    }

    /// How long before packet `number` the newest left that was answered for.
    fn left_after_answered(&self, number: u64) -> Option<Duration> {
        let answered = self.largest_acked.filter(|acked| *acked < number)?;
        let sent_at = |number| Some(self.sent.get(number)?.sent_at);
        Some(sent_at(number)?.since(sent_at(answered)?))
    }

    /// A round ended of whose flight, from packet `from` on, so many symbols are neither answered for nor anything after them; `in_vain` if it waited as long as answers take.
    pub(super) fn note_silence(&mut self, number: u64, silent: u16, from: u64, in_vain: bool) {
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        if self.largest_acked >= Some(block.silence.first_packet) {
            block.silence = Silence::NONE;
        }
        if silent == 0 {
            return;
        }
        block.silence.since = block.flight.began;
        block.silence.flights = block.silence.flights.saturating_add(in_vain.into());
        block.silence.symbols = block.silence.symbols.saturating_add(silent);
        block.silence.first_packet = block.silence.first_packet.min(from);
    }

    /// The same of a block of which nothing is under way since it left in packets together with one that has just ended its round: its own is over as well, or ends without anything to find. (Only those that ended theirs by themselves knew of a
    /// silence: the others of a packet sent again in each round.)
    pub(super) fn note_silence_beside(&mut self, number: u64) {
        let Some(block) = self.traffic.outbox.block(number) else {
            return;
        };
        if !block.is_all_accounted_for() || block.symbols.is_complete() {
            return;
        }
        let unanswered = self.largest_acked.map_or(0, |largest| largest + 1);
        let from = block.flight.first_packet.max(unanswered);
        let silent = (from..block.flight.last_packet.saturating_add(1))
            .filter(|packet| self.held_symbol_of(*packet, number))
            .count() as u16;
        self.note_silence(number, silent, from, true);
    }

    /// The path answers again: what waited out a backoff goes on at once, but for what left so recently that its own answer may still come.
    pub(super) fn resume_after_silence(&mut self, now: Instant) {
        let round_time = self.path.round_time();
        let mut number = self.traffic.outbox.oldest_block();
        while number < self.traffic.outbox.next_block() {
            if let Some(block) = self
                .traffic
                .outbox
                .block_mut(number)
                .filter(|block| block.flight.waits())
            {
                block.flight.wait_no_longer();
                let answered_by = now.max(block.flight.began + round_time);
                block.flight.round_ends =
                    (block.flight.round_ends).map(|ends| ends.min(answered_by));
                self.arm(number);
            }
            number += 1;
        }
    }
}
