//! Figure 6: what the optimal policies cost.

use punctual_lab::report::{LineChart, Series, Unit};
use punctual_lab::reproduce::{Reproduced, Row};
use punctual_policy::PolicyKind;
use punctual_policy::solve::{CurvePoint, Problem, curve, solve};

use crate::failure::Failure;
use crate::lab::reproduce::Reproduction;
use crate::lab::reproduce::stage::Stage;

/// "the message is divided into k = 4 data packets", "2 rounds of transmission opportunity".
const PROBLEM: Problem = Problem {
    loss: 0.02,
    source_symbols: 4,
    rounds: 2,
    miss_target: 0.001,
};
/// To where the curves are drawn. The paper's axis cannot be read; at 10 % the three policies of its text have all appeared.
const LOSS_MAX: f64 = 0.1;

pub(super) struct Costs;

impl Reproduction for Costs {
    fn names(&self) -> &'static [&'static str] {
        &["pangolin-figure-6"]
    }

    fn about(&self) -> &'static str {
        "what optimal policies cost at each loss, and the oracle"
    }

    fn has_network(&self) -> bool {
        false
    }

    fn run(&self, stage: &Stage) -> Result<Vec<Reproduced>, Failure> {
        let points = stage.size(400, 100);
        let strict = curve_of(PROBLEM, points)?;
        let lenient = curve_of(lenient(), points)?;
        let at_two = solve(PolicyKind::Pangolin, &PROBLEM).map_err(Failure::bad_input)?;
        let excess = |point: &CurvePoint| point.overhead - point.oracle;
        let at_loss = |loss: f64| &strict[(loss / LOSS_MAX * f64::from(points)).round() as usize];
        let (near, far) = (excess(at_loss(0.02)), excess(at_loss(LOSS_MAX)));
        let dearer = (strict.iter().zip(&lenient))
            .map(|(strict, lenient)| strict.overhead - lenient.overhead)
            .fold(0.0, f64::max);
        let second = format!("{:?}", at_two.actions);
        let symbols = f64::from(PROBLEM.source_symbols);
        let rows = vec![
            Row::compared(
                "expected packets at 2 % loss, 99.9 %",
                Unit::Number,
                4.16,
                Some(at_two.expected_symbols),
                None,
            ),
            Row::compared(
                "overhead at 2 % loss, 99.9 %",
                Unit::Share,
                0.04,
                Some(at_two.expected_symbols / symbols - 1.0),
                None,
            ),
            Row::said(
                "the policy there: k packets, then those missing and one more",
                Unit::Number,
                1.0,
                at_two.actions[0][3] == 4 && at_two.actions[1] == [2, 3, 4, 5],
            )
            .with_note(format!("packets by round and packets missing: {second}")),
            Row::compared(
                "policies for 99.9 % (the paper: three linear segments)",
                Unit::Number,
                3.0,
                Some(policies(points)? as f64),
                None,
            )
            .with_note("policies are told apart by what they send first and when one packet is missing; rarer states make steps too small to see"),
            Row::said(
                "99.9 % costs more than 99 %, at most by",
                Unit::Share,
                dearer,
                dearer > 0.01,
            ),
            Row::said(
                "above the oracle at 99.9 % and 2 % loss (the paper: not much)",
                Unit::Share,
                near,
                near < 0.05,
            ),
            Row::shown("the same at 10 % loss", Unit::Share, None, Some(far))
                .with_note("the paper's axis cannot be read"),
        ];
        Ok(vec![Reproduced {
            name: self.names()[0],
            title: "Transmission cost of optimal policies".to_owned(),
            setup: format!(
                "the solver alone: 4 packets, 2 rounds, losses to {}",
                Unit::Share.write(LOSS_MAX)
            ),
            rows,
            remarks: Vec::new(),
            charts: vec![chart(&strict, &lenient)],
        }])
    }
}

fn lenient() -> Problem {
    Problem {
        miss_target: 0.01,
        ..PROBLEM
    }
}

fn losses(points: u32) -> impl Iterator<Item = f64> {
    (0..=points).map(move |point| LOSS_MAX * f64::from(point) / f64::from(points))
}

fn curve_of(problem: Problem, points: u32) -> Result<Vec<CurvePoint>, Failure> {
    curve(PolicyKind::Pangolin, &problem, losses(points)).map_err(Failure::bad_input)
}

/// How many different policies there are along the curve for 99.9 %, where anything is lost: by what they send in the first round, and in the
/// second when one packet is missing.
fn policies(points: u32) -> Result<usize, Failure> {
    let mut seen = Vec::new();
    for loss in losses(points).skip(1) {
        let problem = Problem { loss, ..PROBLEM };
        let solution = solve(PolicyKind::Pangolin, &problem).map_err(Failure::bad_input)?;
        let policy = (
            solution.actions[0].last().copied(),
            solution.actions[1].first().copied(),
        );
        if !seen.contains(&policy) {
            seen.push(policy);
        }
    }
    Ok(seen.len())
}

fn chart(strict: &[CurvePoint], lenient: &[CurvePoint]) -> LineChart {
    let line = |name: &str, points: &[CurvePoint], y: fn(&CurvePoint) -> f64| Series {
        name: name.to_owned(),
        points: points.iter().map(|point| (point.loss, y(point))).collect(),
    };
    LineChart {
        title: "Transmission cost of optimal policies (figure 6)".to_owned(),
        caption: "Expected packets beyond the message's own, as a share of those.".to_owned(),
        x_label: "loss".to_owned(),
        y_label: "overhead".to_owned(),
        x_unit: Unit::Share,
        y_unit: Unit::Share,
        series: vec![
            line("99.9 %", strict, |point| point.overhead),
            line("99 %", lenient, |point| point.overhead),
            line("oracle", strict, |point| point.oracle),
        ],
        ..LineChart::default()
    }
}
