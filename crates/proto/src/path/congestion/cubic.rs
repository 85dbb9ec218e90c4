//! The window of CUBIC (RFC 9438), for when others fill the queue: it takes what a TCP flow takes.

use core::time::Duration;

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
    /// When it last grew.
    grew_at: Instant,
}

impl Cubic {
    /// `bytes` were acknowledged: the window's new value.
    pub(super) fn on_acked(&mut self, now: Instant, window: f64, bytes: f64, rtt: f64) -> f64 {
        let (window, acked) = (window / PACKET, bytes / PACKET);
        self.leave_out_idle(now, rtt);
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

    /// Where nothing filled the window for longer than two round trips, the curve did not go on: else it would have grown over any capacity meanwhile, and the window by half in
    /// the next round trip.
    fn leave_out_idle(&mut self, now: Instant, rtt: f64) {
        let idle = now.since(self.grew_at).as_secs_f64() - rtt;
        if let Some(epoch) = self.epoch.as_mut().filter(|_| idle > rtt) {
            *epoch = *epoch + Duration::from_secs_f64(idle);
        }
        self.grew_at = now;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression: the curve went on while an application left the window unfilled, and after a minute of that it grew by half in a round trip.
    #[test]
    fn time_in_which_nothing_filled_the_window_is_left_out() {
        let mut cubic = Cubic::default();
        let mut window = cubic.on_congestion(100.0 * PACKET);
        let mut now = Instant::from_micros(1_000_000);
        let mut round_trip = |window: &mut f64, pause_s: f64| {
            now = now + Duration::from_secs_f64(pause_s);
            let before = *window;
            for _ in 0..50 {
                *window = cubic.on_acked(now, *window, before / 50.0, 0.1);
                now = now + Duration::from_millis(2);
            }
            *window / before
        };
        let steadily: f64 = (0..10)
            .map(|_| round_trip(&mut window, 0.0))
            .fold(1.0, f64::max);
        assert!(steadily < 1.2, "{steadily}");
        let after_a_minute = round_trip(&mut window, 60.0);
        assert!(after_a_minute <= steadily, "{after_a_minute} {steadily}");
    }
}
