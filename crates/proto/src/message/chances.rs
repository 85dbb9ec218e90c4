//! Whether a message could have been in time but for losses: what of it left, and arrived, when it still helped.

use crate::stream::MissReason;

/// Symbols of a message, as far as they say why it was late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chances {
    /// Symbols that rebuild the blocks that were cut so far.
    needed: u32,
    /// Symbols that left early enough to be in time on a fast path.
    left_in_time: u32,
    /// Symbols that arrived too late and had left early enough, as far as is known by then: of what a fast path takes, more than when they left.
    delayed: u32,
    /// Symbols that were taken for lost, and did not come after all.
    lost: u32,
}

impl Chances {
    /// A block of so many source symbols was cut.
    pub(crate) fn on_cut(&mut self, source_symbols: u8) {
        self.needed += u32::from(source_symbols);
    }

    /// A symbol left early enough.
    pub(crate) const fn on_left_in_time(&mut self) {
        self.left_in_time += 1;
    }

    /// A symbol that had left early enough arrived too late.
    pub(crate) const fn on_delayed(&mut self) {
        self.delayed += 1;
    }

    pub(crate) const fn on_lost(&mut self) {
        self.lost += 1;
    }

    /// One that was taken for lost came after all: what becomes of the message is not for this loss.
    pub(crate) const fn on_spurious_loss(&mut self) {
        self.lost = self.lost.saturating_sub(1);
    }

    pub(crate) const fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Why a message is late if all that was sent of it arrives or arrived. Of lost symbols it is taken that they would have been in time: what
    /// is in doubt is the loss's doing.
    pub(crate) const fn miss_reason(&self) -> MissReason {
        if self.left_in_time < self.needed {
            MissReason::Queue
        } else if self.lost == 0 || self.left_in_time.saturating_sub(self.delayed) < self.needed {
            MissReason::Delay
        } else {
            MissReason::Loss
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of four symbols of which so many left in time, were delayed, and lost.
    fn reason(left_in_time: u32, delayed: u32, lost: u32) -> MissReason {
        let mut chances = Chances::default();
        chances.on_cut(4);
        (0..left_in_time).for_each(|_| chances.on_left_in_time());
        (0..delayed).for_each(|_| chances.on_delayed());
        (0..lost).for_each(|_| chances.on_lost());
        chances.miss_reason()
    }

    #[test]
    fn losses_are_to_blame_only_for_what_would_have_been_in_time() {
        assert_eq!(reason(4, 0, 1), MissReason::Loss);
        assert_eq!(reason(5, 1, 1), MissReason::Loss, "one to spare");
        assert_eq!(reason(4, 1, 1), MissReason::Delay, "late in any case");
        assert_eq!(reason(4, 1, 0), MissReason::Delay);
        assert_eq!(
            reason(3, 0, 1),
            MissReason::Queue,
            "the fourth left too late"
        );
    }

    /// A regression: when the path has turned out faster, what had left too late counts as delayed.
    #[test]
    fn more_may_be_delayed_than_left_in_time() {
        assert_eq!(reason(4, 6, 1), MissReason::Delay);
    }

    #[test]
    fn a_loss_that_was_none_is_not_to_blame() {
        let mut chances = Chances::default();
        chances.on_cut(1);
        chances.on_left_in_time();
        chances.on_lost();
        assert!(chances.has_lost());
        chances.on_spurious_loss();
        assert_eq!(chances.miss_reason(), MissReason::Delay);
    }
}
