//! All sessions of one socket and thread: datagrams are routed to them by connection id, newcomers are admitted.
//!
//! Call order: after anything that changes an endpoint (`handle_*`, `connect`, `send`, `close`), take datagrams with
//! [`Endpoint::poll_transmit`] and events with [`Endpoint::poll_event`] until both answer `None`; then wait until
//! [`Endpoint::poll_timeout`] or the next datagram.

mod admission;
mod config;
mod connecting;
mod coordinator;
mod effort;
mod gone;
mod room;
mod route;
mod routing;
mod streams;
mod timers;
mod transmit;
mod trims;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

pub use config::{
    Capacity, ConfigError, EndpointConfig, Promise, ServerConfig, ThinStreams, Uplink,
};
use punctual_policy::Situation;

use crate::handshake::{CookieJar, Entropy};
use crate::pool::Pool;
use crate::session::{
    CloseCode, CloseReason, Commons, Event, PathReport, SendError, Session, SessionStats, Shared,
};
use crate::stream::{Forecast, SendOptions, StreamId};
use crate::time::{Instant, earliest};
use crate::wire::{ConnectionId, Header, Kind, classify};
use admission::Admissions;
use connecting::Connecting;
pub use connecting::{ConnectError, ConnectOptions};
use coordinator::Coordinator;
pub(crate) use coordinator::Pending;
use room::EndpointRoom;
pub use route::{Route, canonical};
use routing::{Slot, Table};
use timers::TimerHeap;
use trims::Trims;

/// The ECN field of an IP packet (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, ECT(1).
    Ect1,
    /// ECN-capable, ECT(0): what this protocol sends.
    Ect0,
    /// Congestion was experienced.
    Ce,
}

/// A datagram to send: it is in the buffer given to [`Endpoint::poll_transmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// From which of this host's addresses; `None` leaves it to the system.
    pub from: Option<IpAddr>,
    /// Bytes of it.
    pub len: usize,
    /// How to mark it.
    pub ecn: Ecn,
}

/// Names a session of an endpoint: once and for all, also when its connection id has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    number: u64,
    id: ConnectionId,
}

impl SessionId {
    /// An endpoint's sessions, and attempts at one, count from 0 in the order in which they began.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.number
    }
}

/// Datagrams that concern no session, and what all sessions hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams of no kind that the protocol has.
    pub foreign: u64,
    /// Malformed handshake packets and headers.
    pub malformed: u64,
    /// Packets for sessions that are not there.
    pub unknown_session: u64,
    /// Of them, answered that there is no such session.
    pub gone: u64,
    /// Packets that did not open: forged, damaged, or from before a restart.
    pub unauthentic: u64,
    /// HELLOs seen.
    pub hellos: u64,
    /// Cookies asked for.
    pub retries: u64,
    /// Clients refused.
    pub refusals: u64,
    /// Diffie-Hellman exchanges spent on HELLOs.
    pub handshakes: u64,
    /// Sessions closed because all together held too much for their peers, and these most.
    pub closed_for_room: u64,
    /// Bytes that sessions hold for their peers at present: what is not complete, and what waits for the application (in a session's own inbox to within 64 KiB).
    pub held_bytes: u64,
}

/// All sessions of one socket.
pub struct Endpoint {
    config: EndpointConfig,
    commons: Commons,
    trims: Trims,
    table: Table,
    timers: TimerHeap,
    admissions: Admissions,
    room: EndpointRoom,
    cookies: CookieJar,
    /// Sessions that may have something to send.
    transmit_queue: VecDeque<u32>,
    /// Sessions that have acknowledgements which wait for the end of the frame.
    answers_kept: Vec<u32>,
    /// Sessions that wait for the uplink.
    coordinator: Coordinator,
    /// Sessions that have events.
    event_queue: VecDeque<u32>,
    /// Events of sessions that are gone already, such as a connection attempt that failed.
    orphans: VecDeque<(SessionId, Event)>,
    stats: EndpointStats,
    /// When it last saw to what was due.
    saw_to_due_at: Instant,
}

