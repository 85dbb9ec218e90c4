//! How much of the packets is headers, and how many only acknowledge.

use super::Connection;
use crate::arm::Sender;

/// What an end sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrafficShares {
    /// Packets, those that begin and end connections among them.
    pub packets: u64,
    /// Bytes of IP packets.
    pub ip_bytes: u64,
    /// Bytes of IP and TCP headers with options.
    pub header_bytes: u64,
    /// Packets without content that neither begin nor end a connection.
    pub pure_acks: u64,
}

impl TrafficShares {
    /// Of an end of a connection.
    pub fn new(connection: &Connection, from: Sender) -> Self {
        let mut shares = Self::default();
        for packet in connection.seen_at(from) {
            if packet.from != from {
                continue;
            }
            shares.packets += 1;
            shares.ip_bytes += u64::from(packet.ip_bytes);
            shares.header_bytes += u64::from(packet.header_bytes);
            let is_pure = packet.payload_bytes() == 0 && !packet.is_control();
            shares.pure_acks += u64::from(is_pure);
        }
        shares
    }

    /// Both together.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            ip_bytes: self.ip_bytes + other.ip_bytes,
            header_bytes: self.header_bytes + other.header_bytes,
            pure_acks: self.pure_acks + other.pure_acks,
        }
    }

    /// Bytes of content.
    pub const fn payload_bytes(&self) -> u64 {
        self.ip_bytes.saturating_sub(self.header_bytes)
    }
}
