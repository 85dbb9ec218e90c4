//! The study of thin streams: the traffic of ten games over a path that loses packets, with the remedies on and off.
//!
//! Delivered in order; 130 ms round trip, evenly split; 2 % loss, the way of the messages only; one packet a write, as with TCP
//! when Nagle's algorithm is off. Of most interest is the share of messages that arrive as if nothing had been lost: within the
//! one-way delay and a millisecond. Bundling can save a lost message when the next packet follows within that millisecond, so the
//! goal is 1 - p (1 - s), for a loss p and a share s of gaps up to a millisecond.

use std::time::Duration;

use punctual_policy::PolicyKind;
use punctual_proto::{Promise, Uplink, WhenLate};
use serde::{Deserialize, Serialize};

use super::run::{RunError, run};
use super::{
    DeliveryMode, FairnessMeasure, Pattern, Scenario, Shape, StreamResult, StreamSpec, Thin,
    Traffic,
};
use crate::channel::{LossModel, PathSpec, RttSplit};
use crate::stats::{Interval, LatencyMs};
use crate::world::Forward;

/// What is on and what is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedies {
    /// All on, as by default.
    All,
    /// Timeouts double.
    NoLinearTimeouts,
    /// Losses are believed after the usual number of later packets.
    NoOneLaterAck,
    /// Nothing goes along in spare room.
    NoBundling,
    /// All off.
    None,
}

impl Remedies {
    /// Each of them.
    pub const ALL: [Self; 5] = [
        Self::All,
        Self::NoLinearTimeouts,
        Self::NoOneLaterAck,
        Self::NoBundling,
        Self::None,
    ];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all on",
            Self::NoLinearTimeouts => "no linear timeouts",
            Self::NoOneLaterAck => "no one later ack",
            Self::NoBundling => "no bundling",
            Self::None => "all off",
        }
    }

    fn thin(self) -> Thin {
        Thin {
            has_linear_timeouts: !matches!(self, Self::NoLinearTimeouts | Self::None),
            has_one_later_ack: !matches!(self, Self::NoOneLaterAck | Self::None),
            has_bundling: !matches!(self, Self::NoBundling | Self::None),
            ..Thin::default()
        }
    }
}

/// What is studied.
#[derive(Debug, Clone)]
pub struct ThinStudy {
    /// The rows of the table.
    pub shapes: Vec<Shape>,
    /// What is on and off.
    pub remedies: Vec<Remedies>,
    /// Messages of each row and each set of remedies, about.
    pub messages: u64,
    /// Repeats it.
    pub seed: u64,
}

impl Default for ThinStudy {
    /// All rows, each with 50,000 messages.
    fn default() -> Self {
        Self {
            shapes: Shape::ALL.to_vec(),
            remedies: Remedies::ALL.to_vec(),
            messages: 50_000,
            seed: 1,
        }
    }
}

/// How the messages of one row did with one set of remedies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThinResult {
    /// Whose traffic.
    pub shape: String,
    /// What was on and off.
    pub remedies: String,
    /// Messages sent.
    pub messages: u64,
    /// Share of gaps between messages up to a millisecond.
    pub gaps_within_1_ms_share: f64,
    /// Share delivered within the one-way delay and a millisecond.
    pub undelayed_share: f64,
    /// Its 95 % interval.
    pub undelayed_share_95: Interval,
    /// What bundling could reach.
    pub goal: f64,
    /// The share less the goal, in percentage points.
    pub difference_pp: f64,
    /// Quantiles of the latency.
    pub latency_ms: LatencyMs,
    /// Symbols sent beyond those needed, as a share of those needed.
    pub recovery_overhead: Option<f64>,
    /// Datagrams in a second of one session, both ways.
    pub packets_per_s: f64,
    /// Bits in a second of one session, both ways, IP and UDP headers included.
    pub wire_bits_per_s: f64,
}

