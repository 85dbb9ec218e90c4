//! What is written down on request: the packets that were dropped, and all packets.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, PcapError, TsResolution};

use super::packet::Header;
use super::{EmulatorError, Site};
use crate::channel::LossReason;

/// A file that is written at once at first, and then a second behind: who is killed has written most of it.
#[derive(Debug)]
struct Timely {
    file: BufWriter<File>,
    flushed_at: Option<Instant>,
}

/// How far behind.
const BEHIND: Duration = Duration::from_secs(1);

impl Timely {
    fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: BufWriter::new(File::create(path)?),
            flushed_at: None,
        })
    }

    /// After a whole entry.
    fn flush_if_due(&mut self) -> io::Result<()> {
        if self.flushed_at.is_some_and(|at| at.elapsed() < BEHIND) {
            return Ok(());
        }
        self.flushed_at = Some(Instant::now());
        self.flush()
    }
}

impl Write for Timely {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A CSV file with a line for each packet that was dropped, in order.
#[derive(Debug)]
pub struct DropLog {
    name: String,
    file: Timely,
}

impl DropLog {
    /// How such a file begins.
    pub const HEADING: &str =
        "time_s,from,client,reason,bytes,protocol,source,destination,tcp_sequence\n";

    /// Makes the file, in place of one that was there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> Result<Self, EmulatorError> {
        let name = path.display().to_string();
        let mut log = Self {
            file: Timely::create(path).map_err(failed(&name))?,
            name,
        };
        log.write(Self::HEADING)?;
        Ok(log)
    }

    /// A packet was dropped.
    pub(super) fn record(
        &mut self,
        at_us: u64,
        from: Site,
        client: usize,
        why: Dropped,
        packet: &[u8],
    ) -> Result<(), EmulatorError> {
        let Some(header) = Header::read(packet) else {
            return Ok(());
        };
        let (source, destination) = match header.ports(packet) {
            None => (header.source.to_string(), header.destination.to_string()),
            Some((from, to)) => {
                let with = |address, port| std::net::SocketAddr::new(address, port).to_string();
                (with(header.source, from), with(header.destination, to))
            }
        };
        let sequence = header.sequence(packet).map(|number| number.to_string());
        let line = format!(
            "{}.{:06},{},{client},{},{},{},{source},{destination},{}\n",
            at_us / 1_000_000,
            at_us % 1_000_000,
            from.name(),
            why.name(),
            packet.len(),
            header.protocol_name(),
            sequence.unwrap_or_default()
        );
        self.write(&line)
    }

    fn write(&mut self, line: &str) -> Result<(), EmulatorError> {
        (self.file.write_all(line.as_bytes()))
            .and_then(|()| self.file.flush_if_due())
            .map_err(failed(&self.name))
    }

    pub(super) fn finish(&mut self) -> Result<(), EmulatorError> {
        self.file.flush().map_err(failed(&self.name))
    }
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    /// By the path.
    Path(LossReason),
    /// By the shared link, whose queue was full.
    Link,
    /// By the emulator, which has too many under way.
    Overflow,
}

impl Dropped {
    const fn name(self) -> &'static str {
        match self {
            Self::Path(LossReason::Random) => "random",
            Self::Path(LossReason::Burst) => "burst",
            Self::Path(LossReason::Blackout) => "blackout",
            Self::Path(LossReason::Trace) => "trace",
            Self::Path(LossReason::Queue) => "queue",
            Self::Link => "link",
            Self::Overflow => "overflow",
        }
    }
}

/// Two pcap files (raw IP, nanoseconds): all packets as they leave and reach each side, as captures there would have them.
#[derive(Debug)]
pub struct Capture {
    sites: [CaptureFile; super::SITES],
}

struct CaptureFile {
    name: String,
    writer: PcapWriter<Shared>,
    file: Shared,
}

/// The writer of packets does not let go of its file, which is to be flushed between two of them.
#[derive(Clone)]
struct Shared(Arc<Mutex<Timely>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Timely> {
        // One thread has it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}

/// Bytes of a packet that are kept: all of any that there is.
const SNAPLEN: u32 = 65_535;

impl Capture {
    /// Makes `client.pcap` and `server.pcap` in a directory, which is made if it is not there, in place of those that were there.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn create(directory: &Path) -> Result<Self, EmulatorError> {
        let name = directory.display().to_string();
        if !directory.is_dir() {
            std::fs::create_dir(directory).map_err(failed(&name))?;
        }
        let create = |site: Site| {
            let path = directory.join(format!("{}.pcap", site.name()));
            let name = path.display().to_string();
            let header = PcapHeader {
                snaplen: SNAPLEN,
                datalink: DataLink::RAW,
                ts_resolution: TsResolution::NanoSecond,
                ..PcapHeader::default()
            };
            let file = Timely::create(&path).map_err(failed(&name))?;
            let file = Shared(Arc::new(Mutex::new(file)));
            let writer = PcapWriter::with_header(file.clone(), header)
                .map_err(system_error)
                .and_then(|writer| file.lock().flush_if_due().map(|()| writer))
                .map_err(failed(&name))?;
            Ok(CaptureFile { name, writer, file })
        };
        Ok(Self {
            sites: [create(Site::Client)?, create(Site::Server)?],
        })
    }

    /// A packet leaves or reaches a side.
    pub(super) fn record(
        &mut self,
        site: Site,
        since_start: Duration,
        start: SystemTime,
        packet: &[u8],
    ) -> Result<(), EmulatorError> {
        let epoch = start.duration_since(UNIX_EPOCH).unwrap_or_default();
        let file = &mut self.sites[site as usize];
        let packet = PcapPacket::new(epoch + since_start, packet.len() as u32, packet);
        (file.writer.write_packet(&packet).map_err(system_error))
            .and_then(|_| file.file.lock().flush_if_due())
            .map_err(failed(&file.name))
    }

    pub(super) fn finish(&mut self) -> Result<(), EmulatorError> {
        for file in &mut self.sites {
            file.file.flush().map_err(failed(&file.name))?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for CaptureFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureFile")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What the system said, where it was the system.
fn system_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}

fn failed(name: &str) -> impl FnOnce(io::Error) -> EmulatorError {
    let name = name.to_owned();
    move |source| EmulatorError::File { name, source }
}
