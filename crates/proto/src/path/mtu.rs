//! Path MTU discovery (RFC 8899 in small): from 1,200 bytes upwards by padded probes; a lost probe costs nothing but itself.

use core::time::Duration;

use crate::limits::{MTU_MAX, MTU_MIN};
use crate::time::Instant;

/// Sizes worth trying: IPv6's minimum less headers is below 1,200 already; tunnels; PPPoE; IPv6 and IPv4 over Ethernet.
const LADDER: [u16; 4] = [1280, 1400, 1452, MTU_MAX];
const TRIES: u8 = 3;
/// Large packets lost in turn, with none arriving between them, after which the path may have shrunk. It has if something smaller passes and a large packet that leaves later does
/// not. (What an outage takes is no sign: one of a third of a second is as many.)
const BLACK_HOLE: u8 = 4;
/// A size is tried again after so long, and then after twice as long.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Whether anything passes is asked again after so long.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How long a size that failed is left alone (RFC 8899 section 5.1.1).
const RETRY: Duration = Duration::from_secs(600);
/// How long the path is left narrow.
const RETRY_NARROW: Duration = Duration::from_secs(60);

/// Large packets that were lost, each sent after the one before was known to be.
#[derive(Clone, Copy, Default)]
struct LostInTurn {
    count: u8,
    /// Bytes of the smallest of them, and of the largest packet that has arrived meanwhile: a loss of such a one is another matter.
    size: usize,
    arrived: usize,
    /// When the first of them left, and when the last was known to be lost: what had left by then met the same.
    since: Instant,
    until: Instant,
    /// When something smaller left that has arrived.
    passed_at: Option<Instant>,
}

