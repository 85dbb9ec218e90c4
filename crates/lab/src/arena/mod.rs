//! Contests over an emulated network: every arm in a cable of its own, the same paths for all, and what it cost them.
//!
//! `kernel.rs` reads what the kernels' TCP counted, `tap.rs` keeps TCP's packets, `figures.rs` makes numbers with intervals of
//! what arrived.

mod figures;
mod kernel;
mod tap;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use figures::{ArmFigures, Difference, FLOWS_MIN, on_time_difference, quantile_interval};
pub use kernel::KernelCounts;

use crate::arm::{
    Arm, ArmError, Contest, Entry, Phase, Played, Sender, Shortcomings, Workload, play,
};
use crate::channel::PathSpec;
use crate::emulator::{
    Cable, Emulator, EmulatorError, EmulatorOptions, Namespace, PathCounts, Report, SITES, Site,
    Timing,
};
use crate::tcp_trace::Packet;
use crate::world::{Forward, LinkSpec};
use tap::Tap;

/// Where every arm's server listens: each has namespaces of its own.
const PORT: u16 = 7000;

/// What is played, and over which network.
#[derive(Debug, Clone)]
pub struct Arena<W = Contest> {
    /// Each flow's path; forward is the way of the messages.
    pub paths: Vec<PathSpec>,
    /// A link that all flows of an arm share, in the way of the messages.
    pub link: Option<LinkSpec>,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Repeats the fates.
    pub seed: u64,
    /// The messages.
    pub contest: W,
    /// Whether the packets of arms over TCP are kept for [`tcp_trace`](crate::tcp_trace).
    pub is_traced: bool,
}

/// How an arm did.
#[derive(Debug, Clone)]
pub struct ArmRun<P = Played> {
    /// Its name.
    pub name: String,
    /// How it is tuned.
    pub settings: String,
    /// What arrived when.
    pub played: P,
    /// All flows went through one link.
    pub shares_link: bool,
    /// By flow: packets and bytes in the way of the messages, from the first message to the end.
    pub forward: Vec<PathCounts>,
    /// By flow: the same of the way back.
    pub backward: Vec<PathCounts>,
    /// What the kernel of the sending side counted in that time.
    pub kernel: KernelCounts,
    /// Packets that were dropped in that time though the network would not have: the machine's fault.
    pub spoilt_packets: u64,
    /// The packets of its TCP, when they were to be kept, connecting among them. Times are since the network began.
    pub packets: Vec<Packet>,
}

impl<P: Shortcomings> ArmRun<P> {
    /// What made its messages late that no network did, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let played = &self.played;
        Remarkable {
            refused: played.refused(),
            unconnected: played.unconnected(),
            sent_late_ms: millis(played.lateness_max()),
            spoilt: self.spoilt_packets,
        }
        .said_of(&self.name)
    }
}

/// Messages that are sent later than this are told of.
const LATE_MS: f64 = 10.0;

/// What made an arm's messages late that no network did.
struct Remarkable {
    refused: u64,
    unconnected: u32,
    sent_late_ms: f64,
    spoilt: u64,
}

