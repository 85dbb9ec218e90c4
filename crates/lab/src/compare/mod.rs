//! Every policy over every recording, for several deadlines, targets and sizes of message, and whether one of them holds what is
//! asked of it beside another.
//!
//! `recordings.rs` finds the traces and says which are for tuning and which to judge by; `plan.rs` is what is played, `run.rs` plays it
//! over the shipping protocol in virtual time ([`simulate`](crate::simulate)); `row.rs` has the figures of one setup, `overview.rs` those
//! of a policy over all rows, `judge.rs` compares a candidate with a reference; `charts.rs` draws.

mod charts;
mod judge;
mod overview;
mod plan;
mod recordings;
mod row;
mod run;

#[cfg(test)]
mod tests;

pub use charts::{lines, scatters};
pub use judge::{
    Calibration, Cost, Judgement, Lateness, LossMisses, PartJudgement, Rivals, Verdict,
};
pub use overview::Overview;
pub use plan::{
    CompareError, DEADLINES_RTT, MESSAGES, MESSAGES_MAX, MESSAGES_MIN, ON_TIME_TARGETS, Plan,
    SYMBOL_BYTES, SYMBOLS, Setup,
};
pub use recordings::{Part, Recording, Recordings, RecordingsError};
pub use row::{CauseShares, PolicyRow, Row};
pub use run::{Compared, Step, compare};
