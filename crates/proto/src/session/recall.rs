//! Messages taken back before they were seen to arrive: cancelled, superseded, given up. What is queued goes; what is on its way is
//! not repaired any more; the peer is told not to wait; and every message gets its outcome.

use core::time::Duration;

use super::cut::{block_entry, encode};
use super::prices::is_lost_in_full;
use super::{Event, Run, Session, Shared, State};
use crate::limits::{ABANDON_MAX, BLOCK_WINDOW, SEND_QUEUE_MAX};
use crate::message::{Block, Body, Course, Fate, OutgoingMessage};
use crate::schedule::Item;
use crate::stream::{
    Cancel, Delivery, MessageId, MissReason, Outcome, SendOptions, StreamId, WhenLate,
};
use crate::time::Instant;
use crate::wire::{Order, Preamble};

impl Session {
    /// Takes a message back.
    pub(crate) fn cancel(
        &mut self,
        now: Instant,
        message: MessageId,
        shared: &mut Shared<'_>,
    ) -> Cancel {
        let slot = self.traffic.outbox.find(message).filter(|slot| {
            self.traffic
                .outbox
                .message(*slot)
                .is_some_and(|message| message.fate.is_open())
        });
        let Some(slot) = slot else {
            return Cancel::TooLate;
        };
        // What was taken for lost may still arrive.
        let has_left = self.has_left(slot);
        let result = if self.retire(now, slot, Fate::Cancelled, shared) && !has_left {
            Cancel::Dropped
        } else {
            Cancel::InFlight
        };
        self.after_outcome(now, shared);
        result
    }

