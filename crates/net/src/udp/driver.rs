//! A protocol endpoint on a socket: everything that happens to it happens inside [`Driver::turn`].
//!
//! For one thread that owns all of it: a game loop, a benchmark. Where threads share an endpoint, see [`Carrier`].

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use punctual_policy::Library;
use punctual_proto::{ConfigError, Endpoint, EndpointConfig, Instant};

use super::{Carrier, Refusal, Socket};
use crate::clock::Clock;
use crate::entropy::{self, EntropyError};
use crate::tables;

/// Receiving calls of one turn. What waits beyond that waits for the next, so that a flood cannot keep a turn from ending.
const RECEIVES: usize = 4;
/// Sending calls of one turn.
const SENDS: usize = 64;

/// An endpoint and its socket.
pub struct Driver {
    endpoint: Endpoint,
    policies: Arc<Library>,
    carrier: Carrier,
}

/// What a turn left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Datagrams received.
    pub received: usize,
    /// More is waiting in either direction: take the next turn at once.
    pub has_more: bool,
    /// The kernel's send buffer is full: wait until the socket is writable too.
    pub is_blocked: bool,
}

impl Driver {
    /// An endpoint on `socket`, with its randomness from the operating system.
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn new(
        config: EndpointConfig,
        socket: Arc<Socket>,
        clock: Clock,
    ) -> Result<Self, DriverError> {
        let config = config.build().map_err(DriverError::Config)?;
        let policies = Arc::clone(&config.policies);
        let seed = entropy::seed().map_err(DriverError::Entropy)?;
        Ok(Self {
            endpoint: Endpoint::new(config, seed),
            policies,
            carrier: Carrier::new(socket, clock),
        })
    }

    /// Receives, does what is due, and sends. Never waits.
    ///
    /// All that was received is handled before anything is sent, so that a session acknowledges it with one datagram.
    /// Events are there afterwards ([`Endpoint::poll_event`]); what the application does with them is sent by the next turn.
    ///
    /// # Errors
    /// When the socket is of no more use.
    pub fn turn(&mut self) -> io::Result<Turn> {
        let mut turn = Turn::default();
        for _ in 0..RECEIVES {
            turn.received += self.carrier.receive()?;
            self.carrier.deliver(&mut self.endpoint);
            turn.has_more = self.carrier.has_more();
            if !turn.has_more {
                break;
            }
        }
        self.carrier.handle_timeout(&mut self.endpoint);
        turn.has_more |= self.send()?;
        turn.is_blocked = self.carrier.is_blocked();
        tables::build_wanted(&self.policies);
        Ok(turn)
    }

    /// Sends what the endpoint has to send, as a part of a turn. `true` when there is more.
    ///
    /// # Errors
    /// When the socket is of no more use.
    pub fn send(&mut self) -> io::Result<bool> {
        for _ in 0..SENDS {
            let has_more = self.carrier.collect(&mut self.endpoint);
            self.carrier.flush()?;
            if !has_more || self.carrier.is_blocked() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether packets wait since the kernel's buffer is full.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        self.carrier.is_blocked()
    }

    /// What the kernel last refused to send since this was last asked.
    pub fn take_refusal(&mut self) -> Option<Refusal> {
        self.carrier.take_refusal()
    }

    /// When the next turn is due although no datagram comes; `None` for never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.carrier.poll_timeout(&self.endpoint)
    }

    /// How long to wait for datagrams before the next turn; `None` without end.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        self.poll_timeout().map(|at| self.carrier.until(at))
    }

    /// The time, as the endpoint counts it.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.carrier.now()
    }

    /// The endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The endpoint, to connect, send and take events.
    pub const fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Arc<Socket> {
        self.carrier.socket()
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("carrier", &self.carrier)
            .field("sessions", &self.endpoint.sessions())
            .finish_non_exhaustive()
    }
}

/// Why a driver could not be made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum DriverError {
    /// The configuration makes no sense.
    Config(ConfigError),
    /// No randomness, hence no keys.
    Entropy(EntropyError),
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Entropy(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DriverError {}
