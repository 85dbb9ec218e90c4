//! How much later than its followers a packet may come and still not be lost.
//!
//! Nothing is allowed until reordering has been seen: on most paths a later acknowledgement of the same flight means loss, and
//! waiting costs a part of the deadline. Each packet that was given up and came after all raises the allowance to what it
//! would have needed; it fades again (RFC 8985 has the same idea for TCP).

use core::time::Duration;

use super::Rtt;
use crate::time::Instant;

/// The share of the allowance that fades ..
const FADING: u32 = 64;
/// .. in so many round trips in which nothing came after what had left later: half of it in some thousands. (RFC 8985 section 7.2 keeps its window for 16 recoveries.
/// Once a round trip, or in sixteen, more was taken for lost that came: over recorded networks at 1.14 and 1.09 times the cost.)
const KEPT: u32 = 128;

#[derive(Debug, Default)]
pub(crate) struct Reordering {
    allowance: Duration,
    faded_at: Instant,
}

impl Reordering {
    pub(crate) const fn allowance(&self) -> Duration {
        self.allowance
    }

    /// A packet taken for lost was acknowledged `after` that verdict, and `took` after it was sent.
    pub(crate) fn on_spurious(&mut self, after: Duration, took: Duration, rtt: &Rtt) {
        // The verdict came at the smoothed round trip and the allowance, or at once while there was none.
        let late = took.saturating_sub(rtt.smoothed()).max(after);
        // More than half a round trip is no reordering but a late acknowledgement, which the round time learns.
        let needed = (late + late / 4).min(rtt.smoothed() / 2);
        self.allowance = self.allowance.max(needed);
    }

    /// Packets were answered for; one that came after others that left later took so long. What comes in order, or hardly late, fades the allowance, a round trip of it
    /// as much as one packet in it: a download has hundreds of them.
    pub(crate) fn on_answered(&mut self, now: Instant, late_took: Option<Duration>, rtt: &Rtt) {
        let needed = |took: Duration| took.saturating_sub(rtt.smoothed()) * 4;
        if late_took.is_some_and(|took| needed(took) >= self.allowance) {
            self.faded_at = now;
        }
        if now.since(self.faded_at) < rtt.smoothed() * KEPT {
            return;
        }
        self.faded_at = now;
        // (Not of the smoothed one, which goes up and down over radios: over recorded networks 93 rows of 118 late less for 98 of 121.)
        let most = rtt.quantile(0.99) / 2;
        self.allowance = if self.allowance > most {
            // It was half of another round trip, while a queue was there or the route longer.
            most.max(self.allowance / 2)
        } else {
            self.allowance - self.allowance / FADING
        };
        if self.allowance < Duration::from_micros(100) {
            self.allowance = Duration::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression: what was learned while the round trip was 20 times as long lasted for minutes.
    #[test]
    fn it_comes_to_half_of_the_present_round_trip_within_seconds() {
        let ms = Duration::from_millis;
        let now = Instant::from_micros(1_000_000);
        let mut rtt = Rtt::default();
        rtt.record(now, ms(400));
        let mut reordering = Reordering::default();
        reordering.on_spurious(ms(300), ms(700), &rtt);
        assert_eq!(reordering.allowance(), ms(200));
        for step in 0..1000 {
            let now = now + ms(20) * step;
            rtt.record(now, ms(20));
            reordering.on_answered(now, None, &rtt);
        }
        assert!(reordering.allowance() <= ms(10), "{reordering:?}");
    }

    /// The allowance faded at rounds that a flight had not completed, of which those of one symbol have none: one late packet took a round from all messages, for ever.
    #[test]
    fn what_is_not_needed_any_more_goes() {
        let ms = Duration::from_millis;
        let mut now = Instant::from_micros(1_000_000);
        let mut rtt = Rtt::default();
        rtt.record(now, ms(80));
        let mut reordering = Reordering::default();
        reordering.on_spurious(ms(60), ms(140), &rtt);
        assert_eq!(reordering.allowance(), ms(40));
        let mut in_order = |reordering: &mut Reordering, for_so_long: Duration| {
            let end = now + for_so_long;
            while now < end {
                now = now + ms(16);
                // A millisecond late is not what it is for.
                reordering.on_answered(now, Some(ms(81)), &rtt);
            }
            reordering.on_answered(now, Some(ms(100)), &rtt);
            reordering.allowance()
        };
        assert!(in_order(&mut reordering, ms(60_000)) > ms(34));
        // Now and then something comes late: it stays.
        let before = reordering.allowance();
        for _ in 0..1000 {
            assert_eq!(in_order(&mut reordering, ms(5_000)), before);
        }
        // And what is left is what that takes.
        let left = in_order(&mut reordering, ms(7_200_000));
        assert!(left > ms(3) && left < ms(4), "{left:?}");
    }
}
