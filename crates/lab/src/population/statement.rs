//! What the Pangolin paper's sections 3.3 and 3.4 say of its clients, held against a population.

use serde::Serialize;

use super::{Client, Region, Survey, Surveyed};
use crate::report::Unit;
use crate::stats::{Interval, wilson};

/// A sentence of the paper with its number, and the same of a population.
#[derive(Debug, Clone, Serialize)]
pub struct Statement {
    /// The paper's figure that shows it.
    pub figure: u8,
    /// What is stated.
    pub what: String,
    /// In what `paper` and `here` are.
    #[serde(skip)]
    pub unit: Unit,
    /// The paper's number; None where it gives a direction without a number.
    pub paper: Option<f64>,
    /// The population's.
    pub here: f64,
    /// The 95 % interval of a share.
    pub here_95: Option<Interval>,
    /// Whether they agree: within a tenth of the paper's or within the interval, or in the direction.
    pub agrees: bool,
}

/// The paper's clients with mean round trips above 1,000 ms, of all.
const ABOVE_A_SECOND: (u64, u64) = (19, 10_304);

fn rtt(client: &Surveyed) -> f64 {
    client.rtt_mean_ms
}

fn varies(client: &Surveyed) -> bool {
    client.variation_ms > 100.0
}

fn is_lossy(client: &Surveyed) -> bool {
    client.loss > 0.0
}

/// Of clients that vary much, the share whose round trip is above the median.
fn large_among_varying(survey: &Survey) -> f64 {
    let median = survey.quantile(0.5, rtt);
    let both = survey.count(|client| varies(client) && rtt(client) > median);
    both as f64 / survey.count(varies).max(1) as f64
}

/// Mean loss of those with any.
fn loss_of_lossy(survey: &Survey) -> f64 {
    survey.loss_mean() / survey.share(is_lossy).max(f64::MIN_POSITIVE)
}

impl Statement {
    /// All of them in order, over the two regions of some clients, whose fates repeat with the seed.
    pub fn all(clients: &[Client], seed: u64) -> Vec<Self> {
        let [america, europe] = &[&Region::NORTH_AMERICA, &Region::EUROPE].map(|region| {
            let is_there = |client: &&Client| client.region.name == region.name;
            Survey::of(clients.iter().filter(is_there), seed)
        });
        let above = |ms: f64| move |client: &Surveyed| client.rtt_mean_ms > ms;
        let of = |survey: &Survey| survey.clients.len() as u64;
        let mut all = vec![
            Self::number(
                "median of mean round trips, North America",
                100.0,
                america.quantile(0.5, rtt),
            ),
            Self::number(
                "median of mean round trips, Europe",
                200.0,
                europe.quantile(0.5, rtt),
            ),
            Self::share(
                "North America's clients above 200 ms",
                0.025,
                (america.count(above(200.0)), of(america)),
            ),
            Self::direction(
                "Europe's clients below 200 ms (the paper: most)",
                1.0 - europe.share(above(200.0)),
                |share| share > 0.5,
            ),
            Self::share(
                "all clients above 1,000 ms (the paper: 19 of 10,304)",
                ABOVE_A_SECOND.0 as f64 / ABOVE_A_SECOND.1 as f64,
                (
                    america.count(above(1000.0)) + europe.count(above(1000.0)),
                    of(america) + of(europe),
                ),
            ),
        ];
        for (region, survey) in [("North America", america), ("Europe", europe)] {
            all.push(Self::direction(
                &format!("clients that vary by more than 100 ms, {region} (the paper: some)"),
                survey.share(varies),
                |share| share > 0.0,
            ));
            all.push(Self::direction(
                &format!("of those, with a round trip above the median, {region} (the paper: predominantly)"),
                large_among_varying(survey),
                |share| share > 0.5,
            ));
        }
        let mut losses = [
            Self::direction(
                "share of clients with loss, Europe less North America (the paper: higher in Europe)",
                europe.share(is_lossy) - america.share(is_lossy),
                |difference| difference > 0.0,
            ),
            Self::direction(
                "mean loss of clients with loss, Europe less North America (the paper: higher in Europe)",
                loss_of_lossy(europe) - loss_of_lossy(america),
                |difference| difference > 0.0,
            ),
        ];
        losses.iter_mut().for_each(|statement| statement.figure = 3);
        all.extend(losses);
        all
    }

    fn number(what: &str, paper: f64, here: f64) -> Self {
        Self {
            figure: 2,
            what: what.to_owned(),
            unit: Unit::Millis,
            paper: Some(paper),
            here,
            here_95: None,
            agrees: (here - paper).abs() <= 0.1 * paper,
        }
    }

    fn share(what: &str, paper: f64, (hits, of): (u64, u64)) -> Self {
        let interval = wilson(hits, of);
        let plain = Self::number(what, paper, hits as f64 / of.max(1) as f64);
        Self {
            unit: Unit::Share,
            here_95: Some(interval),
            agrees: plain.agrees || interval.contains(paper),
            ..plain
        }
    }

    fn direction(what: &str, here: f64, agrees: impl Fn(f64) -> bool) -> Self {
        Self {
            figure: 2,
            what: what.to_owned(),
            unit: Unit::Share,
            paper: None,
            here,
            here_95: None,
            agrees: agrees(here),
        }
    }
}
