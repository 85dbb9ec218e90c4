//! The measuring of an endpoint: probers and responders by session, and what they have the endpoint send.
//!
//! It is driven with the protocol, where time is read: a probe is stamped when its packet is handed to the socket
//! ([`Endpoint::departure`]), what arrives is stamped when the batch that it came in was received. So neither the
//! application's threads nor the session's own queue, window and pace are measured as path.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual_proto::{
    Delivery, Endpoint, Instant, MessageId, SendError, SendOptions, SessionId, StreamConfig,
    StreamError, StreamId,
};

use super::leaving::{Leaving, Leavings};
use super::options::{MeasureOptions, MeasureRules};
use super::packet::MeasuredPacket;
use super::prober::{Output, Prober};
use super::report::{Copies, MeasureProgress, Measured};
use super::responder::{Answer, Counts, Responder};
use super::wire::{CONTROL, Down, PROBES, Probe, Terms, Up};
use crate::signal::{Rings, Signal};

/// Until a message that the session had no room for is offered again.
const AGAIN: Duration = Duration::from_millis(50);
/// Control messages that wait for room; a peer that makes more of them necessary gets no answer.
const WAITING_MAX: usize = 64;
/// Parts of traces that wait for the application; more are refused (a part has up to 4,096 rows).
const PARTS_MAX: usize = 64;

/// Traces that clients have uploaded, for the application.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    pub(crate) waiting: VecDeque<TracePart>,
    /// The endpoint is gone; the error that ended it, if one did.
    pub(crate) ended: Option<Option<Arc<io::Error>>>,
}

/// What the application sees of a measurement of its own.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) progress: Option<MeasureProgress>,
    pub(crate) result: Option<Measured>,
}

/// Part of a trace that a client has uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracePart {
    /// Names the trace within its endpoint, from 0.
    pub trace: u64,
    /// Whose it is.
    pub session: SessionId,
    /// Where that is; an address to count by, not to name files after.
    pub remote: Option<SocketAddr>,
    /// Packets, in order of leaving, after those of the parts before.
    pub packets: Vec<MeasuredPacket>,
    /// Nothing follows of this trace.
    pub is_last: bool,
}

#[derive(Debug)]
struct Probing {
    prober: Prober,
    watched: Arc<Signal<Watched>>,
}

#[derive(Debug)]
struct Responding {
    responder: Responder,
    /// The trace being uploaded.
    trace: u64,
}

/// The measuring of an endpoint.
#[derive(Debug)]
pub(crate) struct Engine {
    /// `None`: this endpoint answers nobody.
    rules: Option<MeasureRules>,
    probers: BTreeMap<SessionId, Probing>,
    responders: BTreeMap<SessionId, Responding>,
    leaving: Leavings,
    /// Control messages that the session had no room for.
    waiting: BTreeMap<SessionId, VecDeque<Vec<u8>>>,
    again_at: Option<Instant>,
    traces: Arc<Signal<Traces>>,
    next_trace: u64,
    /// Whom something has happened to.
    rings: Rings,
}

impl Engine {
    pub(crate) fn new(rules: Option<MeasureRules>, traces: Arc<Signal<Traces>>) -> Self {
        Self {
            rules: rules.map(MeasureRules::in_range),
            probers: BTreeMap::new(),
            responders: BTreeMap::new(),
            leaving: Leavings::default(),
            waiting: BTreeMap::new(),
            again_at: None,
            traces,
            next_trace: 0,
            rings: Rings::default(),
        }
    }

    /// Whether messages of this stream of a session are the engine's, not the application's.
    pub(crate) fn takes(&self, session: SessionId, stream: StreamId) -> bool {
        let is_reserved = stream == PROBES || stream == CONTROL;
        is_reserved && (self.rules.is_some() || self.probers.contains_key(&session))
    }

    /// New rules, for all sessions at once.
    pub(crate) fn set_rules(&mut self, now: Instant, rules: MeasureRules, endpoint: &mut Endpoint) {
        let rules = rules.in_range();
        self.rules = Some(rules);
        let sessions: Vec<SessionId> = self.responders.keys().copied().collect();
        for session in sessions {
            let terms = Down::Terms(terms_of(rules)).encode();
            self.send_control(now, session, terms, endpoint);
        }
    }

