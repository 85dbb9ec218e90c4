//! What an application hears of a message.

use core::time::Duration;

use crate::time::Instant;

/// Why a message missed its deadline, or was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissReason {
    /// It waited too long before enough of its symbols had left: for the congestion window, the pacer, or messages before it.
    Queue,
    /// Too many of its symbols were lost that would have been in time, as far as is known when this is told. (Some of them may still come, too late: what redundancy is bought
    /// for learns of it.)
    Loss,
    /// Its symbols arrived, but too late: it would have been late without losses, too.
    Delay,
    /// Nothing at all came back from the peer while it was under way.
    PathDown,
    /// The budget was short, and the message had said that it may be lost ([`super::SendOptions::loss_tolerance`]).
    Thinned,
    /// The session ended first.
    Closed,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Delivered, and within its deadline if it had one. (On an ordered stream: arrived; it may have to wait there for one
    /// before it. On a sequenced stream: arrived; it may have come after a newer one, and then is not handed on.)
    OnTime {
        /// From the call of `send` to arrival, by the clock offset. Arrival is when the peer's endpoint took it in: of a game's loop, when that next polled.
        latency: Duration,
        /// `latency` is right to within this, unless the two ways of the path take unequally long: one way's standing queue is enough for that.
        bound: Duration,
    },
    /// Delivered after its deadline.
    Late {
        /// From the call of `send` to arrival.
        latency: Duration,
        /// `latency` is right to within this.
        bound: Duration,
        /// How late.
        by: Duration,
        /// Why.
        why: MissReason,
    },
    /// Not delivered, as far as we know.
    Dropped {
        /// Why.
        why: MissReason,
    },
    /// A newer message took its place before it was seen to arrive.
    Superseded,
    /// Taken back by the application before it was seen to arrive.
    Cancelled {
        /// Something of it had left: it may have arrived all the same. With `false` the peer never hears of it.
        sent: bool,
    },
}

/// What a call to take a message back did. The message's outcome follows as an event, whatever this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cancel {
    /// Nothing of it, or not all of it, had left: it is not delivered.
    Dropped,
    /// All of it had left. It is not repaired any more; whether it arrived the outcome says.
    InFlight,
    /// It has its outcome already, was cancelled before, or there never was such a message.
    TooLate,
}

/// When the first packet of a message left, see [`crate::Endpoint::departure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Departure {
    /// It has not: the window, the pacer, the tick or other messages hold it.
    Waiting,
    /// At this time.
    Left(Instant),
    /// The message has its outcome already, or never was.
    Unknown,
}

/// What can be promised for a message before it is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Probability that it arrives in time, by the best single estimates of the path and of what is queued before it.
    pub on_time: f64,
    /// Symbols that are expected to be sent, for each source symbol; 1.04 is an overhead of 4 %.
    pub symbols_per_source_symbol: f64,
    /// Bytes on the wire that are expected, all headers included.
    pub bytes: f64,
    /// Source symbols that it would be cut into (in each block).
    pub source_symbols: u8,
    /// Rounds that fit before the deadline; 0 when not even one does.
    pub rounds: u16,
    /// How long it would wait before its first symbol leaves: what is queued before it, at the present rate.
    pub queue_delay: Duration,
}
