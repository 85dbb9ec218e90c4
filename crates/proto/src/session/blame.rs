//! Misses that losses were blamed for, while it may still turn out that they were none.
//!
//! Where delay comes and goes, what is sent last arrives first: packets before it are taken for lost, and the message that they belong to
//! is over when they come after all. What was blamed on losses was the delay's doing then, and no symbols would have
//! prevented it. To count it nevertheless raises the price, by which more symbols are sent, more of them overtaken, and more
//! misses blamed: over a recorded wire with 0.14 % of loss two symbols were followed by eight for a sixth of the misses that
//! were allowed.

use alloc::collections::VecDeque;

use crate::message::{Body, Chances, OutgoingMessage};
use crate::stream::{MissReason, StreamId};
use crate::time::Instant;

/// Misses that are remembered at most; of more the oldest stay blamed on losses. (A recorded delay made 38 messages in a row late.)
const REMEMBERED_MAX: usize = 64;

/// A message that was missed, as far as is known for losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blamed {
    block: u64,
    deadline: Instant,
    chances: Chances,
    pub(super) stream: StreamId,
    pub(super) miss_target: f32,
    /// As so much of a miss it was counted.
    pub(super) counted: f32,
}

impl Blamed {
    /// A message of one block with a deadline; of others losses stay to blame. It is counted as so much of a miss.
    pub(super) fn new(message: &OutgoingMessage, counted: f32) -> Option<Self> {
        if matches!(message.body, Body::Large(_)) {
            return None;
        }
        Some(Self {
            block: message.first_block?,
            deadline: message.deadline?,
            chances: message.course.chances,
            stream: message.stream,
            miss_target: message.options.miss_target(),
            counted,
        })
    }
}

/// The last misses that losses are blamed for, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Blame(VecDeque<Blamed>);

impl Blame {
    /// Losses are blamed for one more. The oldest comes back if it has to be forgotten: losses stay to blame for that.
    pub(super) fn note(&mut self, blamed: Blamed) -> Option<Blamed> {
        let is_full = self.0.len() >= REMEMBERED_MAX;
        let forgotten = if is_full { self.0.pop_front() } else { None };
        self.0.push_back(blamed);
        forgotten
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The oldest, if it was due before this instant: nothing more comes of that, and losses were to blame.
    pub(super) fn confirm_before(&mut self, before: Instant) -> Option<Blamed> {
        self.0.pop_front_if(|oldest| oldest.deadline < before)
    }

    /// The deadline of the message with this block, if losses are blamed for it. O([`REMEMBERED_MAX`]), and at once where there are none.
    pub(super) fn deadline(&self, block: u64) -> Option<Instant> {
        self.find(block).map(|place| self.0[place].deadline)
    }

    /// A symbol is taken for lost that may be of such a message.
    pub(super) fn on_lost(&mut self, block: u64) {
        if let Some(place) = self.find(block) {
            self.0[place].chances.on_lost();
        }
    }

    /// A symbol of such a message has come: after it had been taken for lost, or too late although it had left early enough, or both. The message
    /// comes back if losses are not to blame any more.
    pub(super) fn on_symbol(
        &mut self,
        block: u64,
        was_lost: bool,
        is_delayed: bool,
    ) -> Option<Blamed> {
        let place = self.find(block)?;
        let chances = &mut self.0[place].chances;
        if was_lost {
            chances.on_spurious_loss();
        }
        if is_delayed {
            chances.on_delayed();
        }
        if chances.miss_reason() == MissReason::Loss {
            return None;
        }
        self.0.remove(place)
    }

    fn find(&self, block: u64) -> Option<usize> {
        self.0.iter().rposition(|blamed| blamed.block == block)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// A message of one symbol, that was sent twice and taken for lost twice.
    fn blamed(block: u64, counted: f32) -> Blamed {
        let mut chances = Chances::default();
        chances.on_cut(1);
        for _ in 0..2 {
            chances.on_left_in_time();
            chances.on_lost();
        }
        Blamed {
            block,
            deadline: Instant::from_micros(1000 * block),
            chances,
            stream: StreamId::DEFAULT,
            miss_target: 0.001,
            counted,
        }
    }

    #[test]
    fn a_miss_is_excused_when_all_that_was_lost_has_come_too_late() {
        let mut blame = Blame([blamed(7, 1.0), blamed(8, 0.75)].into());
        assert_eq!(blame.deadline(9), None);
        assert!(
            blame.on_symbol(8, true, true).is_none(),
            "the other is lost"
        );
        let excused = blame.on_symbol(8, true, true).map(|it| it.counted);
        assert_eq!(excused, Some(0.75));
        assert_eq!(blame.deadline(8), None, "that is over");
        assert!(blame.deadline(7).is_some());
    }

    /// Of what was taken for lost after the message was over, too, one may come while the others do not.
    #[test]
    fn what_is_lost_after_its_message_counts_as_well() {
        let mut blame = Blame([blamed(7, 1.0)].into());
        blame.0[0].chances.on_left_in_time();
        blame.on_lost(7);
        blame.on_lost(8);
        for _ in 0..2 {
            assert!(blame.on_symbol(7, true, true).is_none(), "one is lost");
        }
        assert!(blame.on_symbol(7, true, true).is_some());
    }

    #[test]
    fn a_miss_is_a_miss_when_nothing_more_can_come() {
        let mut blame = Blame([blamed(7, 1.0), blamed(8, 1.0)].into());
        let before = Instant::from_micros(7500);
        let confirmed = core::iter::from_fn(|| blame.confirm_before(before));
        assert_eq!(confirmed.map(|it| it.block).sum::<u64>(), 7);
        assert!(blame.deadline(8).is_some());
    }

    #[test]
    fn of_more_than_are_remembered_the_oldest_are_misses() {
        let mut blame = Blame::default();
        let forgotten = (0..70).filter_map(|block| blame.note(blamed(block, 1.0)));
        assert_eq!(
            forgotten.map(|it| it.block).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5]
        );
    }
}
