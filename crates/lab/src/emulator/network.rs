//! The network of a cable without devices and clocks: what comes in when, and what is to go out when.

use std::sync::Arc;

use super::EmulatorOptions;
use super::files::Dropped;
use super::packet::{self, Header};
use crate::channel::{Channel, Direction, Fate, LossReason, PathSpec};
use crate::relay::{DelayQueue, PACKETS_MAX};
use crate::world::{Forward, Link, LinkFigures, LinkSpec, Moment};

/// A side of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Site {
    /// Where the clients are.
    Client = 0,
    /// Where the server is.
    Server = 1,
}

/// How many sides a cable has.
pub const SITES: usize = 2;

impl Site {
    /// Both, in the order of their numbers.
    pub const ALL: [Self; SITES] = [Self::Client, Self::Server];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// The side across.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Packets of one direction of a path, or of all paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Packets that were sent into it.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Packets that never came out.
    pub dropped: u64,
    /// Packets that came out twice.
    pub duplicated: u64,
    /// Packets that were marked by the link.
    pub marked: u64,
}

impl PathCounts {
    /// With those of another.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            dropped: self.dropped + other.dropped,
            duplicated: self.duplicated + other.duplicated,
            marked: self.marked + other.marked,
        }
    }

    /// Without those that were there before.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            dropped: self.dropped - before.dropped,
            duplicated: self.duplicated - before.duplicated,
            marked: self.marked - before.marked,
        }
    }
}

/// What became of a cable's packets.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// By client, then by the side that sent.
    pub paths: Vec<[PathCounts; SITES]>,
    /// Packets from or to nobody's address.
    pub foreign: u64,
    /// Packets dropped since too many were under way. Not part of the network that was asked for.
    pub overflowed: u64,
    /// Packets that the kernel would not take. Not part of the network that was asked for.
    pub refused: u64,
    /// By reason: random, burst, blackout, trace, queue, link.
    pub drops: [u64; 6],
}

impl Counts {
    /// All paths together, of packets that a side sent.
    pub fn total(&self, from: Site) -> PathCounts {
        let paths = self.paths.iter().map(|path| &path[from as usize]);
        paths.fold(PathCounts::default(), |sum, path| sum.plus(path))
    }
}

/// What is to be done with a packet that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing more: it is under way.
    Taken,
    /// It is dropped; whose it was, and why.
    Dropped(usize, Dropped),
    /// It is the emulator's own.
    Sounding,
    /// It has no path.
    Foreign,
}

/// The paths of a cable, and the packets under way.
#[derive(Debug)]
pub(super) struct Network {
    /// By client, then by the side that sends.
    channels: Vec<[Channel; SITES]>,
    /// The shared link, which the packets of one side pass.
    link: Option<Link>,
    sender: Site,
    /// Labelled with the side that they come from.
    queue: DelayQueue<Site>,
    pub(super) counts: Counts,
}

impl Network {
    pub(super) fn new(options: &EmulatorOptions) -> Self {
        let sender = match options.forward {
            Forward::ToServer => Site::Client,
            Forward::ToClient => Site::Server,
        };
        let pair = |(number, path): (u32, &PathSpec)| {
            let channel =
                |spec: &Arc<_>, way| Channel::new(Arc::clone(spec), options.seed, number, way);
            let forward = channel(&path.forward, Direction::Forward);
            let backward = channel(&path.backward, Direction::Backward);
            match sender {
                Site::Client => [forward, backward],
                Site::Server => [backward, forward],
            }
        };
        let paths = options.paths.len();
        Self {
            channels: (0..).zip(&options.paths).map(pair).collect(),
            link: options.link.map(Link::new),
            sender,
            queue: DelayQueue::new(PACKETS_MAX),
            counts: Counts {
                paths: vec![Default::default(); paths],
                ..Counts::default()
            },
        }
    }

    /// A packet came from a side, so many nanoseconds after the network began.
    pub(super) fn handle_packet(&mut self, now_ns: u64, from: Site, packet: &mut [u8]) -> Verdict {
        let Some(client) = Header::read(packet).and_then(|header| match from {
            Site::Client if packet::is_server(header.destination) => {
                packet::client_of(header.source)
            }
            Site::Server if packet::is_server(header.source) => {
                packet::client_of(header.destination)
            }
            _ => None,
        }) else {
            return self.handle_other(from, packet);
        };
        let Some(channels) = self.channels.get_mut(client) else {
            self.counts.foreign += 1;
            return Verdict::Foreign;
        };
        let counts = &mut self.counts.paths[client][from as usize];
        counts.packets += 1;
        counts.bytes += packet.len() as u64;
        let mut sent_ns = now_ns;
        if let Some(link) = self.link.as_mut().filter(|_| self.sender == from) {
            let is_capable = packet::is_ecn_capable(packet);
            match link.offer(Moment(now_ns), packet.len(), is_capable) {
                None => {
                    counts.dropped += 1;
                    self.counts.drops[5] += 1;
                    return Verdict::Dropped(client, Dropped::Link);
                }
                Some(passage) => {
                    sent_ns += passage.wait.as_nanos() as u64;
                    if passage.is_marked {
                        counts.marked += 1;
                        packet::mark(packet);
                    }
                }
            }
        }
        match channels[from as usize].fate(sent_ns / 1000, packet.len()) {
            Fate::Lost(reason) => {
                counts.dropped += 1;
                self.counts.drops[place(reason)] += 1;
                Verdict::Dropped(client, Dropped::Path(reason))
            }
            Fate::Delivered {
                delay_us,
                duplicate,
            } => {
                counts.duplicated += u64::from(duplicate.is_some());
                let mut verdict = Verdict::Dropped(client, Dropped::Overflow);
                for delay_us in std::iter::once(delay_us).chain(duplicate) {
                    let due_ns = sent_ns.saturating_add(delay_us.saturating_mul(1000));
                    if self.queue.push(due_ns, from, packet) {
                        verdict = Verdict::Taken;
                    } else {
                        self.counts.overflowed += 1;
                    }
                }
                verdict
            }
        }
    }

    /// From now on there is this link.
    pub(super) fn begin_link(&mut self, now_ns: u64, spec: LinkSpec) {
        self.link = Some(Link::new(spec));
        self.restart_link(now_ns);
    }

    /// Counts at the link from here on only.
    pub(super) fn restart_link(&mut self, now_ns: u64) {
        if let Some(link) = &mut self.link {
            link.restart_stats(Moment(now_ns));
        }
    }

    /// What became of packets at the link.
    pub(super) fn link(&mut self, now_ns: u64) -> Option<LinkFigures> {
        (self.link.as_mut()).map(|link| link.figures(Moment(now_ns)))
    }

    fn handle_other(&mut self, from: Site, packet: &[u8]) -> Verdict {
        if from == Site::Client && packet::is_sounding(packet) {
            return Verdict::Sounding;
        }
        // Neighbour discovery and the like: every device sends some.
        self.counts.foreign += 1;
        Verdict::Foreign
    }

    /// The next packet that is due by now, when it was, and which side sent it.
    pub(super) fn poll_departure(&mut self, now_ns: u64) -> Option<(u64, Site, &[u8])> {
        self.queue.pop_due(now_ns)
    }

    /// When the next packet is due.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.queue.next_due()
    }
}

const fn place(reason: LossReason) -> usize {
    match reason {
        LossReason::Random => 0,
        LossReason::Burst => 1,
        LossReason::Blackout => 2,
        LossReason::Trace => 3,
        LossReason::Queue => 4,
    }
}
