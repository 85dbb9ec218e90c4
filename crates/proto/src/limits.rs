//! Every bound of the protocol in one place. Nothing that a peer or an application does makes a queue grow past these.

use core::time::Duration;

/// Largest message, in bytes.
pub const MESSAGE_MAX: usize = 64 * 1024 * 1024;
/// Messages larger than this are handed on in pieces as they come, so that nobody has to hold one whole.
pub const WHOLE_MAX: usize = 256 * 1024;
/// Most source symbols of a block. The erasure code would rebuild any block up to this size.
pub const SOURCE_SYMBOLS_MAX: usize = 64;
/// Most distinct symbols of a block: k source symbols and 192 repair symbols.
pub const REPAIR_SYMBOLS_MAX: usize = 192;

/// Streams of one direction of a session.
pub const STREAMS_MAX: usize = 1024;
/// Largest weight of a stream.
pub const STREAM_WEIGHT_MAX: u16 = 1000;
/// Bytes that a session's unresolved messages may hold; `send` answers `Full` beyond it. Content that is appended piece by piece
/// counts until it is cut; what is on its way of larger messages does not ([`LARGE_BYTES_MAX`]).
pub const SEND_QUEUE_MAX: usize = 1024 * 1024;
/// Messages that a session may hold unresolved.
pub const SEND_MESSAGES_MAX: usize = 1024;
/// Bytes of a message being appended to that wait here to be cut.
pub const APPEND_MAX: usize = 256 * 1024;
/// Messages of several blocks that are on their way at once; further ones wait in the queue.
pub const LARGE_IN_PROGRESS_MAX: usize = 32;
/// Bytes of blocks of larger messages that are on their way at once: with all else that a sender may hold it fits
/// [`RECEIVE_MAX`] of the receiver.
pub const LARGE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of ordered messages that may wait at the receiver for one before them.
pub const ORDERED_BYTES_MAX: usize = 512 * 1024;
/// Ordered messages of a stream from the oldest unresolved one on: their sequence numbers have 16 bits.
pub const ORDERED_MESSAGES_MAX: usize = 1 << 14;
/// A sender never sends a symbol of a block more than this many numbers below its newest block.
pub const BLOCK_WINDOW: u64 = 8192;
/// How far a sender's block numbers may be ahead of the newest block of which an acknowledgement has come: a receiver takes none for one behind the window that was held
/// back meanwhile, nor the other way round, since numbers have 16 bits.
pub const BLOCKS_AHEAD_MAX: u64 = (1 << 15) - BLOCK_WINDOW;
/// Bytes that a session holds for its peer: blocks half received, messages half assembled or out of order, messages not yet
/// taken. A sender's queue, its larger messages, what may wait in order, and as much again for padding and repair symbols:
/// an honest sender is refused only when the application does not take its messages. (A block counts whole from its first symbol on, and takes what has come
/// of it.)
pub const RECEIVE_MAX: usize = 4 * SEND_QUEUE_MAX;
/// Bytes that an endpoint's sessions together hold for their peers and cannot hand on yet, unless it is told otherwise: beyond it the sessions end that hold most.
pub const RECEIVED_BYTES_MAX: usize = 1 << 30;
/// What it may be told at least: room for two sessions at their bound in the half that sessions share.
pub const RECEIVED_BYTES_LEAST: usize = 4 * RECEIVE_MAX;
/// Bytes that each session may hold for its peer however much others do: more than the largest block, and than a game's messages under way.
pub const RECEIVE_FLOOR: usize = 96 * 1024;
/// Messages of several blocks that a session holds half received; twice what a sender has in progress, since it may have
/// given up some that the receiver has not heard of.
pub const ASSEMBLIES_MAX: usize = 2 * LARGE_IN_PROGRESS_MAX;
/// Blocks that a session holds half received. Two for each message that the peer may have unresolved.
pub const PARTIAL_BLOCKS_MAX: usize = 2 * SEND_MESSAGES_MAX;
/// Messages and outcomes that wait for the application to take them before the session refuses symbols.
pub const EVENTS_MAX: usize = 4096;

