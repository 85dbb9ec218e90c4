//! When a client asks whether its server still reaches it: where address translation has forgotten a session or the client is at
//! another address, the server goes on sending to the old one, and only a packet from the client tells it better.
//!
//! A quiet session asks once an interval, and again soon when no answer comes: two lost packets in a row ended sessions of whom nothing came for the whole idle
//! timeout. One that has heard something all the time, and then nothing for several times as long as
//! it ever had to wait lately, asks at once: who only watches does not stand still for an interval when it moves.

use core::time::Duration;

use crate::time::Instant;

/// Shortest silence that is one: wireless networks are away for less than that all the time.
const SILENCE_MIN: Duration = Duration::from_millis(250);

/// So many times the longest wait of late are a silence ..
const WAITS: u32 = 4;

/// .. which is forgotten within about so long. (By time and not by packets: what comes in bursts is no steady stream.)
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3);

/// The longest wait before anything is known of it: a quiet session asks once more than it would.
const WAIT_AT_FIRST: Duration = Duration::from_secs(1);

/// While nothing comes it is asked again after such a part of the interval at the latest, however long a round takes.
const PATIENCE_PART: u32 = 5;

/// Asks for signs of life.
pub(super) struct KeepAlive {
    /// The longest that nothing is asked for; `None` where nothing ever is.
    interval: Option<Duration>,
    /// The longest wait for a packet, less what has been forgotten of it since.
    longest_wait: Duration,
    /// The same without the last wait.
    longest_before: Duration,
    asked_at: Instant,
    /// How often was asked since something came.
    unanswered: u32,
}

impl KeepAlive {
    pub(super) fn new(now: Instant, interval: Option<Duration>) -> Self {
        Self {
            interval,
            longest_wait: WAIT_AT_FIRST,
            longest_before: WAIT_AT_FIRST,
            asked_at: now,
            unanswered: 0,
        }
    }

    /// An authentic packet came, `wait` after the one before it.
    pub(super) fn on_received(&mut self, wait: Duration) {
        let Some(interval) = self.interval else {
            return;
        };
        self.unanswered = 0;
        let kept = FORGOTTEN_AFTER.saturating_sub(wait).as_micros();
        let longest = self.longest_wait.as_micros() * kept / FORGOTTEN_AFTER.as_micros();
        let longest = u64::try_from(longest).map_or(interval, Duration::from_micros);
        self.longest_before = longest.min(interval);
        self.longest_wait = longest.max(wait).min(interval);
    }

    /// What came was a question whether we are at another address: the wait for it was that address's, and not the peer's. (Who moved three times within some
    /// seconds was found after seven to ten.)
    pub(super) const fn on_challenged(&mut self) {
        self.longest_wait = self.longest_before;
    }

    /// When to ask, if nothing comes until then. What we send ourselves puts nothing off: it may be too large for the path.
    pub(super) fn next_at(&self, last_received: Instant, round_time: Duration) -> Option<Instant> {
        let interval = self.interval?;
        if self.unanswered == 0 {
            let silence = self.longest_wait.saturating_mul(WAITS).max(SILENCE_MIN);
            return Some(last_received + silence.min(interval));
        }
        // The answer is due within a round, however quiet the session was.
        let patience = round_time.max(SILENCE_MIN);
        let doubled = patience.saturating_mul(1 << self.unanswered.min(16));
        // (Six questions within the idle timeout were too few: over 15 % of loss each way half of the quiet sessions ended within two hours.)
        let longest = (interval / PATIENCE_PART).max(SILENCE_MIN).min(interval);
        Some(self.asked_at + doubled.min(longest))
    }

    pub(super) const fn on_asked(&mut self, now: Instant) {
        self.asked_at = now;
        self.unanswered = self.unanswered.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);
    const ROUND_TIME: Duration = Duration::from_millis(60);

    fn at(ms: u64) -> Instant {
        Instant::from_micros(1_000_000 + ms * 1000)
    }

