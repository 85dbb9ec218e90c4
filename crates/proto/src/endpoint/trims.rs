//! Memory that is kept for the next burst, and given back when none comes.

use super::Endpoint;
use super::routing::Slot;

/// Where the search for sessions that hold memory without use stands.
#[derive(Default)]
pub(super) struct Trims {
    next: usize,
    found: bool,
    /// Something has happened since the last round without a find.
    is_wanted: bool,
}

/// Sessions that one call of [`Endpoint::shrink`] looks at.
const TRIMS_MAX: usize = 4096;

impl Trims {
    /// Something has happened, perhaps in a session that this round has passed.
    pub(super) const fn on_change(&mut self) {
        (self.found, self.is_wanted) = (true, true);
    }
}

impl Endpoint {
    /// Frees memory kept for later: buffers that have not been needed since the last call, and what sessions hold that have been
    /// quiet since. Call it every few seconds while [`Endpoint::holds_buffers`]; a call looks at 4,096 sessions at most.
    pub fn shrink(&mut self) {
        self.commons.pool.shrink();
        let slots = self.table.slots();
        for _ in 0..slots.min(TRIMS_MAX) {
            if self.trims.next >= slots {
                // Once around: when nobody held anything, nobody does until something happens.
                self.trims.is_wanted = core::mem::take(&mut self.trims.found);
                self.trims.next = 0;
            }
            let Some(entry) = self.table.entry_mut(self.trims.next as u32) else {
                return;
            };
            self.trims.next += 1;
            self.trims.found |= entry.is_slack;
            if !core::mem::take(&mut entry.is_busy)
                && core::mem::take(&mut entry.is_slack)
                && let Slot::Session(session) = &mut entry.slot
            {
                session.trim();
            }
        }
    }

    /// Whether memory may be kept that [`Endpoint::shrink`] would free.
    #[must_use]
    pub const fn holds_buffers(&self) -> bool {
        !self.commons.pool.is_empty() || self.trims.is_wanted
    }
}
