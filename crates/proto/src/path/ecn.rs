//! Whether ECN-capable packets pass a path (RFC 9000 section 13.4.2): some networks drop them, others mark every one.
//!
//! A client does not see that its network has become another one. So while nothing is answered for long, packets go unmarked, and when they
//! are, marks are tested anew.

use crate::time::Instant;

/// Packets lost before any arrived, after which the mark is taken to be why.
const LOST: u8 = 3;
/// Packets that arrive first; when every one of them was marked, the marks say nothing.
const TESTED: u64 = 10;

/// What is known of it.
pub(crate) enum EcnTest {
    /// As far as the first packets tell.
    Running {
        /// What left before tells nothing.
        since: Instant,
        lost: u8,
        arrived: u64,
        marked: u64,
    },
    Passed,
    Failed,
}

impl Default for EcnTest {
    fn default() -> Self {
        Self::since(Instant::ZERO)
    }
}

impl EcnTest {
    const fn since(since: Instant) -> Self {
        Self::Running {
            since,
            lost: 0,
            arrived: 0,
            marked: 0,
        }
    }

    /// There is an answer after a time in which packets went unmarked.
    pub(crate) const fn test_again(&mut self, now: Instant) {
        if self.is_capable() {
            *self = Self::since(now);
        }
    }

    /// Whether packets are to be marked as ECN-capable.
    pub(crate) const fn is_capable(&self) -> bool {
        !matches!(self, Self::Failed)
    }

    /// A packet that was sent as ECN-capable is taken for lost, and not for its size.
    pub(crate) fn on_lost(&mut self, sent_at: Instant) {
        if let Self::Running {
            since,
            lost,
            arrived: 0,
            ..
        } = self
            && sent_at >= *since
        {
            *lost += 1;
            if *lost >= LOST {
                *self = Self::Failed;
            }
        }
    }

    /// One has arrived.
    pub(crate) fn on_arrived(&mut self, sent_at: Instant) {
        if let Self::Running { since, arrived, .. } = self
            && sent_at >= *since
        {
            *arrived += 1;
        }
    }

    /// What a packet tells has been taken in, `new_marks` among it.
    pub(crate) const fn conclude(&mut self, new_marks: u64) {
        if let Self::Running {
            arrived, marked, ..
        } = self
        {
            *marked = marked.saturating_add(new_marks);
            if *marked < *arrived {
                *self = Self::Passed;
            } else if *arrived >= TESTED {
                *self = Self::Failed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drops_or_marks_everything_is_used_without() {
        let mut dropping = EcnTest::default();
        for _ in 0..LOST {
            assert!(dropping.is_capable());
            dropping.on_lost(Instant::ZERO);
        }
        assert!(!dropping.is_capable());

        let mut marking = EcnTest::default();
        for _ in 0..TESTED {
            assert!(marking.is_capable());
            marking.on_arrived(Instant::ZERO);
            marking.conclude(1);
        }
        assert!(!marking.is_capable());
    }

    #[test]
    fn losses_after_an_arrival_and_some_marks_are_the_path_s() {
        let mut lossy = EcnTest::default();
        lossy.on_arrived(Instant::ZERO);
        lossy.conclude(0);
        for _ in 0..100 {
            lossy.on_lost(Instant::ZERO);
            lossy.on_arrived(Instant::ZERO);
            lossy.conclude(1);
        }
        assert!(lossy.is_capable());
    }
}
