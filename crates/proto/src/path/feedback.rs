//! How the answers come to what has arrived: how often none has by the end of a round, whether what leaves together is answered together, and
//! over how long a time the peer gathers what arrives.

use core::time::Duration;

use super::Loss;

/// Packets that leave within this time of each other leave together.
const TOGETHER: Duration = Duration::from_millis(1);
/// Pairs of packets over which it is averaged how often one acknowledgement names both.
const PAIRS: f32 = 32.0;
/// Acknowledgements over which more than they gathered before is believed, and over which less is. (Sixteen for both: a download to 30 frames a
/// second got up to a third less.)
const MORE_ANSWERS: f32 = 4.0;
const LESS_ANSWERS: f32 = 16.0;
/// No loop looks more seldom than ten times a second; what is answered together over longer is an outage's.
const GATHERED_MAX: Duration = Duration::from_millis(100);

/// More than of that time.
const MOMENTS_MAX: u16 = 100;

/// A time over which is gathered, [`GATHERED_MAX`] at most, in units of two microseconds.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Gathered(u16);

impl Gathered {
    fn new(time: Duration) -> Self {
        Self((time.min(GATHERED_MAX).as_micros() / 2) as u16)
    }

    fn us(self) -> f32 {
        2.0 * f32::from(self.0)
    }
}

/// What is known of the answers on a path.
#[derive(Clone, Copy, Default)]
pub(crate) struct Feedback {
    /// Of what arrived, the share that nothing had answered for when its round was over.
    unanswered: Loss,
    /// Of two packets that left together and both arrived, the share of which one acknowledgement was the first to name both. None before
    /// any was seen.
    together: f32,
    /// Over how long a time the packets left that an acknowledgement was the first to name: the latest, and mostly, in microseconds.
    gathered: Gathered,
    gathers_us: f32,
    /// What it says itself of that.
    told: Gathered,
    /// Of how many moments the packets were that an acknowledgement was the first to name, with none lost before it: the latest, and mostly, in 256ths.
    named: u16,
    names_256: u16,
}

impl Feedback {
    /// A packet that arrived was answered for before its round was over, or after it.
    pub(crate) fn record(&mut self, is_unanswered: bool) {
        self.unanswered.record(is_unanswered);
    }

    /// Of two packets that left so far apart, the second is acknowledged: by the acknowledgement that first names the one before, or a later.
    pub(crate) fn record_pair(&mut self, apart: Duration, is_together: bool) {
        if apart < TOGETHER {
            let together = f32::from(u8::from(is_together));
            self.together += (together - self.together) / PAIRS;
        }
    }

    /// The peer says that it looks at what arrives once in so long a time; zero where it looks at once.
    pub(crate) fn record_frame(&mut self, frame: Duration) {
        self.told = Gathered::new(frame);
    }

    /// An acknowledgement is the first to name packets that left over so long a time. Only what two in a row gather counts: else one was lost.
    pub(crate) fn record_gathered(&mut self, over: Duration) {
        let gathered = Gathered::new(over);
        let before = core::mem::replace(&mut self.gathered, gathered);
        let more_us = gathered.min(before).us() - self.gathers_us;
        let answers = if more_us > 0.0 {
            MORE_ANSWERS
        } else {
            LESS_ANSWERS
        };
        self.gathers_us += more_us / answers;
    }

    /// An acknowledgement, before which none was lost, is the first to name packets of so many moments. What was held on the way comes once and not twice in a row.
    pub(crate) fn record_named(&mut self, moments: u16) {
        let before = core::mem::replace(&mut self.named, moments);
        let now_256 = moments.min(before).min(MOMENTS_MAX) * 256;
        if now_256 > self.names_256 {
            self.names_256 += (now_256 - self.names_256).div_ceil(2);
        } else {
            self.names_256 -= (self.names_256 - now_256) / 16;
        }
    }

    /// Whether packets of so many moments are too many for so many acknowledgements, as this peer gathers what arrives: most have come at once.
    pub(crate) fn is_too_much_for(&self, acknowledgements: u64, moments: u16) -> bool {
        let each_256 = u64::from(self.names_256.max(256)) + 256;
        u64::from(moments) * 256 > acknowledgements.saturating_mul(each_256)
    }

    /// Over about how long a time the peer gathers what arrives before it looks at it: a frame, or nothing. (What it says counts where it shows less: what
    /// leaves once a frame itself shows nothing. A game's snapshots over 100 ms with 2 % of loss, from a loop of 33 ms to one of 16, came up to 21 s late.)
    pub(crate) fn gathers(&self) -> Duration {
        Duration::from_micros(self.gathers_us.max(self.told.us()) as u64)
    }

    /// How often the answer to what arrived does not come in its round.
    pub(crate) fn unanswered(&self) -> f64 {
        self.unanswered.mean()
    }

    /// Of the cases in which the answer to a packet may be missing, the share that is left when the one before it, sent so much earlier, was
    /// answered for: where both would have been named together, the second has not arrived.
    pub(crate) fn separate(&self, apart: Duration) -> f64 {
        if apart < TOGETHER {
            f64::from(1.0 - self.together)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_show_and_a_lost_acknowledgement_does_not() {
        let frame = Duration::from_millis(16);
        let mut feedback = Feedback::default();
        for round in 0..400 {
            // One of four acknowledgements was lost: the next has twice as much to name.
            let over = if round % 4 == 0 {
                frame
            } else {
                Duration::ZERO
            };
            feedback.record_gathered(over);
            assert_eq!(feedback.gathers(), Duration::ZERO);
        }
        for _ in 0..20 {
            feedback.record_gathered(frame);
        }
        assert!(feedback.gathers() > frame * 95 / 100);
        for _ in 0..100 {
            feedback.record_gathered(Duration::from_secs(3600));
        }
        assert!(
            feedback.gathers() <= GATHERED_MAX,
            "a peer may say what it likes"
        );
        for _ in 0..200 {
            feedback.record_gathered(Duration::ZERO);
        }
        assert!(feedback.gathers() < Duration::from_micros(10));
        feedback.record_frame(frame);
        assert_eq!(feedback.gathers(), frame);
        feedback.record_frame(Duration::MAX);
        assert_eq!(feedback.gathers(), GATHERED_MAX);
    }

    #[test]
    fn what_was_held_once_does_not_pass_for_frames() {
        let mut feedback = Feedback::default();
        for _ in 0..100 {
            feedback.record_named(1);
        }
        feedback.record_named(40);
        feedback.record_named(1);
        assert!(feedback.is_too_much_for(2, 5) && !feedback.is_too_much_for(2, 4));
        assert!(!feedback.is_too_much_for(u64::MAX, u16::MAX));
        for _ in 0..10 {
            feedback.record_named(4);
        }
        assert!(!feedback.is_too_much_for(2, 8), "frames of four");
        assert!(feedback.is_too_much_for(2, 11));
        for _ in 0..100 {
            feedback.record_named(1);
        }
        assert!(feedback.is_too_much_for(2, 5));
    }

    #[test]
    fn what_is_answered_together_is_lost_when_only_one_is_named() {
        let (near, far) = (Duration::from_micros(20), Duration::from_millis(3));
        let mut feedback = Feedback::default();
        assert!(feedback.separate(near) >= 1.0, "nothing is known");
        for _ in 0..200 {
            feedback.record_pair(near, true);
            feedback.record_pair(far, false);
        }
        assert!(feedback.separate(near) < 0.01);
        assert!(feedback.separate(far) >= 1.0);
        for _ in 0..200 {
            feedback.record_pair(near, false);
        }
        assert!(feedback.separate(near) > 0.99, "answered one by one");
    }
}
