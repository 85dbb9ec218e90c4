//! Whether the machine kept the network's time.
//!
//! Two things can go wrong: a packet waits in the device before the emulator takes it (*lag*), and it leaves later than it was due
//! (*lateness*). The second is seen of every packet. The first is seen of packets that the emulator sends to itself, a hundred a
//! second and cable, through the clients' device.

use crate::stats::Latencies;

/// More than this for one packet of a hundred is a network that nobody asked for.
const ERROR_MAX_MS: f64 = 1.0;

/// How far from what was asked for packets were delayed.
#[derive(Debug, Clone, Default)]
pub struct Timing {
    /// Of the emulator's own packets: how long they waited until they were taken.
    pub lag: Latencies,
    /// Of all packets: how long after they were due they were passed on.
    pub lateness: Latencies,
}

impl Timing {
    /// Milliseconds of error that 99 of 100 packets stayed below: both parts, as if they came together.
    pub fn error_ms_p99(&self) -> f64 {
        let (lag, lateness) = self.parts_ms_p99();
        lag + lateness
    }

    /// Whether the machine was fast enough: 99 of 100 packets within a millisecond.
    pub fn is_held(&self) -> bool {
        self.error_ms_p99() <= ERROR_MAX_MS
    }

    /// A sentence for reports.
    pub fn verdict(&self) -> String {
        if self.lateness.messages() == 0 {
            return "no packet was passed on, so nothing is known of the timing".to_owned();
        }
        let (lag, lateness) = self.parts_ms_p99();
        let error = lag + lateness;
        if self.is_held() {
            format!(
                "timing held: 99 % of packets within {error:.2} ms (taken after {lag:.2} ms, passed on {lateness:.2} ms late)"
            )
        } else {
            format!(
                "the machine did not hold the network's timing: 1 % of packets are more than {error:.2} ms off (taken after \
                 {lag:.2} ms, passed on {lateness:.2} ms late), so the figures are the machine's as much as the network's"
            )
        }
    }

    fn parts_ms_p99(&self) -> (f64, f64) {
        let p99 = |latencies: &Latencies| latencies.quantile_ms(0.99).unwrap_or(0.0);
        (p99(&self.lag), p99(&self.lateness))
    }
}
