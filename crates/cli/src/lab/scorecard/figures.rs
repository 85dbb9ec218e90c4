//! What comes of a scorecard, in numbers.

use punctual_lab::arena::{
    Arena, ArenaRun, ArmFigures, ArmRun, Difference, FLOWS_MIN, on_time_difference,
};
use punctual_lab::arm::Task;
use punctual_lab::genie::{self, Floors};
use punctual_lab::stats::Latencies;
use punctual_lab::world::Moment;
use serde::Serialize;

use super::Args;
use crate::lab::arms::{self, REFERENCE, SRT_FEC};
use crate::lab::networks::{self, NamedNetwork};
use crate::output;

/// All networks.
#[derive(Debug, Serialize)]
pub(super) struct Scorecard {
    /// Repeats it.
    pub(super) command: String,
    pub(super) version: &'static str,
    /// Whose TCP was played.
    pub(super) kernel: String,
    /// Clients of each arm.
    pub(super) flows: u32,
    pub(super) message_bytes: u32,
    pub(super) interval_ms: f64,
    /// Share of messages that should be on time.
    pub(super) on_time_target: f64,
    pub(super) seed: u64,
    /// Nothing ended it early. Otherwise these are the networks that were played to the end, of ..
    pub(super) is_complete: bool,
    /// .. so many.
    pub(super) networks_planned: usize,
    pub(super) networks: Vec<Row>,
}

/// All arms over a network.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) network: String,
    /// Where its numbers come from.
    pub(super) source: String,
    pub(super) rtt_median_ms: f64,
    pub(super) deadline_ms: f64,
    /// What no sender can beat.
    #[serde(flatten)]
    pub(super) floors: Floors,
    /// Whether the machine kept the network's time.
    pub(super) timing: String,
    pub(super) timing_error_ms_p99: f64,
    pub(super) timing_held: bool,
    /// When the messages of each heat in which any arm played began, since its network did: heats that began at other times met other fates.
    pub(super) began_s: Vec<f64>,
    /// Whether anybody could have kept the promise: the least possible share of late messages is within the target.
    pub(super) promise_possible: bool,
    /// Arms that had more on time than Punctual, with the whole interval of the difference above zero; none of fewer than five clients.
    pub(super) ahead_of_punctual: Vec<String>,
    /// Of the arms with redundancy that does not follow the path, those that spent less on recovery than Punctual.
    pub(super) cheaper_redundancy: Vec<String>,
    pub(super) arms: Vec<ArmRow>,
    /// Arms that did not play to the end.
    pub(super) failed: Vec<FailedArm>,
    /// Arms whose recovery cannot be told, since they did not play to the end where nothing is lost.
    pub(super) failed_without_loss: Vec<FailedArm>,
}

/// An arm that did not play to the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct FailedArm {
    pub(super) arm: String,
    /// A sentence, with the arm's name.
    pub(super) why: String,
}

/// Heats that begin so much apart meet the same fates, but for some packets.
const ALIKE_S: f64 = 0.1;

/// Arms whose redundancy is set by hand.
const SET_BY_HAND: [&str; 4] = ["fixed(1)", "fixed(3)", "hairpin", SRT_FEC];

/// An arm over a network.
#[derive(Debug, Serialize)]
pub(super) struct ArmRow {
    #[serde(flatten)]
    pub(super) figures: ArmFigures,
    /// How much more of its messages were on time than of Punctual's; null for Punctual itself, and where that did not play.
    pub(super) over_punctual: Option<Difference>,
    /// (latency in ms, share of messages that were later): for plots.
    #[serde(skip)]
    pub(super) curve: Vec<(f64, f64)>,
}

impl Scorecard {
    pub(super) fn new(args: &Args, networks: Vec<Row>) -> Self {
        Self {
            command: output::command_line(),
            version: env!("CARGO_PKG_VERSION"),
            kernel: networks::kernel(),
            flows: args.flows,
            message_bytes: args.bytes,
            interval_ms: args.interval_ms.as_secs_f64() * 1e3,
            on_time_target: args.on_time,
            seed: args.seed,
            is_complete: true,
            networks_planned: networks.len(),
            networks,
        }
    }

