//! Tables 3 and 4 and figure 8: policies over the synthetic clients.

use std::time::Duration;

use punctual_lab::arena::{ArmFigures, ArmRun};
use punctual_lab::arm::Arm;
use punctual_lab::population::{Client, Population, PopulationKind};
use punctual_lab::report::Unit;
use punctual_lab::reproduce::{QUANTILES, Reproduced, Row, Sample};
use punctual_policy::PolicyKind;

use super::{distributions, quantile_rows, round_trips, tails};
use crate::failure::Failure;
use crate::lab::arms::{self, Tuning};
use crate::lab::reproduce::Reproduction;
use crate::lab::reproduce::stage::{Play, Stage};

/// "the latency tolerance T is set to be 1000ms".
const DEADLINE: Duration = Duration::from_millis(1000);
/// Of a message; the paper's headers are "40 bytes, including IP and UDP headers".
const MESSAGE_BYTES: f64 = 2048.0;
const HEADER_BYTES: f64 = 40.0;
/// The clients' median round trip, for arms that ask for it.
const RTT: Duration = Duration::from_millis(120);
const DRAIN: Duration = Duration::from_secs(12);

const TCP_REASON: &str =
    "this row follows from the fit to Table 1 and the clients' assumed marginals";
const YOUNG: &str = "each session begins without knowing its loss and has a minute of messages to learn it; the paper does not say what its stack knew";

/// An arm with the paper's row.
struct Contender {
    name: &'static str,
    paper: [f64; QUANTILES.len()],
    /// With headers.
    overhead: Option<f64>,
    /// Of the paper's overhead, what headers are not in: its fixed FEC is 3 packets for 2.
    has_headers: bool,
    symbols: u8,
    /// None is TCP.
    policy: Option<PolicyKind>,
}

const RETRANSMIT: Contender = Contender {
    name: "retransmission",
    paper: [219.0, 469.0, 703.0, 1501.0],
    overhead: Some(0.039),
    has_headers: true,
    symbols: 2,
    policy: Some(PolicyKind::Retransmit),
};
const PANGOLIN: Contender = Contender {
    name: "Pangolin",
    paper: [219.0, 412.0, 581.0, 938.0],
    overhead: Some(0.061),
    has_headers: true,
    symbols: 2,
    policy: Some(PolicyKind::Pangolin),
};

/// Table 3 and figure 8.
pub(super) struct Policies;
/// Table 4.
pub(super) struct PacketSizes;

const TABLE_3: [Contender; 4] = [
    Contender {
        name: "TCP",
        paper: [219.0, 566.0, 828.0, 2352.0],
        overhead: None,
        has_headers: true,
        symbols: 2,
        policy: None,
    },
    RETRANSMIT,
    Contender {
        name: "fixed FEC",
        paper: [204.0, 328.0, 469.0, 984.0],
        overhead: Some(1.5),
        has_headers: false,
        symbols: 2,
        policy: Some(PolicyKind::Fixed(3)),
    },
    PANGOLIN,
];

const TABLE_4: [Contender; 5] = [
    RETRANSMIT,
    Contender {
        name: "k=2",
        ..PANGOLIN
    },
    Contender {
        name: "k=3",
        paper: [234.0, 438.0, 610.0, 985.0],
        overhead: Some(0.079),
        symbols: 3,
        ..PANGOLIN
    },
    Contender {
        name: "k=4",
        paper: [234.0, 457.0, 623.0, 1000.0],
        overhead: Some(0.098),
        symbols: 4,
        ..PANGOLIN
    },
    Contender {
        name: "k=5",
        paper: [235.0, 469.0, 631.0, 1015.0],
        overhead: Some(0.12),
        symbols: 5,
        ..PANGOLIN
    },
];

impl Contender {
    fn arm(&self, deadlines: &[Duration]) -> Result<Box<dyn Arm>, Failure> {
        let Some(policy) = self.policy else {
            return arms::by_name("tcp-cubic");
        };
        let tuning = Tuning {
            symbols: Some(self.symbols),
            deadlines: deadlines.into(),
        };
        arms::tuned(self.name, policy, tuning)
    }

    fn rows(&self, run: &ArmRun, sample: &Sample) -> Vec<Row> {
        let reason = if self.policy.is_some() {
            YOUNG
        } else {
            TCP_REASON
        };
        let mut rows = quantile_rows(self.name, &self.paper.map(Some), sample, reason);
        let (late, late_95) = sample.later_than(DEADLINE);
        let what = format!("{}, later than 1,000 ms", self.name);
        rows.push(Row::shown(what, Unit::Share, None, Some(late)).with_interval(Some(late_95)));
        let Some(paper) = self.overhead else {
            return rows;
        };
        let figures = ArmFigures::new(run, MESSAGE_BYTES as usize, 0, None);
        let headers = f64::from(self.symbols) * HEADER_BYTES / MESSAGE_BYTES;
        let apart = if self.has_headers {
            paper - headers
        } else {
            paper
        };
        let what = format!("{}, overhead without headers", self.name);
        rows.push(match self.policy {
            // What is left of the paper's 3.9 % is rounding.
            Some(PolicyKind::Retransmit) => Row::shown(what, Unit::Share, None, figures.symbol_overhead)
                .with_note("the paper's 3.9 % is what its headers alone are, 80 bytes of 2,048: it leaves nothing for what was lost"),
            _ => Row::compared(what, Unit::Share, apart, figures.symbol_overhead, None).with_reason(YOUNG),
        });
        if self.has_headers {
            let what = format!("{}, overhead with headers and all other packets", self.name);
            rows.push(Row::shown(
                what,
                Unit::Share,
                Some(paper),
                Some(figures.total_overhead),
            ));
        }
        rows
    }
}

