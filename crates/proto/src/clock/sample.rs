//! Samples of the offset, and which of them are kept.

use core::time::Duration;

use super::line::Line;
use super::{Exchange, WINDOW};
use crate::time::Instant;

/// Samples that are kept, each the best of its epoch.
const SAMPLES: usize = 8;
/// Epochs are as long as a sample takes at first, and double as time goes by, up to this: no clock drifts evenly for ever.
const EPOCH_MAX: Duration = Duration::from_secs(64);

/// No line is wrong by so much and so many of its standard deviations.
const JUMP_US: f64 = 5_000.0;
const DEVIATIONS: f64 = 4.0;

/// The fastest packet of one way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fastest {
    /// The clock at its end less the one at its beginning, modulo 2^32 microseconds: how long it took and the offset, or without it.
    took_us: u32,
    at: Instant,
}

impl Fastest {
    fn or(self, newer: Self) -> Self {
        let is_faster = (newer.took_us.wrapping_sub(self.took_us) as i32) < 0;
        if is_faster { newer } else { self }
    }
}

/// The fastest packets there and back of some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    there: Fastest,
    back: Fastest,
}

impl Sample {
    /// `None` of what contradicts itself.
    pub(super) fn of(exchange: &Exchange) -> Option<Self> {
        let (sent_at, answered_at) = (exchange.sent_at, exchange.answered_at);
        let both = answered_at.since(sent_at).checked_sub(exchange.held)?;
        let there_us = exchange.received_at_us.wrapping_sub(sent_at.wire_micros());
        Some(Self {
            there: Fastest {
                took_us: there_us,
                at: sent_at,
            },
            back: Fastest {
                took_us: (both.as_micros() as u32).wrapping_sub(there_us),
                at: answered_at,
            },
        })
    }

    /// Whether no split of the round trip between both ways gives this offset, however the clocks drift.
    pub(super) fn contradicts(&self, line: &Line) -> bool {
        let at = self.at();
        let there_us = self.there.took_us.wrapping_sub(line.offset_us(at)) as i32;
        let margin_us = JUMP_US + DEVIATIONS * line.deviation_us(at);
        let there_us = f64::from(there_us);
        there_us < -margin_us || there_us > f64::from(self.both_us()) + margin_us
    }

    /// With what was faster in another.
    pub(super) fn and(self, newer: &Self) -> Self {
        Self {
            there: self.there.or(newer.there),
            back: self.back.or(newer.back),
        }
    }

    /// How long both ways took.
    pub(super) fn both_us(&self) -> u32 {
        (self.there.took_us.wrapping_add(self.back.took_us) as i32).max(0) as u32
    }

    /// Peer's clock minus ours, modulo 2^32; it is that of [`Self::at`].
    pub(super) fn offset_us(&self) -> u32 {
        self.there.took_us.wrapping_sub(self.both_us() / 2)
    }

    /// Half-way between both packets.
    pub(super) fn at(&self) -> Instant {
        let (there, back) = (self.there.at, self.back.at);
        there.min(back) + there.since(back).max(back.since(there)) / 2
    }

    /// The one with less in queues, or the newer.
    fn or(self, newer: Self) -> Self {
        if newer.both_us() <= self.both_us() {
            newer
        } else {
            self
        }
    }
}

/// The best samples of some epochs.
pub(super) struct Samples {
    /// The oldest first; those beyond `count` are of no meaning.
    best: [Sample; SAMPLES],
    count: usize,
    epoch: Duration,
    /// When the newest epoch began.
    epoch_began: Instant,
}

impl Default for Samples {
    fn default() -> Self {
        let never = Fastest {
            took_us: 0,
            at: Instant::ZERO,
        };
        let none = Sample {
            there: never,
            back: never,
        };
        Self {
            best: [none; SAMPLES],
            count: 0,
            epoch: WINDOW,
            epoch_began: Instant::ZERO,
        }
    }
}

impl Samples {
    /// The oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Sample> + Clone {
        self.best.iter().take(self.count)
    }

    /// Takes in a sample of the time that began so, or what it has become; whether it is kept.
    pub(super) fn take(&mut self, began: Instant, sample: Sample) -> bool {
        let is_in_epoch = began.since(self.epoch_began) < self.epoch;
        if let Some(best) = self.best[..self.count].last_mut().filter(|_| is_in_epoch) {
            *best = best.or(sample);
            return *best == sample;
        }
        if self.count == SAMPLES {
            self.make_room();
        }
        self.best[self.count] = sample;
        self.count += 1;
        self.epoch_began = began;
        true
    }

    /// Of each two epochs one, as long as both; or the oldest is forgotten.
    fn make_room(&mut self) {
        if self.epoch >= EPOCH_MAX {
            self.best.rotate_left(1);
            self.count -= 1;
            return;
        }
        for i in 0..SAMPLES / 2 {
            self.best[i] = self.best[2 * i].or(self.best[2 * i + 1]);
        }
        self.count = SAMPLES / 2;
        self.epoch *= 2;
    }
}
