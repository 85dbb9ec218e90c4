//! What an acknowledgement tells: packets that arrived, blocks that are complete, messages that have their outcome.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Session, Shared};
use crate::clock::Exchange;
use crate::limits::ACK_RANGES_REPEATED;
use crate::message::Fate;
use crate::path::Answer;
use crate::recovery::{PacketState, SentPacket, SymbolRef};
use crate::stream::{MissReason, Outcome};
use crate::time::Instant;
use crate::wire::Ack;

/// Packets acknowledged together whose sending lies closer together than this are taken to have arrived together.
const TOGETHER: Duration = Duration::from_millis(5);

/// When the largest packet of an acknowledgement was sent, and arrived by the peer's clock.
#[derive(Clone, Copy)]
struct Largest {
    sent_at: Instant,
    took: Option<Duration>,
}

/// The last acknowledgement: the packet that held it, and when it left by the peer's clock. What it did not name has arrived since.
#[derive(Clone, Copy)]
pub(super) struct Heard {
    number: u64,
    left_at_us: u32,
    /// When it came, by our own.
    at: Instant,
}

/// Moments at which packets left, in their order.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: u16,
    last: Option<Instant>,
}

impl Moments {
    fn count(&mut self, sent_at: Instant) {
        if self.last.is_none_or(|last| sent_at.since(last) >= TOGETHER) {
            self.count = self.count.saturating_add(1);
            self.last = Some(sent_at);
        }
    }
}

