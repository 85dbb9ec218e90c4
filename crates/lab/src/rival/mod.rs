//! A bulk TCP flow with CUBIC, for competition: what a game shares a bottleneck with.
//!
//! Window: RFC 9438 (`cubic.rs`), initial window of ten packets (RFC 6928). Recovery: selective acknowledgements with a threshold of
//! three packets (RFC 6675, with unlimited blocks), retransmissions found lost by the order of sending (RFC 8985), the
//! timeout of RFC 6298 with Linux' least of 200 ms, no tail probes. The receiver acknowledges every second packet, or after
//! 40 ms, and at once while something is missing (RFC 5681). Packets of 1,500 bytes, sent as acknowledgements come, unpaced.
//!
//! Sans-IO: the world moves the packets. `sender.rs` and `receiver.rs` know nothing of each other.

mod cubic;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

pub use cubic::Cubic;
pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;

/// Bytes of a packet, IP and TCP headers included.
pub const PACKET_BYTES: usize = 1500;

/// A packet under way: which transmission it is, and which part of the data it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Counts transmissions.
    pub(crate) number: u64,
    /// Counts packets' worth of data; a retransmission has its original's.
    pub(crate) position: u64,
}

/// What a flow did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RivalStats {
    /// Packets sent, retransmissions included.
    pub sent: u64,
    /// Packets' worth of data that the receiver has, each counted once.
    pub delivered: u64,
    /// Packets that were taken for lost.
    pub lost: u64,
    /// Timeouts.
    pub timeouts: u64,
}
