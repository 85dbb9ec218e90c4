//! Whether the peer receives at an address: nothing larger than what came from it goes there until it has shown so.

use core::net::SocketAddr;
use core::time::Duration;

use crate::time::Instant;

/// Challenges sent before a new address is forgotten.
const TRIES: u8 = 5;

/// A new address of an authenticated peer, on trial.
pub(crate) struct Validation {
    pub(crate) address: SocketAddr,
    pub(crate) challenge: [u8; 8],
    received: usize,
    sent: usize,
    tries: u8,
    last_sent_at: Instant,
    next_at: Instant,
}

impl Validation {
    pub(crate) const fn new(address: SocketAddr, challenge: [u8; 8], now: Instant) -> Self {
        Self { address, challenge, received: 0, sent: 0, tries: 0, last_sent_at: now, next_at: now }
    }

    pub(crate) const fn on_received(&mut self, bytes: usize) {
        self.received += bytes;
    }

    /// Whether a challenge of `bytes` is due and allowed.
    pub(crate) fn may_send(&self, now: Instant, bytes: usize) -> bool {
        now >= self.next_at && self.tries < TRIES && self.sent + bytes <= self.received
    }

    pub(crate) fn on_sent(&mut self, now: Instant, bytes: usize, round_time: Duration) {
        self.sent += bytes;
        self.tries += 1;
        self.last_sent_at = now;
        self.next_at = now + round_time;
    }

    pub(crate) const fn last_sent_at(&self) -> Instant {
        self.last_sent_at
    }

    /// When to look again: to send another challenge, or to give the address up.
    pub(crate) const fn next_at(&self) -> Instant {
        self.next_at
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.tries >= TRIES && now >= self.next_at
    }
}
