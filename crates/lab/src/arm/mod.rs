//! Contenders: the same workload over anything that can carry messages, so that transports can be compared.
//!
//! An [`Arm`] is a transport with its settings. It makes two [`Side`]s: the server's and the client's, each on a thread of its
//! own and, in an emulated network, in a network namespace of its own. A *flow* is one client's connection; its number is told
//! by the client's address ([`Places`]), so that each flow can have a path of its own. Which side sends is up to the
//! [`Task`]; messages begin with a stamp, which the arm need not know of.
//!
//! Everything that is measured is measured outside of the arms: latency by the stamps, bytes and packets by the network.
//! `play.rs` plays a [`Workload`] through several arms at once: `workload.rs` says what one is and has the general one, `contest.rs`
//! the simplest, `stamp.rs` what messages say of themselves. `tcp.rs` is the arm that every kernel has; `sockets.rs` is what arms
//! over UDP share: many sockets and one wait.

#[cfg(unix)]
mod contest;
mod places;
#[cfg(unix)]
mod play;
mod sockets;
#[cfg(unix)]
mod stamp;
#[cfg(unix)]
mod tcp;
#[cfg(unix)]
mod workload;

#[cfg(all(test, unix))]
mod tests;

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

#[cfg(unix)]
pub use contest::{Contest, Played};
pub use places::Places;
#[cfg(unix)]
pub use play::{Entry, Phase, play};
pub use sockets::{Datagrams, SocketId};
#[cfg(unix)]
pub use stamp::{MESSAGE_MIN, NEVER};
#[cfg(unix)]
pub use tcp::Tcp;
#[cfg(unix)]
pub use workload::{Due, Exchange, Planned, Script, Shortcomings, Way, Workload};

/// A transport with its settings.
pub trait Arm: Send + Sync {
    /// Its name on the command line and in tables: lower case, `kcp`, `tcp-cubic`, `srt-fec`.
    fn name(&self) -> &str;

    /// How it is tuned and where that advice comes from, in a sentence for the report.
    fn settings(&self) -> String;

    /// The congestion control and the kernel settings (`/proc/sys/net/..`) of both sides' namespaces.
    fn stack(&self) -> Stack {
        Stack::default()
    }

    /// The server's side, listening at [`Places::server`]. Called on the thread that will use it.
    ///
    /// # Errors
    /// When the transport is not there or the address cannot be used.
    fn server(&self, places: &Places, task: &Task) -> Result<Box<dyn Side>, ArmError>;

    /// The clients' side: one connection a flow, from [`Places::client`] to [`Places::server`]. Called on the thread that will use it.
    /// Connections are made while it is driven.
    ///
    /// # Errors
    /// As [`Arm::server`].
    fn client(&self, places: &Places, task: &Task) -> Result<Box<dyn Side>, ArmError>;
}

/// What the messages are like: arms may tune themselves to it, as their users would.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Which side sends the messages.
    pub sender: Sender,
    /// Size of each message in bytes.
    pub message_bytes: usize,
    /// Time from one message of a flow to the next.
    pub interval: Duration,
    /// When a message is late, from the call of [`Side::send`].
    pub deadline: Duration,
    /// Share of messages that shall be on time, above 0 and below 1.
    pub on_time: f64,
    /// Median round trip of the network, for transports that ask for it.
    pub rtt: Duration,
}

/// Which side sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sender {
    /// Messages go to the clients.
    Server,
    /// Messages go to the server.
    Client,
}

/// One end of all flows of an arm. Stays on the thread that made it.
pub trait Side {
    /// How many flows can carry messages by now.
    fn ready(&self) -> u32;

    /// Gives a message to a flow. Never waits: what the transport has no room for is refused, and counts as never delivered.
    ///
    /// # Errors
    /// When the transport does not take the message.
    fn send(&mut self, flow: u32, message: &[u8]) -> Result<(), Refused>;

    /// Moves packets and runs timers until `until`, and hands on every whole message that arrives, at once.
    ///
    /// # Errors
    /// When the transport can no longer be used at all. A single flow's failure is no error: its messages never arrive.
    fn drive(
        &mut self,
        until: Instant,
        on_message: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), ArmError>;

    /// Time that programs have computed which the side runs for itself; what its own thread computes is measured from outside.
    fn programs_cpu(&self) -> Duration {
        Duration::ZERO
    }

    /// What the transport says of itself, for the report: names with units and numbers.
    fn counters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// Counter of arms with an erasure code: symbols that the messages needed.
pub const SOURCE_SYMBOLS: &str = "source_symbols";
/// Counter of arms with an erasure code: symbols that were sent.
pub const SYMBOLS_SENT: &str = "symbols_sent";

/// The transport did not take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// What of the kernel's own transport an arm needs to be otherwise than usual.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stack {
    /// Congestion control of TCP on the routes; None for arms without TCP.
    pub congestion_control: Option<String>,
    /// Segments that TCP sends before the first acknowledgement, and at most after a pause; None: as the kernel has it, 10.
    pub initial_window: Option<u32>,
    /// Names below `/proc/sys/net/ipv4/`, with their values.
    pub sysctls: Vec<(&'static str, String)>,
}

/// Why an arm cannot run.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArmError {
    /// The transport is not on this machine, or this program was built without it.
    Missing {
        /// Which arm.
        arm: String,
        /// What to do about it.
        remedy: String,
    },
    /// The system refused.
    System {
        /// Which arm.
        arm: String,
        /// What was to be done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The transport failed as a whole.
    Failed {
        /// Which arm.
        arm: String,
        /// What it said.
        why: String,
    },
}

impl ArmError {
    /// The system refused to do `what` for `arm`.
    pub fn system(
        arm: impl Into<String>,
        what: impl Into<String>,
    ) -> impl FnOnce(io::Error) -> Self {
        let (arm, what) = (arm.into(), what.into());
        move |source| Self::System { arm, what, source }
    }

    /// Which arm cannot run.
    pub fn arm(&self) -> &str {
        match self {
            Self::Missing { arm, .. } | Self::System { arm, .. } | Self::Failed { arm, .. } => arm,
        }
    }
}

impl fmt::Display for ArmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { arm, remedy } => write!(f, "{arm} is not here: {remedy}"),
            Self::System { arm, what, source } => write!(f, "{arm} failed at {what}: {source}"),
            Self::Failed { arm, why } => write!(f, "{arm} failed: {why}"),
        }
    }
}

impl std::error::Error for ArmError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            Self::Missing { .. } | Self::Failed { .. } => None,
        }
    }
}
