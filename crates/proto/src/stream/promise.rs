//! What steers the redundancy of a stream, or of all: a price for each miss target that their messages have.

use alloc::vec::Vec;

use punctual_policy::{Price, Steering};

/// Miss targets that are steered apart; further ones are steered with the last.
const TARGETS_MAX: usize = 4;

/// The promises of one stream, or of all of an endpoint's.
#[derive(Default)]
pub(crate) struct Promises(Vec<(f32, Steering)>);

impl Promises {
    /// What a miss is worth with this miss target; `None` before the first message.
    pub(crate) fn price(&self, miss_target: f32) -> Option<Price> {
        self.steering(miss_target)?.price()
    }

    /// What steers messages with this miss target; `None` before the first.
    fn steering(&self, miss_target: f32) -> Option<&Steering> {
        let own = self.0.iter().find(|promise| promise.0 == miss_target);
        own.or_else(|| self.0.last().filter(|_| self.0.len() == TARGETS_MAX))
            .map(|promise| &promise.1)
    }

    /// How many miss targets there are.
    #[cfg(test)]
    pub(crate) fn targets(&self) -> usize {
        self.0.len()
    }

    /// The same, to be moved; from the first message on.
    pub(crate) fn steering_mut(&mut self, miss_target: f32) -> &mut Steering {
        let own = self.0.iter().position(|promise| promise.0 == miss_target);
        let place = own.unwrap_or_else(|| {
            if self.0.len() < TARGETS_MAX {
                self.0.push((miss_target, Steering::default()));
            }
            self.0.len() - 1
        });
        &mut self.0[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Bursts, Feedback, Loss, LossLevel};
    use crate::stream::surprise::Surprise;

    #[test]
    fn what_a_session_learns_is_small() {
        let stream = size_of::<Promises>() + size_of::<(f32, Steering)>();
        let surprises = size_of::<Surprise>();
        let losses = size_of::<LossLevel>() + size_of::<Bursts>() + 2 * size_of::<Loss>();
        let answers = size_of::<Feedback>();
        assert!(
            stream + surprises + losses + answers <= 512,
            "{stream} {surprises} {losses} {answers}"
        );
    }

    #[test]
    fn each_target_is_steered_apart_and_no_more_than_four_are() {
        let mut promises = Promises::default();
        assert!(promises.steering(0.01).is_none());
        for target in [0.01, 0.001, 0.1, 0.02, 0.03] {
            for _ in 0..6 {
                promises.steering_mut(target).on_outcome(true, 0.1);
            }
        }
        let correction = |target| Some(promises.steering(target)?.correction(target));
        assert_eq!(correction(0.01), correction(0.001));
        assert_eq!(correction(0.02), correction(0.03), "steered together");
        assert_ne!(correction(0.02), correction(0.01));
        assert_eq!(promises.0.len(), TARGETS_MAX);
    }
}
