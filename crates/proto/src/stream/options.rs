//! What an application asks of a stream and of a message.

use core::time::Duration;

use super::PromiseGroup;
use crate::limits::{STREAM_WEIGHT_MAX, STREAMS_MAX};

/// Names a stream within one direction of a session: below [`STREAMS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u16);

impl StreamId {
    /// The stream that is there without being opened: `Reliable`, weight 1. Opening it first gives it another configuration.
    pub const DEFAULT: Self = Self(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names a message within its session. Later messages have larger ids; what else is in the number means nothing outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

impl MessageId {
    /// Bits that say where the message is; above them it is counted.
    const PLACE_BITS: u32 = 16;

    pub(crate) const fn new(count: u64, place: u16) -> Self {
        Self((count << Self::PLACE_BITS) | place as u64)
    }

    pub(crate) const fn place(self) -> u16 {
        self.0 as u16
    }

    /// How many messages of the session came before.
    pub(crate) const fn count(self) -> u64 {
        self.0 >> Self::PLACE_BITS
    }
}

/// How the messages of a stream are delivered. Each at most once, whatever the mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivery {
    /// Sent once, and repaired only as far as a deadline asks for it: without one, what is lost is lost.
    Unreliable,
    /// As `Unreliable`, and a message older than one that has been delivered is not delivered any more: a repair that comes after the next message is of no use, and a message
    /// whose next has begun to leave is not repaired. So the redundancy that a deadline and a target ask for leaves at once where messages follow each other sooner than a round trip
    /// takes. What is lost all the same is told as [`Outcome::Superseded`](super::Outcome::Superseded), which is neither a kept promise nor a broken one. Messages each of which counts, such as
    /// inputs, cost less on `Unreliable`.
    UnreliableSequenced,
    /// Delivered for certain, in whatever order they arrive.
    #[default]
    Reliable,
    /// Delivered for certain and in the order of sending: a lost one holds up those after it.
    ReliableOrdered,
    /// A newer message supersedes an older one with the same key ([`SendOptions::key`]) wherever that is: queued, half sent,
    /// being repaired, half received. The newest always arrives in the end; no older one arrives after it.
    Latest,
}

impl Delivery {
    /// Whether what is lost is repaired without a deadline asking for it.
    pub(crate) const fn is_reliable(self) -> bool {
        matches!(self, Self::Reliable | Self::ReliableOrdered | Self::Latest)
    }
}

/// What the share of a stream is measured in when streams compete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fairness {
    /// Bytes on the wire, redundancy and headers included.
    #[default]
    Bytes,
    /// What the application says a message is worth ([`SendOptions::quality`]): frames, updates. Streams of equal weight get
    /// equal quality, whatever their bytes. Beside a stream that counts bytes, one unit weighs as much as 1,024 bytes.
    Quality,
}

/// How a stream behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamConfig {
    /// How messages are delivered.
    pub delivery: Delivery,
    /// Share of the session's rate when streams compete, 1..=1,000. Default 1.
    pub weight: u16,
    /// What the share is measured in.
    pub fairness: Fairness,
    /// A number of the application's choice, by which the peer knows the stream; below [`STREAMS_MAX`]. `None` takes the
    /// lowest that is free.
    pub number: Option<u16>,
    /// Whose share of messages is promised to be on time. `None`: as [`EndpointConfig::promise`](crate::EndpointConfig::promise) says.
    pub group: Option<PromiseGroup>,
}

impl StreamConfig {
    /// A stream with this delivery, weight 1, fair by bytes.
    #[must_use]
    pub const fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            weight: 1,
            fairness: Fairness::Bytes,
            number: None,
            group: None,
        }
    }

    /// Sets the weight, 1..=1,000: a stream of weight 4 gets four times the share of one of weight 1 while both have something
    /// to send.
    #[must_use]
    pub const fn weight(mut self, weight: u16) -> Self {
        self.weight = weight;
        self
    }

    /// Sets what the share is measured in.
    #[must_use]
    pub const fn fairness(mut self, fairness: Fairness) -> Self {
        self.fairness = fairness;
        self
    }

    /// Chooses the stream's number.
    #[must_use]
    pub const fn number(mut self, number: u16) -> Self {
        self.number = Some(number);
        self
    }

    /// Makes the stream one of those that share this promise, whichever session they belong to.
    #[must_use]
    pub const fn group(mut self, group: PromiseGroup) -> Self {
        self.group = Some(group);
        self
    }

    pub(crate) fn check(&self) -> Result<(), StreamError> {
        if !(1..=STREAM_WEIGHT_MAX).contains(&self.weight) {
            return Err(StreamError::Weight {
                max: STREAM_WEIGHT_MAX,
            });
        }
        if self
            .number
            .is_some_and(|number| usize::from(number) >= STREAMS_MAX)
        {
            return Err(StreamError::Number {
                max: STREAMS_MAX as u16 - 1,
            });
        }
        Ok(())
    }
}

