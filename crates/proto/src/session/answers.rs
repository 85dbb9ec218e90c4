//! Acknowledgements that we owe, those that wait for something to go with (decision 0013), and those that are said twice.
//!
//! A peer that repeats what has long arrived has not heard of it. What it wasted so pays for saying acknowledgements twice, until that is
//! spent: they are never repeated for more bytes than lost ones have cost (docs/notes/redundancy.md#silence). Only the last one before a pause is:
//! each holds all that those before it did.

use core::time::Duration;

use punctual_policy::ANSWERS_APART;

use crate::limits::ACK_KEPT_MAX;
use crate::path::Rtt;
use crate::time::Instant;

/// Bytes of a packet that holds an acknowledgement alone, with its headers.
const BYTES: u32 = 80;
/// Bytes of credit, at most: some dozens of repetitions.
const CREDIT_MAX: u32 = 4096;

/// Where our own queue is long, acknowledgements that nothing else takes along leave with such a part of it between them.
const QUEUE_PART: u32 = 4;

/// Blocks of which it is known when they were complete: those of a round trip of a stream that is thin enough to need this.
const DONE_KEPT: usize = 4;

/// What is to be acknowledged.
#[derive(Default)]
pub(super) struct PendingAck {
    pub(super) is_due: bool,
    /// It could have left before, by itself, and is kept until then.
    pub(super) kept_until: Option<Instant>,
    /// When the largest packet arrived.
    pub(super) largest_at: Instant,
    pub(super) ce_count: u64,
    /// When the last one left.
    left_at: Instant,
    /// When the last acknowledgement is said again.
    repeat_at: Option<Instant>,
    is_repetition: bool,
    /// Bytes that repetitions may cost.
    credit: u32,
    /// The blocks completed last, and when.
    done: [(u16, Instant); DONE_KEPT],
}

impl PendingAck {
    /// A block is complete.
    pub(super) fn on_done(&mut self, now: Instant, truncated_block: u16) {
        self.done.rotate_right(1);
        self.done[0] = (truncated_block, now);
    }

    /// A symbol came, of so many bytes, of a block that is done. It was sent for want of an acknowledgement if the block had been done for most
    /// of a round trip.
    pub(super) fn on_wasted(
        &mut self,
        now: Instant,
        truncated_block: u16,
        bytes: usize,
        rtt: &Rtt,
    ) {
        let most = rtt.smoothed() / 4 * 3;
        let is_repetition = |(block, done_at): &(u16, Instant)| {
            *block == truncated_block && *done_at > Instant::ZERO && now.since(*done_at) >= most
        };
        if rtt.is_known() && self.done.iter().any(is_repetition) {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.credit = self.credit.saturating_add(bytes).min(CREDIT_MAX);
        }
    }

    /// An acknowledgement leaves.
    pub(super) fn on_sent(&mut self, now: Instant) {
        (self.is_due, self.kept_until) = (false, None);
        self.left_at = now;
        if core::mem::take(&mut self.is_repetition) {
            self.credit = self.credit.saturating_sub(BYTES);
            self.repeat_at = None;
        } else {
            self.repeat_at = (self.credit >= BYTES).then(|| now + ANSWERS_APART);
        }
    }

    /// When one that is due leaves, if nothing leaves before that takes it along: it would wait in a queue that stands so long anyway, and make it longer.
    pub(super) fn leaves_at(&self, queue: Duration) -> Instant {
        self.left_at + (queue / QUEUE_PART).min(ACK_KEPT_MAX)
    }

    /// A packet came; whether it asks for one.
    pub(super) fn on_received(&mut self, is_eliciting: bool) {
        self.is_due |= is_eliciting;
        if is_eliciting && core::mem::take(&mut self.is_repetition) {
            // It has something new to say.
            self.kept_until = None;
        }
    }

    /// When the last one is to be repeated.
    pub(super) const fn repeat_at(&self) -> Option<Instant> {
        self.repeat_at
    }

    /// The time may have come to repeat the last one.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.repeat_at.take_if(|at| now >= *at).is_some() {
            self.is_repetition = !self.is_due;
            self.is_due = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    #[test]
    fn what_would_stand_in_a_queue_waits_for_a_part_of_it() {
        let ms = Duration::from_millis;
        let mut ack = PendingAck::default();
        ack.on_sent(at(100_000));
        ack.on_received(true);
        assert_eq!(ack.leaves_at(Duration::ZERO), at(100_000));
        assert_eq!(ack.leaves_at(ms(40)), at(110_000));
        assert_eq!(ack.leaves_at(ms(4000)), at(125_000));
    }

    #[test]
    fn what_was_wasted_pays_for_repetitions_and_no_more() {
        let mut rtt = Rtt::default();
        rtt.record(at(0), Duration::from_millis(60));
        let mut ack = PendingAck::default();
        ack.on_sent(at(0));
        assert_eq!(ack.repeat_at(), None, "nothing was wasted");
        ack.on_done(at(1000), 7);
        ack.on_wasted(at(6000), 7, 1000, &rtt);
        ack.on_wasted(at(70_000), 6, 1000, &rtt);
        ack.on_sent(at(70_000));
        assert_eq!(
            ack.repeat_at(),
            None,
            "of the same flight; of a block that is not known"
        );
        ack.on_wasted(at(70_000), 7, 200, &rtt);
        let mut repeated = 0;
        for ms in 0..10 {
            let now = at(100_000 * (ms + 1));
            ack.is_due = true;
            ack.on_sent(now);
            let Some(again) = ack.repeat_at() else {
                continue;
            };
            assert_eq!(again, now + ANSWERS_APART);
            ack.on_timeout(now);
            assert!(!ack.is_due, "not yet");
            ack.on_timeout(again);
            assert!(ack.is_due);
            ack.on_sent(again);
            assert_eq!(ack.repeat_at(), None, "twice is enough");
            repeated += 1;
        }
        assert_eq!(repeated, 2);
    }
}
