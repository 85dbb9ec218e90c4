//! Fills a packet with symbols: the schedule's, in its order, and into what room is left redundancy that has waited for it (`ride.rs`) and copies of small messages that are
//! not acknowledged yet (`bundling.rs`). One symbol of each block, so that a lost packet costs a block one symbol.

use core::time::Duration;

use super::output::Draft;
use super::{Session, Shared};
use crate::limits::{SYMBOLS_PER_PACKET_MAX, UDP_IP_HEADER};
use crate::message::{AROUND_SYMBOL, Block, OutgoingMessage, Urgency, leaves_room, symbol_len_max};
use crate::recovery::SymbolRef;
use crate::schedule::{Entry, Item, NO_DEADLINE, Reach, UNIT};
use crate::stream::{Delivery, Fairness};
use crate::time::Instant;
use crate::wire::{
    HEADER_LEN_MAX, Preamble, SYMBOL_HEADER, Symbol, TAG_LEN, Writer, symbol_overhead,
};

/// A symbol that leaves so much later than it might have was held back by the window or the pacer, and not by a timer.
const HELD: Duration = Duration::from_millis(3);
/// Room that is not worth looking for something that fits it.
const SMALL: usize = 8;

/// What goes into one packet.
pub(super) struct Picks {
    symbols: [SymbolRef; SYMBOLS_PER_PACKET_MAX],
    count: usize,
    /// Bytes of all of them, the last one's length field included.
    bytes: usize,
}

/// What a packet has room for.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// As the path is measured.
    path: usize,
    buffer: usize,
    /// The longest symbol that the path is measured to carry.
    symbol_max: usize,
    /// Nothing is in the packet yet.
    is_all: bool,
}

impl Room {
    /// Whether the next symbol of a block fits beside what is picked.
    pub(super) fn holds(&self, picks: &Picks, block: &Block) -> bool {
        picks.fits(block.symbols.symbol_len(), self.path)
    }
}

impl Picks {
    /// Whether a symbol of `len` bytes may go into the packet. Where it is not known whether the path still carries what a block was cut for (another address), each
    /// is tried as it is, alone: the block is cut anew when its next round begins, or they do not pass (`narrow.rs`).
    const fn fits_into(&self, len: usize, room: Room) -> bool {
        if len > room.symbol_max {
            self.count == 0 && self.fits(len, room.buffer)
        } else {
            self.fits(len, room.path)
        }
    }

    /// Whether a symbol of `len` bytes fits as the last one.
    const fn fits(&self, len: usize, room: usize) -> bool {
        self.count < SYMBOLS_PER_PACKET_MAX && self.bytes + SYMBOL_HEADER + len <= room
    }

    pub(super) const fn add(&mut self, symbol: SymbolRef, len: usize) {
        self.symbols[self.count] = symbol;
        self.count += 1;
        self.bytes += symbol_overhead(len) + len;
    }
}

impl Session {
    /// Bytes of the packet in which the schedule's first symbol would leave alone; `None` when nothing can.
    pub(super) fn first_packet_len(&self) -> Option<usize> {
        let symbol_max = symbol_len_max(self.path.mtu.current());
        let (_, entry) = self
            .traffic
            .schedule
            .find(Reach::First, |entry| self.is_sendable(entry))?;
        let symbol = match entry.item {
            Item::Block(number) => self.traffic.outbox.block(number)?.symbols.symbol_len(),
            Item::Message(slot) => {
                let len = self.traffic.outbox.message(slot)?.len as usize;
                (len + Preamble::LEN_MAX).min(symbol_max)
            }
        };
        Some(symbol + AROUND_SYMBOL)
    }

    /// Whether anything of an entry may leave now.
    fn is_sendable(&self, entry: &Entry) -> bool {
        match entry.item {
            Item::Block(_) => entry.needed_bytes > 0 || !self.traffic.holds_redundancy,
            Item::Message(slot) => self.may_cut(slot) && self.may_supersede(entry, slot),
        }
    }

