//! One flight of a block's symbols, and the round that it begins.

use core::time::Duration;

use crate::time::Instant;

/// How symbols that are only needed if others are lost wait for packets that leave anyway, which take them along.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ride {
    /// How many: the last ones.
    pub(crate) symbols: u16,
    /// How long each waits after the one before.
    pub(crate) within: Duration,
    /// When all of them have left.
    pub(crate) until: Instant,
}

/// When the symbols of a flight leave that do not leave with the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pauses {
    /// Symbols that leave before it pauses, and how many of them are still to leave.
    together: u16,
    until_pause: u16,
    /// How long it pauses.
    spacing: Duration,
    /// What is redundant waits for packets that leave anyway.
    ride: Option<Ride>,
    /// When the next symbol leaves, if it pauses.
    pub(crate) resumes_at: Option<Instant>,
    /// Before then the next one was not meant to leave.
    not_before: Instant,
}

impl Pauses {
    /// After each `together` of `spacing`; or those of `ride` as they find packets.
    pub(crate) fn new(together: u16, spacing: Duration, ride: Option<Ride>) -> Self {
        Self {
            together,
            until_pause: together,
            spacing,
            ride,
            ..Self::default()
        }
    }
}

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
    pub(crate) pauses: Pauses,
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
        self.began.max(self.pauses.not_before)
    }

    /// Whether its next symbol waits for a packet that leaves anyway.
    pub(crate) fn waits_for_ride(&self) -> bool {
        self.pauses.resumes_at.is_some() && self.next_rides().is_some()
    }

    fn next_rides(&self) -> Option<Ride> {
        let may_ride = self.to_send > 0 && self.is_next_redundant();
        self.pauses
            .ride
            .filter(|ride| may_ride && self.to_send <= ride.symbols)
    }

    /// When the next one leaves, if it waits for a packet that leaves anyway and none comes.
    fn rides_until(&self, now: Instant) -> Option<Instant> {
        let ride = self.next_rides()?;
        Some((now + ride.within).min(ride.until))
    }

    /// A symbol leaves now. `true` when the rest of the flight has to wait. What the host's timers made it late by, up to `lag`, the next one is not.
    pub(crate) fn pause(&mut self, now: Instant, lag: Duration) -> bool {
        self.pauses.until_pause = self.pauses.until_pause.saturating_sub(1);
        let is_due = self.pauses.until_pause == 0;
        if is_due {
            self.pauses.until_pause = self.pauses.together;
        }
        if let Some(until) = self.rides_until(now) {
            let waits = until > now;
            (self.pauses.resumes_at, self.pauses.not_before) = (waits.then_some(until), until);
            return waits;
        }
        let is_apart = is_due && self.to_send > 0 && self.pauses.spacing > Duration::ZERO;
        let meant_at = self.may_send_at().max(now - lag);
        let next = if is_apart {
            meant_at + self.pauses.spacing
        } else {
            now
        };
        let pauses = next > now;
        self.pauses.resumes_at = pauses.then_some(next);
        self.pauses.not_before = next;
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

    #[test]
    fn as_many_ride_as_messages_follow_and_leave_by_themselves_in_time() {
        let at = |ms: u64| Instant::from_micros(1_000_000 + ms * 1000);
        let ride = Ride {
            symbols: 2,
            within: Duration::from_millis(20),
            until: at(30),
        };
        let mut flight = Flight {
            to_send: 5,
            redundant: 4,
            began: at(0),
            pauses: Pauses::new(1, Duration::ZERO, Some(ride)),
            ..Flight::default()
        };
        let mut leave = |now: u64| {
            flight.to_send -= 1;
            let pauses = flight.pause(at(now), Duration::ZERO);
            assert_eq!(pauses, flight.waits_for_ride());
            flight.pauses.resumes_at
        };
        let left_at = [leave(0), leave(0), leave(0), leave(16), leave(30)];
        assert_eq!(left_at, [None, None, Some(at(20)), Some(at(30)), None]);
    }
}
