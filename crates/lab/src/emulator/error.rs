//! Why there is no emulated network.

use std::fmt;
use std::io;

use super::{PATHS_MAX, packet};
use crate::channel::SpecError;

/// Why a network could not be emulated.
#[derive(Debug)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The kernel does not let this user make network namespaces.
    Privilege(io::Error),
    /// There are no TUN devices.
    Tun(io::Error),
    /// The program `ip` is not there.
    NoIp(io::Error),
    /// The program `ip` said no.
    Ip {
        /// What it said.
        said: String,
    },
    /// A kernel setting does not exist or does not take the value.
    Setting {
        /// Its name.
        name: String,
        /// The value.
        value: String,
        /// What the system said.
        source: io::Error,
    },
    /// A path makes no sense.
    Path(SpecError),
    /// Too few or too many.
    Range {
        /// Of what.
        what: &'static str,
        /// How many were asked for.
        value: usize,
        /// How many there may be.
        max: usize,
    },
    /// Packets may not be as small as that.
    Mtu(u16),
    /// A file of drops or packets could not be written.
    File {
        /// Which.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system no longer lets us wait, read or write.
    System {
        /// What was to be done.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// It has ended before.
    Ended,
}

impl EmulatorError {
    pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    /// Whether this machine has no emulator: the privilege, the devices or the program `ip` are missing.
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Privilege(_) | Self::Tun(_) | Self::NoIp(_))
    }

    /// Whether the user can do something about it: no fault of the program or the moment.
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::System { .. } | Self::Ended)
    }
}

impl fmt::Display for EmulatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Privilege(source) => write!(
                f,
                "the emulator makes network namespaces, which needs root or a kernel that allows user namespaces ({source}): \
                 run it with sudo, or use `punctual lab simulate`, which needs no privilege"
            ),
            Self::Tun(source) => write!(
                f,
                "this kernel gives no TUN device at /dev/net/tun ({source}): load the module `tun`, or let the container use it"
            ),
            Self::NoIp(source) => write!(
                f,
                "the emulator sets addresses with the program `ip`, which could not be run ({source}): install the package iproute2"
            ),
            Self::Ip { said } => write!(f, "`ip` could not set the network up: {said}"),
            Self::Setting {
                name,
                value,
                source,
            } => write!(
                f,
                "this kernel does not take {value} for /proc/sys/net/ipv4/{name}: {source}"
            ),
            Self::Path(error) => error.fmt(f),
            Self::Range { what, value, max } => {
                write!(f, "an emulator has 1 to {max} {what}, not {value}")
            }
            Self::Mtu(mtu) => write!(
                f,
                "the MTU must be {} to 65535 bytes, not {mtu}",
                packet::MTU_MIN
            ),
            Self::File { name, source } => write!(f, "{name} could not be written: {source}"),
            Self::System { what, source } => write!(f, "{what}: {source}"),
            Self::Ended => write!(f, "the emulator has ended before"),
        }
    }
}

impl std::error::Error for EmulatorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Privilege(source)
            | Self::Tun(source)
            | Self::NoIp(source)
            | Self::Setting { source, .. }
            | Self::File { source, .. }
            | Self::System { source, .. } => Some(source),
            Self::Path(error) => Some(error),
            Self::Ip { .. } | Self::Range { .. } | Self::Mtu(_) | Self::Ended => None,
        }
    }
}

const _: () = assert!(
    PATHS_MAX < 1 << 23,
    "clients' addresses are the upper half of 10.0.0.0/8"
);
