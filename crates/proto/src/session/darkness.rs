//! A path that carries nothing. After four round times without an answer no flight has more than what is missing. After a second whatever has been sent
//! already goes again one at a time, and ever more seldom, however many messages wait. What the application sends meanwhile still leaves, once.
//!
//! (Each message by itself had backed off, so that 20 messages a second became 84 packets a second, for as long as the idle timeout.)

use core::time::Duration;

use crate::time::Instant;

/// How long nothing is answered for before a path is taken to be dark. Until then the timeouts of thin streams do not double. (Linux stops
/// after six; here a closed window keeps what is on its way below four whatever waits.)
const DARK_AFTER: Duration = Duration::from_secs(1);

/// Nothing is answered for so many round times before redundancy is taken to be of no use. (Losses that are not all of them leave an answer
/// within two, mostly; longer a wait would cost what the first second of an outage does.)
const SILENT_ROUNDS: u32 = 4;

/// Something goes again at least this often: whether there is light again is not known sooner, where the application waits for room.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How long nothing has been answered for.
#[derive(Default)]
pub(super) struct Darkness {
    /// When the first packet left that asks for an answer, since there was one.
    since: Option<Instant>,
    /// When something may go again, and how long after that the next.
    next_at: Option<Instant>,
    wait: Duration,
}

impl Darkness {
    /// A packet that asks for an answer leaves.
    pub(super) const fn on_asked(&mut self, now: Instant) {
        if self.since.is_none() {
            self.since = Some(now);
        }
    }

    /// There is an answer, or the path is another one.
    pub(super) fn on_answered(&mut self) {
        *self = Self::default();
    }

    /// Whether more of each message than is missing buys nothing: a path that answers nothing for so long most probably carries nothing, and
    /// the last flight before a deadline was ten copies.
    pub(super) fn is_silent(&self, now: Instant, round_time: Duration) -> bool {
        self.since
            .is_some_and(|since| now.since(since) > round_time * SILENT_ROUNDS)
    }

    /// Whether there may be nobody any more.
    pub(super) fn is_dark(&self, now: Instant) -> bool {
        self.since
            .is_some_and(|since| now.since(since) > DARK_AFTER)
    }

    /// Until when what was sent already has to wait; `None` when it may go again now, after which the others wait.
    pub(super) fn holds_until(&mut self, now: Instant, round_time: Duration) -> Option<Instant> {
        if !self.is_dark(now) {
            return None;
        }
        let held = self.next_at.filter(|at| *at > now);
        if held.is_none() {
            self.wait = (self.wait * 2).max(round_time).min(WAIT_MAX);
            self.next_at = Some(now + self.wait);
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn in_the_dark_one_at_a_time_goes_again_and_ever_more_seldom() {
        let mut darkness = Darkness::default();
        let begun = Instant::from_micros(7_000_000);
        darkness.on_asked(begun);
        let round_time = Duration::from_millis(100);
        assert!(!darkness.is_silent(begun + round_time * 4, round_time));
        assert!(darkness.is_silent(begun + round_time * 5, round_time));
        assert_eq!(darkness.holds_until(begun + DARK_AFTER, round_time), None);
        let again: Vec<u64> = (1001..31_000)
            .filter(|ms| {
                let now = begun + Duration::from_millis(*ms);
                // Three messages are due all the time.
                let held = [0; 3].map(|_| darkness.holds_until(now, round_time));
                assert!(held[1].is_some() && held[2].is_some());
                held[0].is_none()
            })
            .collect();
        assert_eq!(again[..5], [1001, 1101, 1301, 1701, 2501]);
        assert!(again.len() < 36, "{again:?}");
        darkness.on_answered();
        assert!(!darkness.is_dark(begun + DARK_AFTER * 40));
    }
}
