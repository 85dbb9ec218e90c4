//! The offset between the peer's clock and ours, from four timestamps, with its error bound.
//!
//! A packet leaves at t1 (our clock) and arrives at t2 (the peer's); its acknowledgement leaves at t3 (the peer's) and arrives at
//! t4 (ours). If both ways took equally long, the offset is ((t2 - t1) - (t4 - t3)) / 2. Queues make ways longer, and seldom both at
//! once, so a *sample* is made of the fastest packet there and the fastest back of one second. Clocks drift: a line is laid through
//! the best samples of some minutes (least squares), in which each says the less the longer both its ways took.
//!
//! Two bounds are stated. The *residual* is what queues and drift may have added, two standard deviations of the line: it enters
//! margins. (More than two where the samples do not lie on a line: the drift changes.) The *hard* bound is half the round trip: one way might take all of it, and no measurement between two clocks can show that
//! it does not (decision 0002 says why margins do not use it).
//!
//! Timestamps travel as the lowest 32 bits of microseconds; all of this is arithmetic modulo 2^32, and spans stay far below half
//! of that.

mod line;
mod sample;

#[cfg(test)]
mod tests;

use core::time::Duration;

use crate::time::Instant;
use line::Line;
use sample::{Sample, Samples};

/// What a sample is made of.
const WINDOW: Duration = Duration::from_secs(1);
/// What two clocks that tick in microseconds are off by.
const TICKS_US: u64 = 2;

/// What round trips are thought to vary by, as a part of the fastest, besides what is seen.
const VARIES: f64 = 1.0 / 16.0;

/// What is known of the peer's clock.
#[derive(Default)]
pub(crate) struct ClockOffset {
    samples: Samples,
    /// When its time began, and the sample that is still taking packets in.
    newest: Option<(Instant, Sample)>,
    line: Option<Line>,
    /// How many exchanges there were, and how long both ways took in all of them.
    exchanges: u32,
    both_us: u64,
}

/// One exchange of four timestamps.
pub(crate) struct Exchange {
    pub(crate) sent_at: Instant,
    /// The peer's clock when it arrived.
    pub(crate) received_at_us: u32,
    /// How long the peer held the answer back.
    pub(crate) held: Duration,
    pub(crate) answered_at: Instant,
}

impl ClockOffset {
    /// Takes in an exchange. O(1).
    pub(crate) fn record(&mut self, exchange: &Exchange) {
        let Some(mut sample) = Sample::of(exchange) else {
            return;
        };
        if self.line.is_some_and(|line| sample.contradicts(&line)) {
            // One of the two clocks has stood still or was set: a host was suspended, a virtual machine moved.
            *self = Self::default();
        }
        self.exchanges = self.exchanges.saturating_add(1);
        self.both_us += u64::from(sample.both_us());
        let mut began = exchange.sent_at;
        if let Some((since, newest)) = self.newest
            && began.since(since) < WINDOW
        {
            began = since;
            sample = newest.and(&sample);
            if sample == newest {
                return;
            }
        }
        self.newest = Some((began, sample));
        if self.samples.take(began, sample) {
            self.line = Line::through(self.samples.iter());
        }
    }

    /// What queues and drift may have put into the offset; `None` until there is one.
    pub(crate) fn residual(&self, now: Instant) -> Option<Duration> {
        let deviation_us = self.line?.deviation_us(now);
        Some(Duration::from_secs_f64(2e-6 * deviation_us) + Duration::from_micros(TICKS_US))
    }

    /// How far outcomes may be off: the residual, and what a few exchanges leave open, since the fastest of them need not have been fast. (Of the first messages of a session
    /// a tenth to a third were said to have taken milliseconds more or less than they had, within microseconds.)
    pub(crate) fn uncertainty(&self, now: Instant) -> Option<Duration> {
        let fastest_us = f64::from(self.fastest_us()?);
        let exchanges = f64::from(self.exchanges);
        let usual_us = (self.both_us as f64 / exchanges - fastest_us).max(0.0);
        // The fastest of n is beyond the least by a part of n + 1 of what all vary by, and two deviations are as much each; half of that goes into the offset. What all vary by is
        // twice what is usual, and at first hardly known.
        let open_us = 3.0 * (usual_us + VARIES * fastest_us) / (exchanges + 1.0);
        Some(self.residual(now)? + Duration::from_secs_f64(1e-6 * open_us))
    }

    /// The bound that holds however unequal the two ways are: half the round trip besides the residual.
    pub(crate) fn hard_bound(&self, now: Instant) -> Option<Duration> {
        Some(Duration::from_micros(u64::from(self.fastest_us()? / 2)) + self.residual(now)?)
    }

    /// What the fastest sample takes both ways.
    fn fastest_us(&self) -> Option<u32> {
        self.samples.iter().map(Sample::both_us).min()
    }

    /// How long a packet that left at `sent_at` took, when the peer says that it arrived at `received_at_us`.
    pub(crate) fn one_way_delay(&self, sent_at: Instant, received_at_us: u32) -> Option<Duration> {
        let took = received_at_us
            .wrapping_sub(sent_at.wire_micros())
            .wrapping_sub(self.offset_us(sent_at)?) as i32;
        Some(Duration::from_micros(took.max(0) as u64))
    }

    /// Peer's clock minus ours in microseconds, modulo 2^32.
    fn offset_us(&self, at: Instant) -> Option<u32> {
        Some(self.line?.offset_us(at))
    }
}
