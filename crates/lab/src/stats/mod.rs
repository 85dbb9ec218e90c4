//! Numbers that say how it went, and how sure they are.
//!
//! `latency.rs` records latencies and gives quantiles; `interval.rs` gives intervals of a share, `quantile.rs` of a quantile;
//! `summary.rs` is what a run leaves behind, the same in JSON, in the report and on the terminal; `fairness.rs` compares shares.

mod fairness;
mod interval;
mod latency;
mod quantile;
mod summary;

#[cfg(test)]
mod tests;

pub use fairness::jain;
pub use interval::{
    CLUSTERS_MIN, Cluster, Interval, Turns, blocks, bootstrap, resample, share_interval, wilson,
};
pub use latency::Latencies;
pub use quantile::{design_effect, quantile_ranks};
pub use summary::{LatencyMs, Report, Summary};
