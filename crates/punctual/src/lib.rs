//! Punctual: a message transport for games and live interactive apps.
//!
//! The sender says by when a message must arrive and how sure it wants to be. Punctual spends the fewest packets that keep
//! that promise, and says honestly what it achieved and why.
//!
//! ```
//! use punctual::{Config, Delivery, Endpoint, Outcome, SendOptions, ServerKey, StreamConfig};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::server(Config::default(), "127.0.0.1:0".parse()?, ServerKey::generate()?)?;
//! let url = server.url("127.0.0.1").expect("it is a server"); // punctual://127.0.0.1:port#KEY
//!
//! let client = Endpoint::client(Config::default())?;
//! let lobby = client.connect_blocking(&url)?;                  // or .connect(&url).await
//! let moves = lobby.open_stream(StreamConfig::new(Delivery::Reliable))?;
//!
//! // Within 150 ms, for 999 messages of 1,000: lost packets are made good before it is too late.
//! moves.send(b"north", SendOptions::within(Duration::from_millis(150)).on_time(0.999))?;
//!
//! let player = server.accept_blocking()?;
//! assert_eq!(*player.recv_blocking()?, *b"north");
//!
//! match moves.next_outcome_blocking()?.1 {
//!     Outcome::OnTime { latency, bound } => println!("took {latency:?}, give or take {bound:?}"),
//!     Outcome::Late { by, why, .. } => println!("late by {by:?}: {why:?}"),
//!     other => println!("{other:?}"),
//! }
//! lobby.finish_blocking();                                     // until all has its outcome
//! # Ok(())
//! # }
//! ```
//!
//! # Three ways to drive it
//!
//! - **Threads.** An [`Endpoint`] has a thread of its own. Methods that wait and end with `_blocking` wait on the caller's
//!   thread; `_timeout` waits for so long at most; `try_` does not wait.
//! - **Tasks.** The same methods without an ending are `async`. They need no particular runtime and no feature:
//!
//!   ```
//!   # use punctual::{Config, Delivery, Endpoint, SendOptions, ServerKey, StreamConfig};
//!   # fn main() -> Result<(), Box<dyn std::error::Error>> {
//!   # futures_lite::future::block_on(async {
//!   let server = Endpoint::server(Config::default(), "[::1]:0".parse()?, ServerKey::generate()?)?;
//!   let client = Endpoint::client(Config::default())?;
//!   let lobby = client.connect(server.url("::1").expect("it is a server")).await?;
//!   let moves = lobby.open_stream(StreamConfig::new(Delivery::Reliable))?;
//!   moves.send("north", SendOptions::default())?;
//!   let player = server.accept().await?;
//!   assert_eq!(player.recv().await?.data, b"north");
//!   let (message, outcome) = moves.next_outcome().await?;
//!   # lobby.finish().await;
//!   # Ok(())
//!   # })
//!   # }
//!   ```
//! - **Frames.** A [`frame::Endpoint`] has no thread and never waits: a game's loop polls it.
//!
//! `send` never waits in any of them: it answers whether the message was accepted, and every accepted message gets exactly
//! one [`Outcome`].
//!
//! # Streams
//!
//! A game sends different things, and each wants something else of the network. A [`Stream`] is one kind of thing:
//!
//! | what | [`Delivery`] | what else |
//! |---|---|---|
//! | positions, a newer one replaces an older | `Latest` | [`SendOptions::key`]: which entity |
//! | inputs, each of which counts for a short time | `Unreliable` | a deadline and a target |
//! | shots, whatever must arrive | `Reliable` | a deadline and a target |
//! | chat, purchases, whatever has an order | `ReliableOrdered` | |
//! | voice, where late is worse than lost | `Unreliable` | a deadline; the jitter buffer puts it in order |
//! | effects that nobody misses | `Unreliable` | [`SendOptions::loss_tolerance`] |
//! | a map, in the background | `Reliable` | [`StreamConfig::weight`] 1 (the least), and more for the others; [`Stream::send_shared`], or [`Stream::writer`] |
//!
//! Streams share the session's rate by their weights, the messages of a stream by [`SendOptions::importance`]. A lost message holds
//! up nothing but those after it on a `ReliableOrdered` stream. [`Stream::cancel`] takes a message back. [`Stream::stats`] puts
//! what was promised beside what was achieved, and what it cost.
//!
//! # Large messages
//!
//! A message may have 64 MiB. It is cut up as it is sent, so that whatever is more urgent passes it. Above 256 KiB it is put
//! together by this library, within the bound of [`Receive::Whole`], or comes in pieces with [`Receive::Pieces`].
//!
//! # Measuring
//!
//! [`Session::measure`] records how the path treats packets, in each direction, while the game goes on;
//! [`Endpoint::next_trace`] is where a server gets what its clients have recorded, [`Config::measure`] whether they may.
//!
//! # Ticks
//!
//! With [`Session::set_tick`] what is sent in one tick of a game leaves together, in as few packets as hold it. A
//! [`frame::Endpoint`] does so by itself: what is sent leaves with its `flush` or `poll`.
#![forbid(unsafe_code)]

mod assembly;
mod config;
mod core;
mod endpoint;
mod error;
mod event;
mod inbox;
mod key;
mod measure;
mod resolve;
mod rhythm;
mod session;
mod signal;
mod stream;
mod url;
mod writer;

pub mod frame;

pub use config::{Config, Receive};
pub use endpoint::Endpoint;
pub use error::{
    ConnectError, EndpointClosed, EndpointError, OpenError, SessionClosed, WriteError,
};
pub use event::{Event, Message};
pub use key::{IssueError, PublicKey, ServerKey, TokenIssuer};
pub use measure::{
    Clocks, Copies, MeasureEnd, MeasureError, MeasureOptionError, MeasureOptions, MeasureProgress,
    MeasureRules, MeasureState, Measured, MeasuredPacket, Measurement, TracePart, Way,
};
pub use session::Session;
pub use stream::{Stream, StreamConfig};
pub use url::{ServerUrl, UrlError};
pub use writer::MessageWriter;

pub use punctual_net::entropy::EntropyError;
pub use punctual_net::udp::BindError;
pub use punctual_policy::{ParsePolicyKindError, PolicyKind};
pub use punctual_proto::wire::Refusal;
pub use punctual_proto::{
    Cancel, Capacity, CloseCode, CloseReason, ConfigError, ConnectToken, Delivery, EndpointStats,
    Fairness, Forecast, MessageId, MissReason, Outcome, PathReport, Piece, Promise, PromiseGroup,
    SendError, SendOptions, SessionId, SessionStats, SharedContent, StreamId, StreamStats,
    ThinStreams, TokenError, TokenKey, Uplink, WhenLate,
};
