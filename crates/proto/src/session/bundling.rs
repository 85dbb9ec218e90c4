//! Copies of small messages in the spare room of packets that leave anyway (decision 0009): which go, how long a round waits for them, and what
//! they leave to be done.

use core::time::Duration;

use punctual_policy::{Action, Situation};

use super::Session;
use super::fill::{Picks, Room};
use super::output::Draft;
use crate::endpoint::ThinStreams;
use crate::limits::TIMER_GRANULARITY;
use crate::message::{Block, OutgoingMessage};
use crate::recovery::SymbolRef;
use crate::time::Instant;

/// Copies of a small message that travel in spare room. With two, a message is late only when three packets in a row are lost.
const COPIES_MAX: u8 = 2;
/// So much less likely to be in time is too much; each copy that is not waited for is a repair more. (With a hundredth, 1.3 packets a message for 1.02 over the busy hour.)
const MUCH_LESS: f64 = 0.25;
/// Small blocks that are remembered as candidates for spare room.
const RECENT_MAX: usize = 8;

/// The newest blocks that may go into spare room.
pub(super) struct Recent([u64; RECENT_MAX]);

impl Default for Recent {
    fn default() -> Self {
        Self([u64::MAX; RECENT_MAX])
    }
}

impl Recent {
    /// Once each.
    pub(super) fn push(&mut self, number: u64) {
        if !self.0.contains(&number) {
            self.0.copy_within(1.., 0);
            self.0[RECENT_MAX - 1] = number;
        }
    }

    pub(super) fn oldest_first(&self) -> impl DoubleEndedIterator<Item = u64> + use<> {
        self.0.into_iter()
    }
}

impl Session {
    /// Copies of small messages that are not acknowledged, the newest first: older ones had their chance in packets before.
    pub(super) fn pick_copies(
        &mut self,
        now: Instant,
        draft: &Draft,
        room: Room,
        picks: &mut Picks,
        thin_streams: ThinStreams,
    ) {
        if !thin_streams.bundling {
            return;
        }
        let mut left = usize::from(thin_streams.bundle_bytes_max);
        for number in self.traffic.recent.oldest_first().rev() {
            let Some(block) = self.traffic.outbox.block(number) else {
                continue;
            };
            let len = block.symbols.symbol_len();
            let is_wanted = block.last_packet != draft.number
                && block.bundled < COPIES_MAX
                && block.flight.to_send == 0
                && len <= left
                && room.holds(picks, block)
                && self.is_bundled(block);
            if !is_wanted {
                continue;
            }
            let slot = block.message;
            let Some(esi) = self.take_symbol(now, number, draft.number, false) else {
                continue;
            };
            left -= len;
            picks.add(SymbolRef { block: number, esi }, len);
            self.wait_for_copy(now, number, draft.number);
            let stream = self
                .traffic
                .outbox
                .message(slot)
                .map(|message| message.stream);
            if let Some(stream) = stream.and_then(|id| self.traffic.streams.get_mut(id)) {
                stream.stats.on_symbol(len, true);
            }
        }
    }

    /// Whether a copy of a block's message is of use: it is to be delivered for certain, and nothing newer takes its place.
    fn is_bundled(&self, block: &Block) -> bool {
        self.traffic
            .outbox
            .message(block.message)
            .is_some_and(OutgoingMessage::is_repaired)
            && block.unaccounted > 0
    }

    /// A symbol of a block's flight leaves in `packet`.
    pub(super) fn wait_for_flight(&mut self, now: Instant, number: u64, packet: u64) {
        let block = self.traffic.outbox.block(number);
        let ends =
            block.map(|block| self.round_end(now, block.flight.backoff, block.flight.patience));
        if let Some(block) = self.traffic.outbox.block_mut(number) {
            block.flight.round_ends = ends;
            block.flight.last_packet = packet;
        }
    }

