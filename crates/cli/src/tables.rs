//! Policies whose tables are built beforehand, so that nothing is solved while messages are under way.

use std::sync::Arc;

use punctual_policy::{Library, PolicyKind};
use punctual_proto::limits;

/// The tables of a policy for messages of so many bytes, for every way in which it may cut them.
pub(crate) fn library(kind: PolicyKind, message_bytes: usize, miss_target: f32) -> Arc<Library> {
    // A packet carries some 50 bytes besides its symbol; a dozen symbols above the least are considered.
    let least = message_bytes.div_ceil(usize::from(limits::MTU_MAX) - 50);
    let most = message_bytes.div_ceil(usize::from(limits::MTU_MIN) - 50) + 12;
    let within = |symbols: usize| symbols.clamp(1, limits::SOURCE_SYMBOLS_MAX) as u8;
    let policies = Library::new(kind);
    policies.prepare(miss_target, within(least)..=within(most));
    Arc::new(policies)
}
