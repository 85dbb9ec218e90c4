//! Runs of lost packets: whether a message was late although more symbols could have helped.

use core::time::Duration;

use crate::time::Instant;

/// Runs remembered: a message's outcome comes within a few round trips.
const KEPT: usize = 4;

/// Packets that were lost one after the other.
#[derive(Clone, Copy, Default)]
struct Run {
    /// When the first and the last of them were sent.
    began: Instant,
    ended: Instant,
    /// The packet after the last.
    next: u64,
}

/// The latest runs of lost packets.
#[derive(Clone, Copy, Default)]
pub(super) struct LostRuns([Run; KEPT]);

impl LostRuns {
    /// A packet was lost.
    pub(super) fn record(&mut self, number: u64, sent_at: Instant) {
        // Numbers begin at 0, and so does an empty place: the very first packet continues nothing.
        if let Some(run) = self
            .0
            .iter_mut()
            .find(|run| run.next == number && number > 0)
        {
            (run.ended, run.next) = (run.ended.max(sent_at), number + 1);
            return;
        }
        self.0.rotate_right(1);
        self.0[0] = Run {
            began: sent_at,
            ended: sent_at,
            next: number + 1,
        };
    }

    /// Whether nothing got through from before a message was first sent until after the last moment that would have been in time:
    /// then no symbol could have saved it. `least` is the least time that a packet takes.
    pub(super) fn swallowed(
        &self,
        first_sent_at: Instant,
        deadline: Instant,
        least: Duration,
    ) -> bool {
        self.0
            .iter()
            .any(|run| run.began < first_sent_at && run.ended + least >= deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1000)
    }

    #[test]
    fn a_message_inside_a_run_could_not_be_saved() {
        let mut runs = LostRuns::default();
        for (number, ms) in [(7, 70), (8, 80), (9, 120), (20, 200)] {
            runs.record(number, at(ms));
        }
        let least = Duration::from_millis(10);
        assert!(runs.swallowed(at(80), at(130), least));
        assert!(
            !runs.swallowed(at(70), at(130), least),
            "it began with this very message"
        );
        assert!(
            !runs.swallowed(at(80), at(131), least),
            "a symbol at 121 ms might have come"
        );
    }

    #[test]
    fn only_the_latest_runs_are_kept() {
        let mut runs = LostRuns::default();
        for i in 1..100 {
            runs.record(i * 10, at(i * 100));
            runs.record(i * 10 + 1, at(i * 100 + 50));
        }
        let least = Duration::ZERO;
        assert!(runs.swallowed(at(9910), at(9940), least));
        assert!(!runs.swallowed(at(110), at(140), least), "forgotten");
    }
}
