//! The figures of one row.

use serde::Serialize;

use super::plan::deadline;
use super::{Part, Plan, Setup};
use crate::simulate::{LateCause, MessageFate, PolicyResult};
use crate::stats::{Interval, blocks, share_interval};

/// Time that is drawn as a whole for intervals: several times the half second for which the recorded paths are dark at worst.
const BLOCK_S: f64 = 5.0;
/// Blocks of a short run, at least: with fewer a bootstrap says little.
const BLOCKS_MIN: usize = 20;

/// All policies over one recording, with one deadline, target and size of message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The recording's name.
    pub trace: String,
    /// What it is for.
    pub part: Part,
    /// Its median round trip.
    pub rtt_median_ms: f64,
    /// The deadline in median round trips.
    pub deadline_rtt: f64,
    /// The deadline.
    pub deadline_ms: f64,
    /// Share of messages that shall be on time.
    pub on_time_target: f64,
    /// Source symbols of a message.
    pub symbols: u8,
    /// Messages of each policy: more than the plan has, where chance left the row open.
    pub messages: u64,
    /// Share of messages that are late whatever is sent.
    pub floor_late_share: f64,
    /// Symbols beyond those needed when each lost one is replaced at once; None (null) when nothing gets through.
    pub floor_recovery_overhead: Option<f64>,
    /// How each policy did, in the plan's order.
    pub policies: Vec<PolicyRow>,
}

/// How a policy did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyRow {
    /// Which.
    pub policy: String,
    /// Share of messages that were late, never arrived or were refused.
    pub late_share: f64,
    /// Its 95 % interval: blocks of time are resampled, since misses come in runs; never narrower than for independent messages.
    pub late_share_95: Interval,
    /// `late_share` by cause.
    pub late_by_cause: CauseShares,
    /// Late, and no symbols would have prevented it: hopeless, queue, delay and path down.
    pub not_preventable_share: f64,
    /// The rest of the late: loss, and what nobody explains.
    pub preventable_late_share: f64,
    /// Its interval, as that of `late_share`.
    pub preventable_late_share_95: Interval,
    /// Symbols sent beyond those needed, as a share of those needed.
    pub recovery_overhead: f64,
    /// Mean over messages of the probability of a miss that the protocol predicted when they were sent; None (null) when it predicts
    /// nothing.
    pub predicted_late_share: Option<f64>,
    /// Whether the prediction lies within the interval.
    pub predicted_within_95: bool,
    /// Most late messages in a row.
    pub late_run_max: usize,
    /// Messages that never arrived, refused ones not among them.
    pub messages_lost: u64,
    /// Messages that were not accepted because too many others waited.
    pub messages_refused: u64,
}

/// Shares of all messages that were late, by cause ([`LateCause`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CauseShares {
    /// Late whatever is sent.
    pub hopeless: f64,
    /// Waited too long before they left, or were refused.
    pub queue: f64,
    /// The path was slower than usual.
    pub delay: f64,
    /// Nothing came back.
    pub path_down: f64,
    /// Too many symbols were lost.
    pub loss: f64,
    /// Taken for on time by the protocol, or without an outcome.
    pub unexplained: f64,
}

impl CauseShares {
    fn of(fates: &[MessageFate]) -> Self {
        let share = |cause| {
            let late = fates
                .iter()
                .filter(|fate| **fate == MessageFate::Late(cause));
            late.count() as f64 / fates.len().max(1) as f64
        };
        Self {
            hopeless: share(LateCause::Hopeless),
            queue: share(LateCause::Queue),
            delay: share(LateCause::Delay),
            path_down: share(LateCause::PathDown),
            loss: share(LateCause::Loss),
            unexplained: share(LateCause::Unexplained),
        }
    }
}

impl Row {
    /// Of so many messages.
    pub(super) fn new(plan: &Plan, setup: &Setup, messages: u64, results: &[PolicyResult]) -> Self {
        let recording = &plan.recordings[setup.recording];
        // Those of the others differ only if a session took longer to open.
        let floors = results.first().map(|result| result.floors);
        let floors = floors.unwrap_or_default();
        Self {
            trace: recording.name.clone(),
            part: recording.part,
            rtt_median_ms: recording.rtt_median.as_secs_f64() * 1e3,
            deadline_rtt: setup.deadline_rtt,
            deadline_ms: deadline(recording, setup).as_secs_f64() * 1e3,
            on_time_target: setup.on_time,
            symbols: setup.symbols,
            messages,
            floor_late_share: floors.late_share,
            floor_recovery_overhead: floors.recovery_overhead,
            policies: results
                .iter()
                .map(|result| PolicyRow::new(plan, result))
                .collect(),
        }
    }

    /// The share of messages that may be late.
    pub fn miss_target(&self) -> f64 {
        1.0 - self.on_time_target
    }

    /// A policy of that name.
    pub fn policy(&self, name: &str) -> Option<&PolicyRow> {
        self.policies.iter().find(|policy| policy.policy == name)
    }
}

impl PolicyRow {
    fn new(plan: &Plan, result: &PolicyResult) -> Self {
        let fates = &result.fates;
        let counted = |is_counted: fn(LateCause) -> bool| -> Vec<bool> {
            let is_counted = |fate: &MessageFate| match fate {
                MessageFate::OnTime => false,
                MessageFate::Late(cause) => is_counted(*cause),
            };
            fates.iter().map(is_counted).collect()
        };
        let share = |counted: &[bool]| {
            let count = counted.iter().filter(|counted| **counted).count();
            count as f64 / counted.len().max(1) as f64
        };
        let interval = |counted: &[bool]| {
            share_interval(&blocks(counted, block_length(plan, fates.len())), plan.seed)
        };
        let late = counted(|_| true);
        let late_share_95 = interval(&late);
        let preventable = counted(LateCause::is_preventable);
        let summary = &result.summary;
        Self {
            policy: summary.policy.clone(),
            late_share: share(&late),
            late_share_95,
            late_by_cause: CauseShares::of(fates),
            not_preventable_share: share(&counted(|cause| !cause.is_preventable())),
            preventable_late_share: share(&preventable),
            preventable_late_share_95: interval(&preventable),
            recovery_overhead: summary.recovery_overhead,
            predicted_late_share: summary.predicted_late_share,
            predicted_within_95: summary
                .predicted_late_share
                .is_some_and(|predicted| late_share_95.contains(predicted)),
            late_run_max: late
                .split(|late| !late)
                .map(<[bool]>::len)
                .max()
                .unwrap_or(0),
            messages_lost: summary.lost_messages - result.refused,
            messages_refused: result.refused,
        }
    }
}

/// Messages of a block, of so many.
fn block_length(plan: &Plan, messages: usize) -> usize {
    let of_time = (BLOCK_S / plan.interval.as_secs_f64()).round() as usize;
    of_time.min(messages / BLOCKS_MIN).max(1)
}
