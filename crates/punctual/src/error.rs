//! What can go wrong, in one sentence each, and what to do about it.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::sync::Arc;

use punctual_net::entropy::EntropyError;
use punctual_net::udp::BindError;
use punctual_proto::{CloseReason, ConfigError, StreamError};

use crate::UrlError;

/// Why an endpoint could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum EndpointError {
    /// The configuration makes no sense; nothing was opened.
    Config(ConfigError),
    /// The address could not be bound.
    Bind(BindError),
    /// No randomness, hence no keys.
    Entropy(EntropyError),
    /// The system has no more descriptors or threads to give.
    System(io::Error),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Bind(error) => error.fmt(f),
            Self::Entropy(error) => error.fmt(f),
            Self::System(error) => write!(
                f,
                "the system has no descriptor or thread for an endpoint ({error}): close others first"
            ),
        }
    }
}

impl std::error::Error for EndpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Bind(error) => Some(error),
            Self::Entropy(error) => Some(error),
            Self::System(error) => Some(error),
        }
    }
}

/// Why no session was opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text is not the URL of a server.
    Url(UrlError),
    /// The server's name could not be looked up.
    Name {
        /// The name.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// The name has no address that this machine can reach: it has only IPv6 ones, and the machine has no IPv6.
    NoAddress {
        /// The name.
        host: String,
    },
    /// The server did not answer, or refused.
    Failed {
        /// Which of these.
        why: CloseReason,
    },
    /// Nothing can be sent to the server's address from here: no network, no route, a firewall of this machine.
    Unsent {
        /// What the system said.
        source: io::Error,
    },
    /// The endpoint holds as many sessions as it may.
    TooManySessions {
        /// How many.
        limit: usize,
    },
    /// The endpoint is closed.
    EndpointClosed,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => error.fmt(f),
            Self::Name { host, source } => write!(
                f,
                "the name {host} could not be looked up ({source}): check it, or use an address"
            ),
            Self::NoAddress { host } => {
                write!(f, "{host} has no address that this machine can reach")
            }
            Self::Failed { why } => why.fmt(f),
            Self::Unsent { source } => write!(
                f,
                "this machine cannot send to the server ({source}): check its network, routes and firewall"
            ),
            Self::TooManySessions { limit } => write!(
                f,
                "this endpoint already has its {limit} sessions: close some, or raise Capacity::sessions_max"
            ),
            Self::EndpointClosed => f.write_str("the endpoint is closed: make another one"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Url(error) => Some(error),
            Self::Name { source, .. } | Self::Unsent { source } => Some(source),
            _ => None,
        }
    }
}

impl From<UrlError> for ConnectError {
    fn from(error: UrlError) -> Self {
        Self::Url(error)
    }
}

impl From<Infallible> for ConnectError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<punctual_proto::ConnectError> for ConnectError {
    fn from(error: punctual_proto::ConnectError) -> Self {
        match error {
            punctual_proto::ConnectError::TooManySessions { limit } => {
                Self::TooManySessions { limit }
            }
        }
    }
}

/// The endpoint is closed: nobody will connect to it any more.
#[derive(Clone, Debug)]
pub struct EndpointClosed {
    /// The error of the socket that ended it; `None` when it was closed by its owner.
    pub cause: Option<Arc<io::Error>>,
}

impl fmt::Display for EndpointClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(error) => write!(
                f,
                "the endpoint's socket failed ({error}): make another endpoint"
            ),
            None => f.write_str("the endpoint is closed"),
        }
    }
}

impl std::error::Error for EndpointClosed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|error| error as _)
    }
}

/// The session is over, and all that it had for the application has been taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionClosed {
    /// Why it is over.
    pub why: CloseReason,
}

impl fmt::Display for SessionClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the session is over: {}", self.why)
    }
}

impl std::error::Error for SessionClosed {}

/// Why a stream was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The number is that of a stream that is open, or was closed and has messages on their way. Choose another, or none: then
    /// the lowest free one is taken.
    AlreadyOpen {
        /// The number.
        number: u16,
    },
    /// The number is too large.
    Number {
        /// The largest that may be chosen.
        max: u16,
    },
    /// The weight is 0 or too large.
    Weight {
        /// The largest that may be chosen.
        max: u16,
    },
    /// The session has as many streams as it may. Close one by dropping its handles.
    TooManyStreams {
        /// How many.
        limit: usize,
    },
    /// The session is over, or about to be.
    Closed {
        /// Why, when it is known.
        why: Option<CloseReason>,
    },
}

impl From<StreamError> for OpenError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::TooManyStreams { limit } => Self::TooManyStreams { limit },
            StreamError::AlreadyOpen { number } => Self::AlreadyOpen { number },
            StreamError::Number { max } => Self::Number { max },
            StreamError::Weight { max } => Self::Weight { max },
            _ => Self::Closed { why: None },
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyOpen { number } => {
                write!(f, "stream {number} is open already: choose another number")
            }
            Self::Number { max } => write!(f, "a stream's number is at most {max}"),
            Self::Weight { max } => write!(f, "a stream's weight is 1 to {max}"),
            Self::TooManyStreams { limit } => write!(
                f,
                "the session already has its {limit} streams: drop one before opening another"
            ),
            Self::Closed { why: Some(why) } => write!(f, "the session is over: {why}"),
            Self::Closed { why: None } => {
                f.write_str("the session is not open: it has ended, or is not connected yet")
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// Why content was not taken by a [`MessageWriter`](crate::MessageWriter).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The message has its outcome already: it was cancelled, superseded, or given up at its deadline. The outcome says which.
    Over,
    /// More than was announced. Nothing of it was taken.
    TooLong {
        /// Bytes that were announced.
        announced: usize,
    },
    /// Finished before all was written: the message is cancelled.
    Incomplete {
        /// Bytes that were not.
        missing: usize,
    },
    /// The session is over.
    Closed {
        /// Why, when it is known.
        why: Option<CloseReason>,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over => f.write_str("the message has its outcome already: write no more of it"),
            Self::TooLong { announced } => {
                write!(f, "more than the {announced} bytes that were announced")
            }
            Self::Incomplete { missing } => {
                write!(f, "{missing} bytes are missing: the message is cancelled")
            }
            Self::Closed { why: Some(why) } => write!(f, "the session is over: {why}"),
            Self::Closed { why: None } => f.write_str("the session is over"),
        }
    }
}

impl std::error::Error for WriteError {}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Over => io::ErrorKind::BrokenPipe,
            WriteError::TooLong { .. } => io::ErrorKind::InvalidInput,
            WriteError::Incomplete { .. } => io::ErrorKind::UnexpectedEof,
            WriteError::Closed { .. } => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}
