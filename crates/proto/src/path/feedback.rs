//! How the answers come to what has arrived: how often none has by the end of a round, and whether what leaves together is answered together.

use core::time::Duration;

use super::Loss;

/// Packets that leave within this time of each other leave together.
const TOGETHER: Duration = Duration::from_millis(1);
/// Pairs of packets over which it is averaged how often one acknowledgement names both.
const PAIRS: f32 = 32.0;

/// What is known of the answers on a path.
#[derive(Clone, Copy, Default)]
pub(crate) struct Feedback {
    /// Of what arrived, the share that nothing had answered for when its round was over.
    unanswered: Loss,
    /// Of two packets that left together and both arrived, the share of which one acknowledgement was the first to name both. None before
    /// any was seen.
    together: f32,
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
