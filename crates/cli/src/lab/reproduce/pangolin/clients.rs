//! Figures 2 and 3: what the clients are like.

use punctual_lab::population::{Population, PopulationKind, Statement, Survey};
use punctual_lab::reproduce::{Reproduced, Row};

use crate::failure::Failure;
use crate::lab::reproduce::Reproduction;
use crate::lab::reproduce::stage::Stage;

/// "a total of 10304 end hosts have ever been enrolled in our measurement".
const CLIENTS: u32 = 10_304;

pub(super) struct Clients;

impl Reproduction for Clients {
    fn names(&self) -> &'static [&'static str] {
        &["pangolin-figure-2", "pangolin-figure-3"]
    }

    fn about(&self) -> &'static str {
        "round trips, their variation, and loss of the (synthetic) clients"
    }

    fn has_network(&self) -> bool {
        false
    }

    fn run(&self, stage: &Stage) -> Result<Vec<Reproduced>, Failure> {
        let population = Population::new(PopulationKind::Pangolin, stage.seed);
        let clients = population.clients(stage.size(CLIENTS, CLIENTS / 4));
        let statements = Statement::all(&clients, stage.seed);
        let mut charts = Survey::charts(&clients, stage.seed);
        let losses = charts.split_off(charts.len().saturating_sub(1));
        let setup = format!(
            "{} clients, probed in virtual time as the paper's were. {}",
            clients.len(),
            population.source()
        );
        let remark = "the paper's distributions are figures, which cannot be read from its text: what is compared is every number \
                      and comparison in the text; the rest of the distributions is assumed";
        let figure = |figure: u8, name, title: &str, charts| Reproduced {
            name,
            title: title.to_owned(),
            setup: setup.clone(),
            rows: (statements.iter())
                .filter(|statement| statement.figure == figure)
                .map(row)
                .collect(),
            remarks: vec![remark.to_owned()],
            charts,
        };
        Ok(vec![
            figure(
                2,
                self.names()[0],
                "Average and variation of the round trip",
                charts,
            ),
            figure(3, self.names()[1], "Packet loss rate", losses),
        ])
    }
}

fn row(statement: &Statement) -> Row {
    let Statement {
        what,
        unit,
        paper,
        here,
        here_95,
        agrees,
        ..
    } = statement;
    match paper {
        Some(paper) => Row::compared(what, *unit, *paper, Some(*here), *here_95),
        None => Row::said(what, *unit, *here, *agrees),
    }
}
