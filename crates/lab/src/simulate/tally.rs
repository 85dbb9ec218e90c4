//! Who arrived when, by the world's clock.

use punctual_policy::{PolicyKind, Situation};
use punctual_proto::{MessageId, Outcome, SessionId, SessionStats};

use super::fates::{Fates, MessageFate};
use super::{Limits, SimulateOptions};
use crate::genie::Floors;
use crate::stats::{Cluster, Latencies, Summary, Turns, share_interval};
use crate::world::Moment;

/// Bytes of a message that say which it is and when it left.
pub(super) const STAMP_LEN: usize = 16;

/// Marks a message with its number and its time.
pub(super) fn stamp(message: &mut [u8], number: u64, now: Moment) {
    message[..8].copy_from_slice(&number.to_le_bytes());
    message[8..STAMP_LEN].copy_from_slice(&now.0.to_le_bytes());
}

fn read_stamp(message: &[u8]) -> Option<(u64, Moment)> {
    let (number, rest) = message.split_first_chunk::<8>()?;
    let (at, _) = rest.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*number), Moment(u64::from_le_bytes(*at))))
}

/// What one policy did, with its latency distribution.
#[derive(Debug, Clone)]
pub struct PolicyResult {
    /// The numbers; what was refused is among the lost.
    pub summary: Summary,
    /// Messages that were not accepted: too many others waited, or the session had ended.
    pub refused: u64,
    /// All latencies, for plots.
    pub latencies: Latencies,
    /// What no sender could have beaten.
    pub floors: Floors,
    /// When the first message was due, since the network began.
    pub began: Moment,
    /// What the policy would be shown before one message more of the first session, when the last was sent: how it sees the path.
    pub outlook: Option<Situation>,
    /// What became of each message, by number; empty unless [`SimulateOptions::keeps_fates`].
    pub fates: Vec<MessageFate>,
}

/// Counts arrivals.
pub(super) struct Tally {
    sessions: u64,
    deadline_us: u64,
    sent: u64,
    refused: u64,
    /// A bit a message.
    arrived: Vec<u64>,
    arrived_count: u64,
    /// Messages that arrived more than once: a broken promise.
    twice: u64,
    /// What can be taken as independent.
    turns: Turns,
    /// By cluster of those: what was to be sent, and what of it was in time.
    sent_in_time: Vec<(u64, u64)>,
    latencies: Latencies,
    fates: Option<Fates>,
}

impl Tally {
    pub(super) fn new(options: &SimulateOptions) -> Self {
        Self {
            sessions: 0,
            turns: Turns::new(0, 0),
            deadline_us: options.deadline.as_micros() as u64,
            sent: 0,
            refused: 0,
            arrived: vec![0; options.messages.div_ceil(64) as usize],
            arrived_count: 0,
            twice: 0,
            sent_in_time: Vec::new(),
            latencies: Latencies::default(),
            fates: options.keeps_fates.then(|| Fates::new(options.messages)),
        }
    }

    /// So many sessions take turns.
    pub(super) fn begin(&mut self, sessions: u64, messages: u64) {
        self.sessions = sessions;
        self.turns = Turns::new(sessions as usize, messages);
        self.sent_in_time = vec![(0, 0); self.turns.count()];
    }

    /// `message` is None when it was refused; `lost` counts what its path has lost so far.
    pub(super) fn on_sent(
        &mut self,
        number: u64,
        session: SessionId,
        message: Option<MessageId>,
        lost: u64,
    ) {
        let cluster = &mut self.sent_in_time[self.turns.cluster_of(number)];
        // Figures over the others would only flatter the policy.
        cluster.0 += 1;
        self.sent += u64::from(message.is_some());
        self.refused += u64::from(message.is_none());
        if let Some(fates) = &mut self.fates {
            match message {
                Some(message) => fates.on_sent(number, session, message, lost),
                None => fates.on_refused(number),
            }
        }
    }

    /// `lost` says what the path of a turn has lost so far.
    pub(super) fn on_outcome(
        &mut self,
        session: SessionId,
        message: MessageId,
        outcome: Outcome,
        lost: impl FnOnce(usize) -> u64,
    ) {
        let sessions = self.sessions;
        if let Some(fates) = &mut self.fates {
            fates.on_outcome(session, message, outcome, |number| {
                lost((number % sessions) as usize)
            });
        }
    }

