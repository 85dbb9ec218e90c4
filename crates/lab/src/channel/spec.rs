//! What a channel is made of: values with units, checked once by [`ChannelSpec::check`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{CapacityTrace, DelayTrace, GammaDelay, LossTrace};

/// One direction of a path.
#[derive(Debug, Clone, Default)]
pub struct ChannelSpec {
    /// How long packets take.
    pub delay: DelayModel,
    /// How the delay varies with time (for the delay models that vary).
    pub variation: Variation,
    /// Every packet draws up to this much more delay for itself, evenly. Default zero: above the time between two
    /// packets it reorders them.
    pub jitter: Duration,
    /// Which packets are lost.
    pub loss: LossModel,
    /// Packets that are held back so that later ones overtake them.
    pub reorder: Reorder,
    /// Share of packets that arrive twice.
    pub duplicate: f64,
    /// Times (from, until) since the channel began during which nothing gets through.
    pub blackouts: Vec<(Duration, Duration)>,
    /// Outages that come back with a period.
    pub outages: Option<Outages>,
    /// A limited rate with a queue before it; None is unlimited.
    pub rate: Option<RateSpec>,
}

/// The distribution of the one-way delay.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum DelayModel {
    /// Always the same.
    Fixed(Duration),
    /// Normal, but never below `min`.
    Normal {
        /// Mean, before the cut at `min`.
        mean: Duration,
        /// Standard deviation, before the cut at `min`.
        sd: Duration,
        /// What is below takes this long.
        min: Duration,
    },
    /// A base plus a gamma-distributed part.
    Gamma(Arc<GammaDelay>),
    /// As recorded.
    Trace(Arc<DelayTrace>),
}

impl Default for DelayModel {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

/// Over which times the delay varies.
#[derive(Debug, Clone)]
pub struct Variation {
    /// Time between two independent values. Default 50 ms, from the recorded Wi-Fi traces, where the correlation falls
    /// to a third within 60 ms. Zero: every packet draws its own delay, and most are reordered.
    pub coherence: Duration,
    /// A slower part, for paths whose delay wanders.
    pub slow: Option<Slow>,
}

impl Default for Variation {
    fn default() -> Self {
        Self {
            coherence: Duration::from_millis(50),
            slow: None,
        }
    }
}

/// A slower part of the delay's variation.
#[derive(Debug, Clone)]
pub struct Slow {
    /// Its share of the variance (of the normal variable behind the delay).
    pub share: f64,
    /// Time between two independent values.
    pub coherence: Duration,
}

/// Which packets are lost.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum LossModel {
    /// None.
    #[default]
    None,
    /// Each with the same probability, independently.
    Uniform(f64),
    /// Good and bad spells, exponential in time.
    Gilbert {
        /// Share of packets lost altogether. Lies between the two losses below.
        loss_share: f64,
        /// Mean length of a bad spell.
        mean_burst: Duration,
        /// Share lost in good spells.
        loss_in_good: f64,
        /// Share lost in bad spells.
        loss_in_bad: f64,
    },
    /// As recorded.
    Trace(Arc<LossTrace>),
}

/// Packets that are held back.
#[derive(Debug, Clone, Default)]
pub struct Reorder {
    /// Share of packets.
    pub share: f64,
    /// How long they are held back.
    pub extra: Duration,
}

/// Outages that come back with a period. Both directions of a path that share `period` go dark together.
#[derive(Debug, Clone)]
pub struct Outages {
    /// From the beginning of one to the beginning of the next.
    pub period: Duration,
    /// How long each lasts.
    pub length: Duration,
    /// Share of periods that have one.
    pub share: f64,
}

/// A limited rate.
#[derive(Debug, Clone)]
pub struct RateSpec {
    /// How much gets through.
    pub capacity: Capacity,
    /// Bytes that may wait, with the packet in service; what comes on top is dropped.
    pub queue_bytes: u64,
}

impl RateSpec {
    /// A constant rate.
    pub const fn constant(bits_per_second: u64, queue_bytes: u64) -> Self {
        Self {
            capacity: Capacity::Constant { bits_per_second },
            queue_bytes,
        }
    }
}

/// How much gets through a limited rate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Capacity {
    /// The same at all times.
    Constant {
        /// The rate.
        bits_per_second: u64,
    },
    /// As recorded.
    Trace(Arc<CapacityTrace>),
}

