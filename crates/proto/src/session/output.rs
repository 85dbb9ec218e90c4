//! A packet out: may anything be sent (path), what (schedule, `fill.rs`), how much (rounds), written (wire), sealed (crypto),
//! remembered (recovery).

use super::{Run, Session, Shared, State};
use crate::endpoint::{Ecn, Pending, Route, Transmit};
use crate::limits::{ABANDONS_PER_PACKET, MTU_MAX, MTU_MIN, UDP_IP_HEADER};
use crate::path::{Blocked, Validation};
use crate::recovery::SentPacket;
use crate::time::Instant;
use crate::wire::{Ack, Frame, Header, TAG_LEN, Writer};

/// Packets sealed with one generation of keys. AES-GCM allows 2^23 (RFC 9001 section 6.6); far below costs nothing.
pub(crate) const KEY_UPDATE_PACKETS: u64 = 1 << 21;

/// Packets after which a generation of keys is not used any more, whatever the peer does (RFC 9001 section 6.6).
const KEY_PACKETS_MAX: u64 = 1 << 23;
/// Packets after which a key is replaced at the latest: while as many may still follow, an answer to one of its packets comes in time.
pub(crate) const KEY_UPDATE_PACKETS_MAX: u64 = KEY_PACKETS_MAX / 2;

/// A packet being put together.
pub(super) struct Draft {
    pub(super) number: u64,
    pub(super) header_len: usize,
    /// Bytes before the tag.
    len: usize,
    /// It asks for an acknowledgement.
    pub(super) is_eliciting: bool,
    is_probe: bool,
    /// It holds symbols of a message with a deadline.
    pub(super) is_urgent: bool,
    /// The symbols themselves are noted in `sent` as they are written.
    pub(super) symbol_count: usize,
    pub(super) symbol_bytes: usize,
}

/// A packet that leaves.
pub(crate) struct Leaving {
    pub(crate) transmit: Transmit,
    /// It asks for an acknowledgement, and counts for the endpoint's way out.
    pub(crate) is_eliciting: bool,
}

