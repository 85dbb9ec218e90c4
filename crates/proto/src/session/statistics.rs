//! What a session counts. Plain numbers, added up by whoever asks.

use core::time::Duration;

use super::Session;
use crate::stream::{Departure, MessageId, StreamId, StreamStats};
use crate::time::Instant;

/// Counts of one session since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionStats {
    /// Messages accepted for sending.
    pub messages_sent: u64,
    /// Bytes of those.
    pub message_bytes_sent: u64,
    /// Messages acknowledged within their deadline (or that had none).
    pub messages_on_time: u64,
    /// Messages acknowledged after their deadline.
    pub messages_late: u64,
    /// Messages given up: dropped, superseded or cancelled.
    pub messages_dropped: u64,
    /// Messages with a deadline.
    pub messages_promised: u64,
    /// Sum over those of the probability of missing it, as predicted when they were sent.
    pub predicted_misses: f64,
    /// Source symbols of all messages, k each.
    pub source_symbols: u64,
    /// Symbols sent, source and repair.
    pub symbols_sent: u64,
    /// Bytes of packets with symbols, with IPv4 and UDP headers, less the symbols in them.
    pub encapsulation_bytes: u64,
    /// Bytes of symbols sent.
    pub symbol_bytes: u64,
    /// Messages handed to the application.
    pub messages_received: u64,
    /// Messages that arrived and were not handed on, because a newer one or they themselves had been.
    pub messages_stale: u64,
    /// Packets sent and received.
    pub packets_sent: u64,
    /// Packets that opened.
    pub packets_received: u64,
    /// Packets taken for lost.
    pub packets_lost: u64,
    /// Packets taken for lost that were acknowledged after all.
    pub packets_spurious: u64,
    /// Symbols that were not needed any more.
    pub symbols_duplicate: u64,
    /// Packets that were replays.
    pub packets_replayed: u64,
    /// Packets that did not open.
    pub packets_forged: u64,
    /// Packets that opened but were malformed inside.
    pub packets_malformed: u64,
    /// Packets refused because the application does not take its messages.
    pub packets_refused: u64,
    /// Key updates, by either side.
    pub key_updates: u64,
    /// Times that the peer's address changed.
    pub address_changes: u64,
}

/// What is known of the path at this moment.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathReport {
    /// Smoothed round trip.
    pub rtt: Duration,
    /// Least round trip.
    pub rtt_min: Duration,
    /// After this long, missing feedback means loss.
    pub round_time: Duration,
    /// A one-way delay that 99 % of packets keep.
    pub one_way_delay: Duration,
    /// Error of one-way delays by queues and drift; `None` while the clock is unknown.
    pub clock_residual: Option<Duration>,
    /// Error of one-way delays however unequal the two ways are.
    pub clock_bound: Option<Duration>,
    /// Loss of what is sent, best estimate, 0..=1.
    pub loss: f64,
    /// Loss of what is sent, 95 % upper bound, 0..=1.
    pub loss_upper: f64,
    /// Loss of what is received, best estimate, 0..=1.
    pub incoming_loss: f64,
    /// Extra time given to packets that may be reordered.
    pub reordering: Duration,
    /// Largest UDP payload known to pass, in bytes.
    pub mtu: usize,
    /// Congestion window, in bytes.
    pub congestion_window: u64,
}

impl Session {
    /// Counts of a stream of this side; `None` when it was never opened.
    pub(crate) fn stream_stats(&self, stream: StreamId) -> Option<StreamStats> {
        self.traffic.streams.get(stream).map(|stream| stream.stats)
    }

    /// When the first packet of a message left.
    pub(crate) fn departure(&self, message: MessageId) -> Departure {
        let outbox = &self.traffic.outbox;
        let message = outbox.find(message).and_then(|slot| outbox.message(slot));
        match message.map(|message| message.course.first_sent_at) {
            Some(Some(at)) => Departure::Left(at),
            Some(None) => Departure::Waiting,
            None => Departure::Unknown,
        }
    }

    pub(crate) const fn stats(&self) -> SessionStats {
        self.statistics
    }

    pub(crate) fn path_report(&self, now: Instant) -> PathReport {
        PathReport {
            rtt: self.path.rtt.smoothed(),
            rtt_min: self.path.rtt.min(),
            round_time: self.path.round_time(),
            one_way_delay: self.path.one_way_delay(),
            clock_residual: self.clock.residual(now),
            clock_bound: self.clock.hard_bound(now),
            loss: self.path.loss.mean(),
            loss_upper: f64::from(self.path.loss.upper_bound()),
            incoming_loss: self.path.incoming_loss.mean(),
            reordering: self.path.reordering.allowance(),
            mtu: self.path.mtu.current(),
            congestion_window: self.path.congestion.window(),
        }
    }
}