    /// Whether a message that is to be cut cuts none short that it supersedes: what has begun of its sequenced stream before it
    /// leaves first, and what could leave as well.
    fn may_supersede(&self, entry: &Entry, slot: u32) -> bool {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return false;
        };
        message.delivery != Delivery::UnreliableSequenced
            || entry.is_begun
            || (self.traffic.schedule.entries_of(message.stream))
                .take_while(|before| !before.is_same(entry))
                .all(|before| match before.item {
                    Item::Message(slot) => !before.is_begun && !self.may_cut(slot),
                    Item::Block(_) => false,
                })
    }

    /// Writes symbols into the packet.
    pub(super) fn write_symbols(
        &mut self,
        now: Instant,
        draft: &mut Draft,
        writer: &mut Writer<'_>,
        shared: &mut Shared<'_>,
    ) {
        let mut picks = Picks {
            symbols: [SymbolRef::default(); SYMBOLS_PER_PACKET_MAX],
            count: 0,
            bytes: 0,
        };
        let room = Room {
            path: (self.path.mtu.current() - TAG_LEN).saturating_sub(writer.len()),
            buffer: writer.room(),
            symbol_max: symbol_len_max(self.path.mtu.current()),
            is_all: writer.len() == draft.header_len,
        };
        self.pick_scheduled(now, draft, room, &mut picks, shared);
        if picks.count > 0 {
            self.pick_riders(now, draft, room, &mut picks);
            self.pick_copies(now, draft, room, &mut picks, shared.config.thin_streams);
        }
        for (position, &symbol) in picks.symbols[..picks.count].iter().enumerate() {
            self.write_symbol(symbol, position + 1 == picks.count, draft, writer);
        }
    }

    fn pick_scheduled(
        &mut self,
        now: Instant,
        draft: &mut Draft,
        room: Room,
        picks: &mut Picks,
        shared: &mut Shared<'_>,
    ) {
        loop {
            let reach = if picks.count == 0 {
                Reach::First
            } else {
                Reach::Spare
            };
            if picks.count > 0 && !picks.fits(SMALL, room.path) {
                return;
            }
            let found = self
                .traffic
                .schedule
                .find(reach, |entry| self.fits(entry, draft.number, picks, room));
            if let Some((_, entry)) = found
                && self.yields(now, &entry)
            {
                continue;
            }
            let number = match found.map(|(_, entry)| entry.item) {
                None => return,
                Some(Item::Block(number)) => number,
                Some(Item::Message(slot)) => match self.cut_block(now, slot, shared) {
                    Some(number) => number,
                    None => return,
                },
            };
            let len = self
                .traffic
                .outbox
                .block(number)
                .map_or(0, |block| block.symbols.symbol_len());
            if picks.fits_into(len, room) {
                self.pick(now, number, draft, picks);
            } else {
                self.schedule_block(number);
            }
        }
    }

    /// What cannot keep its deadline any more makes way for what can: after an outage, else, everything would be late. What may not keep it stands one
    /// lifetime later. `true` when the entry has another place now; once for each message and reason.
    fn yields(&mut self, now: Instant, entry: &Entry) -> bool {
        if entry.deadline == NO_DEADLINE {
            return false;
        }
        let slot = match entry.item {
            Item::Message(slot) => slot,
            Item::Block(number) => match self.traffic.outbox.block(number) {
                Some(block) => block.message,
                None => return false,
            },
        };
        let Some(message) = self.traffic.outbox.message(slot) else {
            return false;
        };
        if message.delivery == Delivery::ReliableOrdered {
            return false;
        }
        let urgency = self.urgency(now, entry, message);
        if message.course.urgency == urgency {
            return false;
        }
        let mut blocks = message.live_blocks();
        blocks.retain(|number| {
            let block = self.traffic.outbox.block(*number);
            block.is_some_and(|block| block.is_scheduled)
        });
        for &number in &blocks {
            self.take_off_schedule(number);
        }
        self.dequeue(slot);
        if let Some(message) = self.traffic.outbox.message_mut(slot) {
            message.course.urgency = urgency;
        }
        self.enqueue(slot);
        for number in blocks {
            self.schedule_block(number);
        }
        true
    }

    /// How urgent a message is whose next entry this is; it never becomes more urgent. What has not begun makes way once if it would be late behind the longest queue of
    /// late. (Who sends a little more than the path carries had all messages wait until they could just not be in time any more: 1 % were.) Where that
    /// is longer than the messages have from the beginning none could be in time for it, and it may be a radio's delay.
    fn urgency(&self, now: Instant, entry: &Entry, message: &OutgoingMessage) -> Urgency {
        let present = message.course.urgency;
        let least = self.path.owd.min();
        if !message.is_in_time(now + least) {
            return Urgency::TooLate;
        }
        if present != Urgency::Due || entry.is_begun || matches!(entry.item, Item::Block(_)) {
            return present;
        }
        let behind = least
            + self.path.congestion.longest_queue()
            + self.path.time_to_send(entry.needed_bytes.into());
        let (is_late, is_short) = (
            !message.is_in_time(now + behind),
            message.options.within.is_some_and(|within| behind > within),
        );
        if is_late && !is_short {
            Urgency::Postponed
        } else {
            present
        }
    }

    fn fits(&self, entry: &Entry, packet: u64, picks: &Picks, room: Room) -> bool {
        let outbox = &self.traffic.outbox;
        match entry.item {
            Item::Block(number) => outbox.block(number).is_some_and(|block| {
                block.last_packet != packet
                    && picks.fits_into(block.symbols.symbol_len(), room)
                    && self.is_sendable(entry)
            }),
            Item::Message(_) => {
                let least = (entry.bytes as usize + Preamble::LEN_MAX).min(room.symbol_max);
                // The first one leaves in any case, alone if it must: in a packet without anything else.
                let leaves_alone = room.is_all && picks.count == 0;
                (leaves_alone || picks.fits(least, room.path)) && self.is_sendable(entry)
            }
        }
    }

    /// Takes the next symbol of a block into the packet, and its stream is charged for it.
    pub(super) fn pick(&mut self, now: Instant, number: u64, draft: &mut Draft, picks: &mut Picks) {
        let Some(block) = self.traffic.outbox.block(number) else {
            return;
        };
        if block.flight.to_send == 0 {
            // The policy sends nothing this round. (In the schedule it would be found again and again.)
            self.take_off_schedule(number);
            return;
        }
        let (slot, len, is_last) = (
            block.message,
            block.symbols.symbol_len(),
            block.flight.to_send == 1,
        );
        let (may_send_at, rides) = (block.flight.may_send_at(), block.flight.waits_for_ride());
        if block.flight.is_next_redundant() {
            self.path.congestion.on_redundancy(now, len + AROUND_SYMBOL);
        }
        let has_another_place = block.flight.to_send == block.flight.redundant + 1;
        if is_last || has_another_place {
            self.take_off_schedule(number);
        } else {
            self.schedule_block(number);
        }
        let Some(esi) = self.take_symbol(now, number, draft.number, true) else {
            return;
        };
        picks.add(SymbolRef { block: number, esi }, len);
        if rides {
            self.wait_for_copy(now, number, draft.number);
        } else {
            self.wait_for_flight(now, number, draft.number);
        }
        self.go_on_with(now, number);
        let owd_min = self.path.owd.min();
        let Some(message) = self.traffic.outbox.message_mut(slot) else {
            return;
        };
        draft.is_urgent |= message.deadline.is_some();
        // What was too late anyway was not held back.
        message.course.was_held |= now.since(may_send_at) > HELD + self.path.timer_lag.before_end()
            && message.is_in_time(may_send_at + owd_min);
        let begun = match message.course.first_sent_at {
            Some(_) => None,
            None => Some(now.since(message.accepted_at)),
        };
        message.course.first_sent_at.get_or_insert(now);
        self.account(
            slot,
            picks.symbols[picks.count - 1],
            len,
            begun,
            picks.count == 1,
        );
    }

    /// A symbol of a block has left: when does the next one, and what may wait for others?
    fn go_on_with(&mut self, now: Instant, number: u64) {
        let mtu = self.path.mtu.current();
        if let Some(block) = self.traffic.outbox.block_mut(number) {
            let pauses = block.flight.pause(now, self.path.timer_lag.before_end());
            if block.flight.waits_for_ride() {
                self.traffic.rides.waiting.push(number);
            }
            // One that fills its packet takes nothing along.
            if block.sent == 1 && leaves_room(block.symbols.symbol_len(), mtu) {
                self.traffic.rides.on_begun(now);
            }
            if block.sent == 1 && block.symbols.source_symbols == 1 {
                self.traffic.recent.push(number);
            }
            if pauses {
                self.take_off_schedule(number);
            } else {
                self.schedule_block(number);
            }
        }
        self.arm(number);
    }

    /// Counts a symbol, and charges its stream for it. `begun`: it is the message's first, and waited so long. The first symbol of
    /// a packet pays for the packet.
    fn account(
        &mut self,
        slot: u32,
        symbol: SymbolRef,
        len: usize,
        begun: Option<Duration>,
        is_first: bool,
    ) {
        let Some(message) = self.traffic.outbox.message(slot) else {
            return;
        };
        let id = message.stream;
        let Some(stream) = self.traffic.streams.get_mut(id) else {
            return;
        };
        if let Some(waited) = begun {
            stream.stats.on_begun(waited);
        }
        stream.stats.on_symbol(len, false);
        let overhead = if is_first {
            HEADER_LEN_MAX + TAG_LEN + UDP_IP_HEADER
        } else {
            0
        };
        let charge = match stream.config.fairness {
            Fairness::Bytes => (symbol_overhead(len) + len + overhead) as u64 * UNIT,
            Fairness::Quality => self
                .traffic
                .outbox
                .block(symbol.block)
                .map_or(0, |block| quality_of(message, block, symbol.esi)),
        };
        self.traffic.schedule.charge(id, charge);
    }

    /// The next symbol index of a block that goes into `packet`. With `counts` it was one of those to be sent.
    pub(super) fn take_symbol(
        &mut self,
        now: Instant,
        number: u64,
        packet: u64,
        counts: bool,
    ) -> Option<u8> {
        let arrives = now + self.path.owd.min();
        let block = self.traffic.outbox.block_mut(number)?;
        let esi = block.symbols.next_esi();
        block.sent = block.sent.saturating_add(1);
        block.unaccounted = block.unaccounted.saturating_add(1);
        block.flight.to_send -= u16::from(counts);
        block.last_packet = packet;
        let slot = block.message;
        if let Some(message) = self.traffic.outbox.message_mut(slot)
            && message.is_in_time(arrives)
        {
            message.course.chances.on_left_in_time();
        }
        Some(esi)
    }

    fn write_symbol(
        &mut self,
        symbol: SymbolRef,
        is_last: bool,
        draft: &mut Draft,
        writer: &mut Writer<'_>,
    ) {
        let Some(block) = self.traffic.outbox.block(symbol.block) else {
            return;
        };
        let len = block.symbols.symbol_len();
        let header = Symbol {
            source_symbols: block.symbols.source_symbols,
            truncated_block: symbol.block as u16,
            esi: symbol.esi,
            data: &[],
        };
        header.encode_header(writer, (!is_last).then_some(len));
        if let Some(space) = writer.space(len) {
            block.symbols.write_symbol(symbol.esi, space);
        }
        self.sent.note_symbol(draft.symbol_count, symbol);
        draft.symbol_count += 1;
        draft.symbol_bytes += len;
        draft.is_eliciting = true;
    }
}

/// What a symbol is worth in the application's measure, as much as 1,024 bytes for each unit: its share of the message's quality, the first time that the
/// content is sent; repair is worth nothing.
fn quality_of(message: &OutgoingMessage, block: &Block, esi: u8) -> u64 {
    if esi >= block.symbols.source_symbols || block.sent > u16::from(block.symbols.source_symbols) {
        return 0;
    }
    let share = (block.symbols.symbol_len() as f32 / (message.len.max(1) as f32)).min(1.0);
    (f64::from(message.options.quality * share) * 1024.0 * UNIT as f64) as u64
}
