//! Runs a scenario with one or several seeds, and pools what came of it.

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use super::single::{self, Single};
use super::summary::{LinkResult, RunResult};
use super::venue::{Computed, Venue};
use super::{Bottleneck, Scenario, ScenarioResult, StreamTally};
use crate::stats::Latencies;
use crate::world::LinkFigures;

/// How far it has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Which of the seeds runs, from 0.
    pub run: usize,
    /// How much of its time has gone by.
    pub at: Duration,
    /// Of how much.
    pub of: Duration,
}

/// Why a scenario was not run; `E` is what may go wrong with the venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError<E = Infallible> {
    /// There is no seed to run it with.
    NoSeeds,
    /// The network lets too little through.
    Unreachable {
        /// Sessions that began.
        connected: u32,
        /// Of so many.
        of: u32,
        /// With which seed.
        seed: u64,
    },
    /// There is no stream: nothing to send.
    NoStreams,
    /// The venue cannot go on.
    Venue(E),
    /// Whoever heard of the progress wanted no more.
    Stopped,
}

impl<E> RunError<E> {
    /// What is wrong with the venue.
    ///
    /// # Errors
    /// When it is not the venue, what is wrong with the scenario.
    pub fn of_venue(self) -> Result<E, RunError> {
        match self {
            Self::Venue(error) => Ok(error),
            Self::NoSeeds => Err(RunError::NoSeeds),
            Self::NoStreams => Err(RunError::NoStreams),
            Self::Stopped => Err(RunError::Stopped),
            Self::Unreachable {
                connected,
                of,
                seed,
            } => Err(RunError::Unreachable {
                connected,
                of,
                seed,
            }),
        }
    }
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeeds => f.write_str("a scenario needs at least one seed"),
            Self::NoStreams => {
                f.write_str("the scenario has no [[stream]], so there is nothing to send")
            }
            Self::Venue(error) => error.fmt(f),
            Self::Stopped => f.write_str("it was stopped"),
            Self::Unreachable {
                connected,
                of,
                seed,
            } => write!(
                f,
                "{connected} of {of} sessions began within a minute (seed {seed}): the network lets too little through"
            ),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for RunError<E> {}

/// What came of a scenario: the numbers, and what plots need besides.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The numbers.
    pub result: ScenarioResult,
    /// The streams, as they were counted.
    pub tallies: Vec<StreamTally>,
}

/// What was played of a scenario's seeds.
#[derive(Debug)]
pub struct Played<E = Infallible> {
    /// Of the seeds that were played whole; None: of none.
    pub outcome: Option<Outcome>,
    /// How it ended.
    pub ended: Result<(), RunError<E>>,
}

/// What becomes of a run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It counts.
    Counts,
    /// The venue was not what it should be: the seed is played again, at a new one.
    Again,
}

/// Runs a scenario in virtual time with each of the seeds.
///
/// # Errors
/// When there is no seed or nothing to send, or the network is such that sessions cannot begin.
pub fn run(
    scenario: &Scenario,
    seeds: impl IntoIterator<Item = u64>,
    mut progress: impl FnMut(Progress),
) -> Result<Outcome, RunError> {
    let played = run_while(scenario, seeds, |at| {
        progress(at);
        true
    });
    played.ended?;
    played.outcome.ok_or(RunError::NoSeeds)
}

/// As [`run`], as long as `go_on` says so.
pub fn run_while(
    scenario: &Scenario,
    seeds: impl IntoIterator<Item = u64>,
    go_on: impl FnMut(Progress) -> bool,
) -> Played {
    let open = |seed| Ok(Computed::new(scenario, seed));
    run_at(scenario, seeds, open, |_| Ok(Ending::Counts), go_on)
}

