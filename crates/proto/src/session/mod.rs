//! One session: the parts of the protocol put together. `input.rs`, `output.rs` and `timers.rs` are the only files that see all of
//! them; `rounds.rs` asks the policy, `prices.rs` says what a miss is worth to it.

mod acks;
mod answers;
mod arrivals;
mod blame;
mod bundling;
mod close;
mod cut;
mod darkness;
mod event;
mod events;
mod expect;
mod fill;
mod input;
mod keep_alive;
mod loss;
mod narrow;
mod output;
mod prices;
mod recall;
mod ride;
mod rounds;
mod send;
mod silence;
mod statistics;
mod timers;

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::net::SocketAddr;
use core::time::Duration;

pub use close::{CloseCode, CloseReason};
pub use event::{Event, Piece};
pub(crate) use output::{KEY_UPDATE_PACKETS, KEY_UPDATE_PACKETS_MAX};
pub(crate) use send::Content;
pub use send::SendError;
pub use statistics::{PathReport, SessionStats};

use self::answers::PendingAck;
use self::darkness::Darkness;
use self::events::Events;
use self::keep_alive::KeepAlive;
use crate::clock::ClockOffset;
use crate::crypto::{Algorithm, OpenKeys, SealKeys};
use crate::endpoint::{EndpointConfig, Promise, Route};
use crate::handshake::{Entropy, Established};
use crate::limits::{EVENTS_MAX, IDLE_TIMEOUT_MIN};
use crate::message::{Inbox, Outbox, Room, Share, SplitCache};
use crate::path::{Path, TimerLag, UsualLoss, Validation};
use crate::pool::Pool;
use crate::recovery::{Received, SentPackets};
use crate::schedule::Schedule;
use crate::stream::{Groups, Incoming, MessageId, PromiseGroup, Promises, StreamId, Streams};
use crate::time::Instant;
use crate::wire::{ConnectionId, GONE_TOKEN_LEN};

/// Which end of the session this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// What a session borrows from its endpoint for the time of a call.
pub(crate) struct Shared<'a> {
    pub(crate) config: &'a EndpointConfig,
    pub(crate) pool: &'a mut Pool,
    pub(crate) entropy: &'a mut Entropy,
    /// Scratch for block numbers.
    pub(crate) touched: &'a mut Vec<u64>,
    /// Scratch for packet numbers.
    named: &'a mut Vec<u64>,
    /// What the endpoint's sessions have learned.
    pub(crate) experience: &'a mut Experience,
    /// Symbols may leave, as far as the endpoint is concerned.
    pub(crate) has_budget: bool,
    /// Acknowledgements wait for something to go with.
    keeps_answers: bool,
    /// How much each session may hold for its peer.
    pub(crate) share: Share,
}

/// What a session holds for its peer, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Of blocks and messages that wait for something which has not come yet.
    pub(crate) unfinished: usize,
    /// With what waits for the application.
    pub(crate) all: usize,
}

/// What the sessions of an endpoint have in common, besides its configuration.
pub(crate) struct Commons {
    pub(crate) entropy: Entropy,
    pub(crate) pool: Pool,
    touched: Vec<u64>,
    named: Vec<u64>,
    pub(crate) experience: Experience,
    /// Acknowledgements wait for something to go with, for the rest of a loop's frame.
    pub(crate) keeps_answers: bool,
}

impl Commons {
    pub(crate) fn new(entropy: Entropy, pool: Pool, is_polled: bool) -> Self {
        Self {
            entropy,
            pool,
            touched: Vec::new(),
            named: Vec::new(),
            experience: Experience {
                timer_lag: TimerLag::new(is_polled),
                ..Experience::default()
            },
            keeps_answers: false,
        }
    }

    /// Lends it to a session. `has_budget`: symbols may leave, as far as the endpoint is concerned.
    pub(crate) const fn share<'a>(
        &'a mut self,
        config: &'a EndpointConfig,
        has_budget: bool,
    ) -> Shared<'a> {
        Shared {
            config,
            pool: &mut self.pool,
            entropy: &mut self.entropy,
            touched: &mut self.touched,
            named: &mut self.named,
            experience: &mut self.experience,
            has_budget,
            keeps_answers: self.keeps_answers,
            share: Share::ALL,
        }
    }
}

