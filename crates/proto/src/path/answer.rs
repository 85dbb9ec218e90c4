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

/// How much a peer sends, less a kilobyte a second: it sends messages when there is as much as one of these.
#[derive(Default)]
pub(crate) struct Heard {
    bytes: u32,
    at: Instant,
}

impl Heard {
    const KILOBYTE: u32 = 1000;

    /// A packet came that asks for an answer.
    pub(crate) fn record(&mut self, now: Instant, bytes: usize) {
        let ms = u32::try_from(now.since(self.at).as_millis()).unwrap_or(u32::MAX);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let rest = self.bytes.saturating_sub(ms);
        self.bytes = rest.saturating_add(bytes).min(2 * Self::KILOBYTE);
        self.at = now;
    }

    fn sends(&self, now: Instant) -> bool {
        self.bytes >= Self::KILOBYTE && now.since(self.at) < Duration::from_secs(1)
    }
}

/// A packet was acknowledged.
pub(crate) struct Answer {
    /// How long after it was sent, less the time that the peer says it held the acknowledgement back.
    pub(crate) after: Duration,
    /// The same of a packet that speaks for all that were answered for with it.
    pub(crate) typically_after: Duration,
    /// How long it took to get there, if the clocks tell.
    pub(crate) took: Option<Duration>,
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
        let (took, back) = self.without_way_back(now, answer);
        let round_trip = RoundTrip {
            took,
            waited,
            smoothed: self.rtt.smoothed(),
            bytes: answer.bytes,
            gathered: self.timer_lag.before_end() + gathers + back,
        };
        self.congestion.on_rtt(now, &round_trip);
    }

    /// What it would have taken if nothing had kept the answer, by the clocks and the least that it takes back; and what the peer's own queue kept it.
    fn without_way_back(&self, now: Instant, answer: &Answer) -> (Duration, Duration) {
        let Some(took) = answer.took else {
            return (answer.after, Duration::ZERO);
        };
        let unkept = took + self.rtt.min().saturating_sub(self.owd.min());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_only_answers_or_asks_now_and_then_sends_nothing() {
        let at = |ms: u64| Instant::from_micros(1_000_000 + ms * 1000);
        let mut heard = Heard::default();
        for step in 0..100 {
            heard.record(at(step * 100), 90);
            assert!(!heard.sends(at(step * 100)));
        }
        for step in 0..100 {
            heard.record(at(10_000 + step * 16), 90);
        }
        assert!(heard.sends(at(11_600)));
        assert!(!heard.sends(at(13_000)), "it has stopped");
    }
}
