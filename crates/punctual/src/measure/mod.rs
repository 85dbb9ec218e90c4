//! Measures the path of a session as the Pangolin paper does inside a game (section 3.1): a message in some is imitated by
//! five packets of a kilobyte, each is answered at once and, when no answer comes, sent again up to five times. Each packet's
//! fate in each direction is recorded, and the server gets the record.
//!
//! ```no_run
//! use punctual::{Config, Endpoint, MeasureOptions, MeasureRules, ServerKey};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The game's server allows it, and takes the traces.
//! let config = Config { measure: Some(MeasureRules::default()), ..Config::default() };
//! let server = Endpoint::server(config, "127.0.0.1:0".parse()?, ServerKey::generate()?)?;
//!
//! // The game measures beside its own streams, in the session that it has.
//! let client = Endpoint::client(Config::default())?;
//! let session = client.connect_blocking(server.url("127.0.0.1").expect("it is a server"))?;
//! let measurement = session.measure(MeasureOptions::default())?;
//! // ... the game goes on, for as long as it likes ...
//! measurement.stop();
//! let measured = measurement.result_blocking();
//! println!("{} packets, {}", measured.packets.len(), measured.end);
//! # Ok(())
//! # }
//! ```
//!
//! `prober.rs` is the client's side and `responder.rs` the server's, both without sockets or clocks; `wire.rs` is what they say to
//! each other, `engine.rs` drives them with the endpoint. `ledger.rs` and `clocks.rs` turn timestamps into rows of a trace.
//! Why it rides on a session: docs/decisions/0010-measuring-rides-on-a-session.md.

mod clocks;
mod engine;
mod handle;
mod leaving;
mod ledger;
mod options;
mod packet;
mod prober;
mod report;
mod responder;
mod timeout;
mod wire;

#[cfg(test)]
mod tests;

pub use clocks::Clocks;
pub use engine::TracePart;
pub use handle::{MeasureError, Measurement};
pub use options::{MeasureOptionError, MeasureOptions, MeasureRules};
pub use packet::{MeasuredPacket, Way};
pub use report::{Copies, MeasureEnd, MeasureProgress, MeasureState, Measured};

pub(crate) use engine::{Engine, Traces, Watched};
pub(crate) use wire::PROBES as FIRST_RESERVED;

/// Packets of a measurement: at five a second, eleven hours. A client keeps about 60 bytes of each.
pub(crate) const PACKETS_KEPT_MAX: u32 = 200_000;
