//! Why a segment was sent again, and why it took a timer.

/// What made a sender retransmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Fast retransmit with three later segments reported, as TCP has had since 1990.
    FastThreeDuplicates,
    /// Fast retransmit with fewer later segments reported: RACK (RFC 8985).
    FastByTime,
    /// A retransmission was lost, and later segments showed it: RACK.
    LostRetransmission,
    /// What follows a timeout, clocked by acknowledgements.
    AfterTimeout,
    /// A tail loss probe (RFC 8985): a timer, though not yet the timeout.
    Probe,
    /// The retransmission timeout.
    Timeout,
    /// Nothing of these.
    Other,
}

impl Cause {
    /// Each of them.
    pub const ALL: [Self; 7] = [
        Self::FastThreeDuplicates,
        Self::FastByTime,
        Self::LostRetransmission,
        Self::AfterTimeout,
        Self::Probe,
        Self::Timeout,
        Self::Other,
    ];

    /// Whether a timer found the loss.
    pub const fn is_timer(self) -> bool {
        matches!(self, Self::Probe | Self::Timeout)
    }

    /// Whether acknowledgements of later segments found it.
    pub const fn is_fast(self) -> bool {
        matches!(
            self,
            Self::FastThreeDuplicates | Self::FastByTime | Self::LostRetransmission
        )
    }
}

/// Why three duplicate acknowledgements did not come together, by the rules of 4.4BSD: a duplicate has no content and the same window,
/// and anything else begins the count again. (Linux counts on.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FastFailure {
    /// There were fewer than three.
    TooFew,
    /// Content of the other side came between.
    InterruptedByData,
    /// An acknowledgement of something new came between.
    InterruptedByAck,
    /// The window changed.
    InterruptedByWindow,
    /// There were three together.
    None,
}

/// What an acknowledgement was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AckKind {
    Duplicate,
    WithData,
    New,
    Window,
}

/// Why those acknowledgements were no three duplicates together.
pub(super) fn fast_failure(kinds: impl Iterator<Item = AckKind>) -> FastFailure {
    let (mut run, mut duplicates) = (0, 0);
    // Interruptions of a count that had begun.
    let (mut by_data, mut by_ack, mut by_window) = (0, 0, 0);
    for kind in kinds {
        if kind == AckKind::Duplicate {
            run += 1;
            duplicates += 1;
            if run >= 3 {
                return FastFailure::None;
            }
            continue;
        }
        let counter = match kind {
            AckKind::WithData => &mut by_data,
            AckKind::New => &mut by_ack,
            _ => &mut by_window,
        };
        *counter += i32::from(run > 0);
        run = 0;
    }
    if duplicates < 3 {
        FastFailure::TooFew
    } else if by_data >= by_ack && by_data >= by_window {
        FastFailure::InterruptedByData
    } else if by_ack >= by_window {
        FastFailure::InterruptedByAck
    } else {
        FastFailure::InterruptedByWindow
    }
}
