//! Path MTU discovery (RFC 8899 in small): from 1,200 bytes upwards by padded probes; a lost probe costs nothing but itself.

use core::time::Duration;

use crate::limits::{MTU_MAX, MTU_MIN};
use crate::time::Instant;

/// Sizes worth trying: IPv6's minimum less headers is below 1,200 already; tunnels; PPPoE; IPv6 and IPv4 over Ethernet.
const LADDER: [u16; 4] = [1280, 1400, 1452, MTU_MAX];
const TRIES: u8 = 3;
/// Flights of large packets lost whole, in a row, after which the path is taken to have shrunk.
const BLACK_HOLE: u8 = 4;
/// How long a size that failed is left alone (RFC 8899 section 5.1.1).
const RETRY: Duration = Duration::from_secs(600);

pub(crate) struct MtuSearch {
    current: u16,
    max: u16,
    failed_tries: u8,
    lost_flights: u8,
    /// The probe under way.
    probe: Option<(u64, u16)>,
    /// Not before this.
    next_at: Option<Instant>,
}

impl MtuSearch {
    pub(crate) fn new(datagram_max: u16) -> Self {
        let max = datagram_max.clamp(MTU_MIN, MTU_MAX);
        Self {
            current: MTU_MIN,
            max,
            failed_tries: 0,
            lost_flights: 0,
            probe: None,
            next_at: Some(Instant::ZERO),
        }
    }

    /// The largest UDP payload that is known to pass, in bytes.
    pub(crate) fn current(&self) -> usize {
        usize::from(self.current)
    }

    /// The largest size that may ever be tried, in bytes.
    pub(crate) const fn max(&self) -> u16 {
        self.max
    }

    /// The size to probe now, if any.
    pub(crate) fn poll_probe(&self, now: Instant) -> Option<usize> {
        if self.probe.is_some() || self.next_at.is_none_or(|at| now < at) {
            return None;
        }
        self.next_size().map(usize::from)
    }

    /// When the next probe is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        if self.probe.is_some() || self.next_size().is_none() {
            None
        } else {
            self.next_at
        }
    }

    fn next_size(&self) -> Option<u16> {
        let ladder = LADDER
            .into_iter()
            .find(|&size| size > self.current && size <= self.max);
        ladder.or_else(|| (self.max > self.current && self.max < LADDER[0]).then_some(self.max))
    }

    pub(crate) fn on_probe_sent(&mut self, number: u64, size: usize) {
        self.probe = Some((number, size as u16));
    }

    /// Whether `number` was the probe; if so the size is good, and the next one is tried at once.
    pub(crate) fn on_acked(&mut self, number: u64, now: Instant) -> bool {
        let Some((probe, size)) = self.probe.filter(|probe| probe.0 == number) else {
            return false;
        };
        debug_assert_eq!(probe, number, "filtered a line above");
        self.current = self.current.max(size);
        self.probe = None;
        self.failed_tries = 0;
        self.next_at = Some(now);
        true
    }

    pub(crate) fn on_probe_lost(&mut self, number: u64, now: Instant) {
        if self.probe.is_none_or(|probe| probe.0 != number) {
            return;
        }
        self.probe = None;
        self.failed_tries += 1;
        if self.failed_tries >= TRIES {
            self.failed_tries = 0;
            self.next_at = Some(now + RETRY);
        } else {
            self.next_at = Some(now);
        }
    }

    /// A packet of more than [`MTU_MIN`] bytes has arrived: such sizes pass.
    pub(crate) const fn on_large_seen(&mut self) {
        self.lost_flights = 0;
    }

    /// A whole flight of packets of `size` bytes was lost.
    pub(crate) fn on_flight_lost(&mut self, size: usize, now: Instant) {
        if size <= usize::from(MTU_MIN) {
            return;
        }
        self.lost_flights += 1;
        if self.lost_flights >= BLACK_HOLE {
            self.lost_flights = 0;
            self.current = MTU_MIN;
            self.next_at = Some(now + RETRY / 10);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_climbs_to_what_passes_and_rests_at_what_does_not() {
        let mut mtu = MtuSearch::new(1472);
        let mut now = Instant::from_micros(5);
        let mut number = 0;
        while let Some(size) = mtu.poll_probe(now) {
            mtu.on_probe_sent(number, size);
            assert_eq!(mtu.poll_probe(now), None, "one probe at a time");
            if size <= 1420 {
                assert!(mtu.on_acked(number, now));
            } else {
                mtu.on_probe_lost(number, now);
            }
            number += 1;
        }
        assert_eq!(mtu.current(), 1400);
        now = now + RETRY;
        assert_eq!(mtu.poll_probe(now), Some(1452));
    }

    #[test]
    fn a_black_hole_is_left() {
        let mut mtu = MtuSearch::new(1472);
        mtu.on_probe_sent(0, 1472);
        mtu.on_acked(0, Instant::ZERO);
        for _ in 0..BLACK_HOLE {
            mtu.on_flight_lost(1472, Instant::ZERO);
        }
        assert_eq!(mtu.current(), usize::from(MTU_MIN));
    }
}
