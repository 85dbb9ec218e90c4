//! After what time without an answer a probe is sent again: as TCP computes it (RFC 6298), with a lower floor and no backoff,
//! since five repetitions are the end of it anyway.

use std::time::Duration;

/// Before anything is known.
const FIRST: Duration = Duration::from_secs(1);
const LEAST: Duration = Duration::from_millis(100);
/// What arrives later counts as lost, so there is no reason to wait longer.
const MOST: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub(super) struct Timeout {
    smoothed: Option<Duration>,
    variation: Duration,
}

impl Timeout {
    pub(super) fn record(&mut self, rtt: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(rtt)) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
    }

    pub(super) fn current(&self) -> Duration {
        match self.smoothed {
            None => FIRST,
            Some(smoothed) => (smoothed + self.variation * 4).clamp(LEAST, MOST),
        }
    }
}
