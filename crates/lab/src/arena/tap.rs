//! Keeps the packets of an arm's TCP.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::arm::Sender;
use crate::emulator::{Observer, Site, tcp_of};
use crate::tcp_trace::Packet;

/// Most packets that are kept of an arm: 16 million are 1.3 GB. Later ones are not there.
const PACKETS_MAX: usize = 16_000_000;

/// The packets so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Tap(Arc<Mutex<Vec<Packet>>>);

impl Tap {
    pub(super) fn observer(&self) -> Box<dyn Observer> {
        Box::new(self.clone())
    }

    pub(super) fn take(&self) -> Vec<Packet> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Tap {
    fn on_packet(&mut self, at: Duration, site: Site, packet: &[u8]) {
        let Some((from, flow, tcp)) = tcp_of(packet) else {
            return;
        };
        let packet = Packet::read(at, side(site), side(from), flow, packet.len(), tcp);
        let Some(packet) = packet else {
            return;
        };
        let mut packets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if packets.len() < PACKETS_MAX {
            packets.push(packet);
        }
    }
}

const fn side(site: Site) -> Sender {
    match site {
        Site::Client => Sender::Client,
        Site::Server => Sender::Server,
    }
}
