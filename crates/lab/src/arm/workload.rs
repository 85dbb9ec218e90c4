//! What is sent through every arm, and what is known of it afterwards.

use std::time::Duration;

use super::stamp::NEVER;
use super::{Sender, Task};

/// Messages with their instants, the same for every arm.
pub trait Workload: Sync {
    /// What is made of the log of a run.
    type Played: Shortcomings;

    /// What arms may tune themselves to. Its sender is the side whose messages matter most.
    fn task(&self) -> &Task;

    /// How many messages a side sends on a flow.
    fn messages(&self, side: Sender, flow: u32) -> u32;

    /// All messages of a side on flows below `flows`, in the order of time; those of a flow are numbered from 0 on.
    fn dues(&self, side: Sender, flows: u32) -> Box<dyn Iterator<Item = Due> + '_>;

    /// Whether the server passes every message that it gets on to all other flows, at once.
    fn is_relayed(&self) -> bool {
        false
    }

    /// How long connecting may take.
    fn connect_max(&self) -> Duration;

    /// From the beginning to the last message, at most.
    fn length(&self) -> Duration;

    /// After the last message, how long others may still arrive.
    fn drain(&self) -> Duration;

    /// Makes something of the log.
    fn played(&self, exchange: Exchange) -> Self::Played;
}

/// What made messages late that no network did.
pub trait Shortcomings {
    /// Messages that the arm did not take.
    fn refused(&self) -> u64;

    /// Flows that had no connection when the messages began.
    fn unconnected(&self) -> u32;

    /// How late messages were sent, at worst.
    fn lateness_max(&self) -> Duration;
}

/// A message that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Since the messages began.
    pub at: Duration,
    /// On which flow.
    pub flow: u32,
    /// Which of the flow's messages.
    pub number: u32,
    /// Its size; at least [`MESSAGE_MIN`](super::MESSAGE_MIN) bytes are sent.
    pub bytes: u32,
}

/// What became of an arm's messages, in both ways.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// By [`Sender`]: messages of the server, messages of the clients.
    pub ways: [Way; 2],
    /// When the server passes messages on: by the flow that receives, then by the flow that sent, then by message, microseconds
    /// from sending at the client to arrival at the other; [`NEVER`] for what did not arrive.
    pub relayed_us: Vec<Vec<Vec<u32>>>,
    /// Flows that had no connection when the messages began.
    pub unconnected: u32,
    /// Time that both sides' threads and programs computed, in the kernel too, while messages were sent and arrived.
    pub cpu: Duration,
    /// How late messages were sent, at worst.
    pub lateness_max: Duration,
    /// What the server's side and the clients' side say of themselves.
    pub counters: [Vec<(&'static str, f64)>; 2],
}

/// What became of the messages of one side.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// By flow, then by message: microseconds from the beginning to the call of [`Side::send`](super::Side::send);
    /// [`NEVER`] for what was not sent, or not taken.
    pub sent_us: Vec<Vec<u32>>,
    /// By flow, then by message: microseconds from sending to arrival, [`NEVER`] for what did not arrive.
    pub latencies_us: Vec<Vec<u32>>,
    /// Messages that the arm did not take, those to be passed on among them; they are among those that did not arrive.
    pub refused: u64,
    /// Messages that came twice.
    pub duplicates: u64,
    /// Messages that were not as they were sent.
    pub corrupt: u64,
}

impl Shortcomings for Exchange {
    fn refused(&self) -> u64 {
        self.ways.iter().map(|way| way.refused).sum()
    }

    fn unconnected(&self) -> u32 {
        self.unconnected
    }

    fn lateness_max(&self) -> Duration {
        self.lateness_max
    }
}

impl Way {
    /// The sent messages of a flow that arrived: when they were sent, and the latency, both in microseconds.
    pub fn arrived(&self, flow: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pairs = self.sent_us[flow].iter().zip(&self.latencies_us[flow]);
        pairs
            .map(|(&sent, &latency)| (sent, latency))
            .filter(|&(sent, latency)| sent != NEVER && latency != NEVER)
    }
}

/// Messages of any size at any time, in both ways.
#[derive(Debug, Clone)]
pub struct Script {
    /// What arms may tune themselves to.
    pub task: Task,
    /// By [`Sender`], then by flow: messages in the order of time.
    pub messages: [Vec<Vec<Planned>>; 2],
    /// Whether the server passes every message that it gets on to all other flows.
    pub is_relayed: bool,
    /// How long connecting may take.
    pub connect_max: Duration,
    /// After the last message, how long others may still arrive.
    pub drain: Duration,
}

/// A message of a [`Script`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// Since the messages began.
    pub at: Duration,
    /// Its size; at least [`MESSAGE_MIN`](super::MESSAGE_MIN) bytes are sent.
    pub bytes: u32,
}

impl Workload for Script {
    type Played = Exchange;

    fn task(&self) -> &Task {
        &self.task
    }

    fn messages(&self, side: Sender, flow: u32) -> u32 {
        let flow = self.messages[side as usize].get(flow as usize);
        flow.map_or(0, |messages| messages.len() as u32)
    }

    fn dues(&self, side: Sender, flows: u32) -> Box<dyn Iterator<Item = Due> + '_> {
        let mut dues: Vec<Due> = (0..flows)
            .zip(&self.messages[side as usize])
            .flat_map(|(flow, messages)| {
                (0..).zip(messages).map(move |(number, planned)| Due {
                    at: planned.at,
                    flow,
                    number,
                    bytes: planned.bytes,
                })
            })
            .collect();
        dues.sort_by_key(|due| due.at);
        Box::new(dues.into_iter())
    }

    fn is_relayed(&self) -> bool {
        self.is_relayed
    }

    fn connect_max(&self) -> Duration {
        self.connect_max
    }

    fn length(&self) -> Duration {
        let flows = self.messages.iter().flatten();
        let last = flows.filter_map(|messages| messages.last());
        last.map(|planned| planned.at).max().unwrap_or_default()
    }

    fn drain(&self) -> Duration {
        self.drain
    }

    fn played(&self, exchange: Exchange) -> Exchange {
        exchange
    }
}
