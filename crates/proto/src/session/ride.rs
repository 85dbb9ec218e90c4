//! Redundancy that rides: what is only needed if other symbols are lost, and has time, waits for a packet that leaves anyway. A game sends one in each frame:
//! what it buys then costs bytes, and no packets (decision 0009).

use core::time::Duration;

use super::Session;
use super::fill::{Picks, Room};
use super::output::Draft;
use crate::limits::TIMER_GRANULARITY;
use crate::message::Ride;
use crate::stream::Delivery;
use crate::time::{Instant, nanos};

/// Gaps between moments at which messages begin to leave, of which the longest is the time in which the next one is expected.
const GAPS: usize = 4;
/// Messages further apart than this do not follow each other.
const GAP_MAX: Duration = Duration::from_secs(1);
/// Blocks that wait at a time; of more than these the oldest leave by themselves.
const WAITING_MAX: usize = 8;

/// When messages begin to leave, and which blocks wait for the next that does.
pub(super) struct Rides {
    begun_at: Option<Instant>,
    gaps_us: [u32; GAPS],
    waiting: [u64; WAITING_MAX],
}

impl Default for Rides {
    fn default() -> Self {
        Self {
            begun_at: None,
            gaps_us: [u32::MAX; GAPS],
            waiting: [u64::MAX; WAITING_MAX],
        }
    }
}

impl Rides {
    /// The first symbol of a block leaves.
    pub(super) fn on_begun(&mut self, now: Instant) {
        let Some(last) = self.begun_at else {
            self.begun_at = Some(now);
            return;
        };
        // What leaves in one moment may be many packets.
        let gap = now.since(last);
        if gap >= TIMER_GRANULARITY {
            self.begun_at = Some(now);
            self.gaps_us.rotate_right(1);
            self.gaps_us[0] = u32::try_from(nanos(gap) / 1000).unwrap_or(u32::MAX);
        }
    }

    /// After what time the next message is expected to leave: the longest of the last gaps. `None` where none is expected.
    fn next_after(&self) -> Option<Duration> {
        let longest = self.gaps_us.into_iter().max()?;
        Some(Duration::from_micros(longest.into())).filter(|longest| *longest < GAP_MAX)
    }

    /// How many messages are expected to leave within `slack`.
    fn followers(&self, slack: Duration) -> u16 {
        let followers = |after| nanos(slack) / nanos(after).max(1);
        let followers = self.next_after().map_or(0, followers);
        followers.min(u64::from(u16::MAX)) as u16
    }

    /// A block waits.
    pub(super) fn on_waits(&mut self, number: u64) {
        if !self.waiting.contains(&number) {
            self.waiting.rotate_left(1);
            self.waiting[WAITING_MAX - 1] = number;
        }
    }
}

impl Session {
    /// How the redundant ones of `symbols` in an only flight wait for packets that leave anyway, when they may leave within `slack`: as many as messages are expected to follow in that time.
    /// `None` when they leave at once: where none is, or the one that does takes the place of this one.
    pub(super) fn ride_of(
        &self,
        now: Instant,
        number: u64,
        symbols: u16,
        slack: Duration,
    ) -> Option<Ride> {
        let block = self.traffic.outbox.block(number)?;
        let message = self.traffic.outbox.message(block.message)?;
        let is_followed = !matches!(
            message.delivery,
            Delivery::UnreliableSequenced | Delivery::Latest
        );
        let is_small = block.symbols.symbol_len() <= self.path.mtu.current() / 2;
        let is_redundant = symbols > u16::from(block.symbols.deficit());
        let next_after = self.traffic.rides.next_after()?;
        let slack = self.slack_of_rides(slack);
        let symbols = self.traffic.rides.followers(slack);
        (is_followed && is_small && is_redundant && symbols > 0).then(|| Ride {
            symbols,
            within: next_after + next_after / 4,
            until: now + slack,
        })
    }

    /// The same for what rides in a loop, whose messages leave when they are sent, whenever its timers are seen to. (By itself it may leave that much too late, when no message follows for
    /// once.)
    fn slack_of_rides(&self, slack: Duration) -> Duration {
        if self.path.timer_lag.before_end().is_zero() {
            slack
        } else {
            slack + self.path.timer_lag.most()
        }
    }

    /// Whether redundant symbols in an only flight would wait for packets that leave anyway, if they may leave within `slack`.
    pub(super) fn would_ride(&self, slack: Duration) -> bool {
        self.traffic.rides.followers(self.slack_of_rides(slack)) > 0
    }

    /// Takes what waits for a packet that leaves anyway along, the oldest first.
    pub(super) fn pick_riders(
        &mut self,
        now: Instant,
        draft: &mut Draft,
        room: Room,
        picks: &mut Picks,
    ) {
        if self.traffic.holds_redundancy {
            return;
        }
        for number in self.traffic.rides.waiting {
            let Some(block) = self.traffic.outbox.block(number) else {
                continue;
            };
            let is_other = block.last_packet != draft.number;
            if block.flight.waits_for_ride() && is_other && room.holds(picks, block) {
                self.pick(now, number, draft, picks);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_message_is_expected_after_the_longest_gap() {
        let at = |ms: u64| Instant::from_micros(1_000_000 + ms * 1000);
        let ms = Duration::from_millis;
        let mut rides = Rides::default();
        for (step, begun_ms) in [0, 16, 33, 50].into_iter().enumerate() {
            assert_eq!(rides.next_after(), None, "{step} gaps say little");
            rides.on_begun(at(begun_ms));
        }
        rides.on_begun(at(66));
        assert_eq!(rides.next_after(), Some(ms(17)));
        // What else leaves in the same moment is no other.
        rides.on_begun(at(66));
        assert_eq!(rides.next_after(), Some(ms(17)));
        rides.on_begun(at(2_000));
        assert_eq!(rides.next_after(), None, "they have paused");
    }
}