    /// What a reader must know of one that was ended early.
    pub(super) fn remark(&self) -> Option<String> {
        let (played, planned) = (self.networks.len(), self.networks_planned);
        (!self.is_complete).then(|| format!("ended early, after {played} of {planned} networks"))
    }

    /// The names of all arms, those that failed everywhere last.
    pub(super) fn arms(&self) -> Vec<&str> {
        let rows = || self.networks.iter();
        let played = rows().flat_map(|row| &row.arms);
        let played = played.map(|arm| arm.figures.arm.as_str());
        let failed = rows().flat_map(|row| &row.failed);
        let mut names = Vec::new();
        for name in played.chain(failed.map(|failed| failed.arm.as_str())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Which arms did not play to the end, where and why, each once.
    pub(super) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for row in &self.networks {
            let here = row.failed.iter().map(|failed| (&*row.network, failed));
            let plain = row.failed_without_loss.iter();
            for (network, failed) in plain
                .map(|failed| ("a network without loss", failed))
                .chain(here)
            {
                let failure = format!("over {network} {}", failed.why);
                if !failures.contains(&failure) {
                    failures.push(failure);
                }
            }
        }
        failures
    }
}

impl Row {
    /// Of the heats in which the arms played; Punctual's figures are those of the first in which it played to the end.
    pub(super) fn new(
        network: &NamedNetwork,
        arena: &Arena,
        heats: &[ArenaRun],
        plain: &[ArenaRun],
    ) -> Self {
        let task = &arena.contest.task;
        let is_reference = |arm: &ArmRun| arm.name == REFERENCE;
        let first = (heats.iter()).position(|heat| heat.arms.iter().any(is_reference));
        let arms: Vec<_> = (heats.iter().enumerate())
            .flat_map(|(place, heat)| arm_rows(task, heat, plain, first != Some(place)))
            .collect();
        // Where all failed, messages may never have begun.
        let played = || heats.iter().filter(|heat| !heat.arms.is_empty());
        let floors = (played().next()).map_or_else(Floors::default, |heat| floors(arena, heat));
        let errors = heats.iter().chain(plain).map(|heat| &heat.timing);
        let worst = errors.max_by(|a, b| a.error_ms_p99().total_cmp(&b.error_ms_p99()));
        let timing = worst.cloned().unwrap_or_default();
        Self {
            network: network.name.clone(),
            source: network.path.source.clone(),
            rtt_median_ms: task.rtt.as_secs_f64() * 1e3,
            deadline_ms: task.deadline.as_secs_f64() * 1e3,
            floors,
            timing: timing.verdict(),
            timing_error_ms_p99: timing.error_ms_p99(),
            timing_held: timing.is_held(),
            began_s: played().map(|heat| heat.began.as_secs_f64()).collect(),
            promise_possible: floors.late_share <= 1.0 - task.on_time,
            ahead_of_punctual: ahead(&arms),
            cheaper_redundancy: cheaper(&arms),
            arms,
            failed: failed_arms(heats),
            failed_without_loss: failed_arms(plain),
        }
    }

    /// What makes messages late that no network did, a sentence each.
    pub(super) fn remarks(&self) -> impl Iterator<Item = String> {
        let arms = self.arms.iter().flat_map(|row| row.figures.remarks());
        self.unlike_heats().into_iter().chain(arms)
    }

    /// Where arms met other fates than others.
    fn unlike_heats(&self) -> Option<String> {
        let seconds = || self.began_s.iter().copied();
        let apart = seconds().fold(f64::MIN, f64::max) - seconds().fold(f64::MAX, f64::min);
        (apart > ALIKE_S).then(|| {
            format!(
                "not all arms met the same fates: {} heats began up to {apart:.0} s apart, the floors are those of the first, and only differences to Punctual are of one heat",
                self.began_s.len()
            )
        })
    }

