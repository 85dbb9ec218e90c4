//! Packets sent and not yet settled, by number, with the symbols that they held.

use alloc::collections::VecDeque;

use crate::limits::SENT_PACKETS_MAX;
use crate::time::Instant;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketState {
    /// Nobody waits for it (it held an acknowledgement only), or it was acknowledged.
    Settled,
    /// Under way.
    Outstanding,
    /// Taken for lost because a later one arrived; kept a while, since its acknowledgement may be late.
    LostByOrder,
    /// Taken for lost because its round ended; kept likewise.
    LostByTime,
}

impl PacketState {
    pub(crate) const fn is_lost(self) -> bool {
        matches!(self, Self::LostByOrder | Self::LostByTime)
    }
}

/// A packet sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    pub(crate) sent_at: Instant,
    /// When it was taken for lost, if it was.
    pub(crate) lost_at: Instant,
    pub(crate) bytes: u16,
    pub(crate) symbols: u8,
    pub(crate) state: PacketState,
    /// Whether it counts for congestion and loss: path probes do not.
    pub(crate) is_probe: bool,
    /// Set by [`SentPackets::push`]: symbols sent before this packet's, modulo 2^32.
    pub(crate) first_symbol: u32,
}

/// A symbol in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolRef {
    pub(crate) block: u64,
    pub(crate) esi: u8,
}

/// The packets sent, oldest first.
#[derive(Default)]
pub(crate) struct SentPackets {
    base: u64,
    packets: VecDeque<SentPacket>,
    /// Symbols of all these packets in the order sent.
    symbols: VecDeque<SymbolRef>,
    /// Symbols that left the old end, modulo 2^32.
    symbols_base: u32,
    /// Packets that are outstanding.
    outstanding: usize,
}

impl SentPackets {
    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    pub(crate) fn is_full(&self) -> bool {
        self.packets.len() >= SENT_PACKETS_MAX
    }

    pub(crate) fn push(&mut self, mut packet: SentPacket) {
        let noted = self.symbols.len() as u32;
        packet.first_symbol = self
            .symbols_base
            .wrapping_add(noted - u32::from(packet.symbols));
        self.outstanding += usize::from(packet.state == PacketState::Outstanding);
        self.packets.push_back(packet);
    }

    /// Gives back what a burst needed.
    pub(crate) fn trim(&mut self) {
        self.packets.shrink_to_fit();
        self.symbols.shrink_to_fit();
    }

    /// A symbol of the packet that is being written.
    pub(crate) fn note_symbol(&mut self, symbol: SymbolRef) {
        self.symbols.push_back(symbol);
    }

    pub(crate) fn get(&self, number: u64) -> Option<&SentPacket> {
        self.packets
            .get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// Changes the state and tells the old one.
    pub(crate) fn set_state(
        &mut self,
        now: Instant,
        number: u64,
        state: PacketState,
    ) -> Option<PacketState> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        let packet = self.packets.get_mut(index)?;
        self.outstanding -= usize::from(packet.state == PacketState::Outstanding);
        self.outstanding += usize::from(state == PacketState::Outstanding);
        if state.is_lost() {
            packet.lost_at = now;
        }
        Some(core::mem::replace(&mut packet.state, state))
    }

    /// Numbers from the oldest kept to the newest.
    pub(crate) fn numbers(&self) -> core::ops::Range<u64> {
        self.base..self.next_number()
    }

    /// Where the symbols of packet `number` are, for [`SentPackets::symbol`].
    pub(crate) fn symbols_of(&self, number: u64) -> core::ops::Range<usize> {
        let Some(packet) = self.get(number) else {
            return 0..0;
        };
        let start = packet.first_symbol.wrapping_sub(self.symbols_base) as usize;
        start..start + usize::from(packet.symbols)
    }

    pub(crate) fn symbol(&self, position: usize) -> SymbolRef {
        self.symbols[position]
    }

    /// Forgets what is settled at the old end; lost packets only when they were sent before `lost_before`.
    pub(crate) fn prune(&mut self, lost_before: Instant) {
        while let Some(packet) = self.packets.front() {
            let is_over = match packet.state {
                PacketState::Settled => true,
                PacketState::Outstanding => false,
                PacketState::LostByOrder | PacketState::LostByTime => packet.sent_at < lost_before,
            };
            if !is_over {
                break;
            }
            self.symbols.drain(..usize::from(packet.symbols));
            self.symbols_base = self.symbols_base.wrapping_add(u32::from(packet.symbols));
            self.packets.pop_front();
            self.base += 1;
        }
    }

    /// The oldest packet that is under way.
    pub(crate) fn oldest_outstanding(&self) -> Option<(u64, &SentPacket)> {
        if self.outstanding == 0 {
            return None;
        }
        let index = self
            .packets
            .iter()
            .position(|packet| packet.state == PacketState::Outstanding)?;
        Some((self.base + index as u64, &self.packets[index]))
    }
}