impl Remarkable {
    /// A sentence each.
    fn said_of(&self, arm: &str) -> Vec<String> {
        let Self {
            refused,
            unconnected,
            sent_late_ms,
            spoilt,
        } = *self;
        let refused = (refused > 0)
            .then(|| format!("{arm} did not take {refused} messages, which count as late"));
        let unconnected = (unconnected > 0).then(|| {
            format!("{arm} had not connected {unconnected} of its clients when messages began")
        });
        let late = (sent_late_ms > LATE_MS).then(|| {
            format!("{arm} sent messages up to {sent_late_ms:.0} ms after they were due, which no latency counts")
        });
        let spoilt = (spoilt > 0).then(|| {
            format!("this machine, and not the network, dropped {spoilt} packets of {arm}")
        });
        let said = [refused, unconnected, late, spoilt];
        said.into_iter().flatten().collect()
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// How all did.
#[derive(Debug)]
pub struct ArenaRun<P = Played> {
    /// In the order of the arms, without those that failed.
    pub arms: Vec<ArmRun<P>>,
    /// Why the others did not play to the end.
    pub failures: Vec<ArmError>,
    /// Whether the machine kept the network's time.
    pub timing: Timing,
    /// When the messages began, since the network did.
    pub began: Duration,
    /// Whether it was ended before its time.
    pub is_interrupted: bool,
}

impl<W: Workload> Arena<W> {
    /// Lets the arms play; when one fails the others play on. `watch` hears how far they are and can end it by returning false.
    ///
    /// # Errors
    /// When there is no network.
    pub fn run(
        &self,
        arms: &[Box<dyn Arm>],
        mut watch: impl FnMut(Phase) -> bool,
    ) -> Result<ArenaRun<W::Played>, EmulatorError> {
        let taps: Vec<_> = arms.iter().map(|_| Tap::default()).collect();
        let sender = match self.contest.task().sender {
            Sender::Server => Site::Server,
            Sender::Client => Site::Client,
        };
        let mut emulator = Emulator::start(self.network(arms, &taps, sender))?;
        let places = emulator.places(PORT);
        let namespaces: Vec<_> = (0..arms.len())
            .map(|cable| Site::ALL.map(|site| emulator.namespace(cable, site).clone()))
            .collect();
        let enter: Vec<Enter> = namespaces.iter().cloned().map(enter).collect();
        let entries: Vec<_> = (arms.iter().zip(&enter))
            .map(|(arm, enter)| Entry {
                arm: &**arm,
                places: places.clone(),
                enter: &**enter,
            })
            .collect();
        let counts = |cable: usize| {
            Site::ALL.map(|site| KernelCounts::read(&namespaces[cable][site as usize]))
        };
        let mut begin = (Report::default(), Vec::new());
        let mut began = Duration::ZERO;
        let mut failure = None;
        let mut is_interrupted = false;
        let played = play(&self.contest, &entries, |phase| {
            if let Phase::Begins(at) = phase {
                began = at.saturating_duration_since(emulator.began());
                match emulator.report() {
                    Ok(report) => begin = (report, (0..arms.len()).map(counts).collect()),
                    Err(error) => failure = Some(error),
                }
            }
            let goes_on = watch(phase);
            is_interrupted |= !goes_on;
            goes_on && failure.is_none()
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let after: Vec<_> = (0..arms.len()).map(counts).collect();
        let report = emulator.stop()?;
        let (mut whole, mut failures) = (Vec::new(), Vec::new());
        for (cable, played) in played.into_iter().enumerate() {
            match played {
                Ok(played) => whole.push((cable, played)),
                Err(error) => failures.push(error),
            }
        }
        let counted = Counted {
            shares_link: self.link.is_some(),
            sender,
            before: begin.0,
            after: report,
            kernels_before: begin.1,
            kernels_after: after,
        };
        let arms = whole
            .into_iter()
            .map(|(cable, played)| counted.run(cable, &*arms[cable], played, &taps[cable]))
            .collect();
        Ok(ArenaRun {
            arms,
            failures,
            timing: counted.after.timing,
            began,
            is_interrupted,
        })
    }

    /// A cable for each arm.
    fn network(&self, arms: &[Box<dyn Arm>], taps: &[Tap], sender: Site) -> EmulatorOptions {
        EmulatorOptions {
            paths: self.paths.clone(),
            forward: match sender {
                Site::Server => Forward::ToClient,
                Site::Client => Forward::ToServer,
            },
            link: self.link,
            seed: self.seed,
            mtu: self.mtu,
            cables: (arms.iter().zip(taps))
                .map(|(arm, tap)| Cable {
                    stack: arm.stack(),
                    observer: self.is_traced.then(|| tap.observer()),
                    ..Cable::default()
                })
                .collect(),
        }
    }

    /// How long it takes at most, once connected.
    pub fn length(&self) -> Duration {
        self.contest.length() + self.contest.drain()
    }
}

type Enter = Box<dyn Fn(Sender) -> std::io::Result<()> + Sync>;

/// How a thread of an arm gets to the end of its cable that a side has.
fn enter([client, server]: [Namespace; 2]) -> Enter {
    Box::new(move |side| match side {
        Sender::Server => server.enter(),
        Sender::Client => client.enter(),
    })
}

/// What was counted when the messages began, and at the end.
struct Counted {
    sender: Site,
    shares_link: bool,
    before: Report,
    after: Report,
    /// By arm, then by side.
    kernels_before: Vec<[KernelCounts; SITES]>,
    kernels_after: Vec<[KernelCounts; SITES]>,
}

impl Counted {
    /// How the arm with this cable did.
    fn run<P>(&self, cable: usize, arm: &dyn Arm, played: P, tap: &Tap) -> ArmRun<P> {
        let end = &self.after.cables[cable];
        let before = self.before.cables.get(cable).cloned().unwrap_or_default();
        let since = |site: Site| -> Vec<PathCounts> {
            let paths = end.paths.iter().enumerate();
            paths
                .map(|(path, counts)| {
                    let before = before.paths.get(path).copied().unwrap_or_default();
                    counts[site as usize].since(&before[site as usize])
                })
                .collect()
        };
        let kernels = (self.kernels_before.get(cable)).map_or_else(Default::default, |before| {
            Site::ALL
                .map(|site| self.kernels_after[cable][site as usize].since(&before[site as usize]))
        });
        let overflowed = end.overflowed - before.overflowed + end.refused - before.refused;
        let dropped_here: u64 = kernels.iter().map(KernelCounts::dropped_here).sum();
        let [client, server] = kernels;
        ArmRun {
            name: arm.name().to_owned(),
            settings: arm.settings(),
            played,
            shares_link: self.shares_link,
            forward: since(self.sender),
            backward: since(self.sender.other()),
            kernel: match self.sender {
                Site::Client => client,
                Site::Server => server,
            },
            spoilt_packets: overflowed + dropped_here,
            packets: tap.take(),
        }
    }
}
