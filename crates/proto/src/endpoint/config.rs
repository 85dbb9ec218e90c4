//! How an endpoint behaves: plain values with units, checked once.

use alloc::sync::Arc;
use core::time::Duration;

use punctual_policy::Library;

use crate::crypto::Aead;
use crate::handshake::{ServerKey, TokenKey};
use crate::limits::{
    COOKIE_THRESHOLD, HANDSHAKE_TIMEOUT_MIN, IDLE_TIMEOUT_MIN, KEEP_ALIVE_MIN, MTU_MAX, MTU_MIN,
    RECEIVED_BYTES_LEAST, RECEIVED_BYTES_MAX, SESSIONS_MAX,
};
use crate::session::{KEY_UPDATE_PACKETS, KEY_UPDATE_PACKETS_MAX};

/// What makes an endpoint a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The long-term key that clients know.
    pub key: ServerKey,
    /// Admits only clients with a token sealed under this key. `None` admits everybody.
    pub token_key: Option<TokenKey>,
    /// Half-open handshakes from which on newcomers must return a cookie, as when [many](crate::limits::HELLOS_UNASKED_MAX) HELLOs come within a second; 0
    /// asks always. Costs a round trip.
    pub cookie_threshold: usize,
    /// Seconds since 1970 at the endpoint's epoch, for the expiry of tokens; see [`Endpoint::set_unix_time`](crate::Endpoint::set_unix_time).
    pub epoch_unix_s: u64,
}

impl ServerConfig {
    /// A server that admits everybody.
    #[must_use]
    pub const fn new(key: ServerKey) -> Self {
        Self {
            key,
            token_key: None,
            cookie_threshold: COOKIE_THRESHOLD,
            epoch_unix_s: 0,
        }
    }
}

/// What is done for streams of which few packets are on their way: each is the remedy of a fault of TCP that the thin-stream
/// paper found. Switched off one by one to measure their shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinStreams {
    /// While fewer than four packets are on their way timeouts do not double.
    pub linear_timeouts: bool,
    /// While fewer than four packets are on their way one later acknowledgement shows a loss.
    pub one_later_ack: bool,
    /// What is small and not acknowledged is copied into spare room of packets that leave anyway; symbols that are only needed if others are lost wait for these, as far as
    /// the deadline leaves time.
    pub bundling: bool,
    /// Bytes of copies in one packet, at most.
    pub bundle_bytes_max: u16,
}

impl Default for ThinStreams {
    fn default() -> Self {
        Self {
            linear_timeouts: true,
            one_later_ack: true,
            bundling: true,
            bundle_bytes_max: 640,
        }
    }
}

/// Whose share of messages is promised to be on time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Promise {
    /// Each stream's by itself: nobody pays with late messages for what others save.
    #[default]
    EachStream,
    /// That of all sessions with the same miss target together, as "99.9 % of all messages": redundancy goes where it saves most
    /// misses, and good paths pay for bad ones. No stream is given more than ten times its share of misses, as far as symbols
    /// can prevent them.
    AllSessions,
}

/// What the way out of an endpoint carries; all its sessions share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uplink {
    /// Not known: bursts of many sessions are spread over a quarter of the time that their deadlines leave.
    #[default]
    Unknown,
    /// So many bytes a second, headers included, at least 10,000: all sessions together keep to it. A few percent below the truth
    /// are best.
    BytesPerSecond(u64),
    /// Nothing is held back for it: where something else sees to it, and to compare.
    Unlimited,
}

/// How much an endpoint takes on, of sessions and of what they send. What is left out of it stays as it is:
///
/// ```
/// let capacity = punctual_proto::Capacity { sessions_max: 100, ..Default::default() };
/// assert_eq!(capacity.received_bytes_max, 1 << 30);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Most sessions; up to 262,144, which is the default.
    pub sessions_max: usize,
    /// Bytes that all sessions together hold for their peers and cannot hand on yet, at least 16 MiB: blocks half received, messages half put together or out of
    /// order. Beyond it the session that holds most is closed with [`CloseCode::NO_ROOM`](crate::CloseCode::NO_ROOM). Long before, each is held back to a fair part
    /// of the half of it, what waits for the application included, but not below 96 KiB. Default 1 GiB. (What a session holds is bounded besides, by
    /// [`RECEIVE_MAX`](crate::limits::RECEIVE_MAX).)
    pub received_bytes_max: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            sessions_max: SESSIONS_MAX,
            received_bytes_max: RECEIVED_BYTES_MAX,
        }
    }
}

