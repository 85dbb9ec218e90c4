//! A path: two directions, what it is called, and where its numbers come from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{
    Capacity, Channel, ChannelSpec, Direction, Fate, Outages, RateSpec, Reorder, SpecError,
};

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

    /// The same path seen from its other end.
    #[must_use]
    pub fn turned(mut self) -> Self {
        std::mem::swap(&mut self.forward, &mut self.backward);
        self
    }

    /// Whether both directions make sense.
    pub fn check(&self) -> Result<(), SpecError> {
        self.forward.check()?;
        self.backward.check()
    }

    /// The median round trip of packets of 100 bytes that arrive, one a second (so that a slow link stays idle), over many
    /// paths of this spec; zero when none arrives. For defaults that are to fit the path.
    ///
    /// # Panics
    /// If [`PathSpec::check`] refuses the path.
    pub fn median_rtt(&self) -> Duration {
        // 64 places in a recording, 64 packets at each: enough for a median to within a few percent.
        const PATHS: u32 = 64;
        const PACKETS: u64 = 64;
        const BYTES: usize = 100;
        let mut round_trips: Vec<u64> = Vec::new();
        for path in 0..PATHS {
            let mut out = Channel::new(Arc::clone(&self.forward), 1, path, Direction::Forward);
            let mut back = Channel::new(Arc::clone(&self.backward), 1, path, Direction::Backward);
            for at_us in (0..PACKETS).map(|packet| packet * 1_000_000) {
                if let Fate::Delivered {
                    delay_us: out_us, ..
                } = out.fate(at_us, BYTES)
                    && let Fate::Delivered {
                        delay_us: back_us, ..
                    } = back.fate(at_us, BYTES)
                {
                    round_trips.push(out_us.saturating_add(back_us));
                }
            }
        }
        let middle = round_trips.len() / 2;
        let median = (!round_trips.is_empty()).then(|| *round_trips.select_nth_unstable(middle).1);
        Duration::from_micros(median.unwrap_or(0))
    }
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: out {}; back {}",
            self.name, self.forward, self.backward
        )
    }
}

/// Delay and loss, and whatever else there is.
impl fmt::Display for ChannelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.delay, self.loss)?;
        if !self.jitter.is_zero() {
            write!(f, ", jitter of up to {:?}", self.jitter)?;
        }
        if self.reorder.share > 0.0 {
            let Reorder { share, extra } = &self.reorder;
            write!(f, ", {} % held back by {extra:?}", 100.0 * share)?;
        }
        if self.duplicate > 0.0 {
            write!(f, ", {} % twice", 100.0 * self.duplicate)?;
        }
        match &self.rate {
            Some(RateSpec {
                capacity: Capacity::Constant { bits_per_second },
                ..
            }) => write!(f, ", {} Mbit/s", *bits_per_second as f64 / 1e6)?,
            Some(_) => write!(f, ", capacity as recorded")?,
            None => {}
        }
        for (from, until) in self.blackouts.iter().take(BLACKOUTS_TOLD) {
            write!(f, ", dark from {from:?} to {until:?}")?;
        }
        match self.blackouts.len().saturating_sub(BLACKOUTS_TOLD) {
            0 => {}
            more => write!(f, " and {more} times more")?,
        }
        if let Some(outages) = &self.outages {
            let Outages {
                period,
                length,
                share,
            } = outages;
            write!(
                f,
                ", dark for {length:?} in {} % of all {period:?}",
                100.0 * share
            )?;
        }
        Ok(())
    }
}

/// So many outages are told one by one.
const BLACKOUTS_TOLD: usize = 3;
