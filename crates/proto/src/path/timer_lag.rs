//! How late this host sees to what is due. A thread that waits for it is some tenths of a millisecond late, a game's loop that looks once a frame up to a
//! frame. What has to leave by some time has to be due that much earlier.

use core::time::Duration;

use crate::limits::TIMER_GRANULARITY;
use crate::time::nanos;

/// Timeouts that one window holds; two are kept.
const WINDOW: u16 = 256;
/// Greatest ones that are kept: the last of them is what is said once both windows are full, which one in a hundred exceeds.
const LATER: usize = 3;
/// Timeouts before which a loop is taken to be late by a frame, sixty a second, at least, and a thread by a timer's granularity.
const FEW: u16 = 32;
const FRAME: Duration = Duration::from_micros(16_667);
/// Timeouts by which a loop's usual frame is known. It is seen some time between the end of one and the end of the next, so nine of ten are late by
/// nine tenths of a frame at most; and what is above that is no matter: where one look in twenty came a third of a second late, rounds that
/// were taken to be as long ended before an answer could come.
const RECENT: usize = 64;
const RECENT_FEW: u16 = 8;
const FRAME_OF_NINE_TENTHS: f32 = 1.11;
/// What takes so many times as long is no frame.
const HITCH: u32 = 3;
/// What a packet that is due takes to leave.
const LEAVING: Duration = Duration::from_micros(100);

/// What all but the latest one in a hundred of the last timeouts stayed below.
#[derive(Default)]
pub(crate) struct TimerLag {
    newest: Window,
    before: Window,
    known: Duration,
    is_polled: bool,
    recent: Recent,
    frame: Duration,
}

/// The last timeouts of a loop.
struct Recent {
    us: [u32; RECENT],
    count: u16,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            us: [0; RECENT],
            count: 0,
        }
    }
}

impl Recent {
    fn record(&mut self, us: u32) {
        self.us[usize::from(self.count) % RECENT] = us;
        self.count = match self.count {
            // Round and round.
            u16::MAX => RECENT as u16,
            count => count + 1,
        };
    }

    /// The usual frame. O(64).
    fn frame(&self) -> Duration {
        if self.count < RECENT_FEW {
            return FRAME;
        }
        let mut sorted = self.us;
        let sorted = &mut sorted[..usize::from(self.count).min(RECENT)];
        let rank = (sorted.len() - 1) * 9 / 10;
        let (_, nine_tenths, _) = sorted.select_nth_unstable(rank);
        let frame_us = *nine_tenths as f32 * FRAME_OF_NINE_TENTHS;
        Duration::from_micros(frame_us as u64)
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
    /// `is_polled`: datagrams are seen only when timeouts are.
    pub(crate) fn new(is_polled: bool) -> Self {
        Self {
            known: at_first(is_polled),
            frame: at_first(is_polled),
            is_polled,
            ..Self::default()
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
        if self.is_polled {
            self.recent.record(us);
            self.frame = self.frame();
        }
    }

    /// By how much it is to be expected to be late.
    pub(crate) fn get(&self) -> Lag {
        if self.is_polled {
            Lag::Polled {
                most: self.known,
                frame: self.frame,
            }
        } else {
            Lag::Driven(self.known)
        }
    }

    /// What one in a hundred is later than is the frame, and steady; unless some frames take much longer than is usual. (Usual lateness alone may say too
    /// little: what is sent in step with frames is due in step with them.)
    fn frame(&self) -> Duration {
        if self.known <= FRAME * HITCH {
            return self.known;
        }
        let usual = self.recent.frame();
        if self.known > usual * HITCH {
            usual
        } else {
            self.known
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
        let seen = Duration::from_micros(both.greatest_us[rank].into());
        if both.count < FEW {
            return seen.max(at_first(self.is_polled));
        }
        seen
    }
}

/// What is expected before much is seen.
const fn at_first(is_polled: bool) -> Duration {
    if is_polled { FRAME } else { TIMER_GRANULARITY }
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
        assert_eq!(lag.known, FRAME);
        lag.record(us(70));
        assert_eq!(lag.known, FRAME);
        lag.record(us(33_000));
        assert_eq!(lag.get().most(), us(33_000));
        assert_eq!(lag.get().of_round(), us(16_500));
        for number in 0..200 {
            lag.record(us(number * 7919 % 33_333));
        }
        let half = lag.get().of_round();
        assert!((us(14_000)..=us(16_667)).contains(&half), "{half:?}");
    }

    /// A regression: after a few hitches every round of a loop ended before its answer could come, for as long as they were remembered.
    #[test]
    fn hitches_make_no_frame_longer() {
        let mut lag = TimerLag::new(true);
        for number in 0..2000_u64 {
            lag.record(us(match number % 20 {
                0 => 300_000,
                _ => number * 7919 % 16_667,
            }));
            let half = lag.get().of_round();
            // (Where several are among the last 64.)
            assert!(half < us(12_500), "{half:?}");
        }
        assert_eq!(lag.get().most(), us(300_000));
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
