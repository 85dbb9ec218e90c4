//! What TCP did to game traffic, from the packets that both ends saw.
//!
//! `packet.rs` keeps of a packet what matters, `connection.rs` sorts packets by connection. [`SenderSide`] is one direction as its
//! sender saw it: each segment, each retransmission with its cause, each send after a pause (`sender_side.rs`; causes in
//! `cause.rs`, round trips in `round_trip.rs`). [`deliveries()`] joins both ends: when a segment arrived and when it could be read,
//! which in-order delivery may put off. [`TrafficShares`] counts headers and pure acknowledgements.
//!
//! It never reads a clock, and takes what it is given: packets cut off or strange are left out.

mod cause;
mod connection;
mod deliveries;
mod packet;
mod round_trip;
mod sender_side;
mod shares;

#[cfg(test)]
mod tests;

pub use cause::{Cause, FastFailure};
pub use connection::{Connection, connections};
pub use deliveries::{Delivery, Held, NEVER_NS, deliveries, held};
pub use packet::Packet;
pub use sender_side::{Profile, Retransmission, Segment, SenderSide};
pub use shares::TrafficShares;
