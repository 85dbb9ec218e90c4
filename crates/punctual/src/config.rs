//! How an endpoint behaves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual_net::crypto::AwsLc;
use punctual_net::udp::SocketOptions;
use punctual_policy::{Library, PolicyKind};
use punctual_proto::{
    Capacity, EndpointConfig, Promise, ServerConfig, ThinStreams, TokenKey, Uplink, limits,
};

use crate::{MeasureRules, ServerKey};

/// How an endpoint behaves. The defaults suit most games; each field says when to touch it.
///
/// ```
/// use punctual::Config;
/// use std::time::Duration;
///
/// let config = Config { idle_timeout: Duration::from_secs(8), ..Config::default() };
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// What decides about redundancy. Default [`PolicyKind::Steered`]; the others are for comparison.
    pub policy: PolicyKind,
    /// A server with one admits only clients with a token sealed under it ([`TokenIssuer`](crate::TokenIssuer)). Default
    /// none: everybody is admitted.
    pub token_key: Option<TokenKey>,
    /// Half-open handshakes from which on a server asks newcomers for a cookie, which costs them a round trip; 0 asks
    /// always. Default 64: more at once than a game sees unless it is attacked.
    pub cookie_threshold: usize,
    /// How much the endpoint takes on: most sessions, of which an idle one takes about 4 KiB, and what all of them may have it hold that they have sent and that is
    /// not complete. Default 262,144 and 1 GiB; set both on a server by what its machine has.
    pub capacity: Capacity,
    /// Largest UDP payload to send or receive, 1,200 to 1,472 bytes. Default 1,472; what the path carries is found out
    /// below that. Lower it where a tunnel is known to be narrow.
    pub datagram_max: u16,
    /// A session ends when nothing came from its peer for this long; the smaller of both sides' holds. At least a second, default 30 s.
    /// Lower it to notice sooner that a player is gone, or, on a client, that its server's machine is: who crashes says nothing, and what is sent to it waits. (A server that
    /// has restarted with the same key says so when it is asked: [`CloseReason::Gone`](crate::CloseReason::Gone).)
    pub idle_timeout: Duration,
    /// A client's quiet session sends a small packet this often, so that address translation and the idle timeout do not
    /// end it; one that its server was heard on all the time asks after a quarter of a second of silence, so that who only
    /// watches is found where they have moved. At least 10 ms, default 10 s, and a third of the idle timeout at most; `None` for sessions that may end when they are quiet.
    pub keep_alive: Option<Duration>,
    /// How long a client tries each of a server's addresses, at least 100 ms. Default 5 s.
    pub handshake_timeout: Duration,
    /// How messages larger than 256 KiB are received. Default whole, up to 64 MiB in each session. Lower it on a server whose
    /// clients send nothing large, so that none of them can make it hold more.
    pub receive: Receive,
    /// What the way out of this machine carries. Default unknown: what many sessions send at once, beyond 256 KiB, is then spread
    /// over a quarter of the time that the deadlines leave. Set it, a few percent below the true rate, on a server that
    /// broadcasts.
    pub uplink: Uplink,
    /// What is done for streams with few packets on their way. Default all of it; the switches are there to measure what each
    /// is worth.
    pub thin_streams: ThinStreams,
    /// Whose share of messages is to be on time: each stream's by itself (the default), or that of all sessions together. It
    /// matters to [`PolicyKind::Steered`] alone.
    pub promise: Promise,
    /// What clients of a server may measure ([`Session::measure`](crate::Session::measure)). Default `None`: they get no answer, and what
    /// such a client asks comes to the application as a message on stream 1,023 ([`MeasureRules::off`] says no in its place). With
    /// rules, streams 1,022 and 1,023 of its sessions are the measurement's, and the traces come by
    /// [`Endpoint::next_trace`](crate::Endpoint::next_trace). A [`frame::Endpoint`](crate::frame::Endpoint) has no use for it.
    pub measure: Option<MeasureRules>,
    /// Which of the process's endpoints this is, 0 to 63: a part of its connection ids, by which somebody in front of several can tell whose a packet is. (An endpoint
    /// shares its port with no other.) Default 0.
    pub thread: u8,
    /// Bytes of datagrams that the kernel holds until they are received, and of those on their way out, as far as it
    /// grants them. Default 4 MiB and 2 MiB: a full second of 3,000 packets.
    pub socket_buffers: (usize, usize),
}

