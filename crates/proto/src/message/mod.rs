//! A message <-> blocks of symbols: cut on the way out, rebuilt on the way in.

mod assembly;
mod block;
mod chances;
mod flight;
mod inbox;
mod large;
mod outbox;
mod partials;
mod split;
mod symbols;

pub(crate) use assembly::{Assemblies, Head};
pub(crate) use block::{Block, Silence};
pub(crate) use chances::Chances;
pub(crate) use flight::{Pauses, Ride};
pub(crate) use inbox::{Inbox, Ready, Room, Share, Taken};
pub use large::SharedContent;
pub(crate) use large::{Large, PART_MIN, Source};
pub(crate) use outbox::{Body, Course, Fate, Outbox, OutgoingMessage, Urgency};
pub(crate) use split::{
    AROUND_SYMBOL, Cut, Flights, PACKET_OVERHEAD, SplitCache, cut_evenly, leaves_room,
    symbol_len_max,
};
