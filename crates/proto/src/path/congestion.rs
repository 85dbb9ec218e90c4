//! NewReno as in RFC 9002 section 7 and appendix B, with ECN; repair symbols count like all else.
//!
//! One difference (decision 0003): a single loss never shrinks the window below the initial one of ten packets, which any
//! newly opened session may send; only persistent congestion does. A game that sends one message a second over a path with
//! 2 % random loss never fills its window, so it never grows again, and two packets would not hold one message.

use crate::limits::MTU_MIN;
use crate::time::Instant;

const PACKET: u64 = MTU_MIN as u64;
/// RFC 9002 section 7.2: ten packets.
const INITIAL: u64 = 10 * PACKET;
/// RFC 9002 section 7.2: kMinimumWindow, reached after persistent congestion only.
const MINIMUM: u64 = 2 * PACKET;

pub(crate) struct NewReno {
    window: u64,
    threshold: u64,
    in_flight: u64,
    /// Losses of packets sent before this are the same event.
    recovery_since: Option<Instant>,
    /// When the window was last filled. Packets sent later prove nothing of it.
    filled_at: Option<Instant>,
    /// Bytes acknowledged towards the next packet of growth.
    credit: u64,
}

impl Default for NewReno {
    fn default() -> Self {
        Self {
            window: INITIAL,
            threshold: u64::MAX,
            in_flight: 0,
            recovery_since: None,
            filled_at: None,
            credit: 0,
        }
    }
}

impl NewReno {
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    pub(crate) const fn may_send(&self, bytes: usize) -> bool {
        self.in_flight + bytes as u64 <= self.window
    }

    pub(crate) const fn on_sent(&mut self, now: Instant, bytes: usize) {
        self.in_flight += bytes as u64;
        if self.in_flight + PACKET > self.window {
            self.filled_at = Some(now);
        }
    }

    /// A packet is no longer under way, without a verdict.
    pub(crate) const fn on_forgotten(&mut self, bytes: usize) {
        self.in_flight = self.in_flight.saturating_sub(bytes as u64);
    }

    pub(crate) fn on_acked(&mut self, sent_at: Instant, bytes: usize) {
        // RFC 9002 section 7.8: a window that was not filled proves nothing, and does not grow.
        let was_filled = self.filled_at.is_some_and(|at| sent_at <= at);
        self.on_forgotten(bytes);
        if self.recovery_since.is_some_and(|since| sent_at <= since) || !was_filled {
            return;
        }
        if self.window < self.threshold {
            self.window += bytes as u64;
            return;
        }
        self.credit += bytes as u64;
        if self.credit >= self.window {
            self.credit -= self.window;
            self.window += PACKET;
        }
    }

    pub(crate) fn on_lost(&mut self, now: Instant, sent_at: Instant, bytes: usize) {
        self.on_forgotten(bytes);
        self.on_congestion(now, sent_at);
    }

    /// A loss or an ECN mark on a packet sent at `sent_at`.
    pub(crate) fn on_congestion(&mut self, now: Instant, sent_at: Instant) {
        if self.recovery_since.is_some_and(|since| sent_at <= since) {
            return;
        }
        self.recovery_since = Some(now);
        // Never below the initial window: see above. One that persistent congestion made smaller is left as it is.
        self.window = (self.window / 2).max(INITIAL.min(self.window));
        self.threshold = self.window;
        self.credit = 0;
    }

    /// RFC 9002 section 7.6: everything was lost for long.
    pub(crate) const fn on_persistent_congestion(&mut self) {
        self.window = MINIMUM;
        self.recovery_since = None;
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1000)
    }

    #[test]
    fn an_idle_session_neither_grows_nor_shrinks() {
        let mut reno = NewReno::default();
        for i in 0..1000 {
            reno.on_sent(at(i), 1200);
            reno.on_acked(at(i), 1200);
        }
        assert_eq!(reno.window(), INITIAL);
        for i in 0..50 {
            reno.on_sent(at(1999 + i), 1200);
            reno.on_lost(at(2000 + i), at(1999 + i), 1200);
        }
        assert_eq!(reno.window(), INITIAL);
    }

    #[test]
    fn a_full_window_doubles_and_one_event_halves_once() {
        let mut reno = NewReno::default();
        for round in 0..4 {
            let packets = reno.window() / 1200;
            for _ in 0..packets {
                assert!(reno.may_send(1200));
                reno.on_sent(at(round * 100), 1200);
            }
            assert!(!reno.may_send(1200));
            for _ in 0..packets {
                reno.on_acked(at(round * 100), 1200);
            }
        }
        let before = reno.window();
        assert_eq!(before, 16 * INITIAL, "four round trips, each doubles");
        for _ in 0..5 {
            reno.on_sent(at(900), 1200);
        }
        for _ in 0..5 {
            reno.on_lost(at(1000), at(900), 1200);
        }
        assert_eq!(reno.window(), before / 2);
        reno.on_persistent_congestion();
        assert_eq!(reno.window(), MINIMUM);
    }
}
