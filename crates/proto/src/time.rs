//! Time as the protocol sees it: nanoseconds since an epoch that the caller chose.
//!
//! The protocol never reads a clock. A driver passes `now` into every call; a simulation passes virtual time.

use core::fmt;
use core::num::NonZeroU64;
use core::ops::{Add, Sub};
use core::time::Duration;

/// A point in time: nanoseconds since an epoch of the caller's choosing, the same for one endpoint's whole life.
///
/// One that may be missing takes no more room: a session has some dozens of those.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(
    /// Nanoseconds and one more.
    NonZeroU64,
);

impl Instant {
    /// The epoch itself.
    pub const ZERO: Self = Self(NonZeroU64::MIN);

    /// The point `nanos` nanoseconds after the epoch, at most 2^64 - 2.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// The point `micros` microseconds after the epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self::from_nanos(micros.saturating_mul(1_000))
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Whole microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.as_nanos() / 1_000
    }

    /// The microseconds as they travel: the lowest 32 bits, which wrap every 71.6 minutes.
    pub(crate) const fn wire_micros(self) -> u32 {
        self.as_micros() as u32
    }

    /// Time since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ZERO
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant").field(&self.as_nanos()).finish()
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(nanos(span)))
    }
}

/// The nanoseconds of a span; spans past 584 years count as that.
pub(crate) const fn nanos(span: Duration) -> u64 {
    let total = span.as_nanos();
    if total > u64::MAX as u128 {
        u64::MAX
    } else {
        total as u64
    }
}

/// The earlier of two optional points.
pub(crate) fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
