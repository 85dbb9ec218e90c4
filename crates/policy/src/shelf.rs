//! The tables of one policy and one miss target, by k, each built when it is first wanted.
//!
//! Look-ups run while another thread builds: a finished table is put in its place once, and stays.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use once_cell::race::OnceBox;

use crate::limits::{MISS_TARGET_MIN, SOURCE_SYMBOLS_MAX};
use crate::loss::LossBins;
use crate::table::BlockTables;
use crate::{Situation, chance, stopgap};

/// What distinguishes the policies that are made of tables.
pub(crate) trait Scheme: Send + Sync + 'static {
    /// How loss is cut into bins.
    type Bins: LossBins;
    /// Most rounds with a table of their own. More are served as this many.
    const ROUNDS_MAX: u16;
    /// The problem that the tables solve.
    #[cfg(feature = "solve")]
    const RULE: crate::solve::Rule;
}

/// Tables of one scheme for one miss target.
pub(crate) struct Shelf<S> {
    miss_target: f64,
    tables: [OnceBox<BlockTables>; SOURCE_SYMBOLS_MAX as usize],
    /// Bit k - 1 is set once a look-up has missed the tables of k.
    wanted: AtomicU64,
    scheme: PhantomData<S>,
}

impl<S: Scheme> Shelf<S> {
    pub(crate) fn new(miss_target: f64) -> Self {
        debug_assert!(
            miss_target >= f64::from(MISS_TARGET_MIN) && miss_target < 1.0,
            "checked by the caller"
        );
        let tables = [const { OnceBox::new() }; SOURCE_SYMBOLS_MAX as usize];
        Self {
            miss_target,
            tables,
            wanted: AtomicU64::new(0),
            scheme: PhantomData,
        }
    }

    pub(crate) const fn miss_target(&self) -> f64 {
        self.miss_target
    }

    /// Bits k - 1 of the tables that look-ups have missed and that are not built yet.
    pub(crate) fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Symbols to send.
    pub(crate) fn symbols(&self, situation: &Situation) -> u16 {
        let deficit = u16::from(situation.deficit);
        let left = situation.rounds_left.min(S::ROUNDS_MAX);
        if left == 0 || deficit == 0 {
            return deficit;
        }
        let planned = situation.rounds_planned.clamp(left, S::ROUNDS_MAX);
        let bin = S::Bins::bin_of(situation.loss);
        let place = place_of(situation.source_symbols);
        let Some(tables) = self.tables[place].get() else {
            return self.stopgap(place, bin, planned, left, situation.deficit);
        };
        tables
            .symbols(bin, planned, left, situation.deficit, situation.draw)
            .unwrap_or(deficit)
    }

    /// Expected symbols of a whole block.
    pub(crate) fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32 {
        let place = place_of(source_symbols);
        let source_symbols = place as u8 + 1;
        let bin = S::Bins::bin_of(loss);
        let (bin_loss, planned) = (S::Bins::upper_end(bin), rounds.clamp(1, S::ROUNDS_MAX));
        match self.tables[place].get() {
            Some(tables) => tables.cost(bin, planned),
            None if self.is_trivial(source_symbols, planned, bin_loss) => None,
            None => {
                let bound =
                    stopgap::expected_symbols(source_symbols, planned, bin_loss, self.miss_target);
                Some(bound as f32)
            }
        }
        // Without a table just the deficit is sent, whose cost follows the loss itself and not its bin.
        .unwrap_or_else(|| {
            let loss = chance::loss_within_bounds(loss);
            chance::retransmit_symbols(f64::from(source_symbols), rounds.max(1), loss) as f32
        })
    }

    #[cold]
    fn stopgap(&self, place: usize, bin: usize, planned: u16, left: u16, deficit: u8) -> u16 {
        let loss = S::Bins::upper_end(bin);
        // Then the tables, once built, say the same: a path on which nothing is to be solved never asks for a solver.
        if self.is_trivial(place as u8 + 1, planned, loss) {
            return u16::from(deficit);
        }
        let bit = 1 << place;
        // Read first: most threads find the bit set, and a shared cache line is read more cheaply than written.
        if self.wanted() & bit == 0 {
            self.wanted.fetch_or(bit, Ordering::Relaxed);
        }
        stopgap::symbols(deficit, left, loss, self.miss_target)
    }

    fn is_trivial(&self, source_symbols: u8, rounds: u16, loss: f64) -> bool {
        chance::retransmit_miss(source_symbols, rounds, loss) <= self.miss_target
    }
}

#[cfg(feature = "solve")]
impl<S: Scheme> Shelf<S> {
    /// The tables of k, if they are built.
    pub(crate) fn tables(&self, source_symbols: u8) -> Option<&BlockTables> {
        self.tables[place_of(source_symbols)].get()
    }

    /// Builds the tables of k; returns how many are new.
    pub(crate) fn build(&self, source_symbols: u8) -> usize {
        let place = place_of(source_symbols);
        let mut built = 0;
        if self.tables[place].get().is_none() {
            let tables = crate::solve::block_tables::<S>(place as u8 + 1, self.miss_target);
            let table_count = tables.table_count();
            // Another thread may have been faster; its tables are the same.
            built = self.tables[place]
                .set(alloc::boxed::Box::new(tables))
                .map_or(0, |()| table_count);
        }
        self.wanted.fetch_and(!(1 << place), Ordering::Relaxed);
        built
    }

    /// Builds what look-ups have missed; returns how many tables are new.
    pub(crate) fn build_wanted(&self) -> usize {
        let wanted = self.wanted();
        let places = (0..SOURCE_SYMBOLS_MAX).filter(|place| wanted >> place & 1 == 1);
        places.map(|place| self.build(place + 1)).sum()
    }

    /// Builds the tables of every k on all processors; returns how many are new.
    pub(crate) fn build_all(&self) -> usize {
        use core::sync::atomic::AtomicU8;
        let threads = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        // The largest k takes longest: it goes first, so that no thread is left alone with it at the end.
        let next = AtomicU8::new(SOURCE_SYMBOLS_MAX);
        let take_next = || {
            next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |k| k.checked_sub(1))
                .ok()
        };
        let work = || {
            core::iter::from_fn(take_next)
                .take_while(|k| *k > 0)
                .map(|k| self.build(k))
                .sum::<usize>()
        };
        std::thread::scope(|scope| {
            let workers: alloc::vec::Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            own + workers
                .into_iter()
                .map(|worker| worker.join().expect("building does not panic"))
                .sum::<usize>()
        })
    }

    /// Tables stored, and the bytes of all of it.
    pub(crate) fn stored(&self) -> (usize, usize) {
        let built = self.tables.iter().filter_map(OnceBox::get);
        built.fold((0, size_of::<Self>()), |(tables, bytes), k| {
            (tables + k.table_count(), bytes + k.stored_bytes())
        })
    }
}

/// Where the tables of k stand. Out of range counts as the nearest in range: a look-up never panics.
fn place_of(source_symbols: u8) -> usize {
    usize::from(source_symbols.clamp(1, SOURCE_SYMBOLS_MAX)) - 1
}

impl<S> fmt::Debug for Shelf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let built = self
            .tables
            .iter()
            .filter(|tables| tables.get().is_some())
            .count();
        let wanted = self.wanted.load(Ordering::Relaxed);
        f.debug_struct("Shelf")
            .field("miss_target", &self.miss_target)
            .field("built", &built)
            .field("wanted", &wanted)
            .finish()
    }
}
