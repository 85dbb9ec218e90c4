//! Whether ECN-capable packets pass a path (RFC 9000 section 13.4.2): some networks drop them, others mark every one.

/// Packets lost before any arrived, after which the mark is taken to be why.
const LOST: u8 = 3;
/// Packets that arrive first; when every one of them was marked, the marks say nothing.
const TESTED: u64 = 10;

/// What is known of it.
pub(crate) enum EcnTest {
    /// As far as the first packets tell.
    Running {
        lost: u8,
        arrived: u64,
        marked: u64,
    },
    Passed,
    Failed,
}

impl Default for EcnTest {
    fn default() -> Self {
        Self::Running {
            lost: 0,
            arrived: 0,
            marked: 0,
        }
    }
}

impl EcnTest {
    /// Whether packets are to be marked as ECN-capable.
    pub(crate) const fn is_capable(&self) -> bool {
        !matches!(self, Self::Failed)
    }

    /// A packet that was sent as ECN-capable is taken for lost, and not for its size.
    pub(crate) const fn on_lost(&mut self) {
        if let Self::Running {
            lost, arrived: 0, ..
        } = self
        {
            *lost += 1;
            if *lost >= LOST {
                *self = Self::Failed;
            }
        }
    }

    /// One has arrived.
    pub(crate) const fn on_arrived(&mut self) {
        if let Self::Running { arrived, .. } = self {
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
            dropping.on_lost();
        }
        assert!(!dropping.is_capable());

        let mut marking = EcnTest::default();
        for _ in 0..TESTED {
            assert!(marking.is_capable());
            marking.on_arrived();
            marking.conclude(1);
        }
        assert!(!marking.is_capable());
    }

    #[test]
    fn losses_after_an_arrival_and_some_marks_are_the_path_s() {
        let mut lossy = EcnTest::default();
        lossy.on_arrived();
        lossy.conclude(0);
        for _ in 0..100 {
            lossy.on_lost();
            lossy.on_arrived();
            lossy.conclude(1);
        }
        assert!(lossy.is_capable());
    }
}
