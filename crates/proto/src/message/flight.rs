//! One flight of a block's symbols, and the round that it begins.

use core::time::Duration;

use crate::time::Instant;

/// Where the current flight of a block stands.
#[derive(Default)]
pub(crate) struct Flight {
    /// Symbols still to be sent.
    pub(crate) to_send: u16,
    /// Of them, those that are only needed if others are lost: the last ones.
    pub(crate) redundant: u16,
    /// The first packet that may hold a symbol of it; below it all are settled.
    pub(crate) first_packet: u64,
    /// The last packet with one of those symbols, or with a copy of them that its round waits for.
    pub(crate) last_packet: u64,
    /// One of its packets was acknowledged: it was not lost whole.
    pub(crate) is_acked: bool,
    pub(crate) began: Instant,
    /// When its round ends; known when all of it has left.
    pub(crate) round_ends: Option<Instant>,
    /// How long its round waits for answers; zero stands for the path's round time.
    pub(crate) patience: Duration,
    /// Symbols that leave before it pauses, and how many of them are still to leave.
    pub(crate) together: u16,
    pub(crate) until_pause: u16,
    /// How long it pauses, and when the next one may leave.
    pub(crate) spacing: Duration,
    pub(crate) resumes_at: Option<Instant>,
    /// Before then the next one was not meant to leave.
    not_before: Instant,
    /// It is waited out that the path carries nothing: whatever of it is lost meanwhile ends no round, until something is answered for.
    pub(crate) waits_out: bool,
    /// Doublings of the round time, after the deadline.
    pub(crate) backoff: u8,
}

impl Flight {
    /// Whether its next symbol is only needed if others are lost.
    pub(crate) const fn is_next_redundant(&self) -> bool {
        self.needed() == 0
    }

    /// Symbols still to be sent that are needed even if none is lost.
    pub(crate) const fn needed(&self) -> u16 {
        self.to_send.saturating_sub(self.redundant)
    }

    /// Whether its round is longer than answers take, since nothing is answered for.
    pub(crate) const fn waits(&self) -> bool {
        self.backoff > 0 || self.waits_out
    }

    /// Something later was answered for: nothing is to be waited out.
    pub(crate) const fn wait_no_longer(&mut self) {
        (self.backoff, self.waits_out) = (0, false);
    }

    /// When its next symbol may leave.
    pub(crate) fn may_send_at(&self) -> Instant {
        self.began.max(self.not_before)
    }

    /// A symbol leaves now. `true` when the rest of the flight has to wait. What the host's timers made it late by, up to `lag`, the next one is not.
    pub(crate) fn pause(&mut self, now: Instant, lag: Duration) -> bool {
        self.until_pause = self.until_pause.saturating_sub(1);
        let is_due = self.until_pause == 0;
        if is_due {
            self.until_pause = self.together;
        }
        let is_apart = is_due && self.to_send > 0 && self.spacing > Duration::ZERO;
        let meant_at = self.may_send_at().max(now - lag);
        let next = if is_apart {
            meant_at + self.spacing
        } else {
            now
        };
        let pauses = next > now;
        self.resumes_at = pauses.then_some(next);
        self.not_before = next;
        pauses
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_last_symbols_of_a_flight_are_those_that_are_only_needed_if_others_are_lost() {
        let mut flight = Flight {
            to_send: 6,
            redundant: 4,
            ..Flight::default()
        };
        let mut needed = Vec::new();
        while flight.to_send > 0 {
            needed.push((flight.needed(), flight.is_next_redundant()));
            flight.to_send -= 1;
        }
        assert_eq!(needed[..3], [(2, false), (1, false), (0, true)]);
        assert!(needed[3..].iter().all(|at| *at == (0, true)));
    }
}
