//! How a session ends.

use alloc::string::{String, ToString};
use core::net::SocketAddr;
use core::time::Duration;

use super::{Event, Session, Shared, State};
use crate::limits::CLOSE_REASON_MAX;
use crate::message::Inbox;
use crate::stream::{Incoming, MissReason, Outcome};
use crate::time::Instant;
use crate::wire::Gone;

/// A reason code, as it travels (PROTOCOL.md#close). Codes from 0x100 on belong to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// Nothing is wrong: the application is done.
    pub const DONE: Self = Self(0);
    /// The peer sent something that the protocol does not allow.
    pub const PROTOCOL: Self = Self(1);
    /// The endpoint is shutting down.
    pub const SHUTDOWN: Self = Self(2);
    /// A message was larger than the receiving side takes.
    pub const TOO_LARGE: Self = Self(3);
    /// The endpoint held more for its peers than it may, and most for this one.
    pub const NO_ROOM: Self = Self(4);
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    Local {
        /// The code given.
        code: CloseCode,
    },
    /// The peer closed it.
    Peer {
        /// The peer's code.
        code: CloseCode,
        /// The peer's words.
        reason: String,
    },
    /// Nothing came from the peer for the idle timeout.
    IdleTimeout,
    /// The server does not know the session: it has restarted, or given the session up and was not heard. (Once its
    /// client asks. A server has to have kept its key, and the client its address; otherwise it is the idle timeout that ends the session.)
    Gone,
    /// The server did not answer, or not with the key that it should have.
    HandshakeTimeout,
    /// The server refused; the reason is what it said, unauthenticated.
    Refused {
        /// What it said.
        why: crate::wire::Refusal,
    },
}

impl core::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        use crate::wire::Refusal;
        match self {
            Self::Local { code: CloseCode::TOO_LARGE } => {
                f.write_str("closed by this side: the peer sent a larger message than it takes")
            }
            Self::Local { code: CloseCode::NO_ROOM } => f.write_str(
                "closed by this side: its endpoint held more for its peers than it may (Capacity::received_bytes_max), and most for this one",
            ),
            Self::Local { code: CloseCode::SHUTDOWN } => {
                f.write_str("closed by this side: its endpoint was closed, dropped, or failed")
            }
            Self::Local { .. } => f.write_str("closed by this side"),
            Self::Peer { code, reason } if reason.is_empty() => write!(f, "closed by the peer (code {})", code.0),
            Self::Peer { code, reason } => write!(f, "closed by the peer: {reason} (code {})", code.0),
            Self::IdleTimeout => f.write_str("nothing came from the peer for the idle timeout"),
            Self::Gone => f.write_str("the server does not know the session any more: it has restarted, or given it up"),
            Self::HandshakeTimeout => {
                f.write_str("the server did not answer: check its address, that it runs, and that UDP reaches it")
            }
            Self::Refused { why } => f.write_str(match why {
                Refusal::Version => "the server speaks another version of the protocol",
                Refusal::Key => "the server does not hold the key in the URL: copy the URL that the server prints",
                Refusal::TokenMissing => "the server admits only clients with a connect token: get one from whoever runs it",
                Refusal::TokenInvalid => {
                    "the connect token is of another token key or for another server, or this server takes none: get one from whoever runs it"
                }
                Refusal::TokenExpired => "the connect token has expired: get a new one from whoever runs the server",
                Refusal::Full => "the server is full: try again later",
            }),
        }
    }
}

/// For so long a session that was closed is kept at most, to repeat its CLOSE: how long answers take is the peer's word as well.
const CLOSING_MAX: Duration = Duration::from_secs(3);

impl Session {
    /// Ends the session now: what has no outcome is dropped.
    pub(crate) fn close(
        &mut self,
        now: Instant,
        code: CloseCode,
        reason: &str,
        shared: &mut Shared<'_>,
    ) {
        if matches!(self.state, State::Closing { .. } | State::Closed) {
            return;
        }
        self.drop_everything(shared);
        self.traffic.events.push(Event::Closed {
            why: CloseReason::Local { code },
        });
        let until = now + (self.path.round_time() * 3).min(CLOSING_MAX);
        self.state = State::Closing {
            code,
            reason: shorten(reason),
            until,
            is_due: true,
            answered_below: 0,
        };
    }

    /// Whether messages come and go.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Finishing { .. })
    }

    /// Ends the session once every message has its outcome; nothing more is accepted.
    pub(crate) fn close_when_done(
        &mut self,
        now: Instant,
        code: CloseCode,
        reason: &str,
        shared: &mut Shared<'_>,
    ) {
        if matches!(self.state, State::Open) {
            // Nothing can join what waits for the end of its tick.
            self.flush();
            self.state = State::Finishing {
                code,
                reason: shorten(reason),
            };
            self.close_when_finished(now, shared);
        }
    }

    /// Called when a message got its outcome.
    pub(super) fn close_when_finished(&mut self, now: Instant, shared: &mut Shared<'_>) {
        if !self.traffic.outbox.is_empty() {
            return;
        }
        if let State::Finishing { code, reason } = &mut self.state {
            let (code, reason) = (*code, core::mem::take(reason));
            self.state = State::Open;
            self.close(now, code, &reason, shared);
        }
    }

    /// The session is over without another word from this side.
    pub(crate) fn end(&mut self, why: CloseReason, shared: &mut Shared<'_>) {
        if matches!(self.state, State::Closed) {
            return;
        }
        let was_told = matches!(self.state, State::Closing { .. });
        self.drop_everything(shared);
        if !was_told {
            self.traffic.events.push(Event::Closed { why });
        }
        self.state = State::Closed;
    }

    /// Whether it is this session's server that says that it knows nothing of it.
    pub(crate) fn is_gone_by(&self, gone: &Gone, remote: SocketAddr) -> bool {
        gone.source == self.peer
            && remote == self.remote()
            && (self.liveness.gone_token).is_some_and(|token| gone.has(&token))
    }

    fn drop_everything(&mut self, shared: &mut Shared<'_>) {
        while let Some(slot) = self.traffic.outbox.any_message() {
            self.give_up_message(
                slot,
                Outcome::Dropped {
                    why: MissReason::Closed,
                },
                shared,
            );
        }
        // Nobody completes these any more.
        self.traffic.inbox = Inbox::default();
        self.traffic.incoming = Incoming::default();
    }
}

fn shorten(reason: &str) -> String {
    let end = (0..=reason.len().min(CLOSE_REASON_MAX))
        .rev()
        .find(|&end| reason.is_char_boundary(end))
        .unwrap_or(0);
    reason[..end].to_string()
}