pub(crate) struct MtuSearch {
    current: u16,
    max: u16,
    failed_tries: u8,
    /// It is to be asked whether the least size passes, since nothing larger does (RFC 8899 section 4.3); and not before this.
    asks: bool,
    ask_at: Instant,
    lost: LostInTurn,
    /// Packets of so many bytes do not pass.
    too_large: usize,
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
            asks: false,
            ask_at: Instant::ZERO,
            lost: LostInTurn::default(),
            too_large: usize::MAX,
            probe: None,
            next_at: Some(Instant::ZERO),
        }
    }

    /// The path follows another: what was cut for that one has to show that it passes here.
    pub(crate) fn follow_another(&mut self) {
        self.too_large = usize::from(MTU_MIN) + 1;
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
        let (at, size) = self.next_probe()?;
        (now >= at).then_some(usize::from(size))
    }

    /// When the next probe is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.next_probe().map(|(at, _)| at)
    }

    fn next_probe(&self) -> Option<(Instant, u16)> {
        if self.probe.is_some() {
            return None;
        }
        if self.asks {
            return Some((self.ask_at, MTU_MIN));
        }
        self.next_at.zip(self.next_size())
    }

    fn next_size(&self) -> Option<u16> {
        let ladder = LADDER
            .into_iter()
            .find(|&size| size > self.current && size <= self.max);
        ladder.or_else(|| (self.max > self.current).then_some(self.max))
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
        self.probe = None;
        // (That of the least size has told, as any packet that arrives, that something passes.)
        if size > MTU_MIN {
            self.current = self.current.max(size);
            self.failed_tries = 0;
            self.next_at = Some(now);
        }
        true
    }

    pub(crate) fn on_probe_lost(&mut self, number: u64, now: Instant) {
        let Some((_, size)) = self.probe.take_if(|probe| probe.0 == number) else {
            return;
        };
        if size == MTU_MIN {
            self.asks = false;
            self.ask_at = now + ASK_AGAIN;
            return;
        }
        self.failed_tries += 1;
        if self.failed_tries >= TRIES {
            self.failed_tries = 0;
            self.next_at = Some(now + RETRY);
        } else {
            // All tries are not to fall into one outage (RFC 8899 section 5.1.1).
            self.next_at = Some(now + TRY_AGAIN * u32::from(self.failed_tries));
        }
    }

    /// Whether it is to be asked if anything passes.
    pub(crate) const fn asks(&self) -> bool {
        self.asks
    }

    /// Whether packets of `size` bytes were cut for a path that was wider.
    pub(crate) const fn is_too_large(&self, size: usize) -> bool {
        size >= self.too_large
    }

    /// A packet of `size` bytes has arrived.
    pub(crate) fn on_arrived(&mut self, size: usize, sent_at: Instant) {
        if size >= self.too_large {
            self.too_large = usize::MAX;
        }
        let lost = &mut self.lost;
        if size >= lost.size {
            *lost = LostInTurn::default();
            self.asks = false;
        } else if sent_at >= lost.since {
            lost.arrived = lost.arrived.max(size);
            if lost.count >= BLACK_HOLE {
                lost.passed_at.get_or_insert(sent_at);
                self.asks = false;
            }
        }
    }

    /// A packet of `size` bytes was lost.
    pub(crate) fn on_lost(&mut self, now: Instant, size: usize, sent_at: Instant) {
        if size <= usize::from(MTU_MIN) {
            return;
        }
        let lost = &mut self.lost;
        if size <= lost.arrived {
            *lost = LostInTurn::default();
        }
        if lost.count == 0 {
            (lost.since, lost.size) = (sent_at, size);
        }
        lost.size = lost.size.min(size);
        if sent_at >= lost.until {
            lost.count = lost.count.saturating_add(1);
            lost.until = now;
        }
        if lost.count < BLACK_HOLE {
            return;
        }
        let size = lost.size;
        match lost.passed_at {
            None => self.asks |= now >= self.ask_at,
            Some(passed_at) if sent_at >= passed_at => {
                *lost = LostInTurn::default();
                self.too_large = self.too_large.min(size);
                if size <= self.current() {
                    self.current = MTU_MIN;
                    self.next_at = Some(now + RETRY_NARROW);
                }
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_micros(1000 * ms)
    }

    /// A path that has been found to carry 1,472 bytes.
    fn wide() -> MtuSearch {
        let mut mtu = MtuSearch::new(1472);
        mtu.on_probe_sent(0, 1472);
        mtu.on_acked(0, Instant::ZERO);
        mtu
    }

    /// A regression: of a largest datagram between two steps the lower one was the last that was tried.
    #[test]
    fn the_largest_datagram_is_tried_as_well() {
        for max in [1201, 1300, 1392, 1420, 1460, 1472] {
            let mut mtu = MtuSearch::new(max);
            let now = Instant::from_micros(5);
            let mut number = 0;
            while let Some(size) = mtu.poll_probe(now) {
                mtu.on_probe_sent(number, size);
                mtu.on_acked(number, now);
                number += 1;
            }
            assert_eq!(mtu.current(), usize::from(max));
        }
    }

    #[test]
    fn the_search_climbs_to_what_passes_and_rests_at_what_does_not() {
        let mut mtu = MtuSearch::new(1472);
        let mut now = Instant::from_micros(5);
        let mut number = 0;
        let mut lost_at = Vec::new();
        while lost_at.len() < 3 {
            let Some(size) = mtu.poll_probe(now) else {
                now = now + Duration::from_millis(100);
                continue;
            };
            mtu.on_probe_sent(number, size);
            assert_eq!(mtu.poll_probe(now), None, "one probe at a time");
            if size <= 1420 {
                assert!(mtu.on_acked(number, now));
            } else {
                mtu.on_probe_lost(number, now);
                lost_at.push(now);
            }
            number += 1;
        }
        assert_eq!(mtu.current(), 1400);
        // All three fell into an outage of a third of a second, and the path was narrow for ten minutes.
        let tried_for = lost_at[2].since(lost_at[0]);
        assert!(tried_for >= Duration::from_secs(3), "{tried_for:?}");
        assert_eq!(mtu.poll_probe(now + RETRY / 2), None);
        now = now + RETRY;
        assert_eq!(mtu.poll_probe(now), Some(1452));
    }

    #[test]
    fn a_black_hole_is_left() {
        // Flights of 20 ms, four packets of which are under way at once, and something small each 5 ms that passes from some time on.
        let lose = |flights, dark_until: u64| {
            let mut mtu = wide();
            for number in 0..flights {
                for begun in 0..4 {
                    let sent_ms = number * 20 + begun * 5;
                    if sent_ms >= dark_until {
                        mtu.on_arrived(100, ms(sent_ms));
                    }
                    mtu.on_lost(ms(sent_ms + 15), 1472, ms(sent_ms));
                }
            }
            (mtu.current(), mtu.is_too_large(1472))
        };
        assert_eq!(lose(2, 0), (1472, false));
        assert_eq!(lose(6, 0), (1200, true));
        // What nothing smaller survives may be an outage, until something does.
        assert_eq!(lose(100, u64::MAX), (1472, false));
        assert_eq!(lose(100, 1980), (1200, true));
    }

    #[test]
    fn what_an_outage_takes_is_no_black_hole() {
        let mut mtu = wide();
        for number in 0..50 {
            mtu.on_lost(ms(number * 20 + 20), 1472, ms(number * 20));
        }
        // It is over; the small one left first, and what was lost before is known only now.
        mtu.on_arrived(100, ms(1010));
        mtu.on_lost(ms(1030), 1472, ms(1005));
        mtu.on_arrived(1472, ms(1011));
        mtu.on_lost(ms(1040), 1472, ms(1020));
        assert_eq!((mtu.current(), mtu.is_too_large(1472)), (1472, false));
    }

    /// A path of 1,330 bytes and a loss now and then, once 1,280 pass again.
    #[test]
    fn what_passes_again_is_not_narrow_by_one_loss() {
        let mut mtu = wide();
        let lose = |mtu: &mut MtuSearch, from_ms: u64, count: u64| {
            for number in 0..count {
                let sent_ms = from_ms + number * 20;
                mtu.on_arrived(100, ms(sent_ms));
                mtu.on_lost(ms(sent_ms + 15), 1472, ms(sent_ms + 1));
            }
        };
        lose(&mut mtu, 0, 10);
        assert_eq!(mtu.current(), 1200);
        mtu.on_probe_sent(1, 1280);
        mtu.on_acked(1, ms(60_000));
        mtu.on_lost(ms(60_100), 1280, ms(60_050));
        assert_eq!(mtu.current(), 1280);
        // Blocks of the old cut are lost, 1,280 bytes arrive, and are lost once.
        mtu.on_arrived(1280, ms(60_100));
        lose(&mut mtu, 60_200, 3);
        mtu.on_arrived(1280, ms(60_300));
        mtu.on_lost(ms(60_400), 1280, ms(60_350));
        lose(&mut mtu, 60_400, 3);
        assert_eq!((mtu.current(), mtu.is_too_large(1280)), (1280, false));
        assert!(mtu.is_too_large(1472));
    }

    #[test]
    fn where_nothing_arrives_it_is_asked_whether_anything_does() {
        let mut mtu = wide();
        let mut asked = Vec::new();
        for number in 1..=200 {
            let sent_at = ms(number * 20);
            mtu.on_lost(sent_at + Duration::from_millis(20), 1472, sent_at);
            if let Some(size) = mtu.poll_probe(sent_at + Duration::from_millis(20)) {
                asked.push((number, size));
                mtu.on_probe_sent(number, size);
                mtu.on_probe_lost(number, sent_at + Duration::from_millis(40));
            }
        }
        // Once it looks like it, and each second from then on.
        assert_eq!(asked, [(4, 1200), (55, 1200), (106, 1200), (157, 1200)]);
    }
}
