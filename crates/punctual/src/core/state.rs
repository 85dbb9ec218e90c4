//! The protocol's endpoint, and where the events of its sessions go.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use punctual_net::udp::Refusal;
use punctual_proto::{
    CloseCode, CloseReason, ConnectOptions, Endpoint, Event, Instant, MessageId, SendError,
    SessionId, StreamError,
};

use super::attempts::{Answer, Attempts, Opened, Owner};
use super::{ACCEPTS_MAX, Core};
use crate::assembly::{Assembled, Assemblies, refusal};
use crate::inbox::Inbox;
use crate::measure::{Engine, FIRST_RESERVED, Watched};
use crate::signal::{Rings, Signal, Topic};
use crate::{ConnectError, MeasureOptions, MeasureRules, Message, Piece, Receive};

/// What a session's handles and the driver thread share.
pub(crate) type Mailbox = Signal<Inbox>;

/// A client that has connected.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) id: SessionId,
    pub(crate) identity: Vec<u8>,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) mailbox: Arc<Mailbox>,
}

struct Record {
    mailbox: Arc<Mailbox>,
    /// Large messages that come in pieces.
    assemblies: Assemblies,
    /// What waits in the mailbox, as of the last news.
    waiting_bytes: usize,
}

impl Record {
    /// The engine may take messages of the session that it did not take before.
    fn hold_again(&self, id: SessionId, engine: &Engine, endpoint: &mut Endpoint) {
        if self.mailbox.lock().is_held() {
            hold(engine, id, endpoint);
        }
    }

    /// Tells the protocol what is kept here of the session.
    fn tell_kept(&self, now: Instant, id: SessionId, endpoint: &mut Endpoint) {
        endpoint.set_kept(now, id, self.assemblies.bytes(), self.waiting_bytes);
    }
}

/// What the lock of a [`Core`] guards.
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    attempts: Attempts,
    /// Sessions that the application has a handle of, or may ask for.
    records: BTreeMap<SessionId, Record>,
    /// Whom something has happened to: their bells ring once the lock is free.
    rings: Rings,
    receive: Receive,
    engine: Engine,
    is_stopping: bool,
}

impl State {
    pub(super) fn new(endpoint: Endpoint, receive: Receive, engine: Engine) -> Self {
        Self {
            endpoint,
            attempts: Attempts::default(),
            records: BTreeMap::new(),
            rings: Rings::default(),
            receive,
            engine,
            is_stopping: false,
        }
    }

    pub(super) fn connect(
        &mut self,
        now: Instant,
        addresses: VecDeque<SocketAddr>,
        options: ConnectOptions,
        answer: Arc<Answer>,
    ) {
        if self.is_stopping {
            *answer.lock() = Some(Err(ConnectError::EndpointClosed));
            return;
        }
        self.attempts
            .begin(now, addresses, options, answer, &mut self.endpoint);
    }

    /// Nobody waits for the answer: a session that it has opened already goes too.
    pub(super) fn cancel(&mut self, now: Instant, answer: &Arc<Answer>) {
        self.attempts.cancel(now, answer, &mut self.endpoint);
        if let Some(Ok(opened)) = answer.lock().take() {
            self.forget(now, opened.id);
        }
    }

    /// Hands a message to the protocol.
    pub(crate) fn send(
        &mut self,
        session: SessionId,
        hand_over: impl FnOnce(&mut Endpoint) -> Result<MessageId, SendError>,
    ) -> Result<MessageId, SendError> {
        let result = hand_over(&mut self.endpoint);
        if let Err(SendError::Full { .. }) = &result {
            self.on_full(session);
        }
        result
    }

    /// Hands more of the content of a message to the protocol; answers how much of it was taken.
    pub(crate) fn append(
        &mut self,
        session: SessionId,
        message: MessageId,
        data: &[u8],
    ) -> Result<usize, SendError> {
        let result = self.endpoint.append(session, message, data);
        if result.as_ref().is_ok_and(|taken| *taken < data.len()) {
            self.on_full(session);
        }
        result
    }

    /// Who waits for room waits until the protocol tells of some.
    fn on_full(&self, session: SessionId) {
        if let Some(record) = self.records.get(&session) {
            record.mailbox.lock().is_full = true;
        }
    }

    /// The application has no handle of the session any more.
    pub(crate) fn forget(&mut self, now: Instant, id: SessionId) {
        if self.records.remove(&id).is_some() {
            self.endpoint.close(now, id, CloseCode::DONE, "");
        }
    }

