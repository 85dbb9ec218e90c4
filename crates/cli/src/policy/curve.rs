//! `punctual policy curve`: overhead over loss, with the oracle beside it. Figure 6 of the Pangolin paper.

use std::path::PathBuf;

use punctual_lab::report::{self, Figures, LineChart, Series, Unit};
use punctual_lab::stats::Report;
use punctual_policy::PolicyKind;
use punctual_policy::solve::{CurvePoint, Problem, curve};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::progress::Progress;
use crate::{output, terminal, values};

/// Plot what a policy costs over a range of losses, beside the oracle p / (1 - p) that knows all losses beforehand.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual policy curve --symbols 4 --rounds 2 --targets 0.99,0.999 --html curve.html"
)]
pub(crate) struct Args {
    /// Source symbols of the message.
    #[arg(long, value_name = "K", default_value_t = 4, value_parser = values::whole::<u8>(1..=64))]
    symbols: u8,
    /// Rounds until the deadline.
    #[arg(long, default_value_t = 2, value_parser = values::whole::<u16>(1..=100))]
    rounds: u16,
    /// Shares of messages that shall be on time, one line each.
    #[arg(long, value_name = "SHARE,..", value_delimiter = ',', default_value = "0.99,0.999", value_parser = values::on_time)]
    targets: Vec<f64>,
    /// Policies, one line each and target.
    #[arg(
        long,
        value_name = "POLICY,..",
        value_delimiter = ',',
        default_value = "pangolin"
    )]
    policy: Vec<PolicyKind>,
    /// The greatest loss.
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = values::loss)]
    loss_max: f64,
    /// Points of a line, besides the one at no loss.
    #[arg(long, default_value_t = 80, value_parser = values::whole::<u32>(1..=10_000))]
    points: u32,
    /// Write the plot as a page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the plot as a picture.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one JSON object: `settings`, and `curves`, a list of {`policy`, `on_time`, `points`}; a point has `loss`,
    /// `overhead` (expected symbols beyond k, as a share of k), `miss_probability` and `oracle`.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Curves {
    settings: Settings,
    curves: Vec<Curve>,
}

#[derive(Serialize)]
struct Settings {
    command: String,
    symbols: u8,
    rounds: u16,
    loss_max: f64,
    points: u32,
}

#[derive(Serialize)]
struct Curve {
    policy: String,
    on_time: f64,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    loss: f64,
    overhead: f64,
    miss_probability: f64,
    oracle: f64,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    output::check_distinct(&[("--html", args.html.as_ref()), ("--svg", args.svg.as_ref())])?;
    let html = OutputFile::page_if(args.html.as_ref())?;
    let svg = OutputFile::page_if(args.svg.as_ref())?;
    let curves = solve_all(&args)?;
    let chart = chart(&curves);
    let printed = if args.json {
        output::print_json(&curves)
    } else {
        let width = terminal::width().map_or(78, |width| width.saturating_sub(8).min(78));
        output::print(&chart.text(width, 26))
    };
    let printed = output::then_write(printed, svg, || report::standalone_svg(&chart));
    output::then_write(printed, html, || page(&curves, chart.clone()))
}

fn solve_all(args: &Args) -> Result<Curves, Failure> {
    let per_curve = u64::from(args.points) + 1;
    let policies = values::once_each(&args.policy);
    let targets = values::once_each(&args.targets);
    let lines = (policies.len() * targets.len()) as u64;
    let progress = Progress::new(per_curve * lines, args.json);
    let mut curves = Vec::new();
    for &policy in &policies {
        for &on_time in &targets {
            let done = curves.len() as u64 * per_curve;
            let label = policy.to_string();
            let problem = Problem {
                loss: 0.0,
                source_symbols: args.symbols,
                rounds: args.rounds,
                miss_target: 1.0 - on_time,
            };
            let losses = (0..=args.points).map(|i| {
                progress.show(done + u64::from(i), &label);
                args.loss_max * f64::from(i) / f64::from(args.points)
            });
            let points = curve(policy, &problem, losses).map_err(Failure::bad_input)?;
            let points = points.into_iter().map(Point::from).collect();
            curves.push(Curve {
                policy: label.clone(),
                on_time,
                points,
            });
        }
    }
    progress.clear();
    let settings = Settings {
        command: output::command_line(),
        symbols: args.symbols,
        rounds: args.rounds,
        loss_max: args.loss_max,
        points: args.points,
    };
    Ok(Curves { settings, curves })
}

impl From<CurvePoint> for Point {
    fn from(point: CurvePoint) -> Self {
        let CurvePoint {
            loss,
            overhead,
            miss_probability,
            oracle,
        } = point;
        Self {
            loss,
            overhead,
            miss_probability,
            oracle,
        }
    }
}

fn chart(curves: &Curves) -> LineChart {
    let line = |name: String, points: &[Point], y: fn(&Point) -> f64| Series {
        name,
        points: points.iter().map(|point| (point.loss, y(point))).collect(),
    };
    // `99.9 %`: two digits more than needed would show the float, not the target.
    let percent = |share: f64| (share * 1e9).round() / 1e7;
    let name = |curve: &Curve| format!("{} {} %", curve.policy, percent(curve.on_time));
    let mut series: Vec<Series> = curves
        .curves
        .iter()
        .map(|curve| line(name(curve), &curve.points, |point| point.overhead))
        .collect();
    if let Some(first) = curves.curves.first() {
        series.push(line("oracle p/(1-p)".to_owned(), &first.points, |point| {
            point.oracle
        }));
    }
    let Settings {
        symbols, rounds, ..
    } = curves.settings;
    LineChart {
        title: format!("Overhead over loss: {symbols} source symbols, {rounds} rounds"),
        caption: "Expected symbols beyond the source symbols, as a share of them.".to_owned(),
        x_label: "loss".to_owned(),
        y_label: "overhead".to_owned(),
        x_unit: Unit::Share,
        y_unit: Unit::Share,
        series,
        ..LineChart::default()
    }
}

fn page(curves: &Curves, chart: LineChart) -> String {
    let settings = serde_json::to_value(&curves.settings).expect("a struct of plain fields");
    let figures = Figures {
        title: "What keeping a deadline costs".to_owned(),
        subtitle: "From the solver: every symbol is lost on its own with the same probability."
            .to_owned(),
        command: curves.settings.command.clone(),
        charts: vec![chart],
        ..Figures::default()
    };
    let report = Report {
        floors: None,
        settings,
        policies: Vec::new(),
    };
    report::html(&report, &figures)
}
