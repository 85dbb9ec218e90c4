//! The tables of one k, packed.
//!
//! A table is named by loss bin and planned rounds N; it has a row of k actions (deficit 1..=k) for each number of rounds left
//! 1..=N. Rows repeat a lot between tables, since an optimal policy hardly depends on the loss (paper, section 7.1): each
//! distinct row is stored once and a table is a list of row numbers.

use alloc::boxed::Box;

/// All stored tables of one k.
#[derive(Debug, PartialEq)]
pub(crate) struct BlockTables {
    pub(crate) source_symbols: u8,
    /// By loss bin.
    pub(crate) bins: Box<[Bin]>,
    /// By table; the tables of a bin follow each other by planned rounds.
    pub(crate) costs: Box<[f32]>,
    /// By table, for mixtures: the greatest draw that follows the dear policy. Empty when no table is a mixture.
    pub(crate) dear_draws: Box<[u32]>,
    /// Row numbers of the dear policies: the tables of a bin follow each other, each by rounds left.
    pub(crate) dear_rows: Box<[u16]>,
    /// Row numbers of the cheap policies, in the same places. Empty when no table is a mixture.
    pub(crate) cheap_rows: Box<[u16]>,
    /// The distinct rows, k bytes each.
    pub(crate) actions: Box<[u8]>,
}

/// Where the tables of one loss bin are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bin {
    /// Row number place of the first table's first row.
    pub(crate) first_row: u32,
    /// Its first table.
    pub(crate) first_table: u16,
    /// Planned rounds 1..=rounds have a table. With more, sending just the deficit meets the target.
    pub(crate) rounds: u16,
}

impl BlockTables {
    /// Symbols to send; `None` where there is no table, which says that just the deficit meets the target.
    pub(crate) fn symbols(
        &self,
        bin: usize,
        planned: u16,
        left: u16,
        deficit: u8,
        draw: u32,
    ) -> Option<u16> {
        let bin = self
            .bins
            .get(bin)
            .filter(|bin| planned >= 1 && planned <= bin.rounds)?;
        let (table, row) = (
            usize::from(planned) - 1,
            usize::from(left.clamp(1, planned)) - 1,
        );
        // Tables of 1, 2, .. planned - 1 rows come before.
        let place = bin.first_row as usize + table * (table + 1) / 2 + row;
        let dear_draw = self.dear_draws.get(usize::from(bin.first_table) + table);
        let is_dear = dear_draw.is_none_or(|greatest| draw <= *greatest);
        let rows = if is_dear {
            &self.dear_rows
        } else {
            &self.cheap_rows
        };
        let deficit = deficit.clamp(1, self.source_symbols);
        let start = usize::from(*rows.get(place)?) * usize::from(self.source_symbols);
        self.actions
            .get(start + usize::from(deficit) - 1)
            .map(|symbols| u16::from(*symbols))
    }

    /// Expected symbols; `None` where there is no table.
    pub(crate) fn cost(&self, bin: usize, planned: u16) -> Option<f32> {
        let bin = self
            .bins
            .get(bin)
            .filter(|bin| planned >= 1 && planned <= bin.rounds)?;
        self.costs
            .get(usize::from(bin.first_table) + usize::from(planned) - 1)
            .copied()
    }

    /// How often the dear policy is followed; `None` where there is no table.
    #[cfg(all(test, feature = "solve"))]
    pub(crate) fn dear_weight(&self, bin: usize, planned: u16) -> Option<f64> {
        let bin = self
            .bins
            .get(bin)
            .filter(|bin| planned >= 1 && planned <= bin.rounds)?;
        let greatest = self.dear_draws[usize::from(bin.first_table) + usize::from(planned) - 1];
        Some((f64::from(greatest) + 1.0) / 4_294_967_296.0)
    }

    /// Tables stored.
    #[cfg(feature = "solve")]
    pub(crate) const fn table_count(&self) -> usize {
        self.costs.len()
    }

    /// Bytes of everything stored, the index and this value itself included.
    #[cfg(feature = "solve")]
    pub(crate) fn stored_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.bins)
            + size_of_val(&*self.costs)
            + size_of_val(&*self.dear_draws)
            + size_of_val(&*self.dear_rows)
            + size_of_val(&*self.cheap_rows)
            + size_of_val(&*self.actions)
    }
}
