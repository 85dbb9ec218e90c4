//! When a packet is lost (PROTOCOL.md#loss): when later ones were acknowledged, or when its time is over.
//!
//! One later acknowledgement is enough for packets with symbols that have a deadline, and while fewer than four packets are on
//! their way (the thin-stream paper); else the thresholds of RFC 9002 section 6.1 hold: three packets, or 9/8 of a round
//! trip. In either case what reordering has been seen to need is waited for.

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use super::{Session, Shared};
use crate::limits::TIMER_GRANULARITY;
use crate::path::{Between, Bursts, Dependence, Pair};
use crate::recovery::{PacketState, SentPacket};
use crate::time::{Instant, earliest};

/// RFC 9002 section 6.1.1: kPacketThreshold.
const PACKET_THRESHOLD: u64 = 3;

/// So many packets beyond a lost one are looked at for whether they were lost, too: a flight's.
const BEYOND_MAX: u64 = 16;

/// A silence that so surely is only of the answers says nothing of the loss. (Lower, and outages show too late; over recorded networks.)
const DOUBT: f64 = 0.95;

/// Where more packets than this have no answer, nothing passes: they are lost, whatever bursts that take a part of a flight say of so many. (Over recorded Starlink, 16
/// symbols, silences that were only of the answers for however many had 3 rows of 69 more late.)
const SILENCE_MAX: u64 = 256;

impl Session {
    /// Takes those packets for lost that later ones have overtaken; notes when the next one will have been. The blocks that
    /// lost symbols are added to `touched`.
    pub(super) fn lose_overtaken(
        &mut self,
        now: Instant,
        touched: &mut Vec<u64>,
        shared: &Shared<'_>,
    ) {
        self.liveness.loss_at = None;
        let Some(largest) = self.largest_acked else {
            return;
        };
        let allowance = self.path.reordering.allowance();
        let one_is_enough = shared.config.thin_streams.one_later_ack && self.is_thin();
        let rtt = self.path.rtt.smoothed().max(self.liveness.latest_rtt);
        let overdue = self.overdue_after();
        for number in self.sent.first_outstanding()..largest {
            let Some(&packet) = self.sent.get(number) else {
                continue;
            };
            if packet.state != PacketState::Outstanding || packet.is_probe {
                continue;
            }
            let is_overtaken =
                packet.is_urgent || one_is_enough || largest - number >= PACKET_THRESHOLD;
            let wait = match (is_overtaken, allowance) {
                (true, Duration::ZERO) => Duration::ZERO,
                // Not from the latest round trip alone: where packets overtake each other it is that of a fast one.
                (true, allowance) => rtt + allowance,
                (false, _) => overdue,
            };
            let lost_at = packet.sent_at + wait;
            if now >= lost_at {
                self.lose_packet(now, number, PacketState::LostByOrder, touched);
            } else {
                self.liveness.loss_at = earliest(self.liveness.loss_at, Some(lost_at));
            }
        }
    }

    /// RFC 9002 section 6.1.2: 9/8 of the larger of the smoothed and the latest round trip; and what reordering has been seen to need.
    pub(super) fn overdue_after(&self) -> Duration {
        let rtt = self.path.rtt.smoothed().max(self.liveness.latest_rtt);
        (rtt + rtt / 8).max(TIMER_GRANULARITY) + self.path.reordering.allowance()
    }

    /// The time has come at which a packet that was overtaken is lost.
    pub(super) fn handle_loss_timer(&mut self, now: Instant, shared: &mut Shared<'_>) {
        if self.liveness.loss_at.is_none_or(|at| now < at) {
            return;
        }
        let mut touched = core::mem::take(shared.touched);
        touched.clear();
        self.lose_overtaken(now, &mut touched, shared);
        self.settle_flights(now, touched, shared);
    }

    /// Whether what has left of a block is enough, if nothing of it is lost that nothing later was answered for: that may be the answers. O(packets from the first of its flight to
    /// its last).
    pub(super) fn may_complete(&self, number: u64) -> bool {
        let Some(block) = self.traffic.outbox.block(number) else {
            return false;
        };
        let from = block.flight.first_packet.min(block.silence.first_packet);
        let unanswered = self.largest_acked.map_or(0, |largest| largest + 1);
        let first = from
            .max(unanswered)
            .max(block.cut_from)
            .max(self.sent.numbers().start);
        let last = block.last_packet.min(self.sent.next_number());
        let is_in_doubt = |packet: u64| {
            let sent = self.sent.get(packet);
            sent.is_some_and(|sent| sent.state != PacketState::Outstanding)
                && self.held_symbol_of(packet, number)
        };
        let in_doubt = (first..=last).filter(|packet| is_in_doubt(*packet)).count();
        usize::from(block.symbols.deficit()) <= usize::from(block.unaccounted) + in_doubt
    }

