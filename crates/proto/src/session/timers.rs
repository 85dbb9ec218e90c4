//! When the session wants to be woken, and what it does then.

use core::cmp::Reverse;
use core::time::Duration;

use super::{CloseReason, Due, Liveness, Session, Shared, State, Tick};
use crate::limits::TIMER_GRANULARITY;
use crate::message::{Body, OutgoingMessage};
use crate::recovery::PacketState;
use crate::stream::MessageId;
use crate::time::{Instant, earliest};

/// A message that waits to be cut is looked at this often, at least.
const QUEUED_LOOK: Duration = Duration::from_secs(1);

impl Session {
    /// The earliest time at which something is due. May be early, never late.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Closed => return None,
            State::Closing { until, .. } => return Some(*until),
            _ => {}
        }
        let idle = self.idle_at();
        let keep_alive = self.keep_alive_at();
        let block = self.traffic.timers.peek().map(|entry| entry.0.0);
        let may_send = !self.is_stopped();
        let validation = (self.validation.as_ref()).map(|validation| validation.next_at(may_send));
        let probe = self
            .path
            .mtu
            .next_at()
            .filter(|_| may_send && self.may_probe() && !self.traffic.awaits_budget);
        let answers = self.ack.kept_until.filter(|_| may_send);
        let paced = self.traffic.paced_until.filter(|_| may_send);
        let abandon = self.abandon_held().filter(|_| may_send);
        [
            self.liveness.loss_at,
            idle,
            keep_alive,
            answers,
            self.ack.repeat_at(),
            block,
            self.sweep_at(),
            paced,
            abandon,
            validation,
            probe,
        ]
        .into_iter()
        .fold(None, earliest)
    }

    /// A packet that no round waits for any more is lost a little after the round time: its message may be complete. Where a queue outgrows that, not before
    /// answers as late as the latest would have come.
    fn sweep_at(&self) -> Option<Instant> {
        let (_, oldest) = self.sent.oldest_outstanding()?;
        let sent_at = oldest.sent_at;
        let round_time = self.path.round_time().max(self.liveness.patience);
        let wait = round_time + round_time / 8;
        let outgrows = !oldest.is_urgent && self.path.congestion.outgrows_round_time();
        let wait = if outgrows {
            wait.max(self.overdue_after())
        } else {
            wait
        };
        Some(sent_at + wait)
    }

    /// When the session ends unless something comes. One that is not confirmed yet is not its peer's to end: the endpoint counts it, and forgets it.
    fn idle_at(&self) -> Option<Instant> {
        let is_confirmed = !matches!(self.state, State::Unconfirmed { .. });
        is_confirmed.then(|| self.liveness.last_received + self.liveness.idle_timeout)
    }

    /// When the peer is asked for a sign of life.
    fn keep_alive_at(&self) -> Option<Instant> {
        let Liveness {
            keep_alive,
            last_received,
            ..
        } = &self.liveness;
        keep_alive.next_at(*last_received, self.path.round_time())
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, shared: &mut Shared<'_>) {
        self.path.timer_lag = shared.experience.timer_lag.get();
        match &self.state {
            State::Closed => return,
            State::Closing { until, .. } => {
                if now >= *until {
                    self.end(CloseReason::IdleTimeout, shared);
                }
                return;
            }
            _ => {}
        }
        if self.idle_at().is_some_and(|at| now >= at) {
            self.end(CloseReason::IdleTimeout, shared);
            return;
        }
        if self.keep_alive_at().is_some_and(|at| now >= at) {
            self.control.ping = true;
            self.liveness.keep_alive.on_asked(now);
        }
        self.validation
            .take_if(|validation| validation.is_over(now));
        self.ack.on_timeout(now);
        self.handle_due(now, shared);
        self.handle_loss_timer(now, shared);
        self.sweep(now, shared);
    }

    /// The earliest timer of a block is one that somebody waits for. Most blocks are complete before theirs, and nobody is woken for those.
    pub(crate) fn forget_timers(&mut self) {
        while let Some(&Reverse((at, Due::Block(number)))) = self.traffic.timers.peek() {
            let block = self.traffic.outbox.block(number);
            if block.is_some_and(|block| block.armed == Some(at)) {
                return;
            }
            self.traffic.timers.pop();
        }
    }

    fn handle_due(&mut self, now: Instant, shared: &mut Shared<'_>) {
        while let Some(&Reverse((at, due))) = self.traffic.timers.peek() {
            if at > now {
                return;
            }
            self.traffic.timers.pop();
            match due {
                Due::Block(number) => self.handle_due_block(now, at, number, shared),
                Due::Message(id) => self.handle_due_message(now, id, shared),
            }
        }
    }

    fn handle_due_block(
        &mut self,
        now: Instant,
        at: Instant,
        number: u64,
        shared: &mut Shared<'_>,
    ) {
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        if block.armed == Some(at) {
            block.armed = None;
        }
        let slot = block.message;
        if block.drop_at.is_some_and(|drop_at| now >= drop_at) {
            self.expire(now, slot, shared);
        } else if let Some(resumes_at) = block.flight.pauses.resumes_at {
            if now >= resumes_at {
                block.flight.pauses.resumes_at = None;
                self.schedule_block(number);
            }
        } else if block.flight.round_ends.is_some_and(|ends| now >= ends) {
            self.expire_round(now, number, shared);
        }
        self.arm_not_before(number, now + TIMER_GRANULARITY);
    }

    /// A message that waits to be cut is looked at again: its time may be over.
    fn handle_due_message(&mut self, now: Instant, id: MessageId, shared: &mut Shared<'_>) {
        let Some(slot) = self.traffic.outbox.find(id) else {
            return;
        };
        let drop_at = self
            .traffic
            .outbox
            .message(slot)
            .and_then(OutgoingMessage::drop_at);
        if drop_at.is_some_and(|drop_at| now >= drop_at) {
            self.expire(now, slot, shared);
        } else {
            self.arm_queued(now, slot);
        }
    }

    /// Sees to it that a message that is to be dropped at its deadline is, although it still waits to be cut.
    pub(super) fn arm_queued(&mut self, now: Instant, slot: u32) {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return;
        };
        if matches!(message.body, Body::Cut) {
            // Its block has a timer.
            return;
        }
        if let Some(drop_at) = message.drop_at() {
            // Entries of messages that are long gone stay in the heap until their time: not for longer than this.
            let at = drop_at.min(now + QUEUED_LOOK);
            self.traffic
                .timers
                .push(Reverse((at, Due::Message(message.id))));
        }
    }

    /// Until when sends wait for the rest of their tick; repairs never do.
    pub(super) fn held_for_tick(&mut self, now: Instant) -> Option<Instant> {
        let tick = self.traffic.tick.as_mut()?;
        let ends = tick.ends.filter(|ends| now < *ends);
        tick.ends = ends;
        ends.filter(|_| !self.traffic.schedule.has_blocks())
    }

    /// A message was accepted: in tick mode the tick's time runs from its first one.
    pub(super) fn note_tick(&mut self, now: Instant) {
        if let Some(tick) = &mut self.traffic.tick {
            tick.ends.get_or_insert(now + tick.max);
        }
    }

    /// From now on sends wait for [`Session::flush`], but not for longer than `max`; `None` lets each go at once.
    pub(crate) fn set_tick(&mut self, max: Option<Duration>) {
        self.traffic.tick = max.map(|max| Tick { max, ends: None });
    }

    /// The tick is over: what was sent in it goes.
    pub(crate) const fn flush(&mut self) {
        if let Some(tick) = &mut self.traffic.tick {
            tick.ends = None;
        }
    }

    fn sweep(&mut self, now: Instant, shared: &mut Shared<'_>) {
        let mut touched = core::mem::take(shared.touched);
        touched.clear();
        while self.sweep_at().is_some_and(|at| now >= at) {
            let Some((number, _)) = self.sent.oldest_outstanding() else {
                break;
            };
            let unanswered = number.saturating_sub(self.largest_acked.unwrap_or(0));
            let verdict = self.overdue(number, unanswered);
            self.lose_packet(now, number, verdict, &mut touched);
        }
        self.settle_flights(now, touched, shared);
        self.forget_settled(now);
    }

    /// The path is another one: all that is under way counts as lost, and every block begins a round on the new path.
    pub(super) fn restart_rounds(&mut self, now: Instant, shared: &mut Shared<'_>) {
        for number in self.sent.numbers() {
            match self.sent.get(number).map(|packet| packet.state) {
                Some(PacketState::Outstanding) => self.forget_packet(now, number),
                // Whatever the silence was, it was the old path's.
                Some(PacketState::LostInSilence) => {
                    self.sent.set_state(now, number, PacketState::LostByTime);
                }
                _ => {}
            }
        }
        for number in self.traffic.outbox.oldest_block()..self.traffic.outbox.next_block() {
            if let Some(block) = self.traffic.outbox.block_mut(number) {
                block.silence.forget_path();
                self.begin_round(now, number, shared);
            }
        }
    }

    /// A packet of the old path: no verdict on the new one.
    fn forget_packet(&mut self, now: Instant, number: u64) {
        self.sent.set_state(now, number, PacketState::LostByTime);
        if self.forget_told(number) {
            self.control.abandon_held = None;
        }
        for position in self.sent.symbols_of(number) {
            let symbol = self.sent.symbol(number, position);
            if let Some(block) = self.traffic.outbox.block_mut(symbol.block) {
                block.unaccounted = block.unaccounted.saturating_sub(1);
            }
        }
    }
}
