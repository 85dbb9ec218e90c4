//! What became of the messages of a stream, in all its sessions: told by the runner, judged by the world's clock.
//!
//! In: what was sent, what arrived, what the protocol says of it. Out: [`StreamTally::result`], at any time. A tally holds each
//! message (40 bytes), so tallies of several seeds can be merged and still give exact quantiles and honest intervals.

use std::time::Duration;

use punctual_proto::{MessageId, MissReason, Outcome, Piece};

use super::{Fates, Pattern, Scenario, StreamSpec, stamp};
use crate::channel::Direction;
use crate::genie::{Genie, Limit, Parcel};
use crate::stats::Latencies;
use crate::world::Moment;

/// Why a message was late or dropped, by the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It waited too long before it was sent.
    Queue,
    /// Too much of it was lost.
    Loss,
    /// It took too long on its way.
    Delay,
    /// Nothing came back at all.
    PathDown,
    /// The budget was short, and it was one of those that may be left out.
    Thinned,
    /// The session ended.
    Closed,
    /// Another.
    Other,
}

impl From<MissReason> for Reason {
    fn from(why: MissReason) -> Self {
        match why {
            MissReason::Queue => Self::Queue,
            MissReason::Loss => Self::Loss,
            MissReason::Delay => Self::Delay,
            MissReason::PathDown => Self::PathDown,
            MissReason::Thinned => Self::Thinned,
            MissReason::Closed => Self::Closed,
            _ => Self::Other,
        }
    }
}

/// What the sender says became of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Nothing so far.
    #[default]
    Unsettled,
    /// It arrived in time, or had no deadline.
    OnTime,
    /// It arrived late.
    Late(Reason),
    /// It was given up.
    Dropped(Reason),
    /// A newer message took its place.
    Superseded,
    /// The application took it back.
    Cancelled {
        /// Whether a part of it had left.
        was_sent: bool,
    },
    /// An outcome that this crate does not know.
    Unknown,
}

impl From<&Outcome> for Fate {
    fn from(outcome: &Outcome) -> Self {
        match *outcome {
            Outcome::OnTime { .. } => Self::OnTime,
            Outcome::Late { why, .. } => Self::Late(why.into()),
            Outcome::Dropped { why } => Self::Dropped(why.into()),
            Outcome::Superseded => Self::Superseded,
            Outcome::Cancelled { sent } => Self::Cancelled { was_sent: sent },
            _ => Self::Unknown,
        }
    }
}

impl Fate {
    /// Whether nobody wants the message to arrive any more.
    pub(super) const fn is_withdrawn(self) -> bool {
        matches!(self, Self::Superseded | Self::Cancelled { .. })
    }
}

/// What the protocol counted for a stream (or, of a session with one stream, for the session), added up over sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProtocolCounts {
    /// Messages with a deadline.
    pub messages_promised: u64,
    /// Sum over those of the probability of missing it, as predicted when they were sent.
    pub predicted_misses: f64,
    /// Source symbols of all messages.
    pub source_symbols: u64,
    /// Symbols sent, source and repair.
    pub symbols_sent: u64,
    /// Bytes of headers and tags.
    pub encapsulation_bytes: u64,
    /// Bytes of messages.
    pub message_bytes: u64,
}

impl ProtocolCounts {
    /// Adds those of another session or run.
    pub fn add(&mut self, other: &Self) {
        self.messages_promised += other.messages_promised;
        self.predicted_misses += other.predicted_misses;
        self.source_symbols += other.source_symbols;
        self.symbols_sent += other.symbols_sent;
        self.encapsulation_bytes += other.encapsulation_bytes;
        self.message_bytes += other.message_bytes;
    }

    /// Without those that were there before.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            messages_promised: self
                .messages_promised
                .saturating_sub(before.messages_promised),
            predicted_misses: (self.predicted_misses - before.predicted_misses).max(0.0),
            source_symbols: self.source_symbols.saturating_sub(before.source_symbols),
            symbols_sent: self.symbols_sent.saturating_sub(before.symbols_sent),
            encapsulation_bytes: (self.encapsulation_bytes)
                .saturating_sub(before.encapsulation_bytes),
            message_bytes: self.message_bytes.saturating_sub(before.message_bytes),
        }
    }
}