    /// Whether enough of a message was sent for the peer to have it, whatever is thought to be lost.
    fn has_left(&self, slot: u32) -> bool {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return false;
        };
        let has_left = |number: &u64| {
            self.traffic
                .outbox
                .block(*number)
                .is_some_and(Block::has_left)
        };
        message.is_all_cut() && message.live_blocks().iter().all(has_left)
    }

    /// A message of a `Latest` stream is accepted: an older one with its key is not wanted any more.
    pub(super) fn supersede_key(
        &mut self,
        now: Instant,
        stream: StreamId,
        key: u64,
        shared: &mut Shared<'_>,
    ) {
        let streams = &self.traffic.streams;
        if let Some(slot) = streams.get(stream).and_then(|stream| stream.newest_of(key)) {
            self.retire(now, slot, Fate::Superseded, shared);
            self.after_outcome(now, shared);
        }
    }

    /// A message of a sequenced stream begins: older ones would come too late.
    pub(super) fn supersede_sequenced(&mut self, now: Instant, slot: u32, shared: &mut Shared<'_>) {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return;
        };
        if message.delivery != Delivery::UnreliableSequenced || message.first_block.is_some() {
            return;
        }
        let (stream, id) = (message.stream, message.id);
        while let Some(older) = self.queued_before(stream, id) {
            self.retire(now, older, Fate::Superseded, shared);
        }
        while let Some(older) = self.unfilled_before(stream, id) {
            self.retire(now, older, Fate::Superseded, shared);
        }
        // Those on their way are not repaired any more; one is enough to look at, the others were told by it.
        let last = self
            .traffic
            .streams
            .get_mut(stream)
            .and_then(|stream| stream.newest_of(0));
        if let Some(last) = last.filter(|last| *last != slot) {
            self.retire(now, last, Fate::Superseded, shared);
        }
        if let Some(stream) = self.traffic.streams.get_mut(stream) {
            stream.set_newest(0, slot);
        }
        self.after_outcome(now, shared);
    }

    /// A message of the stream that waits in the schedule, is older than `id` and can have its place taken. (What an ordered stream of this number says
    /// of its last messages cannot.)
    fn queued_before(&self, stream: StreamId, id: MessageId) -> Option<u32> {
        let outbox = &self.traffic.outbox;
        self.traffic
            .schedule
            .entries_of(stream)
            .filter(|entry| entry.position < id.0)
            .filter_map(|entry| match entry.item {
                Item::Message(slot) => Some(slot),
                Item::Block(number) => outbox.block(number).map(|block| block.message),
            })
            .find(|slot| {
                outbox
                    .message(*slot)
                    .is_some_and(|message| message.fate.is_open())
            })
    }

    /// A message of the stream that was begun before `id` and still has no content.
    fn unfilled_before(&self, stream: StreamId, id: MessageId) -> Option<u32> {
        let first = self.traffic.streams.get(stream)?.first_unfilled()?;
        (first < id)
            .then(|| self.traffic.outbox.find(first))
            .flatten()
    }

    /// Nothing more of a message is sent. `true` when it has its outcome with that; otherwise it may still arrive with what is
    /// on its way.
    fn retire(&mut self, now: Instant, slot: u32, fate: Fate, shared: &mut Shared<'_>) -> bool {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return true;
        };
        if !message.fate.is_open() {
            return false;
        }
        let may_arrive = message.is_all_cut();
        let numbers = message.live_blocks();
        if !may_arrive || !numbers.iter().all(|number| self.may_complete(*number)) {
            let outcome = self.outcome_of(now, slot, fate);
            self.give_up_message(slot, outcome, shared);
            return true;
        }
        let answered_by = self.round_end(now, 0, Duration::ZERO);
        for number in numbers {
            self.unschedule_block(number);
            if let Some(block) = self.traffic.outbox.block_mut(number) {
                block.send_no_more(answered_by);
            }
            self.arm(number);
        }
        if let Some(message) = self.traffic.outbox.message_mut(slot) {
            message.fate = fate;
        }
        false
    }

    /// None of a block's symbols is to be sent.
    pub(super) fn unschedule_block(&mut self, number: u64) {
        self.take_off_schedule(number);
        if let Some(block) = self.traffic.outbox.block_mut(number) {
            block.flight.to_send = 0;
            block.flight.pauses.resumes_at = None;
        }
    }

    /// A block that has symbols to send gets its place in the schedule.
    pub(super) fn schedule_block(&mut self, number: u64) {
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        if block.flight.to_send == 0 || core::mem::replace(&mut block.is_scheduled, true) {
            return;
        }
        if let Some(block) = self.traffic.outbox.block(number)
            && let Some(message) = self.traffic.outbox.message(block.message)
        {
            let entry = block_entry(message, block);
            self.traffic.schedule.push(message.stream, entry);
        }
    }

    /// Its place is given up.
    pub(super) fn take_off_schedule(&mut self, number: u64) {
        let Some(block) = self.traffic.outbox.block_mut(number) else {
            return;
        };
        if !core::mem::replace(&mut block.is_scheduled, false) {
            return;
        }
        if let Some(block) = self.traffic.outbox.block(number)
            && let Some(message) = self.traffic.outbox.message(block.message)
        {
            let entry = block_entry(message, block);
            self.traffic.schedule.remove(message.stream, &entry);
        }
    }

    /// The deadline of a message has passed that is not to be delivered late: nothing more of it is sent. What is on its way may have arrived in time, so the answer, or its
    /// round's end, says what became of it. (What waits for an ordered message waits no longer than it must: its outcome comes at once.)
    pub(super) fn expire(&mut self, now: Instant, slot: u32, shared: &mut Shared<'_>) {
        let message = self.traffic.outbox.message(slot);
        if message.is_some_and(|message| message.delivery == Delivery::ReliableOrdered) {
            self.drop_late(now, slot, shared);
        } else if self.retire(now, slot, Fate::Expired, shared) {
            self.after_outcome(now, shared);
        }
    }

    /// A message's own time or only flight is over, and it was not complete.
    pub(super) fn drop_late(&mut self, now: Instant, slot: u32, shared: &mut Shared<'_>) {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return;
        };
        let outcome = self.outcome_of(now, slot, message.fate);
        self.give_up_message(slot, outcome, shared);
        self.after_outcome(now, shared);
    }

    /// The outcome of a message with this fate that did not arrive.
    fn outcome_of(&self, now: Instant, slot: u32, fate: Fate) -> Outcome {
        let message = self.traffic.outbox.message(slot);
        match fate {
            Fate::Superseded => Outcome::Superseded,
            Fate::Cancelled => Outcome::Cancelled {
                sent: message.is_some_and(|message| message.course.first_sent_at.is_some()),
            },
            Fate::Going | Fate::Void | Fate::Expired => Outcome::Dropped {
                why: self.miss_reason(now, slot),
            },
        }
    }

    /// Takes a message out without its delivery having been seen; the peer is told not to wait.
    pub(super) fn give_up_message(&mut self, slot: u32, outcome: Outcome, shared: &mut Shared<'_>) {
        self.dequeue(slot);
        let Some(message) = self.traffic.outbox.message(slot) else {
            return;
        };
        let is_large = matches!(&message.body, Body::Large(large) if large.has_begun());
        let first_block = message.first_block;
        let mut was_sent = message.course.first_sent_at.is_some();
        for number in message.live_blocks() {
            self.unschedule_block(number);
            if let Some(block) = self.traffic.outbox.remove_block(number) {
                if block.sent > 0 && !(is_large && Some(number) == first_block) {
                    self.abandon(number, false);
                }
                was_sent |= block.sent > 0;
                shared.pool.give(block.symbols.data);
            }
        }
        if is_large
            && was_sent
            && let Some(first) = first_block
        {
            // The first block stands for the message.
            self.abandon(first, true);
        }
        let is_closing = matches!(
            outcome,
            Outcome::Dropped {
                why: MissReason::Closed
            }
        );
        let Some(mut message) = self.traffic.outbox.remove_message(slot) else {
            return;
        };
        match &mut message.body {
            Body::Whole(data) => shared.pool.give(core::mem::take(data)),
            // What waited for it to go on may go on.
            Body::Large(_) if !is_closing => self.tell_writable(),
            Body::Large(_) | Body::Cut => {}
        }
        self.statistics.messages_dropped += u64::from(message.fate != Fate::Void);
        if let Some(sequence) = message.sequence.filter(|_| !is_closing) {
            self.send_void(&message, sequence, shared);
        }
        self.resolve(slot, &message, outcome, shared);
    }

    /// Tells the application, and the stream, what became of a message that is gone from the outbox.
    pub(super) fn resolve(
        &mut self,
        slot: u32,
        message: &OutgoingMessage,
        outcome: Outcome,
        shared: &mut Shared<'_>,
    ) {
        if message.fate == Fate::Void {
            return;
        }
        if message.deadline.is_some() {
            self.learn_from(message, &outcome, shared);
        }
        let held = message.held();
        self.traffic.streams.on_resolved(message.stream, held);
        let predicted = message.deadline.map(|_| message.predicted_on_time);
        // (As streams count them: what the end of the session cuts off is neither.)
        let is_kept_or_missed = !matches!(
            outcome,
            Outcome::Superseded
                | Outcome::Cancelled { .. }
                | Outcome::Dropped {
                    why: MissReason::Closed
                }
        );
        let told = predicted.filter(|_| is_kept_or_missed);
        if let Some(stream) = self.traffic.streams.get_mut(message.stream) {
            match message.delivery {
                Delivery::Latest => stream.forget_newest(message.options.key, slot),
                Delivery::UnreliableSequenced => {
                    stream.forget_newest(0, slot);
                    stream.forget_unfilled(message.id);
                }
                Delivery::ReliableOrdered => {
                    if stream.forget_unfilled(message.id) {
                        self.traffic.schedule.wake(message.stream);
                    }
                }
                Delivery::Unreliable | Delivery::Reliable => {}
            }
            stream.stats.on_outcome(&outcome, predicted);
            if let Some(on_time) = predicted.filter(|_| told.is_some() || is_lost_in_full(message))
            {
                let is_missed = !matches!(outcome, Outcome::OnTime { .. });
                stream.surprise.on_outcome(is_missed, 1.0 - on_time);
            }
        }
        if let Some(on_time) = told {
            self.statistics.messages_promised += 1;
            self.statistics.predicted_misses += 1.0 - on_time;
        }
        self.traffic.events.push(Event::Outcome {
            stream: message.stream,
            message: message.id,
            outcome,
        });
    }

    /// An ordered stream will not have the message of this sequence number: says so, for certain.
    fn send_void(&mut self, message: &OutgoingMessage, sequence: u64, shared: &mut Shared<'_>) {
        let preamble = Preamble::First {
            stream: message.stream.0,
            order: Order::Void(sequence as u16),
            message_len: 0,
        };
        let (slot, _) = self.traffic.outbox.insert_message(OutgoingMessage {
            id: message.id,
            fate: Fate::Void,
            len: 0,
            body: Body::Whole(encode(&preamble, &[], shared.pool)),
            deadline: None,
            options: SendOptions {
                when_late: WhenLate::Deliver,
                ..SendOptions::default()
            },
            first_block: None,
            course: Course::default(),
            ..*message
        });
        self.enqueue(slot);
    }

    /// Joins runs of which the peer has not been told where all between them is over: one frame then tells of hundreds. (Four runs a round trip were told, and
    /// a lossy path makes more than that: blocks half received filled the peer's room.) O(runs + blocks between them).
    pub(super) fn join_abandoned(&mut self) {
        if self.control.abandon_told.is_some() {
            return;
        }
        // Their first blocks may be over, and they are given up by these.
        let begun = self.traffic.outbox.large_in_progress();
        let runs = self.control.abandoned.make_contiguous();
        runs.sort_by_key(|run| run.first);
        let mut kept = 0;
        for index in 1..runs.len() {
            let (last, next) = (runs[kept], runs[index]);
            let (end, next_end) = (last.first + last.count, next.first + next.count);
            let is_near = next_end.saturating_sub(last.first) <= BLOCK_WINDOW;
            let between = end..next.first;
            let is_over = |number| self.traffic.outbox.block(number).is_none();
            let begins_one = begun.iter().any(|first| between.contains(first));
            if !last.is_large
                && !next.is_large
                && is_near
                && !begins_one
                && between.clone().all(is_over)
            {
                runs[kept].count = end.max(next_end) - last.first;
            } else {
                kept += 1;
                runs[kept] = next;
            }
        }
        self.control.abandoned.truncate(kept + 1);
    }

    /// Tells the peer not to wait for a block. `is_large`: nor for the message of several that begins with it.
    fn abandon(&mut self, number: u64, is_large: bool) {
        if self.control.abandoned.len() >= ABANDON_MAX {
            self.join_abandoned();
        }
        let waiting = &mut self.control.abandoned;
        let len = waiting.len();
        // The run that is being told is not changed under way.
        let is_fixed = self
            .control
            .abandon_told
            .is_some_and(|told| usize::from(told.1) == len);
        match waiting.back_mut() {
            Some(last)
                if last.first + last.count == number
                    && !is_fixed
                    && last.is_large == is_large
                    && !is_large =>
            {
                last.count += 1;
            }
            _ if len < ABANDON_MAX || is_large => waiting.push_back(Run {
                first: number,
                count: 1,
                is_large,
            }),
            // Untold, it only takes room at the peer until its window has passed it.
            _ => {}
        }
    }

    /// After outcomes: tells that there is room, and ends a session that waited for the last one.
    pub(super) fn after_outcome(&mut self, now: Instant, shared: &mut Shared<'_>) {
        let outbox = &self.traffic.outbox;
        if outbox.is_empty() {
            self.traffic.timers.clear();
        }
        self.tell_writable_when_roomy();
        self.close_when_finished(now, shared);
    }

    /// Tells once that there is room, when somebody was told that there was none.
    pub(super) fn tell_writable_when_roomy(&mut self) {
        let is_over = matches!(self.state, State::Closing { .. } | State::Closed);
        if !is_over && self.traffic.outbox.held_bytes() * 2 < SEND_QUEUE_MAX {
            self.tell_writable();
        }
    }

    /// A large message that is appended to has room again, or others of its stream have that waited until all of it was cut.
    pub(super) fn tell_writable_when_wanted(&mut self, slot: u32) {
        let wants = matches!(
            self.traffic.outbox.message(slot).map(|message| &message.body),
            Some(Body::Large(large)) if large.wants_content() || large.is_all_cut()
        );
        if wants {
            self.tell_writable();
        }
    }

    /// Tells who was told that there was no room to ask again.
    fn tell_writable(&mut self) {
        if core::mem::take(&mut self.traffic.was_full) {
            self.traffic.events.push(Event::Writable);
        }
    }
}
