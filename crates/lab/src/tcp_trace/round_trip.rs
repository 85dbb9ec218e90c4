//! The retransmission timeout as a sender would compute it (RFC 6298, with the least timeout of Linux).

/// Smoothed round trip and its variation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RoundTrip {
    smoothed_ns: f64,
    variation_ns: f64,
}

/// Before the first round trip (RFC 6298, 2.1).
const TIMEOUT_FIRST_NS: f64 = 1e9;
/// Least of what is added to the round trip: Linux's `tcp_rto_min_us`.
const MARGIN_MIN_NS: f64 = 200e6;

impl RoundTrip {
    /// A round trip of a segment that was sent once (Karn's rule).
    pub(super) fn on_sample(&mut self, sample_ns: u64) {
        let sample = sample_ns as f64;
        if self.smoothed_ns == 0.0 {
            (self.smoothed_ns, self.variation_ns) = (sample, sample / 2.0);
        } else {
            self.variation_ns += ((self.smoothed_ns - sample).abs() - self.variation_ns) / 4.0;
            self.smoothed_ns += (sample - self.smoothed_ns) / 8.0;
        }
    }

    pub(super) fn timeout_ns(&self) -> u64 {
        let timeout = if self.smoothed_ns == 0.0 {
            TIMEOUT_FIRST_NS
        } else {
            self.smoothed_ns + (4.0 * self.variation_ns).max(MARGIN_MIN_NS)
        };
        timeout as u64
    }
}
