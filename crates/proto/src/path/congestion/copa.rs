//! The window of Copa (Arun & Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018,
//! section 2): it moves towards the rate 1/(delta * queueing delay), at which n flows keep n/delta packets in the queue between
//! them, faster the longer it has moved in one direction.

use super::PACKET;
use super::delays::Delays;
use crate::time::Instant;

/// Packets that a flow wants in the queue are 1/`DELTA`. The paper's default is 0.5.
const DELTA: f64 = 1.0;
/// Round trips in one direction before the velocity doubles.
const PATIENCE: u8 = 3;
/// A window does not change by more than this share of itself in a round trip.
const STEP_MAX: f64 = 0.5;
/// A rising window covers at most this share of the distance to its last ceiling, or from it, in a round trip.
const APPROACH: f64 = 0.25;

#[derive(Clone, Copy)]
pub(super) struct Copa {
    velocity: f32,
    is_rising: bool,
    /// Round trips that the direction has held.
    held: u8,
    /// The window at the last look, less than a round trip ago, and at the one before.
    looked_at: Instant,
    window_then: f32,
    window_before: f32,
    /// The window at which a queue was last seen to begin.
    ceiling: f32,
}

impl Default for Copa {
    fn default() -> Self {
        Self {
            velocity: 1.0,
            is_rising: true,
            held: 0,
            looked_at: Instant::ZERO,
            window_then: 0.0,
            window_before: 0.0,
            ceiling: 0.0,
        }
    }
}

impl Copa {
    /// Whether the window is below its target: window / standing <= 1 / (delta * queue).
    pub(super) fn is_below_target(window: f64, delays: &Delays) -> bool {
        let packet_us = delays.turn_us() * PACKET / window;
        DELTA * delays.own_queue_us(packet_us) <= packet_us
    }

    /// `bytes` were acknowledged: the window's new value.
    pub(super) fn on_acked(
        &mut self,
        now: Instant,
        window: f64,
        bytes: f64,
        delays: &Delays,
    ) -> f64 {
        let rises = Self::is_below_target(window, delays);
        self.look(now, window, delays);
        if rises != self.is_rising && self.velocity > 1.0 {
            // What this packet met is what the window of a round trip ago led to; since then the window has run on.
            let window = f64::from(self.window_before);
            if self.is_rising {
                self.ceiling = window as f32;
            }
            self.turn(now, window, rises);
            return window;
        }
        if !rises && self.is_rising {
            self.ceiling = window as f32;
        }
        // Slowly past the place where the queue began the last time (the idea of CUBIC's plateau): feedback is a round trip late, and
        // what the window overshoots by stands in the queue.
        let distance = (f64::from(self.ceiling) - window).abs();
        let most = if rises {
            (distance * APPROACH).max(PACKET / DELTA)
        } else {
            window * STEP_MAX
        };
        let step = (f64::from(self.velocity) * PACKET / DELTA).min(most);
        let change = step * bytes / window;
        if rises {
            window + change
        } else {
            window - change
        }
    }

    /// Once a round trip: does the direction hold?
    fn look(&mut self, now: Instant, window: f64, delays: &Delays) {
        if now.since(self.looked_at) < delays.smoothed() {
            return;
        }
        let rises = window > f64::from(self.window_then);
        if rises == self.is_rising {
            self.held = self.held.saturating_add(1);
            if self.held > PATIENCE {
                self.velocity = (self.velocity * 2.0).min(1e6);
            }
        } else {
            self.turn(now, window, rises);
        }
        self.looked_at = now;
        self.window_before = self.window_then;
        self.window_then = window as f32;
    }

    fn turn(&mut self, now: Instant, window: f64, rises: bool) {
        *self = Self {
            velocity: 1.0,
            is_rising: rises,
            held: 0,
            looked_at: now,
            window_then: window as f32,
            window_before: window as f32,
            ceiling: self.ceiling,
        };
    }

    /// A queue began, somewhere near this window.
    pub(super) fn begin_at(&mut self, now: Instant, window: f64) {
        self.ceiling = window as f32;
        self.turn(now, window, true);
    }

    /// The window was set by something else.
    pub(super) fn restart(&mut self, now: Instant, window: f64) {
        self.turn(now, window, true);
    }
}
