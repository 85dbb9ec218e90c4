//! By how much the misses of a stream's messages differ from what was predicted, and from what was thought of them at first: what a model lacks shows there, in time.

/// What a miss more or less than predicted adds to the logarithm of the factor: eight of them double or halve it.
const GAIN: f32 = 0.09;
/// Logarithm of the greatest factor, and of the least, negated: four.
const MOST: f32 = 1.386;
/// Misses in a row beyond this are one event, of which nothing is to be learned for the next message.
const RUN_MAX: u8 = 8;

/// Of what is predicted to be missed more often than this, a factor says nothing.
const HOPELESS: f64 = 0.5;

/// Misses over which it is learned for how many of them losses are not to blame, though they were blamed first.
const JUDGED: u32 = 16;

/// The factor by which predictions are multiplied; and the share of misses that are none of losses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Surprise {
    log: f32,
    /// Of 65,535.
    excused: u16,
    run: u8,
}

impl Surprise {
    /// Of the misses that losses were blamed for, the share that were none of theirs, lately; 0..1.
    pub(crate) fn excused_share(&self) -> f32 {
        f32::from(self.excused) / f32::from(u16::MAX)
    }

    /// It is known of such a miss whether losses were to blame.
    pub(crate) fn on_judged(&mut self, is_missed: bool) {
        let excused = if is_missed { 0 } else { u32::from(u16::MAX) };
        let sum = u32::from(self.excused) * (JUDGED - 1) + excused;
        self.excused = (sum / JUDGED) as u16;
    }

    /// A message has its outcome, for which a miss was predicted with this probability.
    pub(crate) fn on_outcome(&mut self, is_missed: bool, predicted: f64) {
        self.run = if is_missed {
            self.run.saturating_add(1)
        } else {
            0
        };
        // What it is not used for teaches it nothing: on a path that has just become shorter misses were predicted that did not come, and for ten minutes four times too few.
        if self.run <= RUN_MAX && predicted <= HOPELESS {
            let missed = f32::from(u8::from(is_missed));
            self.log = (self.log + GAIN * (missed - predicted as f32)).clamp(-MOST, MOST);
        }
    }

    /// A predicted probability of a miss, as far as what was seen so far contradicts it.
    pub(crate) fn corrected(&self, miss: f64) -> f64 {
        if miss < HOPELESS {
            (miss * f64::from(libm::expf(self.log))).min(HOPELESS)
        } else {
            miss
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows messages of which one in `every` is late, and where a miss is predicted with `predicted`: the last prediction.
    fn follow(every: u32, predicted: f64) -> f64 {
        let mut surprise = Surprise::default();
        for message in 1..=200_000 {
            let now = surprise.corrected(predicted);
            surprise.on_outcome(message % every == 0, now);
        }
        surprise.corrected(predicted)
    }

    #[test]
    fn what_was_none_of_losses_is_learned_over_sixteen() {
        let mut surprise = Surprise::default();
        (0..200).for_each(|_| surprise.on_judged(false));
        let share = surprise.excused_share();
        assert!((0.999..=1.0).contains(&share), "{share}");
        (0..16).for_each(|_| surprise.on_judged(true));
        let share = surprise.excused_share();
        assert!((0.3..0.4).contains(&share), "{share}");
        (0..200).for_each(|_| surprise.on_judged(true));
        assert!(surprise.excused_share() < 0.001);
    }

    #[test]
    fn what_is_seen_comes_to_be_predicted() {
        for (every, predicted) in [
            (1000, 5e-4),
            (1000, 1e-3),
            (1000, 3e-3),
            (20, 0.1),
            (2, 0.3),
        ] {
            let share = 1.0 / f64::from(every);
            let found = follow(every, predicted);
            assert!((found / share - 1.0).abs() < 0.15, "{found} for {share}");
        }
    }

    #[test]
    fn what_seemed_hopeless_teaches_nothing() {
        let mut surprise = Surprise::default();
        for _ in 0..300 {
            surprise.on_outcome(false, 0.8);
            surprise.on_outcome(true, 0.6);
        }
        assert!((surprise.corrected(1e-3) - 1e-3).abs() < 1e-9);
    }

    #[test]
    fn an_outage_is_one_event() {
        let mut surprise = Surprise::default();
        for _ in 0..1000 {
            surprise.on_outcome(true, 1e-3);
        }
        assert!(surprise.corrected(1e-3) < 2.1e-3);
        let hopeless = surprise.corrected(0.9);
        assert!((hopeless - 0.9).abs() < 1e-9);
    }
}
