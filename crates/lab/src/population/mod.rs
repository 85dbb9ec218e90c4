//! Populations: thousands of synthetic clients, each with a path of its own, from stated parameters.
//!
//! Client `i` is a pure function of the population, its seed and `i`. The clients' ranks follow a sequence that fills the
//! space of ranks evenly (`client.rs`), so that a thousand clients have the parameters' quantiles already, and the first n of
//! more clients are a population of n.
//!
//! `region.rs` has the marginals of the Pangolin paper's section 3 with every assumption that its text leaves to us,
//! `structure.rs` in what bursts and outages packets are lost, `survey.rs` measures a population as the paper measured its clients and
//! `statement.rs` compares with what it says of them.
//! **All of it is synthetic**: the paper's traces were never published.

mod charts;
mod client;
mod quantiles;
mod region;
mod statement;
mod structure;
mod survey;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use client::Client;
pub use quantiles::Quantiles;
pub use region::Region;
pub use statement::Statement;
pub use structure::Structure;
pub use survey::{Survey, Surveyed};

use crate::chance::Chance;
use crate::channel::PathSpec;

/// Which clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PopulationKind {
    /// Those of North America.
    NorthAmerica,
    /// Those of Europe.
    Europe,
    /// Seven of ten from North America, as in the paper.
    Pangolin,
}

impl PopulationKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::NorthAmerica, Self::Europe, Self::Pangolin];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NorthAmerica => "na",
            Self::Europe => "eu",
            Self::Pangolin => "pangolin",
        }
    }
}

impl FromStr for PopulationKind {
    type Err = UnknownPopulation;

    fn from_str(name: &str) -> Result<Self, UnknownPopulation> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| UnknownPopulation(name.to_owned()))
    }
}

/// There is no such population.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPopulation(String);

impl fmt::Display for UnknownPopulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = PopulationKind::ALL.map(PopulationKind::name).join(", ");
        write!(f, "there is no population {}: there are {names}", self.0)
    }
}

impl std::error::Error for UnknownPopulation {}

/// Synthetic clients of one or two regions.
#[derive(Debug, Clone)]
pub struct Population {
    kind: PopulationKind,
    /// By region: North America, Europe.
    structures: [Structure; 2],
    chance: Chance,
}

/// Of ten clients so many are European ("70% unique clients from North America and 30% from Europe").
const EUROPEANS_OF_TEN: u32 = 3;

impl Population {
    /// The population of a kind, with the structure of losses that was fitted ([`Structure::FITTED`]). Different seeds are
    /// different clients from the same parameters.
    pub const fn new(kind: PopulationKind, seed: u64) -> Self {
        Self::with_structures(kind, Structure::FITTED, seed)
    }

    /// The same marginals with other structures of losses: North America's and Europe's.
    pub const fn with_structures(
        kind: PopulationKind,
        structures: [Structure; 2],
        seed: u64,
    ) -> Self {
        Self {
            kind,
            structures,
            chance: Chance::new(seed, RANKS),
        }
    }

    /// Which clients.
    pub const fn kind(&self) -> PopulationKind {
        self.kind
    }

    /// A client.
    pub fn client(&self, number: u32) -> Client {
        let [america, europe] = &self.structures;
        let america = (&Region::NORTH_AMERICA, america);
        let europe = (&Region::EUROPE, europe);
        // Of the mixed population the regions' clients are those that each region has alone.
        let europeans =
            |clients: u32| (u64::from(clients) * u64::from(EUROPEANS_OF_TEN) / 10) as u32;
        let ((region, structure), place) = match self.kind {
            PopulationKind::NorthAmerica => (america, number),
            PopulationKind::Europe => (europe, number),
            PopulationKind::Pangolin => {
                let before = europeans(number);
                if europeans(number.saturating_add(1)) > before {
                    (europe, before)
                } else {
                    (america, number - before)
                }
            }
        };
        let rank = |axis| client::rank(&self.chance, place, axis);
        Client::new(region, structure, number, rank)
    }

    /// The path of a client that is in the middle in every respect; of the mixed population, one of North America. Its source is
    /// the population's.
    pub fn typical(&self) -> PathSpec {
        let (region, structure) = match self.kind {
            PopulationKind::Europe => (&Region::EUROPE, &self.structures[1]),
            _ => (&Region::NORTH_AMERICA, &self.structures[0]),
        };
        let client = Client::new(region, structure, 0, |_| 0.5);
        PathSpec {
            name: self.to_string(),
            source: self.source(),
            ..client.path
        }
    }

    /// The first so many clients.
    pub fn clients(&self, count: u32) -> Vec<Client> {
        (0..count).map(|number| self.client(number)).collect()
    }

    /// Those of the first `count` clients whose mean round trip is at most `rtt_max`, and how many were left out: as the paper
    /// left out clients "as they cannot satisfy the latency requirement even in the absence of packet loss".
    pub fn clients_within(&self, count: u32, rtt_max: Duration) -> (Vec<Client>, u32) {
        let mut clients = self.clients(count);
        clients.retain(|client| client.rtt_mean <= rtt_max);
        let left_out = count - clients.len() as u32;
        (clients, left_out)
    }

    /// What it is and what was assumed, for reports.
    pub fn source(&self) -> String {
        let [america, europe] = &self.structures;
        let america = format!("{} {america}", Region::NORTH_AMERICA.about);
        let europe = format!("{} {europe}", Region::EUROPE.about);
        let regions = match self.kind {
            PopulationKind::NorthAmerica => america,
            PopulationKind::Europe => europe,
            PopulationKind::Pangolin => {
                format!("Seven of ten clients: {america} The others: {europe}")
            }
        };
        format!(
            "Synthetic clients, not measured ones. {regions} {}",
            region::COMMON
        )
    }
}

/// The stream of random numbers that ranks come from.
const RANKS: u64 = u64::from_le_bytes(*b"clients\0");

impl fmt::Display for Population {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "population:{}", self.kind.name())
    }
}