    /// Goes on with the blocks that were acknowledged or lost something, and gives the list back.
    pub(super) fn settle_flights(
        &mut self,
        now: Instant,
        touched: Vec<u64>,
        shared: &mut Shared<'_>,
    ) {
        for &number in &touched {
            self.settle_flight(now, number, shared);
        }
        *shared.touched = touched;
    }

    /// What has become of this packet is known now: so it is of pairs of which it is the first or the last, and if it arrived, between those of others.
    pub(super) fn note_pairs(&mut self, number: u64) {
        if !self.sent.may_be_lost(number.saturating_sub(BEYOND_MAX)) {
            return;
        }
        if self.is_lost(number) {
            self.each_later(number, Bursts::note_pair);
        }
        self.each_earlier(number, Bursts::note_pair);
        if let Some(before) = number.checked_sub(1)
            && self.is_lost(before)
        {
            self.each_later(before, |bursts, pair| {
                if pair.between == Between::Arrived {
                    bursts.note_beyond(pair.lag, pair.lost);
                }
            });
        }
    }

    /// Whether this packet is one of the path's own that is surely lost. (What was under way on another one counts as lost, and says nothing of this one.)
    fn is_lost(&self, number: u64) -> bool {
        (self.sent.get(number)).is_some_and(|packet| {
            packet.state.is_surely_lost() && packet.sent_at >= self.path.began
        })
    }

    /// Calls `note` for each of the next packets after this one of which it is known what became of them.
    fn each_later(&mut self, first: u64, note: impl Fn(&mut Bursts, Pair)) {
        for last in first + 1..=first + BEYOND_MAX {
            let is_known = (self.sent.get(last))
                .is_some_and(|last| last.state.is_surely_lost() || has_arrived(last));
            if is_known && let Some(pair) = self.pair(first, last) {
                note(&mut self.path.bursts, pair);
            }
        }
    }

    /// Calls `note` for each of the lost packets before this one, of which it is known what became of it.
    fn each_earlier(&mut self, last: u64, note: impl Fn(&mut Bursts, Pair)) {
        for first in last.saturating_sub(BEYOND_MAX)..last {
            if self.is_lost(first)
                && let Some(pair) = self.pair(first, last)
            {
                note(&mut self.path.bursts, pair);
            }
        }
    }

    fn pair(&self, first: u64, last: u64) -> Option<Pair> {
        let next = self.sent.get(first + 1);
        let between = if last == first + 1 {
            Between::Nothing
        } else if next.is_some_and(has_arrived) {
            Between::Arrived
        } else {
            Between::NotArrived
        };
        let sent_at = self.sent.get(first)?.sent_at;
        let last = self.sent.get(last)?;
        Some(Pair {
            lag: last.sent_at.since(sent_at),
            lost: last.state.is_surely_lost(),
            between,
        })
    }

    /// Takes a packet for lost, and its symbols with it. The blocks that they are of are added to `touched`.
    pub(super) fn lose_packet(
        &mut self,
        now: Instant,
        number: u64,
        verdict: PacketState,
        touched: &mut Vec<u64>,
    ) {
        let Some(&packet) = self.sent.get(number) else {
            return;
        };
        if packet.state != PacketState::Outstanding {
            return;
        }
        self.sent.set_state(now, number, verdict);
        if self.forget_told(number) {
            let round_time = self.path.round_time();
            self.control.abandon_held = self.liveness.darkness.holds_until(now, round_time);
        }
        // Until the peer has shown that it hears us, silence would leave one side open and the other not.
        self.control.ping |= self.largest_acked.is_none();
        if packet.is_probe {
            self.path.mtu.on_probe_lost(number, now);
            return;
        }
        // (What was cut for a wider path is lost for its size.)
        let fits = usize::from(packet.bytes) <= self.path.mtu.current();
        if packet.sent_at >= self.path.began && fits {
            self.path.ecn.on_lost(packet.sent_at);
        }
        self.statistics.packets_lost += 1;
        if verdict != PacketState::LostInSilence {
            self.note_lost(now, number, packet.sent_at);
        }
        self.path
            .congestion
            .on_lost(now, packet.sent_at, usize::from(packet.bytes));
        self.note_loss_run(now, packet.sent_at);
        if packet.sent_at >= self.path.began {
            let size = self.least_len(number, packet.bytes.into());
            self.path.mtu.on_lost(now, size, packet.sent_at);
        }
        for position in self.sent.symbols_of(number) {
            let symbol = self.sent.symbol(number, position);
            let Some(block) = self.traffic.outbox.block_mut(symbol.block) else {
                self.traffic.blame.on_lost(symbol.block);
                continue;
            };
            block.unaccounted = block.unaccounted.saturating_sub(1);
            if verdict == PacketState::LostByOrder {
                block.flight.wait_no_longer();
            }
            if touched.last() != Some(&symbol.block) {
                touched.push(symbol.block);
            }
            let slot = block.message;
            if let Some(message) = self.traffic.outbox.message_mut(slot) {
                message.course.chances.on_lost();
            }
        }
    }

