//! Scenarios: several streams of several kinds in many sessions, over one network, from a file.
//!
//! In: the text of a scenario file ([`Scenario::open`]; `file.rs` is the format, `scenarios/` has examples). Out: [`run()`] plays it with
//! one or several seeds and says what became of each stream ([`ScenarioResult`]).
//!
//! `spec.rs` is what a scenario is, `check/` makes it from the file, `error.rs` says what is wrong with a file and where. `traffic.rs`
//! draws messages, `schedule.rs` puts those of all streams in order, `shape.rs` has the traffic of ten games, on `curve.rs` and
//! `sizes.rs`. `single.rs` plays one seed at a `venue/`, in the protocol's words by `protocol.rs`; `run.rs` pools several. `tally.rs` counts what
//! became of the messages, which `stamp.rs` marks so that it knows them again; `result.rs` has a stream's numbers, `summary.rs` all
//! others. `thin_streams.rs` is the study of thin streams.

mod check;
mod curve;
mod error;
mod file;
mod protocol;
mod result;
mod run;
mod schedule;
mod shape;
mod single;
mod sizes;
mod spec;
pub mod stamp;
mod summary;
mod tally;
mod thin_streams;
mod traffic;
mod venue;

#[cfg(test)]
mod network_tests;
#[cfg(test)]
mod tally_tests;
#[cfg(test)]
mod tests;

pub use curve::{Knot, QuantileCurve};
pub use error::{Refusal, ScenarioError};
pub use result::{ByReason, LatencyMs95, Outcomes, Settling, StreamResult, Within};
pub use run::{Ending, Outcome, Played, Progress, RunError, run, run_at, run_while};
pub use schedule::{Schedule, Turn};
pub use shape::{Row, Shape, UnknownShape};
pub use sizes::{Sizes, Spread};
pub use spec::{Bottleneck, DeliveryMode, FairnessMeasure, Rivals, Scenario, StreamSpec, Thin};
pub use summary::{LinkResult, MeanMinMax, RivalsResult, RunResult, ScenarioResult};
pub use tally::{Fate, ProtocolCounts, Reason, StreamTally};
pub use thin_streams::{Remedies, ThinResult, ThinResults, ThinStudy, thin_streams};
pub use traffic::{Due, Generator, Next, Pattern, Source, Traffic};
pub use venue::{Fates, RivalFigures, Venue};
