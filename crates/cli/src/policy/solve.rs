//! `punctual policy solve`: one problem, solved at its exact loss.

use punctual_policy::PolicyKind;
use punctual_policy::solve::{Mixed, Problem, Solution, solve};
use serde::Serialize;

use crate::failure::Failure;
use crate::{output, scoreboard, values};

/// Solve one problem: how many symbols to send in each round, for each number of symbols still needed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    punctual policy solve --loss 0.02 --symbols 4 --rounds 2 --miss 0.001 --policy pangolin")]
pub(crate) struct Args {
    /// Share of packets that are lost.
    #[arg(long, value_name = "SHARE", default_value = "0.02", value_parser = values::loss)]
    loss: f64,
    /// Source symbols of the message.
    #[arg(long, value_name = "K", default_value_t = 4, value_parser = values::whole::<u8>(1..=64))]
    symbols: u8,
    /// Rounds until the deadline.
    #[arg(long, default_value_t = 2, value_parser = values::whole::<u16>(1..=100))]
    rounds: u16,
    /// Share of messages that may be late.
    #[arg(long, value_name = "SHARE", default_value = "0.001", value_parser = values::miss)]
    miss: f64,
    /// retransmit, fixed(N), hairpin, hairpin(PRICE), pangolin, exact, or steered (which comes to the same mixture).
    #[arg(long, default_value = "exact")]
    policy: PolicyKind,
    /// Print one JSON object: `expected_symbols`, `miss_probability`, `oracle_symbols` (of a sender that knows all losses
    /// beforehand), and `actions`: a list per round, of symbols to send for deficit 1..k (of hairpin: for 1..k source symbols missing); for `exact` and `steered` instead `mixture`, a
    /// list of {`weight`, `actions`}.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Solved {
    policy: String,
    loss: f64,
    symbols: u8,
    rounds: u16,
    miss_target: f64,
    expected_symbols: f64,
    miss_probability: f64,
    oracle_symbols: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    actions: Option<Vec<Vec<u16>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mixture: Option<Vec<Part>>,
}

#[derive(Serialize)]
struct Part {
    weight: f64,
    actions: Vec<Vec<u16>>,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let problem = Problem {
        loss: args.loss,
        source_symbols: args.symbols,
        rounds: args.rounds,
        miss_target: args.miss,
    };
    let solution = solve(args.policy, &problem).map_err(Failure::bad_input)?;
    if args.json {
        output::print_json(&solved(args.policy, &problem, solution))
    } else {
        output::print(&text(args.policy, &problem, &solution))
    }
}

fn solved(policy: PolicyKind, problem: &Problem, solution: Solution) -> Solved {
    let is_mixed = policy == PolicyKind::Exact || policy.has_price();
    let part = |Mixed { weight, actions }| Part { weight, actions };
    Solved {
        policy: policy.to_string(),
        loss: problem.loss,
        symbols: problem.source_symbols,
        rounds: problem.rounds,
        miss_target: problem.miss_target,
        expected_symbols: solution.expected_symbols,
        miss_probability: solution.miss_probability,
        oracle_symbols: problem.oracle_symbols(),
        actions: (!is_mixed).then_some(solution.actions),
        mixture: is_mixed.then(|| solution.mixture.into_iter().map(part).collect()),
    }
}

fn text(policy: PolicyKind, problem: &Problem, solution: &Solution) -> String {
    let k = f64::from(problem.source_symbols);
    let percent = |symbols: f64| (symbols / k - 1.0) * 100.0;
    let mut text = format!(
        "{policy}: {:.4} symbols for {} ({:.2} % more; knowing all losses beforehand {:.2} %), late: {}\n",
        solution.expected_symbols,
        problem.source_symbols,
        percent(solution.expected_symbols),
        percent(problem.oracle_symbols()),
        scoreboard::percent(solution.miss_probability),
    );
    if solution.miss_probability > problem.miss_target * (1.0 + 1e-9) {
        let target = scoreboard::percent(problem.miss_target);
        text += &format!("the target of {target} is not met\n");
    }
    for part in &solution.mixture {
        if solution.mixture.len() > 1 {
            text += &format!("\nfor {:.2} % of the messages:\n", part.weight * 100.0);
        }
        for (round, row) in (1..).zip(&part.actions) {
            text += &format!("  round {round:>3}: {}\n", rule(row));
        }
    }
    let counted = match policy {
        PolicyKind::Hairpin(_) => "source symbols that did not arrive",
        _ => "symbols still needed",
    };
    text + &format!("\nq is the number of {counted}.\n")
}

/// A row as a rule where it is one, else as what to send for q = 1, 2, ...
fn rule(row: &[u16]) -> String {
    let extra: Vec<i32> = (1..)
        .zip(row)
        .map(|(q, &symbols)| i32::from(symbols) - q)
        .collect();
    match extra[..] {
        [0, ..] if extra.iter().all(|&more| more == 0) => "send q".to_owned(),
        [first, ..] if first > 0 && extra.iter().all(|&more| more == first) => {
            format!("send q + {first}")
        }
        _ => {
            let symbols: Vec<String> = row.iter().map(u16::to_string).collect();
            format!("send {} for q = 1 to {}", symbols.join(" "), row.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rule;

    #[test]
    fn rows_read_as_rules() {
        assert_eq!(rule(&[1, 2, 3]), "send q");
        assert_eq!(rule(&[2, 3, 4]), "send q + 1");
        assert_eq!(rule(&[2, 3, 5]), "send 2 3 5 for q = 1 to 3");
        assert_eq!(rule(&[0, 1]), "send 0 1 for q = 1 to 2");
    }
}