/// What sessions of an endpoint learn from each other.
#[derive(Default)]
pub(crate) struct Experience {
    /// How late the host sees to what is due.
    pub(crate) timer_lag: TimerLag,
    /// When it was last found that the host had stood still: what came meanwhile has waited here, and not on its way.
    pub(crate) resumed_at: Instant,
    /// The loss of their paths: a new session begins with it.
    pub(crate) loss: UsualLoss,
    /// The prices of misses, where the promise is that of all sessions together.
    promises: Promises,
    /// The same for groups of streams.
    groups: Groups,
}

impl Shared<'_> {
    /// The promises that a stream shares with others; `None` where it stands by itself.
    fn pooled(&self, group: Option<PromiseGroup>) -> Option<&Promises> {
        match group {
            Some(group) => self.experience.groups.get(group),
            None => match self.config.promise {
                Promise::EachStream => None,
                Promise::AllSessions => Some(&self.experience.promises),
            },
        }
    }

    /// The same, to be moved.
    fn pooled_mut(&mut self, group: Option<PromiseGroup>) -> Option<&mut Promises> {
        match group {
            Some(group) => Some(self.experience.groups.get_mut(group)),
            None => match self.config.promise {
                Promise::EachStream => None,
                Promise::AllSessions => Some(&mut self.experience.promises),
            },
        }
    }
}

/// Packets taken for lost are remembered at least this long.
const LOST_KEPT: Duration = Duration::from_secs(3);

/// Keys of both directions and when they change.
struct Keys {
    algorithm: Algorithm,
    seal: SealKeys,
    open: OpenKeys,
    /// First packet sealed with the current generation.
    first_number: u64,
    /// An answer of ours has named a packet of the generation that is opened: the peer may have begun the next.
    is_named: bool,
    /// When the generation before may be forgotten.
    forget_at: Option<Instant>,
}

impl Keys {
    /// Whether the peer may have begun the next generation (PROTOCOL.md#keys).
    const fn may_be_ahead(&self) -> bool {
        self.is_named || self.seal.generation() > self.open.generation()
    }
}

/// Small things that wait to be sent.
#[derive(Default)]
struct Control {
    ping: bool,
    path_response: Option<[u8; 8]>,
    /// Runs of blocks that were given up, until the peer has acknowledged hearing of them.
    abandoned: VecDeque<Run>,
    /// The packet that told of the first runs, and of how many.
    abandon_told: Option<(u64, u8)>,
    /// In the dark: until when telling of them is no reason for a packet.
    abandon_held: Option<Instant>,
}

/// Blocks that follow each other.
#[derive(Clone, Copy)]
struct Run {
    first: u64,
    count: u64,
    /// It is the first block of a message of several: stands for that message.
    is_large: bool,
}

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A block: each has at most one entry that counts, its `armed` time.
    Block(u64),
    /// A message that waits to be cut.
    Message(MessageId),
}

/// Sends wait for each other.
struct Tick {
    /// For so long at most.
    max: Duration,
    /// When the time of the current tick is over; `None` when nothing waits.
    ends: Option<Instant>,
}

/// Where the session stands.
enum State {
    /// A server's session whose client has not yet shown that it holds the keys.
    Unconfirmed {
        /// `None` once it has been repeated: which one was answered is not known.
        accept_sent_at: Option<Instant>,
        identity: Vec<u8>,
    },
    Open,
    /// To be closed when all messages have their outcome.
    Finishing {
        code: CloseCode,
        reason: String,
    },
    /// CLOSE was sent; it is sent again to whatever still comes, until `until`.
    Closing {
        code: CloseCode,
        reason: String,
        until: Instant,
        is_due: bool,
        /// Whatever comes with a number below has been answered.
        answered_below: u64,
    },
    Closed,
}

/// A session.
pub(crate) struct Session {
    role: Role,
    peer: ConnectionId,
    state: State,
    keys: Keys,
    path: Path,
    validation: Option<Validation>,
    clock: ClockOffset,
    sent: SentPackets,
    largest_acked: Option<u64>,
    received: Received,
    ack: PendingAck,
    control: Control,
    traffic: Traffic,
    liveness: Liveness,
    statistics: SessionStats,
}

