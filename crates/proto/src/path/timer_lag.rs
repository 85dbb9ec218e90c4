//! How late this host sees to what is due. A thread that waits for it is some tenths of a millisecond late, a game's loop that looks once a frame up to a
//! frame. What has to leave by some time has to be due that much earlier.

use core::time::Duration;

use crate::limits::TIMER_GRANULARITY;
use crate::time::{Instant, nanos};

/// Timeouts that one window holds; two are kept.
const WINDOW: u16 = 256;
/// Greatest ones that are kept: the last of them is what is said once both windows are full, which one in a hundred exceeds.
const LATER: usize = 3;
/// Timeouts before which a thread is taken to be late by a timer's granularity at least, and a loop by a frame.
const FEW: u16 = 32;
/// What a loop's frame is taken to be at first.
const FRAME: Duration = Duration::from_micros(16_667);
/// Looks by which a loop's usual frame is known: three quarters of them came no later after the one before. (A frame that is taken to be too long ends rounds
/// before an answer can come, one that is too short ends them late.)
const LOOKS: usize = 64;
const LOOKS_FEW: u16 = 8;
/// What a packet that is due takes to leave.
const LEAVING: Duration = Duration::from_micros(100);

/// What all but the latest one in a hundred of the last timeouts stayed below, and a loop's usual frame.
#[derive(Default)]
pub(crate) struct TimerLag {
    newest: Window,
    before: Window,
    known: Duration,
    looks: Option<Looks>,
}

/// When a loop looks.
struct Looks {
    last: Option<Instant>,
    /// Between the last ones.
    us: [u32; LOOKS],
    count: u16,
    frame: Duration,
}

impl Default for Looks {
    fn default() -> Self {
        Self {
            last: None,
            us: [0; LOOKS],
            count: 0,
            frame: FRAME,
        }
    }
}

impl Looks {
    /// O(1) on average.
    fn record(&mut self, now: Instant) {
        let Some(last) = self.last else {
            self.last = Some(now);
            return;
        };
        let since = now.since(last);
        // A loop that has much to take in looks several times in a frame.
        if since < TIMER_GRANULARITY {
            return;
        }
        self.last = Some(now);
        let us = u32::try_from(nanos(since) / 1000).unwrap_or(u32::MAX);
        self.us[usize::from(self.count) % LOOKS] = us;
        self.count = match self.count {
            // Round and round.
            u16::MAX => LOOKS as u16,
            count => count + 1,
        };
        if self.count.is_multiple_of(LOOKS_FEW) {
            self.frame = self.usual();
        }
    }

    fn usual(&self) -> Duration {
        let mut sorted = self.us;
        let sorted = &mut sorted[..usize::from(self.count).min(LOOKS)];
        let rank = (sorted.len() - 1) * 3 / 4;
        let (_, three_quarters, _) = sorted.select_nth_unstable(rank);
        Duration::from_micros((*three_quarters).into())
    }
}

/// The greatest of up to [`WINDOW`] timeouts.
#[derive(Default)]
struct Window {
    count: u16,
    /// Largest first, in microseconds, rounded up.
    greatest_us: [u32; LATER],
}

/// How late what is due is seen to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lag {
    /// By a thread that waits for datagrams and for what is due: so much.
    Driven(Duration),
    /// By a loop that looks once a frame, which is usually so long: up to so much.
    Polled {
        /// All but the latest one in a hundred.
        most: Duration,
        /// From one look to the next.
        frame: Duration,
    },
}

impl Lag {
    /// What has to leave in time is due so much before.
    pub(crate) fn most(self) -> Duration {
        match self {
            Self::Driven(lag) => lag + LEAVING,
            Self::Polled { most, .. } => most,
        }
    }

    /// What is left at the end of rounds that follow each other: more than a lag, since each begins when it is seen that the last is over. The loop's are
    /// longer instead.
    pub(crate) fn after_rounds(self) -> Duration {
        match self {
            Self::Driven(_) => TIMER_GRANULARITY,
            Self::Polled { .. } => Duration::ZERO,
        }
    }

    /// How much longer a round takes. A loop ends one when it looks the time nearest to its end, not the time after that: an answer that is not there then was
    /// not there before.
    pub(crate) fn of_round(self) -> Duration {
        match self {
            Self::Driven(_) => Duration::ZERO,
            Self::Polled { frame, .. } => frame / 2,
        }
    }

    /// How much earlier than its end a round is due.
    pub(crate) fn before_end(self) -> Duration {
        match self {
            Self::Driven(_) => Duration::ZERO,
            Self::Polled { frame, .. } => frame,
        }
    }
}

impl TimerLag {
    /// `is_polled`: datagrams are seen only when timeouts are, and those are seen to at each look.
    pub(crate) fn new(is_polled: bool) -> Self {
        Self {
            looks: is_polled.then(Looks::default),
            ..Self::default()
        }
    }

    /// It is seen whether something is due. O(1) on average.
    pub(crate) fn look(&mut self, now: Instant) {
        if let Some(looks) = &mut self.looks {
            looks.record(now);
        }
    }

