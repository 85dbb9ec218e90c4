//! The window of CUBIC (RFC 9438), for when others fill the queue: it takes what a TCP flow takes.

use super::PACKET;
use crate::time::Instant;

/// RFC 9438 section 4.6: what is left after a congestion event.
pub(super) const BETA: f64 = 0.7;
/// Windows below this many packets fall to little more than a third of themselves (Reno's halve). TCP waits for timeouts there, which we do not need:
/// with the same share left we would take a third more than it does, and with 0.4 below ten packets a fifth.
const SMALL: f32 = 12.0;
const BETA_SMALL: f64 = 0.36;
/// RFC 9438 section 5.1: growth in packets per second cubed.
const C: f64 = 0.4;
/// RFC 9438 section 4.3: packets a round trip that are as fast as Reno's one with a halving.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The curve. Windows are in packets.
#[derive(Clone, Copy, Default)]
pub(super) struct Cubic {
    /// The window at the curve's plateau.
    window_max: f32,
    /// The window before the newest congestion event.
    window_prior: f32,
    /// What Reno would have.
    estimate: f32,
    /// Seconds from the curve's beginning to its plateau.
    plateau: f32,
    /// When the curve began: at the first acknowledgement after a congestion event.
    epoch: Option<Instant>,
}

impl Cubic {
    /// `bytes` were acknowledged: the window's new value.
    pub(super) fn on_acked(&mut self, now: Instant, window: f64, bytes: f64, rtt: f64) -> f64 {
        let (window, acked) = (window / PACKET, bytes / PACKET);
        let epoch = *self.epoch.get_or_insert_with(|| {
            let missing = (f64::from(self.window_max) - window).max(0.0);
            self.plateau = libm::cbrt(missing / C) as f32;
            self.window_max = self.window_max.max(window as f32);
            self.estimate = window as f32;
            now
        });
        let alpha = if self.estimate < self.window_prior {
            ALPHA
        } else {
            1.0
        };
        self.estimate += (alpha * acked / window) as f32;
        let elapsed = now.since(epoch).as_secs_f64();
        let estimate = f64::from(self.estimate);
        let grown = if self.at(elapsed) < estimate {
            window.max(estimate)
        } else {
            let target = self.at(elapsed + rtt).clamp(window, 1.5 * window);
            window + acked * (target - window) / window
        };
        grown * PACKET
    }

    fn at(&self, elapsed: f64) -> f64 {
        let t = elapsed - f64::from(self.plateau);
        C * t * t * t + f64::from(self.window_max)
    }

    /// A congestion event: what is left of the window. A flow that shrinks makes room (fast convergence, section 4.7).
    pub(super) fn on_congestion(&mut self, window: f64) -> f64 {
        let packets = (window / PACKET) as f32;
        self.window_max = if packets < self.window_max {
            packets * (1.0 + BETA as f32) / 2.0
        } else {
            packets
        };
        self.window_prior = packets;
        self.epoch = None;
        window * if packets < SMALL { BETA_SMALL } else { BETA }
    }

    /// The window was set by something else: the curve begins at its plateau.
    pub(super) fn restart(&mut self, window: f64) {
        let packets = (window / PACKET) as f32;
        *self = Self {
            window_max: packets,
            window_prior: packets,
            ..Self::default()
        };
    }
}
