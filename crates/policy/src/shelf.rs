//! The tables of one policy and one miss target, by k, each built when it is first wanted.

use core::fmt;
use core::marker::PhantomData;

use crate::by_k::ByK;
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
    tables: ByK<BlockTables>,
    scheme: PhantomData<S>,
}

impl<S: Scheme> Shelf<S> {
    pub(crate) fn new(miss_target: f64) -> Self {
        debug_assert!(
            miss_target >= f64::from(MISS_TARGET_MIN) && miss_target < 1.0,
            "checked by the caller"
        );
        Self {
            miss_target,
            tables: ByK::new(),
            scheme: PhantomData,
        }
    }

    pub(crate) const fn miss_target(&self) -> f64 {
        self.miss_target
    }

    /// Bits k - 1 of the tables that look-ups have missed and that are not built yet.
    pub(crate) fn wanted(&self) -> u64 {
        self.tables.wanted()
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
        let Some(tables) = self.tables.get(situation.source_symbols) else {
            return self.stopgap(situation, bin, planned, left);
        };
        tables
            .symbols(bin, planned, left, situation.deficit, situation.draw)
            .unwrap_or(deficit)
    }

    /// Expected symbols of a whole block.
    pub(crate) fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32 {
        let source_symbols = source_symbols.clamp(1, SOURCE_SYMBOLS_MAX);
        let bin = S::Bins::bin_of(loss);
        let (bin_loss, planned) = (S::Bins::upper_end(bin), rounds.clamp(1, S::ROUNDS_MAX));
        match self.tables.get(source_symbols) {
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
    fn stopgap(&self, situation: &Situation, bin: usize, planned: u16, left: u16) -> u16 {
        let (deficit, loss) = (situation.deficit, S::Bins::upper_end(bin));
        let source_symbols = situation.source_symbols.clamp(1, SOURCE_SYMBOLS_MAX);
        // Then the tables, once built, say the same: a path on which nothing is to be solved never asks for a solver.
        if self.is_trivial(source_symbols, planned, loss) {
            return u16::from(deficit);
        }
        self.tables.want(source_symbols);
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
        self.tables.get(source_symbols)
    }

    /// Builds the tables of k; returns how many are new.
    pub(crate) fn build(&self, source_symbols: u8) -> usize {
        let make = |k| crate::solve::block_tables::<S>(k, self.miss_target);
        let new = self.tables.build(source_symbols, make);
        new.map_or(0, BlockTables::table_count)
    }

    /// Builds what look-ups have missed; returns how many tables are new.
    pub(crate) fn build_wanted(&self) -> usize {
        self.tables.wanted_k().map(|k| self.build(k)).sum()
    }

    /// Builds the tables of every k on all processors; returns how many are new.
    pub(crate) fn build_all(&self) -> usize {
        use core::sync::atomic::{AtomicU8, Ordering};
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
        self.tables
            .built()
            .fold((0, size_of::<Self>()), |(tables, bytes), k| {
                (tables + k.table_count(), bytes + k.stored_bytes())
            })
    }
}

impl<S> fmt::Debug for Shelf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (built, wanted) = (self.tables.built().count(), self.tables.wanted());
        f.debug_struct("Shelf")
            .field("miss_target", &self.miss_target)
            .field("built", &built)
            .field("wanted", &wanted)
            .finish()
    }
}
