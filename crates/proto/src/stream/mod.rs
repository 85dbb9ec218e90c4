//! Streams: what an application asks of them and of a message (`options.rs`), what it hears (`outcome.rs`), what is counted
//! (`statistics.rs`), and what each side keeps for a stream's delivery mode (`outgoing.rs`, `promise.rs`, `group.rs`, `incoming.rs`).

mod group;
mod incoming;
mod options;
mod outcome;
mod outgoing;
mod promise;
mod statistics;
mod surprise;

pub(crate) use group::Groups;
pub use group::PromiseGroup;
pub(crate) use incoming::{Arrived, Incoming, Verdict};
pub use options::{
    Delivery, Fairness, MessageId, SendOptions, StreamConfig, StreamError, StreamId, WhenLate,
};
pub use outcome::{Cancel, Departure, Forecast, MissReason, Outcome};
pub(crate) use outgoing::{Held, OutgoingStream, Streams};
pub(crate) use promise::Promises;
pub use statistics::StreamStats;
