//! What the others are compared with, over the shipping protocol.

mod support;

use std::sync::Arc;

use punctual_lab::channel::LossModel;
use punctual_lab::simulate::{SimulateOptions, simulate};
use punctual_policy::solve::{Problem, solve};
use punctual_policy::{ParityPrice, PolicyKind};
use support::{ms, path};

/// Goal: over the protocol the Hairpin-style policy costs what its recursion says.   Method: 20 % of the packets lost, each on its
/// own, a deadline of two and a half round trips (two layers), eight symbols, and two prices: with one next to nothing is missed,
/// with the other a good part. Our receiver keeps parity between rounds, so it may miss less often than reckoned, not more.
#[test]
fn hairpin_costs_what_its_recursion_says() {
    for price in [1e-4, 0.2] {
        let kind = PolicyKind::Hairpin(ParityPrice::new(price).expect("in range"));
        let mut network = path(ms(100), |_| {});
        Arc::make_mut(&mut network.forward).loss = LossModel::Uniform(0.2);
        let options = SimulateOptions {
            symbols: Some(8),
            message_bytes: 4000,
            sessions: 40,
            interval: ms(300),
            messages: 20_000,
            policies: vec![kind],
            ..SimulateOptions::new(network, ms(250))
        };
        let result = simulate(&options, |_| {}).expect("the options make sense");
        let summary = &result[0].summary;
        let problem = Problem {
            loss: 0.2,
            source_symbols: 8,
            rounds: 2,
            miss_target: 0.001,
        };
        let reckoned = solve(kind, &problem).expect("in range");
        // After the deadline what is missing goes on until it has arrived: p / (1 - p) at the most.
        let overhead = reckoned.expected_symbols / 8.0 - 1.0;
        let after = reckoned.miss_probability / (1.0 - 0.2);
        assert!(
            summary.recovery_overhead > overhead - 0.02
                && summary.recovery_overhead < overhead + after + 0.02,
            "price {price}: {summary:?}, reckoned {reckoned:?}"
        );
        assert!(
            summary.late_share_95.low <= reckoned.miss_probability,
            "price {price}: {summary:?}, reckoned {reckoned:?}"
        );
    }
}
