//! Shares the way out of an endpoint among its sessions, so that a broadcast does not overflow the queue of the uplink although
//! each session keeps to its own window.
//!
//! A bucket of bytes fills at the rate of the uplink, when that is configured; a session that finds it empty waits in line:
//! those with deadlines first, each for one packet at a time. Where the uplink is not known, what goes beyond a larger bucket is
//! spread over a quarter of the time that its deadlines leave: a compromise between a repair that still comes in time and an
//! uplink that may be slow.
//! Acknowledgements and all else but symbols and probes of the path never wait here.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::Uplink;
use crate::time::{Instant, nanos};

/// Bytes that leave at once into a known uplink: few enough for the queue of a home router.
const BURST: i64 = 64 * 1024;
/// And into one that is not known: what a server of a few hundred players sends in a tick goes without delay.
const BURST_UNKNOWN: i64 = 256 * 1024;
/// Messages without a deadline are spread over this time.
const SPREAD: Duration = Duration::from_millis(20);

/// What a session has ready to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// About how many bytes.
    pub(crate) bytes: u64,
    /// Until its earliest deadline, less the way there; `None` when nothing of it has one.
    pub(crate) slack: Option<Duration>,
}

/// The sessions that wait for their turn, and how much may leave.
pub(super) struct Coordinator {
    uplink: Uplink,
    /// Bytes that may leave now.
    level: i64,
    updated: Instant,
    urgent: VecDeque<u32>,
    others: VecDeque<u32>,
    /// Bytes that the sessions in line had ready, less those sent since.
    waiting_bytes: u64,
    /// Where the uplink is not known: by when what waits is to have left.
    finish_by: Option<Instant>,
    /// Where the uplink is not known: the bytes a second that this takes. Falls only when the line is empty: what sessions have
    /// ready is known roughly, and when they have more the rest must not crawl.
    planned: u64,
}

impl Coordinator {
    pub(super) const fn new(uplink: Uplink) -> Self {
        Self {
            uplink,
            level: burst(uplink),
            updated: Instant::ZERO,
            urgent: VecDeque::new(),
            others: VecDeque::new(),
            waiting_bytes: 0,
            finish_by: None,
            planned: 0,
        }
    }

    /// Whether sessions wait in line.
    pub(super) fn is_waiting(&self) -> bool {
        !self.urgent.is_empty() || !self.others.is_empty()
    }

    /// Whether a packet may leave now.
    pub(super) fn may_send(&mut self, now: Instant) -> bool {
        let rate = self.rate();
        let elapsed = nanos(now.since(self.updated));
        let refill = u128::from(rate) * u128::from(elapsed) / 1_000_000_000;
        if refill > 0 || elapsed > 1_000_000_000 {
            let refill = i64::try_from(refill).unwrap_or(i64::MAX);
            self.level = self.level.saturating_add(refill).min(burst(self.uplink));
            // What is less than a byte is not forgotten: of an uplink of 125 kB a second that is asked each 10 us it would be a fifth.
            let took = u128::from(refill.unsigned_abs()).saturating_mul(1_000_000_000);
            let took = took
                .div_ceil(u128::from(rate.max(1)))
                .min(u128::from(elapsed));
            self.updated = self.updated + Duration::from_nanos(took as u64);
        }
        self.level > 0
    }

    /// Bytes a second that leave at present.
    fn rate(&self) -> u64 {
        match (self.uplink, self.finish_by) {
            (Uplink::BytesPerSecond(rate), _) => rate,
            (Uplink::Unknown, Some(_)) => self.planned.max(1_000_000),
            // Nobody waits: whatever left has left.
            (Uplink::Unknown, None) | (Uplink::Unlimited, _) => u64::MAX,
        }
    }

    /// A packet with symbols has left.
    pub(super) const fn on_sent(&mut self, bytes: usize) {
        self.level -= bytes as i64;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes as u64);
    }

    /// A session gets in line; at its end, also when it has just had its turn (`is_new` is false then).
    pub(super) fn wait(&mut self, now: Instant, session: u32, pending: Pending, is_new: bool) {
        if is_new {
            self.waiting_bytes += pending.bytes;
            let spread = pending.slack.map_or(SPREAD, |slack| slack / 4);
            let finish_by = now + spread;
            self.finish_by = Some(match self.finish_by {
                Some(earlier) => earlier.min(finish_by),
                None => finish_by,
            });
            self.plan(now);
        }
        if pending.slack.is_some() {
            self.urgent.push_back(session);
        } else {
            self.others.push_back(session);
        }
    }

    /// The rate at which what waits leaves by then.
    fn plan(&mut self, now: Instant) {
        if let Some(finish_by) = self.finish_by {
            let left = nanos(finish_by.since(now)).max(1_000_000);
            let rate = u128::from(self.waiting_bytes) * 1_000_000_000 / u128::from(left);
            let rate = u64::try_from(rate).unwrap_or(u64::MAX);
            self.planned = self.planned.max(rate);
        }
    }

    /// The session whose turn it is.
    pub(super) fn next(&mut self) -> Option<u32> {
        let next = self.urgent.pop_front().or_else(|| self.others.pop_front());
        if !self.is_waiting() {
            self.finish_by = None;
            self.waiting_bytes = 0;
            self.planned = 0;
        }
        next
    }

    /// When the session whose turn is next may send, if one waits.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if !self.is_waiting() {
            return None;
        }
        let missing = u64::try_from(1 - self.level.min(1)).unwrap_or(0);
        let rate = self.rate().max(1);
        let wait = u128::from(missing) * 1_000_000_000 / u128::from(rate) + 1;
        Some(self.updated + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }
}

