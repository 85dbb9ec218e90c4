//! A monotonic clock as plain nanoseconds, the only notion of time that the protocol accepts.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since an epoch of its own, never going back. Copies share the epoch, so threads can compare readings.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock whose epoch is now.
    pub fn start() -> Self {
        Self {
            epoch: Instant::now(),
        }
    }

    /// Nanoseconds since the epoch.
    pub fn now_nanos(&self) -> u64 {
        self.nanos_at(Instant::now())
    }

    /// The reading that belongs to `instant`; 0 for what lies before the epoch.
    pub fn nanos_at(&self, instant: Instant) -> u64 {
        // 2^64 ns are 584 years; saturating only spares us a panic path.
        let since = instant.saturating_duration_since(self.epoch);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The time from now until the clock reads `nanos`; zero when that has passed.
    pub fn until(&self, nanos: u64) -> Duration {
        Duration::from_nanos(nanos.saturating_sub(self.now_nanos()))
    }
}

/// Seconds since 1970; 0 for what lies before.
pub fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_follow_instants() {
        let clock = Clock::start();
        let later = clock.epoch + Duration::from_millis(3);
        assert_eq!(clock.nanos_at(later), 3_000_000);
        assert_eq!(clock.nanos_at(clock.epoch), 0);
        let first = clock.now_nanos();
        assert!(clock.now_nanos() >= first);
        assert_eq!(clock.until(0), Duration::ZERO);
    }
}