/// Packets remembered for their acknowledgement. At 1,200 bytes this is a window of 19 MB.
pub const SENT_PACKETS_MAX: usize = 16 * 1024;
/// Packet numbers below the newest that can still be told apart from a replay.
pub const REPLAY_WINDOW: u64 = 1024;
/// Ranges in an acknowledgement: what arrives within a frame of a loop that looks once a frame may have many gaps.
pub const ACK_RANGES_MAX: usize = 64;
/// Of these, so many are named whether or not all in them has been named before.
pub const ACK_RANGES_REPEATED: usize = 12;
/// The longest that an acknowledgement is kept back where it would stand in a queue: its host may look a little later.
pub const ACK_KEPT_MAX: Duration = Duration::from_millis(25);
/// Symbol frames that share one packet.
pub const SYMBOLS_PER_PACKET_MAX: usize = 32;
/// ABANDON frames in one packet; more are an error.
pub const ABANDONS_PER_PACKET: usize = 4;
/// Runs of abandoned blocks that wait for the peer to hear of them.
pub const ABANDON_MAX: usize = 256;

/// The smallest datagram size that every path must carry, and the size of a HELLO.
pub const MTU_MIN: u16 = 1200;
/// The largest UDP payload that is tried: an Ethernet frame less IPv4 and UDP headers.
pub const MTU_MAX: u16 = 1472;
/// IPv4 and UDP headers, in bytes; counted as encapsulation in every report (IPv6 adds 20).
pub const UDP_IP_HEADER: usize = 28;

/// Sessions of one endpoint (one thread); the connection id has 18 bits for it.
pub const SESSIONS_MAX: usize = 1 << 18;
/// Handshakes that an endpoint keeps open at once.
pub const HALF_OPEN_MAX: usize = 4096;
/// Handshakes that one IP address may have open without having shown that it receives what is sent to it.
pub const HALF_OPEN_PER_ADDRESS: usize = 16;
/// The part of the handshakes that could still be opened, by this and by the sessions that there is room for, which one IP address may have open at all (IPv6: all with the same
/// first 48 bits): an office or a carrier-grade NAT has many players, and some such addresses leave room for others.
pub const HALF_OPEN_PART_OF_FREE: usize = 3;
/// Half-open handshakes from which on every newcomer must return a cookie first.
pub const COOKIE_THRESHOLD: usize = 64;
/// HELLOs of addresses that have not shown that they receive, which are opened in a second; the others must return a cookie first.
pub const HELLOS_UNASKED_MAX: usize = 256;
/// HELLOs of one IP address (IPv6: of all with the same first 48 bits) with a cookie that may fail in a second, before the others are left alone.
pub const HELLOS_FAILED_PER_ADDRESS: usize = 32;
/// .. of all addresses together; twice as many until those are left alone of which none has failed.
pub const HELLOS_FAILED_MAX: usize = 1024;
/// Packets of sessions that are not there which a server answers in a second.
pub const GONE_MAX: usize = 8192;
/// How long a half-open handshake is kept.
pub const HALF_OPEN_TIME: Duration = Duration::from_secs(5);
/// How long a cookie is good for: between one and two of these.
pub const COOKIE_TIME: Duration = Duration::from_secs(10);
/// Shortest idle timeout: what a peer says below it counts as this.
pub const IDLE_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// Shortest time that a client tries to reach its server for.
pub const HANDSHAKE_TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// Shortest interval of keep-alives.
pub const KEEP_ALIVE_MIN: Duration = Duration::from_millis(10);
/// Longest sealed connect token, in bytes.
pub const TOKEN_MAX: usize = 800;
/// Longest reason in a CLOSE frame, in bytes.
pub const CLOSE_REASON_MAX: usize = 200;

/// What timers are taken to be late by, and the soonest that a block's asks to be looked at again.
pub const TIMER_GRANULARITY: Duration = Duration::from_millis(1);
/// Backoff of retransmissions after the deadline stops doubling here.
pub const BACKOFF_MAX: Duration = Duration::from_secs(4);
