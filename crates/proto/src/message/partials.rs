//! Blocks half received, found by their number in O(log n): a peer may have thousands of them, and many symbols in a packet.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::{Index, IndexMut, RangeInclusive};

use crate::limits::SOURCE_SYMBOLS_MAX;
use crate::pool::{self, Pool};
use crate::wire::Symbol;

/// A block of which some symbols have arrived.
pub(super) struct Partial {
    pub(super) number: u64,
    source_symbols: u8,
    symbol_len: usize,
    /// Source symbols present.
    present: u64,
    /// In the order of their arrival: what is there of a block takes room, not what the first of its symbols says it will be.
    symbols: Vec<u8>,
    /// Of the symbols, in their order.
    esis: Esis,
}

/// Encoding symbol IDs.
struct Esis {
    ids: [u8; SOURCE_SYMBOLS_MAX],
    count: u8,
}

impl Esis {
    const NONE: Self = Self {
        ids: [0; SOURCE_SYMBOLS_MAX],
        count: 0,
    };

    fn all(&self) -> &[u8] {
        &self.ids[..usize::from(self.count)]
    }

    /// There are fewer than source symbols: with so many the block is complete.
    fn push(&mut self, esi: u8) {
        if let Some(id) = self.ids.get_mut(usize::from(self.count)) {
            *id = esi;
            self.count += 1;
        }
    }
}

/// What a block that has begun costs besides its symbols.
pub(super) const PARTIAL_COST: usize = size_of::<Partial>() + size_of::<(u64, u16)>();

impl Partial {
    /// Bytes that the block of a symbol counts: as many as it will have when it is complete, and about what it takes now. (Counted by what they say alone, blocks of two
    /// bytes let a peer have some hundred times as much held as was counted.)
    pub(super) fn cost_of(symbol: &Symbol<'_>) -> usize {
        Self::cost(symbol.source_symbols, symbol.data.len())
    }

    fn cost(source_symbols: u8, symbol_len: usize) -> usize {
        let bytes = usize::from(source_symbols) * symbol_len;
        bytes.max(pool::LEAST) + PARTIAL_COST
    }

    pub(super) fn new(number: u64, symbol: &Symbol<'_>, pool: &mut Pool) -> Self {
        Self {
            number,
            source_symbols: symbol.source_symbols,
            symbol_len: symbol.data.len(),
            present: 0,
            symbols: pool.take(2 * symbol.data.len()),
            esis: Esis::NONE,
        }
    }

    pub(super) fn received(&self) -> usize {
        self.esis.count.into()
    }

    /// Bytes that it will have when it is complete.
    fn bytes(&self) -> usize {
        usize::from(self.source_symbols) * self.symbol_len
    }

    pub(super) fn compare(&self, symbol: &Symbol<'_>) -> Cuts {
        let more = symbol.source_symbols.cmp(&self.source_symbols);
        match symbol.data.len().cmp(&self.symbol_len) {
            Ordering::Equal if more == Ordering::Equal => Cuts::Same,
            Ordering::Less if more != Ordering::Less => Cuts::New,
            Ordering::Greater if more != Ordering::Greater => Cuts::Old,
            _ => Cuts::Contradict,
        }
    }

    /// Keeps a symbol; `false` when it was there.
    pub(super) fn add(&mut self, symbol: &Symbol<'_>, pool: &mut Pool) -> bool {
        if symbol.esi < self.source_symbols {
            if self.present & (1 << symbol.esi) != 0 {
                return false;
            }
            self.present |= 1 << symbol.esi;
        } else if self.esis.all().contains(&symbol.esi) {
            return false;
        }
        if self.symbols.len() + self.symbol_len > self.symbols.capacity() {
            let more = (2 * self.symbols.capacity()).min(self.bytes());
            let mut symbols = pool.take(more);
            symbols.extend_from_slice(&self.symbols);
            pool.give(core::mem::replace(&mut self.symbols, symbols));
        }
        self.esis.push(symbol.esi);
        self.symbols.extend_from_slice(symbol.data);
        true
    }

    /// It will not be completed.
    pub(super) fn recycle(self, pool: &mut Pool) {
        pool.give(self.symbols);
    }

    /// The block, of k symbols.
    pub(super) fn rebuild(mut self, pool: &mut Pool) -> Vec<u8> {
        if (self.esis.all().iter().copied()).eq(0..self.source_symbols) {
            return self.symbols;
        }
        let mut block = pool.take(self.bytes());
        block.resize(self.bytes(), 0);
        let mut repairs: [(u8, &mut [u8]); SOURCE_SYMBOLS_MAX] =
            core::array::from_fn(|_| (0, &mut [][..]));
        let mut count = 0;
        let chunks = self.symbols.chunks_exact_mut(self.symbol_len);
        for (&esi, chunk) in self.esis.all().iter().zip(chunks) {
            match esi.checked_sub(self.source_symbols) {
                None => {
                    let start = usize::from(esi) * self.symbol_len;
                    block[start..start + self.symbol_len].copy_from_slice(chunk);
                }
                Some(repair) => {
                    repairs[count] = (repair, chunk);
                    count += 1;
                }
            }
        }
        if count > 0 {
            let (len, present) = (self.symbol_len, self.present);
            punctual_erasure::rebuild(&mut block, len, present, &mut repairs[..count])
                .expect("k distinct symbols of equal length are there");
        }
        pool.give(self.symbols);
        block
    }
}

