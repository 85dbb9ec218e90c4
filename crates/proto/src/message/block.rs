//! One coded block on its way: its symbols, and where its current round stands.

use alloc::vec::Vec;

use crate::message::Cut;
use crate::message::flight::Flight;
use crate::message::symbols::Symbols;
use crate::time::{Instant, earliest};

/// A block that is being sent.
pub(crate) struct Block {
    pub(crate) number: u64,
    /// Slot of its message.
    pub(crate) message: u32,
    pub(crate) symbols: Symbols,
    /// The first packet that may hold a symbol of its present cut: what arrives of those before it is of use to nobody.
    pub(crate) cut_from: u64,
    /// As much as rebuilds it had left in a cut before this one.
    left_before: bool,
    pub(crate) flight: Flight,
    pub(crate) silence: Silence,
    pub(crate) rounds_planned: u16,
    /// Symbols sent in all.
    pub(crate) sent: u16,
    /// Sent, neither acknowledged nor taken for lost.
    pub(crate) unaccounted: u16,
    /// The newest packet with a symbol of it, and how many copies of it travelled in spare room.
    pub(crate) last_packet: u64,
    pub(crate) bundled: u8,
    /// It stands in the schedule.
    pub(crate) is_scheduled: bool,
    /// When its message is given up, if it is to be.
    pub(crate) drop_at: Option<Instant>,
    /// The earliest entry of the session's timer queue for this block.
    pub(crate) armed: Option<Instant>,
}

/// Symbols of rounds that ended in silence: nobody answered for them or for anything later.
pub(crate) struct Silence {
    pub(crate) symbols: u16,
    /// Flights with any of them that waited as long as answers take.
    pub(crate) flights: u16,
    /// The first packet with one of them.
    pub(crate) first_packet: u64,
    /// When the last flight with any of them began.
    pub(crate) since: Instant,
    /// No more is to be sent, and answers were waited for once more.
    pub(crate) was_waited_for: bool,
}

impl Silence {
    pub(crate) const NONE: Self = Self {
        symbols: 0,
        flights: 0,
        first_packet: u64::MAX,
        since: Instant::ZERO,
        was_waited_for: false,
    };

    /// It says nothing of the path any more, which is another one. (What is in doubt is, whatever the path.)
    pub(crate) const fn forget_path(&mut self) {
        (self.symbols, self.flights) = (0, 0);
    }
}

impl Block {
    pub(crate) fn new(number: u64, message: u32, cut: Cut, data: Vec<u8>) -> Self {
        Self {
            number,
            message,
            symbols: Symbols::new(cut, data),
            cut_from: 0,
            left_before: false,
            flight: Flight::default(),
            silence: Silence::NONE,
            rounds_planned: 0,
            sent: 0,
            unaccounted: 0,
            last_packet: u64::MAX,
            bundled: 0,
            is_scheduled: false,
            drop_at: None,
            armed: None,
        }
    }

    /// Cuts it into shorter symbols. None of the old ones is under way, and the receiver lets go of those that it has when the first of the new ones comes.
    pub(crate) fn cut_anew(&mut self, cut: Cut, next_packet: u64) {
        self.left_before = self.has_left();
        let data = core::mem::take(&mut self.symbols.data);
        self.symbols = Symbols::new(cut, data);
        self.cut_from = next_packet;
        self.silence = Silence::NONE;
    }

    /// Whether as much was sent as rebuilds it, whatever is thought to be lost.
    pub(crate) fn has_left(&self) -> bool {
        self.left_before || self.sent >= u16::from(self.symbols.source_symbols)
    }

    /// Nothing more of it is sent. It waits for the answers to what was, which come by then.
    pub(crate) fn send_no_more(&mut self, answered_by: Instant) {
        self.drop_at = None;
        let flight = &mut self.flight;
        flight.wait_no_longer();
        let was_patient = core::mem::take(&mut flight.patience).is_zero();
        let ends = flight.round_ends.filter(|_| was_patient);
        flight.round_ends = Some(ends.map_or(answered_by, |ends| ends.min(answered_by)));
    }

    /// Whether every symbol of the round was sent and is accounted for, and no backoff holds the next one.
    pub(crate) const fn is_round_over(&self) -> bool {
        self.is_all_accounted_for() && (!self.flight.waits() || self.flight.is_acked)
    }

    /// Whether every symbol of the round was sent and is accounted for.
    pub(crate) const fn is_all_accounted_for(&self) -> bool {
        self.unaccounted == 0 && self.flight.to_send == 0 && self.sent > 0
    }

    /// When this block wants attention next. A round does not end before its flight has left.
    pub(crate) fn due(&self) -> Option<Instant> {
        earliest(
            self.flight.pauses.resumes_at.or(self.flight.round_ends),
            self.drop_at,
        )
    }
}
