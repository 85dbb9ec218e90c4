//! One problem solved at its exact loss, for reports and for the program's `policy` command.

use alloc::vec;
use alloc::vec::Vec;

use super::Rule;
use super::hull::{Optimum, rounds_not_trivial};
use super::layers::{Layer, hairpin_layers};
use super::trellis::{Game, Plan, Trellis};
use crate::error::checked_miss_target;
use crate::{OutOfRange, ParityPrice, PolicyKind, ROUNDS_MAX, SOURCE_SYMBOLS_MAX, chance};

/// A block that is to arrive: over what, in how many rounds, and how surely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Probability that a symbol is lost, at least 0 and below 1.
    pub loss: f64,
    /// k, 1..=64.
    pub source_symbols: u8,
    /// Rounds available, 1..=100.
    pub rounds: u16,
    /// Share of blocks that may miss, below 1 and at least [`crate::MISS_TARGET_MIN`].
    pub miss_target: f64,
}

/// What a policy does about a [`Problem`], and what it leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Expected symbols sent in time.
    pub expected_symbols: f64,
    /// Probability that the block is not rebuilt in time. Above the target where the policy cannot meet it.
    pub miss_probability: f64,
    /// Symbols to send: by round from first to last, then by deficit 1..=k (as the policy counts it). Of a mixture, the policy with the smaller miss.
    pub actions: Vec<Vec<u16>>,
    /// All policies mixed and how often each is followed; one of weight 1 when nothing is mixed.
    pub mixture: Vec<Mixed>,
}

/// One policy of a mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed {
    /// Probability that the block follows this policy.
    pub weight: f64,
    /// By round from first to last, then by deficit 1..=k.
    pub actions: Vec<Vec<u16>>,
}

impl Problem {
    /// # Errors
    ///
    /// The first field that is out of range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        if !(self.loss >= 0.0 && self.loss < 1.0) {
            return Err(OutOfRange::Loss(self.loss));
        }
        if !(1..=SOURCE_SYMBOLS_MAX).contains(&self.source_symbols) {
            return Err(OutOfRange::SourceSymbols(self.source_symbols));
        }
        if !(1..=ROUNDS_MAX).contains(&self.rounds) {
            return Err(OutOfRange::Rounds(self.rounds));
        }
        checked_miss_target(self.miss_target).map(|_| ())
    }

    /// The symbols that any sender needs on average, even one that knows all losses beforehand: k / (1 - p).
    #[must_use]
    pub fn oracle_symbols(&self) -> f64 {
        f64::from(self.source_symbols) / (1.0 - self.loss)
    }

    fn is_trivial(&self) -> bool {
        rounds_not_trivial(
            self.source_symbols,
            self.loss,
            self.miss_target,
            self.rounds,
        ) < self.rounds
    }
}

/// What the policy of this kind does about `problem`.
///
/// # Errors
///
/// [`OutOfRange`] when a part of the problem is.
pub fn solve(kind: PolicyKind, problem: &Problem) -> Result<Solution, OutOfRange> {
    problem.check()?;
    let game = |rule| {
        let Problem {
            loss,
            source_symbols,
            rounds,
            ..
        } = *problem;
        Game {
            loss,
            source_symbols,
            rounds,
            rule,
        }
    };
    Ok(match kind {
        PolicyKind::Retransmit => with_repair(problem, 0),
        PolicyKind::Fixed(repair) => with_repair(problem, repair),
        PolicyKind::Hairpin(price) => with_layers(problem, price),
        PolicyKind::Pangolin
        | PolicyKind::Exact
        | PolicyKind::Steered
        | PolicyKind::SteeredWithout(_)
            if problem.is_trivial() =>
        {
            with_repair(problem, 0)
        }
        PolicyKind::Pangolin => {
            let dear = optimum(&game(Rule::MayGiveUp), problem).dear;
            let (expected_symbols, miss_probability) = (dear.cost, dear.miss);
            mixture(problem, expected_symbols, miss_probability, &[(1.0, &dear)])
        }
        // At one loss and one number of rounds, steering ends at the same mixture, with all parts or some: none but the price counts here.
        PolicyKind::Exact | PolicyKind::Steered | PolicyKind::SteeredWithout(_) => {
            let found = optimum(&game(Rule::MustDeliver), problem);
            let (cost, miss) = (found.mixed_cost(), found.mixed_miss());
            let parts = [
                (found.dear_weight, &found.dear),
                (1.0 - found.dear_weight, &found.cheap),
            ];
            let parts = if found.dear_weight < 1.0 {
                &parts[..]
            } else {
                &parts[..1]
            };
            mixture(problem, cost, miss, parts)
        }
    })
}

