//! Whether the peer receives at an address: nothing larger than what came from it goes there until it has shown so.

use core::time::Duration;

use crate::endpoint::Route;
use crate::time::Instant;

/// How long an address is tried.
const PATIENCE: Duration = Duration::from_secs(5);

/// A new address of an authenticated peer, on trial.
pub(crate) struct Validation {
    pub(crate) route: Route,
    pub(crate) challenge: [u8; 8],
    received: usize,
    sent: usize,
    /// When the challenge left, while only one has: which of several was answered is not known.
    sent_at: Option<Instant>,
    is_repeated: bool,
    /// When the next challenge is due, if what was received allows it.
    next_at: Instant,
    expires_at: Instant,
}

impl Validation {
    /// Bytes of a packet with a challenge: header, frame, tag.
    pub(crate) const PACKET_LEN: usize = 9 + 9 + 16;

    pub(crate) fn new(route: Route, challenge: [u8; 8], now: Instant) -> Self {
        let expires_at = now + PATIENCE;
        Self {
            route,
            challenge,
            received: 0,
            sent: 0,
            sent_at: None,
            is_repeated: false,
            next_at: now,
            expires_at,
        }
    }

    pub(crate) const fn on_received(&mut self, bytes: usize) {
        self.received += bytes;
    }

    const fn has_budget(&self) -> bool {
        self.sent + Self::PACKET_LEN <= self.received
    }

    /// Whether a challenge is due and allowed.
    pub(crate) fn may_send(&self, now: Instant) -> bool {
        now >= self.next_at && self.has_budget()
    }

    pub(crate) fn on_sent(&mut self, now: Instant, bytes: usize, round_time: Duration) {
        self.sent += bytes;
        self.is_repeated = self.sent_at.is_some();
        self.sent_at = Some(now);
        self.next_at = now + round_time;
    }

    /// The round trip of a challenge that is answered now, if it is known which one is answered.
    pub(crate) fn round_trip(&self, now: Instant) -> Option<Duration> {
        self.sent_at
            .filter(|_| !self.is_repeated)
            .map(|sent_at| now.since(sent_at))
    }

    /// When to look again: to send another challenge, if any may leave, or to give the address up.
    pub(crate) fn next_at(&self, may_send: bool) -> Instant {
        if may_send && self.has_budget() {
            self.next_at.min(self.expires_at)
        } else {
            self.expires_at
        }
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.expires_at
    }
}
