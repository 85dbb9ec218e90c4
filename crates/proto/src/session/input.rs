//! A packet in: opened, then a line for each frame to the part that it concerns.

use alloc::vec::Vec;
use core::time::Duration;

use super::{CloseCode, CloseReason, Event, Piece, Role, Session, Shared, State};
use crate::endpoint::{Ecn, Route};
use crate::limits::{ABANDONS_PER_PACKET, EVENTS_MAX, IDLE_TIMEOUT_MIN, SYMBOLS_PER_PACKET_MAX};
use crate::message::{Head, Ready, Taken};
use crate::path::{Path, Validation};
use crate::stream::{Arrived, StreamId, Verdict};
use crate::time::Instant;
use crate::wire::{DecodeError, Frame, Header, Order, Reader, Symbol};

/// What a packet asked for besides what its frames did.
#[derive(Default)]
struct Contents {
    /// It asks to be acknowledged.
    is_eliciting: bool,
    /// There was no room for a symbol: the packet counts as not received.
    is_refused: bool,
    acks: usize,
    abandons: usize,
    symbols: usize,
}

impl Contents {
    /// Frames that cost more to process than to send are few in a packet.
    fn count(&mut self, frame: &Frame<'_>) -> Result<(), DecodeError> {
        self.acks += usize::from(matches!(frame, Frame::Ack(_)));
        self.abandons += usize::from(matches!(frame, Frame::Abandon { .. }));
        self.symbols += usize::from(matches!(frame, Frame::Symbol(_)));
        if self.acks > 1
            || self.abandons > ABANDONS_PER_PACKET
            || self.symbols > SYMBOLS_PER_PACKET_MAX
        {
            return Err(DecodeError::Invalid {
                field: "frame count",
            });
        }
        Ok(())
    }
}

