//! The network without sockets and clocks: what comes in when, and what is to go out when.

use std::sync::Arc;

use punctual_proto::limits::UDP_IP_HEADER;

use super::RelayOptions;
use super::queue::{DelayQueue, PACKETS_MAX};
use crate::channel::{Channel, Direction, Fate};
use crate::world::Forward;

/// Which of a lane's ends a packet goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    ToServer,
    ToClient,
}

/// A packet that is to be passed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Departure<'a> {
    pub(super) due_us: u64,
    pub(super) path: usize,
    pub(super) lane: usize,
    pub(super) way: Way,
    pub(super) datagram: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
struct Label {
    path: u32,
    lane: u16,
    way: Way,
}

/// A pair of channels for each path and lane, and the packets under way.
#[derive(Debug)]
pub(super) struct Emulation {
    /// To the server and to the client; those of a path's lanes are neighbours.
    channels: Vec<[Channel; 2]>,
    lanes: usize,
    queue: DelayQueue<Label>,
    lost: u64,
    overflowed: u64,
}

impl Emulation {
    pub(super) fn new(options: &RelayOptions) -> Self {
        let lanes = options.lanes.len();
        let channels = (0..options.paths)
            .flat_map(|path| std::iter::repeat_n(path, lanes))
            .map(|path| pair(options, path))
            .collect();
        Self {
            channels,
            lanes,
            queue: DelayQueue::new(PACKETS_MAX),
            lost: 0,
            overflowed: 0,
        }
    }

    /// A packet has come in.
    pub(super) fn handle_datagram(
        &mut self,
        now_us: u64,
        path: usize,
        lane: usize,
        way: Way,
        datagram: &[u8],
    ) {
        let channel = &mut self.channels[path * self.lanes + lane][way as usize];
        let (delay_us, duplicate) = match channel.fate(now_us, datagram.len() + UDP_IP_HEADER) {
            Fate::Lost(_) => {
                self.lost += 1;
                return;
            }
            Fate::Delivered {
                delay_us,
                duplicate,
            } => (delay_us, duplicate),
        };
        let label = Label {
            path: path as u32,
            lane: lane as u16,
            way,
        };
        for delay_us in std::iter::once(delay_us).chain(duplicate) {
            if !self.queue.push(now_us + delay_us, label, datagram) {
                self.overflowed += 1;
            }
        }
    }

    /// The next packet that is due by now.
    pub(super) fn poll_departure(&mut self, now_us: u64) -> Option<Departure<'_>> {
        let (due_us, label, datagram) = self.queue.pop_due(now_us)?;
        Some(Departure {
            due_us,
            path: label.path as usize,
            lane: usize::from(label.lane),
            way: label.way,
            datagram,
        })
    }

    /// When the next packet is due.
    pub(super) fn next_due_us(&self) -> Option<u64> {
        self.queue.next_due()
    }

    /// Packets that the paths lost.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Packets for which there was no room.
    pub(super) const fn overflowed(&self) -> u64 {
        self.overflowed
    }
}

/// The channels of a path: to the server, to the client.
fn pair(options: &RelayOptions, path: u32) -> [Channel; 2] {
    let forward = Channel::new(
        Arc::clone(&options.path.forward),
        options.seed,
        path,
        Direction::Forward,
    );
    let backward = Channel::new(
        Arc::clone(&options.path.backward),
        options.seed,
        path,
        Direction::Backward,
    );
    match options.forward {
        Forward::ToServer => [forward, backward],
        Forward::ToClient => [backward, forward],
    }
}