/// Counts one stream in all its sessions.
#[derive(Debug, Clone)]
pub struct StreamTally {
    pub(super) spec: StreamSpec,
    pub(super) sessions: u32,
    pub(super) seeds: Vec<u64>,
    /// Goodput is what arrives from here until there.
    from: Moment,
    until: Moment,
    /// Those of each run after those of the one before.
    pub(super) flows: Vec<Flow>,
    /// All flows of a run go through one link, or one uplink.
    pub(super) shares_link: bool,
    pub(super) counts: Counts,
    pub(super) protocol: ProtocolCounts,
    bytes_by_second: Vec<u64>,
}

/// What is not kept message by message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) refused: u64,
    pub(super) sent_bytes: u64,
    pub(super) delivered_bytes: u64,
    /// Of those, within the time of measuring.
    pub(super) good_bytes: u64,
    /// Messages that became whole in that time.
    pub(super) good_messages: u64,
    pub(super) duplicates: u64,
    pub(super) out_of_order: u64,
    /// Arrived, but never sent: a broken promise.
    pub(super) ghosts: u64,
}

/// The stream in one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    pub(super) messages: Vec<Message>,
    /// Bytes that arrived within the time of measuring.
    pub(super) good_bytes: u64,
    /// By key, the number of the newest that arrived, plus 1.
    newest: Vec<u32>,
    /// Large messages of which a part has arrived: the receiver's name for them, and their number.
    partial: Vec<(u64, u32)>,
}

/// A message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    id: MessageId,
    sent_at: Moment,
    latency_us: u32,
    pub(super) bytes: u32,
    /// What no sender could have beaten; of streams with a deadline, once the run is over.
    pub(super) limit: Option<Limit>,
    pub(super) fate: Fate,
    /// Sent before the measuring began: reported apart.
    pub(super) is_early: bool,
}

const NEVER: u32 = u32::MAX;

impl Message {
    /// From sending to arrival, rounded up to whole microseconds (a nanosecond late is late); None if it never arrived.
    pub(super) fn latency_us(&self) -> Option<u64> {
        (self.latency_us != NEVER).then_some(u64::from(self.latency_us))
    }

    /// Whether it counts: what was withdrawn before it arrived does not.
    pub(super) fn is_counted(&self) -> bool {
        self.latency_us != NEVER || !self.fate.is_withdrawn()
    }

    /// Whether it arrived within so many microseconds.
    pub(super) fn is_within(&self, bound_us: u64) -> bool {
        self.latency_us().is_some_and(|latency| latency <= bound_us)
    }
}

impl StreamTally {
    /// For a stream in so many sessions of a run with `seed`; it is measured from `from` until `until`: goodput is what arrives in
    /// that time, and messages that were sent before it are counted apart.
    pub fn new(spec: &StreamSpec, sessions: u32, seed: u64, from: Moment, until: Moment) -> Self {
        Self {
            spec: spec.clone(),
            sessions,
            seeds: vec![seed],
            from,
            until,
            flows: vec![Flow::default(); sessions as usize],
            shares_link: false,
            counts: Counts::default(),
            protocol: ProtocolCounts::default(),
            bytes_by_second: Vec::new(),
        }
    }

    /// The number of the session's next message, for its stamp. [`StreamTally::on_sent`] takes it when the send succeeds.
    pub fn next_number(&self, session: u32) -> u32 {
        self.flows[session as usize].messages.len() as u32
    }

    /// The protocol has accepted the session's next message, of `bytes` bytes, as `id`.
    pub fn on_sent(&mut self, session: u32, at: Moment, id: MessageId, bytes: u64) {
        self.counts.sent_bytes += bytes;
        // A bulk message is all that there is.
        let is_bulk = matches!(self.spec.traffic.pattern, Pattern::Bulk { .. });
        self.flows[session as usize].messages.push(Message {
            id,
            sent_at: at,
            latency_us: NEVER,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            limit: None,
            fate: Fate::Unsettled,
            is_early: at < self.from && !is_bulk,
        });
    }

