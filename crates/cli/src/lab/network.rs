//! What can be added to any network.

use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{ChannelSpec, PathSpec, RateSpec, Reorder};
use serde_json::{Map, Value, json};

use super::measure;
use crate::failure::Failure;
use crate::values;

/// Faults and limits, in both directions; of the numbers above or of a profile or recording what is given here takes the place.
#[derive(clap::Args)]
#[command(next_help_heading = "Network, added to both directions")]
pub(crate) struct Additions {
    /// Every packet takes up to this much longer, on its own: reorders.
    #[arg(long, value_name = "MS", value_parser = values::millis)]
    jitter_ms: Option<Duration>,
    /// Share of packets that are held back.
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    reorder: Option<f64>,
    /// How long those are held back (default: 20).
    #[arg(long, value_name = "MS", value_parser = values::millis)]
    reorder_ms: Option<Duration>,
    /// Share of packets that arrive twice.
    #[arg(long, value_name = "SHARE", value_parser = values::share)]
    duplicate: Option<f64>,
    /// Rate of each session's path.
    #[arg(long, value_name = "MBIT/S", value_parser = values::megabits)]
    rate_mbit: Option<u64>,
    /// Queue before the limited rate (default: 64); what comes on top is dropped.
    #[arg(long, value_name = "KIB", value_parser = values::whole::<u64>(1..=4_194_304))]
    queue_kib: Option<u64>,
    /// Nothing gets through between these seconds, counted from the start; may be given more than once.
    #[arg(long, value_name = "FROM..TO", value_delimiter = ',', value_parser = values::blackout)]
    blackout: Vec<(Duration, Duration)>,
}

/// How long packets are held back, and how large a queue is, unless it is said.
const REORDER: Duration = Duration::from_millis(20);
const QUEUE_KIB: u64 = 64;

impl Additions {
    /// The path with what the flags add. Flags that would do nothing are refused.
    pub(crate) fn apply(&self, mut path: PathSpec) -> Result<PathSpec, Failure> {
        if self.reorder_ms.is_some() && self.reorder.is_none() {
            return Err(Failure::bad_input(
                "--reorder-ms says for how long packets are held back: say with --reorder which share of them is",
            ));
        }
        if self.queue_kib.is_some() && self.rate_mbit.is_none() {
            return Err(Failure::bad_input(
                "--queue-kib is the queue before a limited rate: say with --rate-mbit how fast that is",
            ));
        }
        for channel in [&mut path.forward, &mut path.backward] {
            self.add_to(Arc::make_mut(channel));
        }
        Ok(path)
    }

    fn held_back(&self) -> Duration {
        self.reorder_ms.unwrap_or(REORDER)
    }

    fn queue_kib(&self) -> u64 {
        self.queue_kib.unwrap_or(QUEUE_KIB)
    }

    fn add_to(&self, channel: &mut ChannelSpec) {
        if let Some(jitter) = self.jitter_ms {
            channel.jitter = jitter;
        }
        if let Some(share) = self.reorder {
            let extra = self.held_back();
            channel.reorder = Reorder { share, extra };
        }
        if let Some(share) = self.duplicate {
            channel.duplicate = share;
        }
        if let Some(bits_per_second) = self.rate_mbit {
            channel.rate = Some(RateSpec::constant(bits_per_second, self.queue_kib() * 1024));
        }
        channel.blackouts.extend(&self.blackout);
    }

    /// Adds what was added to the settings of a report.
    pub(crate) fn add_settings(&self, settings: &mut Map<String, Value>) {
        let mut add = |name: &str, value: Value| _ = settings.insert(name.to_owned(), value);
        if let Some(jitter) = self.jitter_ms {
            add("jitter_ms", json!(measure::millis(jitter)));
        }
        if let Some(share) = self.reorder {
            add("reorder", json!(share));
            add("reorder_ms", json!(measure::millis(self.held_back())));
        }
        if let Some(share) = self.duplicate {
            add("duplicate", json!(share));
        }
        if let Some(bits_per_second) = self.rate_mbit {
            add("rate_mbit", json!(bits_per_second as f64 / 1e6));
            add("queue_kib", json!(self.queue_kib()));
        }
        if !self.blackout.is_empty() {
            let seconds =
                |&(from, until): &(Duration, Duration)| [from.as_secs_f64(), until.as_secs_f64()];
            add(
                "blackout_s",
                json!(self.blackout.iter().map(seconds).collect::<Vec<_>>()),
            );
        }
    }
}
