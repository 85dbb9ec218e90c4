//! A channel as somebody sees it who knows all fates beforehand: what would become of any packet, without sending it.
//!
//! Fates are pure functions of (slot, index in the slot), the delay also of the exact time; only the queue depends on what is
//! sent. So each of the questions here can be asked in any order (going back far is slow: clone before looking far ahead), and the
//! queue is handed out idle.

use std::sync::Arc;

use super::queue::Queue;
use super::{Channel, ChannelSpec, Direction, SLOT_US};

/// A channel into which nothing is sent.
#[derive(Debug, Clone)]
pub(crate) struct Foresight {
    channel: Channel,
}

impl Foresight {
    /// Foresees the channel of the same arguments.
    pub(crate) fn new(spec: Arc<ChannelSpec>, seed: u64, path: u32, direction: Direction) -> Self {
        Self {
            channel: Channel::new(spec, seed, path, direction),
        }
    }

    /// Whether nothing at all gets through that is sent in a slot.
    pub(crate) fn is_dead(&mut self, slot: u64) -> bool {
        let start_us = slot * SLOT_US;
        self.channel.darkness.is_dark(start_us) || self.channel.loss.share(start_us) >= 1.0
    }

    /// Whether the packet is lost that is the `index`th of a slot. (Not by a full queue.)
    pub(crate) fn is_lost(&mut self, slot: u64, index: u64) -> bool {
        let start_us = slot * SLOT_US;
        self.channel.darkness.is_dark(start_us)
            || self.channel.loss.lost(start_us, slot, index).is_some()
    }

    /// How long the `index`th packet of a slot takes that is sent at `sent_us`, which lies in that slot, without its time in the
    /// queue.
    pub(crate) fn delay_us(&mut self, sent_us: u64, index: u64) -> u64 {
        self.channel.delay_us(sent_us, sent_us / SLOT_US, index)
    }

    /// What no packet sent at `sent_us` comes below, as far as can be said without knowing its index.
    pub(crate) fn least_delay_us(&mut self, sent_us: u64) -> u64 {
        if self.channel.delay.is_drawn_by_packet() {
            return 0;
        }
        self.channel.delay.at(sent_us, sent_us / SLOT_US, 0)
    }

    /// The queue before a limited rate, with nothing in it.
    pub(crate) fn idle_queue(&self) -> Option<Queue> {
        self.channel.queue.clone()
    }
}
