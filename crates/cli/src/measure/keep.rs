//! Traces that clients upload, in files whose names and number the server decides.
//!
//! A file grows by a part at a time and is opened for each, so that open traces cost no descriptors. Until its end has come its name
//! ends with `.part`; what a server that was killed has left so can be replayed all the same.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use punctual::TracePart;

use super::{ONE_WAY_REMARK, trace_head, trace_rows};
use crate::failure::Failure;

/// How much is kept, all of it including what was there at the beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) traces: u64,
    /// Traces of one address in one run of the server.
    pub(super) per_address: u32,
}

/// What became of a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is in the file of a trace that goes on.
    Going,
    /// The trace is whole: its file, and packets in it.
    Whole(PathBuf, u64),
    /// The address has as many traces as it may.
    TooMany,
}

/// A directory of traces.
#[derive(Debug)]
pub(super) struct Keep {
    directory: PathBuf,
    limits: Limits,
    /// Of what is in the directory.
    bytes: u64,
    traces: u64,
    begun_unix_s: u64,
    open: BTreeMap<u64, Open>,
    by_address: BTreeMap<IpAddr, u32>,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    packets: u64,
}

impl Keep {
    /// Makes the directory when it is not there, and makes sure that files can be made in it.
    pub(super) fn open(directory: &Path, limits: Limits) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::bad_input(format_args!(
                "{} cannot keep traces ({error}); choose another directory with --keep",
                directory.display()
            ))
        };
        fs::create_dir_all(directory).map_err(refused)?;
        let probe = directory.join(format!(".punctual-{}", std::process::id()));
        fs::write(&probe, b"").map_err(refused)?;
        fs::remove_file(&probe).map_err(refused)?;
        let (mut bytes, mut traces) = (0, 0);
        for entry in fs::read_dir(directory).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            if entry.file_name().to_string_lossy().starts_with("trace-") {
                bytes += entry.metadata().map_or(0, |metadata| metadata.len());
                traces += 1;
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            directory: directory.to_owned(),
            limits,
            bytes,
            traces,
            begun_unix_s: now.map_or(0, |now| now.as_secs()),
            open: BTreeMap::new(),
            by_address: BTreeMap::new(),
        })
    }

    /// Whether there is room for another trace.
    pub(super) const fn is_full(&self) -> bool {
        self.bytes >= self.limits.bytes || self.traces >= self.limits.traces
    }

    /// Takes a part in. The last part of a trace is always taken, so that the limit on bytes is passed by parts that were on
    /// their way, of at most 200 KiB each.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn add(&mut self, part: &TracePart) -> io::Result<Kept> {
        if !self.open.contains_key(&part.trace) && !self.begin(part)? {
            return Ok(Kept::TooMany);
        }
        let open = self.open.get_mut(&part.trace).expect("it was just begun");
        let rows = trace_rows(&part.packets);
        let mut file = OpenOptions::new().append(true).open(&open.path)?;
        file.write_all(&rows)?;
        self.bytes += rows.len() as u64;
        open.packets += part.packets.len() as u64;
        if !part.is_last {
            return Ok(Kept::Going);
        }
        let open = self.open.remove(&part.trace).expect("it is open");
        let whole = open.path.with_extension("");
        fs::rename(&open.path, &whole)?;
        Ok(Kept::Whole(whole, open.packets))
    }

    fn begin(&mut self, part: &TracePart) -> io::Result<bool> {
        if self.is_full() || part.packets.is_empty() {
            return Ok(false);
        }
        if let Some(address) = part.remote.as_ref().map(SocketAddr::ip) {
            let count = self.by_address.entry(address.to_canonical()).or_default();
            if *count >= self.limits.per_address {
                return Ok(false);
            }
            *count += 1;
        }
        let name = format!("trace-{}-{:06}.csv.part", self.begun_unix_s, part.trace);
        let path = self.directory.join(name);
        let head = trace_head(&[
            format!("punctual measure, version {}", env!("CARGO_PKG_VERSION")),
            ONE_WAY_REMARK.to_owned(),
        ]);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        file.write_all(head.as_bytes())?;
        self.bytes += head.len() as u64;
        self.traces += 1;
        self.open.insert(part.trace, Open { path, packets: 0 });
        Ok(true)
    }
}