/// What the study came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThinResults {
    /// Round trip without queues.
    pub rtt_ms: f64,
    /// Share of packets lost on the way of the messages.
    pub loss_forward: f64,
    /// Within this a message is not delayed.
    pub bound_ms: f64,
    /// The seed.
    pub seed: u64,
    /// By row, then by remedies.
    pub rows: Vec<ThinResult>,
}

const RTT: Duration = Duration::from_millis(130);
const LOSS: f64 = 0.02;
/// One-way delay and a millisecond.
const BOUND: Duration = Duration::from_millis(66);
const SESSIONS: u32 = 20;

/// Runs the study; `progress` hears how many of its parts are done.
///
/// # Errors
/// As [`run`].
pub fn thin_streams(
    study: &ThinStudy,
    mut progress: impl FnMut(usize),
) -> Result<ThinResults, RunError> {
    let mut rows = Vec::new();
    for &shape in &study.shapes {
        for &remedies in &study.remedies {
            progress(rows.len());
            let scenario = scenario(shape, remedies, study);
            let outcome = run(&scenario, [study.seed], |_| {})?;
            let run = &outcome.result.runs[0];
            let stream = &outcome.result.streams[0];
            rows.push(ThinResult {
                packets_per_s: run.wire_packets_per_s / f64::from(SESSIONS),
                wire_bits_per_s: run.wire_bits_per_s / f64::from(SESSIONS),
                ..row(shape, remedies, stream)
            });
        }
    }
    Ok(ThinResults {
        rtt_ms: RTT.as_secs_f64() * 1e3,
        loss_forward: LOSS,
        bound_ms: BOUND.as_secs_f64() * 1e3,
        seed: study.seed,
        rows,
    })
}

fn row(shape: Shape, remedies: Remedies, stream: &StreamResult) -> ThinResult {
    let gaps_within_1_ms_share = shape.gaps_ms().share_within(1.0);
    let goal = 1.0 - LOSS * (1.0 - gaps_within_1_ms_share);
    let within = stream.within[0];
    ThinResult {
        shape: shape.name().to_owned(),
        remedies: remedies.name().to_owned(),
        messages: stream.messages_sent,
        gaps_within_1_ms_share,
        undelayed_share: within.share,
        undelayed_share_95: within.share_95,
        goal,
        difference_pp: (within.share - goal) * 100.0,
        latency_ms: stream.latency_ms,
        recovery_overhead: stream.recovery_overhead,
        packets_per_s: 0.0,
        wire_bits_per_s: 0.0,
    }
}

fn scenario(shape: Shape, remedies: Remedies, study: &ThinStudy) -> Scenario {
    let mut path = PathSpec::fixed("thin streams", RTT, RttSplit::EVEN);
    let mut forward = (*path.forward).clone();
    forward.loss = LossModel::Uniform(LOSS);
    path.forward = forward.into();
    let per_session = study.messages.div_ceil(u64::from(SESSIONS)) as f64;
    // A little more, since the gaps are drawn.
    let seconds = per_session * shape.row().gap_ms_mean / 1e3 * 1.04;
    Scenario {
        name: shape.name().to_owned(),
        about: String::new(),
        sessions: SESSIONS,
        duration: Duration::from_secs_f64(seconds.max(0.1)),
        settle: Duration::ZERO,
        seed: study.seed,
        direction: Forward::ToClient,
        policy: PolicyKind::default(),
        promise: Promise::default(),
        uplink: Uplink::Unknown,
        path,
        mtu: None,
        link: None,
        rivals: None,
        thin: remedies.thin(),
        streams: vec![StreamSpec {
            name: "game".to_owned(),
            delivery: DeliveryMode::ReliableOrdered,
            weight: 1,
            fairness: FairnessMeasure::Bytes,
            importance: 128,
            deadline: None,
            on_time: 0.999,
            when_late: WhenLate::Deliver,
            loss_tolerance: 0.0,
            keys: 1,
            quality: None,
            bounds: vec![BOUND],
            traffic: Traffic {
                pattern: Pattern::Shape(shape),
                sizes: shape.sizes(),
                start: Duration::ZERO,
                stop: None,
                pause: None,
                has_own_packets: true,
            },
        }],
    }
}
