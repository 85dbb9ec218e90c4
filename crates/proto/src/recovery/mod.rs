//! What was sent and what of it arrived; what was received and is to be acknowledged.

mod received;
mod sent;

pub(crate) use received::Received;
pub(crate) use sent::{PacketState, SentPacket, SentPackets, SymbolRef};