/// What an acknowledgement tells about when packets arrived.
#[derive(Clone, Copy)]
struct Stamps {
    /// If the largest is newly acknowledged.
    largest: Option<Largest>,
    /// The one before.
    before: Option<Heard>,
    /// Packets of the peer's in between that have not come, and may have held others; `None` when that is not known.
    missing: Option<u64>,
    /// They are too few for what it names to have come one by one.
    is_of_one_moment: bool,
    /// When what it is the first to name left.
    moments: Moments,
    /// Packets before this one had not arrived when it was acknowledged: those that have now were overtaken, and answered at once.
    overtaken_below: u64,
    /// By the peer's clock, when it left.
    left_at_us: u32,
    /// One delay is learned of each acknowledgement: more would make moments in which more arrives count for more.
    gave_delay: bool,
    /// The packet before, in the order in which they were sent, that this acknowledgement is the first to name.
    named_before: Option<u64>,
    /// When the first and the last packet left that it is the first to name in time.
    named: Option<(Instant, Instant)>,
}

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
        if let Some(from) = self.names_from(now, ack) {
            self.liveness.untold = Some((self.liveness.newest_acked_sent_at, from));
        }
        let mut stamps = self.take_stamps(now, number, ack, largest, shared.experience.resumed_at);
        self.largest_acked = self.largest_acked.max(Some(largest));
        let mut touched = core::mem::take(shared.touched);
        touched.clear();
        let known = self.sent.numbers();
        let mut is_news = false;
        let mut seen_to = known.start;
        // Oldest first, so that a block sees its symbols in the order in which they were sent.
        for (first, last) in ack.ranges.runs().rev() {
            self.break_silence(now, seen_to..first.min(known.end), &mut touched);
            seen_to = last + 1;
            for number in first.max(known.start)..(last + 1).min(known.end) {
                is_news |= self.on_packet_acked(now, number, &mut stamps, &mut touched, shared);
            }
        }
        if let Some((first, last)) = stamps.named {
            self.path.feedback.record_gathered(last.since(first));
        }
        if stamps.missing == Some(0) && stamps.moments.count > 0 {
            self.path.feedback.record_named(stamps.moments.count);
        }
        if is_news {
            let was_silent = self.liveness.last_acked + self.path.round_time() * 2 < now;
            self.liveness.last_acked = now;
            self.liveness.darkness.on_answered();
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
        self.lose_overtaken(now, &mut touched, shared);
        self.settle_flights(now, touched, shared);
        self.forget_settled(now);
        shared.experience.loss.observe(&mut self.path.level);
    }

    /// What it tells about when packets arrived, before it is told which.
    fn take_stamps(
        &mut self,
        now: Instant,
        number: u64,
        ack: &Ack,
        largest: u64,
        resumed_at: Instant,
    ) -> Stamps {
        let largest_info = self.take_timestamps(now, largest, ack, resumed_at);
        let left_at_us = ack.received_at.wrapping_add(ack.delay_us);
        let before = self.liveness.heard;
        let unheard_from = before.map_or(0, |heard| heard.number + 1);
        let missing = self.received.missing(unheard_from, number);
        let stamps = Stamps {
            largest: largest_info,
            before,
            missing,
            is_of_one_moment: missing.is_some_and(|missing| self.is_of_one_moment(ack, missing)),
            moments: Moments::default(),
            gave_delay: largest_info.is_some(),
            named_before: None,
            named: None,
            overtaken_below: self.largest_acked.unwrap_or(0),
            left_at_us,
        };
        if number >= unheard_from {
            self.liveness.heard = Some(Heard {
                number,
                left_at_us,
                at: now,
            });
        }
        stamps
    }

    /// When the oldest packet left that an acknowledgement names, where it may have had no room for older ones, and those before it were lost: that one is older
    /// than any that is answered for in time.
    fn names_from(&self, now: Instant, ack: &Ack) -> Option<Instant> {
        let runs = ack.ranges.runs();
        if runs.len() < ACK_RANGES_REPEATED {
            return None;
        }
        let (first, _) = runs.last()?;
        let oldest = self.sent.get(first)?;
        let was_unnamed = oldest.state != PacketState::Settled;
        (was_unnamed && oldest.sent_at + self.path.round_time() * 2 < now).then_some(oldest.sent_at)
    }

    /// Round trip, clock offset and one-way delay from the largest packet, when it is newly acknowledged.
    ///
    /// What was sent before this host stood still says nothing of the round trip: its answer may have waited here. (One stop of three seconds was three round
    /// trips in a hundred of young sessions: for up to twenty seconds no message had a second round, and four copies instead.)
    fn take_timestamps(
        &mut self,
        now: Instant,
        largest: u64,
        ack: &Ack,
        resumed_at: Instant,
    ) -> Option<Largest> {
        // (What asks for no acknowledgement is settled from the beginning.)
        let is_newest = Some(largest) > self.largest_acked;
        let is_of_use = |packet: &&SentPacket| {
            let is_news = is_newest || packet.state != PacketState::Settled;
            is_news && packet.sent_at >= self.path.began
        };
        let packet = self.sent.get(largest).filter(is_of_use)?;
        let (sent_at, bytes) = (packet.sent_at, packet.bytes);
        let held = Duration::from_micros(u64::from(ack.delay_us));
        let next = self.sent.get(largest + 1);
        let next_after = next.map(|next| next.sent_at.since(sent_at));
        self.clock.record(&Exchange {
            sent_at,
            received_at_us: ack.received_at,
            held,
            answered_at: now,
        });
        let took = self.clock.one_way_delay(sent_at, ack.received_at);
        let plausible = took.filter(|took| *took <= now.since(sent_at));
        if let Some(took) = plausible {
            self.path.owd.record_at(now, took);
        }
        if let Some(after) = now.since(sent_at).checked_sub(held)
            && (sent_at >= resumed_at || !self.path.rtt.is_known())
        {
            self.liveness.latest_rtt = after;
            let answer = Answer {
                after,
                took: plausible,
                next_after,
                bytes,
            };
            self.path.record_answer(now, &answer);
        }
        Some(Largest { sent_at, took })
    }

    /// `true` when that is news.
    fn on_packet_acked(
        &mut self,
        now: Instant,
        number: u64,
        stamps: &mut Stamps,
        touched: &mut Vec<u64>,
        shared: &mut Shared<'_>,
    ) -> bool {
        let Some(was) = self.sent.set_state(now, number, PacketState::Settled) else {
            return false;
        };
        let Some(&packet) = self.sent.get(number) else {
            return false;
        };
        if was == PacketState::Settled {
            return false;
        }
        let named_before = stamps.named_before.replace(number);
        stamps.moments.count(packet.sent_at);
        if was == PacketState::Outstanding {
            self.note_answered_pair(number, packet.sent_at, named_before);
            let first = stamps.named.map_or(packet.sent_at, |(first, _)| first);
            stamps.named = Some((first, packet.sent_at));
        }
        let took = self.overtaken(now, number, packet.sent_at, stamps);
        if let Some(took) = took.filter(|_| packet.sent_at >= self.path.began)
            && !core::mem::replace(&mut stamps.gave_delay, true)
        {
            self.path.owd.record_at(now, took);
        }
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
        true
    }

    /// A packet is answered for in time: was the one before it named together with it, or had it been named before?
    fn note_answered_pair(&mut self, number: u64, sent_at: Instant, named_before: Option<u64>) {
        let Some(before) = number.checked_sub(1) else {
            return;
        };
        let arrived = |packet: &&SentPacket| packet.state == PacketState::Settled;
        if let Some(packet) = self.sent.get(before).filter(arrived) {
            let apart = sent_at.since(packet.sent_at);
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
        self.path.ecn.on_arrived();
        self.path.mtu.on_arrived(packet.bytes.into(), sent_at);
        if packet.is_probe {
            self.path.mtu.on_acked(number, now);
            return;
        }
        if matches!(was, PacketState::Outstanding | PacketState::LostInSilence) {
            self.path.record_fate(now, sent_at, false);
            self.note_pair(number, sent_at, false);
        } else {
            self.correct_loss(number, packet);
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
        let block = outbox.block_mut(symbol.block);
        let Some(block) = block.filter(|block| arrived.number >= block.cut_from) else {
            return;
        };
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

    /// A message that was sent again when what it had sent first was not answered for may have been there since then: the answers were lost, and the one that
    /// comes does not name all that has arrived.
    fn perhaps_before(
        &self,
        slot: u32,
        sent_at: Instant,
        arrival: Instant,
        bound: Duration,
    ) -> (Instant, Duration) {
        let message = self.traffic.outbox.message(slot);
        let first_sent_at = message.and_then(|message| message.course.first_sent_at);
        let is_of_before = |first: &Instant| {
            let untold = self.liveness.untold;
            *first + TOGETHER < sent_at
                && untold.is_some_and(|(from, to)| (from..to).contains(first))
        };
        let Some(first) = first_sent_at.filter(is_of_before) else {
            return (arrival, bound);
        };
        let likely = (first + self.path.owd.quantile(0.5)).min(arrival);
        (likely, bound + arrival.since(likely))
    }

    /// How long a packet took that a later one had overtaken.
    fn overtaken(
        &self,
        now: Instant,
        number: u64,
        sent_at: Instant,
        stamps: &Stamps,
    ) -> Option<Duration> {
        if number >= stamps.overtaken_below {
            return None;
        }
        let took = self.clock.one_way_delay(sent_at, stamps.left_at_us);
        took.filter(|took| *took <= now.since(sent_at))
    }

    /// Whether what an acknowledgement is the first to name has come at once, mostly, before which so many packets of the peer's are missing. There is no delay timer:
    /// what had come before would have had acknowledgements of its own, of no more than the peer gathers.
    fn is_of_one_moment(&self, ack: &Ack, missing: u64) -> bool {
        if missing == 0 {
            return true;
        }
        let known = self.sent.numbers();
        let runs = ack.ranges.runs().rev();
        let numbers = runs.flat_map(|(first, last)| {
            first.max(known.start)..(last.saturating_add(1)).min(known.end)
        });
        let unnamed = numbers
            .filter_map(|number| self.sent.get(number))
            .filter(|packet| packet.state != PacketState::Settled);
        let mut moments = Moments::default();
        for packet in unnamed {
            moments.count(packet.sent_at);
        }
        let feedback = &self.path.feedback;
        feedback.is_too_much_for(missing.saturating_add(1), moments.count)
    }

    /// When a packet arrived, in our time, and how well that is known. An acknowledgement names what came since the one before; one that was lost between
    /// the two may have named it earlier.
    fn arrival(
        &self,
        now: Instant,
        sent_at: Instant,
        overtaken: Option<Duration>,
        stamps: &Stamps,
    ) -> (Instant, Duration) {
        let residual = self
            .clock
            .residual(now)
            .unwrap_or_else(|| self.path.rtt.min() / 2);
        let with_largest = stamps
            .largest
            .and_then(|Largest { sent_at, took }| Some((sent_at, sent_at + took?)));
        let Some(latest) = overtaken
            .map(|took| sent_at + took)
            .or_else(|| with_largest.map(|(_, arrived_at)| arrived_at))
        else {
            // No timestamp for it: it arrived at some time before its acknowledgement did.
            let early = sent_at + self.path.owd.min();
            let late = now - self.path.owd.min().min(now.since(sent_at) / 2);
            let spread = late.since(early);
            return (early + spread / 2, residual + spread / 2);
        };
        if stamps.missing == Some(0) {
            return (latest, residual);
        }
        let before_largest = with_largest
            .filter(|_| overtaken.is_none())
            .map(|(newest, _)| newest.since(sent_at));
        if let Some(apart) = before_largest.filter(|apart| *apart < TOGETHER) {
            // An answer of its own may have been lost.
            return (latest, residual + apart);
        }
        let unnamed_for = stamps
            .before
            .filter(|heard| heard.at > sent_at)
            .and_then(|heard| self.clock.one_way_delay(sent_at, heard.left_at_us));
        let least = unnamed_for.unwrap_or_default().max(self.path.owd.min());
        let earliest = (sent_at + least).min(latest);
        let typical = sent_at + self.path.owd.quantile(0.5);
        let likely = match stamps.is_of_one_moment || overtaken.is_some() {
            true => latest,
            false => typical.clamp(earliest, latest),
        };
        let spread = latest.since(likely).max(likely.since(earliest));
        (likely, residual + spread)
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
