//! `punctual lab population`: what synthetic clients are like, beside what the Pangolin paper says of its own.

use std::path::PathBuf;

use punctual_lab::population::{Client, Population, PopulationKind, Statement, Survey, Surveyed};
use punctual_lab::report::{self, Figures, Table};
use punctual_lab::stats::Report;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, OutputFile};
use crate::values;

/// Measure a synthetic population as the Pangolin paper measured its clients, in virtual time. Its networks are called population:na,
/// population:eu and population:pangolin.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual lab population --region eu --clients 3000 --report europe.html"
)]
pub(crate) struct Args {
    /// Whose clients: na (North America), eu (Europe), pangolin (seven of ten from North America).
    #[arg(long, value_name = "NAME", default_value = "pangolin")]
    region: PopulationKind,
    /// How many; the paper had 10,304.
    #[arg(long, value_name = "N", default_value_t = 10_304, value_parser = values::whole::<u32>(10..=100_000))]
    clients: u32,
    /// Other clients from the same parameters.
    #[arg(long, default_value_t = 1, value_parser = values::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Print one JSON object: `source`, `regions` with quantiles over clients, and `statements`, of the mixed population a list of {`figure`,
    /// `what`, `paper`, `here`, `here_95`, `agrees`}.
    #[arg(long)]
    json: bool,
    /// Write a page with the distributions.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Serialize)]
struct Summary {
    command: String,
    population: String,
    source: String,
    seed: u64,
    regions: Vec<RegionSummary>,
    statements: Vec<Statement>,
}

#[derive(Serialize)]
struct RegionSummary {
    region: &'static str,
    clients: usize,
    clients_with_loss_share: f64,
    clients_with_outages_share: f64,
    loss_mean: f64,
    quantiles: Vec<Quantiles>,
}

#[derive(Serialize)]
struct Quantiles {
    share: f64,
    rtt_mean_ms: f64,
    variation_ms: f64,
    loss: f64,
}

/// Of the clients, those below are so many.
const SHARES: [f64; 7] = [0.1, 0.5, 0.9, 0.95, 0.975, 0.99, 0.998];

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let page = OutputFile::page_if(args.report.as_ref())?;
    let population = Population::new(args.region, args.seed);
    let clients = population.clients(args.clients);
    let statements = match args.region {
        PopulationKind::Pangolin => Statement::all(&clients, args.seed),
        // The paper's sentences compare the regions.
        _ => Vec::new(),
    };
    let summary = Summary {
        command: output::command_line(),
        population: population.to_string(),
        source: population.source(),
        seed: args.seed,
        regions: regions(&clients, args.seed),
        statements,
    };
    let printed = if args.json {
        output::print_json(&summary)
    } else {
        print(&summary)
    };
    output::then_write(printed, page, || html(&summary, &clients))
}

fn print(summary: &Summary) -> Result<(), Failure> {
    let mut text = format!("{}: {}\n\n", summary.population, summary.source);
    for table in tables(summary) {
        text += &format!("{}\n{}\n", table.title, output::table(&table.rows));
    }
    output::print(&text)
}

fn regions(clients: &[Client], seed: u64) -> Vec<RegionSummary> {
    let mut names: Vec<&str> = clients.iter().map(|client| client.region.name).collect();
    names.sort_unstable();
    names.dedup();
    let region = |name: &'static str| {
        let there = clients.iter().filter(|client| client.region.name == name);
        let survey = Survey::of(there, seed);
        let quantiles = SHARES.map(|share| Quantiles {
            share,
            rtt_mean_ms: survey.quantile(share, |client| client.rtt_mean_ms),
            variation_ms: survey.quantile(share, |client| client.variation_ms),
            loss: survey.quantile(share, |client| client.loss),
        });
        let of = survey.clients.len().max(1) as f64;
        RegionSummary {
            region: name,
            clients: survey.clients.len(),
            clients_with_loss_share: survey.share(|client: &Surveyed| client.loss > 0.0),
            clients_with_outages_share: survey.with_outages as f64 / of,
            loss_mean: survey.loss_mean(),
            quantiles: quantiles.into(),
        }
    };
    names.into_iter().map(region).collect()
}

fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

fn tables(summary: &Summary) -> Vec<Table> {
    let mut tables: Vec<Table> = summary.regions.iter().map(region_table).collect();
    if !summary.statements.is_empty() {
        let mut rows = vec![
            ["the paper's text", "paper", "here", "verdict"]
                .map(str::to_owned)
                .to_vec(),
        ];
        rows.extend(summary.statements.iter().map(statement_row));
        tables.push(Table {
            title: "Against the Pangolin paper, sections 3.3 and 3.4".to_owned(),
            rows,
        });
    }
    tables
}

fn region_table(region: &RegionSummary) -> Table {
    let headings = [
        "share of clients below, %",
        "mean round trip ms",
        "variation ms",
        "loss %",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(region.quantiles.iter().map(|at| {
        vec![
            format!("{:.1}", at.share * 100.0),
            format!("{:.1}", at.rtt_mean_ms),
            format!("{:.1}", at.variation_ms),
            percent(at.loss),
        ]
    }));
    Table {
        title: format!(
            "{}: {} synthetic clients, {} % with loss ({} % of all packets), {} % with outages",
            region.region,
            region.clients,
            percent(region.clients_with_loss_share),
            percent(region.loss_mean),
            percent(region.clients_with_outages_share),
        ),
        rows,
    }
}

fn statement_row(statement: &Statement) -> Vec<String> {
    let write = |value| statement.unit.write(value);
    vec![
        format!("figure {}: {}", statement.figure, statement.what),
        statement.paper.map_or_else(String::new, write),
        write(statement.here),
        if statement.agrees {
            "agrees"
        } else {
            "differs"
        }
        .to_owned(),
    ]
}

fn html(summary: &Summary, clients: &[Client]) -> String {
    let figures = Figures {
        title: format!("Synthetic clients: {}", summary.population),
        subtitle: summary.source.clone(),
        command: summary.command.clone(),
        charts: Survey::charts(clients, summary.seed),
        tables: tables(summary),
        ..Figures::default()
    };
    let report = Report {
        settings: serde_json::Value::Null,
        floors: None,
        policies: Vec::new(),
    };
    report::html(&report, &figures)
}
