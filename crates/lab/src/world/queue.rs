//! What happens when: a heap ordered by time, then by the order of adding, so that runs are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use punctual_proto::Ecn;

use super::{HostId, Moment, RivalId};
use crate::rival::Segment;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The datagram in `slot` reaches a host, if that still has the `address` it was sent to.
    Arrival {
        to: HostId,
        address: SocketAddr,
        from: SocketAddr,
        slot: u32,
        ecn: Ecn,
    },
    /// A host's timer.
    Wake { host: HostId },
    /// A host's loop sends what its frame has made.
    FrameEnd { host: HostId },
    /// A packet of a rival reaches its receiver.
    RivalData { rival: RivalId, segment: Segment },
    /// The oldest acknowledgement under way reaches the rival.
    RivalAck { rival: RivalId },
    /// A rival's timer, or its receiver's.
    RivalWake { rival: RivalId },
}

/// The events to come. The heap holds keys only; what they mean lies beside it.
#[derive(Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    kinds: Vec<Kind>,
    free: Vec<u32>,
    added: u64,
}

/// Bits of a key that are the slot in `kinds`; the rest counts additions.
const SLOT_BITS: u32 = 24;

impl Queue {
    pub(super) fn push(&mut self, at: Moment, kind: Kind) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.kinds[slot as usize] = kind;
                slot
            }
            None => {
                self.kinds.push(kind);
                self.kinds.len() as u32 - 1
            }
        };
        assert!(
            slot < 1 << SLOT_BITS,
            "at most 16 million events wait at a time"
        );
        self.added += 1;
        self.heap
            .push(Reverse((at.0, (self.added << SLOT_BITS) | u64::from(slot))));
    }

    pub(super) fn next_at(&self) -> Option<Moment> {
        self.heap.peek().map(|entry| Moment(entry.0.0))
    }

    /// The next event of exactly this moment.
    pub(super) fn pop_at(&mut self, at: Moment) -> Option<Kind> {
        if self.next_at() != Some(at) {
            return None;
        }
        let Reverse((_, key)) = self.heap.pop()?;
        let slot = (key & ((1 << SLOT_BITS) - 1)) as u32;
        self.free.push(slot);
        Some(self.kinds[slot as usize])
    }
}
