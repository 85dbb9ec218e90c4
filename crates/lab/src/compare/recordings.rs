//! The traces of a folder: which can be played, and what each is for.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::channel::PathSpec;
use crate::trace::{PathOptions, Trace, TraceError, files_below};

/// Recordings, at most: with the defaults as many take half a day.
const RECORDINGS_MAX: usize = 1000;

/// What a recording is for: the numbers of this project's policies and of its transport were chosen while looking at some, and are judged on others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Numbers were tuned on it.
    Tuning,
    /// It judges them.
    Judged,
}

/// The recordings that numbers were tuned on, as they are published: every second one in the order of their names, which has nothing to do with how they
/// came out, and puts neighbours of one kind into different parts.
const TUNED_ON: [&str; 9] = [
    "hairpin/cell/trace1.log",
    "hairpin/eth/trace10.log",
    "hairpin/eth/trace2.log",
    "hairpin/eth/trace6.log",
    "hairpin/wifi/trace1.log",
    "hairpin/wifi/trace13.log",
    "hairpin/wifi/trace5.log",
    "hairpin/wifi/trace9.log",
    "starlink_ping/no-isl-ping-gw-seattle-230911-170535-0.1s-60min.txt",
];

impl Part {
    /// The rule, for reports.
    pub const RULE: &'static str = "nine published recordings, known by their paths, are those that numbers were tuned on; all others judge";

    /// Of the recording in a file.
    fn of_file(file: &Path) -> Self {
        // However the folder was named.
        let whole = file.canonicalize();
        let file = whole.as_deref().unwrap_or(file);
        if TUNED_ON.iter().any(|known| file.ends_with(known)) {
            Self::Tuning
        } else {
            Self::Judged
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tuning => "tuning",
            Self::Judged => "judged",
        })
    }
}

/// A trace to play.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Its file's path below the folder.
    pub name: String,
    /// What it is for.
    pub part: Part,
    /// What it is as a network.
    pub path: PathSpec,
    /// The median of its round trips, of which deadlines are multiples.
    pub rtt_median: Duration,
}

/// The traces of a folder.
#[derive(Debug, Clone)]
pub struct Recordings {
    /// Those with delays and losses, in the order of their names.
    pub used: Vec<Recording>,
    /// Files that are no traces, or traces without delays.
    pub passed_over: Vec<String>,
}

/// Why a folder's traces cannot be played.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordingsError {
    /// Something could not be read.
    Read {
        /// What.
        place: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is a trace, and broken.
    Broken(TraceError),
    /// No file is a trace with delays.
    None {
        /// The folder.
        place: PathBuf,
        /// How many other files there are.
        others: usize,
    },
    /// There are more than 1,000.
    TooMany,
}

impl fmt::Display for RecordingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { place, error } => {
                write!(f, "{} cannot be read: {error}", place.display())
            }
            Self::Broken(error) => write!(f, "{error}"),
            Self::None { place, others: 0 } => write!(
                f,
                "{} is empty: put traces with delays and losses there",
                place.display()
            ),
            Self::None { place, others } => write!(
                f,
                "{} has no trace with delays among its {others} files: name a folder of pings, hairpin logs, irtt JSON or CSV",
                place.display()
            ),
            Self::TooMany => write!(
                f,
                "there are more than {RECORDINGS_MAX} traces: name a folder with fewer"
            ),
        }
    }
}

impl std::error::Error for RecordingsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { error, .. } => Some(error),
            Self::Broken(error) => Some(error),
            Self::None { .. } | Self::TooMany => None,
        }
    }
}

impl Recordings {
    /// The traces below a folder, or the one of a file.
    ///
    /// # Errors
    /// When something cannot be read, a trace is broken, or there is none.
    pub fn below(place: &Path) -> Result<Self, RecordingsError> {
        let files = match place.is_file() {
            true => vec![place.to_owned()],
            false => files_below(place)
                .map_err(|(place, error)| RecordingsError::Read { place, error })?,
        };
        let mut all = Self {
            used: Vec::new(),
            passed_over: Vec::new(),
        };
        for file in &files {
            let name = name_below(place, file);
            match playable(file).map_err(RecordingsError::Broken)? {
                Some((path, rtt_median)) => all.used.push(Recording {
                    name,
                    part: Part::of_file(file),
                    path,
                    rtt_median,
                }),
                None => all.passed_over.push(name),
            }
            if all.used.len() > RECORDINGS_MAX {
                return Err(RecordingsError::TooMany);
            }
        }
        if all.used.is_empty() {
            return Err(RecordingsError::None {
                place: place.to_owned(),
                others: files.len(),
            });
        }
        Ok(all)
    }
}

/// With `/` between the parts, so that results are named alike everywhere.
fn name_below(place: &Path, file: &Path) -> String {
    let below = match file.strip_prefix(place) {
        Ok(below) if !below.as_os_str().is_empty() => below,
        _ => file.file_name().map_or(file, Path::new),
    };
    let parts = below.iter().map(|part| part.to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}

/// The network of a file and its median round trip; None when it is no trace with delays.
fn playable(file: &Path) -> Result<Option<(PathSpec, Duration)>, TraceError> {
    let trace = match Trace::open(file) {
        Err(error) if error.is_something_else() => return Ok(None),
        trace => trace?,
    };
    if !trace.has_delays() {
        return Ok(None);
    }
    let path = trace.path(&PathOptions::for_trace(&trace))?;
    let [_, median_ms, ..] = trace.summary().rtt_ms;
    // Without a round trip there is nothing that deadlines could be multiples of.
    let is_played = median_ms > 0.0;
    Ok(is_played.then(|| (path, Duration::from_secs_f64(median_ms / 1e3))))
}
