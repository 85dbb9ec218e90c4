//! Packets sent and not yet settled, by number, with the symbols that they held.

use alloc::collections::VecDeque;

use crate::limits::SENT_PACKETS_MAX;
use crate::path::Dependence;
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
    /// The same, but nothing later was answered for either, and the answer may as well be lost: it says nothing of the path yet.
    LostInSilence,
}

impl PacketState {
    pub(crate) const fn is_lost(self) -> bool {
        matches!(
            self,
            Self::LostByOrder | Self::LostByTime | Self::LostInSilence
        )
    }

    /// Whether it is a loss of the path's, as far as is known, and not one of the answers'.
    pub(crate) const fn is_surely_lost(self) -> bool {
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
    /// It holds symbols of a message with a deadline.
    pub(crate) is_urgent: bool,
    /// How its loss depended on that of the packet before, when it was taken for lost.
    pub(crate) dependence: Dependence,
    /// The first symbol, here because most packets have one: an access to memory less. Set by [`SentPackets::push`], as is
    /// the next.
    first_esi: u8,
    first_block: u64,
    /// Further symbols of the packets before, modulo 2^32.
    further: u32,
}

impl SentPacket {
    /// A packet of `bytes`, which leaves now.
    pub(crate) const fn new(
        sent_at: Instant,
        bytes: u16,
        symbols: u8,
        is_eliciting: bool,
        is_probe: bool,
    ) -> Self {
        // Nothing waits for one that asks for no acknowledgement.
        let state = if is_eliciting {
            PacketState::Outstanding
        } else {
            PacketState::Settled
        };
        Self {
            sent_at,
            lost_at: sent_at,
            bytes,
            symbols,
            state,
            is_probe,
            is_urgent: false,
            dependence: Dependence::NONE,
            first_esi: 0,
            first_block: 0,
            further: 0,
        }
    }
}

/// A symbol in a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SymbolRef {
    pub(crate) block: u64,
    pub(crate) esi: u8,
}

/// The packets sent, oldest first.
#[derive(Default)]
pub(crate) struct SentPackets {
    base: u64,
    packets: VecDeque<SentPacket>,
    /// The first symbol of the packet that is being written.
    first: SymbolRef,
    /// Symbols after the first, of all these packets in the order sent.
    further: VecDeque<SymbolRef>,
    /// Those that left the old end, modulo 2^32.
    further_base: u32,
    /// Packets that are outstanding.
    outstanding: usize,
    /// No packet below is outstanding.
    first_outstanding: u64,
    /// No packet from this number on was lost.
    lost_below: u64,
    /// Packets that were lost in silence.
    in_silence: usize,
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
        let own = u32::from(packet.symbols.saturating_sub(1));
        packet.further = self
            .further_base
            .wrapping_add(self.further.len() as u32 - own);
        (packet.first_block, packet.first_esi) = (self.first.block, self.first.esi);
        self.outstanding += usize::from(packet.state == PacketState::Outstanding);
        self.packets.push_back(packet);
        self.pass_settled();
    }

    /// How many packets are outstanding.
    pub(crate) const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Whether packets were lost of which nobody knows whether they were.
    pub(crate) const fn has_silence(&self) -> bool {
        self.in_silence > 0
    }

    /// Whether a packet from this number on may have been lost.
    pub(crate) const fn may_be_lost(&self, from: u64) -> bool {
        self.lost_below > from
    }

    /// Below this number no packet is outstanding.
    pub(crate) const fn first_outstanding(&self) -> u64 {
        self.first_outstanding
    }

    /// A packet that is not outstanding any more never is again, so each is passed once.
    fn pass_settled(&mut self) {
        while self
            .get(self.first_outstanding)
            .is_some_and(|packet| packet.state != PacketState::Outstanding)
        {
            self.first_outstanding += 1;
        }
    }

    /// Gives back what a burst needed.
    pub(crate) fn trim(&mut self) {
        self.packets.shrink_to_fit();
        self.further.shrink_to_fit();
    }

    /// A symbol of the packet that is being written, which has `before` symbols already.
    pub(crate) fn note_symbol(&mut self, before: usize, symbol: SymbolRef) {
        if before == 0 {
            self.first = symbol;
        } else {
            self.further.push_back(symbol);
        }
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
        self.in_silence -= usize::from(packet.state == PacketState::LostInSilence);
        self.in_silence += usize::from(state == PacketState::LostInSilence);
        if state.is_lost() {
            packet.lost_at = now;
            self.lost_below = self.lost_below.max(number + 1);
        }
        let before = core::mem::replace(&mut packet.state, state);
        self.pass_settled();
        Some(before)
    }

    /// Remembers how the loss of a packet depended on the one before.
    pub(crate) fn note_dependence(&mut self, number: u64, dependence: Dependence) {
        let index = number
            .checked_sub(self.base)
            .and_then(|index| usize::try_from(index).ok());
        if let Some(packet) = index.and_then(|index| self.packets.get_mut(index)) {
            packet.dependence = dependence;
        }
    }

    /// Numbers from the oldest kept to the newest.
    pub(crate) fn numbers(&self) -> core::ops::Range<u64> {
        self.base..self.next_number()
    }

    /// How many symbols packet `number` has, as positions for [`SentPackets::symbol`].
    pub(crate) fn symbols_of(&self, number: u64) -> core::ops::Range<usize> {
        0..self
            .get(number)
            .map_or(0, |packet| usize::from(packet.symbols))
    }

    /// A symbol of packet `number`, at a position that [`SentPackets::symbols_of`] told.
    pub(crate) fn symbol(&self, number: u64, position: usize) -> SymbolRef {
        let packet = &self.packets[(number - self.base) as usize];
        match position.checked_sub(1) {
            None => SymbolRef {
                block: packet.first_block,
                esi: packet.first_esi,
            },
            Some(at) => self.further[packet.further.wrapping_sub(self.further_base) as usize + at],
        }
    }

    /// Forgets what is settled at the old end; lost packets only when they were sent before `lost_before`, or when the room that they take is needed for
    /// what follows them: one lost packet must not stop a session (at ten thousand packets a second it did within two). Calls `never_came` with when each left that
    /// was surely lost.
    pub(crate) fn prune(
        &mut self,
        lost_before: Instant,
        mut never_came: impl FnMut(Instant, Dependence),
    ) {
        while let Some(packet) = self.packets.front() {
            let is_over = match packet.state {
                PacketState::Settled => true,
                PacketState::Outstanding => false,
                PacketState::LostByOrder | PacketState::LostByTime | PacketState::LostInSilence => {
                    packet.sent_at < lost_before || self.packets.len() > SENT_PACKETS_MAX / 2
                }
            };
            if !is_over {
                break;
            }
            if packet.state.is_surely_lost() && !packet.is_probe {
                never_came(packet.sent_at, packet.dependence);
            }
            self.in_silence -= usize::from(packet.state == PacketState::LostInSilence);
            let further = packet.symbols.saturating_sub(1);
            self.further.drain(..usize::from(further));
            self.further_base = self.further_base.wrapping_add(u32::from(further));
            self.packets.pop_front();
            self.base += 1;
        }
    }

    /// The oldest packet that is under way.
    pub(crate) fn oldest_outstanding(&self) -> Option<(u64, &SentPacket)> {
        let packet = self.get(self.first_outstanding)?;
        Some((self.first_outstanding, packet))
    }
}
