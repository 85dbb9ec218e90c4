//! Built-in paths: parameters with their source stated.
//!
//! Each says in [`PathSpec::source`] what was measured and what was merely chosen. Where a profile follows recorded traces,
//! the numbers are those that `TraceSummary` gives for them (`tests/recorded.rs` prints them beside the profile's own).

mod built_in;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::channel::PathSpec;
use crate::world::Forward;

/// A built-in path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Profile {
    /// A long path at a busy hour: random loss, bursts of loss, and varying delay. The default.
    #[default]
    BusyHour,
    /// A busy Wi-Fi: bursts of loss and varying delay.
    BurstyWifi,
    /// A cellular link: varying delay, little loss, limited rate.
    Lte,
    /// Low-orbit satellites: an outage of half a second each 15 s, wandering delay.
    Starlink,
    /// A long wired path with little loss.
    Transatlantic,
    /// What Pangolin's table 2 was measured on.
    PangolinTable2,
    /// What the thin-streams paper was measured on.
    ThinStreams,
    /// A wired access line with a narrow uplink.
    Dsl,
    /// Nothing is ever lost or late.
    Clean,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::BusyHour,
        Self::BurstyWifi,
        Self::Lte,
        Self::Starlink,
        Self::Transatlantic,
        Self::PangolinTable2,
        Self::ThinStreams,
        Self::Dsl,
        Self::Clean,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BusyHour => "busy-hour",
            Self::BurstyWifi => "bursty-wifi",
            Self::Lte => "lte",
            Self::Starlink => "starlink",
            Self::Transatlantic => "transatlantic",
            Self::PangolinTable2 => "pangolin-table2",
            Self::ThinStreams => "thin-streams",
            Self::Dsl => "dsl",
            Self::Clean => "clean",
        }
    }

    /// What it is, in a line.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::BusyHour => {
                "130 ms round trip that varies, 3 % loss each way, a third of it in bursts of 20 ms"
            }
            Self::BurstyWifi => {
                "busy Wi-Fi: 2 % loss in bursts of 12 ms, delay 24 to 70 ms each way"
            }
            Self::Lte => "cellular: delay 15 to 70 ms each way, 0.6 % loss, 6 Mbit/s up and 8 down",
            Self::Starlink => "satellite: dark for 0.5 s each 15 s, delay wanders, 0.1 % loss",
            Self::Transatlantic => "90 ms round trip, 0.1 % loss, little variation",
            Self::PangolinTable2 => "250 ms round trip, 2 % loss on the way out only",
            Self::ThinStreams => "130 ms round trip, 2 % loss each way",
            Self::Dsl => "16 Mbit/s down and 1 up with a deep queue, 0.1 % loss in short bursts",
            Self::Clean => "20 ms round trip, nothing lost",
        }
    }

    /// The path of messages that go one way: of an access line, its way up or its way down.
    pub fn path_of(self, messages: Forward) -> PathSpec {
        match self {
            Self::Lte | Self::Dsl => messages.facing(self.path()),
            _ => self.path(),
        }
    }

    /// The path. Forward is the way of the messages; of an access line, its way up.
    pub fn path(self) -> PathSpec {
        match self {
            Self::BusyHour => built_in::busy_hour(),
            Self::BurstyWifi => built_in::bursty_wifi(),
            Self::Lte => built_in::lte(),
            Self::Starlink => built_in::starlink(),
            Self::Transatlantic => built_in::transatlantic(),
            Self::PangolinTable2 => built_in::pangolin_table2(),
            Self::ThinStreams => built_in::thin_streams(),
            Self::Dsl => built_in::dsl(),
            Self::Clean => built_in::clean(),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| UnknownProfile {
                asked: name.to_owned(),
            })
    }
}

/// There is no profile of that name; the message lists those that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProfile {
    /// What was asked for.
    pub asked: String,
}

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no profile is called `{}`; there are", self.asked)?;
        for (i, profile) in Profile::ALL.iter().enumerate() {
            write!(f, "{} {profile}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownProfile {}
