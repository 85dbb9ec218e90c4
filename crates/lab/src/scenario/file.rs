//! The file as it is written: every field of the format, unchecked. `check/` makes a [`Scenario`](super::Scenario) of it.
//!
//! The comments here are the format's reference. Units stand at the end of the names; what is not named has the default.

use serde::Deserialize;

/// A scenario file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// What reports call it. Default: the file's name.
    pub(super) name: Option<String>,
    /// A sentence or two for the report.
    pub(super) about: Option<String>,
    /// Clients, each with a session of its own, 1..=100,000. Default 1.
    pub(super) sessions: Option<u64>,
    /// How long messages are sent, 0.1..=86,400. Default 60.
    pub(super) seconds: Option<f64>,
    /// What is sent before this is reported apart, and goodput and links are measured from here on. Default 0.
    pub(super) settle_s: Option<f64>,
    /// Repeats the run. Default 1.
    pub(super) seed: Option<u64>,
    /// Who sends: `to_client` (the server; the default) or `to_server` (the clients).
    pub(super) direction: Option<Direction>,
    /// Which policy decides how many symbols are sent: `steered` (the default), `exact`, `pangolin`, `hairpin`, `hairpin(PRICE)`,
    /// `retransmit`, `fixed(N)`.
    pub(super) policy: Option<String>,
    /// Whose share of a stream's messages is to be on time: `each_stream` (by session; the default) or `all_sessions` (of the server's
    /// sessions, or of the client's one). Only `steered` shares it.
    pub(super) promise: Option<Promise>,
    /// The server's budget for all its sessions together, which they share by the coordinator. Default: none.
    pub(super) uplink_mbit_per_s: Option<f64>,
    /// With `false` sessions send as if they were alone. Default true.
    pub(super) coordination: Option<bool>,
    pub(super) rivals: Option<Rivals>,
    pub(super) network: Option<Network>,
    pub(super) link: Option<Link>,
    pub(super) thin: Option<Thin>,
    /// Up to 64 of them.
    #[serde(default)]
    pub(super) stream: Vec<Stream>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Direction {
    ToClient,
    ToServer,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Promise {
    EachStream,
    AllSessions,
}

/// Other traffic through the link.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rivals {
    /// TCP downloads with CUBIC that never end, 1..=1,000.
    pub(super) cubic: u64,
    /// When they begin. Default 0.
    pub(super) start_s: Option<f64>,
    /// When they end. Default: with the scenario.
    pub(super) stop_s: Option<f64>,
}

/// Each session's own path: numbers, a profile or a recording. Forward is the way of the messages.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    /// A built-in path, as `punctual lab simulate --profile`.
    pub(super) profile: Option<String>,
    /// A recording, as `punctual lab replay --trace`; seen from the folder of this file.
    pub(super) trace: Option<String>,
    /// Of a recording of capacity: the way back. Default: as the way of the messages.
    pub(super) trace_back: Option<String>,
    /// Share of the losses that are forward, where the recording does not say. Default 0.5, of cloud-gaming logs 1.
    pub(super) trace_loss_forward: Option<f64>,
    /// Round trip without queues, 0..=60,000. Of a recording of capacity 40 by default.
    pub(super) rtt_ms: Option<f64>,
    /// How the round trip is divided: `even` (the default), `forward`, `backward`, or the forward share.
    pub(super) split: Option<Split>,
    /// Share of packets lost, 0 to below 1. Default 0.
    pub(super) loss_forward: Option<f64>,
    pub(super) loss_backward: Option<f64>,
    /// Losses come in bursts of this mean length. Default 0: each packet on its own.
    pub(super) burst_ms: Option<f64>,
    /// Every packet draws up to this much more delay for itself, each way; also with a profile or a recording. Default 0.
    pub(super) jitter_ms: Option<f64>,
    /// Largest IP packet: larger ones are dropped, 1,228..=65,535 (576 without streams). Default: 1,500.
    pub(super) mtu: Option<u64>,
    pub(super) forward: Option<Way>,
    pub(super) backward: Option<Way>,
}

/// One direction. Delays and losses stand here or above; the rest also with a profile or a recording, in place of what that has.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Way {
    /// Mean delay, 0..=60,000: in both directions, or neither.
    pub(super) delay_ms: Option<f64>,
    /// Its standard deviation, if it varies: exponential above a base. Up to the delay.
    pub(super) delay_sd_ms: Option<f64>,
    /// Over which time it varies. Default 50; 0: every packet for itself.
    pub(super) coherence_ms: Option<f64>,
    /// Every packet draws up to this much more delay for itself.
    pub(super) jitter_ms: Option<f64>,
    /// Share of packets lost, 0 to below 1.
    pub(super) loss: Option<f64>,
    /// Losses come in bursts of this mean length.
    pub(super) burst_ms: Option<f64>,
    /// Share of packets that are held back.
    pub(super) reorder: Option<f64>,
    /// How long they are. Default 20.
    pub(super) reorder_ms: Option<f64>,
    /// Share of packets that arrive twice.
    pub(super) duplicate: Option<f64>,
    /// Rate of each session's own path. Default: unlimited.
    pub(super) rate_mbit_per_s: Option<f64>,
    /// Or a recorded rate: a mahimahi file.
    pub(super) capacity_trace: Option<String>,
    /// What may wait before either. Default 65,536 before a rate, 150,000 before a recorded one.
    pub(super) queue_bytes: Option<u64>,
    /// Nothing gets through in these seconds since the network began: `[[from, until], ..]`, up to 1,000.
    pub(super) blackouts_s: Option<Vec<[f64; 2]>>,
    /// An outage begins each so many seconds ..
    pub(super) outage_every_s: Option<f64>,
    /// .. lasts so long ..
    pub(super) outage_ms: Option<f64>,
    /// .. and happens with this probability. Default 1.
    pub(super) outage_share: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Split {
    Share(f64),
    Name(String),
}