/// Messages in both directions.
#[derive(Default)]
struct Traffic {
    streams: Streams,
    outbox: Outbox,
    inbox: Inbox,
    incoming: Incoming,
    schedule: Schedule,
    split: SplitCache,
    /// Small blocks that were sent last.
    recent: bundling::Recent,
    rides: ride::Rides,
    /// The last prediction of a miss.
    prediction: Option<(expect::PredictionKey, f64)>,
    tick: Option<Tick>,
    /// `send` has answered `Full`.
    was_full: bool,
    events: Events,
    blame: blame::Blame,
    timers: BinaryHeap<Reverse<(Instant, Due)>>,
    /// Share of the messages with a deadline, lately, that the window or the pacer held back.
    held_share: f32,
    /// There is room for what is needed even if nothing is lost, and for no redundancy.
    holds_redundancy: bool,
    /// Symbols could leave if the endpoint had room for them on its way out.
    awaits_budget: bool,
    /// When the pacer lets the next packet go, if one waits.
    paced_until: Option<Instant>,
}

impl Traffic {
    /// What is held besides what the inbox holds, where all of it should not be more than the fair share.
    const fn room(&self, share: Share) -> Room {
        let (waiting, kept) = (self.incoming.waiting_bytes(), self.events.kept());
        let fair_bytes = share.fair_bytes.saturating_sub(kept.all);
        Room {
            waiting_bytes: waiting + self.events.content_bytes(),
            unfinished_bytes: waiting + kept.unfinished,
            share: Share {
                fair_bytes,
                ..share
            },
        }
    }
}

/// Signs of life in both directions.
struct Liveness {
    idle_timeout: Duration,
    keep_alive: KeepAlive,
    last_received: Instant,
    /// Packets with lower numbers came before one that was refused, or were refused.
    not_refused_from: u64,
    last_sent: Instant,
    /// When an acknowledgement last told of something new.
    last_acked: Instant,
    heard: Option<arrivals::Heard>,
    darkness: Darkness,
    /// When the newest packet that was acknowledged was sent.
    newest_acked_sent_at: Instant,
    /// What left between these two was not answered for in time, and the answer that came at last had no room to name it.
    untold: Option<(Instant, Instant)>,
    /// When the oldest packet of an unbroken run of losses was sent.
    losses_since: Option<Instant>,
    /// The newest round trip.
    latest_rtt: Duration,
    /// When the next packet that later ones have overtaken is lost.
    loss_at: Option<Instant>,
    /// For how long the latest flight is waited for.
    patience: Duration,
    /// A client's: what its server says when it knows nothing of the session any more.
    gone_token: Option<[u8; GONE_TOKEN_LEN]>,
}

impl Session {
    pub(crate) fn new(
        now: Instant,
        role: Role,
        route: Route,
        established: Established,
        identity: Vec<u8>,
        shared: &Shared<'_>,
    ) -> Self {
        let aead = &*shared.config.aead;
        let Established {
            peer,
            seal,
            open,
            algorithm,
            parameters,
            gone_token,
        } = established;
        let datagram_max = parameters.datagram_max.min(shared.config.datagram_max);
        let idle_timeout = match parameters.idle_timeout {
            Duration::ZERO => shared.config.idle_timeout,
            theirs => theirs.max(IDLE_TIMEOUT_MIN).min(shared.config.idle_timeout),
        };
        // Well within what the peer, too, waits for.
        let keep_alive = (shared.config.keep_alive)
            .filter(|_| role == Role::Client)
            .map(|interval| interval.min(idle_timeout / 3));
        let state = match role {
            Role::Server => State::Unconfirmed {
                accept_sent_at: Some(now),
                identity,
            },
            Role::Client => State::Open,
        };
        Self {
            role,
            peer,
            state,
            keys: Keys {
                algorithm,
                seal: SealKeys::new(aead, algorithm, seal),
                open: OpenKeys::new(aead, algorithm, open),
                first_number: 0,
                is_named: false,
                forget_at: None,
            },
            path: Path::new(now, route, datagram_max, shared.experience),
            validation: None,
            clock: ClockOffset::default(),
            sent: SentPackets::default(),
            largest_acked: None,
            received: Received::default(),
            ack: PendingAck::default(),
            control: Control {
                ping: role == Role::Client,
                ..Control::default()
            },
            traffic: Traffic::default(),
            liveness: Liveness {
                idle_timeout,
                keep_alive: KeepAlive::new(now, keep_alive),
                last_received: now,
                not_refused_from: 0,
                last_sent: now,
                last_acked: now,
                heard: None,
                darkness: Darkness::default(),
                newest_acked_sent_at: now,
                untold: None,
                losses_since: None,
                latest_rtt: Duration::ZERO,
                loss_at: None,
                patience: Duration::ZERO,
                gone_token,
            },
            statistics: SessionStats::default(),
        }
    }

