//! From a trace to a path of two directions.
//!
//! What a round trip does not say is stated: how its time is divided ([`PathOptions::rtt_split`]), and where its losses
//! were. A run of lost probes falls to one direction as a whole, drawn for each lap of the trace and each path
//! (most round-trip loss is in one direction: research cited in the design); a run at least as long as an outage
//! ([`PathOptions::outage_min`]) takes both directions. A lost probe stands for the time half way to its neighbours,
//! but no further than the median spacing: some probers stall for seconds after a loss.

use std::sync::Arc;
use std::time::Duration;

use super::{Content, Format, LostSide, Outcome, Sample, Trace, TraceError, TraceErrorKind};
use crate::channel::{
    Capacity, CapacityTrace, ChannelSpec, DelayModel, DelayTrace, LossModel, LossSide, LossSpan,
    LossTrace, PathSpec, PlaybackError, RateSpec, RttSplit,
};
use crate::world::Forward;

/// What a trace does not say, stated.
#[derive(Debug, Clone)]
pub struct PathOptions {
    /// How round-trip times are divided. Default even.
    pub rtt_split: RttSplit,
    /// Share of the losses of unknown direction that are forward. Default 0.5, but 1 for cloud-gaming logs, whose loss
    /// was counted among packets of one direction.
    pub loss_forward: f64,
    /// Runs of lost probes at least this long take both directions. Default 200 ms: longer than bursts on one link
    /// usually are, shorter than a handover.
    pub outage_min: Duration,
    /// Fixed round-trip time of a path made of capacity traces, which have no delay. Default 40 ms.
    pub base_rtt: Duration,
    /// Queue of a path made of capacity traces. Default 150,000 bytes: 100 full packets.
    pub queue_bytes: u64,
}

impl Default for PathOptions {
    fn default() -> Self {
        Self {
            rtt_split: RttSplit::EVEN,
            loss_forward: 0.5,
            outage_min: Duration::from_millis(200),
            base_rtt: Duration::from_millis(40),
            queue_bytes: 150_000,
        }
    }
}

impl PathOptions {
    /// The defaults for a trace.
    pub fn for_trace(trace: &Trace) -> Self {
        let loss_forward = if trace.format == Format::Hairpin {
            1.0
        } else {
            0.5
        };
        Self {
            loss_forward,
            ..Self::default()
        }
    }

    fn describe(&self) -> String {
        let percent = |share: f64| (share * 100.0).round();
        format!(
            "{} % of the round-trip time and {} % of the losses of unknown direction forward, outages from {:?} both ways",
            percent(self.rtt_split.forward_share()),
            percent(self.loss_forward),
            self.outage_min
        )
    }
}

impl Trace {
    /// As [`Self::path`], for messages that go one way: where the trace says which way was which, along its way up or its way down.
    ///
    /// # Errors
    /// When it cannot be played.
    pub fn path_of(
        &self,
        messages: Forward,
        options: &PathOptions,
    ) -> Result<PathSpec, TraceError> {
        let path = self.path(options)?;
        Ok(match self.knows_ways() {
            true => messages.facing(path),
            false => path,
        })
    }

    /// The trace as a path that is repeated for ever; each path of a run begins elsewhere in it. Forward is the way up, where it says which that was.
    pub fn path(&self, options: &PathOptions) -> Result<PathSpec, TraceError> {
        let samples = match &self.content {
            Content::Samples(samples) => samples,
            Content::Capacity(_) => return capacity_path(self, self, options),
        };
        if self.format == Format::Packets {
            return self.path_of_messages(samples);
        }
        let failed = |error| self.failed(TraceErrorKind::Unplayable(error));
        let slots = Slots::new(samples);
        let losses = LossTrace::new(
            loss_spans(samples, &slots, options),
            slots.length_us,
            options.loss_forward,
        );
        let losses = Arc::new(losses.map_err(failed)?);
        let channel = |delays: DelayTrace| ChannelSpec {
            delay: DelayModel::Trace(Arc::new(delays)),
            loss: LossModel::Trace(Arc::clone(&losses)),
            ..ChannelSpec::default()
        };
        let share = options.rtt_split.forward_share();
        let forward = delays(samples, &slots, |outcome| match *outcome {
            Outcome::OneWay { up_us, .. } => up_us,
            ref other => other.rtt_us().map(|rtt| (f64::from(rtt) * share) as u32),
        });
        let backward = delays(samples, &slots, |outcome| match *outcome {
            Outcome::OneWay { down_us, .. } => down_us,
            ref other => other
                .rtt_us()
                .map(|rtt| (f64::from(rtt) * (1.0 - share)) as u32),
        });
        let (forward, backward) = (forward.map_err(failed)?, backward.map_err(failed)?);
        let source = format!("recorded trace {}: {}", self.name, options.describe());
        Ok(PathSpec::new(
            short_name(&self.name),
            source,
            channel(forward),
            channel(backward),
        ))
    }

