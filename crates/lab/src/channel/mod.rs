//! One direction of a path: what becomes of a packet that is sent into it.
//!
//! **Same fates.** The channel's state evolves in time whatever is sent. Whether a packet is lost, duplicated or held back
//! is a pure function of (seed, path, direction, the millisecond it is sent in, its index among the sender's packets of
//! that millisecond). So two policies that are run over the same seed meet the same network, and a difference between
//! them is theirs. Two things go beyond the millisecond, on purpose: the delay is a continuous function of the exact
//! time (steps at each millisecond would reorder packets), and a queue behind a limited rate depends on what is sent.
//!
//! In: specs from `spec.rs` (by hand, from `profile/` or from `trace/`). Out: a [`Fate`] a packet.
//! The parts: `loss.rs` good and bad spells, `delay.rs` the delay's variation, `outage.rs` when the path is dark,
//! `queue.rs` limited rates, `playback.rs` recorded channels, `foresight.rs` fates of packets that nobody sends.

mod delay;
mod foresight;
mod loss;
mod outage;
mod path;
mod playback;
mod queue;
mod spec;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use delay::GammaDelay;
pub use path::{PathSpec, RttSplit};
pub use playback::{CapacityTrace, DelayTrace, LossSide, LossSpan, LossTrace, PlaybackError};
pub use spec::{
    Capacity, ChannelSpec, DelayModel, LossModel, Outages, RateSpec, Reorder, Slow, SpecError,
    Variation,
};

use crate::chance::{Chance, Purpose};
use delay::DelayField;
pub(crate) use foresight::Foresight;
use loss::LossField;
use outage::Darkness;
pub(crate) use queue::{ConstantQueue, Queue};

/// Which way along a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the side that opened the session, or that sends the messages.
    Forward,
    /// The way back.
    Backward,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It never arrives.
    Lost(LossReason),
    /// It arrives.
    Delivered {
        /// Microseconds from sending to arrival.
        delay_us: u64,
        /// A copy arrives as well, this many microseconds after sending.
        duplicate: Option<u64>,
    },
}

/// Why a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// Independent loss.
    Random,
    /// Loss during a bad spell.
    Burst,
    /// The path was dark: a blackout or a periodic outage.
    Blackout,
    /// The recorded trace lost packets then.
    Trace,
    /// The queue behind a limited rate was full.
    Queue,
}

/// One direction of a path, with its state.
#[derive(Debug, Clone)]
pub struct Channel {
    spec: Arc<ChannelSpec>,
    chance: Chance,
    slots: SlotCounts,
    darkness: Darkness,
    loss: LossField,
    delay: DelayField,
    queue: Option<Queue>,
    jitter_us: u64,
    reorder_extra_us: u64,
}

impl Channel {
    /// The channel of a seed, a path and a direction. Channels of the same four arguments are equal.
    ///
    /// # Panics
    /// If [`ChannelSpec::check`] refuses the spec: check what comes from users first.
    pub fn new(spec: Arc<ChannelSpec>, seed: u64, path: u32, direction: Direction) -> Self {
        spec.check()
            .expect("specs from users are checked before channels are made of them");
        let stream = u64::from(path) << 2;
        let chance = Chance::new(seed, stream + 1 + direction as u64);
        // What both directions must agree on: where in a trace the path is, and which way a round trip was lost.
        let shared = Chance::new(seed, stream);
        Self {
            slots: SlotCounts::default(),
            darkness: Darkness::new(&spec, shared),
            loss: LossField::new(&spec.loss, chance, shared, direction),
            delay: DelayField::new(&spec.delay, &spec.variation, chance, shared),
            queue: spec.rate.as_ref().map(|rate| Queue::new(rate, shared)),
            jitter_us: micros(spec.jitter),
            reorder_extra_us: micros(spec.reorder.extra),
            chance,
            spec,
        }
    }

    /// What becomes of a packet of `bytes` (headers included) sent `sent_us` microseconds after the channel began.
    ///
    /// Calls come in order of time. Small steps back are right as well: packets of the last 31 ms go on counting in
    /// their own millisecond. After a longer step back the index in the slot starts again at 0.
    #[inline]
    pub fn fate(&mut self, sent_us: u64, bytes: usize) -> Fate {
        let slot = sent_us / SLOT_US;
        let index = self.slots.next_index(slot);
        let slot_start = slot * SLOT_US;
        if self.darkness.is_dark(slot_start) {
            return Fate::Lost(LossReason::Blackout);
        }
        // The queue comes first: what is lost behind the bottleneck has used it all the same.
        let mut delay_us = match &mut self.queue {
            None => 0,
            Some(queue) => match queue.wait_us(sent_us, bytes) {
                Some(wait) => wait,
                None => return Fate::Lost(LossReason::Queue),
            },
        };
        if let Some(reason) = self.loss.lost(slot_start, slot, index) {
            return Fate::Lost(reason);
        }
        delay_us += self.delay_us(sent_us, slot, index);
        let duplicate = self
            .happens(self.spec.duplicate, Purpose::Duplicate, slot, index)
            .then(|| {
                delay_us
                    + 1
                    + self
                        .chance
                        .below(COPY_LAG_US, Purpose::DuplicateDelay, slot, index)
            });
        Fate::Delivered {
            delay_us,
            duplicate,
        }
    }

    /// How long a packet takes that gets through, without its time in the queue.
    #[inline]
    fn delay_us(&mut self, sent_us: u64, slot: u64, index: u64) -> u64 {
        let mut delay_us = self.delay.at(sent_us, slot, index);
        if self.jitter_us > 0 {
            delay_us += self
                .chance
                .below(self.jitter_us, Purpose::Jitter, slot, index);
        }
        if self.happens(self.spec.reorder.share, Purpose::Reorder, slot, index) {
            delay_us += self.reorder_extra_us;
        }
        delay_us
    }

    /// What the channel was made of.
    pub fn spec(&self) -> &ChannelSpec {
        &self.spec
    }

    #[inline]
    fn happens(&self, share: f64, purpose: Purpose, slot: u64, index: u64) -> bool {
        share > 0.0 && self.chance.share(purpose, slot, index) < share
    }
}

/// The unit of time in which fates are drawn.
pub(crate) const SLOT_US: u64 = 1000;

/// Copies arrive within this time after the original.
const COPY_LAG_US: u64 = 1000;

/// How many packets were sent in each of the last 32 slots.
#[derive(Debug, Clone)]
struct SlotCounts {
    /// (slot, packets so far), at slot % 32. A slot's entry is stale until a packet of that slot claims it.
    counts: [(u64, u32); Self::KEPT as usize],
}

impl SlotCounts {
    const KEPT: u64 = 32;

    #[inline]
    fn next_index(&mut self, slot: u64) -> u64 {
        let entry = &mut self.counts[(slot % Self::KEPT) as usize];
        if entry.0 != slot {
            *entry = (slot, 0);
        }
        let index = entry.1;
        entry.1 += 1;
        u64::from(index)
    }
}

impl Default for SlotCounts {
    fn default() -> Self {
        Self {
            counts: [(u64::MAX, 0); Self::KEPT as usize],
        }
    }
}

/// Microseconds of a duration; 584,000 years is enough.
fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