    /// Begins to measure; the options were checked. One measurement a session at a time.
    ///
    /// # Errors
    /// When the streams cannot be opened.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        session: SessionId,
        options: MeasureOptions,
        endpoint: &mut Endpoint,
    ) -> Result<Arc<Signal<Watched>>, StreamError> {
        let before = self.probers.get(&session);
        if before.is_some_and(|probing| !probing.prober.is_over()) {
            let number = CONTROL.0;
            return Err(StreamError::AlreadyOpen { number });
        }
        if before.is_none() {
            open_streams(session, endpoint)?;
        }
        let watched = Arc::new(Signal::default());
        let probing = Probing {
            prober: Prober::new(now, options),
            watched: Arc::clone(&watched),
        };
        self.probers.insert(session, probing);
        self.after_prober(now, session, endpoint);
        Ok(watched)
    }

    /// The application wants no more of it. `watched` says which measurement is meant: the session may have a newer one.
    pub(crate) fn stop(
        &mut self,
        now: Instant,
        session: SessionId,
        watched: &Arc<Signal<Watched>>,
        endpoint: &mut Endpoint,
    ) {
        if let Some(probing) = self.probers.get_mut(&session)
            && Arc::ptr_eq(&probing.watched, watched)
        {
            probing.prober.stop(now);
            self.after_prober(now, session, endpoint);
        }
    }

    /// A message has come on a stream that [`takes`](Self::takes) has said yes to.
    pub(crate) fn handle_message(
        &mut self,
        now: Instant,
        session: SessionId,
        stream: StreamId,
        bytes: &[u8],
        endpoint: &mut Endpoint,
    ) {
        if stream == PROBES {
            self.handle_probe(now, session, bytes, endpoint);
        } else if let Some(probing) = self.probers.get_mut(&session) {
            if let Some(message) = Down::decode(bytes) {
                probing.prober.handle_control(now, message);
            }
            self.after_prober(now, session, endpoint);
        } else if let (Some(rules), Some(message)) = (self.rules, Up::decode(bytes)) {
            self.handle_up(now, session, message, rules, endpoint);
        }
    }

    fn handle_probe(
        &mut self,
        now: Instant,
        session: SessionId,
        bytes: &[u8],
        endpoint: &mut Endpoint,
    ) {
        if let Some(probing) = self.probers.get_mut(&session) {
            probing.prober.handle_probe(now, bytes);
            return self.after_prober(now, session, endpoint);
        }
        let is_on = self.rules.is_some_and(|rules| rules.is_on);
        let responding = self.responders.get_mut(&session).filter(|_| is_on);
        let Some(responding) = responding else { return };
        if let Some((number, echo)) = responding.responder.handle_probe(now, bytes) {
            let sent = (self.leaving.has_room(session))
                .then(|| send(now, session, PROBES, &echo, endpoint).ok());
            match sent.flatten() {
                Some(message) => {
                    self.leaving
                        .push(session, Leaving::echo(now, message, number));
                }
                None => responding.responder.on_departed(number, None),
            }
        }
    }

    fn handle_up(
        &mut self,
        now: Instant,
        session: SessionId,
        message: Up,
        rules: MeasureRules,
        endpoint: &mut Endpoint,
    ) {
        if message == Up::Ask {
            self.close_trace(session, endpoint);
            let is_new = !self.responders.contains_key(&session);
            if is_new && open_streams(session, endpoint).is_err() {
                // The application has these numbers itself. The client hears nothing, and gives up.
                return;
            }
            let responding = self
                .responders
                .entry(session)
                .or_insert_with(|| Responding {
                    responder: Responder::new(now),
                    trace: 0,
                });
            responding.trace = self.next_trace;
            self.next_trace += 1;
        }
        let has_room = self.traces.lock().waiting.len() < PARTS_MAX;
        let Some(responding) = self.responders.get_mut(&session) else {
            return;
        };
        let counts = copies_of(session, endpoint);
        let counts = Counts {
            packets: counts.packets,
            copies: counts.copies,
        };
        let terms = Terms {
            // Without room for it, a part is refused as if measuring were off.
            is_on: rules.is_on && (has_room || !matches!(message, Up::Rows { .. })),
            ..terms_of(rules)
        };
        let Answer { reply, part } = responding
            .responder
            .handle_control(now, message, terms, counts);
        let trace = responding.trace;
        if let Some((packets, is_last)) = part {
            self.hand_on(TracePart {
                trace,
                session,
                remote: endpoint.remote(session),
                packets,
                is_last,
            });
        }
        if let Some(reply) = reply {
            self.send_control(now, session, reply.encode(), endpoint);
        }
    }

    /// A trace whose end will not come ends here.
    fn close_trace(&mut self, session: SessionId, endpoint: &Endpoint) {
        let Some(responding) = self.responders.get(&session) else {
            return;
        };
        // One more than the bound for each session: without it the application would keep the trace open for ever.
        if responding.responder.has_open_trace() {
            self.hand_on(TracePart {
                trace: responding.trace,
                session,
                remote: endpoint.remote(session),
                packets: Vec::new(),
                is_last: true,
            });
        }
    }

    /// The session is over.
    pub(crate) fn on_closed(&mut self, session: SessionId, endpoint: &Endpoint) {
        if let Some(mut probing) = self.probers.remove(&session) {
            probing.prober.on_closed();
            publish(&mut probing, session, endpoint, &mut self.rings);
        }
        self.close_trace(session, endpoint);
        self.responders.remove(&session);
        self.waiting.remove(&session);
        self.leaving.forget(session);
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant, endpoint: &mut Endpoint) {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return;
        }
        if self.again_at.is_some_and(|at| now >= at) {
            self.again_at = None;
            for (session, messages) in std::mem::take(&mut self.waiting) {
                for message in messages {
                    self.send_control(now, session, message, endpoint);
                }
            }
        }
        let sessions: Vec<SessionId> = self.probers.keys().copied().collect();
        for session in sessions {
            if let Some(probing) = self.probers.get_mut(&session) {
                probing.prober.handle_timeout(now);
                self.after_prober(now, session, endpoint);
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let probers = self.probers.values();
        let probers = probers.filter_map(|probing| probing.prober.poll_timeout());
        probers.chain(self.again_at).min()
    }

    /// Packets have been handed to the socket: notes which of ours were among them.
    pub(crate) fn note_departures(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let (probers, responders) = (&mut self.probers, &mut self.responders);
        self.leaving
            .note(now, endpoint, |session, leaving, departed| {
                if leaving.is_echo {
                    if let Some(responding) = responders.get_mut(&session) {
                        responding.responder.on_departed(leaving.number, departed);
                    }
                } else if let Some(probing) = probers.get_mut(&session) {
                    match departed {
                        Some(at) => probing.prober.on_departed(leaving.number, at),
                        None => probing.prober.on_held(leaving.number),
                    }
                }
            });
    }

    fn hand_on(&mut self, part: TracePart) {
        self.traces.lock().waiting.push_back(part);
        self.rings.add(&self.traces);
    }

    /// To be rung once the lock is free.
    pub(crate) const fn rings(&mut self) -> &mut Rings {
        &mut self.rings
    }

    /// All sessions are gone.
    pub(crate) fn abandon(&mut self, endpoint: &Endpoint) {
        while let Some((&session, _)) = self.probers.first_key_value() {
            self.on_closed(session, endpoint);
        }
    }

    /// Sends what the prober wants sent, and shows the application how far it is.
    fn after_prober(&mut self, now: Instant, session: SessionId, endpoint: &mut Endpoint) {
        let mut controls = Vec::new();
        let Some(probing) = self.probers.get_mut(&session) else {
            return;
        };
        let bytes = probing.prober.bytes();
        while let Some(output) = probing.prober.poll_output() {
            match output {
                Output::Control(message) => controls.push(message.encode()),
                Output::Probe(number) => {
                    let probe = Probe::Up { number }.encode(bytes);
                    match send(now, session, PROBES, &probe, endpoint) {
                        Ok(message) => {
                            self.leaving
                                .push(session, Leaving::probe(now, message, number));
                        }
                        Err(_) => probing.prober.on_held(number),
                    }
                }
                Output::Cancel(number) => {
                    if let Some(message) = self.leaving.message_of(session, number) {
                        endpoint.cancel(now, session, message);
                    }
                }
            }
        }
        publish(probing, session, endpoint, &mut self.rings);
        for message in controls {
            self.send_control(now, session, message, endpoint);
        }
    }

    /// Sends a message on the reliable stream, now or when there is room.
    fn send_control(
        &mut self,
        now: Instant,
        session: SessionId,
        bytes: Vec<u8>,
        endpoint: &mut Endpoint,
    ) {
        let is_first = self.waiting.get(&session).is_none_or(VecDeque::is_empty);
        let is_full = is_first
            && matches!(
                send(now, session, CONTROL, &bytes, endpoint),
                Err(SendError::Full { .. })
            );
        if is_full || !is_first {
            let waiting = self.waiting.entry(session).or_default();
            if waiting.len() < WAITING_MAX {
                waiting.push_back(bytes);
            }
            self.again_at.get_or_insert(now + AGAIN);
        }
    }
}

