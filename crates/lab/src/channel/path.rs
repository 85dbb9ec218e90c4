//! A path: two directions, what it is called, and where its numbers come from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{ChannelSpec, SpecError};

/// How a round-trip time is divided between the directions. Nobody can measure it from one end, so it is stated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RttSplit {
    forward_share: f64,
}

impl RttSplit {
    /// Half each way: what is assumed when nothing is known.
    pub const EVEN: Self = Self { forward_share: 0.5 };
    /// All of it on the way out.
    pub const FORWARD: Self = Self { forward_share: 1.0 };

    /// `forward_share` of the round trip on the way out; None outside 0..=1.
    pub fn ratio(forward_share: f64) -> Option<Self> {
        (0.0..=1.0)
            .contains(&forward_share)
            .then_some(Self { forward_share })
    }

    /// The share of the way out.
    pub const fn forward_share(self) -> f64 {
        self.forward_share
    }

    /// (way out, way back) of a round-trip time.
    pub fn apply(self, rtt: Duration) -> (Duration, Duration) {
        let forward = rtt.mul_f64(self.forward_share);
        (forward, rtt.saturating_sub(forward))
    }
}

/// Both directions of a path, what it is called and where its numbers come from.
#[derive(Debug, Clone)]
pub struct PathSpec {
    /// Short name, as on the command line.
    pub name: String,
    /// Where the numbers come from, honestly; printed in reports.
    pub source: String,
    /// The way out.
    pub forward: Arc<ChannelSpec>,
    /// The way back.
    pub backward: Arc<ChannelSpec>,
}

impl PathSpec {
    /// A path of two directions.
    pub fn new(
        name: impl Into<String>,
        source: impl Into<String>,
        forward: ChannelSpec,
        backward: ChannelSpec,
    ) -> Self {
        Self {
            name: name.into(),
            source: source.into(),
            forward: Arc::new(forward),
            backward: Arc::new(backward),
        }
    }

    /// A path whose directions are alike (their fates are still drawn separately).
    pub fn symmetric(
        name: impl Into<String>,
        source: impl Into<String>,
        each_way: ChannelSpec,
    ) -> Self {
        let each_way = Arc::new(each_way);
        Self {
            name: name.into(),
            source: source.into(),
            forward: Arc::clone(&each_way),
            backward: each_way,
        }
    }

    /// A path of a fixed round-trip time that loses nothing.
    pub fn fixed(name: impl Into<String>, rtt: Duration, split: RttSplit) -> Self {
        let (forward, backward) = split.apply(rtt);
        Self::new(
            name,
            "chosen by the user",
            ChannelSpec::fixed(forward),
            ChannelSpec::fixed(backward),
        )
    }

    /// Whether both directions make sense.
    pub fn check(&self) -> Result<(), SpecError> {
        self.forward.check()?;
        self.backward.check()
    }
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (out, back) = (&self.forward, &self.backward);
        write!(
            f,
            "{}: out {}, {}; back {}, {}",
            self.name, out.delay, out.loss, back.delay, back.loss
        )
    }
}
