//! What of the time until a packet is answered for is the path's, and what is a loop's, on either side, that looks at its network once a frame.
//!
//! (Where all of it was the path's, a download to a game at 60 frames a second got half of what its path carries, and an upload from one at 30 a sixth: a small
//! window has left before the frame is over, and what was left of the frame passed for a queue.)
//!
//! And what is the way back's: where the peer sends as well, answers stand in the queue of what it sends, which is the peer's to keep short. (Where that passed
//! for a queue of one's own, a download beside an upload of 256 kbit/s got a sixth of 2 Mbit/s, and a quarter of a game's snapshots came late beside it.)

use core::time::Duration;

use super::{Lag, Path};
use crate::time::Instant;

/// Less of a queue on the way back is not told from what clocks are off by: so much, or such a part of the round trip.
const BACK_QUEUE: Duration = Duration::from_millis(4);
const BACK_QUEUE_PART: u32 = 8;

/// Less of a queue than such a part of a frame is not told from what clocks are off by where a loop of ours takes in the answers.
const OWN_FRAME_PART: u32 = 8;

/// A packet was acknowledged.
pub(crate) struct Answer {
    /// How long after it was sent, less the time that the peer says it held the acknowledgement back.
    pub(crate) after: Duration,
    /// The same of a packet that speaks for all that were answered for with it.
    pub(crate) typically_after: Duration,
    /// Its arrival by the peer's clock less its sending by ours, in microseconds, modulo 2^32.
    pub(crate) there_us: u32,
    /// How much later the next packet left, if one did.
    pub(crate) next_after: Option<Duration>,
    /// Its size.
    pub(crate) bytes: u16,
}

/// A round trip as congestion control sees it.
pub(crate) struct RoundTrip {
    /// Without what waits for a frame here, or for the peer's own messages on the way back.
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
        self.rtt.record(now, answer.typically_after);
        // In a loop of the peer's it has waited no longer than until the next packet left, which would else have been named with it.
        let gathers = self.feedback.gathers();
        let waited = answer.next_after.map_or(gathers, |gap| gap.min(gathers));
        let unsure = match self.timer_lag {
            // Clocks drift, and which answers came back at once shows seldom. (What they were off by never emptied, and was rivals'.)
            Lag::Polled { frame, .. } => frame / OWN_FRAME_PART,
            Lag::Driven(_) => Duration::ZERO,
        };
        let (took, back) = self.without_way_back(now, answer);
        let round_trip = RoundTrip {
            took,
            waited: waited + unsure,
            smoothed: self.rtt.smoothed(),
            bytes: answer.bytes,
            gathered: self.timer_lag.before_end() + gathers + back,
        };
        self.congestion.on_rtt(now, &round_trip);
    }

    /// What it would have taken if nothing had kept the answer, and what the peer's own queue kept it.
    fn without_way_back(&mut self, now: Instant, answer: &Answer) -> (Duration, Duration) {
        let unkept = self.way_back.without(now, answer.after, answer.there_us);
        match self.timer_lag {
            // A loop of ours has taken in the answer late.
            Lag::Polled { .. } => (unkept, Duration::ZERO),
            _ if self.heard.sends(now) => {
                let unsure = BACK_QUEUE.max(self.rtt.min() / BACK_QUEUE_PART);
                let queue = answer.after.saturating_sub(unkept + unsure);
                (answer.after - queue, queue)
            }
            _ => (answer.after, Duration::ZERO),
        }
    }
}
