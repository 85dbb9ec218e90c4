//! What messages in bursts look like, how sure it is what is expected of them, and how they are steered.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::time::Duration;

use punctual_policy::{Burst, Doubt, Policy, Situation, Steering, Timing};

use crate::support::Random;

/// What is expected is what is.
pub(crate) const SURE: Doubt = Doubt {
    deviation: 0.0,
    lasting: 0.0,
    learned_for: 0.0,
    passes_after: 0.0,
};

/// What is expected may be wrong by so much, however long it has been learned.
pub(crate) fn for_ever(deviation: f32) -> Doubt {
    Doubt {
        deviation,
        lasting: deviation,
        learned_for: f32::INFINITY,
        passes_after: 0.0,
    }
}

/// Bursts of 20 ms that are no chance, the latest a second ago.
pub(crate) fn burst_of_20_ms(correlation: f32) -> Burst {
    Burst {
        correlation,
        surely: correlation,
        lasts: Duration::from_millis(20),
        age: Duration::from_secs(1),
        ..Burst::default()
    }
}

/// A message of so many symbols, of which one flight leaves within `slack_ms`, where bursts take 5 %.
pub(crate) fn in_bursts(
    burst: Burst,
    source_symbols: u8,
    slack_ms: u64,
    random: &mut Random,
) -> Situation {
    Situation {
        burst,
        timing: Timing {
            slack: Duration::from_millis(slack_ms),
            ..Timing::default()
        },
        draw: (random.unit() * 4e9) as u32,
        ..Situation::first(source_symbols, 1, 0.05)
    }
}

/// Steers three times so many messages, each with a draw of its own: the mean of `value` over each third of them, at their price.
pub(crate) fn means(
    policy: &dyn Policy,
    first: Situation,
    doubt: Doubt,
    messages: u32,
    value: impl Fn(&Situation) -> f64,
) -> [f64; 3] {
    let (mut steering, mut random) = (Steering::default(), Random(0x1234_5678_9ABC_DEF1));
    [(); 3].map(|()| {
        let each = |_| {
            let draw = (random.unit() * 4_294_967_295.0) as u32;
            let first = Situation { draw, ..first };
            let price = steering.on_message(policy, &first, 1e-3, doubt);
            value(&Situation { price, ..first })
        };
        (0..messages).map(each).sum::<f64>() / f64::from(messages)
    })
}
