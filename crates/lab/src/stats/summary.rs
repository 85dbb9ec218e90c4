//! What a run leaves behind.

use serde::{Deserialize, Serialize};

use super::Interval;
use crate::genie::Floors;

/// Quantiles of the latency in milliseconds over all messages. None (null): that share of the messages never arrived.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LatencyMs {
    /// Half of the messages arrive within this.
    pub p50: Option<f64>,
    /// 95 %.
    pub p95: Option<f64>,
    /// 99 %.
    pub p99: Option<f64>,
    /// 99.5 %.
    pub p99_5: Option<f64>,
    /// 99.9 %.
    pub p99_9: Option<f64>,
    /// The latest of those that arrived.
    pub max: Option<f64>,
}

/// How one policy did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Which policy.
    pub policy: String,
    /// Messages that were to be sent.
    pub messages: u64,
    /// Their latency.
    pub latency_ms: LatencyMs,
    /// Share of messages that arrived after their deadline or never.
    pub late_share: f64,
    /// 95 % interval of that share.
    pub late_share_95: Interval,
    /// What the policy itself predicted; None when it predicts nothing.
    pub predicted_late_share: Option<f64>,
    /// Symbols sent beyond those needed, as a share of those needed.
    pub recovery_overhead: f64,
    /// Bytes of headers and tags, as a share of the messages' bytes; None when those had none.
    pub encapsulation_overhead: Option<f64>,
    /// Messages that never arrived, with those that were not accepted for sending.
    pub lost_messages: u64,
    /// The seed that repeats the run.
    pub seed: u64,
}

/// A run of several policies over the same network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// All that is needed to repeat it: path, deadline, target, workload, versions.
    pub settings: serde_json::Value,
    /// The limits of the network, where they are known; in JSON their fields stand beside these.
    #[serde(flatten)]
    pub floors: Option<Floors>,
    /// How each policy did.
    pub policies: Vec<Summary>,
}
