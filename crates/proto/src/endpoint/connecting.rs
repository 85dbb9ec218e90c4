//! A client's session before its server has answered: it expects RETRY or ACCEPT, and repeats its HELLO until then.

use alloc::boxed::Box;
use core::net::SocketAddr;
use core::time::Duration;

use super::{Ecn, EndpointConfig, Transmit, canonical};
use crate::crypto::Algorithm;
use crate::handshake::{ClientHandshake, ConnectToken, Entropy, Parameters};
use crate::session::CloseReason;
use crate::time::Instant;
use crate::wire::{ConnectionId, Refusal};

/// First repetition; then twice as long each time, up to [`REPEAT_MAX`].
const REPEAT: Duration = Duration::from_millis(250);
const REPEAT_MAX: Duration = Duration::from_secs(1);
/// A refusal is not authenticated: it is believed when nothing better came for this long.
const REFUSAL_PATIENCE: Duration = Duration::from_millis(750);

/// Where to connect to, and as whom.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The server's address.
    pub remote: SocketAddr,
    /// The server's public key.
    pub server_key: [u8; 32],
    /// From the game's backend, if the server asks for one.
    pub token: Option<ConnectToken>,
}

/// Why a connection could not be begun. (Any 32 bytes are a public key: a wrong one is a handshake that does not succeed.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The endpoint holds as many sessions as it may.
    TooManySessions {
        /// How many.
        limit: usize,
    },
}

impl core::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooManySessions { limit } => {
                write!(f, "this endpoint already has its {limit} sessions")
            }
        }
    }
}

impl core::error::Error for ConnectError {}

pub(super) struct Connecting {
    pub(super) handshake: ClientHandshake,
    remote: SocketAddr,
    /// When the newest HELLO left.
    hello_at: Instant,
    /// When it goes again if nothing comes.
    next_hello: Instant,
    /// It is to go again now, with a cookie.
    has_cookie: bool,
    repeat: Duration,
    gives_up_at: Instant,
    refusal: Option<Refusal>,
    /// HELLOs sent since the last cookie: with one, its answer's round trip is known.
    pub(super) hellos: u32,
}

impl Connecting {
    pub(super) fn new(
        now: Instant,
        id: ConnectionId,
        options: &ConnectOptions,
        config: &EndpointConfig,
        entropy: &mut Entropy,
    ) -> Box<Self> {
        let offered = Algorithm::Aes128Gcm.bit() | Algorithm::ChaCha20Poly1305.bit();
        let parameters = Parameters {
            datagram_max: config.datagram_max,
            idle_timeout: config.idle_timeout,
        };
        let token = options.token.as_ref();
        let handshake = ClientHandshake::new(
            entropy,
            id,
            &options.server_key,
            token,
            offered,
            &parameters,
        )
        .expect("any 32 bytes are a key of X25519, and tokens are within their bound");
        Box::new(Self {
            handshake,
            // As answers will come from it.
            remote: canonical(options.remote),
            hello_at: now,
            next_hello: now,
            has_cookie: false,
            repeat: REPEAT,
            gives_up_at: now + config.handshake_timeout,
            refusal: None,
            hellos: 0,
        })
    }

    pub(super) const fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let is_due = now >= self.next_hello;
        let has_cookie = core::mem::take(&mut self.has_cookie);
        if !is_due && !has_cookie {
            return None;
        }
        if is_due && self.hellos > 0 {
            self.handshake.on_repeated();
        }
        let len = self.handshake.encode_hello(buffer)?;
        self.hello_at = now;
        if is_due {
            self.next_hello = now + self.repeat;
            self.repeat = (self.repeat * 2).min(REPEAT_MAX);
        } else {
            // Its answer has as long as that of the first.
            self.next_hello = self.next_hello.max(now + REPEAT);
        }
        self.hellos += 1;
        Some(Transmit {
            to: self.remote,
            from: None,
            len,
            ecn: Ecn::NotEct,
        })
    }

    /// The round trip of the last HELLO, when it is known which one was answered.
    pub(super) fn round_trip(&self, now: Instant) -> Option<Duration> {
        (self.hellos == 1).then(|| now.since(self.hello_at))
    }

    /// A cookie came: the HELLO goes again at once, and after that no sooner than it would have: RETRY is not authenticated.
    pub(super) const fn on_cookie(&mut self) {
        self.has_cookie = true;
        self.hellos = 0;
    }

    pub(super) fn on_refused(&mut self, now: Instant, why: Refusal) {
        if self.refusal.is_none() {
            self.refusal = Some(why);
            self.gives_up_at = self.gives_up_at.min(now + REFUSAL_PATIENCE);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let next = match self.has_cookie {
            true => self.hello_at,
            false => self.next_hello,
        };
        Some(next.min(self.gives_up_at))
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<CloseReason> {
        (now >= self.gives_up_at).then_some(match self.refusal {
            Some(why) => CloseReason::Refused { why },
            None => CloseReason::HandshakeTimeout,
        })
    }
}
