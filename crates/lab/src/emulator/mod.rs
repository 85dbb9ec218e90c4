//! A network on the real kernel: two network namespaces a cable, and every packet between them delayed or dropped as a path has it.
//!
//! ```text
//! client namespace                       this process                       server namespace
//! 10.128.0.1, .2, ..  --[TUN]-->  fate of the client's own path  --[TUN]-->  10.0.0.1
//! fd77:0:0:1::1, ..   <--[TUN]--  (delay, loss, queue, link)     <--[TUN]--  fd77::1
//! ```
//!
//! What runs in the namespaces is untouched: kernel TCP, other transports, whole games ([`Process`]). Each client
//! address has a path of its own; a *cable* is a pair of namespaces, and several cables meet the same fates at the same time, so
//! that contenders can be compared. Namespaces have no name and devices are not persistent: when the process ends, however it
//! ends, the kernel takes them away.
//!
//! `namespace.rs` makes and enters namespaces, `network.rs` is the pure part (which packet goes where, when), `forwarder.rs` the
//! thread that moves packets, `process.rs` runs programs, `downloads.rs` has TCP flows to compete with, `files.rs` what is written
//! down on request, `observer.rs` whoever else looks at packets, `onlookers.rs` both of a cable, `packet.rs` reads headers, `timing.rs` says whether the machine kept
//! up, `precedence.rs` helps it to.

mod downloads;
mod error;
mod files;
mod forwarder;
mod namespace;
mod network;
mod observer;
mod onlookers;
mod packet;
mod precedence;
mod process;
mod timing;

#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread::JoinHandle;
use std::time::Instant;

pub use downloads::Downloads;
pub use error::EmulatorError;
pub use files::{Capture, DropLog};
pub use namespace::{Namespace, Privilege, acquire_privilege};
pub use network::{Counts, PathCounts, SITES, Site};
pub use observer::Observer;
pub(crate) use packet::tcp_of;
pub use precedence::{give_up_precedence, take_precedence};
pub use process::{Process, contained};
pub use timing::Timing;

use crate::arm::{Places, Stack};
use crate::channel::PathSpec;
use crate::world::{Forward, LinkFigures, LinkSpec};
use forwarder::Handle;

/// The server's address in every cable.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The first client's address; the others follow.
pub const FIRST_CLIENT: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 1);
/// Most clients of a cable.
pub const PATHS_MAX: usize = 100_000;
/// Most cables of an emulator: each takes two namespaces and two devices.
pub const CABLES_MAX: usize = 64;
/// Packets that are sent to this address go to nobody: it is where the emulator sends its own, to see how long they take.
const SOUNDING: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// .. and port: discard.
const SOUNDING_PORT: u16 = 9;

/// What network is to be emulated.
#[derive(Debug)]
pub struct EmulatorOptions {
    /// Each client's path.
    pub paths: Vec<PathSpec>,
    /// Which way is forward on them.
    pub forward: Forward,
    /// A link that all clients of a cable share, in the forward direction and before their own paths. Each cable has its own.
    pub link: Option<LinkSpec>,
    /// Repeats the fates.
    pub seed: u64,
    /// Largest IP packet, 576 to 65,535 bytes; IPv6 needs 1,280.
    pub mtu: u16,
    /// The pairs of namespaces.
    pub cables: Vec<Cable>,
}

/// A pair of namespaces.
#[derive(Debug, Default)]
pub struct Cable {
    /// How its kernels' TCP is set.
    pub stack: Stack,
    /// Where to write down the packets that were dropped.
    pub drop_log: Option<DropLog>,
    /// Where to write down all packets.
    pub capture: Option<Capture>,
    /// Who else looks at all packets.
    pub observer: Option<Box<dyn Observer>>,
}

/// A running network.
#[derive(Debug)]
pub struct Emulator {
    sites: Vec<[Namespace; SITES]>,
    paths: u32,
    handle: Handle,
    forwarder: Option<JoinHandle<Result<Report, EmulatorError>>>,
}

