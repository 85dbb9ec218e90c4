//! Networks by name: built-in paths, recordings, directories of recordings, the networks of scenario files, and populations.

use std::fs;
use std::path::{Path, PathBuf};

use punctual_lab::channel::PathSpec;
use punctual_lab::population::{Population, PopulationKind};
use punctual_lab::profile::Profile;
use punctual_lab::scenario::Scenario;
use punctual_lab::trace::{PathOptions, Trace, files_below};
use punctual_lab::world::LinkSpec;

use crate::failure::Failure;

/// A network to play on.
pub(super) struct NamedNetwork {
    /// For tables: the built-in name, or the file's.
    pub(super) name: String,
    /// The path of each client; of a population, of a typical one.
    pub(super) path: PathSpec,
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
    pub(super) const fn alike(name: String, path: PathSpec) -> Self {
        Self {
            name,
            path,
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

/// The networks of a list of names.
pub(super) fn by_names(names: &[String]) -> Result<Vec<NamedNetwork>, Failure> {
    let mut networks = Vec::new();
    for name in names {
        let path = Path::new(name);
        if path.is_dir() {
            for file in recordings(path)? {
                networks.push(recording(&file)?);
            }
        } else {
            networks.push(by_name(name)?);
        }
    }
    Ok(networks)
}

/// The network of a name that is not a directory's.
pub(super) fn by_name(name: &str) -> Result<NamedNetwork, Failure> {
    if let Some(clients) = name.strip_prefix(POPULATION) {
        return population(name, clients);
    }
    let path = Path::new(name);
    if let Ok(profile) = name.parse::<Profile>() {
        return Ok(NamedNetwork::alike(name.to_owned(), profile.path()));
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
        let scenario = Scenario::open(path).map_err(Failure::bad_input)?;
        return Ok(NamedNetwork {
            mtu: scenario.mtu.unwrap_or(MTU),
            link: scenario.link.map(LinkSpec::from),
            ..NamedNetwork::alike(scenario.name, scenario.path)
        });
    }
    recording(path)
}

fn population(name: &str, clients: &str) -> Result<NamedNetwork, Failure> {
    let name = name.to_owned();
    let directory = Path::new(clients);
    if directory.is_dir() {
        let files = recordings(directory)?;
        let paths = files.iter().map(|file| Ok(recording(file)?.path));
        let paths = paths.collect::<Result<Vec<_>, Failure>>()?;
        let path = paths[paths.len() / 2].clone();
        return Ok(NamedNetwork {
            name,
            path,
            mtu: MTU,
            link: None,
            clients: Clients::Recorded(paths),
        });
    }
    let kind: PopulationKind = clients.parse().map_err(|unknown| {
        Failure::bad_input(format_args!("{unknown}, and directories of recordings"))
    })?;
    let population = Population::new(kind, POPULATION_SEED);
    Ok(NamedNetwork {
        name,
        path: population.typical(),
        mtu: MTU,
        link: None,
        clients: Clients::Synthetic(population),
    })
}

fn recording(file: &Path) -> Result<NamedNetwork, Failure> {
    let trace = Trace::open(file).map_err(Failure::bad_input)?;
    let path = trace
        .path(&PathOptions::for_trace(&trace))
        .map_err(Failure::bad_input)?;
    let parent = file.parent().and_then(Path::file_name);
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = match parent {
        Some(parent) => format!("{}/{stem}", parent.to_string_lossy()),
        None => stem.into_owned(),
    };
    Ok(NamedNetwork::alike(name, path))
}

/// The files below a directory that hold delays and losses, in order of their names.
fn recordings(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = files_below(directory).map_err(|(place, error)| {
        Failure::bad_input(format_args!("{} cannot be read: {error}", place.display()))
    })?;
    files.retain(|file| Trace::open(file).is_ok_and(|trace| trace.has_delays()));
    if files.len() > FILES_MAX {
        return Err(Failure::bad_input(format_args!(
            "there are more than {FILES_MAX} recordings: name them one by one"
        )));
    }
    if files.is_empty() {
        return Err(Failure::bad_input(format_args!(
            "{} has no recordings of delays",
            directory.display()
        )));
    }
    Ok(files)
}

/// The kernel's name and version, which are part of every result of its TCP.
pub(super) fn kernel() -> String {
    let read = |name| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", read("ostype").trim(), read("osrelease").trim())
}
