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
/// Misses over which it is learned how many of them losses are not to blame for.
const LEARNED_OVER: f32 = 16.0;

/// A message that was missed, as far as is known for losses.
#[derive(Clone, Copy, Debug)]
struct Blamed {
    /// Its first block, and only one: messages of several stay blamed on losses.
    block: u64,
    deadline: Instant,
    chances: Chances,
    stream: StreamId,
    miss_target: f32,
    /// As so much of a miss it was counted.
    counted: f32,
}

/// What a miss that was counted is now known to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    pub(super) stream: StreamId,
    pub(super) miss_target: f32,
    /// By so much of a miss more was missed than was counted; or less.
    pub(super) correction: f32,
}

/// The last misses that losses are blamed for, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Blame {
    blamed: VecDeque<Blamed>,
    /// The share of them that losses were not to blame for, lately.
    excused_share: f32,
}

impl Blame {
    /// Losses are blamed for what this message has missed: by how much less it counts, as long as that is not known, and what the oldest is taken for
    /// if it has to be forgotten.
    pub(super) fn note(&mut self, message: &OutgoingMessage) -> [Option<Judged>; 2] {
        let (Some(block), Some(deadline), Body::Whole(_) | Body::Cut) =
            (message.first_block, message.deadline, &message.body)
        else {
            return [None, None];
        };
        let is_full = self.blamed.len() >= REMEMBERED_MAX;
        let confirmed = if is_full { self.confirm_oldest() } else { None };
        let blamed = Blamed {
            block,
            deadline,
            chances: message.course.chances,
            stream: message.stream,
            miss_target: message.options.miss_target(),
            counted: 1.0 - self.excused_share,
        };
        self.blamed.push_back(blamed);
        let doubted = Judged {
            stream: blamed.stream,
            miss_target: blamed.miss_target,
            correction: -self.excused_share,
        };
        [Some(doubted), confirmed]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blamed.is_empty()
    }

    /// The oldest, if it was due before this instant: nothing more comes of that, and losses were to blame.
    pub(super) fn confirm_before(&mut self, before: Instant) -> Option<Judged> {
        let is_over = |oldest: &Blamed| oldest.deadline < before;
        let is_any = self.blamed.front().is_some_and(is_over);
        if is_any { self.confirm_oldest() } else { None }
    }

    fn confirm_oldest(&mut self) -> Option<Judged> {
        let oldest = self.blamed.pop_front()?;
        Some(self.judge(oldest, 1.0))
    }

    /// The deadline of the message with this block, if losses are blamed for it. O([`REMEMBERED_MAX`]), and at once where there are none.
    pub(super) fn deadline(&self, block: u64) -> Option<Instant> {
        self.find(block).map(|place| self.blamed[place].deadline)
    }

    /// A symbol is taken for lost that may be of such a message.
    pub(super) fn on_lost(&mut self, block: u64) {
        if let Some(place) = self.find(block) {
            self.blamed[place].chances.on_lost();
        }
    }

    /// A symbol of such a message has come: after it had been taken for lost, or too late although it had left early enough, or both.
    /// Losses may not be to blame any more.
    pub(super) fn on_symbol(
        &mut self,
        block: u64,
        was_lost: bool,
        is_delayed: bool,
    ) -> Option<Judged> {
        let place = self.find(block)?;
        let chances = &mut self.blamed[place].chances;
        if was_lost {
            chances.on_spurious_loss();
        }
        if is_delayed {
            chances.on_delayed();
        }
        if chances.miss_reason() == MissReason::Loss {
            return None;
        }
        let excused = self.blamed.remove(place)?;
        Some(self.judge(excused, 0.0))
    }

    fn judge(&mut self, blamed: Blamed, missed: f32) -> Judged {
        self.excused_share += (1.0 - missed - self.excused_share) / LEARNED_OVER;
        Judged {
            stream: blamed.stream,
            miss_target: blamed.miss_target,
            correction: missed - blamed.counted,
        }
    }

    fn find(&self, block: u64) -> Option<usize> {
        self.blamed.iter().rposition(|blamed| blamed.block == block)
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

    fn corrections(judged: impl IntoIterator<Item = Judged>) -> Vec<f32> {
        judged.into_iter().map(|judged| judged.correction).collect()
    }

    #[test]
    fn a_miss_is_excused_when_all_that_was_lost_has_come_too_late() {
        let mut blame = Blame::default();
        blame.blamed.extend([blamed(7, 1.0), blamed(8, 0.75)]);
        assert_eq!(blame.deadline(9), None);
        assert!(
            blame.on_symbol(8, true, true).is_none(),
            "the other is lost"
        );
        let excused = blame.on_symbol(8, true, true);
        assert_eq!(corrections(excused), [-0.75]);
        assert_eq!(blame.deadline(8), None, "that is over");
        assert!(blame.deadline(7).is_some());
        assert!((blame.excused_share - 1.0 / 16.0).abs() < 1e-6);
    }

    /// Of what was taken for lost after the message was over, too, one may come while the others do not.
    #[test]
    fn what_is_lost_after_its_message_counts_as_well() {
        let mut blame = Blame {
            blamed: [blamed(7, 1.0)].into(),
            ..Blame::default()
        };
        blame.blamed[0].chances.on_left_in_time();
        blame.on_lost(7);
        blame.on_lost(8);
        for _ in 0..2 {
            assert!(blame.on_symbol(7, true, true).is_none(), "one is lost");
        }
        assert!(blame.on_symbol(7, true, true).is_some());
    }

    #[test]
    fn a_miss_is_a_miss_when_nothing_more_can_come() {
        let mut blame = Blame {
            blamed: [blamed(7, 0.5), blamed(8, 0.5)].into(),
            excused_share: 0.5,
        };
        let before = Instant::from_micros(7500);
        let confirmed = core::iter::from_fn(|| blame.confirm_before(before));
        assert_eq!(corrections(confirmed), [0.5]);
        assert!(blame.excused_share < 0.5);
        assert_eq!(blame.blamed.len(), 1);
    }
}
