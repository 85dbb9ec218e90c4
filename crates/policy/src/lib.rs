//! How many symbols of a message to send in a round, and when to look again.
//!
//! A message is cut into `k` equal source symbols; any `k` distinct symbols (source or repair) rebuild it. A *round* is one
//! transmission opportunity. Each round a [`Policy`] sees the *deficit* (symbols still needed) and answers how many symbols to
//! send now, so that the share of messages that miss their deadline stays below the *miss target* at the least cost.
//!
//! The policies: [`Steered`] (the default), [`Exact`], [`Pangolin`] (the paper's), [`Retransmit`], [`Fixed`] and [`Hairpin`] (what these are
//! compared with). A [`Library`] holds one kind for all miss targets of an endpoint:
//!
//! ```
//! use punctual_policy::{Library, PolicyKind, Situation, predict_miss};
//!
//! let library = Library::new(PolicyKind::Pangolin);
//! let policy = library.policy(0.001);
//! // Four source symbols, two rounds, 2 % loss: send the four ...
//! let first = Situation::first(4, 2, 0.02);
//! assert_eq!(policy.decide(&first).symbols, 4);
//! // ... a stopgap said so, until a thread off the packets' path builds what was asked for ...
//! # #[cfg(feature = "solve")]
//! library.build_wanted();
//! // ... and with one round left, one repair symbol goes along.
//! let last = Situation { deficit: 2, rounds_left: 1, sent: 4, ..first };
//! assert_eq!(policy.decide(&last).symbols, 3);
//! assert!(predict_miss(policy, &first, 0.02, &[]) < 0.001);
//! ```
//!
//! In: `situation` (what a policy sees), `loss` (bins). Tables: `table` (packed, one k), `by_k` and `shelf` (all k, built when wanted),
//! `stopgap` (what serves until then). Out: `predict` (what following a policy leads to), `plan` (its decisions one by one). `solve` makes the tables.
//!
//! This crate is pure: no clock, no socket, no randomness of its own. Everything here runs without `std`; the solver that
//! fills the tables is behind the feature `solve` (on by default; only its `table_summary` reads a clock). Maths beyond
//! `+ - * /` goes through `libm`, so that tables, decisions and predictions are equal on every target.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "solve")]
extern crate std;

mod by_k;
mod chance;
mod error;
mod exact;
mod fixed;
mod hairpin;
mod hurry;
mod kind;
mod library;
mod limits;
mod loss;
mod pangolin;
mod plan;
mod policy;
mod predict;
mod price;
mod retransmit;
mod shelf;
mod situation;
mod steered;
mod steering;
mod stopgap;
mod table;

#[cfg(feature = "solve")]
pub mod solve;

pub use error::OutOfRange;
pub use exact::Exact;
pub use fixed::Fixed;
pub use hairpin::Hairpin;
pub use hurry::{Delays, Hurries, Hurry};
pub use kind::{ParityPrice, ParsePolicyKindError, PolicyKind};
pub use library::Library;
pub use limits::{
    ANSWERS_APART, FLIGHT_MAX, LOSS_MAX, MISS_TARGET_MIN, MISS_TARGETS_MAX, ROUNDS_MAX,
    SOURCE_SYMBOLS_MAX,
};
pub use pangolin::Pangolin;
pub use plan::{Step, plan};
pub use policy::{Deficit, Policy};
pub use predict::{Prediction, follow, predict, predict_miss};
pub use price::Price;
pub use retransmit::Retransmit;
pub use situation::{Action, Answers, Burst, Situation, Timing, only_answers_missing};
pub use steered::{COST_CAP, Part, Steered, Without};
pub use steering::{Doubt, Steering};