/// Why a stream was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// This side of the session has as many streams open as it may. Close one first.
    TooManyStreams {
        /// How many.
        limit: usize,
    },
    /// The number is taken by a stream that is open, or whose last messages are still on their way.
    AlreadyOpen {
        /// Which.
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
    /// The session is not open: it has ended, or its [`Event::Connected`](crate::Event::Connected) has not come yet.
    Closed,
}

impl core::fmt::Display for StreamError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooManyStreams { limit } => {
                write!(
                    f,
                    "the session already has its {limit} streams: close one first"
                )
            }
            Self::AlreadyOpen { number } => write!(f, "stream {number} is already open"),
            Self::Number { max } => write!(f, "a stream's number must be 0 to {max}"),
            Self::Weight { max } => write!(f, "a stream's weight must be 1 to {max}"),
            Self::Closed => {
                f.write_str("the session is not open: it has ended, or is not connected yet")
            }
        }
    }
}

impl core::error::Error for StreamError {}

/// What happens to a message whose deadline has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenLate {
    /// Go on until it is delivered, and report it late. (On unreliable streams messages are dropped all the same.)
    #[default]
    Deliver,
    /// Stop: it is of no use any more. The outcome comes when what had left is answered for, since it may have arrived in time; at once on an ordered
    /// stream, which waits for it.
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
    /// On a [`Delivery::Latest`] stream: which thing the message is about. A newer message supersedes an older one with the
    /// same key. Below 2^62; 0 unless set.
    pub key: u64,
    /// Of two messages of one stream the more important goes first, in the middle of the other if need be. 128 unless set.
    pub importance: u8,
    /// Level of detail: the share of this kind of message that may be dropped when the budget is short, 0..=1. Only messages on
    /// unreliable streams are ever thinned. 0 unless set.
    pub loss_tolerance: f32,
    /// What the message is worth on a stream that is fair by quality; above 0, at most 1,000,000. 1 unless set.
    pub quality: f32,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            within: None,
            on_time: 0.999,
            when_late: WhenLate::Deliver,
            source_symbols: None,
            key: 0,
            importance: 128,
            loss_tolerance: 0.0,
            quality: 1.0,
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

    /// Says which thing the message is about; for [`Delivery::Latest`].
    #[must_use]
    pub const fn key(mut self, key: u64) -> Self {
        self.key = key;
        self
    }

    /// Sets the importance among the messages of its stream, 0..=255, higher first.
    #[must_use]
    pub const fn importance(mut self, importance: u8) -> Self {
        self.importance = importance;
        self
    }

    /// Allows this share of such messages to be dropped when the budget is short, 0..=1.
    #[must_use]
    pub const fn loss_tolerance(mut self, share: f32) -> Self {
        self.loss_tolerance = share;
        self
    }

    /// Says what the message is worth, for [`Fairness::Quality`].
    #[must_use]
    pub const fn quality(mut self, quality: f32) -> Self {
        self.quality = quality;
        self
    }

    /// 1 - the on-time target.
    #[must_use]
    pub fn miss_target(&self) -> f32 {
        1.0 - self.on_time
    }

    /// The first option that is out of its range, with the range.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let checks = [
            (
                self.on_time > 0.0 && self.on_time < 1.0,
                "on_time must be above 0 and below 1",
            ),
            (
                self.source_symbols
                    .is_none_or(|count| (1..=64).contains(&count)),
                "source_symbols must be 1 to 64",
            ),
            (self.key < 1 << 62, "key must be below 2^62"),
            (
                (0.0..=1.0).contains(&self.loss_tolerance),
                "loss_tolerance must be 0 to 1",
            ),
            (
                self.quality > 0.0 && self.quality <= 1e6,
                "quality must be above 0 and at most 1,000,000",
            ),
        ];
        checks
            .into_iter()
            .find(|(is_fine, _)| !is_fine)
            .map(|(_, what)| what)
    }
}
