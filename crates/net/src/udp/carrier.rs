//! Datagrams between a socket and a protocol endpoint, in four steps.
//!
//! ```text
//!  receive (system call) -> deliver (protocol) -> collect (protocol) -> flush (system call)
//! ```
//!
//! The steps are apart so that whoever shares an endpoint between threads can hold its lock during the protocol's steps and
//! let go of it during the system's. All datagrams of a batch are delivered before anything is collected: the
//! acknowledgements for them then leave as one datagram a session. Nothing here allocates once it stands.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use punctual_proto::{Endpoint, Instant, Route};

use super::{Ecn, RecvBatch, Refusal, SendBatch, SendLimits, Socket};
use crate::clock::{Clock, unix_seconds};

/// Messages of one receiving call, each a datagram or several that the kernel joined.
const RECEIVE_MESSAGES: usize = 64;
/// While the socket takes nothing, what is due is looked at so often, at most.
const BLOCKED_LOOK: Duration = Duration::from_millis(1);
/// How often the endpoint frees the buffers that it has not needed since the last time.
const TRIM_EVERY: Duration = Duration::from_secs(2);
/// How often the endpoint is told the date.
const DATE_EVERY: Duration = Duration::from_secs(1);

/// A socket, and the batches of datagrams on their way to and from it.
#[derive(Debug)]
pub struct Carrier {
    socket: Arc<Socket>,
    clock: Clock,
    incoming: RecvBatch,
    outgoing: SendBatch,
    is_blocked: bool,
    /// When buffers are freed next; `None` while none are kept.
    trims_at: Option<Instant>,
    /// When the endpoint is told the date next.
    dates_at: Instant,
}

impl Carrier {
    /// A carrier on `socket`. `clock` must be the one by which its endpoint is driven.
    #[must_use]
    pub fn new(socket: Arc<Socket>, clock: Clock) -> Self {
        Self {
            socket,
            clock,
            incoming: RecvBatch::new(RECEIVE_MESSAGES),
            outgoing: SendBatch::new(SendLimits::default()),
            is_blocked: false,
            trims_at: None,
            dates_at: Instant::ZERO,
        }
    }

    /// The time, as the protocol counts it.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.clock.now_nanos())
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Takes what waits in the kernel, at most one batch; returns the number of datagrams.
    ///
    /// # Errors
    /// When the socket is of no more use.
    pub fn receive(&mut self) -> io::Result<usize> {
        self.socket.recv(&mut self.incoming)
    }

    /// Whether the last [`receive`](Self::receive) filled its batch, so that more is probably waiting.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.incoming.is_full()
    }

    /// Hands the datagrams of the last [`receive`](Self::receive) to the endpoint. Call it once for each of those.
    pub fn deliver(&mut self, endpoint: &mut Endpoint) {
        let now = self.now();
        if now >= self.dates_at {
            self.dates_at = now + DATE_EVERY;
            // Rounded up: a token ends up to a second early, never late.
            endpoint.set_unix_time(now, unix_seconds(SystemTime::now()) + 1);
        }
        for datagram in self.incoming.datagrams() {
            let route = Route {
                remote: datagram.from,
                local: datagram.to,
            };
            endpoint.handle_datagram(now, route, datagram.ecn.into(), datagram.payload);
        }
    }

    /// Does what is due by the clock: the endpoint's timers, and now and then the freeing of buffers.
    pub fn handle_timeout(&mut self, endpoint: &mut Endpoint) {
        let now = self.now();
        endpoint.handle_timeout(now);
        match self.trims_at {
            None if endpoint.holds_buffers() => self.trims_at = Some(now + TRIM_EVERY),
            Some(at) if at <= now => {
                endpoint.shrink();
                self.trims_at = endpoint.holds_buffers().then(|| now + TRIM_EVERY);
            }
            _ => {}
        }
    }

    /// Fills the outgoing batch. `true` when the endpoint may have more: flush, and collect again.
    pub fn collect(&mut self, endpoint: &mut Endpoint) -> bool {
        let now = self.now();
        while let Some(space) = self.outgoing.space() {
            let Some(transmit) = endpoint.poll_transmit(now, space) else {
                return false;
            };
            let (from, ecn) = (transmit.from, transmit.ecn.into());
            self.outgoing
                .commit_from(from, transmit.len, transmit.to, ecn);
        }
        true
    }

    /// Sends the batch. When the kernel does not take all of it, the rest stays for the next call and
    /// [`is_blocked`](Self::is_blocked) says so.
    ///
    /// # Errors
    /// When the socket is of no more use.
    pub fn flush(&mut self) -> io::Result<()> {
        self.is_blocked = false;
        if !self.outgoing.is_empty() {
            self.is_blocked = self.socket.send(&mut self.outgoing)?.blocked;
        }
        Ok(())
    }

    /// What the kernel last refused to send since this was last asked.
    pub fn take_refusal(&mut self) -> Option<Refusal> {
        self.outgoing.take_refusal()
    }

    /// Whether datagrams wait until the socket is writable.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due. Ask when [`collect`](Self::collect) has answered `false`.
    #[must_use]
    pub fn poll_timeout(&self, endpoint: &Endpoint) -> Option<Instant> {
        let timeouts = [endpoint.poll_timeout(), self.trims_at];
        let at = timeouts.into_iter().flatten().min()?;
        // Who is to send is due until asked, which is in vain now.
        let least = (self.is_blocked()).then(|| self.now() + BLOCKED_LOOK);
        Some(least.map_or(at, |least| at.max(least)))
    }

    /// The time from now until `at`.
    #[must_use]
    pub fn until(&self, at: Instant) -> Duration {
        self.clock.until(at.as_nanos())
    }
}

impl From<Ecn> for punctual_proto::Ecn {
    fn from(ecn: Ecn) -> Self {
        match ecn {
            Ecn::NotEct => Self::NotEct,
            Ecn::Ect1 => Self::Ect1,
            Ecn::Ect0 => Self::Ect0,
            Ecn::Ce => Self::Ce,
        }
    }
}

impl From<punctual_proto::Ecn> for Ecn {
    fn from(ecn: punctual_proto::Ecn) -> Self {
        match ecn {
            punctual_proto::Ecn::NotEct => Self::NotEct,
            punctual_proto::Ecn::Ect1 => Self::Ect1,
            punctual_proto::Ecn::Ect0 => Self::Ect0,
            punctual_proto::Ecn::Ce => Self::Ce,
        }
    }
}
