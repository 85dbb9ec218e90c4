//! The numbers of a scenario, as they stand in JSON.

use serde::{Deserialize, Serialize};

use super::StreamResult;
use crate::stats::LatencyMs;

/// How a scenario went, over one or several seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioResult {
    /// Its name.
    pub scenario: String,
    /// What it is about, in its own words.
    pub about: String,
    /// Sessions of each run.
    pub sessions: u32,
    /// The seeds of the runs, in order.
    pub seeds: Vec<u64>,
    /// How long messages were sent in each run.
    pub sent_s: f64,
    /// Of that, what went by before the measuring began.
    pub settle_s: f64,
    /// How each stream did, over all sessions and seeds.
    pub streams: Vec<StreamResult>,
    /// How the shared link did, over all seeds; null without one.
    pub link: Option<LinkResult>,
    /// What does not belong to a stream, seed by seed.
    pub runs: Vec<RunResult>,
}

/// What one seed's run was like while it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Its seed.
    pub seed: u64,
    /// Sessions that ended before their time.
    pub sessions_closed: u32,
    /// Bits in a second of all sessions' datagrams, both ways, IP and UDP headers included, before any was lost.
    pub wire_bits_per_s: f64,
    /// Those datagrams in a second.
    pub wire_packets_per_s: f64,
    /// Bytes of headers and tags, as a share of the messages' bytes, over the whole run; null when nothing was sent.
    pub encapsulation_overhead: Option<f64>,
    /// Bits of messages that arrived in a second, by session.
    pub sessions_goodput_bits_per_s: MeanMinMax,
    /// Jain's index of the sessions' goodput: 1 when all have the same, 1/n when one has all.
    pub sessions_fairness: f64,
    /// How the link did; null without one.
    pub link: Option<LinkResult>,
    /// How the rivals did; null without any.
    pub rivals: Option<RivalsResult>,
}

/// How a shared link did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// Its rate.
    pub rate_bits_per_s: f64,
    /// What may wait before it.
    pub queue_bytes: u64,
    /// Packets carried.
    pub packets: u64,
    /// Bytes carried, with IP headers.
    pub bytes: u64,
    /// The same in a second.
    pub carried_bits_per_s: f64,
    /// The share of its rate that was used.
    pub utilisation: f64,
    /// Packets that found the queue full.
    pub packets_dropped: u64,
    /// Of the packets that came, the share that found the queue full.
    pub drop_share: f64,
    /// Packets that were marked.
    pub packets_marked: u64,
    /// How long a packet that came at any time would have waited, on average.
    pub queue_ms_mean: f64,
    /// How long packets waited for those before them.
    pub queue_ms: LatencyMs,
}

/// How the rivals did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RivalsResult {
    /// How many.
    pub flows: u32,
    /// Bits of TCP payload that arrived in a second, by flow, while they were there.
    pub goodput_bits_per_s: MeanMinMax,
    /// Jain's index among them.
    pub fairness: f64,
    /// Jain's index among them and the sessions; `None` where they were there for a part of the time only.
    pub fairness_with_sessions: Option<f64>,
    /// The mean session's goodput, as a multiple of the mean rival's; `None` as above.
    pub session_to_rival: Option<f64>,
    /// Packets that they took for lost.
    pub packets_lost: u64,
    /// Their timeouts.
    pub timeouts: u64,
}

/// Mean and ends of several numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanMinMax {
    /// Their mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl MeanMinMax {
    /// Of these; all zero when there are none.
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

impl ScenarioResult {
    /// What the protocol promises in every run and did not keep, in words; nothing, if all is well.
    pub fn broken_promises(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for stream in &self.streams {
            let is_ordered = !matches!(stream.delivery.as_str(), "unreliable" | "reliable");
            let checks = [
                ("handed on twice", stream.duplicates),
                ("never sent and handed on", stream.ghosts),
                (
                    "handed on out of order",
                    if is_ordered { stream.out_of_order } else { 0 },
                ),
            ];
            for (what, count) in checks.into_iter().filter(|(_, count)| *count > 0) {
                broken.push(format!("stream {}: {count} messages {what}", stream.stream));
            }
        }
        broken
    }

    /// A stream by name.
    pub fn stream(&self, name: &str) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.stream == name)
    }
}
