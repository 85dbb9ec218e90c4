//! Recorded channels: delay, loss and capacity as functions of a position in a trace that is repeated for ever.
//!
//! A path begins somewhere in its trace, at an offset drawn from (seed, path); both directions of the path begin at the
//! same place. `trace/` makes these from files.

use std::sync::Arc;

use super::Direction;
use crate::chance::{Chance, Purpose};

/// Why a recorded channel could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaybackError {
    /// There is nothing to play.
    Empty,
    /// Entry `entry` does not come after the one before it, or lies outside the stated length.
    OutOfOrder {
        /// Which entry, counted from 0.
        entry: usize,
    },
}

impl std::fmt::Display for PlaybackError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => write!(f, "the trace has no usable samples"),
            Self::OutOfOrder { entry } => write!(f, "the trace's sample {entry} is out of order"),
        }
    }
}

impl std::error::Error for PlaybackError {}

/// Where a path begins in something `length_us` long.
fn offset_us(length_us: u64, shared: Chance) -> u64 {
    shared.below(length_us, Purpose::Offset, 0, 0)
}

/// A position in a trace and how often it was played before.
fn place(at_us: u64, offset_us: u64, length_us: u64) -> (u64, u64) {
    let total = at_us + offset_us;
    let lap = total / length_us;
    (total - lap * length_us, lap)
}

/// One-way delays at recorded times, joined by straight lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayTrace {
    points: Vec<(u64, u32)>,
    length_us: u64,
}

impl DelayTrace {
    /// `points` are (microseconds since the beginning, delay in microseconds), in order, all before `length_us`.
    pub fn new(points: Vec<(u64, u32)>, length_us: u64) -> Result<Self, PlaybackError> {
        if points.is_empty() || length_us == 0 {
            return Err(PlaybackError::Empty);
        }
        check_order(points.iter().map(|point| (point.0, point.0 + 1)), length_us)?;
        Ok(Self { points, length_us })
    }

    /// How long the trace is before it repeats, in microseconds.
    pub const fn length_us(&self) -> u64 {
        self.length_us
    }
}

fn check_order(
    spans: impl Iterator<Item = (u64, u64)>,
    length_us: u64,
) -> Result<(), PlaybackError> {
    let mut end_before = 0;
    for (entry, (start, end)) in spans.enumerate() {
        if start < end_before || end <= start || end > length_us {
            return Err(PlaybackError::OutOfOrder { entry });
        }
        end_before = end;
    }
    Ok(())
}

#[derive(Debug, Clone)]
pub(super) struct DelayPlayback {
    trace: Arc<DelayTrace>,
    offset_us: u64,
    cursor: usize,
}

impl DelayPlayback {
    pub(super) fn new(trace: Arc<DelayTrace>, shared: Chance) -> Self {
        Self {
            offset_us: offset_us(trace.length_us, shared),
            trace,
            cursor: 0,
        }
    }

    pub(super) fn delay_us(&mut self, at_us: u64) -> u64 {
        let length = self.trace.length_us;
        let points = &self.trace.points;
        let (position, _) = place(at_us, self.offset_us, length);
        self.cursor = seek(points.len(), self.cursor, |i| points[i].0 <= position);
        // The point before (of the lap before when there is none) and the point after (of the lap after ...).
        let last = points.len() - 1;
        let (before, after, after_at) = if position < points[0].0 {
            // Between the last point of the lap before and the first of this one.
            (last, 0, points[0].0 + length)
        } else if self.cursor == last {
            (last, 0, points[0].0 + length)
        } else {
            (self.cursor, self.cursor + 1, points[self.cursor + 1].0)
        };
        let position = if position < points[0].0 {
            position + length
        } else {
            position
        };
        let span = (after_at - points[before].0).max(1) as f64;
        let f = (position - points[before].0) as f64 / span;
        let (from, to) = (f64::from(points[before].1), f64::from(points[after].1));
        (from + f * (to - from)) as u64
    }
}

/// The last index for which `is_before` holds (0 when there is none), from a guess that is usually right.
#[inline]
fn seek(len: usize, guess: usize, is_before: impl Fn(usize) -> bool) -> usize {
    if guess < len && is_before(guess) {
        for i in guess..(guess + 4).min(len) {
            if i + 1 == len || !is_before(i + 1) {
                return i;
            }
        }
    }
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = (low + high) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low.saturating_sub(1)
}

/// In which direction packets of a [`LossSpan`] are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossSide {
    /// Known to be forward.
    Forward,
    /// Known to be backward.
    Backward,
    /// Both at once, as in an outage.
    Both,
    /// Only the round trip is known: each span belongs to one direction, drawn for (seed, path, lap, `run`), so that all
    /// spans of a run of losses fall to the same direction.
    Drawn {
        /// Which run of losses the span belongs to.
        run: u32,
    },
}

/// A stretch of a trace in which packets are lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossSpan {
    /// Microseconds since the beginning of the trace.
    pub start_us: u64,
    /// First microsecond after it.
    pub end_us: u64,
    /// Share of packets lost in it.
    pub share: f32,
    /// In which direction.
    pub side: LossSide,
}

/// When a recorded path lost packets.
#[derive(Debug, Clone, PartialEq)]
pub struct LossTrace {
    spans: Vec<LossSpan>,
    length_us: u64,
    forward_share: f64,
    /// Every path begins at the trace's beginning, and not somewhere in it.
    is_aligned: bool,
}