    /// Of packets that left together: a message stands for the time half way to its neighbours, with the share of its packets
    /// that were lost in each direction and the median of their delays.
    fn path_of_messages(&self, samples: &[Sample]) -> Result<PathSpec, TraceError> {
        let failed = |error| self.failed(TraceErrorKind::Unplayable(error));
        let messages: Vec<&[Sample]> = samples.chunk_by(|a, b| a.at_us == b.at_us).collect();
        let moments: Vec<Sample> = messages.iter().map(|message| message[0]).collect();
        let slots = Slots::new(&moments);
        let channel = |is_forward: bool| -> Result<ChannelSpec, PlaybackError> {
            let legs = |i: usize| messages[i].iter().filter_map(move |s| leg(s, is_forward));
            let mut spans = Vec::new();
            let mut points = Vec::new();
            for (i, moment) in moments.iter().enumerate() {
                let lost = legs(i).filter(|leg| leg.is_lost).count();
                let mut delays: Vec<u32> = legs(i).filter_map(|leg| leg.took_us).collect();
                if lost > 0 {
                    let (start_us, end_us) = slots.span(&moments, i);
                    let share = lost as f32 / legs(i).count() as f32;
                    let side = LossSide::Both;
                    push_span(
                        &mut spans,
                        LossSpan {
                            start_us,
                            end_us,
                            share,
                            side,
                        },
                    );
                }
                delays.sort_unstable();
                points.extend(
                    delays
                        .get(delays.len() / 2)
                        .map(|&delay| (moment.at_us, delay)),
                );
            }
            Ok(ChannelSpec {
                delay: DelayModel::Trace(Arc::new(DelayTrace::new(points, slots.length_us)?)),
                loss: LossModel::Trace(Arc::new(LossTrace::new(spans, slots.length_us, 0.5)?)),
                ..ChannelSpec::default()
            })
        };
        let (forward, backward) = (channel(true), channel(false));
        let source = format!(
            "measured trace {}: a message stands for the time half way to its neighbours",
            self.name
        );
        Ok(PathSpec::new(
            short_name(&self.name),
            source,
            forward.map_err(failed)?,
            backward.map_err(failed)?,
        ))
    }

    fn failed(&self, kind: TraceErrorKind) -> TraceError {
        TraceError {
            file: self.name.clone(),
            line: 0,
            kind,
        }
    }
}

/// A path whose rates are recorded and whose delay (apart from the queues) is fixed: `up` is forward.
pub fn capacity_path(
    up: &Trace,
    down: &Trace,
    options: &PathOptions,
) -> Result<PathSpec, TraceError> {
    let (forward_delay, backward_delay) = options.rtt_split.apply(options.base_rtt);
    let read = |trace: &Trace| {
        let Content::Capacity(opportunities) = &trace.content else {
            return Err(trace.failed(TraceErrorKind::WrongContent { needed: "capacity" }));
        };
        CapacityTrace::new(opportunities.clone())
            .map_err(|error| trace.failed(TraceErrorKind::Unplayable(error)))
    };
    let (forward, backward) = read(up)?.together(read(down)?);
    let channel = |capacity, delay| {
        let rate = Some(RateSpec {
            capacity: Capacity::Trace(Arc::new(capacity)),
            queue_bytes: options.queue_bytes,
        });
        ChannelSpec {
            rate,
            ..ChannelSpec::fixed(delay)
        }
    };
    let source = format!(
        "recorded capacity {} and {}; the round trip of {:?} without queues and the queue of {} bytes are chosen",
        up.name, down.name, options.base_rtt, options.queue_bytes
    );
    Ok(PathSpec::new(
        short_name(&up.name),
        source,
        channel(forward, forward_delay),
        channel(backward, backward_delay),
    ))
}

fn short_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

/// The times that the samples stand for.
struct Slots {
    /// At most this far to each side.
    reach_us: u64,
    length_us: u64,
}

impl Slots {
    fn new(samples: &[Sample]) -> Self {
        let mut gaps: Vec<u64> = samples
            .windows(2)
            .map(|pair| pair[1].at_us - pair[0].at_us)
            .filter(|&gap| gap > 0)
            .collect();
        let reach_us = if gaps.is_empty() {
            1_000_000
        } else {
            let middle = gaps.len() / 2;
            (*gaps.select_nth_unstable(middle).1).max(2)
        };
        let last = samples.last().map_or(0, |sample| sample.at_us);
        Self {
            reach_us,
            length_us: last + reach_us,
        }
    }