/// What is due and was not seen to for so long was not seen to by anybody: the host stood still.
const STOOD_STILL: Duration = Duration::from_millis(100);

/// Bytes of free buffers that an endpoint keeps.
const POOL_MAX: usize = 4 << 20;

impl Endpoint {
    /// An endpoint whose randomness all comes from `seed`: 32 bytes from the operating system, never used twice.
    #[must_use]
    pub fn new(config: EndpointConfig, seed: [u8; 32]) -> Self {
        let mut entropy = Entropy::from_seed(seed);
        let cookies = CookieJar::new(entropy.array());
        let commons = Commons::new(entropy, Pool::new(POOL_MAX), config.is_polled);
        Self {
            table: Table::new(
                config.thread,
                cookies.first_generation(),
                config.capacity.sessions_max,
            ),
            coordinator: Coordinator::new(config.uplink),
            room: EndpointRoom::new(config.capacity.received_bytes_max),
            config,
            commons,
            trims: Trims::default(),
            timers: TimerHeap::default(),
            admissions: Admissions::default(),
            cookies,
            transmit_queue: VecDeque::new(),
            answers_kept: Vec::new(),
            event_queue: VecDeque::new(),
            orphans: VecDeque::new(),
            stats: EndpointStats::default(),
            saw_to_due_at: Instant::ZERO,
        }
    }

    /// Begins a session with a server. `Connected` or `Closed` follows as an event.
    ///
    /// # Errors
    /// When there are too many sessions.
    pub fn connect(
        &mut self,
        now: Instant,
        options: &ConnectOptions,
    ) -> Result<SessionId, ConnectError> {
        let limit = self.config.capacity.sessions_max;
        let id = self
            .table
            .reserve()
            .ok_or(ConnectError::TooManySessions { limit })?;
        let connecting = Connecting::new(now, id, options, &self.config, &mut self.commons.entropy);
        self.table.fill(id, Slot::Connecting(connecting));
        self.after_change(id);
        Ok(self.table.name(id))
    }

    /// Says what time it is for the expiry of tokens: `unix_s`, seconds since 1970. To be called every second or so, since the clock that `now` is of may stand
    /// still while the machine sleeps, and the system's may be corrected. Nothing on a client.
    pub fn set_unix_time(&mut self, now: Instant, unix_s: u64) {
        if let Some(server) = &mut self.config.server {
            server.epoch_unix_s = unix_s.saturating_sub(now.as_nanos() / 1_000_000_000);
        }
    }

