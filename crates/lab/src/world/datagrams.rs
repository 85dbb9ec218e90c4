//! Datagrams under way, by slot, and the one that was sent last.

use punctual_proto::limits;

pub(super) struct Datagrams {
    slots: Vec<Vec<u8>>,
    free: Vec<u32>,
    buffer: Box<[u8; limits::MTU_MAX as usize]>,
    /// Bytes of `buffer` that are the newest datagram.
    newest_len: usize,
}

impl Datagrams {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            buffer: Box::new([0; limits::MTU_MAX as usize]),
            newest_len: 0,
        }
    }

    /// Where the next datagram is written to. [`Datagrams::on_sent`] says how long it is.
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer[..]
    }

    /// A datagram of so many bytes was written. Gives it back.
    pub(super) fn on_sent(&mut self, len: usize) -> &[u8] {
        self.newest_len = len;
        &self.buffer[..len]
    }

    /// The newest; None before the first.
    pub(super) fn newest(&self) -> Option<&[u8]> {
        (self.newest_len > 0).then(|| &self.buffer[..self.newest_len])
    }

    /// The newest is under way, in this slot.
    pub(super) fn store_newest(&mut self) -> u32 {
        let slot = self.free_slot();
        self.slots[slot as usize].extend_from_slice(&self.buffer[..self.newest_len]);
        slot
    }

    /// A datagram is under way, in this slot.
    pub(super) fn store(&mut self, datagram: &[u8]) -> u32 {
        let slot = self.free_slot();
        self.slots[slot as usize].extend_from_slice(datagram);
        slot
    }

    fn free_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Vec::new());
            self.slots.len() as u32 - 1
        })
    }

    /// What is in a slot. [`Datagrams::free`] gives the slot back.
    pub(super) fn take(&mut self, slot: u32) -> Vec<u8> {
        std::mem::take(&mut self.slots[slot as usize])
    }

    /// The datagram that was taken from a slot has arrived: both are used again.
    pub(super) fn free(&mut self, slot: u32, mut datagram: Vec<u8>) {
        datagram.clear();
        self.slots[slot as usize] = datagram;
        self.free.push(slot);
    }
}
