//! Measures the tables: how many, how large, how quickly built and read.

use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;
use core::time::Duration;
use std::time::Instant;

use crate::loss::{LossBins, Percents};
use crate::{OutOfRange, Pangolin, Policy, ROUNDS_MAX, SOURCE_SYMBOLS_MAX, Situation};

/// The figures of the paper's section 5.5, measured on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableSummary {
    /// Combinations of loss, rounds and k: 320 000.
    pub combinations: usize,
    /// Tables stored. For the others sending just the deficit meets the target. The paper has 22 968 at 0.1 %.
    pub tables: usize,
    /// Bytes of all of them, index included. The paper has less than 4 MB.
    pub bytes: usize,
    /// Time to solve all of them on all processors.
    pub build_time: Duration,
    /// Nanoseconds of a look-up, median over batches of random keys over all stored tables, with warm caches.
    pub lookup_warm_ns: f64,
    /// The same with the first two cache levels flushed before each batch.
    pub lookup_cold_ns: f64,
}

/// Builds all tables of [`Pangolin`] for one miss target and measures them. Takes seconds.
///
/// # Errors
///
/// [`OutOfRange::MissTarget`] when the target is.
pub fn table_summary(miss_target: f32) -> Result<TableSummary, OutOfRange> {
    let pangolin = Pangolin::new(miss_target)?;
    let begin = Instant::now();
    pangolin.build_all();
    let build_time = begin.elapsed();
    let keys = stored_keys(&pangolin, WARM_BATCH);
    // The first pass warms up.
    let warm = median(
        (0..65)
            .map(|_| batch_ns(&pangolin, &keys))
            .skip(1)
            .collect(),
    );
    let keys = stored_keys(&pangolin, COLD_BATCH * COLD_BATCHES);
    let mut flush = vec![1_u8; FLUSH_BYTES];
    let cold = keys.chunks(COLD_BATCH).map(|keys| {
        // Every cache line is written, in order, and so replaces what the first two levels held.
        flush
            .iter_mut()
            .step_by(64)
            .for_each(|byte| *byte = byte.wrapping_add(1));
        black_box(&mut flush);
        // The keys themselves are the caller's, who has them at hand.
        keys.iter()
            .for_each(|key| _ = black_box(key.loss + f32::from(key.deficit)));
        batch_ns(&pangolin, keys)
    });
    Ok(TableSummary {
        combinations: (Percents::COUNT - 1)
            * usize::from(ROUNDS_MAX)
            * usize::from(SOURCE_SYMBOLS_MAX),
        tables: pangolin.table_count(),
        bytes: pangolin.stored_bytes(),
        build_time,
        lookup_warm_ns: warm,
        lookup_cold_ns: median(cold.collect()),
    })
}

const WARM_BATCH: usize = 8192;
const COLD_BATCH: usize = 64;
const COLD_BATCHES: usize = 65;
/// Above any second-level cache.
const FLUSH_BYTES: usize = 32 << 20;

fn batch_ns(pangolin: &Pangolin, keys: &[Situation]) -> f64 {
    let begin = Instant::now();
    let symbols: u32 = keys
        .iter()
        .map(|key| u32::from(pangolin.decide(black_box(key)).symbols))
        .sum();
    black_box(symbols);
    begin.elapsed().as_nanos() as f64 / keys.len() as f64
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Random keys of tables that are stored, none twice as likely as another.
fn stored_keys(pangolin: &Pangolin, count: usize) -> Vec<Situation> {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    // xorshift64: the keys need to be spread, not unforeseeable.
    let mut below = |end: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 16) % end
    };
    let any_key = || {
        let source_symbols = 1 + below(u64::from(SOURCE_SYMBOLS_MAX)) as u8;
        let rounds_planned = 1 + below(u64::from(ROUNDS_MAX)) as u16;
        let loss = (1 + below(50)) as f32 / 100.0;
        Situation {
            deficit: 1 + below(u64::from(source_symbols)) as u8,
            rounds_left: 1 + below(u64::from(rounds_planned)) as u16,
            ..Situation::first(source_symbols, rounds_planned, loss)
        }
    };
    let is_stored = |key: &Situation| pangolin.has_table(key);
    core::iter::repeat_with(any_key)
        .filter(is_stored)
        .take(count)
        .collect()
}