    /// From half way to the sample before until half way to the one after.
    fn span(&self, samples: &[Sample], i: usize) -> (u64, u64) {
        let at = samples[i].at_us;
        let before = if i == 0 {
            0
        } else {
            (at - samples[i - 1].at_us) / 2
        };
        let after = match samples.get(i + 1) {
            None => self.reach_us / 2,
            // Rounded so that two neighbours meet: the next one's `before` is rounded down.
            Some(next) => (next.at_us - at).div_ceil(2),
        };
        (
            at - before.min(self.reach_us),
            at + after.min(self.reach_us),
        )
    }
}

fn delays(
    samples: &[Sample],
    slots: &Slots,
    delay_us: impl Fn(&Outcome) -> Option<u32>,
) -> Result<DelayTrace, PlaybackError> {
    let mut points: Vec<(u64, u32)> = Vec::new();
    for sample in samples {
        let Some(delay) = delay_us(&sample.outcome) else {
            continue;
        };
        // Of two samples at the same microsecond the first stands.
        if points.last().is_none_or(|&(at, _)| at < sample.at_us) {
            points.push((sample.at_us, delay));
        }
    }
    DelayTrace::new(points, slots.length_us)
}

/// What a measured packet says of one direction.
struct KnownLeg {
    is_lost: bool,
    took_us: Option<u32>,
}

/// `None` when it says nothing of it: what did not come up has no way down.
const fn leg(sample: &Sample, is_forward: bool) -> Option<KnownLeg> {
    let (is_lost, took_us) = match (sample.outcome, is_forward) {
        (Outcome::OneWay { up_us, .. }, true) => (up_us.is_none(), up_us),
        (Outcome::OneWay { down_us, .. }, false) => (down_us.is_none(), down_us),
        (Outcome::Lost(LostSide::Forward), true) => (true, None),
        (Outcome::Lost(LostSide::Backward), is_forward) => (!is_forward, None),
        // Nothing was heard any more, of either way.
        (Outcome::Lost(LostSide::Unknown), _) => (true, None),
        _ => return None,
    };
    Some(KnownLeg { is_lost, took_us })
}

/// The losses of a sample: how many, and where.
fn loss(outcome: &Outcome) -> Option<(f32, Option<LossSide>)> {
    match *outcome {
        Outcome::RoundTrip { .. }
        | Outcome::OneWay {
            up_us: Some(_),
            down_us: Some(_),
        } => None,
        Outcome::Slot { loss, .. } => (loss > 0.0).then_some((loss, None)),
        Outcome::OneWay {
            up_us: None,
            down_us: Some(_),
        }
        | Outcome::Lost(LostSide::Forward) => Some((1.0, Some(LossSide::Forward))),
        Outcome::OneWay {
            up_us: Some(_),
            down_us: None,
        }
        | Outcome::Lost(LostSide::Backward) => Some((1.0, Some(LossSide::Backward))),
        Outcome::OneWay {
            up_us: None,
            down_us: None,
        } => Some((1.0, Some(LossSide::Both))),
        Outcome::Lost(LostSide::Unknown) => Some((1.0, None)),
    }
}

fn loss_spans(samples: &[Sample], slots: &Slots, options: &PathOptions) -> Vec<LossSpan> {
    let outage_us = u64::try_from(options.outage_min.as_micros()).unwrap_or(u64::MAX);
    let mut spans: Vec<LossSpan> = Vec::new();
    let mut run = 0u32;
    let mut i = 0;
    while i < samples.len() {
        // A run: samples with loss, one after the other.
        let length = samples[i..]
            .iter()
            .take_while(|sample| loss(&sample.outcome).is_some())
            .count();
        if length == 0 {
            i += 1;
            continue;
        }
        let whole = i..i + length;
        let lasts_us = slots.span(samples, whole.end - 1).1 - slots.span(samples, whole.start).0;
        let is_total = samples[whole.clone()]
            .iter()
            .all(|sample| matches!(sample.outcome, Outcome::Lost(_)));
        let drawn = if is_total && lasts_us >= outage_us {
            LossSide::Both
        } else {
            LossSide::Drawn { run }
        };
        for j in whole {
            let Some((share, side)) = loss(&samples[j].outcome) else {
                continue;
            };
            let (start_us, end_us) = slots.span(samples, j);
            push_span(
                &mut spans,
                LossSpan {
                    start_us,
                    end_us,
                    share,
                    side: side.unwrap_or(drawn),
                },
            );
        }
        run = run.wrapping_add(1);
        i += length;
    }
    spans
}

/// Appends a span, or lengthens the last one when nothing else changes.
fn push_span(spans: &mut Vec<LossSpan>, span: LossSpan) {
    if let Some(last) = spans.last_mut()
        && last.end_us == span.start_us
        && last.side == span.side
        && last.share == span.share
    {
        last.end_us = span.end_us;
        return;
    }
    let start_us = spans
        .last()
        .map_or(span.start_us, |last| last.end_us.max(span.start_us));
    if span.end_us > start_us {
        spans.push(LossSpan { start_us, ..span });
    }
}
