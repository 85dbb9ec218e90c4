//! Whether ECN-capable packets pass a path (RFC 9000 section 13.4.2): some networks drop them, others mark every one.
//!
//! A client does not see that its network has become another one. So while nothing is answered for long, packets go unmarked, and when they
//! are, marks are tested anew.

use crate::time::Instant;

/// Packets lost before any arrived, after which the mark is taken to be why.
const LOST: u8 = 3;
/// The same where marks had passed before: outages may follow each other.
const LOST_AGAIN: u8 = 6;
/// Packets that arrive first; when every one of them was marked, the marks say nothing.
const TESTED: u64 = 10;

/// What is known of it.
pub(crate) enum EcnTest {
    /// As far as the first packets tell.
    Running {
        /// What left before tells nothing.
        since: Instant,
        /// What left from then on was not marked.
        unmarked_from: Option<Instant>,
        lost: u8,
        arrived: u64,
        /// Of those, the ones that were told of together last.
        told: u64,
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
            unmarked_from: None,
            lost: 0,
            arrived: 0,
            told: 0,
            marked: 0,
        }
    }

    /// Packets go unmarked from now on, until [`test_again`](Self::test_again).
    pub(crate) const fn on_unmarked(&mut self, now: Instant) {
        if let Self::Running { unmarked_from, .. } = self
            && unmarked_from.is_none()
        {
            *unmarked_from = Some(now);
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

    /// Whether what left then is of a test that goes on.
    fn tests(&self, sent_at: Instant) -> bool {
        match *self {
            Self::Running {
                since,
                unmarked_from,
                ..
            } => sent_at >= since && unmarked_from.is_none_or(|from| sent_at < from),
            Self::Passed | Self::Failed => false,
        }
    }

    /// A packet that was sent as ECN-capable is taken for lost, and not for its size.
    pub(crate) fn on_lost(&mut self, sent_at: Instant) {
        if !self.tests(sent_at) {
            return;
        }
        if let Self::Running {
            since,
            lost,
            arrived: 0,
            ..
        } = self
        {
            *lost += 1;
            let most = if *since == Instant::ZERO {
                LOST
            } else {
                LOST_AGAIN
            };
            if *lost >= most {
                *self = Self::Failed;
            }
        }
    }

    /// One has arrived.
    pub(crate) fn on_arrived(&mut self, sent_at: Instant) {
        if !self.tests(sent_at) {
            return;
        }
        if let Self::Running { arrived, told, .. } = self {
            *arrived += 1;
            *told += 1;
        }
    }

    /// What a packet tells has been taken in, `new_marks` among it.
    pub(crate) fn conclude(&mut self, new_marks: u64) {
        if let Self::Running {
            arrived,
            told,
            marked,
            ..
        } = self
        {
            // (Others are of what left before.)
            *marked += new_marks.min(core::mem::take(told));
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

    /// A stall of a second and more, with marked packets in its queue, had a path that had passed fail for good.
    #[test]
    fn marks_of_what_left_before_are_not_those_of_the_test() {
        let at = |ms: u64| Instant::from_micros(1000 * ms);
        let mut ecn = EcnTest::default();
        ecn.on_arrived(at(1));
        ecn.conclude(0);
        ecn.on_unmarked(at(1000));
        ecn.test_again(at(2000));
        // What waited in the queue comes, all of it marked; and each packet that left later, unmarked.
        for sent in 0..30 {
            ecn.on_arrived(at(100 + sent));
            ecn.conclude(1);
        }
        for sent in 0..30 {
            ecn.on_arrived(at(2001 + sent));
            ecn.conclude(0);
            assert!(ecn.is_capable());
        }
        // What leaves unmarked in the next outage says nothing of marks.
        let mut ecn = EcnTest::default();
        ecn.test_again(at(2000));
        ecn.on_unmarked(at(3000));
        (0..20).for_each(|sent| ecn.on_lost(at(3000 + sent)));
        assert!(ecn.is_capable());
        (0..20).for_each(|sent| ecn.on_lost(at(2001 + sent)));
        assert!(!ecn.is_capable());
    }
}