/// What became of the packets.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// By cable.
    pub cables: Vec<Counts>,
    /// By cable: the shared link, if there is one.
    pub links: Vec<Option<LinkFigures>>,
    /// Whether packets left when they were due.
    pub timing: Timing,
    /// Of a network that has ended: why a file of drops or packets ends early, if one does.
    pub unwritten: Option<String>,
}

impl Emulator {
    /// Makes the namespaces and lets packets through.
    ///
    /// # Errors
    /// Without the privilege ([`acquire_privilege`]), without TUN devices or the program `ip`, when a path makes no sense, or a
    /// kernel setting does not exist.
    pub fn start(options: EmulatorOptions) -> Result<Self, EmulatorError> {
        options.check()?;
        let paths = options.paths.len() as u32;
        let mut sites = Vec::new();
        let mut devices = Vec::new();
        for cable in &options.cables {
            let (client, client_device) = namespace::make(Site::Client, options.mtu, &cable.stack)?;
            let (server, server_device) = namespace::make(Site::Server, options.mtu, &cable.stack)?;
            sites.push([client, server]);
            devices.push([client_device, server_device]);
        }
        let soundings = sites
            .iter()
            .map(|[client, _]| client.clone())
            .collect::<Vec<_>>();
        let (handle, forwarder) = forwarder::start(options, devices, soundings)?;
        Ok(Self {
            sites,
            paths,
            handle,
            forwarder: Some(forwarder),
        })
    }

    /// Where the two sides of an arm are, when its server listens at `port`.
    pub fn places(&self, port: u16) -> Places {
        let server = SocketAddrV4::new(SERVER, port);
        Places::new(server, FIRST_CLIENT, self.paths).expect("there are not so many clients")
    }

    /// When the network's time began.
    pub const fn began(&self) -> Instant {
        self.handle.began
    }

    /// A side of a cable.
    ///
    /// # Panics
    /// When there is no such cable.
    pub fn namespace(&self, cable: usize, site: Site) -> &Namespace {
        &self.sites[cable][site as usize]
    }

    /// From now on the clients of each cable share this link, as if [`EmulatorOptions::link`] had been it.
    pub fn begin_link(&self, spec: LinkSpec) {
        self.handle.begin_link(spec);
    }

    /// Counts at the links from here on only.
    pub fn restart_link(&self) {
        self.handle.restart_link();
    }

    /// Whether it has ended by itself; [`Self::stop`] says why.
    pub fn has_ended(&self) -> bool {
        self.forwarder.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What has become of the packets so far.
    ///
    /// # Errors
    /// When the emulator has ended by itself, with the reason.
    pub fn report(&mut self) -> Result<Report, EmulatorError> {
        match self.handle.report() {
            Some(report) => Ok(report),
            // It does not end without a reason while it is not told to.
            None => self.join(),
        }
    }

    /// Ends it: what is under way is lost.
    ///
    /// # Errors
    /// When it ended before, by an error of the system.
    pub fn stop(mut self) -> Result<Report, EmulatorError> {
        self.handle.stop();
        self.join()
    }

    fn join(&mut self) -> Result<Report, EmulatorError> {
        match self.forwarder.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(EmulatorError::Ended),
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(forwarder) = self.forwarder.take() {
            // Nobody is left to hear how it went.
            let _ = forwarder.join();
        }
    }
}

impl EmulatorOptions {
    fn check(&self) -> Result<(), EmulatorError> {
        let within = |what, value: usize, max: usize| {
            let is_within = (1..=max).contains(&value);
            is_within
                .then_some(())
                .ok_or(EmulatorError::Range { what, value, max })
        };
        within("clients", self.paths.len(), PATHS_MAX)?;
        within("cables", self.cables.len(), CABLES_MAX)?;
        for path in &self.paths {
            path.check().map_err(EmulatorError::Path)?;
        }
        if self.mtu < packet::MTU_MIN {
            return Err(EmulatorError::Mtu(self.mtu));
        }
        Ok(())
    }
}
