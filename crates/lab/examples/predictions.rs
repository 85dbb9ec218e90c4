//! A table: what the shipping protocol predicts for its messages, and what comes of them, over paths that stay as they are. Shares in percent; `NO`
//! where the prediction is outside of the achieved share's interval (block bootstrap). About a minute. Arguments: messages of each
//! row (50,000), seed.

use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{ChannelSpec, DelayModel, GammaDelay, LossModel, PathSpec, Variation};
use punctual_lab::simulate::{SimulateOptions, simulate};

const OWD: Duration = Duration::from_millis(30);

fn main() {
    let argument = |place| std::env::args().nth(place)?.parse().ok();
    let messages = argument(1).unwrap_or(50_000);
    let seed = argument(2).unwrap_or(1);
    println!("path | T ms  k | predicted | late [95 %] recovery |");
    let (mut inside, mut rows) = (0, 0);
    for (name, path) in paths() {
        for deadline_ms in [78, 120, 180] {
            for symbols in [1, 4] {
                let options = SimulateOptions {
                    symbols: Some(symbols),
                    message_bytes: 1000,
                    sessions: 2,
                    interval: Duration::from_millis(50),
                    messages,
                    seed,
                    ..SimulateOptions::new(path.clone(), Duration::from_millis(deadline_ms))
                };
                let results = simulate(&options, |_| {}).expect("sessions begin");
                let summary = &results[0].summary;
                let late = &summary.late_share_95;
                let predicted = summary.predicted_late_share.unwrap_or_default();
                let is_inside = late.contains(predicted);
                inside += u32::from(is_inside);
                rows += 1;
                println!(
                    "{name} | {deadline_ms:4} {symbols:2} | {:.3} | {:.3} [{:.3}, {:.3}] {:.2} | {}",
                    percent(predicted),
                    percent(summary.late_share),
                    percent(late.low),
                    percent(late.high),
                    percent(summary.recovery_overhead),
                    if is_inside { "yes" } else { "NO" },
                );
            }
        }
    }
    println!("inside {inside} of {rows}");
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

/// A round trip of 60 ms that loses packets by chance, in bursts, with a delay that varies, or with answers that get lost.
fn paths() -> Vec<(String, PathSpec)> {
    let mut paths = Vec::new();
    let mut add = |name: String, forward, backward| {
        let path = PathSpec::new(name.clone(), "an example", forward, backward);
        paths.push((name, path));
    };
    for loss in [0.001, 0.01, 0.02, 0.05, 0.1, 0.2] {
        let forward = channel(LossModel::Uniform(loss));
        add(
            format!("{loss:5} by chance"),
            forward,
            channel(LossModel::None),
        );
    }
    for burst_ms in [5, 20, 100] {
        for loss in [0.01, 0.05] {
            let forward = channel(LossModel::Gilbert {
                loss_share: loss,
                mean_burst: Duration::from_millis(burst_ms),
                loss_in_good: 0.0,
                loss_in_bad: 1.0,
            });
            let name = format!("{loss:5} in bursts of {burst_ms} ms");
            add(name, forward, channel(LossModel::None));
        }
    }
    for (sd_ms, coherence_ms) in [(3, 0), (3, 100), (10, 0), (10, 100)] {
        let varying = |loss| varying(channel(loss), sd_ms, coherence_ms);
        let name = format!(" 0.02 by chance, delays +- {sd_ms} ms over {coherence_ms} ms");
        add(
            name,
            varying(LossModel::Uniform(0.02)),
            varying(LossModel::None),
        );
    }
    for answers_lost in [0.02, 0.1] {
        let forward = channel(LossModel::Uniform(0.02));
        let name = format!(" 0.02 by chance, {answers_lost} of the answers");
        add(name, forward, channel(LossModel::Uniform(answers_lost)));
    }
    paths
}

fn channel(loss: LossModel) -> ChannelSpec {
    ChannelSpec {
        delay: DelayModel::Fixed(OWD),
        loss,
        ..ChannelSpec::default()
    }
}

fn varying(channel: ChannelSpec, sd_ms: u64, coherence_ms: u64) -> ChannelSpec {
    let sd = Duration::from_millis(sd_ms);
    let delay = GammaDelay::fit(OWD / 2, OWD, sd).expect("it can be fitted");
    ChannelSpec {
        delay: DelayModel::Gamma(Arc::new(delay)),
        variation: Variation {
            coherence: Duration::from_millis(coherence_ms),
            ..channel.variation
        },
        ..channel
    }
}
