//! The two regions of the Pangolin paper: the marginals of round trip, its variation and loss.
//!
//! The paper shows distributions as figures, of which only what its text says can be read here:
//! - clients' mean round trips: medians "about" 100 ms (North America) and 200 ms (Europe); 2.5 % of North America's above 200 ms,
//!   "larger than most clients from Europe"; 19 of 10,304 clients above 1,000 ms (both regions);
//! - variation (90 % quantile less 10 % quantile): above 100 ms for some clients of both regions, predominantly those with large round trips;
//! - loss: more of Europe's clients have any, and they have more of it.
//!
//! Two more numbers follow from its tables, because at 95 % loss hardly matters (in Table 3 TCP and retransmission agree there): Table 1's 95 % column bounds
//! the 95 % quantile of round trips from above (156 and 264 ms), and 219 ms for both regions together (Table 3) puts Europe's
//! 90 % quantile near 220 ms. Everything else is assumed, and says so in `about` and [`COMMON`].

use super::Quantiles;

/// Where clients are, and how their paths are distributed.
#[derive(Debug)]
pub struct Region {
    /// For names.
    pub name: &'static str,
    /// For reports: what is from the paper and what is assumed.
    pub about: &'static str,
    /// Mean round trips of clients in milliseconds.
    pub rtt_mean_ms: Quantiles,
    /// Variation of a client's round trips, divided by their mean.
    pub variation_per_rtt: Quantiles,
    /// Share of clients without any loss.
    pub lossless: f64,
    /// Share of packets lost, of clients that lose any.
    pub loss: Quantiles,
}

/// Of one client, whatever its rank elsewhere. Assumed: half of all clients vary by less than a twelfth of their round trip.
const VARIATION_PER_RTT: Quantiles = Quantiles(&[
    (0.0, 0.02),
    (0.25, 0.05),
    (0.5, 0.08),
    (0.75, 0.15),
    (0.9, 0.3),
    (0.97, 0.6),
    (0.999, 1.2),
]);

/// What is assumed of both regions.
pub(super) const COMMON: &str = "Assumed for both: a client's variation is a share of its round trip, drawn independently (median \
    8 %, one client of ten above 30 %), so that large variation is found with large round trips, as the paper says; the mean round trip ends \
    at 5 s; a client's round trips are a least one plus an exponential part, independent after 50 ms; variation and loss are in the way \
    of the messages, and the way back takes half of the least round trip; loss is independent of round trip and variation.";

impl Region {
    /// "70% unique clients from North America".
    pub const NORTH_AMERICA: Self = Self {
        name: "na",
        about: "North America: median of mean round trips 100 ms, 2.5 % above 200 ms, 0.18 % above 1,000 ms (the paper's text); 95 % \
            quantile 131 ms, so that the messages' one is near that of its Table 1; the rest assumed, with a power law above 200 ms through both stated \
            points. Half of the clients lose packets, the median of those 0.8 % (assumed: the paper says only that it is less than in Europe).",
        rtt_mean_ms: Quantiles(&[
            (0.0, 35.0),
            (0.1, 68.0),
            (0.25, 84.0),
            (0.5, 100.0),
            (0.75, 113.0),
            (0.9, 124.0),
            (0.95, 131.0),
            (0.97, 150.0),
            (0.975, 200.0),
            // The power law through 2.5 % above 200 ms and 0.18 % above 1,000 ms, as far as 5 s.
            (0.998_16, 1000.0),
            (0.999_868, 5000.0),
        ]),
        variation_per_rtt: VARIATION_PER_RTT,
        lossless: 0.5,
        loss: Quantiles(&[
            (0.0, 0.0005),
            (0.25, 0.003),
            (0.5, 0.008),
            (0.75, 0.018),
            (0.9, 0.04),
            (0.97, 0.07),
            (0.999, 0.12),
        ]),
    };

    /// "and 30% from Europe".
    pub const EUROPE: Self = Self {
        name: "eu",
        about: "Europe: median of mean round trips 195 ms (the paper: about 200 ms, and most below 200 ms), 0.18 % above 1,000 ms; 90 % \
            and 95 % quantiles 210 and 218 ms, so that the messages' ones are near those of its Tables 3 and 1; the rest assumed, with a power law above \
            232 ms. Two thirds of the clients lose packets, the median of those 1 % (assumed: the paper says only that both are more than in North America).",
        rtt_mean_ms: Quantiles(&[
            (0.0, 105.0),
            (0.1, 150.0),
            (0.25, 175.0),
            (0.5, 195.0),
            (0.75, 203.0),
            (0.9, 210.0),
            (0.95, 218.0),
            (0.97, 232.0),
            (0.998_16, 1000.0),
            (0.999_95, 5000.0),
        ]),
        variation_per_rtt: VARIATION_PER_RTT,
        lossless: 0.33,
        loss: Quantiles(&[
            (0.0, 0.0006),
            (0.25, 0.004),
            (0.5, 0.01),
            (0.75, 0.022),
            (0.9, 0.05),
            (0.97, 0.08),
            (0.999, 0.15),
        ]),
    };
}