    pub(super) const fn stop(&mut self) {
        self.is_stopping = true;
    }

    pub(super) const fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// The kernel would not send something.
    pub(super) fn note_refusal(&mut self, refusal: &Refusal) {
        self.attempts.note_refusal(refusal.to, &refusal.why);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.attempts.handle_timeout(now, &mut self.endpoint);
        self.engine.handle_timeout(now, &mut self.endpoint);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let timeouts = [self.attempts.poll_timeout(), self.engine.poll_timeout()];
        timeouts.into_iter().flatten().min()
    }

    /// Packets have been collected for the socket.
    pub(super) fn note_departures(&mut self, now: Instant) {
        self.engine.note_departures(now, &mut self.endpoint);
    }

    pub(crate) fn begin_measuring(
        &mut self,
        now: Instant,
        id: SessionId,
        options: MeasureOptions,
    ) -> Result<Arc<Signal<Watched>>, StreamError> {
        let watched = self.engine.begin(now, id, options, &mut self.endpoint)?;
        if let Some(record) = self.records.get(&id) {
            record.hold_again(id, &self.engine, &mut self.endpoint);
        }
        Ok(watched)
    }

    pub(crate) fn stop_measuring(
        &mut self,
        now: Instant,
        id: SessionId,
        watched: &Arc<Signal<Watched>>,
    ) {
        self.engine.stop(now, id, watched, &mut self.endpoint);
    }

    pub(crate) fn set_measuring(&mut self, now: Instant, rules: MeasureRules) {
        self.engine.set_rules(now, rules, &mut self.endpoint);
        for (&id, record) in &self.records {
            record.hold_again(id, &self.engine, &mut self.endpoint);
        }
    }