impl Session {
    /// Takes in a protected packet for this session. `false` when it was not authentic: nothing has changed then.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        route: Route,
        ecn: Ecn,
        header: &Header,
        datagram: &mut [u8],
        shared: &mut Shared<'_>,
    ) -> bool {
        self.path.timer_lag = shared.experience.timer_lag.get();
        let number = header.number(self.received.expected());
        if !self.received.is_new(number) {
            self.statistics.packets_replayed += 1;
            return false;
        }
        let Some(len) = self.open_packet(now, number, header, datagram, shared) else {
            self.statistics.packets_forged += 1;
            return false;
        };
        self.statistics.packets_received += 1;
        // (What was refused before is no sign of life: it may come again from anybody.)
        if number >= self.liveness.not_refused_from {
            let waited = now.since(self.liveness.last_received);
            self.liveness.keep_alive.on_received(waited);
            self.liveness.last_received = now;
        }
        let header_len = header.encoded_len();
        let content = &datagram[header_len..header_len + len];
        if self.is_ending(now, number, content) {
            return true;
        }
        self.confirm(now);
        let is_newest = number >= self.received.expected();
        let mut contents = Contents::default();
        let result = self.handle_frames(now, number, content, &mut contents, shared);
        if let Err(error) = result {
            // The peer holds the keys, so this is its mistake, not noise.
            self.statistics.packets_malformed += 1;
            self.protocol_error(now, &error, shared);
            return true;
        }
        if !self.is_open() {
            // What it holds behind that was not looked at: it must not pass for received.
            return true;
        }
        if contents.is_refused {
            self.statistics.packets_refused += 1;
            let liveness = &mut self.liveness;
            liveness.not_refused_from = liveness.not_refused_from.max(number + 1);
            // Refused, not gone: the peer is told now and then, or it would take the path for dead.
            self.control.ping |= now.since(self.liveness.last_sent) >= IDLE_TIMEOUT_MIN / 4;
            return true;
        }
        self.note_received(now, number, ecn, contents.is_eliciting);
        if contents.is_eliciting {
            self.path.heard.record(now, datagram.len());
        }
        if self.role == Role::Server && is_newest {
            self.note_route(now, route, datagram.len(), shared);
        }
        true
    }

    /// Opens a packet in place; answers how long its content is, that follows the header.
    fn open_packet(
        &mut self,
        now: Instant,
        number: u64,
        header: &Header,
        datagram: &mut [u8],
        shared: &Shared<'_>,
    ) -> Option<usize> {
        if self.keys.forget_at.is_some_and(|at| now >= at) {
            self.keys.open.forget_previous();
            self.keys.forget_at = None;
        }
        let phase = header.key_phase;
        if self.keys.open.is_of_next(number, phase) && !self.keys.may_be_ahead() {
            // A generation for each of its packets would cost as much as a handshake.
            return None;
        }
        let opened = self.keys.open.open(
            &*shared.config.aead,
            self.keys.algorithm,
            number,
            phase,
            datagram,
            header.encoded_len(),
        );
        let opened = opened.ok()?;
        if opened.updated {
            self.keys.is_named = false;
            self.keys.forget_at = Some(now + self.path.round_time() * 3);
        }
        Some(opened.len)
    }

    /// While closing, whatever comes is answered with CLOSE, once, and not looked at: nor does it pass for received. But not the peer's own, or two that end together
    /// answer each other.
    fn is_ending(&mut self, now: Instant, number: u64, content: &[u8]) -> bool {
        match &mut self.state {
            State::Closed => true,
            State::Closing {
                is_due,
                until,
                answered_below,
                ..
            } => {
                let (mut reader, next_number) = (Reader::new(content), self.sent.next_number());
                // (Not the first: an acknowledgement may stand before it.)
                let is_close =
                    core::iter::from_fn(|| Frame::decode(&mut reader, next_number).ok()?)
                        .any(|frame| matches!(frame, Frame::Close { .. }));
                if number >= *answered_below {
                    *is_due |= now < *until && !is_close;
                    *answered_below = number + 1;
                }
                true
            }
            _ => false,
        }
    }

    /// The first packet that opens shows that the client holds the keys and received the ACCEPT.
    fn confirm(&mut self, now: Instant) {
        if let State::Unconfirmed {
            accept_sent_at,
            identity,
        } = &mut self.state
        {
            let round_trip = accept_sent_at.map(|sent_at| now.since(sent_at));
            let identity = core::mem::take(identity);
            if let Some(round_trip) = round_trip {
                self.path.rtt.record(now, round_trip);
            }
            self.state = State::Open;
            self.traffic.events.push(Event::Connected { identity });
        }
    }

    fn handle_frames(
        &mut self,
        now: Instant,
        number: u64,
        content: &[u8],
        contents: &mut Contents,
        shared: &mut Shared<'_>,
    ) -> Result<(), DecodeError> {
        let mut reader = Reader::new(content);
        while let Some(frame) = Frame::decode(&mut reader, self.sent.next_number())? {
            contents.is_eliciting |= !matches!(frame, Frame::Ack(_) | Frame::Close { .. });
            contents.count(&frame)?;
            match frame {
                Frame::Ping => {}
                Frame::Ack(ack) => self.handle_ack(now, number, &ack, shared),
                Frame::Abandon { first, count } => {
                    self.traffic.inbox.handle_abandon(first, count, shared.pool);
                    self.hand_on(shared)?;
                }
                Frame::PathChallenge(data) => {
                    self.liveness.keep_alive.on_challenged();
                    self.control.path_response = Some(data);
                }
                Frame::PathResponse(data) => self.handle_path_response(now, data, shared),
                Frame::Close { code, reason } => {
                    // It may end on an operator's terminal, which control characters would steer.
                    let reason = alloc::string::String::from_utf8_lossy(reason)
                        .replace(char::is_control, "\u{fffd}");
                    self.end(
                        CloseReason::Peer {
                            code: CloseCode(code),
                            reason,
                        },
                        shared,
                    );
                    return Ok(());
                }
                Frame::Symbol(symbol) => self.handle_symbol(now, &symbol, contents, shared)?,
            }
            if !self.is_open() {
                // An acknowledgement was what the session waited for to end: nothing follows its last event.
                return Ok(());
            }
        }
        Ok(())
    }

    fn handle_symbol(
        &mut self,
        now: Instant,
        symbol: &Symbol<'_>,
        contents: &mut Contents,
        shared: &mut Shared<'_>,
    ) -> Result<(), DecodeError> {
        if self.traffic.events.len() >= EVENTS_MAX {
            self.traffic.inbox.pass_over(symbol, shared.pool);
            contents.is_refused = true;
            return Ok(());
        }
        let room = self.traffic.room(shared.share);
        match self.traffic.inbox.handle_symbol(symbol, room, shared.pool) {
            Taken::Kept => {}
            Taken::Duplicate => {
                self.statistics.symbols_duplicate += 1;
                let (block, bytes) = (symbol.truncated_block, symbol.data.len());
                self.ack.on_wasted(now, block, bytes, &self.path.rtt);
            }
            Taken::Refused => contents.is_refused = true,
            Taken::Malformed => return Err(DecodeError::Invalid { field: "symbol" }),
            Taken::Ready => {
                self.ack.on_done(now, symbol.truncated_block);
                self.hand_on(shared)?;
            }
        }
        Ok(())
    }

    /// Hands on what is complete, as far as its stream's mode allows.
    fn hand_on(&mut self, shared: &mut Shared<'_>) -> Result<(), DecodeError> {
        while let Some(ready) = self.traffic.inbox.pop_ready() {
            match ready {
                Ready::Message(arrived) => self.hand_on_message(arrived, shared)?,
                Ready::Piece {
                    head,
                    first_block,
                    offset,
                    data,
                } => self.hand_on_piece(head, first_block, offset, data, shared)?,
                Ready::Aborted {
                    stream,
                    first_block,
                } => self.push_aborted(stream, first_block),
            }
        }
        Ok(())
    }

    fn hand_on_message(
        &mut self,
        arrived: Arrived,
        shared: &mut Shared<'_>,
    ) -> Result<(), DecodeError> {
        let (stream, order, first_block) = (arrived.stream, arrived.order, arrived.first_block);
        match self.traffic.incoming.judge(stream, order, first_block) {
            Verdict::Now => {
                if matches!(order, Order::Void(_)) {
                    shared.pool.give(arrived.data);
                } else {
                    self.push_message(stream, arrived.data);
                }
                self.on_handed_on(stream, order, first_block, shared);
            }
            Verdict::Later => self.traffic.incoming.wait(arrived),
            Verdict::Never => {
                self.statistics.messages_stale += 1;
                shared.pool.give(arrived.data);
            }
            Verdict::Malformed => return Err(DecodeError::Invalid { field: "sequence" }),
        }
        Ok(())
    }

    fn hand_on_piece(
        &mut self,
        head: Head,
        first_block: u64,
        offset: usize,
        data: Vec<u8>,
        shared: &mut Shared<'_>,
    ) -> Result<(), DecodeError> {
        let (stream, order) = (head.stream, head.order);
        if offset == 0 {
            match self.traffic.incoming.judge(stream, order, first_block) {
                Verdict::Now => {
                    // It supersedes others from now on, and those behind it follow when it is whole.
                    if !matches!(order, Order::Sequence(_)) {
                        self.on_handed_on(stream, order, first_block, shared);
                    }
                }
                Verdict::Never => {
                    self.statistics.messages_stale += 1;
                    self.traffic.inbox.drop_message(first_block, shared.pool);
                    shared.pool.give(data);
                    return Ok(());
                }
                // A sender begins such a message when it is its turn.
                Verdict::Later | Verdict::Malformed => {
                    return Err(DecodeError::Invalid { field: "sequence" });
                }
            }
        }
        let piece = Piece::Data {
            stream: StreamId(stream),
            message: first_block,
            offset,
            message_len: head.message_len,
            data,
        };
        let is_last = piece.is_last();
        self.traffic.events.push(Event::Piece(piece));
        if is_last {
            self.statistics.messages_received += 1;
            if matches!(order, Order::Sequence(_)) {
                self.on_handed_on(stream, order, first_block, shared);
            }
        }
        Ok(())
    }

    /// What waited for a message follows it; what it supersedes goes.
    fn on_handed_on(
        &mut self,
        stream: u16,
        order: Order,
        first_block: u64,
        shared: &mut Shared<'_>,
    ) {
        self.traffic
            .incoming
            .on_handed_on(stream, order, first_block);
        match order {
            Order::None => {}
            Order::Sequence(_) | Order::Void(_) => {
                if let Order::Void(sequence) = order {
                    // Its message may have begun in pieces; no more of it may follow.
                    let given_up = Order::Sequence(sequence);
                    let inbox = &mut self.traffic.inbox;
                    inbox.drop_superseded(stream, given_up, first_block, shared.pool);
                    // Before the messages that have waited for it.
                    while let Some((stream, first_block)) = self.traffic.inbox.pop_aborted() {
                        self.push_aborted(stream, first_block);
                    }
                }
                while let Some(data) = self.traffic.incoming.next(stream) {
                    self.push_message(stream, data);
                }
            }
            Order::Newest | Order::Key(_) => {
                self.traffic
                    .inbox
                    .drop_superseded(stream, order, first_block, shared.pool);
            }
        }
    }

    fn push_aborted(&mut self, stream: u16, first_block: u64) {
        self.traffic.events.push(Event::Piece(Piece::Aborted {
            stream: StreamId(stream),
            message: first_block,
        }));
    }

    fn push_message(&mut self, stream: u16, data: Vec<u8>) {
        self.statistics.messages_received += 1;
        self.traffic.events.push(Event::Message {
            stream: StreamId(stream),
            data,
        });
    }

    fn note_received(&mut self, now: Instant, number: u64, ecn: Ecn, is_eliciting: bool) {
        if number >= self.received.expected() {
            self.ack.largest_at = now;
        }
        let settled = self.received.record(number);
        for _ in 0..settled.lost {
            self.path.incoming_loss.record(true);
        }
        for _ in 0..settled.arrived {
            self.path.incoming_loss.record(false);
        }
        if settled.was_lost {
            self.path.incoming_loss.correct();
        }
        // What the application takes too slowly is a queue like any other of the path, and marked before it overflows (decision 0005).
        let is_marked = ecn == Ecn::Ce || self.traffic.events.has_become_fuller();
        self.ack.ce_count += u64::from(is_marked);
        self.ack.on_received(is_eliciting);
    }

    /// The peer broke the protocol: the session ends.
    fn protocol_error(&mut self, now: Instant, error: &DecodeError, shared: &mut Shared<'_>) {
        use alloc::string::ToString;
        self.close(now, CloseCode::PROTOCOL, &error.to_string(), shared);
    }

    /// The newest authentic packet of a client came this way. From another address the client has moved, or somebody forwards its
    /// packets: that one is tried, and used once the client has shown that it receives there. A client's server does not move.
    fn note_route(&mut self, now: Instant, route: Route, bytes: usize, shared: &mut Shared<'_>) {
        if route.remote == self.path.route.remote {
            self.path.route = route;
            return;
        }
        let is_known = self
            .validation
            .as_ref()
            .is_some_and(|validation| validation.route.remote == route.remote);
        if !is_known {
            self.validation = Some(Validation::new(route, shared.entropy.array(), now));
        }
        if let Some(validation) = &mut self.validation {
            validation.on_received(bytes);
        }
    }

    fn handle_path_response(&mut self, now: Instant, data: [u8; 8], shared: &mut Shared<'_>) {
        let Some(validation) = self
            .validation
            .take_if(|validation| validation.challenge == data)
        else {
            return;
        };
        self.statistics.address_changes += 1;
        // The peer counts marks over the whole session.
        let congestion_marks = self.path.congestion_marks;
        // Nothing measured on the old path holds on the new one. What is under way there is lost, and goes again now.
        self.path = Path::new(
            now,
            validation.route,
            self.path.mtu.max(),
            shared.experience,
        );
        self.path.congestion_marks = congestion_marks;
        self.path.mtu.follow_another();
        self.liveness.losses_since = None;
        self.liveness.latest_rtt = Duration::ZERO;
        if let Some(round_trip) = validation.round_trip(now) {
            self.path.rtt.record(now, round_trip);
        }
        self.clock = crate::clock::ClockOffset::default();
        self.liveness.darkness.on_answered();
        self.restart_rounds(now, shared);
    }
}
