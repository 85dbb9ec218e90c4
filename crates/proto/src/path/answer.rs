//! What of the time until a packet is answered for is the path's, and what is a loop's, on either side, that looks at its network once a frame.
//!
//! (Where all of it was the path's, a download to a game at 60 frames a second got half of what its path carries, and an upload from one at 30 a sixth: a small
//! window has left before the frame is over, and what was left of the frame passed for a queue.)

use core::time::Duration;

use super::{Lag, Path};
use crate::time::Instant;

/// A packet was acknowledged.
pub(crate) struct Answer {
    /// How long after it was sent, less the time that the peer says it held the acknowledgement back.
    pub(crate) after: Duration,
    /// How long it took to get there, if the clocks tell.
    pub(crate) took: Option<Duration>,
    /// How much later the next packet left, if one did.
    pub(crate) next_after: Option<Duration>,
    /// Its size.
    pub(crate) bytes: u16,
}

/// A round trip as congestion control sees it.
pub(crate) struct RoundTrip {
    /// Without what waits for a frame here.
    pub(crate) took: Duration,
    /// Up to so much of it may be a frame's of the peer.
    pub(crate) waited: Duration,
    pub(crate) smoothed: Duration,
    /// Of the packet.
    pub(crate) bytes: u16,
    /// Answers come together that belong to packets of about so long a time.
    pub(crate) gathered: Duration,
}

impl Path {
    /// Takes in what an acknowledgement says of its largest packet. O(1).
    pub(crate) fn record_answer(&mut self, now: Instant, answer: &Answer) {
        self.rtt.record(now, answer.after);
        // In a loop of the peer's it has waited no longer than until the next packet left, which would else have been named with it.
        let gathers = self.feedback.gathers();
        let waited = answer.next_after.map_or(gathers, |gap| gap.min(gathers));
        let round_trip = RoundTrip {
            took: self.without_own_frame(answer),
            waited,
            smoothed: self.rtt.smoothed(),
            bytes: answer.bytes,
            gathered: self.timer_lag.before_end() + gathers,
        };
        self.congestion.on_rtt(now, &round_trip);
    }

    /// A loop of ours has taken in the answer late: the way there is told by the clocks, and the way back is taken to be as long as at the least.
    fn without_own_frame(&self, answer: &Answer) -> Duration {
        match (self.timer_lag, answer.took) {
            (Lag::Polled { .. }, Some(took)) => {
                took + self.rtt.min().saturating_sub(self.owd.min())
            }
            _ => answer.after,
        }
    }
}