/// Why a channel spec makes no sense.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SpecError {
    /// A share is not within 0 and 1.
    Share {
        /// Which.
        what: &'static str,
        /// What it was.
        value: f64,
    },
    /// Of a Gilbert model: the losses are not `loss_in_good <= loss_share < loss_in_bad`, or the mean burst is zero.
    Gilbert {
        /// As asked.
        loss_share: f64,
        /// As asked.
        loss_in_good: f64,
        /// As asked.
        loss_in_bad: f64,
    },
    /// A time must not be zero.
    Zero {
        /// Which.
        what: &'static str,
    },
    /// A blackout ends before it begins, or an outage outlasts its period.
    Blackout,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share { what, value } => {
                write!(f, "{what} must lie between 0 and 1, not {value}")
            }
            Self::Gilbert {
                loss_share,
                loss_in_good,
                loss_in_bad,
            } => write!(
                f,
                "bursts need a mean length above zero and a loss share ({loss_share}) from the loss in good \
                 spells ({loss_in_good}) to below the loss in bad spells ({loss_in_bad})"
            ),
            Self::Zero { what } => write!(f, "{what} must not be zero"),
            Self::Blackout => write!(
                f,
                "a blackout must end after it begins, an outage within its period"
            ),
        }
    }
}

impl std::error::Error for SpecError {}

impl ChannelSpec {
    /// A channel of fixed delay that loses nothing.
    pub fn fixed(delay: Duration) -> Self {
        Self {
            delay: DelayModel::Fixed(delay),
            ..Self::default()
        }
    }

    /// The same with another loss model.
    #[must_use]
    pub fn with_loss(mut self, loss: LossModel) -> Self {
        self.loss = loss;
        self
    }

    /// Whether the values make sense together.
    pub fn check(&self) -> Result<(), SpecError> {
        check_share("the share of duplicates", self.duplicate)?;
        check_share("the share of reordered packets", self.reorder.share)?;
        self.loss.check()?;
        if let Some(slow) = &self.variation.slow {
            check_share("the slow share of the variation", slow.share)?;
            check_positive("the coherence of the slow variation", slow.coherence)?;
        }
        if let Some(outages) = &self.outages {
            check_share("the share of periods with an outage", outages.share)?;
            check_positive("the period of outages", outages.period)?;
            if outages.length > outages.period {
                return Err(SpecError::Blackout);
            }
        }
        if self.blackouts.iter().any(|&(from, until)| until < from) {
            return Err(SpecError::Blackout);
        }
        match self.rate.as_ref().map(|rate| &rate.capacity) {
            Some(Capacity::Constant { bits_per_second: 0 }) => {
                Err(SpecError::Zero { what: "the rate" })
            }
            _ => Ok(()),
        }
    }
}

impl LossModel {
    fn check(&self) -> Result<(), SpecError> {
        match *self {
            Self::None | Self::Trace(_) => Ok(()),
            Self::Uniform(share) => check_share("the loss", share),
            Self::Gilbert {
                loss_share,
                mean_burst,
                loss_in_good,
                loss_in_bad,
            } => {
                check_share("the loss in good spells", loss_in_good)?;
                check_share("the loss in bad spells", loss_in_bad)?;
                // Written so that NaN fails.
                let is_ordered = loss_in_good <= loss_share && loss_share < loss_in_bad;
                if is_ordered && mean_burst >= Duration::from_micros(1) {
                    Ok(())
                } else {
                    Err(SpecError::Gilbert {
                        loss_share,
                        loss_in_good,
                        loss_in_bad,
                    })
                }
            }
        }
    }
}

fn check_share(what: &'static str, value: f64) -> Result<(), SpecError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(SpecError::Share { what, value })
    }
}

fn check_positive(what: &'static str, value: Duration) -> Result<(), SpecError> {
    // The channel counts in microseconds.
    if value >= Duration::from_micros(1) {
        Ok(())
    } else {
        Err(SpecError::Zero { what })
    }
}

impl fmt::Display for DelayModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(delay) => write!(f, "{delay:?}"),
            Self::Normal { mean, sd, min } => {
                write!(f, "normal {mean:?} +- {sd:?}, at least {min:?}")
            }
            Self::Gamma(gamma) => write!(
                f,
                "{:.1?} + gamma, mean {:.1?} +- {:.1?}",
                gamma.base(),
                gamma.mean(),
                gamma.sd()
            ),
            Self::Trace(_) => write!(f, "as recorded"),
        }
    }
}

impl fmt::Display for LossModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "no loss"),
            Self::Uniform(share) => write!(f, "loss {:.3} %", share * 100.0),
            Self::Gilbert {
                loss_share,
                mean_burst,
                ..
            } => {
                write!(
                    f,
                    "loss {:.3} % in bursts of {mean_burst:?}",
                    loss_share * 100.0
                )
            }
            Self::Trace(_) => write!(f, "loss as recorded"),
        }
    }
}