const fn burst(uplink: Uplink) -> i64 {
    match uplink {
        Uplink::BytesPerSecond(_) => BURST,
        Uplink::Unknown | Uplink::Unlimited => BURST_UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(coordinator: &mut Coordinator, sessions: u32, slack: Option<Duration>) -> Duration {
        let start = Instant::from_micros(5_000_000);
        assert!(coordinator.may_send(start));
        let pending = Pending { bytes: 1500, slack };
        for session in 0..sessions {
            coordinator.wait(start, session, pending, true);
        }
        let mut now = start;
        let mut order = alloc::vec::Vec::new();
        while coordinator.is_waiting() {
            if coordinator.may_send(now) {
                order.extend(coordinator.next());
                coordinator.on_sent(1500);
            } else {
                let at = coordinator.poll_timeout().expect("somebody waits");
                assert!(at > now, "the clock goes on");
                now = at;
            }
        }
        assert!(
            order.iter().copied().eq(0..sessions),
            "first come, first served"
        );
        now.since(start)
    }

    #[test]
    fn a_broadcast_leaves_at_the_rate_of_the_uplink() {
        let mut coordinator = Coordinator::new(Uplink::BytesPerSecond(12_500_000));
        let took = run(&mut coordinator, 1000, Some(Duration::from_millis(300)));
        // 1.5 MB less the burst, at 12.5 MB/s.
        let expected = Duration::from_micros(114_750);
        assert!(
            took.abs_diff(expected) < Duration::from_millis(1),
            "{took:?}"
        );
    }

    /// A regression: each question dropped what was less than a byte, a fifth of an uplink of 125 kB a second that was asked each 10 us.
    #[test]
    fn who_is_asked_often_forgets_no_part_of_a_byte() {
        let mut coordinator = Coordinator::new(Uplink::BytesPerSecond(125_000));
        let start = Instant::from_micros(5_000_000);
        assert!(coordinator.may_send(start));
        coordinator.on_sent(1_000_000);
        let before = coordinator.level;
        for step in 1..=100_000 {
            coordinator.may_send(start + Duration::from_micros(10 * step));
        }
        assert_eq!(coordinator.level - before, 125_000);
    }

    #[test]
    fn without_a_known_uplink_it_takes_a_quarter_of_what_deadlines_leave() {
        let mut coordinator = Coordinator::new(Uplink::Unknown);
        let took = run(&mut coordinator, 1000, Some(Duration::from_millis(400)));
        assert!(took > Duration::from_millis(50), "{took:?}");
        assert!(took < Duration::from_millis(105), "{took:?}");
        assert!(coordinator.may_send(Instant::from_micros(9_000_000)));
        assert_eq!(coordinator.level, BURST_UNKNOWN);
    }

    /// A thousand sessions with a message of two packets each, of which only the first is known when they get in line: the
    /// second ones left at the least rate there is, and the next broadcast found them waiting (lab/scenarios/broadcast.toml
    /// without its uplink, seed 1).
    #[test]
    fn what_is_more_than_was_said_does_not_crawl() {
        let mut coordinator = Coordinator::new(Uplink::Unknown);
        let start = Instant::from_micros(5_000_000);
        assert!(coordinator.may_send(start));
        let pending = Pending {
            bytes: 1500,
            slack: Some(Duration::from_millis(400)),
        };
        for session in 0..1000 {
            coordinator.wait(start, session, pending, true);
        }
        let mut left = [2; 1000];
        let mut now = start;
        while coordinator.is_waiting() {
            if coordinator.may_send(now) {
                let session = coordinator.next().expect("somebody waits");
                coordinator.on_sent(1500);
                left[session as usize] -= 1;
                if left[session as usize] > 0 {
                    coordinator.wait(now, session, pending, false);
                }
            } else {
                now = coordinator.poll_timeout().expect("somebody waits");
            }
        }
        let took = now.since(start);
        assert!(took < Duration::from_millis(205), "{took:?}");
    }

    #[test]
    fn deadlines_go_first() {
        let mut coordinator = Coordinator::new(Uplink::BytesPerSecond(1_000_000));
        let now = Instant::from_micros(1);
        let bulk = Pending {
            bytes: 1_000_000,
            slack: None,
        };
        let urgent = Pending {
            slack: Some(Duration::from_millis(50)),
            ..bulk
        };
        coordinator.wait(now, 1, bulk, true);
        coordinator.wait(now, 2, urgent, true);
        coordinator.wait(now, 3, bulk, true);
        assert_eq!(coordinator.next(), Some(2));
        assert_eq!(coordinator.next(), Some(1));
    }
}
