//! The hostile network of a storm: everything that channels can do, at once, chosen at random.

use std::time::Duration;

use super::Choices;
use crate::channel::{ChannelSpec, DelayModel, LossModel, PathSpec, RateSpec, Reorder};

/// A path with random faults. It ends calm: blackouts are over after 20 s.
pub(super) fn path(choices: &mut dyn Choices) -> PathSpec {
    PathSpec::new("storm", "random", channel(choices), channel(choices))
}

fn channel(choices: &mut dyn Choices) -> ChannelSpec {
    let delay = Duration::from_micros(choices.below(200_000));
    let delay = match choices.below(3) {
        0 => DelayModel::Fixed(delay),
        _ => DelayModel::Normal {
            mean: delay,
            sd: Duration::from_micros(choices.below(20_000)),
            min: delay / 2,
        },
    };
    let share = |choices: &mut dyn Choices, percent: u64| choices.below(percent + 1) as f64 / 100.0;
    let loss = match choices.below(4) {
        0 => LossModel::None,
        1 | 2 => LossModel::Uniform(share(choices, 30)),
        _ => LossModel::Gilbert {
            loss_share: 0.01 + share(choices, 20),
            mean_burst: Duration::from_millis(1 + choices.below(300)),
            loss_in_good: 0.0,
            loss_in_bad: 1.0,
        },
    };
    let mut spec = ChannelSpec::fixed(Duration::ZERO).with_loss(loss);
    spec.delay = delay;
    if choices.below(3) == 0 {
        spec.reorder = Reorder {
            share: share(choices, 30),
            extra: Duration::from_micros(choices.below(50_000)),
        };
        spec.jitter = Duration::from_micros(choices.below(5_000));
    }
    if choices.below(3) == 0 {
        spec.duplicate = share(choices, 30);
    }
    if choices.below(3) == 0 {
        let from = Duration::from_millis(choices.below(10_000));
        spec.blackouts = vec![(from, from + Duration::from_millis(choices.below(8_000)))];
    }
    if choices.below(4) == 0 {
        spec.rate = Some(RateSpec::constant(
            200_000 + choices.below(10_000_000),
            20_000 + choices.below(200_000),
        ));
    }
    spec
}
