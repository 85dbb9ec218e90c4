//! A path by numbers, or one of the built-in ones.

use std::time::Duration;

use punctual_lab::channel::{
    ChannelSpec, DelayModel, GammaDelay, LossModel, PathSpec, RttSplit, Variation,
};
use punctual_lab::profile::Profile;
use serde_json::json;

use super::measure::{self, millis};
use crate::failure::Failure;
use crate::values::{self, DelayShape};

/// The path, in numbers or by name.
#[derive(clap::Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct PathArgs {
    /// Mean round-trip time.
    #[arg(long, value_name = "MS", default_value = "250", value_parser = values::millis)]
    rtt_ms: Duration,
    /// How it is divided: even, forward, backward, or the forward share. Forward is the way of the messages.
    #[arg(long, default_value = "even", value_parser = values::split)]
    split: RttSplit,
    /// Share of packets lost forward.
    #[arg(long, value_name = "SHARE", default_value = "0.02", value_parser = values::loss)]
    loss: f64,
    /// Share of packets lost on the way back.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = values::loss)]
    loss_back: f64,
    /// Losses come in bursts of this mean length, within which all is lost; 0: each packet on its own.
    #[arg(long, value_name = "MS", default_value = "0", value_parser = values::millis)]
    burst_ms: Duration,
    /// How the delay of each direction varies around its mean: fixed, normal:SD (at least half the mean), or gamma:SD
    /// (exponential above a base; what recordings look like); SD in milliseconds.
    #[arg(long, value_name = "SHAPE", default_value = "fixed", value_parser = values::delay_shape)]
    delay: DelayShape,
    /// Time over which a varying delay takes a new value (default: 50); 0: every packet has its own, and most are reordered.
    #[arg(long, value_name = "MS", value_parser = values::millis)]
    coherence_ms: Option<Duration>,
    /// A built-in path instead of the numbers above: busy-hour, bursty-wifi, lte, starlink, transatlantic, pangolin-table2,
    /// thin-streams, dsl or clean. (The messages take the way up of lte and dsl.)
    #[arg(long, value_name = "NAME",
        conflicts_with_all = ["rtt_ms", "split", "loss", "loss_back", "burst_ms", "delay", "coherence_ms"])]
    profile: Option<Profile>,
}

/// Time over which a varying delay takes a new value, unless it is said.
const COHERENCE: Duration = Duration::from_millis(50);

impl PathArgs {
    /// The path that is described.
    pub(crate) fn path(&self) -> Result<PathSpec, Failure> {
        match self.profile {
            Some(profile) => Ok(profile.path()),
            None => self.spec(),
        }
    }

    /// Whether it is a built-in one.
    pub(super) const fn is_profile(&self) -> bool {
        self.profile.is_some()
    }

    fn coherence(&self) -> Duration {
        self.coherence_ms.unwrap_or(COHERENCE)
    }

    fn spec(&self) -> Result<PathSpec, Failure> {
        if self.coherence_ms.is_some() && matches!(self.delay, DelayShape::Fixed) {
            return Err(Failure::bad_input(
                "--coherence-ms is of a delay that varies: say with --delay how it does",
            ));
        }
        if !self.burst_ms.is_zero() && self.loss == 0.0 && self.loss_back == 0.0 {
            return Err(Failure::bad_input(
                "--burst-ms is of losses: say with --loss or --loss-back how much is lost",
            ));
        }
        let (forward, backward) = self.split.apply(self.rtt_ms);
        let channel = |delay, loss| -> Result<ChannelSpec, Failure> {
            Ok(ChannelSpec {
                delay: self.delay_model(delay)?,
                variation: Variation {
                    coherence: self.coherence(),
                    slow: None,
                },
                loss: self.loss_model(loss),
                ..ChannelSpec::default()
            })
        };
        let source = "chosen on the command line";
        let (out, back) = (
            channel(forward, self.loss)?,
            channel(backward, self.loss_back)?,
        );
        Ok(PathSpec::new("a simulated path", source, out, back))
    }

    fn loss_model(&self, share: f64) -> LossModel {
        if share == 0.0 {
            LossModel::None
        } else if self.burst_ms.is_zero() {
            LossModel::Uniform(share)
        } else {
            LossModel::Gilbert {
                loss_share: share,
                mean_burst: self.burst_ms,
                loss_in_good: 0.0,
                loss_in_bad: 1.0,
            }
        }
    }

    fn delay_model(&self, mean: Duration) -> Result<DelayModel, Failure> {
        match self.delay {
            // A direction without delay has nothing to vary.
            _ if mean.is_zero() => Ok(DelayModel::Fixed(mean)),
            DelayShape::Fixed => Ok(DelayModel::Fixed(mean)),
            DelayShape::Normal(sd) => Ok(DelayModel::Normal {
                mean,
                sd,
                min: mean / 2,
            }),
            DelayShape::Gamma(sd) => {
                // A deviation equal to the mean above the base is the exponential distribution.
                let gamma = mean
                    .checked_sub(sd)
                    .and_then(|base| GammaDelay::fit(base, mean, sd));
                gamma.map(|gamma| DelayModel::Gamma(gamma.into())).ok_or_else(|| {
                    Failure::bad_input(format_args!(
                        "--delay gamma:{} needs a one-way delay of at least that; the split of the round trip leaves {mean:?}",
                        millis(sd)
                    ))
                })
            }
        }
    }

    /// What it is made of, for reports.
    pub(crate) fn settings(&self) -> serde_json::Map<String, serde_json::Value> {
        let settings = match self.profile {
            Some(profile) => json!({ "profile": profile.name() }),
            None => json!({
                "rtt_ms": millis(self.rtt_ms),
                "rtt_forward_share": self.split.forward_share(),
                "loss": self.loss,
                "loss_back": self.loss_back,
                "burst_ms": millis(self.burst_ms),
                "delay": match self.delay {
                    DelayShape::Fixed => "fixed".to_owned(),
                    DelayShape::Normal(sd) => format!("normal:{}", millis(sd)),
                    DelayShape::Gamma(sd) => format!("gamma:{}", millis(sd)),
                },
                "coherence_ms": millis(self.coherence()),
            }),
        };
        measure::fields(settings)
    }
}
