//! What an application asks of a message, and what it hears of it. Delivery modes beyond `Reliable` come with a later version.

use core::time::Duration;

/// Names a message within its session, in the order of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

/// What happens to a message whose deadline has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenLate {
    /// Go on until it is delivered, and report it late.
    #[default]
    Deliver,
    /// Stop: it is of no use any more.
    Drop,
}

/// How a message is to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendOptions {
    /// The deadline, counted from the call; `None` for none.
    pub within: Option<Duration>,
    /// Share of messages that should keep the deadline, above 0 and below 1; 0.999 unless set.
    pub on_time: f32,
    /// What happens after the deadline.
    pub when_late: WhenLate,
    /// Source symbols to cut the message into, 1..=64, instead of the policy's own choice. For experiments.
    pub source_symbols: Option<u8>,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            within: None,
            on_time: 0.999,
            when_late: WhenLate::Deliver,
            source_symbols: None,
        }
    }
}

impl SendOptions {
    /// A message with a deadline, counted from the call of `send`: waiting in queues counts.
    #[must_use]
    pub fn within(deadline: Duration) -> Self {
        Self {
            within: Some(deadline),
            ..Self::default()
        }
    }

    /// The share of messages that should keep the deadline, above 0 and below 1.
    #[must_use]
    pub const fn on_time(mut self, share: f32) -> Self {
        self.on_time = share;
        self
    }

    /// Gives the message up when its deadline has passed.
    #[must_use]
    pub const fn drop_when_late(mut self) -> Self {
        self.when_late = WhenLate::Drop;
        self
    }

    /// Cuts the message into this many source symbols whatever the policy would choose; for experiments.
    #[must_use]
    pub const fn source_symbols(mut self, count: u8) -> Self {
        self.source_symbols = Some(count);
        self
    }

    /// 1 - the on-time target.
    #[must_use]
    pub fn miss_target(&self) -> f32 {
        1.0 - self.on_time
    }
}

/// Why a message missed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissReason {
    /// It waited too long before its first symbol left: for the congestion window, the pacer, or messages before it.
    Queue,
    /// Too many of its symbols were lost.
    Loss,
    /// Its symbols arrived, but too late: no redundancy would have helped.
    Delay,
    /// Nothing at all came back from the peer while it was under way.
    PathDown,
    /// The session ended first.
    Closed,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Delivered, and within its deadline if it had one.
    OnTime {
        /// From the call of `send` to arrival, by the clock offset.
        latency: Duration,
        /// `latency` is right to within this, unless the two ways of the path take unequally long.
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
}

/// What can be promised for a message before it is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Probability that it arrives in time, by the best single estimates of the path.
    pub on_time: f64,
    /// Symbols that are expected to be sent, for each source symbol; 1.04 is an overhead of 4 %.
    pub symbols_per_source_symbol: f64,
    /// Bytes on the wire that are expected, all headers included.
    pub bytes: f64,
    /// Source symbols that it would be cut into (in each block).
    pub source_symbols: u8,
    /// Rounds that fit before the deadline; 0 when not even one does.
    pub rounds: u16,
}
