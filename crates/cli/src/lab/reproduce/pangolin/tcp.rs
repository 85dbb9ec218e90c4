//! Table 1 and figure 4: what TCP does to clients in the wild, here synthetic ones.

use std::sync::Arc;
use std::time::Duration;

use punctual_lab::arena::{Arena, ArenaRun};
use punctual_lab::channel::{Channel, ChannelSpec, Direction, Fate, LossModel};
use punctual_lab::population::{Client, Population, PopulationKind, Region, Structure};
use punctual_lab::report::Unit;
use punctual_lab::reproduce::{QUANTILES, Reproduced, Row, Sample};

use super::{distributions, quantile_rows, round_trips};
use crate::failure::Failure;
use crate::lab::arms;
use crate::lab::reproduce::Reproduction;
use crate::lab::reproduce::stage::{Play, Stage};

/// "we randomly select 10 messages from each client".
const DRAWN: usize = 10;
/// Clients whose round trip takes seconds wait as long for repairs.
const DRAIN: Duration = Duration::from_secs(15);

pub(super) struct TcpInTheWild;

/// What was played.
struct Played {
    clients: Vec<Client>,
    arena: Arena,
    run: ArenaRun,
    sample: Sample,
}

/// The paper's table, by region.
const PAPER: [(&Region, &str, [f64; QUANTILES.len()]); 2] = [
    (
        &Region::NORTH_AMERICA,
        "North America",
        [156.0, 500.0, 765.0, 3284.0],
    ),
    (&Region::EUROPE, "Europe", [264.0, 864.0, 1429.0, 4141.0]),
];

const REASON: &str = "the tail rests on the worst few dozen clients, and on those with round trips of a second and more";

/// The same losses at other times, without a claim.
const OTHERS: [(&str, &str, [Structure; 2]); 2] = [
    (
        "outages in place of spells",
        "table 1, outages",
        Structure::OUTAGES,
    ),
    (
        "every loss on its own",
        "table 1, independent",
        Structure::INDEPENDENT,
    ),
];

impl Reproduction for TcpInTheWild {
    fn names(&self) -> &'static [&'static str] {
        &["pangolin-table-1", "pangolin-figure-4"]
    }

    fn about(&self) -> &'static str {
        "kernel TCP over the synthetic clients, by region"
    }

    fn run(&self, stage: &Stage) -> Result<Vec<Reproduced>, Failure> {
        let fitted = Played::new(stage, "table 1", Structure::FITTED)?;
        let mut others = Vec::new();
        if !stage.is_quick {
            for (name, what, structures) in OTHERS {
                others.push((name, Played::new(stage, what, structures)?));
            }
        }
        Ok(vec![
            self.table(stage, &fitted, &others),
            self.figure(&fitted),
        ])
    }
}

impl Played {
    fn new(stage: &Stage, what: &str, structures: [Structure; 2]) -> Result<Self, Failure> {
        let (america, europe, messages) = stage.size((3200, 1600, 60), (600, 300, 20));
        let clients =
            |kind, count| Population::with_structures(kind, structures, stage.seed).clients(count);
        let mut all = clients(PopulationKind::NorthAmerica, america);
        all.extend(clients(PopulationKind::Europe, europe));
        let arena = stage.arena(Play {
            paths: all.iter().map(|client| client.path.clone()).collect(),
            messages,
            deadline: Duration::from_secs(1),
            rtt: Duration::from_millis(100),
            drain: stage.size(DRAIN, DRAIN / 2),
        });
        let run = stage.play(&arena, &[arms::by_name("tcp-cubic")?], what)?;
        let ways_back: Vec<_> = all.iter().map(Client::way_back).collect();
        let sample = round_trips(&run.arms[0], &ways_back);
        Ok(Self {
            clients: all,
            arena,
            run,
            sample,
        })
    }

    /// The messages of a region's clients.
    fn of_region(&self, region: &Region) -> Sample {
        let is_there = |client: usize| self.clients[client].region.name == region.name;
        self.sample.of_clients(is_there)
    }