    /// Takes in a datagram. `route` is its sender's address, or a [`Route`] where the socket listens on several of this host's.
    /// It is decrypted in place. Whatever it holds, the work is bounded and nothing panics.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        route: impl Into<Route>,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let route = route.into();
        self.note_stop(now);
        match classify(datagram) {
            Kind::Protected => self.handle_protected(now, route, ecn, datagram),
            Kind::Handshake => self.handle_handshake(now, route, datagram),
            Kind::Gone => self.handle_gone(now, route, datagram),
            Kind::Foreign => self.stats.foreign += 1,
        }
    }

    /// Whether the host stood still until now: something was due long ago. Then it is known from when on it is there again.
    fn note_stop(&mut self, now: Instant) -> bool {
        // (What was found to be due long ago is not late for that.)
        let late = |due: Instant| now.since(due.max(self.saw_to_due_at));
        let late = self.timers.earliest().map_or(Duration::ZERO, late);
        let experience = &mut self.commons.experience;
        // (A slow loop's frame is no stop.)
        let has_stopped = late > STOOD_STILL && late > experience.timer_lag.get().before_end() * 4;
        if has_stopped {
            experience.resumed_at = now;
        }
        has_stopped
    }

    fn handle_protected(&mut self, now: Instant, route: Route, ecn: Ecn, datagram: &mut [u8]) {
        let Ok(header) = Header::decode(datagram) else {
            self.stats.malformed += 1;
            return;
        };
        let Some((id, Slot::Session(session))) = self.table.get_mut(header.destination) else {
            self.stats.unknown_session += 1;
            self.tell_gone(now, route, header.destination);
            return;
        };
        let was_confirmed = session.is_confirmed();
        let mut shared = self.commons.share(&self.config, true);
        shared.share = self.room.share();
        if !session.handle_packet(now, route, ecn, &header, datagram, &mut shared) {
            self.stats.unauthentic += 1;
            return;
        }
        let has_nothing_to_send = session.has_nothing_to_send(now);
        if !was_confirmed && session.is_confirmed() {
            self.admissions.on_confirmed(id);
        }
        if has_nothing_to_send {
            // It is at hand now: an acknowledgement needs no second visit.
            self.queue_events(id);
            self.settle(id.index() as u32);
        } else {
            self.after_change(id);
        }
        self.make_room(now);
    }

    /// Queues a session for `poll_transmit` and `poll_event`, and sets its timer.
    fn after_change(&mut self, id: ConnectionId) {
        self.queue_events(id);
        self.queue_transmit(id.index() as u32);
    }

    fn queue_transmit(&mut self, index: u32) {
        if let Some(entry) = self.table.entry_mut(index)
            && !core::mem::replace(&mut entry.wants_transmit, true)
        {
            self.transmit_queue.push_back(index);
        }
    }

    fn queue_events(&mut self, id: ConnectionId) {
        let index = id.index() as u32;
        let Some(entry) = self.table.entry_mut(index) else {
            return;
        };
        (entry.is_busy, entry.is_slack) = (true, true);
        self.trims.on_change();
        self.room.count(entry);
        self.announce_events(index);
    }

    /// The application is to hear what a session has to tell.
    fn announce_events(&mut self, index: u32) {
        let Some(entry) = self.table.entry_mut(index) else {
            return;
        };
        let has_events = matches!(&entry.slot, Slot::Session(session) if session.has_events());
        if has_events && !core::mem::replace(&mut entry.wants_event, true) {
            self.event_queue.push_back(index);
        }
    }

    /// A session has sent what it could: its timer is set, and it goes if it is over.
    fn settle(&mut self, index: u32) {
        let Some(entry) = self.table.entry_mut(index) else {
            return;
        };
        let id = entry.id;
        let timeout = match &mut entry.slot {
            Slot::Session(session) if session.is_closed() && !session.has_events() => {
                self.remove(id);
                return;
            }
            Slot::Session(session) => {
                session.forget_timers();
                session.poll_timeout()
            }
            Slot::Connecting(connecting) => connecting.poll_timeout(),
            Slot::Free => None,
        };
        if let Some(entry) = self.table.entry_mut(index) {
            entry.due = timeout;
        }
        self.timers.set_at_latest(index, timeout);
    }

    /// The earliest timer is one that its session still wishes for: nobody is woken for an older wish.
    fn refresh_timers(&mut self) {
        while let Some((at, index)) = self.timers.first() {
            let due = (self.table.entry_mut(index)).and_then(|entry| entry.due);
            if due.is_some_and(|due| due <= at) {
                return;
            }
            self.timers.set(index, due);
        }
    }

    fn remove(&mut self, id: ConnectionId) {
        self.timers.set(id.index() as u32, None);
        self.admissions.on_gone(id);
        self.table.free(id);
        if let Some(entry) = self.table.entry_mut(id.index() as u32) {
            self.room.count(entry);
        }
    }

    /// The next event. `None` until the next change.
    pub fn poll_event(&mut self) -> Option<(SessionId, Event)> {
        if let Some(orphan) = self.orphans.pop_front() {
            return Some(orphan);
        }
        while let Some(&index) = self.event_queue.front() {
            if let Some(entry) = self.table.entry_mut(index) {
                let (id, name) = (entry.id, entry.name());
                if let Slot::Session(session) = &mut entry.slot {
                    if let Some(event) = session.poll_event() {
                        self.room.count(entry);
                        return Some((name, event));
                    }
                    if session.is_closed() && !session.has_events() {
                        self.remove(id);
                    }
                }
            }
            if let Some(entry) = self.table.entry_mut(index) {
                entry.wants_event = false;
            }
            self.event_queue.pop_front();
        }
        None
    }

    /// When to call [`Endpoint::handle_timeout`]; may be early, never late. Ask after `poll_transmit` has answered `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let sessions = earliest(self.timers.earliest(), self.coordinator.poll_timeout());
        earliest(sessions, self.admissions.poll_timeout())
    }

    /// Does what is due. Early calls are harmless. (Of an [endpoint that is polled](EndpointConfig::is_polled) they tell how often its loop looks.)
    pub fn handle_timeout(&mut self, now: Instant) {
        self.commons.experience.timer_lag.look(now);
        for id in self.admissions.expire(now) {
            self.remove(id);
        }
        // A stop says nothing of how late timers are: a young endpoint would leave that much time for it ever after.
        let has_stopped = self.note_stop(now);
        let due = self.timers.earliest().filter(|due| *due <= now);
        let lag = &mut self.commons.experience.timer_lag;
        if let Some(due) = due.filter(|_| !has_stopped || lag.is_known()) {
            // What was found to be due long ago is not late for that.
            let late = now.since(due.max(self.saw_to_due_at));
            lag.record(late);
        }
        self.saw_to_due_at = now;
        while let Some(index) = self.timers.pop_due(now) {
            let Some(entry) = self.table.entry_mut(index) else {
                continue;
            };
            if entry.due.is_none_or(|at| at > now) {
                // The timer is older than the session's last wish. Found out here, without a visit to the session.
                self.timers.set(index, entry.due);
                continue;
            }
            let id = entry.id;
            match &mut entry.slot {
                Slot::Session(session) => {
                    let mut shared = self.commons.share(&self.config, true);
                    session.handle_timeout(now, &mut shared);
                }
                Slot::Connecting(connecting) => {
                    if let Some(why) = connecting.handle_timeout(now) {
                        self.fail_connecting(id, why);
                        continue;
                    }
                }
                Slot::Free => {}
            }
            self.after_change(id);
        }
    }

    fn fail_connecting(&mut self, id: ConnectionId, why: CloseReason) {
        let name = self.table.name(id);
        self.remove(id);
        self.orphans.push_back((name, Event::Closed { why }));
    }

    /// Calls `f` with the session, and sees to what follows from it.
    fn with_session<R>(
        &mut self,
        id: SessionId,
        f: impl FnOnce(&mut Session, &mut Shared<'_>) -> R,
    ) -> Option<R> {
        let Some((_, Slot::Session(session))) = self.table.named_mut(id) else {
            return None;
        };
        let mut shared = self.commons.share(&self.config, true);
        let result = f(session, &mut shared);
        self.after_change(id.id);
        Some(result)
    }

    /// What could be promised for a message of `len` bytes now.
    ///
    /// # Errors
    /// As [`Endpoint::send`], except for full queues.
    pub fn forecast(
        &mut self,
        now: Instant,
        session: SessionId,
        len: usize,
        options: &SendOptions,
    ) -> Result<Forecast, SendError> {
        self.with_session(session, |session, shared| {
            session.forecast(now, len, options, shared)
        })
        .unwrap_or(Err(SendError::Closed { why: None }))
    }

    /// What the policy would be shown before the first flight of a message of `len` bytes of a stream now (of its first block): for
    /// explaining what is sent and why.
    ///
    /// # Errors
    /// As [`Endpoint::send`], except for full queues and streams that are not open.
    pub fn situation(
        &mut self,
        now: Instant,
        session: SessionId,
        stream: StreamId,
        len: usize,
        options: &SendOptions,
    ) -> Result<Situation, SendError> {
        self.with_session(session, |session, shared| {
            session.situation_of(now, stream, len, options, shared)
        })
        .unwrap_or(Err(SendError::Closed { why: None }))
    }

    /// Ends a session now: messages without an outcome are dropped. `reason` is for the peer's logs, at most 200 bytes.
    pub fn close(&mut self, now: Instant, session: SessionId, code: CloseCode, reason: &str) {
        if let Some((id, Slot::Connecting(_))) = self.table.named_mut(session) {
            self.fail_connecting(id, CloseReason::Local { code });
            return;
        }
        self.with_session(session, |session, shared| {
            session.close(now, code, reason, shared);
        });
    }

    /// Ends all sessions now, those as well whose client has not been heard of since it was let in.
    pub fn close_all(&mut self, now: Instant, code: CloseCode, reason: &str) {
        let names: Vec<SessionId> = self.table.names().collect();
        for name in names {
            self.close(now, name, code, reason);
        }
    }

    /// Forgets all sessions without a word: for who does not trust what it knows of them any more. Nothing of them is told, and whoever asks for one hears
    /// that it is not there.
    pub fn reset(&mut self) {
        let seed = self.commons.entropy.array();
        let number = self.table.next_number();
        *self = Self::new(self.config.clone(), seed);
        self.table.count_from(number);
    }

    /// Ends a session once all of its messages have an outcome; it accepts no more.
    pub fn finish(&mut self, now: Instant, session: SessionId, code: CloseCode, reason: &str) {
        if let Some((_, Slot::Connecting(_))) = self.table.named_mut(session) {
            self.close(now, session, code, reason);
            return;
        }
        self.with_session(session, |session, shared| {
            session.close_when_done(now, code, reason, shared);
        });
    }

    /// Leaves a session's messages where they are (`true`) until called again with `false`: for an application that does not
    /// keep up. Its other events go on. Once the session is full it refuses symbols and says so, and the peer repeats them. The
    /// session's end ends the hold: what it has is handed over before [`Event::Closed`], and nothing follows.
    pub fn hold_messages(&mut self, session: SessionId, is_held: bool) {
        let below = is_held.then_some(StreamId(u16::MAX));
        self.with_session(session, |session, _| session.hold_messages(below));
    }

    /// As [`hold_messages`](Self::hold_messages) with `true`, but of streams below this number alone: those of a service of its own are no matter of an application that
    /// does not keep up.
    pub fn hold_messages_below(&mut self, session: SessionId, stream: StreamId) {
        self.with_session(session, |session, _| session.hold_messages(Some(stream)));
    }

    /// Gives the buffer of a message back for the next one.
    pub fn recycle(&mut self, data: Vec<u8>) {
        self.commons.pool.give(data);
    }

    /// Whether no session has anything under way.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.table.iter().all(|slot| match slot {
            Slot::Session(session) => session.is_quiet(),
            Slot::Connecting(_) => false,
            Slot::Free => true,
        })
    }

    /// Counts of a session; `None` when it is not there.
    #[must_use]
    pub fn session_stats(&self, session: SessionId) -> Option<SessionStats> {
        match self.table.named(session)? {
            Slot::Session(session) => Some(session.stats()),
            _ => None,
        }
    }

    /// What a session knows of its path; `None` when it is not there.
    #[must_use]
    pub fn path_report(&self, now: Instant, session: SessionId) -> Option<PathReport> {
        match self.table.named(session)? {
            Slot::Session(session) => Some(session.path_report(now)),
            _ => None,
        }
    }

    /// The peer's address of a session.
    #[must_use]
    pub fn remote(&self, session: SessionId) -> Option<SocketAddr> {
        match self.table.named(session)? {
            Slot::Session(session) => Some(session.remote()),
            Slot::Connecting(connecting) => Some(connecting.remote()),
            Slot::Free => None,
        }
    }

    /// Sessions, open or being opened.
    #[must_use]
    pub const fn sessions(&self) -> usize {
        self.table.len()
    }

    /// Datagrams that concerned no session, and what all sessions hold.
    #[must_use]
    pub const fn stats(&self) -> EndpointStats {
        EndpointStats {
            held_bytes: self.room.held_bytes() as u64,
            ..self.stats
        }
    }
}