impl Session {
    /// The next datagram to send, if any; `buffer` holds at least [`crate::limits::MTU_MAX`] bytes.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        shared: &mut Shared<'_>,
    ) -> Option<Leaving> {
        match &mut self.state {
            // An unconfirmed client hears nothing but its ACCEPT, which the endpoint sends.
            State::Closed | State::Unconfirmed { .. } => return None,
            State::Closing { is_due, .. } => {
                // The peer may make it say so as often as packets are remembered.
                if !core::mem::take(is_due) || self.sent.is_full() {
                    return None;
                }
                return self.transmit_close(now, buffer);
            }
            _ => {}
        }
        // (Before it is asked whether the key is spent: a peer that goes on lets a session go on that had come to its end.)
        self.update_keys(now, shared);
        if self.is_stopped() {
            return None;
        }
        if let Some(challenge) = self.transmit_challenge(now, buffer) {
            return Some(challenge);
        }
        let draft = self.compose(now, buffer, shared)?;
        Some(self.seal(now, draft, self.path.route, buffer))
    }

    /// Whether nothing may leave at all, before more is known of what has left.
    pub(super) fn is_stopped(&self) -> bool {
        let is_key_spent = self.sent.next_number() - self.keys.first_number >= KEY_PACKETS_MAX;
        self.sent.is_full() || is_key_spent
    }

    /// Whether it has an acknowledgement to send.
    pub(crate) const fn owes_answer(&self) -> bool {
        self.ack.is_due
    }

    /// Whether [`Session::poll_transmit`] would surely find nothing: a quick look that spares visiting the session again.
    pub(crate) fn has_nothing_to_send(&self, now: Instant) -> bool {
        self.is_open()
            && self.traffic.schedule.is_empty()
            && self.traffic.paced_until.is_none()
            && !self.ack.is_due
            && !self.control.ping
            && self.control.path_response.is_none()
            && self.control.abandoned.is_empty()
            && self.validation.is_none()
            && self.path.mtu.poll_probe(now).is_none()
    }

    fn draft(&self, writer: &mut Writer<'_>) -> Draft {
        let number = self.sent.next_number();
        let header = Header::for_number(
            self.peer,
            self.keys.seal.phase(),
            number,
            self.largest_acked,
        );
        header.encode(writer);
        Draft {
            number,
            header_len: header.encoded_len(),
            len: 0,
            is_eliciting: false,
            is_probe: false,
            is_urgent: false,
            symbol_count: 0,
            symbol_bytes: 0,
        }
    }

    /// Puts the next packet for the peer together, or finds that there is nothing to send.
    fn compose(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        shared: &mut Shared<'_>,
    ) -> Option<Draft> {
        self.traffic.paced_until = None;
        let has_symbols = self.may_send_symbols(now, shared.has_budget);
        let queue = || self.path.congestion.queue(now);
        let answers_at = (self.ack.is_due).then(|| self.ack.leaves_at(queue()));
        let wants_control = answers_at.is_some_and(|at| now >= at && !shared.keeps_answers)
            || self.control.ping
            || self.control.path_response.is_some()
            || (self.wants_abandon() && self.abandon_held().is_none_or(|at| now >= at));
        let is_idle = !has_symbols && !wants_control;
        if is_idle {
            self.ack.kept_until = answers_at.filter(|at| now < *at);
        }
        // Symbols that do not pass would leave no moment for asking whether anything does.
        if is_idle || self.path.mtu.asks() {
            let probe = self.compose_probe(now, buffer, shared.has_budget);
            if is_idle || probe.is_some() {
                return probe;
            }
        }
        let room = buffer.len().min(usize::from(MTU_MAX)) - TAG_LEN;
        let mut writer = Writer::new(&mut buffer[..room]);
        let mut draft = self.draft(&mut writer);
        self.write_control(now, &mut draft, &mut writer);
        if has_symbols {
            self.write_symbols(now, &mut draft, &mut writer, shared);
        }
        // (A symbol reaches to the end of its packet, so nothing can follow one.)
        let is_padded = draft.symbol_count == 0 && writer.len() > draft.header_len;
        if is_padded && writer.len() + TAG_LEN < Validation::PACKET_LEN {
            // A packet from a new address must be as large as the challenge that it leads to.
            let padding = Validation::PACKET_LEN - TAG_LEN - writer.len();
            writer.space(padding)?.fill(0);
        }
        draft.len = writer.finish()?;
        (draft.len > draft.header_len).then_some(draft)
    }

    /// Whether the schedule's first symbol may leave now; notes until when the pacer holds it.
    fn may_send_symbols(&mut self, now: Instant, has_budget: bool) -> bool {
        self.traffic.awaits_budget = false;
        if self.traffic.schedule.is_empty() {
            return false;
        }
        if let Some(until) = self.held_for_tick(now) {
            self.traffic.paced_until = Some(until);
            return false;
        }
        let (waiting, live) = self.traffic.schedule.needed_bytes();
        let packet_len = self.path.mtu.current();
        let congestion = &mut self.path.congestion;
        congestion.set_waiting(now, waiting, live);
        self.traffic.holds_redundancy = congestion.has_room_for_needed_only(packet_len);
        let Some(size) = self.first_packet_len() else {
            return false;
        };
        match self.path.may_send(now, size) {
            Ok(()) => {
                self.traffic.awaits_budget = !has_budget;
                has_budget
            }
            Err(Blocked::Window) => false,
            Err(Blocked::Pacing { until }) => {
                self.traffic.paced_until = Some(until);
                false
            }
        }
    }

    /// What is ready to leave and waits for the endpoint's way out, if anything does. `is_told`: the last `poll_transmit` was
    /// without budget, and has found out.
    pub(crate) fn poll_pending(&mut self, now: Instant, is_told: bool) -> Option<Pending> {
        if !self.is_open() || self.is_stopped() {
            return None;
        }
        if !is_told {
            // Without budget the answer is no, and notes whether that alone is why.
            self.may_send_symbols(now, false);
            self.traffic.awaits_budget |=
                self.may_probe() && self.path.mtu.poll_probe(now).is_some();
        }
        if !self.traffic.awaits_budget {
            return None;
        }
        let deadline = self.traffic.schedule.earliest_deadline();
        let way = self.path.one_way_delay();
        let bytes = self.traffic.schedule.bytes_before(deadline.is_some());
        // (No more than may be under way: the rest waits for answers, not for this.)
        let bytes = bytes.min(self.path.congestion.window());
        Some(Pending {
            bytes: bytes.max(self.path.mtu.max().into()),
            slack: deadline.map(|deadline| deadline.since(now).saturating_sub(way)),
        })
    }

    fn write_answer(&mut self, now: Instant, draft: &Draft, writer: &mut Writer<'_>) {
        if self.ack.is_due {
            let ranges = self.received.ranges();
            if let Some(largest) = ranges.largest() {
                self.keys.is_named |= largest >= self.keys.open.first_number();
                let delay_us = now
                    .since(self.ack.largest_at)
                    .as_micros()
                    .min(u128::from(u32::MAX)) as u32;
                let received_at = self.ack.largest_at.wire_micros();
                Ack {
                    ranges,
                    received_at,
                    delay_us,
                    is_kept: self.ack.kept_until.is_some(),
                    frame_us: self.path.timer_lag.before_end().as_micros() as u32,
                    ce_count: self.ack.ce_count,
                }
                .encode(writer);
            }
            self.ack.on_sent(now);
            let round_trip = self.path.rtt.smoothed();
            self.received.on_named(now, draft.number, round_trip);
        }
    }

    fn write_control(&mut self, now: Instant, draft: &mut Draft, writer: &mut Writer<'_>) {
        self.write_answer(now, draft, writer);
        if core::mem::take(&mut self.control.ping) {
            Frame::Ping.encode(writer);
            draft.is_eliciting = true;
        }
        if let Some(data) = self.control.path_response.take() {
            Frame::PathResponse(data).encode(writer);
            draft.is_eliciting = true;
        }
        if self.wants_abandon() {
            self.join_abandoned();
            let runs = self.control.abandoned.iter().take(ABANDONS_PER_PACKET);
            let mut told = 0;
            for &Run { first, count, .. } in runs {
                Frame::Abandon { first, count }.encode(writer);
                told += 1;
            }
            self.control.abandon_told = Some((draft.number, told));
            self.control.abandon_held = None;
            draft.is_eliciting = true;
        }
    }

    /// Whether the peer is to hear of blocks that were given up. One packet at a time tells of them.
    fn wants_abandon(&self) -> bool {
        !self.control.abandoned.is_empty() && self.control.abandon_told.is_none()
    }

    /// Until when that has to go with other things, as what is sent again does in the dark.
    pub(super) fn abandon_held(&self) -> Option<Instant> {
        self.control.abandon_held.filter(|_| self.wants_abandon())
    }

    /// Whether path MTU discovery goes on.
    pub(super) const fn may_probe(&self) -> bool {
        match self.state {
            State::Open => self.path.rtt.is_known() || self.path.mtu.asks(),
            // What is on its way may have become too large for it.
            State::Finishing { .. } => self.path.mtu.asks(),
            _ => false,
        }
    }

    /// A padded packet that finds out whether larger ones pass.
    fn compose_probe(
        &mut self,
        now: Instant,
        buffer: &mut [u8],
        has_budget: bool,
    ) -> Option<Draft> {
        if !self.may_probe() {
            return None;
        }
        let size = self.path.mtu.poll_probe(now)?;
        if !has_budget {
            // A thousand sessions that begin at once probe in line.
            self.traffic.awaits_budget = true;
            return None;
        }
        let mut writer = Writer::new(buffer.get_mut(..size - TAG_LEN)?);
        let mut draft = self.draft(&mut writer);
        Frame::Ping.encode(&mut writer);
        draft.is_eliciting = true;
        draft.is_probe = true;
        let padding = writer.room();
        writer.space(padding)?.fill(0);
        draft.len = writer.finish()?;
        self.path.mtu.on_probe_sent(draft.number, size);
        Some(draft)
    }

    /// Seals and remembers the packet.
    fn seal(&mut self, now: Instant, draft: Draft, route: Route, buffer: &mut [u8]) -> Leaving {
        let len = draft.len + TAG_LEN;
        self.keys
            .seal
            .seal(draft.number, &mut buffer[..len], draft.header_len);
        let counts = draft.is_eliciting && !draft.is_probe;
        let symbols = draft.symbol_count as u8;
        let mut packet =
            SentPacket::new(now, len as u16, symbols, draft.is_eliciting, draft.is_probe);
        packet.is_urgent = draft.is_urgent;
        self.sent.push(packet);
        if counts {
            self.path.congestion.on_sent(now, len);
            self.path.pacer.on_sent(len);
        }
        if draft.symbol_count > 0 {
            self.statistics.symbols_sent += draft.symbol_count as u64;
            self.statistics.symbol_bytes += draft.symbol_bytes as u64;
            self.statistics.encapsulation_bytes +=
                (len + UDP_IP_HEADER - draft.symbol_bytes) as u64;
        }
        self.statistics.packets_sent += 1;
        self.liveness.last_sent = now;
        if draft.is_eliciting {
            self.liveness.darkness.on_asked(now);
        }
        if !draft.is_eliciting {
            // Nothing waits for it: keeps the list of packets short while only acknowledgements are sent.
            self.forget_settled(now);
        }
        let is_eliciting = draft.is_eliciting;
        let is_dark = self.liveness.darkness.is_dark(now);
        if is_eliciting && is_dark {
            self.path.ecn.on_unmarked(now);
        }
        let ecn = if is_eliciting && self.path.ecn.is_capable() && !is_dark {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        };
        Leaving {
            transmit: Transmit {
                to: route.remote,
                from: route.local,
                len,
                ecn,
            },
            is_eliciting,
        }
    }

    /// Asks the peer to show itself at a new address.
    fn transmit_challenge(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Leaving> {
        let validation = self
            .validation
            .as_ref()
            .filter(|validation| validation.may_send(now))?;
        let (route, challenge) = (validation.route, validation.challenge);
        let mut writer = Writer::new(&mut buffer[..usize::from(MTU_MIN) - TAG_LEN]);
        let mut draft = self.draft(&mut writer);
        Frame::PathChallenge(challenge).encode(&mut writer);
        draft.len = writer.finish()?;
        let round_time = self.path.round_time();
        let leaving = self.seal(now, draft, route, buffer);
        if let Some(validation) = &mut self.validation {
            validation.on_sent(now, leaving.transmit.len, round_time);
        }
        Some(leaving)
    }

    fn transmit_close(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Leaving> {
        let State::Closing { code, reason, .. } = &self.state else {
            return None;
        };
        let (code, reason) = (*code, reason.clone());
        let mut writer = Writer::new(&mut buffer[..usize::from(MTU_MIN) - TAG_LEN]);
        let mut draft = self.draft(&mut writer);
        // (One that was kept may say what became of the last messages.)
        self.write_answer(now, &draft, &mut writer);
        Frame::Close {
            code: code.0,
            reason: reason.as_bytes(),
        }
        .encode(&mut writer);
        draft.len = writer.finish()?;
        Some(self.seal(now, draft, self.path.route, buffer))
    }

    /// Goes on with the next keys when it is time, and the peer has seen the current ones.
    fn update_keys(&mut self, now: Instant, shared: &Shared<'_>) {
        let next = self.sent.next_number();
        let is_seen = self
            .largest_acked
            .is_some_and(|acked| acked >= self.keys.first_number);
        let is_peer_ahead = self.keys.open.generation() > self.keys.seal.generation();
        let is_worn = next - self.keys.first_number >= shared.config.key_update_packets;
        // A side that only acknowledges hears nothing of its packets unless it asks.
        self.control.ping |= is_worn && !is_seen && next.is_multiple_of(64);
        if is_peer_ahead || (is_worn && is_seen && self.keys.forget_at.is_none_or(|at| now >= at)) {
            self.keys
                .seal
                .update(&*shared.config.aead, self.keys.algorithm);
            self.keys.first_number = next;
            self.statistics.key_updates += 1;
        }
    }
}