fn terms_of(rules: MeasureRules) -> Terms {
    Terms {
        is_on: rules.is_on,
        sample: rules.sample,
        packets_max: rules.packets_max,
    }
}

fn open_streams(session: SessionId, endpoint: &mut Endpoint) -> Result<(), StreamError> {
    let probes = StreamConfig::new(Delivery::Unreliable).number(PROBES.0);
    let control = StreamConfig::new(Delivery::ReliableOrdered).number(CONTROL.0);
    endpoint.open_stream(session, probes)?;
    endpoint
        .open_stream(session, control)
        .map(drop)
        .inspect_err(|_| endpoint.close_stream(session, PROBES))
}

fn send(
    now: Instant,
    session: SessionId,
    stream: StreamId,
    bytes: &[u8],
    endpoint: &mut Endpoint,
) -> Result<MessageId, SendError> {
    endpoint.send(now, session, stream, bytes, SendOptions::default())
}

fn copies_of(session: SessionId, endpoint: &Endpoint) -> Copies {
    let stats = endpoint.session_stats(session).unwrap_or_default();
    Copies {
        packets: stats.packets_received,
        copies: stats.packets_replayed,
    }
}

fn publish(probing: &mut Probing, session: SessionId, endpoint: &Endpoint, rings: &mut Rings) {
    let mut watched = probing.watched.lock();
    watched.progress = Some(probing.prober.progress());
    if let Some(result) = probing.prober.take_result(copies_of(session, endpoint)) {
        watched.result = Some(result);
    }
    drop(watched);
    rings.add(&probing.watched);
}
