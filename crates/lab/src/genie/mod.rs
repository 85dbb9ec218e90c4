//! What no sender can beat over a network: limits to put beside what policies and rivals achieve.
//!
//! A genie knows the fate of every packet beforehand. Two figures ([`Floors`]), over the same seed, paths and instants as a run:
//!
//! - **Least share of late messages.** A sender that fires all the time: the message is on time when, of up to 256 packets in each
//!   millisecond from the message's instant to its deadline, as many get through in time as it has symbols. What is late then was
//!   late whatever anybody had sent: the path was dark, or slow, for too long.
//! - **Least recovery overhead.** A sender that learns at once of each loss and replaces just what was lost: p / (1 - p) symbols
//!   beyond those needed, where p is the share lost of the symbols that leave when the messages are due. A replacement is taken to
//!   be lost as often as a first symbol is. (With all fates known beforehand the overhead could be 0, by waiting; a sender that
//!   waits out bursts lies between the two.) Under uniform loss of 2 % it is 2.04 %.
//!
//! The limits are on the generous side where something had to be left out: a message has the network to itself, headers are IP's
//! and UDP's alone, and of packets that are lost none takes room in a queue. Packets leave at the message's instant and at the first and
//! last microsecond of every millisecond; a delay that falls faster than time passes could be caught a little better in between.
//!
//! In: `channel/foresight.rs`. `message.rs` looks at one message.

mod message;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use message::{Genie, Limit, Parcel};
use serde::{Deserialize, Serialize};

use crate::channel::{Direction, PathSpec};
use crate::stats::{Cluster, Interval, Turns, share_interval};
use crate::world::Moment;

/// The limits. In JSON their names begin with `floor_`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Floors {
    /// Share of messages that are late whatever is sent.
    #[serde(rename = "floor_late_share")]
    pub late_share: f64,
    /// Its 95 % interval.
    #[serde(rename = "floor_late_share_95")]
    pub late_share_95: Interval,
    /// Symbols sent beyond those needed, as a share of those needed, when each lost one is replaced at once; None (null) when
    /// nothing gets through.
    #[serde(rename = "floor_recovery_overhead")]
    pub recovery_overhead: Option<f64>,
    /// Its 95 % interval; None when its upper end has no bound.
    #[serde(rename = "floor_recovery_overhead_95")]
    pub recovery_overhead_95: Option<Interval>,
}

/// The messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Bytes of a message.
    pub message_bytes: usize,
    /// Source symbols of a message; None: as few as fit. (Fewer symbols are easier to bring through.)
    pub symbols: Option<u8>,
    /// When a message is late.
    pub deadline: Duration,
    /// Time from one message of a flow to the next.
    pub interval: Duration,
    /// Messages leave when one of the sender's frames begins, so long after another; zero: at once.
    pub frame: Duration,
    /// Messages in all; flows take turns.
    pub messages: u64,
    /// Largest UDP payload, in bytes.
    pub datagram_max: u16,
}

/// A sender with a path of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Which path, as channels are numbered: a client's number in a [`World`](crate::world::World).
    pub path: u32,
    /// When its first message is due, since the path began.
    pub first: Moment,
}

impl Flow {
    /// Flows over these paths that take turns from `start` on, evenly spread over the interval.
    pub fn in_turn(paths: &[u32], start: Moment, interval: Duration) -> Vec<Self> {
        let (count, interval) = (paths.len() as u64, interval.as_nanos() as u64);
        let flow = |(turn, &path): (u64, &u32)| Self {
            path,
            first: Moment(start.0 + turn * interval / count),
        };
        (0..).zip(paths).map(flow).collect()
    }
}

impl Task {
    fn parcel(&self) -> Parcel {
        Parcel::of(self.message_bytes, self.symbols, self.datagram_max)
    }
}

/// The limits for messages that travel in this direction of the flows' paths, which `seed` makes of `networks`: path `i` of network
/// `i` modulo their number, so a single one is every path's. Intervals are by resampling whole flows, or stretches of few. A million messages take about a second.
///
/// # Panics
/// Without a network, and if [`PathSpec::check`] refuses one: check what comes from users first.
pub fn floors(
    networks: &[PathSpec],
    direction: Direction,
    seed: u64,
    flows: &[Flow],
    task: &Task,
) -> Floors {
    floors_while(networks, direction, seed, flows, task, || true).expect("nothing stops it")
}

