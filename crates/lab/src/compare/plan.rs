//! What is played, checked once.

use std::fmt;
use std::time::Duration;

use punctual_policy::{MISS_TARGETS_MAX, PolicyKind};

use super::{Recording, Rivals};
use crate::simulate::{OptionsError, SimulateOptions};

/// Bytes of a message for each of its symbols. So large that no second symbol fits into a packet: nothing is bundled, and what is
/// compared is the policies. With headers it fits the 1,200 bytes with which a session begins.
pub const SYMBOL_BYTES: usize = 1000;
/// Least messages of a run: with fewer not even 99 % can be told from less.
pub const MESSAGES_MIN: u64 = 100;
/// Most messages of a run: at one each 20 ms five hours and a half, longer than most recordings. For each two bytes are kept.
pub const MESSAGES_MAX: u64 = 1_000_000;
/// Most rows, each of which is kept.
const ROWS_MAX: usize = 1_000_000;
/// Deadlines are multiples of the median round trip within this.
const DEADLINE_RANGE: std::ops::RangeInclusive<f64> = 0.1..=100.0;

/// Deadlines in median round trips, unless asked otherwise: from less than a round trip to time for several rounds.
pub const DEADLINES_RTT: [f64; 6] = [0.8, 1.2, 1.6, 2.0, 3.0, 5.0];
/// Shares of messages that shall be on time, unless asked otherwise.
pub const ON_TIME_TARGETS: [f64; 2] = [0.99, 0.999];
/// Source symbols of messages, unless asked otherwise.
pub const SYMBOLS: [u8; 4] = [1, 2, 4, 16];
/// Messages of a run, unless asked otherwise: so many that a dozen and a half recordings take less than a quarter of an hour on one
/// core.
pub const MESSAGES: u64 = 5000;

/// What is played.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The networks.
    pub recordings: Vec<Recording>,
    /// Deadlines, in median round trips of each recording; 0.1 to 100.
    pub deadlines_rtt: Vec<f64>,
    /// Shares of messages that shall be on time, above 0 and below 1.
    pub on_time_targets: Vec<f64>,
    /// Source symbols of messages, 1..=64.
    pub symbols: Vec<u8>,
    /// The policies.
    pub policies: Vec<PolicyKind>,
    /// Messages of each policy in each row; [`MESSAGES_MIN`] to [`MESSAGES_MAX`].
    pub messages: u64,
    /// Rows that chance leaves open ([`Rivals::leave_open`]) are played again, each time with four times as many messages, up to so
    /// many; at least `messages`, which is: never.
    pub messages_max: u64,
    /// Between whom that is asked; None: nobody, and no row is played again.
    pub rivals: Option<Rivals>,
    /// Time from one message to the next.
    pub interval: Duration,
    /// Where in each recording a run begins, and everything else that is drawn.
    pub seed: u64,
}

/// One row: a recording, and what is asked of the policies over it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setup {
    /// Which of the plan's recordings.
    pub recording: usize,
    /// The deadline in median round trips.
    pub deadline_rtt: f64,
    /// Share of messages that shall be on time.
    pub on_time: f64,
    /// Source symbols of a message.
    pub symbols: u8,
}

/// Why policies cannot be compared.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CompareError {
    /// A number of the plan is out of its range.
    Range {
        /// Which, and its range.
        what: String,
    },
    /// A recording cannot be played.
    Recording {
        /// Its name.
        name: String,
        /// Why.
        error: OptionsError,
    },
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range { what } => write!(f, "{what}"),
            Self::Recording { name, error } => write!(f, "{name}: {error}"),
        }
    }
}

impl std::error::Error for CompareError {}

impl Plan {
    /// The defaults over these recordings, for these policies.
    pub fn new(recordings: Vec<Recording>, policies: Vec<PolicyKind>) -> Self {
        Self {
            recordings,
            deadlines_rtt: DEADLINES_RTT.into(),
            on_time_targets: ON_TIME_TARGETS.into(),
            symbols: SYMBOLS.into(),
            policies,
            messages: MESSAGES,
            messages_max: MESSAGES,
            rivals: None,
            interval: Duration::from_millis(20),
            seed: 1,
        }
    }

    /// Whether the numbers make sense.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), CompareError> {
        let fail = |what: String| Err(CompareError::Range { what });
        let lists = [
            (self.recordings.len(), "trace"),
            (self.deadlines_rtt.len(), "deadline"),
            (self.on_time_targets.len(), "target"),
            (self.symbols.len(), "number of symbols"),
            (self.policies.len(), "policy"),
        ];
        if let Some((_, name)) = lists.iter().find(|(length, _)| *length == 0) {
            return fail(format!("at least one {name} is needed"));
        }
        let is_odd = |deadline: &&f64| !DEADLINE_RANGE.contains(*deadline);
        if let Some(deadline) = self.deadlines_rtt.iter().find(is_odd) {
            return fail(format!(
                "deadlines are 0.1 to 100 median round trips, not {deadline}"
            ));
        }
        if !(MESSAGES_MIN..=MESSAGES_MAX).contains(&self.messages) {
            return fail(format!(
                "a run has {MESSAGES_MIN} to {MESSAGES_MAX} messages, not {}",
                self.messages
            ));
        }
        if !(self.messages..=MESSAGES_MAX).contains(&self.messages_max) {
            return fail(format!(
                "rows that chance leaves open are played again with {} to {MESSAGES_MAX} messages, not {}",
                self.messages, self.messages_max
            ));
        }
        // Of more targets some would be served by the tables of another, depending on which were asked for first.
        if self.on_time_targets.len() > MISS_TARGETS_MAX {
            return fail(format!("there may be at most {MISS_TARGETS_MAX} targets"));
        }
        let rows = lists[..4]
            .iter()
            .try_fold(1usize, |rows, (length, _)| rows.checked_mul(*length));
        if rows.is_none_or(|rows| rows > ROWS_MAX) {
            return fail(format!("there may be at most {ROWS_MAX} rows"));
        }
        Ok(())
    }

    /// All rows, in order.
    pub fn setups(&self) -> Vec<Setup> {
        let mut setups = Vec::new();
        for recording in 0..self.recordings.len() {
            for &deadline_rtt in &self.deadlines_rtt {
                for &on_time in &self.on_time_targets {
                    setups.extend(self.symbols.iter().map(|&symbols| Setup {
                        recording,
                        deadline_rtt,
                        on_time,
                        symbols,
                    }));
                }
            }
        }
        setups
    }

    /// What is simulated for a row, with so many messages.
    pub(super) fn options(&self, setup: &Setup, messages: u64) -> SimulateOptions {
        let recording = &self.recordings[setup.recording];
        SimulateOptions {
            on_time: setup.on_time,
            symbols: Some(setup.symbols),
            message_bytes: usize::from(setup.symbols) * SYMBOL_BYTES,
            sessions: 1,
            interval: self.interval,
            messages,
            policies: self.policies.clone(),
            seed: self.seed,
            keeps_fates: true,
            ..SimulateOptions::new(recording.path.clone(), deadline(recording, setup))
        }
    }
}

/// Whole microseconds, as latencies are.
pub(super) fn deadline(recording: &Recording, setup: &Setup) -> Duration {
    let micros = recording.rtt_median.as_secs_f64() * setup.deadline_rtt * 1e6;
    Duration::from_micros((micros.round() as u64).max(1))
}
