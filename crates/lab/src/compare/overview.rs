//! A policy over all rows.

use serde::Serialize;

use super::{Calibration, PolicyRow, Row};

/// Means over rows, each row counting the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Which policy.
    pub policy: String,
    /// Rows.
    pub rows: usize,
    /// Mean share of late messages.
    pub late_share: f64,
    /// Mean share of messages late for want of symbols.
    pub preventable_late_share: f64,
    /// Rows in which that is within the miss target.
    pub rows_target_met: usize,
    /// Rows in which the share of all late messages is.
    pub rows_target_met_counting_all: usize,
    /// Mean recovery overhead.
    pub recovery_overhead: f64,
    /// Mean recovery overhead beyond the floor of each row.
    pub recovery_overhead_beyond_floor: f64,
    /// Rows whose prediction lies within the interval.
    pub calibration: Calibration,
    /// Most late messages in a row, in any row.
    pub late_run_max: usize,
}

impl Overview {
    /// Of every policy, in the order of the rows'.
    pub fn all(rows: &[Row]) -> Vec<Self> {
        let first = rows.first().map_or(&[][..], |row| &row.policies);
        let names = first.iter().map(|policy| policy.policy.as_str());
        names.map(|name| Self::new(rows, name)).collect()
    }

    fn new(rows: &[Row], name: &str) -> Self {
        let pairs = rows.iter().filter_map(|row| Some((row, row.policy(name)?)));
        let pairs: Vec<(&Row, &PolicyRow)> = pairs.collect();
        let mean = |of: &dyn Fn(&(&Row, &PolicyRow)) -> f64| {
            pairs.iter().map(of).sum::<f64>() / pairs.len().max(1) as f64
        };
        let met = |late: fn(&PolicyRow) -> f64| {
            let is_met =
                |(row, policy): &&(&Row, &PolicyRow)| late(policy) <= row.miss_target() + 1e-9;
            pairs.iter().filter(is_met).count()
        };
        let runs = pairs.iter().map(|(_, policy)| policy.late_run_max);
        Self {
            policy: name.to_owned(),
            rows: pairs.len(),
            late_share: mean(&|(_, policy)| policy.late_share),
            preventable_late_share: mean(&|(_, policy)| policy.preventable_late_share),
            rows_target_met: met(|policy| policy.preventable_late_share),
            rows_target_met_counting_all: met(|policy| policy.late_share),
            recovery_overhead: mean(&|(_, policy)| policy.recovery_overhead),
            recovery_overhead_beyond_floor: mean(&|(row, policy)| {
                policy.recovery_overhead - row.floor_recovery_overhead.unwrap_or(0.0)
            }),
            calibration: Calibration::of(pairs.iter().map(|(_, policy)| *policy)),
            late_run_max: runs.max().unwrap_or(0),
        }
    }
}