/// What was played: an arm a contender.
struct Played {
    samples: Vec<Sample>,
    runs: Vec<ArmRun>,
    setup: String,
}

fn play(
    stage: &Stage,
    contenders: &[Contender],
    clients: u32,
    what: &str,
) -> Result<Played, Failure> {
    let messages = stage.size(80, 16);
    let population = Population::new(PopulationKind::Pangolin, stage.seed);
    let (clients, left_out) = population.clients_within(clients, DEADLINE);
    let ways_back: Vec<_> = clients.iter().map(Client::way_back).collect();
    // The paper's latencies are round trips, and so is its tolerance.
    let deadlines: Vec<_> = ways_back.iter().map(|&back| DEADLINE - back).collect();
    let arms = contenders.iter().map(|contender| contender.arm(&deadlines));
    let arms = arms.collect::<Result<Vec<_>, _>>()?;
    let arena = stage.arena(Play {
        paths: clients.iter().map(|client| client.path.clone()).collect(),
        messages,
        deadline: DEADLINE,
        rtt: RTT,
        drain: stage.size(DRAIN, DRAIN / 2),
    });
    let run = stage.play(&arena, &arms, what)?;
    let samples = run.arms.iter().map(|arm| round_trips(arm, &ways_back));
    Ok(Played {
        samples: samples.collect(),
        setup: format!(
            "{} synthetic clients, 70 % of North America, {left_out} with a mean round trip above 1,000 ms left out; {messages} messages of 2,048 bytes each, one a second; \
             99.9 % within 1,000 ms; latencies and deadline as round trips. {}",
            clients.len(),
            run.timing.verdict()
        ),
        runs: run.arms,
    })
}

impl Played {
    fn rows(&self, contenders: &[Contender]) -> Vec<Row> {
        let arms = self.runs.iter().zip(&self.samples);
        let rows = contenders.iter().zip(arms);
        rows.flat_map(|(contender, (run, sample))| contender.rows(run, sample))
            .collect()
    }
}

impl Reproduction for Policies {
    fn names(&self) -> &'static [&'static str] {
        &["pangolin-table-3", "pangolin-figure-8"]
    }

    fn about(&self) -> &'static str {
        "TCP, retransmission, fixed redundancy and Pangolin over the synthetic clients"
    }

    fn run(&self, stage: &Stage) -> Result<Vec<Reproduced>, Failure> {
        let played = play(stage, &TABLE_3, stage.size(800, 250), "table 3")?;
        let names = TABLE_3.iter().map(|contender| contender.name);
        let lines: Vec<_> = names.zip(&played.samples).collect();
        let table = Reproduced {
            name: self.names()[0],
            title: "Latency performance comparison in the wild".to_owned(),
            setup: played.setup.clone(),
            rows: played.rows(&TABLE_3),
            remarks: vec![
                "the paper's overhead of fixed FEC is 3 packets for 2 without headers, its others are bytes with 40 of headers a packet".to_owned(),
            ],
            charts: Vec::new(),
        };
        let figure = Reproduced {
            name: self.names()[1],
            title: "Latency performance comparison in the wild".to_owned(),
            setup: played.setup.clone(),
            rows: orders(&played.samples),
            remarks: Vec::new(),
            charts: vec![
                distributions("Latency over synthetic clients (figure 8a)", "", &lines),
                tails("The tail of figure 8", &lines),
            ],
        };
        Ok(vec![table, figure])
    }
}

/// What the text says of figure 8.
fn orders(samples: &[Sample]) -> Vec<Row> {
    let at = |arm: usize, share| samples[arm].quantile_ms(share).unwrap_or(f64::INFINITY);
    let [_, retransmit, fixed, pangolin] = [0, 1, 2, 3];
    let before = at(retransmit, 0.999) - at(pangolin, 0.999);
    let behind = at(pangolin, 0.99) - at(fixed, 0.99);
    let last = at(pangolin, 0.999);
    vec![
        Row::said(
            "99.9 % with Pangolin (the paper: within the tolerance of 1,000 ms)",
            Unit::Millis,
            last,
            last <= 1000.0,
        )
        .with_interval(samples[pangolin].quantile_ms_95(0.999)),
        Row::said(
            "retransmission later than Pangolin at 99.9 % (the paper: it cannot satisfy the latency), by",
            Unit::Millis,
            before,
            before > 0.0,
        ),
        Row::said(
            "Pangolin later than fixed FEC at 99 % (the paper: most of the time), by",
            Unit::Millis,
            behind,
            behind > 0.0,
        ),
    ]
}

impl Reproduction for PacketSizes {
    fn names(&self) -> &'static [&'static str] {
        &["pangolin-table-4"]
    }

    fn about(&self) -> &'static str {
        "Pangolin with 2 to 5 packets a message over the synthetic clients"
    }

    fn run(&self, stage: &Stage) -> Result<Vec<Reproduced>, Failure> {
        let played = play(stage, &TABLE_4, stage.size(600, 200), "table 4")?;
        let total = |arm: usize| {
            ArmFigures::new(&played.runs[arm], MESSAGE_BYTES as usize, 0, None).total_overhead
        };
        let mut rows = played.rows(&TABLE_4);
        rows.push(Row::said(
            "bytes of k=5 beyond those of k=2 (the paper: k = 2 yields the minimum overhead)",
            Unit::Share,
            total(4) - total(1),
            (2..5).all(|arm| total(arm) > total(1)),
        ));
        Ok(vec![Reproduced {
            name: self.names()[0],
            title: "Latency and cost comparison in the wild".to_owned(),
            setup: played.setup.clone(),
            rows,
            remarks: Vec::new(),
            charts: Vec::new(),
        }])
    }
}
