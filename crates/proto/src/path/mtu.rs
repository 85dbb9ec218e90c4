//! Path MTU discovery (RFC 8899 in small): from 1,200 bytes upwards by padded probes; a lost probe costs nothing but itself.

use core::time::Duration;

use crate::limits::{MTU_MAX, MTU_MIN};
use crate::time::Instant;

/// Sizes worth trying: IPv6's minimum less headers is below 1,200 already; tunnels; PPPoE; IPv6 and IPv4 over Ethernet.
const LADDER: [u16; 4] = [1280, 1400, 1452, MTU_MAX];
const TRIES: u8 = 3;
/// Flights of large packets lost whole, one after the other, after which the path is taken to have shrunk ..
const BLACK_HOLE: u8 = 4;
/// .. if what left later arrived, or else after so long: nothing may pass at all. (Each outage of a third of a second made paths narrow for a minute.)
const SILENT_FOR: Duration = Duration::from_secs(3);
/// How long a size that failed is left alone (RFC 8899 section 5.1.1).
const RETRY: Duration = Duration::from_secs(600);
/// How long the path is left narrow when large packets, and only those, were lost ..
const RETRY_NARROW: Duration = Duration::from_secs(60);
/// .. and when nothing arrived.
const RETRY_SILENT: Duration = Duration::from_secs(6);

/// A flight of which no packet arrived.
#[derive(Clone, Copy)]
pub(crate) struct LostFlight {
    /// Bytes of one of its packets.
    pub(crate) size: usize,
    pub(crate) began: Instant,
    /// Something that left after it began has arrived.
    pub(crate) is_overtaken: bool,
}

/// Flights of large packets that were lost one after the other.
#[derive(Clone, Copy, Default)]
struct LostFlights {
    count: u8,
    /// When the first of them began, and when the last was counted: what had begun by then met the same.
    since: Instant,
    until: Instant,
}

pub(crate) struct MtuSearch {
    current: u16,
    max: u16,
    failed_tries: u8,
    lost: LostFlights,
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
            lost: LostFlights::default(),
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
    pub(crate) fn on_large_seen(&mut self) {
        self.lost = LostFlights::default();
    }

    /// A whole flight was lost.
    pub(crate) fn on_flight_lost(&mut self, now: Instant, flight: LostFlight) {
        let lost = &mut self.lost;
        if flight.size <= usize::from(MTU_MIN) || flight.began < lost.until {
            return;
        }
        if lost.count == 0 {
            lost.since = flight.began;
        }
        lost.count = lost.count.saturating_add(1);
        lost.until = now;
        let is_silent = !flight.is_overtaken;
        if lost.count >= BLACK_HOLE && (!is_silent || now.since(lost.since) >= SILENT_FOR) {
            *lost = LostFlights::default();
            self.current = MTU_MIN;
            let wait = if is_silent {
                RETRY_SILENT
            } else {
                RETRY_NARROW
            };
            self.next_at = Some(now + wait);
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
        let ms = |ms: u64| Instant::from_micros(1000 * ms);
        // Flights of 20 ms, four of which are under way at once.
        let lose = |is_overtaken, flights| {
            let mut mtu = MtuSearch::new(1472);
            mtu.on_probe_sent(0, 1472);
            mtu.on_acked(0, Instant::ZERO);
            for number in 0..flights {
                for begun in 0..4 {
                    let flight = LostFlight {
                        size: 1472,
                        began: ms(number * 20 + begun),
                        is_overtaken,
                    };
                    mtu.on_flight_lost(ms(number * 20 + begun + 15), flight);
                }
            }
            mtu.current()
        };
        let narrow = usize::from(MTU_MIN);
        assert_eq!([lose(true, 3), lose(true, 4)], [1472, narrow]);
        // What nothing overtakes may be an outage.
        assert_eq!([lose(false, 100), lose(false, 200)], [1472, narrow]);
    }
}
