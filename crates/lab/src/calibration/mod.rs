//! The emulator against itself: what a network was told to do, and what plain UDP sockets see of it.
//!
//! Both ends are on this machine, so that one clock times a packet at both. `probe.rs` sends packets, `scenes.rs` has the networks and
//! what is to be seen of each.

mod probe;
mod scenes;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;

use serde::Serialize;

use crate::emulator::EmulatorError;
use scenes::{SCENES, Scene};

/// Something that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What.
    pub check: String,
    /// In which unit; empty: a number of things, or a share.
    pub unit: &'static str,
    /// What the network was told.
    pub configured: f64,
    /// The least that may be measured.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// What was measured.
    pub measured: f64,
    /// Whether it is within the bounds.
    pub is_within: bool,
}

impl Row {
    fn new(
        check: impl Into<String>,
        unit: &'static str,
        configured: f64,
        (low, high): (f64, f64),
        measured: f64,
    ) -> Self {
        Self {
            check: check.into(),
            unit,
            configured,
            low,
            high,
            measured,
            // NaN, of nothing that was measured, is within nothing.
            is_within: (low..=high).contains(&measured),
        }
    }

    /// A share of independent events, which is to be where its 95 % interval holds what was configured (Wilson's, solved for the
    /// share).
    fn share(check: impl Into<String>, configured: f64, hits: u64, of: u64) -> Self {
        let deviation = (configured * (1.0 - configured) / of.max(1) as f64).sqrt();
        let half = Z95 * deviation;
        let bounds = (configured - half, configured + half);
        Self::new(check, "", configured, bounds, hits as f64 / of as f64)
    }
}

/// Of the normal distribution: 95 % lie within so many deviations.
const Z95: f64 = 1.96;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Some ten seconds.
    Quick,
    /// Four times as much.
    Full,
}

/// Why it could not be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum CalibrationError {
    /// There is no network.
    Emulator(EmulatorError),
    /// The sockets failed.
    Sockets(io::Error),
}

impl fmt::Display for CalibrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Emulator(error) => error.fmt(f),
            Self::Sockets(error) => {
                write!(f, "the sockets on the emulated network failed: {error}")
            }
        }
    }
}

impl std::error::Error for CalibrationError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Emulator(error) => Some(error),
            Self::Sockets(error) => Some(error),
        }
    }
}

impl From<EmulatorError> for CalibrationError {
    fn from(error: EmulatorError) -> Self {
        Self::Emulator(error)
    }
}

impl From<io::Error> for CalibrationError {
    fn from(error: io::Error) -> Self {
        Self::Sockets(error)
    }
}

/// What came of all networks.
#[derive(Debug, Clone, Default)]
pub struct Calibration {
    /// In the order of measuring.
    pub rows: Vec<Row>,
    /// Networks that were measured a second time, since something was out of bounds at first.
    pub repeated: Vec<&'static str>,
    /// Whether it was ended before its time.
    pub is_interrupted: bool,
}

impl Calibration {
    /// What is out of bounds.
    pub fn failures(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.is_within)
    }

    /// Whether the machine holds the timing that is asked for.
    pub fn holds_timing(&self) -> bool {
        let mut timing = self.failures().filter(|row| row.check == scenes::TIMING);
        timing.next().is_none()
    }
}

/// Measures one network after the other; `watch` hears which, and how many are over, and ends it by returning false.
///
/// What is out of bounds is measured once more: of twenty intervals of 95 % one misses by chance, of 400 one does so twice; and a
/// machine that was busy for a moment is no worse than its next.
///
/// # Errors
/// When there is no network.
pub fn calibrate(
    effort: Effort,
    seed: u64,
    mut watch: impl FnMut(&'static str, usize) -> bool,
) -> Result<Calibration, CalibrationError> {
    let mut calibration = Calibration::default();
    for (number, Scene { name, measure }) in SCENES.iter().enumerate() {
        if !watch(name, number) {
            calibration.is_interrupted = true;
            break;
        }
        let mut rows = measure(effort, seed)?;
        if rows.iter().any(|row| !row.is_within) {
            if !watch(name, number) {
                calibration.is_interrupted = true;
                break;
            }
            let again = measure(effort, seed.wrapping_add(1))?;
            rows = second_chance(rows, &again);
            calibration.repeated.push(name);
        }
        calibration.rows.append(&mut rows);
    }
    Ok(calibration)
}

/// The rows of the first measurement that were within, and those of the second in place of the others: what was within once is not asked again.
fn second_chance(first: Vec<Row>, second: &[Row]) -> Vec<Row> {
    let better = |row: Row| {
        let again = second.iter().find(|again| again.check == row.check);
        again.filter(|_| !row.is_within).cloned().unwrap_or(row)
    };
    first.into_iter().map(better).collect()
}

/// How many networks there are.
pub const NETWORKS: usize = SCENES.len();