    /// In a sentence, how Punctual did; empty where it did not play.
    pub(super) fn verdict(&self) -> String {
        if !self.arms.iter().any(|arm| arm.figures.arm == REFERENCE) {
            return String::new();
        }
        let is_told = |arm: &ArmRow| {
            arm.over_punctual
                .is_none_or(|over| over.on_time_share_95.is_some())
        };
        let ahead = match &self.ahead_of_punctual[..] {
            [] if !self.arms.iter().all(is_told) => {
                format!("fewer than {FLOWS_MIN} clients do not tell who is ahead")
            }
            [] => "nobody had significantly more on time than Punctual".to_owned(),
            names => format!(
                "significantly more on time than Punctual: {}",
                names.join(", ")
            ),
        };
        match &self.cheaper_redundancy[..] {
            [] => ahead,
            names => format!("{ahead}; cheaper recovery: {}", names.join(", ")),
        }
    }
}

/// The arms of a heat, each compared with Punctual in the same heat.
fn arm_rows(
    task: &Task,
    heat: &ArenaRun,
    plain: &[ArenaRun],
    without_reference: bool,
) -> Vec<ArmRow> {
    let deadline_us = u32::try_from(task.deadline.as_micros()).unwrap_or(u32::MAX - 1);
    let reference = heat.arms.iter().find(|arm| arm.name == REFERENCE);
    let row = |arm: &ArmRun| {
        let mut plain = plain.iter().flat_map(|plain| &plain.arms);
        let plain = plain.find(|plain| plain.name == arms::without_redundancy(&arm.name));
        let other = reference.filter(|reference| reference.name != arm.name);
        ArmRow {
            figures: ArmFigures::new(arm, task.message_bytes, deadline_us, plain),
            over_punctual: other.map(|other| {
                on_time_difference(&arm.played, &other.played, arm.shares_link, deadline_us)
            }),
            curve: Latencies::from(&arm.played).curve(),
        }
    };
    let arms = heat.arms.iter();
    let arms = arms.filter(|arm| !(without_reference && arm.name == REFERENCE));
    arms.map(row).collect()
}

/// Those that failed in any heat, each once.
fn failed_arms(heats: &[ArenaRun]) -> Vec<FailedArm> {
    let mut arms = Vec::new();
    for error in heats.iter().flat_map(|heat| &heat.failures) {
        let failed = FailedArm {
            arm: error.arm().to_owned(),
            why: error.to_string(),
        };
        if !arms.contains(&failed) {
            arms.push(failed);
        }
    }
    arms
}

fn ahead(arms: &[ArmRow]) -> Vec<String> {
    let is_ahead = |arm: &&ArmRow| {
        arm.over_punctual
            .and_then(|over| over.on_time_share_95)
            .is_some_and(|over| over.low > 0.0)
    };
    let ahead = arms.iter().filter(is_ahead);
    ahead.map(|arm| arm.figures.arm.clone()).collect()
}

fn cheaper(arms: &[ArmRow]) -> Vec<String> {
    let punctual = arms.iter().find(|arm| arm.figures.arm == REFERENCE);
    let Some(punctual) = punctual.and_then(|arm| arm.figures.recovery_overhead) else {
        return Vec::new();
    };
    let by_hand = arms
        .iter()
        .filter(|arm| SET_BY_HAND.contains(&arm.figures.arm.as_str()));
    let cheaper = by_hand.filter(|arm| {
        arm.figures
            .recovery_overhead
            .is_some_and(|spent| spent < punctual)
    });
    cheaper.map(|arm| arm.figures.arm.clone()).collect()
}

/// The limits for the messages that were sent, at the instants at which they were.
fn floors(arena: &Arena, run: &ArenaRun) -> Floors {
    let contest = &arena.contest;
    let flows: Vec<_> = (0..)
        .zip(contest.phases(arena.paths.len() as u32))
        .map(|(path, phase)| genie::Flow {
            path,
            first: Moment((run.began + phase).as_nanos() as u64),
        })
        .collect();
    let task = genie::Task {
        message_bytes: contest.task.message_bytes,
        symbols: None,
        deadline: contest.task.deadline,
        interval: contest.task.interval,
        frame: std::time::Duration::ZERO,
        messages: u64::from(contest.messages) * flows.len() as u64,
        datagram_max: arena.mtu - IP_UDP_HEADER,
    };
    let direction = punctual_lab::channel::Direction::Forward;
    genie::floors(&arena.paths, direction, arena.seed, &flows, &task)
}

const IP_UDP_HEADER: u16 = 28;
