//! What a scenario is: plain values with units, checked.
//!
//! `file.rs` is the file format, field by field; `check/` makes these values of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use punctual_policy::PolicyKind;
use punctual_proto::{Promise, Uplink, WhenLate, limits};

use super::error::{self, Refusal, ScenarioError};
use super::{Traffic, check};
use crate::channel::PathSpec;
use crate::world::{Forward, LinkSpec};

/// Several streams in many sessions, over one network.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What reports call it.
    pub name: String,
    /// A sentence or two for the report; may be empty.
    pub about: String,
    /// Clients, each with a session of its own: 1..=100,000.
    pub sessions: u32,
    /// How long messages are sent: 0.1 s to a day.
    pub duration: Duration,
    /// What is sent before this is reported apart; goodput and links are measured from here on.
    pub settle: Duration,
    /// Repeats the run.
    pub seed: u64,
    /// Where the messages go; also what is forward on `path`.
    pub direction: Forward,
    /// Which policy decides how many symbols are sent.
    pub policy: PolicyKind,
    /// Whose share of messages is to be on time.
    pub promise: Promise,
    /// What the server is told of the way out that its sessions share.
    pub uplink: Uplink,
    /// Each session's own path.
    pub path: PathSpec,
    /// Largest IP packet in bytes; None: as large as any.
    pub mtu: Option<u16>,
    /// A link that all share, towards the receivers, after (or before) their own paths.
    pub link: Option<Bottleneck>,
    /// Other traffic through the link.
    pub rivals: Option<Rivals>,
    /// What streams without deadlines do while few packets are in flight.
    pub thin: Thin,
    /// The streams that every session has, up to 64; with none it is a network for other programs.
    pub streams: Vec<StreamSpec>,
}

impl Scenario {
    /// Largest UDP payload of a session.
    pub(super) fn datagram_max(&self) -> u16 {
        let by_mtu = self.mtu.unwrap_or(u16::MAX) - limits::UDP_IP_HEADER as u16;
        by_mtu.min(limits::MTU_MAX)
    }
}

/// A shared link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bottleneck {
    /// Its rate.
    pub bits_per_second: u64,
    /// What may wait before it; what comes on top is dropped.
    pub queue_bytes: u64,
    /// Packets that find so many bytes waiting are marked; None: nothing is.
    pub ecn_mark_bytes: Option<u64>,
}

impl From<Bottleneck> for LinkSpec {
    fn from(bottleneck: Bottleneck) -> Self {
        Self {
            rate_bits_per_second: bottleneck.bits_per_second,
            queue_bytes: bottleneck.queue_bytes,
            ecn_mark_bytes: bottleneck.ecn_mark_bytes,
            is_policer: false,
        }
    }
}

/// Other traffic through the shared link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rivals {
    /// TCP downloads with CUBIC that never end.
    pub cubic: u32,
    /// When they begin.
    pub start: Duration,
    /// When they end; None: with the scenario.
    pub stop: Option<Duration>,
}

/// What streams without deadlines do while few packets are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thin {
    /// Timeouts do not double.
    pub has_linear_timeouts: bool,
    /// One later acknowledgement is enough to send again.
    pub has_one_later_ack: bool,
    /// What is unacknowledged and small goes along in the spare room of later packets.
    pub has_bundling: bool,
    /// At most so many bytes a packet; None: as the protocol does.
    pub bundle_bytes_max: Option<u32>,
}

impl Default for Thin {
    /// All on, as the protocol's own default is.
    fn default() -> Self {
        Self {
            has_linear_timeouts: true,
            has_one_later_ack: true,
            has_bundling: true,
            bundle_bytes_max: None,
        }
    }
}

/// A stream that every session has.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamSpec {
    /// What reports call it; no two alike.
    pub name: String,
    /// How its messages are delivered.
    pub delivery: DeliveryMode,
    /// Its share of the budget against the other streams.
    pub weight: u16,
    /// What is shared by weight.
    pub fairness: FairnessMeasure,
    /// Of its messages; higher goes first.
    pub importance: u8,
    /// When its messages are late; None: never.
    pub deadline: Option<Duration>,
    /// Share of them that shall be on time, above 0 and below 1.
    pub on_time: f32,
    /// What happens after the deadline.
    pub when_late: WhenLate,
    /// Share of messages that may be left out when the budget is short.
    pub loss_tolerance: f32,
    /// Of [`DeliveryMode::Latest`]: its messages take turns with so many keys.
    pub keys: u32,
    /// With [`FairnessMeasure::Quality`]: what a message adds to it; None: as the protocol does.
    pub quality: Option<f32>,
    /// Latencies for which the result says what share of messages kept them.
    pub bounds: Vec<Duration>,
    /// Its messages.
    pub traffic: Traffic,
}

impl StreamSpec {
    /// What a message adds to the quality.
    pub(super) fn quality(&self) -> f32 {
        self.quality.unwrap_or(1.0)
    }

    /// The key of message `number`, as its stamp has it: messages that were refused have no number.
    pub fn key_of(&self, number: u64) -> u64 {
        number % u64::from(self.keys)
    }
}

/// As `punctual_proto::Delivery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryMode {
    /// Sent with what the policy gives it, and then forgotten.
    Unreliable,
    /// The same; what is older than the newest that arrived is not handed on.
    UnreliableSequenced,
    /// Until it arrives.
    Reliable,
    /// Until it arrives, and handed on in the order of sending.
    ReliableOrdered,
    /// A newer message takes the place of an older one with the same key.
    Latest,
}

impl DeliveryMode {
    /// The name in scenario files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreliable => "unreliable",
            Self::UnreliableSequenced => "unreliable_sequenced",
            Self::Reliable => "reliable",
            Self::ReliableOrdered => "reliable_ordered",
            Self::Latest => "latest",
        }
    }
}

/// As `punctual_proto::Fairness`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FairnessMeasure {
    /// Streams of equal weight send equally many bytes.
    #[default]
    Bytes,
    /// Streams of equal weight have equal quality.
    Quality,
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// When it cannot be read or makes no sense; see [`ScenarioError`].
    pub fn open(path: &Path) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let unreadable = |error| ScenarioError {
            file: file.clone(),
            line: None,
            why: Refusal::Unreadable(error),
        };
        let text = read_bounded(path).map_err(unreadable)?;
        Self::parse(&file, &text)
    }

    /// Reads the text of a scenario file; `file` is for errors, its stem the name of a scenario that has none, and its folder
    /// where recordings are looked for.
    ///
    /// # Errors
    /// When it makes no sense; see [`ScenarioError`].
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let raw = toml::from_str(text).map_err(|error| error::syntax(file, text, &error))?;
        check::scenario(raw, Path::new(file)).map_err(|problem| problem.in_text(file, text))
    }
}

/// Bytes of a scenario file at most: more is something else, such as a device.
const FILE_MAX: u64 = 1 << 20;

fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(FILE_MAX + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX {
        let message = format!("it has more than {FILE_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}