fn optimum(game: &Game, problem: &Problem) -> Optimum {
    let mut price = f64::from(problem.source_symbols) / problem.miss_target;
    Optimum::find(&mut Trellis::new(), game, problem.miss_target, &mut price)
}

fn mixture(
    problem: &Problem,
    expected_symbols: f64,
    miss_probability: f64,
    parts: &[(f64, &Plan)],
) -> Solution {
    let actions_of = |plan: &Plan| {
        let rows = plan
            .actions
            .chunks_exact(usize::from(problem.source_symbols));
        // Plans count the rounds left, readers count from the first.
        rows.rev()
            .map(|row| row.iter().copied().map(u16::from).collect())
            .collect()
    };
    let mixture = parts.iter().map(|(weight, plan)| Mixed {
        weight: *weight,
        actions: actions_of(plan),
    });
    Solution {
        expected_symbols,
        miss_probability,
        actions: actions_of(parts[0].1),
        mixture: mixture.collect(),
    }
}

/// Hairpin's, with what it leads to where repair symbols of earlier rounds are of no use. It knows no target.
fn with_layers(problem: &Problem, price: ParityPrice) -> Solution {
    let Problem {
        loss,
        source_symbols,
        rounds,
        ..
    } = *problem;
    let layers = hairpin_layers(source_symbols, loss, rounds, price);
    let symbols = |layer: &Layer| {
        let sent = (1..).zip(&layer.repair[1..]);
        sent.map(|(missing, repair)| missing + repair).collect()
    };
    let actions: Vec<Vec<u16>> = layers.iter().rev().map(symbols).collect();
    let (first, whole) = (&layers[layers.len() - 1], usize::from(source_symbols));
    Solution {
        expected_symbols: first.symbols[whole],
        miss_probability: first.miss[whole],
        mixture: always(&actions),
        actions,
    }
}

/// One policy, not mixed.
fn always(actions: &[Vec<u16>]) -> Vec<Mixed> {
    vec![Mixed {
        weight: 1.0,
        actions: actions.to_vec(),
    }]
}

/// `repair` symbols with the first flight, then just the deficit, in closed form.
fn with_repair(problem: &Problem, repair: u8) -> Solution {
    let Problem {
        loss,
        source_symbols,
        rounds,
        ..
    } = *problem;
    let later = rounds - 1;
    let first_flight = u16::from(source_symbols) + u16::from(repair);
    let (mut cost, mut miss) = (f64::from(first_flight), 0.0);
    chance::arrivals_below(
        first_flight,
        1.0 - loss,
        u16::from(source_symbols),
        |arrived, probability| {
            let deficit = source_symbols - arrived as u8;
            cost += probability * chance::retransmit_symbols(f64::from(deficit), later, loss);
            miss += probability * chance::retransmit_miss(deficit, later, loss);
        },
    );
    let deficits = || (1..=u16::from(source_symbols)).collect::<Vec<_>>();
    let mut actions = vec![deficits(); usize::from(rounds)];
    actions[0]
        .iter_mut()
        .for_each(|symbols| *symbols += u16::from(repair));
    Solution {
        expected_symbols: cost,
        miss_probability: miss,
        mixture: always(&actions),
        actions,
    }
}