    /// A copy of a block leaves in `packet`. Its round waits for the answer, if the deadline leaves as many rounds after that as after the answers to what left
    /// before. (Where rounds always waited, 1 % of messages were late for 0.1 asked: every 33 ms one of 500 bytes, within 110 ms over 60 that lose 10 %.)
    pub(super) fn wait_for_copy(&mut self, now: Instant, number: u64, packet: u64) {
        let answered_by = self.round_end(now, 0, Duration::ZERO);
        let leaves_as_many = self.leaves_as_many_rounds(number, now, answered_by);
        if let Some(block) = self.traffic.outbox.block_mut(number) {
            block.bundled = block.bundled.saturating_add(1);
            if leaves_as_many {
                block.flight.round_ends = Some(answered_by);
                block.flight.last_packet = packet;
            }
        }
    }

    /// Whether as many rounds of a block follow one that ends at `later` as one that ends as it is set.
    fn leaves_as_many_rounds(&self, number: u64, now: Instant, later: Instant) -> bool {
        let message_of = |block: &Block| self.traffic.outbox.message(block.message);
        let block = self.traffic.outbox.block(number);
        let deadline = block
            .and_then(message_of)
            .and_then(|message| message.deadline);
        let ends = block.and_then(|block| block.flight.round_ends);
        let (Some(deadline), Some(ends)) = (deadline, ends) else {
            return true;
        };
        let margin = self.clock_margin(now);
        // (A loop ends a round up to a frame after it is due.)
        let lag = self.path.timer_lag.before_end();
        let left_after = |end: Instant| deadline.since(end + lag);
        let rounds_after = |end| self.path.rounds_within(left_after(end), margin);
        // The last flight may be in time by chance only.
        let in_time_after = |end| self.path.on_time(left_after(end));
        later <= ends
            || (rounds_after(later) == rounds_after(ends)
                && in_time_after(later) > in_time_after(ends) - MUCH_LESS)
    }

    /// Probability that one of the copies of a block that are under way in spare room arrives in time. Bursts that took what was lost may last, an outage may have begun, and
    /// of what is not answered for after its time less is hoped. O(packets since its flight) if there are any.
    pub(super) fn copies_come(&self, now: Instant, number: u64) -> f32 {
        let Some(block) = self.traffic.outbox.block(number) else {
            return 0.0;
        };
        if block.bundled == 0 || block.unaccounted == 0 {
            return 0.0;
        }
        let message = self.traffic.outbox.message(block.message);
        let deadline = message.and_then(|message| message.deadline);
        let way = self.path.one_way_delay();
        let is_in_time = |left_at| deadline.is_none_or(|deadline| left_at + way <= deadline);
        let (loss, burst) = (f64::from(self.path.level.mean()), self.burst(now, false));
        let flight_left_at = self.sent.get(block.flight.last_packet);
        let mut before = flight_left_at.map_or(block.flight.began, |packet| packet.sent_at);
        let first = (block.flight.last_packet + 1).max(self.sent.first_outstanding());
        let mut fail = 1.0;
        for packet in
            (first..=block.last_packet).filter(|packet| self.holds_symbol_of(*packet, number))
        {
            let Some(copy) = self
                .sent
                .get(packet)
                .filter(|copy| is_in_time(copy.sent_at))
            else {
                continue;
            };
            let lost = burst.lost_after_loss(loss, copy.sent_at.since(before));
            let unanswered = self.path.rtt.share_beyond(now.since(copy.sent_at));
            fail *= lost / (lost + (1.0 - lost) * unanswered).max(f64::MIN_POSITIVE);
            before = copy.sent_at;
        }
        (1.0 - fail).min(1.0 - self.path.rtt.unseen_outage()) as f32
    }

    /// Until when nothing is done about a block, where the policy leaves it to copies that are under way: they are looked for when something sent would still be in time.
    pub(super) fn leaves_to_copies(situation: &Situation, action: &Action) -> Option<Duration> {
        let timing = situation.timing;
        let is_left = action.symbols == 0 && situation.comes_anyway > 0.0;
        let looks_in_time = timing.slack > TIMER_GRANULARITY;
        let wait = if looks_in_time {
            timing.slack
        } else {
            timing.round_time
        };
        is_left.then_some(wait.min(timing.round_time))
    }
}
