//! The CUBIC window (RFC 9438), in packets.

/// RFC 9438 section 4.6: what is left after a loss.
const BETA: f64 = 0.7;
/// RFC 9438 section 5.1: how fast the cubic grows, in packets per second cubed.
const C: f64 = 0.4;
/// RFC 9438 section 4.3: growth in packets a round trip that is as fast as Reno's with this `BETA`.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// A congestion window that grows by RFC 9438.
#[derive(Debug, Clone)]
pub struct Cubic {
    window: f64,
    threshold: f64,
    /// The window that the curve has its plateau at.
    window_max: f64,
    /// The window before the newest loss.
    window_prior: f64,
    /// What Reno would have.
    estimate: f64,
    /// When the curve began, in seconds.
    epoch: Option<f64>,
    /// Seconds from the curve's beginning to its plateau.
    plateau: f64,
}

impl Default for Cubic {
    fn default() -> Self {
        Self {
            window: 10.0,
            threshold: f64::INFINITY,
            window_max: 0.0,
            window_prior: 0.0,
            estimate: 0.0,
            epoch: None,
            plateau: 0.0,
        }
    }
}

impl Cubic {
    /// Packets that may be under way.
    pub const fn window(&self) -> f64 {
        self.window
    }

    /// `packets` were acknowledged at `now` seconds, with the smoothed round trip `rtt` in seconds.
    pub fn on_acked(&mut self, now: f64, packets: f64, rtt: f64) {
        if self.window < self.threshold {
            self.window += packets;
            return;
        }
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.plateau = libm::cbrt((self.window_max - self.window).max(0.0) / C);
            self.window_max = self.window_max.max(self.window);
            self.estimate = self.window;
            now
        });
        let alpha = if self.estimate < self.window_prior {
            ALPHA
        } else {
            1.0
        };
        self.estimate += alpha * packets / self.window;
        let cubic = |t: f64| {
            let since = t - self.plateau;
            C * since * since * since + self.window_max
        };
        let elapsed = now - epoch;
        if cubic(elapsed) < self.estimate {
            self.window = self.window.max(self.estimate);
        } else {
            let target = cubic(elapsed + rtt).clamp(self.window, 1.5 * self.window);
            self.window += packets * (target - self.window) / self.window;
        }
    }

    /// A new loss event.
    pub fn on_loss(&mut self) {
        self.window_prior = self.window;
        // Fast convergence (RFC 9438 section 4.7): a flow that shrinks makes room.
        self.window_max = if self.window < self.window_max {
            self.window * (1.0 + BETA) / 2.0
        } else {
            self.window
        };
        self.window = (self.window * BETA).max(2.0);
        self.threshold = self.window;
        self.epoch = None;
    }

    /// Nothing was acknowledged for the time of RFC 6298. What is lost again says nothing more of the network (RFC 5681 section 3.1).
    pub fn on_timeout(&mut self, is_again: bool) {
        if !is_again {
            self.on_loss();
        }
        self.window = 1.0;
        self.epoch = None;
    }
}
