//! What an acknowledgement tells: packets that arrived, blocks that are complete, messages that have their outcome.

use alloc::vec::Vec;
use core::time::Duration;

use super::arrivals::Stamps;
use super::{Session, Shared};
use crate::message::Fate;
use crate::recovery::{PacketState, SentPacket, SymbolRef};
use crate::stream::{MissReason, Outcome};
use crate::time::Instant;
use crate::wire::Ack;

/// A packet of ours that was acknowledged just now.
struct Arrived {
    number: u64,
    packet: SentPacket,
    /// What it was taken for until now.
    was: PacketState,
    /// How long it took, if a later one had overtaken it.
    took: Option<Duration>,
}

impl Session {
    /// `number` is that of the packet that holds it.
    pub(super) fn handle_ack(
        &mut self,
        now: Instant,
        number: u64,
        ack: &Ack,
        shared: &mut Shared<'_>,
    ) {
        let Some(largest) = ack.ranges.largest() else {
            return;
        };
        let mut numbers = core::mem::take(shared.named);
        let named = self.newly_named(ack, &mut numbers);
        let mut stamps = self.take_stamps(now, number, ack, &named);
        let typical = self.typical(now, &numbers, &stamps);
        self.take_timestamps(now, ack, typical, shared.experience.resumed_at, &mut stamps);
        // One that is named only now came after others that left later.
        let late = (numbers.first()).filter(|first| Some(**first) < self.largest_acked);
        let late_took = late.and_then(|late| Some(now.since(self.sent.get(*late)?.sent_at)));
        let is_largest = Some(largest) > self.largest_acked;
        self.largest_acked = self.largest_acked.max(Some(largest));
        self.received.on_acknowledged(&ack.ranges);
        let mut touched = core::mem::take(shared.touched);
        touched.clear();
        // Oldest first, so that a block sees its symbols in the order in which they were sent.
        let mut seen_to = self.sent.numbers().start;
        let mut named_before = None;
        for &number in &numbers {
            self.break_silence(now, seen_to..number, &mut touched);
            self.note_answered_pair(number, named_before);
            self.on_packet_acked(now, number, &mut stamps, &mut touched, shared);
            named_before = Some(number);
            seen_to = number + 1;
        }
        let is_news = !numbers.is_empty();
        *shared.named = numbers;
        if is_news {
            let was_silent = self.liveness.last_acked + self.path.round_time() * 2 < now;
            self.liveness.last_acked = now;
            if self.liveness.darkness.is_dark(now) {
                self.path.ecn.test_again(now);
            }
            self.liveness.darkness.on_answered();
            let path = &mut self.path;
            path.reordering.on_answered(now, late_took, &path.rtt);
            if was_silent {
                self.resume_after_silence(now);
            }
        }
        let marks = ack.ce_count.saturating_sub(self.path.congestion_marks);
        self.path.ecn.conclude(marks);
        if marks > 0 {
            self.path.congestion_marks = ack.ce_count;
            let sent_at = self.sent.get(largest).map_or(now, |packet| packet.sent_at);
            self.path.congestion.on_congestion(now, sent_at);
        }
        // (It looks at all since the oldest outstanding packet: not for what a peer may say for ever. What has a time at which it is lost has a timer.)
        if is_news || (is_largest && self.liveness.loss_at.is_none()) {
            self.lose_overtaken(now, &mut touched, shared);
        }
        self.settle_flights(now, touched, shared);
        self.forget_settled(now);
        self.confirm_misses(now, shared);
        shared.experience.loss.observe(&mut self.path.level);
    }

