//! What those may cost who have no session. Newcomers' HELLOs are opened by a Diffie-Hellman exchange, a tenth of a millisecond or two of a core, and anybody can send one.

use alloc::collections::BTreeMap;
use core::net::IpAddr;
use core::time::Duration;

use crate::limits::{
    GONE_MAX, HELLOS_FAILED_MAX, HELLOS_FAILED_PER_ADDRESS, HELLOS_UNASKED_MAX, SESSIONS_MAX,
};
use crate::time::Instant;

/// What is counted is counted anew so often.
const WINDOW: Duration = Duration::from_secs(1);

/// What was spent in the current second.
#[derive(Default)]
pub(super) struct Effort {
    until: Instant,
    /// HELLOs that were opened for addresses that had not shown that they receive.
    unasked: usize,
    /// .. in vain, for addresses that had.
    failed: usize,
    failed_of: BTreeMap<IpAddr, usize>,
    /// Answers to packets of no session.
    gone: usize,
    /// Slots that were looked at for the sessions of such answers.
    looked_at: usize,
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

    /// Whether so much was computed in vain that a HELLO of this site is left alone, although its address is no pretence: sooner of a site of which one has failed. O(log n).
    pub(super) fn is_tired_of(&self, site: IpAddr) -> bool {
        let of_site = self.failed_of.get(&site).copied().unwrap_or(0);
        let most = if of_site == 0 {
            2 * HELLOS_FAILED_MAX
        } else {
            HELLOS_FAILED_MAX
        };
        of_site >= HELLOS_FAILED_PER_ADDRESS || self.failed >= most
    }

    /// Whether a packet of no session is answered; counts it.
    pub(super) const fn may_tell_gone(&mut self) -> bool {
        self.gone += 1;
        self.gone <= GONE_MAX
    }

    /// Whether so many slots may be looked through; counts them. (All of them once a second, however many they are.)
    pub(super) const fn may_look_at(&mut self, slots: usize) -> bool {
        self.looked_at += slots;
        self.looked_at <= SESSIONS_MAX
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
