//! The simplest workload: every flow sends messages of one size at one interval, in one direction.

use std::time::Duration;

use super::{Due, Exchange, Sender, Shortcomings, Task, Workload};
use crate::chance::{Chance, Purpose};

/// What is played.
#[derive(Debug, Clone)]
pub struct Contest {
    /// The messages.
    pub task: Task,
    /// Messages of each flow.
    pub messages: u32,
    /// How long connecting may take.
    pub connect_max: Duration,
    /// After the last message, how long others may still arrive.
    pub drain: Duration,
    /// Repeats the instants at which messages are sent.
    pub seed: u64,
}

/// What became of an arm's messages.
#[derive(Debug, Clone, Default)]
pub struct Played {
    /// By flow, then by message: microseconds from sending to arrival, [`NEVER`](super::NEVER) for what did not arrive.
    pub latencies_us: Vec<Vec<u32>>,
    /// Messages that the arm did not take; they are among those that did not arrive.
    pub refused: u64,
    /// Messages that came twice.
    pub duplicates: u64,
    /// Messages that were not as they were sent.
    pub corrupt: u64,
    /// Flows that had no connection when the messages began.
    pub unconnected: u32,
    /// Time that both sides' threads and programs computed, in the kernel too, while messages were sent and arrived.
    pub cpu: Duration,
    /// How late messages were sent, at worst.
    pub lateness_max: Duration,
    /// What the sender's side and the receiver's side say of themselves.
    pub counters: [Vec<(&'static str, f64)>; 2],
}

impl Shortcomings for Played {
    fn refused(&self) -> u64 {
        self.refused
    }

    fn unconnected(&self) -> u32 {
        self.unconnected
    }

    fn lateness_max(&self) -> Duration {
        self.lateness_max
    }
}

impl Contest {
    /// When in each interval each flow sends: drawn, so that flows do not send together.
    pub fn phases(&self, flows: u32) -> Vec<Duration> {
        let chance = Chance::new(self.seed, u64::MAX);
        let interval_us = (self.task.interval.as_micros() as u64).max(1);
        let phase = |flow| chance.below(interval_us, Purpose::Offset, u64::from(flow), 0);
        (0..flows)
            .map(|flow| Duration::from_micros(phase(flow)))
            .collect()
    }
}

impl Workload for Contest {
    type Played = Played;

    fn task(&self) -> &Task {
        &self.task
    }

    fn messages(&self, side: Sender, _flow: u32) -> u32 {
        if side == self.task.sender {
            self.messages
        } else {
            0
        }
    }

    fn dues(&self, side: Sender, flows: u32) -> Box<dyn Iterator<Item = Due> + '_> {
        let mut phases: Vec<_> = self.phases(flows).into_iter().zip(0..).collect();
        phases.sort_unstable();
        let bytes = self.task.message_bytes as u32;
        let lap = move |number| {
            let at = self.task.interval * number;
            let flows = phases.clone().into_iter();
            flows.map(move |(phase, flow)| Due {
                at: at + phase,
                flow,
                number,
                bytes,
            })
        };
        Box::new((0..self.messages(side, 0)).flat_map(lap))
    }

    fn connect_max(&self) -> Duration {
        self.connect_max
    }

    fn length(&self) -> Duration {
        self.task.interval * self.messages
    }

    fn drain(&self) -> Duration {
        self.drain
    }

    fn played(&self, exchange: Exchange) -> Played {
        let [server, clients] = exchange.ways;
        let [at_server, at_clients] = exchange.counters;
        let (way, counters) = match self.task.sender {
            Sender::Server => (server, [at_server, at_clients]),
            Sender::Client => (clients, [at_clients, at_server]),
        };
        Played {
            latencies_us: way.latencies_us,
            refused: way.refused,
            duplicates: way.duplicates,
            corrupt: way.corrupt,
            unconnected: exchange.unconnected,
            cpu: exchange.cpu,
            lateness_max: exchange.lateness_max,
            counters,
        }
    }
}