    /// The protocol has not accepted a message that was due.
    pub const fn on_refused(&mut self) {
        self.counts.refused += 1;
    }

    /// A whole message has arrived.
    pub fn on_message(&mut self, session: u32, at: Moment, data: &[u8]) {
        match stamp::read(data) {
            Some(number) => self.arrive(session, at, number, data.len() as u64),
            None => self.counts.ghosts += 1,
        }
    }

    /// A piece of a large message has arrived, or no more of it will. Pieces come in order.
    pub fn on_piece(&mut self, session: u32, at: Moment, piece: &Piece) {
        let flow = &mut self.flows[session as usize];
        let (message, offset, data) = match piece {
            Piece::Data {
                message,
                offset,
                data,
                ..
            } => (*message, *offset, data),
            Piece::Aborted { message, .. } => {
                flow.partial.retain(|(name, _)| name != message);
                return;
            }
        };
        if offset == 0
            && let Some(number) = stamp::read(data)
        {
            flow.partial.push((message, number));
        }
        let bytes = data.len() as u64;
        if !piece.is_last() {
            self.add_bytes(session, at, bytes);
            return;
        }
        let known = flow.partial.iter().position(|(name, _)| *name == message);
        match known {
            Some(index) => {
                let (_, number) = flow.partial.swap_remove(index);
                self.arrive(session, at, number, bytes);
            }
            None => self.counts.ghosts += 1,
        }
    }

    /// The protocol says what became of a message. Nothing happens if it is not one of this stream.
    pub fn on_outcome(&mut self, session: u32, id: MessageId, fate: Fate) {
        let messages = &mut self.flows[session as usize].messages;
        // Names rise with the order of sending.
        if let Ok(index) = messages.binary_search_by_key(&id, |message| message.id) {
            messages[index].fate = fate;
        }
    }

    /// Adds what the protocol counted in a session.
    pub fn add_protocol(&mut self, counts: &ProtocolCounts) {
        self.protocol.add(counts);
    }

    /// Whether there are messages of which the sender has not yet said what became of them.
    pub fn is_waiting(&self) -> bool {
        let mut messages = self.flows.iter().flat_map(|flow| &flow.messages);
        messages.any(|message| message.fate == Fate::Unsettled)
    }

    /// Finds out what no sender could have beaten over the sessions' own paths (a shared link is left out, so that the limits are on
    /// the generous side). Nothing to do without a deadline. A million messages take about a second.
    pub(super) fn find_limits(&mut self, scenario: &Scenario, seed: u64, fates: Fates) {
        let Some(deadline) = self.spec.deadline else {
            return;
        };
        let datagram_max = scenario.datagram_max();
        for (path, flow) in (fates.first_path..).zip(&mut self.flows) {
            let mut genie = Genie::new(&scenario.path, Direction::Forward, seed, path);
            let messages = flow.messages.iter_mut();
            for message in messages.filter(|message| message.is_counted() && !message.is_early) {
                let at = message.sent_at.after(fates.before);
                let parcel = Parcel::of(message.bytes as usize, None, datagram_max);
                message.limit = Some(genie.limit(at, deadline, parcel));
            }
        }
    }

    /// Its sessions share a link, and so their messages the queue in front of it.
    #[must_use]
    pub const fn through_one_link(mut self, shares_link: bool) -> Self {
        self.shares_link = shares_link;
        self
    }

    /// In which of so many equal parts of the measured time a message was sent.
    pub(super) fn part_of_window(&self, message: &Message, parts: usize) -> usize {
        let since = u128::from(message.sent_at.0.saturating_sub(self.from.0));
        let span = u128::from(self.until.0.saturating_sub(self.from.0)).max(1);
        ((since * parts as u128 / span) as usize).min(parts.saturating_sub(1))
    }