/// Runs a scenario with each of the seeds, each at a venue of its own: `open` makes it, and `close` is given it when the run is
/// over, and says whether it counts. As long as `go_on` says so.
pub fn run_at<V: Venue>(
    scenario: &Scenario,
    seeds: impl IntoIterator<Item = u64>,
    mut open: impl FnMut(u64) -> Result<V, V::Error>,
    mut close: impl FnMut(V) -> Result<Ending, V::Error>,
    mut go_on: impl FnMut(Progress) -> bool,
) -> Played<V::Error> {
    let of = scenario.duration;
    let mut play = |run, seed| loop {
        let venue = open(seed).map_err(RunError::Venue)?;
        let (single, venue) =
            single::run(scenario, seed, venue, |at| go_on(Progress { run, at, of }))?;
        if close(venue).map_err(RunError::Venue)? == Ending::Counts {
            return Ok(single);
        }
    };
    let mut pool: Option<Pool> = None;
    let play_all = || {
        if scenario.streams.is_empty() {
            return Err(RunError::NoStreams);
        }
        for (run, seed) in seeds.into_iter().enumerate() {
            let single = play(run, seed)?;
            match &mut pool {
                Some(pool) => pool.add(single),
                None => pool = Some(Pool::new(single)),
            }
        }
        Ok(())
    };
    let ended = play_all();
    Played {
        outcome: pool.map(|pool| pool.finish(scenario)),
        ended,
    }
}

/// The runs so far.
struct Pool {
    seeds: Vec<u64>,
    tallies: Vec<StreamTally>,
    runs: Vec<RunResult>,
    waits: Latencies,
}

impl Pool {
    fn new(first: Single) -> Self {
        Self {
            seeds: vec![first.seed],
            tallies: first.tallies,
            runs: vec![first.result],
            waits: first.waits,
        }
    }

    fn add(&mut self, single: Single) {
        self.seeds.push(single.seed);
        for (pooled, tally) in self.tallies.iter_mut().zip(single.tallies) {
            pooled.merge(tally);
        }
        self.runs.push(single.result);
        self.waits.merge(&single.waits);
    }

    fn finish(self, scenario: &Scenario) -> Outcome {
        let result = ScenarioResult {
            scenario: scenario.name.clone(),
            about: scenario.about.clone(),
            sessions: scenario.sessions,
            sent_s: scenario.duration.as_secs_f64(),
            settle_s: scenario.settle.as_secs_f64(),
            streams: self.tallies.iter().map(StreamTally::result).collect(),
            link: self.link(),
            seeds: self.seeds,
            runs: self.runs,
        };
        Outcome {
            result,
            tallies: self.tallies,
        }
    }

    fn link(&self) -> Option<LinkResult> {
        let links: Vec<_> = self.runs.iter().filter_map(|run| run.link).collect();
        let first = *links.first()?;
        let mean = |value: fn(&LinkResult) -> f64| {
            links.iter().map(value).sum::<f64>() / links.len() as f64
        };
        let total = |value: fn(&LinkResult) -> u64| links.iter().map(value).sum::<u64>();
        let (packets, dropped) = (total(|l| l.packets), total(|l| l.packets_dropped));
        Some(LinkResult {
            packets,
            bytes: total(|l| l.bytes),
            carried_bits_per_s: mean(|l| l.carried_bits_per_s),
            utilisation: mean(|l| l.utilisation),
            packets_dropped: dropped,
            drop_share: share(dropped, packets + dropped),
            packets_marked: total(|l| l.packets_marked),
            queue_ms_mean: mean(|l| l.queue_ms_mean),
            queue_ms: self.waits.quantiles(),
            ..first
        })
    }
}

/// The numbers of a link over so long.
pub(super) fn link_result(
    spec: &Bottleneck,
    figures: &LinkFigures,
    window: Duration,
) -> LinkResult {
    let LinkFigures {
        stats,
        carried_bytes,
        queue_mean,
    } = figures;
    let carried_bits_per_s = *carried_bytes as f64 * 8.0 / window.as_secs_f64().max(1e-9);
    LinkResult {
        rate_bits_per_s: spec.bits_per_second as f64,
        queue_bytes: spec.queue_bytes,
        packets: stats.packets,
        bytes: *carried_bytes,
        carried_bits_per_s,
        utilisation: carried_bits_per_s / spec.bits_per_second as f64,
        packets_dropped: stats.dropped,
        drop_share: share(stats.dropped, stats.packets + stats.dropped),
        packets_marked: stats.marked,
        queue_ms_mean: queue_mean.as_nanos() as f64 / 1e6,
        queue_ms: stats.waits.quantiles(),
    }
}

fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}