/// How an endpoint behaves.
#[derive(Clone)]
pub struct EndpointConfig {
    /// The ciphers.
    pub aead: Arc<dyn Aead>,
    /// Decides about redundancy.
    pub policies: Arc<Library>,
    /// Present on a server.
    pub server: Option<ServerConfig>,
    /// Which of the process's threads this endpoint belongs to, 0..=63; part of its connection ids.
    pub thread: u8,
    /// How much it takes on.
    pub capacity: Capacity,
    /// Largest UDP payload to send or receive, 1,200..=1,472 bytes. Lower it where a tunnel is known to be narrow.
    pub datagram_max: u16,
    /// A session ends when nothing came for this long. The smaller of both sides' holds.
    pub idle_timeout: Duration,
    /// A client's quiet session sends a packet this often, so that address translation and the idle timeout do not end it; one that has heard its server
    /// all the time and then does not asks sooner, so that it is found where it has moved. A third of the idle timeout (of both sides) at most. `None`: it asks nothing.
    pub keep_alive: Option<Duration>,
    /// How long a client tries to reach its server.
    pub handshake_timeout: Duration,
    /// Packets after which a direction's keys are replaced.
    pub key_update_packets: u64,
    /// What the way out carries. Set it on a server that broadcasts. `Unknown` unless set.
    pub uplink: Uplink,
    /// What is done for thin streams; all of it unless set.
    pub thin_streams: ThinStreams,
    /// Whose share of messages is to be on time; each stream's by itself unless set. Only for a policy that is steered.
    pub promise: Promise,
    /// Datagrams are received only when timeouts are handled, as by a game's loop that looks once a frame, and calls
    /// [`handle_timeout`](crate::Endpoint::handle_timeout) at each look, whether something is due or not. `false` unless set: a driver is woken by datagrams.
    pub is_polled: bool,
}

impl core::fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EndpointConfig")
            .field("server", &self.server)
            .field("thread", &self.thread)
            .field("capacity", &self.capacity)
            .field("datagram_max", &self.datagram_max)
            .field("idle_timeout", &self.idle_timeout)
            .field("keep_alive", &self.keep_alive)
            .field("handshake_timeout", &self.handshake_timeout)
            .field("key_update_packets", &self.key_update_packets)
            .field("uplink", &self.uplink)
            .field("thin_streams", &self.thin_streams)
            .field("promise", &self.promise)
            .finish_non_exhaustive()
    }
}

/// Why a configuration makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field and its range.
    pub what: &'static str,
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "configuration out of range: {}", self.what)
    }
}

impl core::error::Error for ConfigError {}

impl EndpointConfig {
    /// Defaults for a client: 30 s idle timeout, a keep-alive every 10 s, 5 s to connect.
    #[must_use]
    pub fn client(aead: Arc<dyn Aead>, policies: Arc<Library>) -> Self {
        Self {
            aead,
            policies,
            server: None,
            thread: 0,
            capacity: Capacity::default(),
            datagram_max: MTU_MAX,
            idle_timeout: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(10)),
            handshake_timeout: Duration::from_secs(5),
            key_update_packets: KEY_UPDATE_PACKETS,
            uplink: Uplink::Unknown,
            thin_streams: ThinStreams::default(),
            promise: Promise::default(),
            is_polled: false,
        }
    }

    /// Defaults for a server.
    #[must_use]
    pub fn server(aead: Arc<dyn Aead>, policies: Arc<Library>, server: ServerConfig) -> Self {
        Self {
            server: Some(server),
            ..Self::client(aead, policies)
        }
    }

    /// Checks ranges and what must fit together.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn build(self) -> Result<Self, ConfigError> {
        let checks = [
            (self.thread < 64, "thread must be below 64"),
            (
                (1..=SESSIONS_MAX).contains(&self.capacity.sessions_max),
                "sessions_max must be 1 to 262144",
            ),
            (
                self.capacity.received_bytes_max >= RECEIVED_BYTES_LEAST,
                "received_bytes_max must be at least 16 MiB",
            ),
            (
                (MTU_MIN..=MTU_MAX).contains(&self.datagram_max),
                "datagram_max must be 1200 to 1472 bytes",
            ),
            (
                self.idle_timeout >= IDLE_TIMEOUT_MIN,
                "idle_timeout must be at least a second",
            ),
            (
                self.keep_alive
                    .is_none_or(|interval| interval >= KEEP_ALIVE_MIN),
                "keep_alive must be at least 10 ms",
            ),
            (
                self.handshake_timeout >= HANDSHAKE_TIMEOUT_MIN,
                "handshake_timeout must be at least 100 ms",
            ),
            (
                !matches!(self.uplink, Uplink::BytesPerSecond(..10_000)),
                "uplink must be at least 10,000 bytes a second",
            ),
            (
                (1000..=KEY_UPDATE_PACKETS_MAX).contains(&self.key_update_packets),
                "key_update_packets must be 1,000 to 4,194,304",
            ),
        ];
        match checks.into_iter().find(|(is_fine, _)| !is_fine) {
            Some((_, what)) => Err(ConfigError { what }),
            None => Ok(self),
        }
    }
}
