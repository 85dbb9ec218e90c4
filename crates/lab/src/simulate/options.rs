//! What to simulate, checked once.

use std::fmt;
use std::time::Duration;

use punctual_policy::PolicyKind;
use punctual_proto::{Promise, SendOptions, limits};

use crate::channel::{PathSpec, SpecError};
use crate::genie::Task;

/// What to simulate.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// The network; forward is the way of the messages.
    pub path: PathSpec,
    /// When a message is late.
    pub deadline: Duration,
    /// Share of messages that should be on time, above 0 and below 1.
    pub on_time: f64,
    /// Source symbols of a message, 1..=64; None leaves it to the policy.
    pub symbols: Option<u8>,
    /// Bytes of a message, from 16 to 256 KiB.
    pub message_bytes: usize,
    /// Sessions, 1..=100,000.
    pub sessions: u32,
    /// Whose share of messages is to be on time; only `steered` shares it.
    pub promise: Promise,
    /// Time between two messages of a session.
    pub interval: Duration,
    /// How often all hosts look at their network and their timers, as games do once a frame, up to a second; zero: whenever something happens.
    pub frame: Duration,
    /// Messages in all, per policy.
    pub messages: u64,
    /// The policies to compare.
    pub policies: Vec<PolicyKind>,
    /// Repeats the run.
    pub seed: u64,
    /// Largest UDP payload, in bytes.
    pub datagram_max: u16,
    /// Whether [`PolicyResult::fates`](super::PolicyResult::fates) are kept: two bytes a message, and some time.
    pub keeps_fates: bool,
}

/// Why options make no sense.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionsError {
    /// The path.
    Path(SpecError),
    /// A number is out of its range.
    Range {
        /// Which, and its range.
        what: &'static str,
    },
    /// Within a minute not all clients could open a session over this path. (Those that could are not all: figures of them would leave out who has it worst.)
    Unreachable {
        /// Sessions that were opened.
        connected: u32,
        /// Of so many.
        of: u32,
    },
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => write!(f, "{error}"),
            Self::Range { what } => write!(f, "{what}"),
            Self::Unreachable { connected: 0, .. } => f.write_str(
                "no session could be opened within a minute over this path; let it lose less, or later",
            ),
            Self::Unreachable { connected, of } => write!(
                f,
                "only {connected} of {of} sessions could be opened within a minute over this path; let it lose less, or later"
            ),
        }
    }
}

impl std::error::Error for OptionsError {}

impl SimulateOptions {
    /// The defaults of the command over a path: 2,048 bytes once a second in each of 1,000 sessions.
    pub fn new(path: PathSpec, deadline: Duration) -> Self {
        Self {
            path,
            deadline,
            on_time: 0.999,
            symbols: None,
            message_bytes: 2048,
            sessions: 1000,
            promise: Promise::default(),
            interval: Duration::from_secs(1),
            frame: Duration::ZERO,
            messages: 100_000,
            policies: vec![PolicyKind::default()],
            seed: 1,
            datagram_max: limits::MTU_MAX,
            keeps_fates: false,
        }
    }

    pub(super) fn send_options(&self) -> SendOptions {
        let options = SendOptions::within(self.deadline).on_time(self.on_time as f32);
        SendOptions {
            source_symbols: self.symbols,
            ..options
        }
    }

    /// The messages, as the genie sees them.
    pub(super) fn task(&self) -> Task {
        Task {
            message_bytes: self.message_bytes,
            symbols: self.symbols,
            deadline: self.deadline,
            interval: self.interval,
            frame: self.frame,
            messages: self.messages,
            datagram_max: self.datagram_max,
        }
    }

    pub(super) fn check(&self) -> Result<(), OptionsError> {
        self.path.check().map_err(OptionsError::Path)?;
        let sizes = super::tally::STAMP_LEN..=limits::MESSAGE_MAX;
        let checks = [
            (
                // As messages say it.
                self.on_time as f32 > 0.0 && (self.on_time as f32) < 1.0,
                "the on-time target must be above 0 and below 1, as an f32 as well",
            ),
            (
                self.symbols
                    .is_none_or(|symbols| (1..=64).contains(&symbols)),
                "a message has 1 to 64 source symbols",
            ),
            (
                sizes.contains(&self.message_bytes),
                "messages have 16 to 262144 bytes",
            ),
            (
                (1..=100_000).contains(&self.sessions),
                "there must be 1 to 100000 sessions",
            ),
            (
                self.interval >= Duration::from_micros(1),
                "the interval between messages must be above zero",
            ),
            (
                (1..=1_000_000_000).contains(&self.messages),
                "there must be 1 to 1000000000 messages",
            ),
            (
                self.frame <= Duration::from_secs(1),
                "a frame lasts a second at most",
            ),
            (!self.deadline.is_zero(), "the deadline must be above zero"),
            (!self.policies.is_empty(), "at least one policy is needed"),
            (
                (limits::MTU_MIN..=limits::MTU_MAX).contains(&self.datagram_max),
                "datagrams have 1200 to 1472 bytes",
            ),
        ];
        match checks.into_iter().find(|(is_fine, _)| !is_fine) {
            Some((_, what)) => Err(OptionsError::Range { what }),
            None => Ok(()),
        }
    }
}