    /// It had not been acknowledged before.
    fn on_packet_acked(
        &mut self,
        now: Instant,
        number: u64,
        stamps: &mut Stamps,
        touched: &mut Vec<u64>,
        shared: &mut Shared<'_>,
    ) {
        let Some(was) = self.sent.set_state(now, number, PacketState::Settled) else {
            return;
        };
        let Some(&packet) = self.sent.get(number) else {
            return;
        };
        let took = self.take_overtaken(now, number, packet.sent_at, stamps);
        let arrived = Arrived {
            number,
            packet,
            was,
            took,
        };
        self.learn_of_arrival(now, &arrived);
        if let Some((_, runs)) = self.control.abandon_told.take_if(|told| told.0 == number) {
            for run in self.control.abandoned.drain(..usize::from(runs)) {
                self.traffic
                    .outbox
                    .on_block_acked(run.first + run.count - 1);
            }
        }
        for position in self.sent.symbols_of(number) {
            let symbol = self.sent.symbol(number, position);
            self.on_symbol_acked(now, symbol, &arrived, stamps, touched, shared);
        }
    }

    /// A packet is answered for in time: was the one before it named together with it, or had it been named before?
    fn note_answered_pair(&mut self, number: u64, named_before: Option<u64>) {
        let Some(before) = number.checked_sub(1) else {
            return;
        };
        let (Some(packet), Some(earlier)) = (self.sent.get(number), self.sent.get(before)) else {
            return;
        };
        // (A packet that asked for no answer is named in none.)
        let was_answered = earlier.symbols > 0 && earlier.state == PacketState::Settled;
        if packet.state == PacketState::Outstanding && was_answered {
            let apart = packet.sent_at.since(earlier.sent_at);
            let is_together = named_before == Some(before);
            self.path.feedback.record_pair(apart, is_together);
        }
    }

    /// What an arrival tells of the path.
    fn learn_of_arrival(&mut self, now: Instant, arrived: &Arrived) {
        let &Arrived {
            number,
            ref packet,
            was,
            ..
        } = arrived;
        let sent_at = packet.sent_at;
        let liveness = &mut self.liveness;
        liveness.newest_acked_sent_at = liveness.newest_acked_sent_at.max(sent_at);
        liveness.losses_since.take_if(|since| sent_at >= *since);
        if sent_at < self.path.began {
            // It went another way, and says nothing of this one.
            self.statistics.packets_spurious += u64::from(was != PacketState::Outstanding);
            return;
        }
        self.path.ecn.on_arrived(sent_at);
        self.path.mtu.on_arrived(packet.bytes.into(), sent_at);
        if packet.is_probe {
            self.path.mtu.on_acked(number, now);
            return;
        }
        if matches!(was, PacketState::Outstanding | PacketState::LostInSilence) {
            self.path.record_fate(now, sent_at, false);
            self.note_pairs(number);
        } else {
            self.correct_loss(number, packet.dependence);
        }
        if was == PacketState::Outstanding {
            let bytes = usize::from(packet.bytes);
            self.path.congestion.on_acked(now, sent_at, bytes);
            self.path.feedback.record(false);
            return;
        }
        self.path.congestion.on_spurious_loss(now);
        self.statistics.packets_spurious += 1;
        if was == PacketState::LostByOrder {
            let (after, took) = (now.since(packet.lost_at), now.since(sent_at));
            self.path
                .reordering
                .on_spurious(after, took, &self.path.rtt);
        } else {
            self.path.feedback.record(true);
        }
    }