impl LossTrace {
    /// Whether there are losses of one direction of which it is drawn which it was.
    pub fn has_drawn_sides(&self) -> bool {
        let is_drawn = |span: &LossSpan| matches!(span.side, LossSide::Drawn { .. });
        self.spans.iter().any(is_drawn)
    }

    /// `spans` in order, without overlap, all within `length_us`; `forward_share` of the drawn ones are forward.
    pub fn new(
        spans: Vec<LossSpan>,
        length_us: u64,
        forward_share: f64,
    ) -> Result<Self, PlaybackError> {
        if length_us == 0 {
            return Err(PlaybackError::Empty);
        }
        check_order(
            spans.iter().map(|span| (span.start_us, span.end_us)),
            length_us,
        )?;
        Ok(Self {
            spans,
            length_us,
            forward_share,
            is_aligned: false,
        })
    }

    /// The same, but every path begins at its beginning: for losses that change at a known time.
    #[must_use]
    pub fn from_the_beginning(self) -> Self {
        Self {
            is_aligned: true,
            ..self
        }
    }

    /// The stretches with loss.
    pub fn spans(&self) -> &[LossSpan] {
        &self.spans
    }
}

#[derive(Debug, Clone)]
pub(super) struct LossPlayback {
    trace: Arc<LossTrace>,
    shared: Chance,
    direction: Direction,
    offset_us: u64,
    cursor: usize,
}

impl LossPlayback {
    pub(super) fn new(trace: Arc<LossTrace>, shared: Chance, direction: Direction) -> Self {
        Self {
            offset_us: match trace.is_aligned {
                true => 0,
                false => offset_us(trace.length_us, shared),
            },
            trace,
            shared,
            direction,
            cursor: 0,
        }
    }

    /// The share of packets lost at a time.
    pub(super) fn share(&mut self, at_us: u64) -> f64 {
        let spans = &self.trace.spans;
        let (position, lap) = place(at_us, self.offset_us, self.trace.length_us);
        self.cursor = seek(spans.len(), self.cursor, |i| spans[i].start_us <= position);
        let Some(span) = spans.get(self.cursor) else {
            return 0.0;
        };
        if position < span.start_us || position >= span.end_us {
            return 0.0;
        }
        let is_forward = self.direction == Direction::Forward;
        let is_mine = match span.side {
            LossSide::Forward => is_forward,
            LossSide::Backward => !is_forward,
            LossSide::Both => true,
            LossSide::Drawn { run } => {
                let drawn = self.shared.share(Purpose::Side, lap, u64::from(run));
                (drawn < self.trace.forward_share) == is_forward
            }
        };
        if is_mine { f64::from(span.share) } else { 0.0 }
    }
}

/// Delivery opportunities of a link, each of which takes up to 1,500 bytes (the format of mahimahi).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityTrace {
    /// Milliseconds since the beginning, never falling.
    opportunities_ms: Vec<u32>,
    length_ms: u64,
    /// Paths begin before that.
    begins_below_ms: u64,
}

impl CapacityTrace {
    /// What an opportunity takes.
    pub const OPPORTUNITY_BYTES: u64 = 1500;

    /// `opportunities_ms` in order. The trace is as long as its last opportunity (and at least a millisecond).
    pub fn new(opportunities_ms: Vec<u32>) -> Result<Self, PlaybackError> {
        let Some(&last) = opportunities_ms.last() else {
            return Err(PlaybackError::Empty);
        };
        let falls = |pair: &[u32]| pair[0] > pair[1];
        if let Some(entry) = opportunities_ms.windows(2).position(falls) {
            return Err(PlaybackError::OutOfOrder { entry: entry + 1 });
        }
        let length_ms = u64::from(last).max(1);
        Ok(Self {
            length_ms,
            begins_below_ms: length_ms,
            opportunities_ms,
        })
    }

    /// Both ways of one path: each path begins at the same moment of both, which the shorter one has as well.
    #[must_use]
    pub fn together(mut self, mut back: Self) -> (Self, Self) {
        let shorter_ms = self.length_ms.min(back.length_ms);
        (self.begins_below_ms, back.begins_below_ms) = (shorter_ms, shorter_ms);
        (self, back)
    }

    /// The mean capacity.
    pub fn bits_per_second(&self) -> f64 {
        let bytes = self.opportunities_ms.len() as u64 * Self::OPPORTUNITY_BYTES;
        bytes as f64 * 8000.0 / self.length_ms as f64
    }

    pub(super) fn offset_us(&self, shared: Chance) -> u64 {
        offset_us(self.begins_below_ms * 1000, shared)
    }

    /// Bytes of all opportunities before a time.
    pub(super) fn bytes_before(&self, at_us: u64) -> u64 {
        let (position, lap) = place(at_us, 0, self.length_ms * 1000);
        let passed = self
            .opportunities_ms
            .partition_point(|&ms| u64::from(ms) * 1000 < position);
        (lap * self.opportunities_ms.len() as u64 + passed as u64) * Self::OPPORTUNITY_BYTES
    }

    /// The time of the opportunity that takes the `bytes`th byte.
    pub(super) fn time_of_byte_us(&self, bytes: u64) -> u64 {
        let number = bytes.div_ceil(Self::OPPORTUNITY_BYTES).saturating_sub(1);
        let count = self.opportunities_ms.len() as u64;
        let lap = number / count;
        let ms = u64::from(self.opportunities_ms[(number - lap * count) as usize]);
        (lap * self.length_ms + ms) * 1000
    }
}
