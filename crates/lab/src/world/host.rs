//! A host: an endpoint, an address, a clock that is not quite right, and the path that it sits at the end of.

use std::net::SocketAddr;
use std::time::Duration;

use punctual_proto::{Endpoint, Instant};

use super::{LinkId, Moment};
use crate::channel::Channel;

/// A clock that started at some time and runs a little fast or slow.
#[derive(Debug, Clone, Copy)]
pub struct LocalClock {
    /// What it showed when the world began, in nanoseconds.
    pub offset_ns: u64,
    /// Nanoseconds that it gains in a second.
    pub drift_ppb: i64,
}

impl LocalClock {
    /// What it shows at a moment of the world.
    pub fn local(&self, at: Moment) -> Instant {
        let drift = (i128::from(at.0) * i128::from(self.drift_ppb) / 1_000_000_000) as i64;
        Instant::from_nanos((self.offset_ns + at.0).saturating_add_signed(drift))
    }

    /// The first moment at which it shows at least `local`.
    pub fn world(&self, local: Instant) -> Moment {
        let since = local.as_nanos().saturating_sub(self.offset_ns);
        let rate = 1_000_000_000 + i128::from(self.drift_ppb);
        let mut at = Moment((i128::from(since) * 1_000_000_000 / rate) as u64);
        while self.local(at) < local {
            at.0 += 1;
        }
        at
    }
}

pub(super) struct Host {
    pub(super) endpoint: Endpoint,
    pub(super) address: SocketAddr,
    pub(super) clock: LocalClock,
    /// Forward and backward; none on a server.
    pub(super) channels: Option<[Channel; 2]>,
    /// The shared bottlenecks before its path, each way; none on a server.
    pub(super) uplink: Option<LinkId>,
    pub(super) downlink: Option<LinkId>,
    /// How often it looks at all, and when first.
    pub(super) frame: Option<(Duration, Duration)>,
    /// After each look it sends what it has made of it, so much later, and acknowledgements with that.
    pub(super) work: Option<Duration>,
    /// It has looked, and has not sent yet.
    pub(super) is_at_work: bool,
    pub(super) wakes_at: Option<Moment>,
    pub(super) is_dirty: bool,
    /// Datagrams for it that the network lost.
    pub(super) lost: u64,
}

impl Host {
    pub(super) fn new(
        endpoint: Endpoint,
        address: SocketAddr,
        clock: LocalClock,
        channels: Option<[Channel; 2]>,
    ) -> Self {
        Self {
            endpoint,
            address,
            clock,
            channels,
            uplink: None,
            downlink: None,
            frame: None,
            work: None,
            is_at_work: false,
            wakes_at: None,
            is_dirty: false,
            lost: 0,
        }
    }

    /// When it sees next to what is due: a loop each time it looks, after it has received what is there.
    pub(super) fn wakes_next(&self, now: Moment) -> Option<Moment> {
        if self.frame.is_some() {
            return Some(Moment(self.looks_at(now).0 + 1));
        }
        // A little late rather than a little early, which would make it spin.
        let due = self.endpoint.poll_timeout()?;
        Some(self.clock.world(due).max(Moment(now.0 + 1)))
    }

    /// When it looks at what happens at a moment.
    pub(super) fn looks_at(&self, at: Moment) -> Moment {
        self.frame.map_or(at, |(every, phase)| {
            let (every, phase) = (every.as_nanos() as u64, phase.as_nanos() as u64);
            Moment(phase + at.0.saturating_sub(phase).div_ceil(every) * every)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn world_and_local_time_are_inverse() {
        for drift_ppb in [-20_000, 0, 19_999] {
            let clock = LocalClock {
                offset_ns: 777_777_777_777,
                drift_ppb,
            };
            for at in [0, 1, 999, 1_000_000_007, 3_600_000_000_000] {
                let local = clock.local(Moment(at));
                let back = clock.world(local);
                assert!(clock.local(back) >= local);
                assert!(back.0 <= at + 1);
            }
        }
    }
}