    /// Puts the protocol's events where they belong.
    pub(crate) fn dispatch(&mut self, now: Instant, core: &Core) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            match event {
                Event::Connected { identity } => self.on_connected(now, id, identity, core),
                Event::Message { stream, data } if self.engine.takes(id, stream) => {
                    self.engine
                        .handle_message(now, id, stream, &data, &mut self.endpoint);
                    self.endpoint.recycle(data);
                }
                Event::Piece(piece) if self.engine.takes(id, piece.stream()) => {
                    let reason = "messages of a measurement are not that large";
                    self.endpoint.close(now, id, CloseCode::TOO_LARGE, reason);
                }
                Event::Message { stream, data } => {
                    self.on_message(now, id, Message { stream, data });
                }
                Event::Piece(piece) => self.on_piece(now, id, piece),
                Event::Outcome {
                    stream,
                    message,
                    outcome,
                } => {
                    if let Some(record) = self.records.get(&id) {
                        let mut inbox = record.mailbox.lock();
                        inbox.push_outcome(stream, message, outcome);
                        drop(inbox);
                        self.rings.add_about(Topic::Sending, &record.mailbox);
                    }
                }
                Event::Writable => {
                    if let Some(record) = self.records.get(&id) {
                        record.mailbox.lock().on_writable();
                        self.rings.add_about(Topic::Sending, &record.mailbox);
                    }
                }
                Event::Closed { why } => self.on_closed(now, id, why, core),
                _ => {}
            }
        }
    }

    fn on_connected(&mut self, now: Instant, id: SessionId, identity: Vec<u8>, core: &Core) {
        let mailbox = Arc::new(Mailbox::default());
        let record = Record {
            mailbox: Arc::clone(&mailbox),
            assemblies: Assemblies::default(),
            waiting_bytes: 0,
        };
        let remote = self.endpoint.remote(id);
        match self.attempts.on_connected(now, id, &mut self.endpoint) {
            Owner::Attempt(answer) => {
                self.records.insert(id, record);
                *answer.lock() = Some(Ok(Opened {
                    id,
                    remote,
                    mailbox,
                }));
                self.rings.add(&answer);
                return;
            }
            Owner::Beaten => return,
            Owner::Peer => {}
        }
        let mut accepts = core.accepts.lock();
        if accepts.waiting.len() >= ACCEPTS_MAX {
            drop(accepts);
            let reason = "the server accepts no more sessions";
            self.endpoint.close(now, id, CloseCode::SHUTDOWN, reason);
            return;
        }
        self.records.insert(id, record);
        accepts.waiting.push_back(Arrival {
            id,
            identity,
            remote,
            mailbox,
        });
        drop(accepts);
        self.rings.add(&core.accepts);
    }

    fn on_message(&mut self, now: Instant, id: SessionId, message: Message) {
        if self.records.contains_key(&id) {
            self.hand_over(now, id, |inbox| inbox.push_message(message));
        } else {
            self.endpoint.recycle(message.data);
        }
    }

    /// Puts content into a session's inbox. `push` answers whether the protocol is to keep further content.
    fn hand_over(&mut self, now: Instant, id: SessionId, push: impl FnOnce(&mut Inbox) -> bool) {
        let Some(record) = self.records.get_mut(&id) else {
            return;
        };
        let mut inbox = record.mailbox.lock();
        let (is_full, news) = (push(&mut inbox), inbox.take_news());
        drop(inbox);
        self.rings.add_about(Topic::Content, &record.mailbox);
        if is_full {
            hold(&self.engine, id, &mut self.endpoint);
        }
        if let Some(waiting_bytes) = news {
            record.waiting_bytes = waiting_bytes;
            record.tell_kept(now, id, &mut self.endpoint);
        }
    }

    /// The application has taken so much that the protocol is to know.
    pub(super) fn note_taken(&mut self, now: Instant, id: SessionId) {
        if let Some(record) = self.records.get_mut(&id)
            && let Some(waiting_bytes) = record.mailbox.lock().take_news()
        {
            record.waiting_bytes = waiting_bytes;
            record.tell_kept(now, id, &mut self.endpoint);
        }
    }

    fn on_piece(&mut self, now: Instant, id: SessionId, piece: Piece) {
        let Receive::Whole { bytes_max } = self.receive else {
            return self.hand_over(now, id, |inbox| inbox.push_piece(piece));
        };
        let Some(record) = self.records.get_mut(&id) else {
            return;
        };
        let (assembled, buffer) = record.assemblies.take(piece, bytes_max);
        self.endpoint.recycle(buffer);
        record.tell_kept(now, id, &mut self.endpoint);
        match assembled {
            Assembled::Going => {}
            Assembled::Whole(message) => self.on_message(now, id, message),
            Assembled::TooLarge { message_len } => {
                let reason = refusal(message_len, bytes_max);
                self.endpoint.close(now, id, CloseCode::TOO_LARGE, &reason);
            }
        }
    }

    fn on_closed(&mut self, now: Instant, id: SessionId, why: CloseReason, core: &Core) {
        self.engine.on_closed(id, &self.endpoint);
        let stats = self.endpoint.session_stats(id);
        match self.records.remove(&id) {
            Some(record) => {
                let stats_of = |stream| self.endpoint.stream_stats(id, stream);
                let mut inbox = record.mailbox.lock();
                inbox.on_closed(why, stats, stats_of);
                let said_nothing = inbox.is_empty();
                drop(inbox);
                if said_nothing {
                    // Who came and went without a word takes nobody's place.
                    let mut accepts = core.accepts.lock();
                    accepts.waiting.retain(|arrival| arrival.id != id);
                }
                self.rings.add(&record.mailbox);
            }
            None => self.attempts.on_failed(now, id, why),
        }
    }

    /// Ends every session. What waits for the application is put into its inbox, over the inbox's limits: nothing more follows.
    pub(super) fn close_all(&mut self, now: Instant, reason: &str) {
        self.attempts.fail_all();
        self.endpoint.close_all(now, CloseCode::SHUTDOWN, reason);
    }

    /// The protocol's state is not to be trusted any more: everybody who waits is told, and nothing more is asked of it.
    pub(super) fn abandon(&mut self) {
        self.is_stopping = true;
        self.attempts.fail_all();
        for record in core::mem::take(&mut self.records).into_values() {
            let code = CloseCode::SHUTDOWN;
            let why = CloseReason::Local { code };
            record.mailbox.lock().on_closed(why, None, |_| None);
            self.rings.add(&record.mailbox);
        }
        // Sessions of it are not there, and answer so.
        self.endpoint.reset();
        self.engine.abandon(&self.endpoint);
    }

    pub(super) fn take_rings(&mut self, rings: &mut Rings) {
        rings.append(&mut self.rings);
        rings.append(self.attempts.rings());
        rings.append(self.engine.rings());
    }
}

/// The protocol keeps a session's messages for its application. What is the engine's goes on, until the session is full as well: whoever measures does not measure how busy that is.
fn hold(engine: &Engine, id: SessionId, endpoint: &mut Endpoint) {
    match engine.takes(id, FIRST_RESERVED) {
        true => endpoint.hold_messages_below(id, FIRST_RESERVED),
        false => endpoint.hold_messages(id, true),
    }
}