/// A link that all sessions and rivals share, towards the receivers of the messages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) rate_mbit_per_s: f64,
    /// What may wait before it: this, or `queue_bytes`. In products of its rate and the network's round trip. Default 1.
    pub(super) queue_bdp: Option<f64>,
    pub(super) queue_bytes: Option<u64>,
    /// Whether it marks packets instead of waiting until it must drop. Default false.
    pub(super) ecn: Option<bool>,
    /// Marks from so many waiting bytes on. Default: what it sends in 5 ms, at least two full packets, at most half the queue.
    pub(super) ecn_mark_bytes: Option<u64>,
}

/// What streams without deadlines do while few packets are in flight.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Thin {
    /// Timeouts do not double. Default true.
    pub(super) linear_timeouts: Option<bool>,
    /// One later acknowledgement is enough to send again. Default true.
    pub(super) one_later_ack: Option<bool>,
    /// What is unacknowledged and small goes along in the spare room of later packets. Default true.
    pub(super) bundling: Option<bool>,
    /// At most so many bytes a packet. Default: the protocol's.
    pub(super) bundle_bytes_max: Option<u64>,
}

/// A stream that every session has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stream {
    /// What reports call it; no two alike.
    pub(super) name: String,
    /// `unreliable`, `unreliable_sequenced`, `reliable`, `reliable_ordered` or `latest`.
    pub(super) delivery: Delivery,
    /// Its share of the budget against the other streams, 1..=1,000. Default 1.
    pub(super) weight: Option<u64>,
    /// What is shared by weight: `bytes` (the default) or `quality`.
    pub(super) fairness: Option<Fairness>,
    /// Of its messages, 0..=255; higher first. Default 128.
    pub(super) importance: Option<u64>,
    /// When its messages are late. Default: never.
    pub(super) deadline_ms: Option<f64>,
    /// Share of them that shall be on time. Default 0.999.
    pub(super) on_time: Option<f64>,
    /// After the deadline: `deliver` (the default) or `drop`.
    pub(super) when_late: Option<WhenLate>,
    /// Of unreliable modes: share of messages that may be left out when the budget is short. Default 0.
    pub(super) loss_tolerance: Option<f64>,
    /// Of `latest`: its messages take turns with so many keys, 1..=65,536. Default 1.
    pub(super) keys: Option<u64>,
    /// With `fairness = "quality"`: what a message adds to the quality. Default: the protocol's.
    pub(super) quality: Option<f64>,
    /// Latencies for which the result says what share of messages kept them; up to 16.
    #[serde(default)]
    pub(super) bounds_ms: Vec<f64>,
    pub(super) traffic: Traffic,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Delivery {
    Unreliable,
    UnreliableSequenced,
    Reliable,
    ReliableOrdered,
    Latest,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fairness {
    Bytes,
    Quality,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WhenLate {
    Deliver,
    Drop,
}

/// When messages are sent and how large they are. Exactly one of `every_ms`, `rate_per_s`, `shape`, `bulk_bytes` and `saturate`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Traffic {
    /// One message each interval.
    pub(super) every_ms: Option<f64>,
    /// At random, so many a second on average.
    pub(super) rate_per_s: Option<f64>,
    /// As a game does: a row of table 1 of the thin-streams paper, gaps and sizes.
    pub(super) shape: Option<String>,
    /// One message of so many bytes, up to 64 MiB.
    pub(super) bulk_bytes: Option<u64>,
    /// A message whenever the stream takes one.
    pub(super) saturate: Option<bool>,
    /// Size of each message, 4..=262,144; with a shape, instead of the shape's.
    pub(super) bytes: Option<u64>,
    /// Or sizes that vary: all three.
    pub(super) bytes_mean: Option<f64>,
    pub(super) bytes_min: Option<u64>,
    pub(super) bytes_max: Option<u64>,
    /// Of `every_ms`: each message is held back by up to this. Default 0.
    pub(super) jitter_ms: Option<f64>,
    /// Of `every_ms`: whether all sessions send at the same instants. Default false: each has its own phase.
    pub(super) together: Option<bool>,
    /// None before. Default 0.
    pub(super) start_s: Option<f64>,
    /// None from here on. Default: the scenario's end.
    pub(super) stop_s: Option<f64>,
    /// Of `saturate`: none is sent from here until there. Default: no pause.
    pub(super) pause_s: Option<[f64; 2]>,
    /// Whether messages of the same instant leave one by one, as writes without Nagle's algorithm do. Default false: they share
    /// packets.
    pub(super) own_packets: Option<bool>,
}
