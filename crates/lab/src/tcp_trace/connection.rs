//! Packets by connection.

use super::Packet;
use crate::arm::Sender;

/// All packets of a connection, in the order of time, as both ends saw them.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Which client's.
    pub flow: u32,
    packets: Vec<Packet>,
}

/// Sorts packets by connection, in the order of the clients; each client's by port.
pub fn connections(mut packets: Vec<Packet>) -> Vec<Connection> {
    // Stable: the order of time stays.
    packets.sort_by_key(|packet| (packet.flow, packet.port));
    packets
        .chunk_by(|a, b| (a.flow, a.port) == (b.flow, b.port))
        .map(|packets| Connection {
            flow: packets[0].flow,
            packets: packets.to_vec(),
        })
        .collect()
}

impl Connection {
    /// What one end sees: what it sends, and what reaches it.
    pub(super) fn seen_at(&self, end: Sender) -> impl Iterator<Item = &Packet> {
        self.packets
            .iter()
            .filter(move |packet| packet.seen_at == end)
    }

    /// The number of the first byte of content that an end sends.
    pub(super) fn base(&self, from: Sender) -> Option<u32> {
        let syn = self
            .seen_at(from)
            .find(|packet| packet.from == from && packet.is_syn());
        syn.map(|syn| syn.sequence.wrapping_add(1))
    }

    /// Whether both ends offered selective acknowledgements.
    pub(super) fn has_sack(&self) -> bool {
        [Sender::Server, Sender::Client].into_iter().all(|end| {
            self.seen_at(end)
                .any(|packet| packet.from == end && packet.is_syn() && packet.offers_sack)
        })
    }
}
