//! A message <-> blocks of symbols: cut on the way out, rebuilt on the way in.

mod block;
mod inbox;
mod outbox;
mod split;

pub(crate) use block::Block;
pub(crate) use inbox::{Inbox, Taken};
pub(crate) use outbox::{Outbox, OutgoingMessage};
pub(crate) use split::{Cut, PACKET_OVERHEAD, SplitCache, cut_evenly};