    /// By client and message: whether it took at least half a round trip longer than it would have without loss. A repair takes a whole one
    /// at least; what the way varies meanwhile is mostly less than half.
    fn are_affected(&self) -> Vec<Vec<bool>> {
        let contest = &self.arena.contest;
        let phases = contest.phases(self.clients.len() as u32);
        let began = self.run.began;
        let client = |(number, client): (usize, &Client)| {
            let clean = ChannelSpec {
                loss: LossModel::None,
                outages: None,
                ..ChannelSpec::clone(&client.path.forward)
            };
            let way = Direction::Forward;
            let mut clean = Channel::new(Arc::new(clean), self.arena.seed, number as u32, way);
            let slack = client.way_back() + client.rtt_mean / 2;
            let is_affected = |(message, &latency): (u32, &u32)| {
                let at = began + phases[number] + contest.task.interval * message;
                let fate = clean.fate(at.as_micros() as u64, contest.task.message_bytes);
                let Fate::Delivered { delay_us, .. } = fate else {
                    return true;
                };
                let limit = Duration::from_micros(delay_us) + slack;
                Duration::from_micros(u64::from(latency)) > limit
            };
            (0..).zip(&self.sample.0[number]).map(is_affected).collect()
        };
        self.clients.iter().enumerate().map(client).collect()
    }
}

impl TcpInTheWild {
    fn table(&self, stage: &Stage, fitted: &Played, others: &[(&str, Played)]) -> Reproduced {
        let mut rows = Vec::new();
        let mut remarks = Vec::new();
        for (region, name, paper) in PAPER {
            let sample = fitted.of_region(region);
            rows.extend(quantile_rows(name, &paper.map(Some), &sample, REASON));
            let drawn = sample.drawn(DRAWN, stage.seed);
            remarks.push(format!(
                "{name} with ten messages drawn of each client, as in the paper, which is the same distribution with fewer messages: {}",
                quantiles(&drawn)
            ));
            for (other, played) in others {
                let sample = played.of_region(region);
                let name = format!("{name}, {other}");
                rows.extend(quantile_rows(&name, &[None; QUANTILES.len()], &sample, ""));
            }
        }
        remarks.push(
            "when losses come, not how many there are, was fitted to this very table: that it agrees shows that bad spells can explain it, not that they did"
                .to_owned(),
        );
        for (other, played) in others {
            remarks.push(format!("{other}: {}", played.run.timing.verdict()));
        }
        remarks.push(Population::new(PopulationKind::Pangolin, stage.seed).source());
        Reproduced {
            name: self.names()[0],
            title: "Message delivery time with TCP".to_owned(),
            setup: setup(fitted),
            rows,
            remarks,
            charts: Vec::new(),
        }
    }

    fn figure(&self, with: &Played) -> Reproduced {
        let affected = with.are_affected();
        let second_us = 1_000_000;
        let (share, share_95) = with
            .sample
            .share(|client, message, _| affected[client][message]);
        let pick = |is: bool| {
            let client = |(latencies, affected): (&Vec<u32>, &Vec<bool>)| {
                let messages = latencies.iter().zip(affected);
                let some = messages.filter(|&(_, &affected)| affected == is);
                some.map(|(&latency, _)| latency).collect()
            };
            Sample(with.sample.0.iter().zip(&affected).map(client).collect())
        };
        let (lossy, clean) = (pick(true), pick(false));
        let (late, late_95) = lossy.share(|_, _, latency| latency > second_us);
        let (clean_late, clean_late_95) = clean.share(|_, _, latency| latency > second_us);
        let rows = vec![
            Row::said(
                "loss-affected messages later than 1,000 ms (the paper: more than 10 %)",
                Unit::Share,
                late,
                // (Of no messages any share may be late.)
                late > 0.0 && late_95.high > 0.1,
            )
            .with_interval(Some(late_95)),
            Row::said(
                "of the others (the paper: loss dominates)",
                Unit::Share,
                clean_late,
                clean_late < late / 10.0,
            )
            .with_interval(Some(clean_late_95)),
            Row::shown("loss-affected messages", Unit::Share, None, Some(share))
                .with_interval(Some(share_95)),
        ];
        Reproduced {
            name: self.names()[1],
            title: "Messages affected by loss, and the others, with TCP".to_owned(),
            setup: setup(with),
            rows,
            remarks: vec![
                "a message counts as affected when it took half a round trip longer than its path takes without loss at that moment: by loss of its own or \
                 waiting behind another's"
                    .to_owned(),
            ],
            charts: vec![distributions(
                "Delivery time with TCP (figure 4)",
                "Synthetic clients.",
                &[("not affected by loss", &clean), ("affected by loss", &lossy)],
            )],
        }
    }
}

fn quantiles(sample: &Sample) -> String {
    let one = |(name, share): (&str, f64)| {
        let value = sample.quantile_ms(share);
        let value = value.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.0} ms"));
        format!("{name} {value}")
    };
    QUANTILES.map(one).join(", ")
}

fn setup(played: &Played) -> String {
    format!(
        "{} synthetic clients, {} messages of 2,048 bytes each, one a second, over TCP with CUBIC, all else as this kernel has it; latencies as round trips. {}",
        played.clients.len(),
        played.arena.contest.messages,
        played.run.timing.verdict()
    )
}