/// The same while `go_on`, which is asked some hundred times a second; None when it said no.
pub(crate) fn floors_while(
    networks: &[PathSpec],
    direction: Direction,
    seed: u64,
    flows: &[Flow],
    task: &Task,
    mut go_on: impl FnMut() -> bool,
) -> Option<Floors> {
    let mut asked = 0_u64;
    let turns = Turns::new(flows.len(), task.messages);
    let mut late = vec![Cluster::default(); turns.count()];
    let mut lost = late.clone();
    let parcel = task.parcel();
    for (turn, flow) in flows.iter().enumerate() {
        let mut genie = genie_of(networks, direction, seed, flow.path);
        for (round, at_ns) in (0..).zip(instants(flows, turn, task)) {
            asked += 1;
            if asked.is_multiple_of(ASKED_EVERY) && !go_on() {
                return None;
            }
            let cluster = turns.cluster_of(round * flows.len() as u64 + turn as u64);
            let (late_here, lost_here) = (&mut late[cluster], &mut lost[cluster]);
            late_here.of += 1;
            late_here.hits += u64::from(!genie.is_on_time(at_ns, task.deadline, parcel));
            lost_here.of += parcel.symbols as u64;
            lost_here.hits += genie.first_lost(at_ns, parcel.symbols);
        }
    }
    Some(Floors::of(&late, &lost, seed))
}

/// Messages between two questions whether to go on: some milliseconds.
const ASKED_EVERY: u64 = 1 << 12;

impl Floors {
    /// From counts that can be taken as independent of each other: messages, and of them late whatever is sent; symbols, and of them
    /// lost. `seed` is for the drawing that intervals are made by.
    pub(crate) fn of(late: &[Cluster], lost: &[Cluster], seed: u64) -> Self {
        let loss_95 = share_interval(lost, seed);
        Self {
            late_share: share(late),
            late_share_95: share_interval(late, seed),
            recovery_overhead: overhead(share(lost)),
            recovery_overhead_95: overhead(loss_95.low)
                .zip(overhead(loss_95.high))
                .map(|(low, high)| Interval { low, high }),
        }
    }
}

/// By flow, then by message in order of sending: whether it is late whatever is sent. Arguments and panics as of [`floors`].
pub fn hopeless(
    networks: &[PathSpec],
    direction: Direction,
    seed: u64,
    flows: &[Flow],
    task: &Task,
) -> Vec<Vec<bool>> {
    let of_flow = |turn: usize| {
        let mut genie = genie_of(networks, direction, seed, flows[turn].path);
        instants(flows, turn, task)
            .map(|at_ns| !genie.is_on_time(at_ns, task.deadline, task.parcel()))
            .collect()
    };
    (0..flows.len()).map(of_flow).collect()
}

fn genie_of(networks: &[PathSpec], direction: Direction, seed: u64, path: u32) -> Genie {
    let network = &networks[path as usize % networks.len()];
    Genie::new(network, direction, seed, path)
}

/// When the messages are due of the flow whose turn it is, in nanoseconds.
fn instants(flows: &[Flow], turn: usize, task: &Task) -> impl Iterator<Item = u64> {
    let (count, first) = (flows.len() as u64, flows[turn].first.0);
    let interval = task.interval.as_nanos() as u64;
    let messages = (task.messages + count - 1 - turn as u64) / count;
    let frame = task.frame;
    (0..messages).map(move |message| in_frame(first + message * interval, frame))
}

/// When a message leaves that is due so many nanoseconds after the beginning, at which the first frame begins.
pub(crate) fn in_frame(due_ns: u64, frame: Duration) -> u64 {
    match frame.as_nanos() as u64 {
        0 => due_ns,
        frame_ns => due_ns.div_ceil(frame_ns) * frame_ns,
    }
}

fn share(clusters: &[Cluster]) -> f64 {
    let hits: u64 = clusters.iter().map(|cluster| cluster.hits).sum();
    let of: u64 = clusters.iter().map(|cluster| cluster.of).sum();
    hits as f64 / of.max(1) as f64
}

/// Symbols beyond those needed when each is sent until it arrives.
fn overhead(loss: f64) -> Option<f64> {
    (loss < 1.0).then(|| loss / (1.0 - loss))
}