/// How messages larger than 256 KiB are received. (Smaller ones always come whole.) It holds for all sessions of an endpoint and
/// cannot be changed later: a session's first piece may be there before its application has the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Receive {
    /// Put together in memory, and received like all others.
    Whole {
        /// Bytes of large messages that a session puts together at the same time, at most half of [`Capacity::received_bytes_max`]. A peer that sends more has its session closed
        /// with [`CloseCode::TOO_LARGE`](crate::CloseCode::TOO_LARGE).
        bytes_max: usize,
    },
    /// As [`Piece`](crate::Piece)s, as they arrive: for content that goes to a file, or is shown before it is complete. What is
    /// not taken slows the peer down.
    Pieces,
}

impl Default for Receive {
    fn default() -> Self {
        Self::Whole {
            bytes_max: limits::MESSAGE_MAX,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        let options = SocketOptions::default();
        Self {
            policy: PolicyKind::default(),
            token_key: None,
            cookie_threshold: limits::COOKIE_THRESHOLD,
            capacity: Capacity::default(),
            datagram_max: limits::MTU_MAX,
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            handshake_timeout: Duration::from_secs(5),
            receive: Receive::default(),
            uplink: Uplink::Unknown,
            thin_streams: ThinStreams::default(),
            promise: Promise::default(),
            measure: None,
            thread: 0,
            socket_buffers: (options.recv_buffer_bytes, options.send_buffer_bytes),
        }
    }
}

impl Config {
    /// What the protocol needs to know of it. Its epoch is now.
    pub(crate) fn endpoint(&self, key: Option<&ServerKey>) -> EndpointConfig {
        let server = key.map(|key| ServerConfig {
            token_key: self.token_key.clone(),
            cookie_threshold: self.cookie_threshold,
            ..ServerConfig::new(key.0.clone())
        });
        EndpointConfig {
            server,
            thread: self.thread,
            capacity: self.capacity,
            datagram_max: self.datagram_max,
            idle_timeout: self.idle_timeout,
            keep_alive: self.keep_alive,
            handshake_timeout: self.handshake_timeout,
            uplink: self.uplink,
            thin_streams: self.thin_streams,
            promise: self.promise,
            ..EndpointConfig::client(Arc::new(AwsLc), library(self.policy))
        }
    }

    /// How large messages are received, as far as there is room for them.
    pub(crate) fn receiving(&self) -> Receive {
        match self.receive {
            Receive::Whole { bytes_max } => Receive::Whole {
                bytes_max: bytes_max.min(self.capacity.received_bytes_max / 2),
            },
            Receive::Pieces => Receive::Pieces,
        }
    }

    pub(crate) fn socket(&self) -> SocketOptions {
        let (recv_buffer_bytes, send_buffer_bytes) = self.socket_buffers;
        SocketOptions {
            recv_buffer_bytes,
            send_buffer_bytes,
            ..SocketOptions::default()
        }
    }
}

/// The process's tables of this kind: endpoints share them, since they take a while to build and some memory.
fn library(kind: PolicyKind) -> Arc<Library> {
    static LIBRARIES: Mutex<Vec<Arc<Library>>> = Mutex::new(Vec::new());
    let mut libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = libraries.iter().find(|library| library.kind() == kind) {
        return Arc::clone(library);
    }
    let library = Arc::new(Library::new(kind));
    libraries.push(Arc::clone(&library));
    library
}