    /// Something was done so long after it was due. O(1).
    pub(crate) fn record(&mut self, late: Duration) {
        if self.newest.count == WINDOW {
            self.before = core::mem::take(&mut self.newest);
        }
        let us = u32::try_from(nanos(late).div_ceil(1000)).unwrap_or(u32::MAX);
        self.newest.count += 1;
        self.newest.insert(us);
        self.known = self.counted();
    }

    /// By how much it is to be expected to be late.
    pub(crate) fn get(&self) -> Lag {
        // (Of many timeouts they tell themselves: what leaves in step with frames is due in step with them.)
        let most = |at_first: Duration| {
            if self.is_known() {
                self.known
            } else {
                self.known.max(at_first)
            }
        };
        match &self.looks {
            Some(Looks { frame, .. }) => Lag::Polled {
                most: most(*frame),
                frame: *frame,
            },
            None => Lag::Driven(most(TIMER_GRANULARITY)),
        }
    }

    fn counted(&self) -> Duration {
        let mut both = Window {
            count: self.newest.count + self.before.count,
            ..self.newest
        };
        for us in self.before.greatest_us {
            both.insert(us);
        }
        let rank = usize::from(both.count / (WINDOW / 2)).min(LATER - 1);
        Duration::from_micros(both.greatest_us[rank].into())
    }

    /// Whether many timeouts were met.
    pub(crate) fn is_known(&self) -> bool {
        self.newest.count + self.before.count >= FEW
    }
}

impl Window {
    fn insert(&mut self, us: u32) {
        let mut us = us;
        for greatest in &mut self.greatest_us {
            if us > *greatest {
                core::mem::swap(greatest, &mut us);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn before_much_is_seen_a_loop_has_sixty_frames_a_second() {
        let mut lag = TimerLag::new(true);
        assert_eq!(lag.get().most(), FRAME);
        lag.record(us(70));
        assert_eq!(lag.get().most(), FRAME);
        lag.record(us(33_000));
        assert_eq!(lag.get().most(), us(33_000));
        assert_eq!(lag.get().before_end(), FRAME);
    }

    /// Goal: a loop's frame is known after a few, however it looks at what is due in step with them, and however often in one frame.
    #[test]
    fn a_frame_is_the_time_between_looks() {
        for frame in [4_000, 16_667, 33_333, 100_000] {
            let mut lag = TimerLag::new(true);
            for number in 1..=10 {
                for turn in 0..3 {
                    lag.look(Instant::from_micros(number * frame + turn * 200));
                }
            }
            assert_eq!(lag.get().before_end(), us(frame));
            assert_eq!(lag.get().most(), us(frame));
        }
    }

    /// A regression: after a few hitches every round of a loop ended before its answer could come, for as long as they were remembered; and where frames
    /// were left out now and then.
    #[test]
    fn hitches_make_no_frame_longer() {
        for hitch in [2, 3, 20] {
            let (mut lag, mut frames) = (TimerLag::new(true), 0);
            for number in 0..2000_u64 {
                let frames_since = if number % 10 == 0 { hitch } else { 1 };
                frames += frames_since;
                lag.look(Instant::from_micros(frames * 16_667));
                lag.record(us(frames_since * 16_000));
                assert!(lag.get().before_end() <= us(16_667));
            }
            assert_eq!(lag.get().most(), us(hitch * 16_000));
        }
    }

    /// Goal: what leaves last is due a thread's lag before, and rounds are as long as the path makes them.
    #[test]
    fn a_thread_is_as_late_as_it_was_seen_to_be() {
        let mut lag = TimerLag::new(false);
        assert_eq!(lag.get().most(), TIMER_GRANULARITY + LEAVING);
        for _ in 0..FEW {
            lag.record(us(70));
        }
        assert_eq!(lag.get().most(), us(170));
        for _ in 0..10 {
            lag.record(us(5_000));
        }
        assert_eq!(lag.get().most(), us(5_100));
        let lag = lag.get();
        assert_eq!(lag.of_round() + lag.before_end(), us(0));
        assert_eq!(lag.after_rounds(), TIMER_GRANULARITY);
    }

    /// Goal: what a loop that looks once a frame does is known to within a frame's last hundredths, and what a precise host does as well.
    #[test]
    fn it_is_what_one_in_a_hundred_is_later_than() {
        for frame in [4_000, 16_667, 100_000] {
            let mut lag = TimerLag::new(true);
            for number in 0..2000_u64 {
                lag.record(us(number * 7919 % (frame + 1)));
                if number > 500 {
                    let known = lag.known;
                    assert!(known <= us(frame), "{known:?} of {frame}");
                    assert!(known >= us(frame * 95 / 100), "{known:?} of {frame}");
                }
            }
        }
    }

    /// Goal: a laptop's sleep is no reason to do everything an hour early, and a host that became slower is believed.
    #[test]
    fn an_outlier_says_nothing_and_a_change_does() {
        let mut lag = TimerLag::new(true);
        for number in 0..1000 {
            let late = if number % 400 == 399 {
                us(3_600_000_000)
            } else {
                us(60)
            };
            lag.record(late);
        }
        assert_eq!(lag.known, us(60));
        for _ in 0..10 {
            lag.record(us(8_000));
        }
        assert_eq!(lag.known, us(8_000));
        for _ in 0..512 {
            lag.record(us(60));
        }
        assert_eq!(lag.known, us(60));
    }
}