    /// A message arrived over a path that has lost so much so far.
    pub(super) fn on_message(&mut self, at: Moment, data: &[u8], lost: u64) {
        let Some((number, sent_at)) = read_stamp(data) else {
            return;
        };
        let Some(word) = self.arrived.get_mut((number / 64) as usize) else {
            return;
        };
        if *word & (1 << (number % 64)) != 0 {
            self.twice += 1;
            return;
        }
        *word |= 1 << (number % 64);
        self.arrived_count += 1;
        // Rounded to whole microseconds upwards: a nanosecond late is late.
        let latency_us = (at.0 - sent_at.0).div_ceil(1000);
        self.latencies.record(latency_us);
        if latency_us > self.deadline_us {
            if let Some(fates) = &mut self.fates {
                fates.on_late_arrival(number, lost);
            }
            return;
        }
        self.sent_in_time[self.turns.cluster_of(number)].1 += 1;
        if let Some(fates) = &mut self.fates {
            fates.on_arrival_in_time(number);
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.arrived_count < self.sent || self.fates.as_ref().is_some_and(Fates::is_waiting)
    }

    pub(super) fn result(
        mut self,
        kind: PolicyKind,
        options: &SimulateOptions,
        limits: &Limits,
        stats: impl Iterator<Item = SessionStats>,
    ) -> PolicyResult {
        assert_eq!(
            self.twice, 0,
            "a message was delivered twice: run again with seed {}",
            options.seed
        );
        let messages = self.sent + self.refused;
        let lost = messages - self.arrived_count;
        for _ in 0..lost {
            self.latencies.record_lost();
        }
        let total = Totals::of(stats);
        // What never arrived is late as well.
        let clusters: Vec<Cluster> = (self.sent_in_time.iter())
            .filter(|(sent, _)| *sent > 0)
            .map(|&(sent, in_time)| Cluster {
                hits: sent - in_time,
                of: sent,
            })
            .collect();
        let late: u64 = clusters.iter().map(|cluster| cluster.hits).sum();
        let summary = Summary {
            policy: kind.to_string(),
            messages,
            latency_ms: self.latencies.quantiles(),
            late_share: late as f64 / messages.max(1) as f64,
            late_share_95: share_interval(&clusters, options.seed),
            predicted_late_share: Some(total.predicted_misses / total.promised.max(1.0)),
            recovery_overhead: total.recovery_overhead(),
            encapsulation_overhead: (total.message_bytes > 0.0)
                .then(|| total.encapsulation_bytes / total.message_bytes),
            lost_messages: lost,
            seed: options.seed,
        };
        let fates = self.fates.as_ref().map(|fates| {
            let sessions = self.sessions as usize;
            fates.finish(|number| limits.hopeless[number % sessions][number / sessions])
        });
        PolicyResult {
            summary,
            refused: self.refused,
            latencies: self.latencies,
            floors: limits.floors,
            began: limits
                .flows
                .first()
                .map_or_else(Moment::default, |flow| flow.first),
            outlook: None,
            fates: fates.unwrap_or_default(),
        }
    }
}

#[derive(Default)]
struct Totals {
    predicted_misses: f64,
    promised: f64,
    symbols: f64,
    source_symbols: f64,
    encapsulation_bytes: f64,
    message_bytes: f64,
}

impl Totals {
    fn recovery_overhead(&self) -> f64 {
        if self.source_symbols == 0.0 {
            return 0.0;
        }
        self.symbols / self.source_symbols - 1.0
    }

    fn of(stats: impl Iterator<Item = SessionStats>) -> Self {
        stats.fold(Self::default(), |total, stats| Self {
            predicted_misses: total.predicted_misses + stats.predicted_misses,
            promised: total.promised + stats.messages_promised as f64,
            symbols: total.symbols + stats.symbols_sent as f64,
            source_symbols: total.source_symbols + stats.source_symbols as f64,
            encapsulation_bytes: total.encapsulation_bytes + stats.encapsulation_bytes as f64,
            message_bytes: total.message_bytes + stats.message_bytes_sent as f64,
        })
    }
}