    /// Takes in the round trip of the handshake, so that a session does not start from nothing.
    pub(crate) fn on_handshake_round_trip(&mut self, now: Instant, round_trip: Duration) {
        self.path.rtt.record(now, round_trip);
    }

    /// The ACCEPT goes again.
    pub(crate) fn on_accept_repeated(&mut self) {
        if let State::Unconfirmed { accept_sent_at, .. } = &mut self.state {
            *accept_sent_at = None;
        }
    }

    /// How far back packets taken for lost are remembered: long enough for a round trip that was thought shorter to show.
    fn lost_before(&self, now: Instant) -> Instant {
        let before = now - (self.path.round_time() * 4).max(LOST_KEPT);
        // Where nothing later has been answered for it may be the answers that are lost: the first that comes says what has arrived. (An answer that was
        // for a repetition alone made a message late by as long as the answers had been away.)
        let unanswered_from = self.liveness.newest_acked_sent_at;
        before.min(unanswered_from.max(now - self.liveness.idle_timeout))
    }

    /// A client's session is open as soon as its server has answered.
    pub(crate) fn announce(&mut self) {
        self.traffic.events.push(Event::Connected {
            identity: Vec::new(),
        });
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        let event = self.traffic.events.pop()?;
        // `send` may have answered `Full` for the events alone: then no outcome comes that would tell of room.
        if !event.is_content() && self.traffic.events.others() == EVENTS_MAX / 2 {
            self.tell_writable_when_roomy();
        }
        Some(event)
    }

    /// What it holds for its peer.
    pub(crate) const fn held(&self) -> Held {
        let traffic = &self.traffic;
        let (inbox, kept) = (traffic.inbox.held_bytes(), traffic.events.kept());
        let waiting = traffic.incoming.waiting_bytes();
        Held {
            unfinished: inbox + waiting + kept.unfinished,
            all: inbox + waiting + traffic.events.content_bytes() + kept.all,
        }
    }

    /// What was taken of it and is kept elsewhere.
    pub(crate) const fn set_kept(&mut self, kept: Held) {
        self.traffic.events.keep(kept);
    }

    pub(crate) const fn hold_messages(&mut self, below: Option<StreamId>) {
        self.traffic.events.hold_messages(below);
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.traffic.events.is_empty()
    }

    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    pub(crate) const fn is_confirmed(&self) -> bool {
        !matches!(self.state, State::Unconfirmed { .. })
    }

    pub(crate) const fn remote(&self) -> SocketAddr {
        self.path.route.remote
    }

    /// Gives back what the last burst needed; called when the session has been quiet for a while.
    pub(crate) fn trim(&mut self) {
        let traffic = &mut self.traffic;
        traffic.outbox.trim();
        traffic.inbox.trim();
        traffic.schedule.trim();
        traffic.streams.trim();
        traffic.events.trim();
        traffic.timers.shrink_to_fit();
        self.sent.trim();
        self.control.abandoned.shrink_to_fit();
    }

    /// Whether nothing is under way in either direction.
    pub(crate) fn is_quiet(&self) -> bool {
        self.traffic.outbox.is_empty()
            && !self.traffic.inbox.has_partials()
            && !self.traffic.incoming.is_waiting()
            && self.traffic.events.is_empty()
    }
}
