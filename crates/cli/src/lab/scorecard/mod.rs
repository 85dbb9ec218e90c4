//! `punctual lab scorecard`: arms over networks, on real kernels.
//!
//! `figures.rs` is what comes of it; `text.rs` and `page.rs` show it.

mod figures;
mod page;
mod text;

#[cfg(test)]
mod tests;

use std::collections::btree_map::{BTreeMap, Entry};
use std::path::PathBuf;
use std::time::Duration;

use punctual_lab::arena::{Arena, ArenaRun};
use punctual_lab::arm::{Arm, Contest, MESSAGE_MIN, Phase, Sender, Task, Workload};
use punctual_lab::channel::{PathSpec, RttSplit};
use punctual_lab::emulator;
use punctual_lab::world::Forward;

use serde_json::json;

use super::arms;
use super::inside::emulator_failed;
use super::networks::{self, NamedNetwork};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::progress::Progress;
use crate::values;
use figures::{Row, Scorecard};

/// Let transports carry the same messages over the same networks, on real kernels, and compare what arrived in time at what cost.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual lab scorecard --networks busy-hour,ping.txt --arms punctual,tcp-cubic --report scorecard.html"
)]
pub(crate) struct Args {
    /// Built-in paths by name, recordings, scenario files (their network), directories of recordings, or populations:
    /// population:na, eu, pangolin, or population:DIRECTORY, where each client has one of its recordings.
    #[arg(
        long,
        value_name = "NAME|FILE",
        value_delimiter = ',',
        default_value = "busy-hour"
    )]
    networks: Vec<String>,
    /// Transports: all (those that are installed), or names; --arms help lists them.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "punctual,retransmit,tcp-cubic"
    )]
    arms: Vec<String>,
    /// Transports that play at the same time; of more, several heats are made with Punctual in each. More than the machine bears are
    /// late because of each other.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = at_once)]
    at_once: usize,
    /// Clients of each arm, each with a path of its own drawn from the network.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = values::whole::<u32>(1..=2000))]
    flows: u32,
    /// How long messages are sent over each network.
    #[arg(long, value_name = "S", default_value = "60", value_parser = values::seconds)]
    seconds: Duration,
    /// Time from one message of a client to its next.
    #[arg(long, value_name = "MS", default_value = "100", value_parser = values::millis_above_zero)]
    interval_ms: Duration,
    /// Size of each message.
    #[arg(long, value_name = "BYTES", default_value_t = 2048, value_parser = values::whole::<u32>(MESSAGE_MIN as u64..=BYTES_MAX))]
    bytes: u32,
    /// When a message is late (default: twice the network's median round trip, at least 20 ms more than it).
    #[arg(long, value_name = "MS", value_parser = values::millis_above_zero)]
    deadline_ms: Option<Duration>,
    /// Share of messages that shall be on time.
    #[arg(long, value_name = "SHARE", default_value = "0.999", value_parser = values::on_time)]
    on_time: f64,
    /// Who sends.
    #[arg(long, value_enum, default_value_t = Direction::ToClient)]
    direction: Direction,
    /// Repeats the networks' fates and the instants of sending.
    #[arg(long, default_value_t = 1, value_parser = values::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Print one JSON object (`is_complete`: nothing ended it early, and all of `networks_planned` are there); with --arms help, `arms`, a list of {`arm`, `missing`; null: it is there}.
    #[arg(long)]
    json: bool,
    /// Write a page.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Direction {
    ToClient,
    ToServer,
}

impl From<Direction> for Forward {
    fn from(messages: Direction) -> Self {
        match messages {
            Direction::ToClient => Self::ToClient,
            Direction::ToServer => Self::ToServer,
        }
    }
}

/// Largest messages that all transports take.
const BYTES_MAX: u64 = 131_072;
/// How long clients may take to connect; each of them tries for 5 s and tries again.
const CONNECT_MAX: Duration = Duration::from_secs(15);
/// After the last message, how long others may still arrive, at least.
const DRAIN_MIN: Duration = Duration::from_secs(3);
/// Round trip of the network without loss.
const PLAIN_RTT: Duration = Duration::from_millis(50);
/// How long messages are sent over it.
const PLAIN_LENGTH: Duration = Duration::from_secs(8);

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.arms.iter().any(|name| name == arms::HELP) {
        if args.report.is_some() {
            return Err(Failure::bad_input(
                "--arms help writes no page: leave --report out",
            ));
        }
        return match args.json {
            true => output::print_json(&json!({ "arms": arms::list() })),
            false => output::print(&arms::list_text()),
        };
    }
    emulator::acquire_privilege().map_err(emulator_failed)?;
    let page = OutputFile::page_if(args.report.as_ref())?;
    let networks = networks::by_names(&args.networks, args.direction.into())?;
    // Wrong names are told before anything begins.
    arms::by_names(&args.arms)?;
    for sentence in arms::left_out(&args.arms) {
        output::note(&sentence);
    }
    interrupt::watch();
    let mut rows = Vec::new();
    let ended = play_all(args, &networks, &mut rows);
    // What has played before it is not lost.
    if rows.is_empty() {
        return ended;
    }
    let scorecard = Scorecard {
        is_complete: ended.is_ok(),
        networks_planned: networks.len(),
        ..Scorecard::new(args, rows)
    };
    let printed = if args.json {
        output::print_json(&scorecard)
    } else {
        output::print(&text::text(&scorecard))
    };
    let told = output::then_write(printed, page, || page::html(&scorecard));
    let played = ended.and_then(|()| match scorecard.failures() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(Failure::failed(format_args!(
            "not every transport played to the end: {}",
            failures.join("; ")
        ))),
    });
    output::and_besides(told, played)
}

