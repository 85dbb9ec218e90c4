//! Which block's symbol goes next: the one with the earliest deadline, then the one that came first (one order for all streams of
//! a session until streams have weights).

use alloc::collections::VecDeque;

use crate::time::Instant;

/// Blocks that have symbols to send, in the order to send them.
#[derive(Default)]
pub(crate) struct Schedule {
    queue: VecDeque<(Instant, u64)>,
}

/// Stands for "no deadline": after all that have one.
pub(crate) const NO_DEADLINE: Instant = Instant::from_nanos(u64::MAX);

impl Schedule {
    /// Adds a block that is not in it.
    pub(crate) fn push(&mut self, deadline: Instant, block: u64) {
        let after = self
            .queue
            .iter()
            .rev()
            .take_while(|entry| (entry.0, entry.1) > (deadline, block))
            .count();
        let index = self.queue.len() - after;
        self.queue.insert(index, (deadline, block));
    }

    /// Takes a block out, when all of its symbols are sent or it is no longer to be sent.
    pub(crate) fn remove(&mut self, deadline: Instant, block: u64) {
        if let Ok(index) = self.queue.binary_search(&(deadline, block)) {
            self.queue.remove(index);
        }
    }

    /// Gives back what a burst needed.
    pub(crate) fn trim(&mut self) {
        self.queue.shrink_to_fit();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The block at `position` of the order.
    pub(crate) fn get(&self, position: usize) -> Option<u64> {
        self.queue.get(position).map(|entry| entry.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_deadline_first_then_first_come() {
        let at = |ms: u64| Instant::from_micros(ms * 1000);
        let mut schedule = Schedule::default();
        for (deadline, block) in [
            (NO_DEADLINE, 1),
            (at(50), 2),
            (at(20), 3),
            (at(50), 4),
            (NO_DEADLINE, 5),
        ] {
            schedule.push(deadline, block);
        }
        schedule.remove(at(50), 2);
        schedule.remove(at(50), 99);
        let order: alloc::vec::Vec<u64> =
            (0..).map_while(|position| schedule.get(position)).collect();
        assert_eq!(order, [3, 4, 1, 5]);
    }
}