/// How a symbol's cut of its block stands to that of the symbols that are there.
pub(super) enum Cuts {
    Same,
    /// Into shorter symbols, since the path has become narrower: what came of the other one is of no use.
    New,
    /// That which came before it.
    Old,
    Contradict,
}

/// All of a session.
#[derive(Default)]
pub(super) struct Partials {
    all: Vec<Partial>,
    /// Where each is, by number.
    places: Vec<(u64, u16)>,
    /// Bytes that they count.
    bytes: usize,
}

impl Partials {
    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn place(&self, number: u64) -> Result<usize, usize> {
        // The newest is asked for mostly.
        match self.places.last() {
            Some(&(last, _)) if last > number => {
                (self.places).binary_search_by_key(&number, |place| place.0)
            }
            Some(&(last, _)) if last == number => Ok(self.places.len() - 1),
            _ => Err(self.places.len()),
        }
    }

    /// Where a block is, until one is removed.
    pub(super) fn find(&self, number: u64) -> Option<usize> {
        let (_, at) = self.places[self.place(number).ok()?];
        Some(at.into())
    }

    /// One that is not there yet: where it is then. There are at most [`PARTIAL_BLOCKS_MAX`](crate::limits::PARTIAL_BLOCKS_MAX).
    pub(super) fn add(&mut self, partial: Partial) -> usize {
        if let Err(place) = self.place(partial.number) {
            self.places
                .insert(place, (partial.number, self.all.len() as u16));
        }
        self.bytes += Partial::cost(partial.source_symbols, partial.symbol_len);
        self.all.push(partial);
        self.all.len() - 1
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Partial> {
        let place = self.place(number).ok()?;
        let (_, at) = self.places.remove(place);
        let partial = self.all.swap_remove(at.into());
        self.bytes -= Partial::cost(partial.source_symbols, partial.symbol_len);
        if let Some(moved) = self.all.get(usize::from(at)).map(|moved| moved.number)
            && let Ok(place) = self.place(moved)
        {
            self.places[place].1 = at;
        }
        Some(partial)
    }

    /// The first of these numbers that there is.
    pub(super) fn first_of(&self, numbers: &RangeInclusive<u64>) -> Option<u64> {
        let place = self.place(*numbers.start()).unwrap_or_else(|place| place);
        let (number, _) = *self.places.get(place)?;
        (number <= *numbers.end()).then_some(number)
    }

    /// Bytes that they take now.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        let of = |it: &Partial| it.symbols.capacity() + PARTIAL_COST;
        self.all.iter().map(of).sum()
    }

    pub(super) fn trim(&mut self) {
        self.all.shrink_to_fit();
        self.places.shrink_to_fit();
    }
}

impl Index<usize> for Partials {
    type Output = Partial;

    fn index(&self, at: usize) -> &Partial {
        &self.all[at]
    }
}

impl IndexMut<usize> for Partials {
    fn index_mut(&mut self, at: usize) -> &mut Partial {
        &mut self.all[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Random operations, beside a map.
        #[test]
        fn what_is_kept_is_found(operations in prop::collection::vec((0u8..4, 0u64..40, 0u64..10), 0..300)) {
            let (mut partials, mut model, mut pool) = (Partials::default(), BTreeMap::new(), Pool::new(1000));
            for (operation, number, span) in operations {
                match operation {
                    0 => {
                        let found = partials.remove(number).map(|it| it.number);
                        prop_assert_eq!(found, model.remove(&number).map(|_| number));
                    }
                    1 => {
                        let numbers = number..=number + span;
                        let first = model.range(numbers.clone()).next().map(|(number, _)| *number);
                        prop_assert_eq!(partials.first_of(&numbers), first);
                    }
                    _ if model.contains_key(&number) => {
                        let found = partials.find(number).map(|at| partials[at].source_symbols);
                        prop_assert_eq!(found, model.get(&number).copied());
                    }
                    _ => {
                        prop_assert!(partials.find(number).is_none());
                        let source_symbols = 2 + span as u8;
                        let symbol = Symbol { source_symbols, truncated_block: number as u16, esi: 0, data: &[0; 10] };
                        partials.add(Partial::new(number, &symbol, &mut pool));
                        model.insert(number, source_symbols);
                    }
                }
                prop_assert_eq!(partials.len(), model.len());
                let of = |k: &u8| (usize::from(*k) * 10).max(256) + PARTIAL_COST;
                let bytes: usize = model.values().map(of).sum();
                prop_assert_eq!(partials.bytes(), bytes);
                prop_assert!(partials.capacity() <= bytes);
            }
        }
    }
}