fn play_all(args: &Args, networks: &[NamedNetwork], rows: &mut Vec<Row>) -> Result<(), Failure> {
    let mut plain: BTreeMap<u16, Vec<ArenaRun>> = BTreeMap::new();
    for (place, network) in networks.iter().enumerate() {
        // Smaller packets have more headers, which are no recovery.
        let plain = match plain.entry(network.mtu) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let alike = networks.iter().filter(|other| other.mtu == network.mtu);
                let longest = alike.map(|other| args.deadline(other)).max();
                let drain = drain(longest.unwrap_or_default());
                unknown.insert(play_plain(args, network.mtu, drain)?)
            }
        };
        let what = format!("{} ({} of {})", network.name, place + 1, networks.len());
        rows.push(play(args, network, plain, &what)?);
    }
    Ok(())
}

/// What each arm sends where nothing is lost: what it sends beyond that elsewhere, in packets of the same size, is recovery. As many at once as elsewhere, and as long after the last
/// message.
fn play_plain(args: &Args, mtu: u16, drain: Duration) -> Result<Vec<ArenaRun>, Failure> {
    let names = arms::expanded(&args.arms);
    let mut names: Vec<_> = (names.iter())
        .map(|name| arms::without_redundancy(name).to_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    let path = PathSpec::fixed("plain", PLAIN_RTT, RttSplit::EVEN);
    let paths = vec![path; args.flows as usize];
    let mut arena = args.arena(paths, mtu, PLAIN_RTT * 2, PLAIN_RTT);
    arena.contest.messages = args.messages_in(args.seconds.min(PLAIN_LENGTH));
    arena.contest.drain = drain;
    let heats = names.chunks(args.at_once).map(|names| {
        let arms = arms::by_names(names)?;
        watched(&arena, &arms, "without loss", args.json)
    });
    heats.collect()
}

fn play(
    args: &Args,
    network: &NamedNetwork,
    plain: &[ArenaRun],
    what: &str,
) -> Result<Row, Failure> {
    let rtt = network.path.median_rtt();
    let deadline = args.deadline(network);
    let arena = Arena {
        link: network.link,
        ..args.arena(network.paths(args.flows), network.mtu, deadline, rtt)
    };
    let mut heats = Vec::new();
    for names in args.heats() {
        let arms = arms::by_names(&names)?;
        heats.push(watched(&arena, &arms, what, args.json)?);
    }
    if heats.iter().all(|heat| heat.arms.is_empty()) {
        let mut failures = heats.iter().flat_map(|heat| &heat.failures);
        return Err(arms::failed(
            failures.next().expect("every heat has an arm"),
        ));
    }
    Ok(Row::new(network, &arena, &heats, plain))
}

impl Args {
    /// Who plays at the same time: as many as the machine bears, and Punctual in every heat, to be compared with.
    fn heats(&self) -> Vec<Vec<String>> {
        let names = arms::expanded(&self.arms);
        if names.len() <= self.at_once {
            return vec![names];
        }
        let (reference, others): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name == arms::REFERENCE);
        let room = (self.at_once - reference.len()).max(1);
        let heats = others.chunks(room);
        heats.map(|heat| [&reference, heat].concat()).collect()
    }

    fn deadline(&self, network: &NamedNetwork) -> Duration {
        let chosen = || default_deadline(network.path.median_rtt());
        self.deadline_ms.unwrap_or_else(chosen)
    }

    /// Of each client, one at least.
    fn messages_in(&self, time: Duration) -> u32 {
        let messages = time.as_nanos() / self.interval_ms.as_nanos().max(1);
        u32::try_from(messages).unwrap_or(u32::MAX).max(1)
    }

    fn arena(&self, paths: Vec<PathSpec>, mtu: u16, deadline: Duration, rtt: Duration) -> Arena {
        Arena {
            paths,
            link: None,
            mtu,
            seed: self.seed,
            contest: Contest {
                task: Task {
                    sender: match self.direction {
                        Direction::ToClient => Sender::Server,
                        Direction::ToServer => Sender::Client,
                    },
                    message_bytes: self.bytes as usize,
                    interval: self.interval_ms,
                    deadline,
                    on_time: self.on_time,
                    rtt,
                },
                messages: self.messages_in(self.seconds),
                connect_max: CONNECT_MAX,
                drain: drain(deadline),
                seed: self.seed,
            },
            is_traced: false,
        }
    }
}

/// Plays, with a bar, until the end or Ctrl-C. Arms that fail are among the run's failures.
pub(super) fn watched<W: Workload>(
    arena: &Arena<W>,
    arms: &[Box<dyn Arm>],
    what: &str,
    json: bool,
) -> Result<ArenaRun<W::Played>, Failure> {
    let length = arena.length().as_millis() as u64;
    let progress = Progress::new(length, json);
    let run = arena.run(arms, |phase| {
        match phase {
            Phase::Connecting(_) | Phase::Settling | Phase::Begins(_) => progress.show(0, what),
            Phase::Sending(since) => progress.show((since.as_millis() as u64).min(length), what),
        }
        !interrupt::is_requested()
    });
    progress.clear();
    let run = run.map_err(emulator_failed)?;
    if run.is_interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(run)
}

fn at_once(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|number| (2..=emulator::CABLES_MAX).contains(number))
        .ok_or_else(|| format!("expected a number from 2 to {}", emulator::CABLES_MAX))
}

/// How long after the last message others with this deadline may still arrive.
fn drain(deadline: Duration) -> Duration {
    DRAIN_MIN.max(deadline * 3)
}

fn default_deadline(rtt: Duration) -> Duration {
    (rtt * 2).max(rtt + Duration::from_millis(20))
}