    /// Adds another run of the same stream with another seed.
    ///
    /// # Panics
    /// If it is another stream, or was measured for another time.
    pub fn merge(&mut self, other: Self) {
        assert_eq!(
            self.spec, other.spec,
            "only runs of one scenario are pooled"
        );
        assert_eq!(self.window(), other.window(), "measured for another time");
        self.seeds.extend(other.seeds);
        self.flows.extend(other.flows);
        self.protocol.add(&other.protocol);
        let (mine, others) = (&mut self.counts, other.counts);
        mine.refused += others.refused;
        mine.sent_bytes += others.sent_bytes;
        mine.delivered_bytes += others.delivered_bytes;
        mine.good_bytes += others.good_bytes;
        mine.good_messages += others.good_messages;
        mine.duplicates += others.duplicates;
        mine.out_of_order += others.out_of_order;
        mine.ghosts += others.ghosts;
        let seconds = self.bytes_by_second.len().max(other.bytes_by_second.len());
        self.bytes_by_second.resize(seconds, 0);
        for (sum, bytes) in self.bytes_by_second.iter_mut().zip(other.bytes_by_second) {
            *sum += bytes;
        }
    }

    /// Latencies of all messages that count, for plots; what never arrived is in them as lost.
    pub fn latencies(&self) -> Latencies {
        latencies(self.counted())
    }

    /// Bytes that arrived in each second since the measuring began, over all sessions and seeds: for plots.
    pub fn bytes_by_second(&self) -> &[u64] {
        &self.bytes_by_second
    }

    /// How long goodput is measured.
    pub(super) fn window(&self) -> Duration {
        self.until.since(self.from)
    }

    /// The messages that count, of those that were sent while measured.
    pub(super) fn counted(&self) -> impl Iterator<Item = &Message> {
        let messages = self.flows.iter().flat_map(|flow| &flow.messages);
        messages.filter(|message| message.is_counted() && !message.is_early)
    }

    /// Latencies of the messages that count and were sent before the measuring began.
    pub(super) fn early_latencies(&self) -> Latencies {
        let messages = self.flows.iter().flat_map(|flow| &flow.messages);
        latencies(messages.filter(|message| message.is_counted() && message.is_early))
    }

    /// Bytes that arrived in each session while measured, by session and then by seed.
    pub fn bytes_by_session(&self) -> impl Iterator<Item = u64> {
        self.flows.iter().map(|flow| flow.good_bytes)
    }

    fn arrive(&mut self, session: u32, at: Moment, number: u32, bytes: u64) {
        let flow = &mut self.flows[session as usize];
        let Some(message) = flow.messages.get_mut(number as usize) else {
            self.counts.ghosts += 1;
            return;
        };
        if message.latency_us != NEVER {
            self.counts.duplicates += 1;
            return;
        }
        let us = at.since(message.sent_at).as_nanos().div_ceil(1000);
        message.latency_us = us.min(u128::from(NEVER - 1)) as u32;
        let key = self.spec.key_of(u64::from(number)) as usize;
        if flow.newest.len() <= key {
            flow.newest.resize(key + 1, 0);
        }
        if number < flow.newest[key] {
            self.counts.out_of_order += 1;
        } else {
            flow.newest[key] = number + 1;
        }
        self.counts.good_messages += u64::from(self.is_measured(at));
        self.add_bytes(session, at, bytes);
    }

    fn is_measured(&self, at: Moment) -> bool {
        at >= self.from && at < self.until
    }

    fn add_bytes(&mut self, session: u32, at: Moment, bytes: u64) {
        self.counts.delivered_bytes += bytes;
        if !self.is_measured(at) {
            return;
        }
        self.counts.good_bytes += bytes;
        self.flows[session as usize].good_bytes += bytes;
        let second = at.since(self.from).as_secs() as usize;
        if self.bytes_by_second.len() <= second {
            self.bytes_by_second.resize(second + 1, 0);
        }
        self.bytes_by_second[second] += bytes;
    }
}

fn latencies<'a>(messages: impl Iterator<Item = &'a Message>) -> Latencies {
    let mut latencies = Latencies::default();
    for message in messages {
        match message.latency_us() {
            Some(us) => latencies.record(us),
            None => latencies.record_lost(),
        }
    }
    latencies
}
