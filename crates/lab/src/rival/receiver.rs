//! The receiving side of a rival: which packets it answers, and when.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Segment;
use crate::world::Moment;

/// How long an acknowledgement waits for a second packet.
const DELAY: Duration = Duration::from_millis(40);

#[derive(Debug, Default)]
pub(crate) struct Receiver {
    /// All data before this is here.
    complete: u64,
    /// What is here beyond it.
    islands: BTreeSet<u64>,
    /// Transmissions that arrived and are not yet acknowledged.
    unanswered: Vec<u64>,
    /// When to acknowledge at the latest.
    due: Option<Moment>,
}

impl Receiver {
    pub(crate) fn delivered(&self) -> u64 {
        self.complete + self.islands.len() as u64
    }

    /// A packet came; whether an acknowledgement leaves at once.
    pub(crate) fn on_packet(&mut self, now: Moment, segment: Segment) -> bool {
        self.unanswered.push(segment.number);
        let is_next = segment.position == self.complete;
        if is_next {
            self.complete += 1;
            while self.islands.remove(&self.complete) {
                self.complete += 1;
            }
        } else if segment.position > self.complete {
            self.islands.insert(segment.position);
        }
        if !is_next || !self.islands.is_empty() || self.unanswered.len() >= 2 {
            return true;
        }
        self.due.get_or_insert_with(|| now.after(DELAY));
        false
    }

    pub(crate) const fn due(&self) -> Option<Moment> {
        self.due
    }

    /// The transmissions that an acknowledgement tells of.
    pub(crate) fn take_ack(&mut self) -> Vec<u64> {
        self.due = None;
        std::mem::take(&mut self.unanswered)
    }
}
