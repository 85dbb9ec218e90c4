//! What newcomers may cost. Their HELLOs are opened by a Diffie-Hellman exchange, a tenth of a millisecond or two of a core, and anybody can send one.

use alloc::collections::BTreeMap;
use core::net::IpAddr;
use core::time::Duration;

use crate::limits::{HELLOS_FAILED_MAX, HELLOS_FAILED_PER_ADDRESS, HELLOS_UNASKED_MAX};
use crate::time::Instant;

/// What is counted is counted anew so often.
const WINDOW: Duration = Duration::from_secs(1);

/// HELLOs that were opened in the current second.
#[derive(Default)]
pub(super) struct Effort {
    until: Instant,
    /// For addresses that had not shown that they receive.
    unasked: usize,
    /// In vain, for addresses that had.
    failed: usize,
    failed_of: BTreeMap<IpAddr, usize>,
}

impl Effort {
    /// To be called before anything is asked.
    pub(super) fn see(&mut self, now: Instant) {
        if now >= self.until {
            *self = Self {
                until: now + WINDOW,
                ..Self::default()
            };
        }
    }

    /// Whether enough was computed for who may not be there at all.
    pub(super) const fn asks_for_cookies(&self) -> bool {
        self.unasked >= HELLOS_UNASKED_MAX
    }

    /// Whether so much was computed in vain that a HELLO of this site is left alone, although its address is no pretence. O(log n).
    pub(super) fn is_tired_of(&self, site: IpAddr) -> bool {
        let of_site = self.failed_of.get(&site).copied().unwrap_or(0);
        of_site >= HELLOS_FAILED_PER_ADDRESS || self.failed >= HELLOS_FAILED_MAX
    }

    /// A HELLO was opened, or did not open. O(log n).
    pub(super) fn on_opened(&mut self, site: IpAddr, is_validated: bool, is_failed: bool) {
        if !is_validated {
            self.unasked += 1;
        } else if is_failed {
            self.failed += 1;
            *self.failed_of.entry(site).or_insert(0) += 1;
        }
    }
}
