//! Packets under way, in the order in which they are due; of those due together, the first to come goes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most packets under way. At ten thousand packets a second and a second of delay a tenth of it is used.
pub(crate) const PACKETS_MAX: usize = 1 << 17;

/// Most bytes of them: so many full packets of an Ethernet, or fewer larger ones.
const BYTES_MAX: usize = PACKETS_MAX * 1536;

/// Larger buffers are not used again.
const KEPT_MAX: usize = 2048;

/// A heap of keys; the packets lie beside it, in buffers that are used again.
#[derive(Debug)]
pub(crate) struct DelayQueue<Label> {
    /// (due, number of the packet, place).
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    places: Vec<(Label, Vec<u8>)>,
    free: Vec<usize>,
    pushed: u64,
    /// Of the packets under way.
    bytes: usize,
    /// The packet that was due last.
    popped: Vec<u8>,
    packets_max: usize,
}

impl<Label: Copy> DelayQueue<Label> {
    pub(crate) fn new(packets_max: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            places: Vec::new(),
            free: Vec::new(),
            pushed: 0,
            bytes: 0,
            popped: Vec::new(),
            packets_max,
        }
    }

    /// Takes a copy of a packet; false when there is no room for it.
    pub(crate) fn push(&mut self, due: u64, label: Label, datagram: &[u8]) -> bool {
        if self.heap.len() >= self.packets_max || self.bytes + datagram.len() > BYTES_MAX {
            return false;
        }
        self.bytes += datagram.len();
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.places.push((label, Vec::new()));
                self.places.len() - 1
            }
        };
        let (kept_label, bytes) = &mut self.places[place];
        *kept_label = label;
        bytes.clear();
        bytes.extend_from_slice(datagram);
        self.pushed += 1;
        self.heap.push(Reverse((due, self.pushed, place)));
        true
    }

    pub(crate) fn next_due(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.0.0)
    }

    /// The next packet that is due by now, when it was due, and its label.
    pub(crate) fn pop_due(&mut self, now_us: u64) -> Option<(u64, Label, &[u8])> {
        if self.next_due()? > now_us {
            return None;
        }
        let Reverse((due, _, place)) = self.heap.pop()?;
        self.free.push(place);
        if self.popped.capacity() > KEPT_MAX {
            self.popped = Vec::new();
        }
        let (label, bytes) = &mut self.places[place];
        std::mem::swap(&mut self.popped, bytes);
        self.bytes -= self.popped.len();
        Some((due, *label, &self.popped))
    }
}