    /// Whether something asks during these waits, in milliseconds, for packets that come.
    fn asks(
        keep_alive: &mut KeepAlive,
        now_ms: &mut u64,
        waits: impl Iterator<Item = u64>,
    ) -> usize {
        let mut asked = 0;
        for wait in waits {
            let due = keep_alive.next_at(at(*now_ms), ROUND_TIME);
            *now_ms += wait;
            asked += usize::from(due.is_some_and(|due| due < at(*now_ms)));
            keep_alive.on_received(Duration::from_millis(wait));
        }
        asked
    }

    #[test]
    fn what_comes_steadily_is_missed_soon_and_then_ever_more_seldom() {
        let (mut keep_alive, mut now_ms) = (KeepAlive::new(at(0), Some(INTERVAL)), 0);
        let steady = core::iter::repeat_n(33, 30 * 30);
        assert_eq!(asks(&mut keep_alive, &mut now_ms, steady), 0);
        let (last, mut after_ms) = (at(now_ms), Vec::new());
        while after_ms.len() < 8 {
            let due = keep_alive.next_at(last, ROUND_TIME).unwrap();
            keep_alive.on_asked(due);
            after_ms.push(due.since(last).as_millis());
        }
        let doubled = [250, 750, 1750, 3750, 5750, 7750, 9750, 11_750];
        assert_eq!(after_ms, doubled);
    }

    #[test]
    fn a_question_that_was_lost_is_asked_again_long_before_the_session_is_over() {
        let (mut keep_alive, mut now_ms) = (KeepAlive::new(at(0), Some(INTERVAL)), 0);
        let quiet = core::iter::repeat_n(10_060, 10);
        asks(&mut keep_alive, &mut now_ms, quiet);
        let mut after_ms = Vec::new();
        while after_ms.len() < 7 {
            let due = keep_alive.next_at(at(now_ms), ROUND_TIME).unwrap();
            keep_alive.on_asked(due);
            after_ms.push(due.since(at(now_ms)).as_millis());
        }
        assert_eq!(
            after_ms,
            [10_000, 10_500, 11_500, 13_500, 15_500, 17_500, 19_500]
        );
    }

    #[test]
    fn what_comes_in_bursts_is_not_missed_between_them() {
        let (mut keep_alive, mut now_ms) = (KeepAlive::new(at(0), Some(INTERVAL)), 0);
        let burst = [1000].into_iter().chain(core::iter::repeat_n(1, 30));
        let bursts = core::iter::repeat_n(burst, 100).flatten();
        assert_eq!(asks(&mut keep_alive, &mut now_ms, bursts), 0);
    }

    #[test]
    fn a_pause_after_a_steady_stream_costs_few_packets() {
        let (mut keep_alive, mut now_ms) = (KeepAlive::new(at(0), Some(INTERVAL)), 0);
        let steady = core::iter::repeat_n(33, 30 * 30);
        asks(&mut keep_alive, &mut now_ms, steady);
        let (mut last, begun, mut asked) = (at(now_ms), at(now_ms), 0);
        while last.since(begun) < Duration::from_secs(60) {
            let due = keep_alive.next_at(last, ROUND_TIME).unwrap();
            keep_alive.on_asked(due);
            asked += 1;
            // Nothing comes but the answers.
            let answered = due + ROUND_TIME;
            keep_alive.on_received(answered.since(last));
            last = answered;
        }
        assert!(asked <= 9, "{asked} in a minute");
    }

    #[test]
    fn who_does_not_want_to_asks_nothing_and_a_short_interval_holds() {
        let silent = KeepAlive::new(at(0), None);
        assert_eq!(silent.next_at(at(0), ROUND_TIME), None);
        let mut hasty = KeepAlive::new(at(0), Some(Duration::from_millis(10)));
        for asked in 1..=3 {
            let due = hasty.next_at(at(0), ROUND_TIME).unwrap();
            assert_eq!(due, at(asked * 10));
            hasty.on_asked(due);
        }
    }
}
