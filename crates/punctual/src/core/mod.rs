//! What an endpoint's handles and its driver thread share: the protocol's state behind one lock.
//!
//! The application's calls go straight to the protocol, so that `send` answers at once and copies once. The driver thread
//! holds the lock while it delivers or collects a batch of at most 64 datagrams (tens of microseconds), and lets go of it for
//! every system call, where most of its time goes. Two locks at once are only ever taken in the order state, inbox.

mod attempts;
mod lent;
mod state;
mod thread;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_net::clock::Clock;
use punctual_net::udp::{Carrier, Poller, Socket, SocketId, Waker};
use punctual_policy::Library;
use punctual_proto::{ConnectOptions, Endpoint, EndpointConfig, Instant, SessionId};

pub(crate) use attempts::{Answer, Opened};
pub(crate) use lent::{Returned, lend};
pub(crate) use state::{Arrival, Mailbox, State};
pub(crate) use thread::run;

use crate::measure::{Engine, Traces};
use crate::signal::{Rings, Signal};
use crate::{EndpointError, MeasureRules, Receive};

/// Sessions that wait for `accept`; more than this are turned away.
const ACCEPTS_MAX: usize = 4096;

/// Clients that have connected and wait for `accept`.
#[derive(Debug, Default)]
pub(crate) struct Accepts {
    waiting: VecDeque<Arrival>,
    /// The endpoint is gone; the error that ended it, if one did.
    pub(crate) ended: Option<Option<Arc<io::Error>>>,
}

impl Accepts {
    pub(crate) fn pop(&mut self) -> Option<Arrival> {
        self.waiting.pop_front()
    }
}

/// The shared part of an endpoint.
pub(crate) struct Core {
    state: Mutex<State>,
    pub(crate) accepts: Arc<Signal<Accepts>>,
    pub(crate) traces: Arc<Signal<Traces>>,
    pub(crate) returned: Arc<Returned>,
    clock: Clock,
    waker: Waker,
    policies: Arc<Library>,
    pub(crate) local: SocketAddr,
    /// Whether the socket reaches IPv4 and IPv6 peers.
    pub(crate) reaches: Reach,
}

/// Which peers a socket can talk to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) ipv4: bool,
    pub(crate) ipv6: bool,
}

impl Reach {
    pub(crate) const fn includes(self, address: &SocketAddr) -> bool {
        match address {
            SocketAddr::V4(_) => self.ipv4,
            SocketAddr::V6(_) => self.ipv6,
        }
    }
}

/// What the driver thread owns.
pub(crate) struct Machinery {
    carrier: Carrier,
    poller: Poller,
    socket: SocketId,
}

impl Core {
    pub(crate) fn new(
        config: EndpointConfig,
        (receive, measure): (Receive, Option<MeasureRules>),
        socket: Socket,
        reaches: Reach,
        clock: Clock,
    ) -> Result<(Self, Machinery), EndpointError> {
        let config = config.build().map_err(EndpointError::Config)?;
        let policies = Arc::clone(&config.policies);
        let seed = punctual_net::entropy::seed().map_err(EndpointError::Entropy)?;
        let socket = Arc::new(socket);
        let mut poller = Poller::new().map_err(EndpointError::System)?;
        let id = poller
            .watch(Arc::clone(&socket))
            .map_err(EndpointError::System)?;
        let traces = Arc::new(Signal::default());
        let engine = Engine::new(measure, Arc::clone(&traces));
        let core = Self {
            state: Mutex::new(State::new(Endpoint::new(config, seed), receive, engine)),
            accepts: Arc::default(),
            traces,
            returned: Arc::default(),
            clock,
            waker: poller.waker(),
            policies,
            local: socket.local_addr(),
            reaches,
        };
        let machinery = Machinery {
            carrier: Carrier::new(socket, clock),
            poller,
            socket: id,
        };
        Ok((core, machinery))
    }

    /// The time, as the protocol counts it.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.clock.now_nanos())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing of the application runs under this lock but `as_ref` of what it lends; any other panic under it is a bug of ours, and ends that thread alone.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the driver thread look at what has changed.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// The application has taken much of what it had of a session. Where it `is_released`, more is handed to it at once, by its own thread. (The driver thread has
    /// packets to do, and while one waits for the other, a fast sender's are refused.)
    pub(crate) fn after_taking(&self, session: SessionId, is_released: bool) {
        let mut rings = Rings::default();
        let mut state = self.lock();
        state.note_taken(self.now(), session);
        if !is_released {
            return;
        }
        state.endpoint.hold_messages(session, false);
        state.dispatch(self.now(), self);
        state.take_rings(&mut rings);
        drop(state);
        self.returned.let_go();
        rings.ring();
        self.wake();
    }

    /// Begins to connect; the answer comes by the signal returned.
    pub(crate) fn connect(
        &self,
        addresses: VecDeque<SocketAddr>,
        options: ConnectOptions,
    ) -> Arc<Answer> {
        let answer = Arc::new(Answer::default());
        self.lock()
            .connect(self.now(), addresses, options, Arc::clone(&answer));
        self.wake();
        answer
    }

    pub(crate) fn cancel(&self, answer: &Arc<Answer>) {
        self.lock().cancel(self.now(), answer);
        self.wake();
    }

    /// Ends everything; the driver thread then ends itself.
    pub(crate) fn stop(&self) {
        self.lock().stop();
        self.wake();
    }
}
