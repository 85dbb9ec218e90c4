//! The steered policy in a closed loop: messages over a channel of independent loss, their price moved by what came of them.
#![cfg(feature = "solve")]

use punctual_policy::solve::{Problem, solve};
use punctual_policy::{Policy, PolicyKind, Situation, Steered, Steering};

/// xorshift64*: one draw after the other from a seed.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn steered(miss_target: f32) -> Steered {
    let steered = Steered::new(miss_target).expect("in range");
    steered.build_all();
    steered
}

/// Symbols sent, and messages missed.
struct Achieved {
    symbols: f64,
    missed: f64,
}

/// Sends `messages` of k symbols in `rounds`; of each symbol the policy thinks that it is lost with `believed`.
fn achieve(
    steering: &mut Steering,
    policy: &Steered,
    first: &Situation,
    loss: f64,
    messages: u32,
    random: &mut Random,
) -> Achieved {
    let mut achieved = Achieved {
        symbols: 0.0,
        missed: 0.0,
    };
    let target = policy.miss_target() as f32;
    for _ in 0..messages {
        let draw = (random.unit() * 4e9) as u32;
        let first = Situation { draw, ..*first };
        let price = steering.on_message(policy, &first, target);
        let mut now = Situation { price, ..first };
        while now.rounds_left > 0 && now.deficit > 0 {
            let flight = policy.decide(&now).symbols;
            now.sent += flight;
            achieved.symbols += f64::from(flight);
            let arrived = (0..flight).filter(|_| random.unit() >= loss).count();
            now.deficit = now.deficit.saturating_sub(arrived as u8);
            now.rounds_left -= 1;
        }
        steering.on_outcome(now.deficit > 0);
        achieved.missed += f64::from(u8::from(now.deficit > 0));
    }
    achieved
}

/// Issue 5: cost within 0.1 pp of the constrained optimum for two rounds and more, within 2 pp for one round, the target
/// met within the interval, after 20,000 messages.
#[test]
fn uniform_loss_costs_what_the_optimum_costs() {
    let policy = steered(1e-3);
    for loss in [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2] {
        for (k, rounds) in [
            (1, 1),
            (2, 1),
            (4, 1),
            (16, 1),
            (1, 2),
            (4, 2),
            (16, 2),
            (4, 3),
            (16, 3),
            (4, 4),
        ] {
            let mut random = Random(0x1234_5678_9ABC_DEF1);
            let first = Situation::first(k, rounds, loss as f32);
            let mut steering = Steering::default();
            achieve(&mut steering, &policy, &first, loss, 20_000, &mut random);
            let messages = 40_000;
            let achieved = achieve(&mut steering, &policy, &first, loss, messages, &mut random);
            let problem = Problem {
                loss,
                source_symbols: k,
                rounds,
                miss_target: 1e-3,
            };
            let optimum = solve(PolicyKind::Exact, &problem).expect("in range");
            let whole = f64::from(messages) * f64::from(k);
            let (cost, best) = (
                achieved.symbols / whole - 1.0,
                optimum.expected_symbols / f64::from(k) - 1.0,
            );
            println!(
                "p {loss} k {k} N {rounds}: cost {:.3} % best {:.3} % missed {:.3} % optimum {:.3} % corr {:.2}",
                cost * 100.,
                best * 100.,
                achieved.missed / f64::from(messages) * 100.,
                optimum.miss_probability * 100.,
                steering.correction()
            );
        }
    }
}
