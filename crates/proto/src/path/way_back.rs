//! The way that answers come: what stands there is the peer's, or waits for a loop here, and is no queue of what we send.

use core::time::Duration;

use crate::time::{Instant, nanos};

/// Clocks drift by less than this against each other (quartz: 30 us a second at most, each), so that the least is found again when it has.
const DRIFT_PPM: u64 = 100;

/// The least that the way back took, on top of what the peer's clock is behind ours: no offset is estimated, which would change as it is.
#[derive(Default)]
pub(crate) struct WayBack {
    /// In microseconds, modulo 2^32.
    least_us: Option<u32>,
    at: Instant,
}

impl WayBack {
    /// An answer came `after` its packet left, whose arrival by the peer's clock less the sending by ours is `there_us`: how long it would have taken if it had come back as fast
    /// as any. O(1).
    pub(crate) fn without(&mut self, now: Instant, after: Duration, there_us: u32) -> Duration {
        let after_us = u32::try_from(after.as_micros()).unwrap_or(u32::MAX);
        let back_us = after_us.wrapping_sub(there_us);
        let drift_us = nanos(now.since(self.at)) / 1000 * DRIFT_PPM / 1_000_000;
        let least_us = self.least_us.unwrap_or(back_us);
        // (Less than a microsecond of it is kept for later.)
        let least_us = least_us.wrapping_add(drift_us as u32);
        if drift_us > 0 || self.least_us.is_none() {
            self.at = now;
        }
        let longer_us = back_us.wrapping_sub(least_us) as i32;
        let is_least = longer_us < 0;
        // A way there that took nothing: a clock stood still.
        let is_another = i64::from(longer_us) >= i64::from(after_us);
        let least_us = if is_least || is_another {
            back_us
        } else {
            least_us
        };
        self.least_us = Some(least_us);
        let us = there_us.wrapping_add(least_us);
        Duration::from_micros(us.into()).min(after)
    }
}

/// How much a peer sends, less a kilobyte a second: it sends messages when there is as much as one of these.
#[derive(Default)]
pub(crate) struct PeerData {
    bytes: u32,
    at: Instant,
}

impl PeerData {
    const KILOBYTE: u32 = 1000;

    /// A packet came that asks for an answer.
    pub(crate) fn record(&mut self, now: Instant, bytes: usize) {
        let ms = u32::try_from(now.since(self.at).as_millis()).unwrap_or(u32::MAX);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let rest = self.bytes.saturating_sub(ms);
        self.bytes = rest.saturating_add(bytes).min(2 * Self::KILOBYTE);
        self.at = now;
    }

    pub(crate) fn sends(&self, now: Instant) -> bool {
        self.bytes >= Self::KILOBYTE && now.since(self.at) < Duration::from_secs(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_micros(1_000_000 + ms * 1000)
    }

    #[test]
    fn what_stands_on_the_way_back_is_left_out() {
        let ms = Duration::from_millis;
        for offset_us in [0_u32, 5, u32::MAX - 10, 1 << 31] {
            let there = |ms: u32| offset_us.wrapping_add(ms * 1000);
            let mut back = WayBack::default();
            assert_eq!(back.without(at(0), ms(70), there(20)), ms(70));
            assert_eq!(back.without(at(1), ms(60), there(20)), ms(60));
            assert_eq!(back.without(at(2), ms(260), there(20)), ms(60));
            assert_eq!(
                back.without(at(3), ms(270), there(30)),
                ms(70),
                "this is ours"
            );
            assert_eq!(back.without(at(4), ms(70), there(30)), ms(70));
            assert_eq!(back.without(at(5), ms(39), there(20)), ms(39));
        }
    }

    #[test]
    fn clocks_that_drift_or_stand_still_do_not_deceive() {
        let ms = Duration::from_millis;
        for ppm in [-60_i64, 0, 60] {
            let mut back = WayBack::default();
            for second in 0..3600_i64 {
                let drift_us = second * ppm;
                let now = at(second as u64 * 1000);
                // Every third answer comes at once.
                let late_ms = second % 3 * 100;
                let there_us = (20_000 + drift_us) as u32;
                let took = back.without(now, ms(60 + late_ms as u64), there_us);
                assert!(
                    took.abs_diff(ms(60)) <= Duration::from_micros(500),
                    "{took:?}"
                );
            }
        }
        let mut back = WayBack::default();
        back.without(at(0), ms(60), 20_000);
        let stood_still = 20_000_u32.wrapping_sub(3_000_000);
        assert_eq!(back.without(at(10), ms(61), stood_still), ms(61));
        assert_eq!(back.without(at(20), ms(60), stood_still), ms(60));
        assert_eq!(back.without(at(30), ms(60), 20_000), ms(60), "ours did");
    }

    #[test]
    fn a_peer_that_only_answers_or_asks_now_and_then_sends_nothing() {
        let mut heard = PeerData::default();
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
