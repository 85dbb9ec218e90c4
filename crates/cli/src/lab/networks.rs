//! Networks by name: built-in paths, recordings, directories of recordings, the networks of scenario files, and populations.

use std::fs;
use std::path::Path;

use punctual_lab::channel::PathSpec;
use punctual_lab::population::{Population, PopulationKind};
use punctual_lab::profile::Profile;
use punctual_lab::scenario::Scenario;
use punctual_lab::trace::{PathOptions, Trace, files_below};
use punctual_lab::world::{Forward, LinkSpec};

use crate::failure::Failure;

/// A network to play on.
pub(super) struct NamedNetwork {
    /// For tables: the built-in name, or the file's.
    pub(super) name: String,
    /// The path of each client; of a population, of a typical one.
    pub(super) path: PathSpec,
    /// Which way its forward direction is.
    pub(super) forward: Forward,
    /// Largest IP packet in bytes.
    pub(super) mtu: u16,
    /// Shared by all clients, in the direction of the messages; only scenario files have one.
    pub(super) link: Option<LinkSpec>,
    clients: Clients,
}

/// Who is on a network.
enum Clients {
    /// All have paths of the same kind.
    Alike,
    /// Synthetic ones.
    Synthetic(Population),
    /// Each has one of several, in turn.
    Recorded(Vec<PathSpec>),
}

/// Largest IP packet in bytes of networks that do not say it: Ethernet's.
pub(super) const MTU: u16 = 1500;

/// Before the name of a population.
const POPULATION: &str = "population:";
/// Populations are the same clients in every run.
const POPULATION_SEED: u64 = 1;

impl NamedNetwork {
    /// Clients with paths of one kind, and nothing shared.
    pub(super) const fn alike(name: String, path: PathSpec, forward: Forward) -> Self {
        Self {
            name,
            path,
            forward,
            mtu: MTU,
            link: None,
            clients: Clients::Alike,
        }
    }

    /// The paths of so many clients.
    pub(super) fn paths(&self, count: u32) -> Vec<PathSpec> {
        match &self.clients {
            Clients::Alike => vec![self.path.clone(); count as usize],
            Clients::Synthetic(population) => {
                let clients = population.clients(count).into_iter();
                clients.map(|client| client.path).collect()
            }
            Clients::Recorded(paths) => {
                paths.iter().cycle().take(count as usize).cloned().collect()
            }
        }
    }
}

/// Recordings of one directory, at most: more is a wrong directory.
const FILES_MAX: usize = 1000;

/// The networks of a list of names, for messages that go this way.
pub(super) fn by_names(names: &[String], messages: Forward) -> Result<Vec<NamedNetwork>, Failure> {
    let mut networks = Vec::new();
    for name in names {
        let path = Path::new(name);
        if path.is_dir() {
            networks.extend(recordings(path, messages)?);
        } else {
            networks.push(by_name(name, Some(messages))?);
        }
    }
    Ok(networks)
}

/// The network of a name that is not a directory's. Forward is the way of the messages; where nobody says which that is, as a scenario file says, or else to
/// the server.
pub(super) fn by_name(name: &str, messages: Option<Forward>) -> Result<NamedNetwork, Failure> {
    let forward = messages.unwrap_or(Forward::ToServer);
    if let Some(clients) = name.strip_prefix(POPULATION) {
        return population(name, clients, forward);
    }
    let path = Path::new(name);
    if let Ok(profile) = name.parse::<Profile>() {
        let path = profile.path_of(forward);
        return Ok(NamedNetwork::alike(name.to_owned(), path, forward));
    }
    if !path.exists() {
        let profiles = Profile::ALL.map(Profile::name).join(", ");
        return Err(Failure::bad_input(format_args!(
            "there is no network {name}: name a file, or one of {profiles}"
        )));
    }
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        return scenario(path, messages);
    }
    let trace = Trace::open(path).map_err(Failure::bad_input)?;
    recording(path, &trace, forward)
}

fn scenario(file: &Path, messages: Option<Forward>) -> Result<NamedNetwork, Failure> {
    let scenario = Scenario::open(file).map_err(Failure::bad_input)?;
    let is_turned = messages.is_some_and(|messages| messages != scenario.direction);
    if is_turned && scenario.link.is_some() {
        return Err(Failure::bad_input(format_args!(
            "the [link] of {} is for messages {}: send them that way, or set the file's `direction`",
            file.display(),
            match scenario.direction {
                Forward::ToClient => "to the clients",
                Forward::ToServer => "to the server",
            }
        )));
    }
    let path = match is_turned {
        true => scenario.path.turned(),
        false => scenario.path,
    };
    Ok(NamedNetwork {
        mtu: scenario.mtu.unwrap_or(MTU),
        link: scenario.link.map(LinkSpec::from),
        ..NamedNetwork::alike(scenario.name, path, messages.unwrap_or(scenario.direction))
    })
}

fn population(name: &str, clients: &str, forward: Forward) -> Result<NamedNetwork, Failure> {
    let name = name.to_owned();
    let directory = Path::new(clients);
    if directory.is_dir() {
        let networks = recordings(directory, forward)?;
        let paths: Vec<_> = networks.into_iter().map(|network| network.path).collect();
        let mut by_rtt: Vec<_> = paths.iter().collect();
        by_rtt.sort_by_key(|path| path.median_rtt());
        let path = by_rtt[by_rtt.len() / 2].clone();
        return Ok(NamedNetwork {
            clients: Clients::Recorded(paths),
            ..NamedNetwork::alike(name, path, forward)
        });
    }
    let kind: PopulationKind = clients.parse().map_err(|unknown| {
        Failure::bad_input(format_args!("{unknown}, and directories of recordings"))
    })?;
    let population = Population::new(kind, POPULATION_SEED);
    let path = population.typical();
    Ok(NamedNetwork {
        clients: Clients::Synthetic(population),
        ..NamedNetwork::alike(name, path, forward)
    })
}

fn recording(file: &Path, trace: &Trace, forward: Forward) -> Result<NamedNetwork, Failure> {
    let path = trace
        .path_of(forward, &PathOptions::for_trace(trace))
        .map_err(Failure::bad_input)?;
    let parent = file.parent().and_then(Path::file_name);
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = match parent {
        Some(parent) => format!("{}/{stem}", parent.to_string_lossy()),
        None => stem.into_owned(),
    };
    Ok(NamedNetwork::alike(name, path, forward))
}

/// The recordings of delays and losses below a directory, in order of their names. Files of other kinds are passed over, broken ones are not.
fn recordings(directory: &Path, forward: Forward) -> Result<Vec<NamedNetwork>, Failure> {
    let files = files_below(directory).map_err(|(place, error)| {
        Failure::bad_input(format_args!("{} cannot be read: {error}", place.display()))
    })?;
    let mut networks = Vec::new();
    for file in files {
        let trace = match Trace::open(&file) {
            Err(error) if error.is_something_else() => continue,
            trace => trace.map_err(Failure::bad_input)?,
        };
        if !trace.has_delays() {
            continue;
        }
        if networks.len() == FILES_MAX {
            return Err(Failure::bad_input(format_args!(
                "there are more than {FILES_MAX} recordings: name them one by one"
            )));
        }
        networks.push(recording(&file, &trace, forward)?);
    }
    if networks.is_empty() {
        return Err(Failure::bad_input(format_args!(
            "{} has no recordings of delays",
            directory.display()
        )));
    }
    Ok(networks)
}

/// The kernel's name and version, which are part of every result of its TCP.
pub(super) fn kernel() -> String {
    let read = |name| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", read("ostype").trim(), read("osrelease").trim())
}
