//! One value for each k, each built when it is first wanted.
//!
//! Look-ups run while another thread builds: a finished value is put in its place once, and stays.

use core::sync::atomic::{AtomicU64, Ordering};

use once_cell::race::OnceBox;

use crate::limits::SOURCE_SYMBOLS_MAX;

/// Values by k. A k out of range counts as the nearest in range: a look-up never panics.
pub(crate) struct ByK<T> {
    values: [OnceBox<T>; SOURCE_SYMBOLS_MAX as usize],
    /// Bit k - 1 is set once a look-up has missed the value of k.
    wanted: AtomicU64,
}

impl<T> ByK<T> {
    /// Nothing is built.
    pub(crate) const fn new() -> Self {
        Self {
            values: [const { OnceBox::new() }; SOURCE_SYMBOLS_MAX as usize],
            wanted: AtomicU64::new(0),
        }
    }

    /// The value of k, if it is built.
    pub(crate) fn get(&self, source_symbols: u8) -> Option<&T> {
        self.values[place_of(source_symbols)].get()
    }

    /// Notes that a look-up has missed the value of k.
    pub(crate) fn want(&self, source_symbols: u8) {
        let bit = 1 << place_of(source_symbols);
        // Read first: most threads find the bit set, and a shared cache line is read more cheaply than written.
        if self.wanted() & bit == 0 {
            self.wanted.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Bits k - 1 of the values that look-ups have missed and that are not built yet.
    pub(crate) fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Relaxed)
    }

    /// All that is built.
    pub(crate) fn built(&self) -> impl Iterator<Item = &T> {
        self.values.iter().filter_map(OnceBox::get)
    }
}

#[cfg(feature = "solve")]
impl<T> ByK<T> {
    /// Builds the value of k; returns it when it is new.
    pub(crate) fn build(&self, source_symbols: u8, make: impl FnOnce(u8) -> T) -> Option<&T> {
        let place = place_of(source_symbols);
        let value = &self.values[place];
        let is_new = value.get().is_none() && {
            let made = make(place as u8 + 1);
            // Another thread may have been faster; its value is the same.
            value.set(alloc::boxed::Box::new(made)).is_ok()
        };
        self.wanted.fetch_and(!(1 << place), Ordering::Relaxed);
        value.get().filter(|_| is_new)
    }

    /// The k whose values look-ups have missed.
    pub(crate) fn wanted_k(&self) -> impl Iterator<Item = u8> + use<T> {
        let wanted = self.wanted();
        (1..=SOURCE_SYMBOLS_MAX).filter(move |k| wanted >> (k - 1) & 1 == 1)
    }
}

fn place_of(source_symbols: u8) -> usize {
    usize::from(source_symbols.clamp(1, SOURCE_SYMBOLS_MAX)) - 1
}