    fn on_symbol_acked(
        &mut self,
        now: Instant,
        symbol: SymbolRef,
        arrived: &Arrived,
        stamps: &Stamps,
        touched: &mut Vec<u64>,
        shared: &mut Shared<'_>,
    ) {
        let outbox = &mut self.traffic.outbox;
        outbox.on_block_acked(symbol.block);
        let Some(block) = outbox.block_mut(symbol.block) else {
            self.on_symbol_of_missed(now, symbol.block, arrived, stamps, shared);
            return;
        };
        if arrived.number < block.cut_from {
            return;
        }
        let was_outstanding = arrived.was == PacketState::Outstanding;
        block.unaccounted = block.unaccounted.saturating_sub(u16::from(was_outstanding));
        block.symbols.on_acked(symbol.esi);
        block.flight.is_acked |= arrived.number >= block.flight.first_packet;
        let (is_complete, slot) = (block.symbols.is_complete(), block.message);
        let sent_at = arrived.packet.sent_at;
        let may_be_in_time = sent_at + self.path.owd.min();
        let mut missed = None;
        if let Some(message) = outbox.message_mut(slot) {
            if !was_outstanding {
                message.course.chances.on_spurious_loss();
            }
            missed = message
                .deadline
                .filter(|at| may_be_in_time <= *at && *at < now);
        }
        if touched.last() != Some(&symbol.block) {
            touched.push(symbol.block);
        }
        if missed.is_none() && !is_complete {
            return;
        }
        let (arrival, bound) = self.arrival(now, sent_at, arrived.took, stamps);
        if missed.is_some_and(|deadline| deadline < arrival)
            && let Some(message) = self.traffic.outbox.message_mut(slot)
        {
            message.course.chances.on_delayed();
        }
        if is_complete {
            let (arrival, bound) = self.perhaps_before(slot, sent_at, arrival, bound);
            self.finish_block(now, symbol.block, arrival, bound, shared);
        }
    }

    /// A symbol arrived of a block that is over: of one that was missed for losses, it may say that they were none.
    fn on_symbol_of_missed(
        &mut self,
        now: Instant,
        block: u64,
        arrived: &Arrived,
        stamps: &Stamps,
        shared: &mut Shared<'_>,
    ) {
        let Some(deadline) = self.traffic.blame.deadline(block) else {
            return;
        };
        let sent_at = arrived.packet.sent_at;
        let (arrival, _) = self.arrival(now, sent_at, arrived.took, stamps);
        let is_delayed = sent_at + self.path.owd.min() <= deadline && deadline < arrival;
        let was_lost = arrived.was != PacketState::Outstanding;
        let excused = self.traffic.blame.on_symbol(block, was_lost, is_delayed);
        if let Some(excused) = excused {
            self.on_judged(&excused, false, shared);
        }
    }

    /// A block has arrived; its message has when all of its blocks have.
    fn finish_block(
        &mut self,
        now: Instant,
        number: u64,
        arrival: Instant,
        bound: Duration,
        shared: &mut Shared<'_>,
    ) {
        self.unschedule_block(number);
        let Some(block) = self.traffic.outbox.remove_block(number) else {
            return;
        };
        let slot = block.message;
        shared.pool.give(block.symbols.data);
        let large = self.traffic.outbox.with_large(slot, |large| {
            large.on_block_done(number);
            large.is_done()
        });
        let Some(message) = self.traffic.outbox.message_mut(slot) else {
            return;
        };
        if message
            .course
            .arrival
            .is_none_or(|(latest, _)| latest < arrival)
        {
            message.course.arrival = Some((arrival, bound));
        }
        if large != Some(false) {
            self.finish_message(now, slot, shared);
            self.after_outcome(now, shared);
        }
    }

    fn finish_message(&mut self, now: Instant, slot: u32, shared: &mut Shared<'_>) {
        let why = self.miss_reason(now, slot);
        let Some(message) = self.traffic.outbox.remove_message(slot) else {
            return;
        };
        let (arrival, bound) = message.course.arrival.unwrap_or((now, Duration::ZERO));
        let latency = arrival.since(message.accepted_at);
        let outcome = match message.deadline {
            Some(deadline) if arrival > deadline => {
                // It came although nothing came back for a while: the delay, or the loss of what came back, was to blame.
                let why = if why == MissReason::PathDown {
                    MissReason::Loss
                } else {
                    why
                };
                self.statistics.messages_late += 1;
                Outcome::Late {
                    latency,
                    bound,
                    by: arrival.since(deadline),
                    why,
                }
            }
            _ => {
                self.statistics.messages_on_time += u64::from(message.fate != Fate::Void);
                Outcome::OnTime { latency, bound }
            }
        };
        if let Some(sequence) = message.sequence {
            self.traffic
                .streams
                .on_place_resolved(message.stream, sequence);
        }
        self.resolve(slot, &message, outcome, shared);
    }
}
