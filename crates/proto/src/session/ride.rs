//! Redundancy that rides: what is only needed if other symbols are lost, and has time, waits for a packet that leaves anyway. A game sends one in each frame:
//! what it buys then costs bytes, and no packets (decision 0009).

use core::time::Duration;

use punctual_policy::{Action, Situation};

use super::Session;
use super::bundling::Recent;
use super::fill::{Picks, Room};
use super::output::Draft;
use crate::limits::TIMER_GRANULARITY;
use crate::message::{Ride, leaves_room};
use crate::stream::Delivery;
use crate::time::{Instant, nanos};

/// Gaps between moments at which messages begin to leave, of which the longest is the time in which the next one is expected.
const GAPS: usize = 4;
/// Messages further apart than this do not follow each other.
const GAP_MAX: Duration = Duration::from_secs(1);

/// When messages begin to leave, and which blocks wait for the next that does.
pub(super) struct Rides {
    begun_at: Option<Instant>,
    gaps_us: [u32; GAPS],
    /// Of more than these the oldest leave by themselves.
    pub(super) waiting: Recent,
}

impl Default for Rides {
    fn default() -> Self {
        Self {
            begun_at: None,
            gaps_us: [u32::MAX; GAPS],
            waiting: Recent::default(),
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
}

impl Session {
    /// How the redundant symbols of a block's flight wait for packets that leave anyway: as many as messages are expected to follow while there is time. `None` when they leave as the policy
    /// says: of other than only flights, where none is expected, or the one that is takes the place of this one.
    pub(super) fn ride_of(
        &self,
        now: Instant,
        number: u64,
        situation: &Situation,
        action: &Action,
    ) -> Option<Ride> {
        let block = self.traffic.outbox.block(number)?;
        let message = self.traffic.outbox.message(block.message)?;
        let is_followed = !matches!(
            message.delivery,
            Delivery::UnreliableSequenced | Delivery::Latest
        );
        let is_small = leaves_room(block.symbols.symbol_len(), self.path.mtu.current());
        let is_redundant = action.symbols > u16::from(block.symbols.deficit());
        let is_only = situation.sent == 0 && situation.rounds_left == 1;
        let is_plain = action.look_again.is_none() && action.spacing.is_zero();
        let next_after = self.traffic.rides.next_after()?;
        let slack = self.slack_of_rides(now, situation.timing.time_left);
        let symbols = self.traffic.rides.followers(slack);
        let rides = is_only && is_plain && is_redundant && is_small && is_followed && symbols > 0;
        rides.then(|| Ride {
            symbols,
            within: next_after + next_after / 4,
            until: now + slack,
        })
    }

    /// The time in which riders may leave, where the deadline is `time_left` away: in a loop messages leave when they are sent, whenever its timers are seen to. (By itself one may leave that much
    /// too late, when no message follows for once.)
    fn slack_of_rides(&self, now: Instant, time_left: Duration) -> Duration {
        let margin = self.clock_margin(now);
        if self.path.timer_lag.before_end().is_zero() {
            self.path.slack(time_left, margin)
        } else {
            time_left.saturating_sub(self.path.one_way_delay() + margin)
        }
    }

    /// Whether redundant symbols in an only flight would wait for packets that leave anyway, where the deadline is `time_left` away.
    pub(super) fn would_ride(&self, now: Instant, time_left: Duration) -> bool {
        self.traffic
            .rides
            .followers(self.slack_of_rides(now, time_left))
            > 0
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
        for number in self.traffic.rides.waiting.oldest_first() {
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
