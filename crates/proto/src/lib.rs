//! The Punctual protocol, sans-IO: (state, input, now) -> outputs. PROTOCOL.md says what travels, byte for byte.
//!
//! ```text
//!  a message out                                          a packet in
//!
//!  Endpoint::send                                         Endpoint::handle_datagram
//!    session/send.rs      cut into blocks (message/split)   endpoint/routing.rs   whose is it?
//!    session/rounds.rs    how many symbols? (policy)        session/input.rs      open (crypto), read (wire)
//!    schedule/            which one next                      acks.rs             what arrived, what is lost
//!  Endpoint::poll_transmit                                    message/inbox.rs    rebuild, hand on once
//!    session/output.rs    may it go (path)? write (wire),     path/, clock/       delay, loss, offset
//!                         seal (crypto), remember (recovery) Endpoint::poll_event
//! ```
//!
//! The protocol reads no clock, opens no socket, and draws randomness only from the seed that it was given. Every queue and
//! table has its bound in [`limits`]. What comes from the wire is checked, and is an error, never a panic.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod crypto;
pub mod limits;
pub mod wire;

mod clock;
mod endpoint;
mod handshake;
mod message;
mod path;
mod pool;
mod recovery;
mod schedule;
mod session;
mod stream;
mod time;

#[cfg(feature = "vectors")]
#[doc(hidden)]
pub mod vectors;

pub use endpoint::{
    Capacity, ConfigError, ConnectError, ConnectOptions, Ecn, Endpoint, EndpointConfig,
    EndpointStats, Promise, Route, ServerConfig, SessionId, ThinStreams, Transmit, Uplink,
    canonical,
};
pub use handshake::{ConnectToken, SealedToken, ServerKey, TokenClaims, TokenError, TokenKey};
pub use message::SharedContent;
pub use session::{CloseCode, CloseReason, Event, PathReport, Piece, SendError, SessionStats};
pub use stream::{
    Cancel, Delivery, Departure, Fairness, Forecast, MessageId, MissReason, Outcome, PromiseGroup,
    SendOptions, StreamConfig, StreamError, StreamId, StreamStats, WhenLate,
};
pub use time::Instant;