    /// The packet is lost: whether it was the one that told of blocks that were given up.
    pub(super) fn forget_told(&mut self, number: u64) -> bool {
        let told = self.control.abandon_told.take_if(|told| told.0 == number);
        told.is_some()
    }

    /// Forgets the packets that are settled, or have been lost for long: those never came.
    pub(super) fn forget_settled(&mut self, now: Instant) {
        let lost_before = self.lost_before(now);
        let path = &mut self.path;
        let began = path.began;
        self.sent.prune(lost_before, |sent_at, dependence| {
            if sent_at >= began {
                path.confirm_loss(dependence);
            }
        });
    }

    /// What a lost packet says of the path.
    fn note_lost(&mut self, now: Instant, number: u64, sent_at: Instant) {
        let dependence = self.path.record_fate(now, sent_at, true);
        self.sent.note_dependence(number, dependence);
        self.note_pairs(number);
    }

    /// A packet that had been counted as lost, with this dependence, has arrived after all, and is settled.
    pub(super) fn correct_loss(&mut self, number: u64, dependence: Dependence) {
        self.path.correct_fate(dependence);
        self.each_later(number, Bursts::forget_pair);
        self.each_earlier(number, Bursts::correct_second);
    }

    /// What a packet is whose time is over, with which `unanswered` packets are that nothing has answered for, nor for what came after
    /// them: mostly it is lost. Where the answers are far likelier to be, its loss says nothing of the path until something later is
    /// answered for.
    pub(super) fn overdue(&self, number: u64, unanswered: u64) -> PacketState {
        if self.largest_acked >= Some(number) {
            return PacketState::LostByTime;
        }
        if unanswered > SILENCE_MAX {
            return PacketState::LostByTime;
        }
        let packets = unanswered as u16;
        let age = self.path.round_time();
        let from = self.largest_acked.map(|acked| acked + 1);
        if self.chance_of_silence(age, packets, from, 0.0) > DOUBT {
            PacketState::LostInSilence
        } else {
            PacketState::LostByTime
        }
    }

    /// Of these packets, which were not acknowledged where later ones were, those lost in silence are lost for sure.
    pub(super) fn break_silence(
        &mut self,
        now: Instant,
        numbers: Range<u64>,
        touched: &mut Vec<u64>,
    ) {
        if !self.sent.has_silence() {
            return;
        }
        for number in numbers {
            let Some(&packet) = self.sent.get(number) else {
                continue;
            };
            if packet.state != PacketState::LostInSilence {
                continue;
            }
            self.sent.set_state(now, number, PacketState::LostByTime);
            self.note_lost(now, number, packet.sent_at);
            for position in self.sent.symbols_of(number) {
                let block = self.sent.symbol(number, position).block;
                if touched.last() != Some(&block) {
                    touched.push(block);
                }
            }
        }
    }

    /// RFC 9002 section 7.6: nothing arrived of what was sent over a long time.
    fn note_loss_run(&mut self, now: Instant, sent_at: Instant) {
        if sent_at <= self.liveness.newest_acked_sent_at {
            return;
        }
        let since = *self.liveness.losses_since.get_or_insert(sent_at);
        if sent_at.since(since) > self.path.rtt.persistent_congestion() {
            self.path.congestion.on_persistent_congestion(now);
            self.liveness.losses_since = None;
        }
    }
}

/// Whether a packet with symbols has arrived.
const fn has_arrived(packet: &SentPacket) -> bool {
    packet.symbols > 0 && matches!(packet.state, PacketState::Settled)
}
