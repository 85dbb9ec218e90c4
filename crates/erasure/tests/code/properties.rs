//! Random blocks, losses and orders against the reference.

use proptest::prelude::*;
use punctual_erasure::{rebuild, repair_symbol, repair_symbols};

use crate::reference;

/// A block of `k` sources and which symbols of it arrive.
#[derive(Debug, Clone)]
struct Case {
    sources: Vec<Vec<u8>>,
    /// Source symbols that are lost.
    lost: Vec<usize>,
    /// Repair symbols that arrive, in this order; at least as many.
    repairs: Vec<u8>,
}

impl Case {
    fn block(&self) -> Vec<u8> {
        self.sources.concat()
    }

    fn symbol_len(&self) -> usize {
        self.sources[0].len()
    }

    fn present(&self) -> u64 {
        let all = u64::MAX >> (64 - self.sources.len());
        self.lost.iter().fold(all, |bits, &j| bits & !(1 << j))
    }
}

fn cases(k_max: usize, length_max: usize) -> impl Strategy<Value = Case> {
    (1..=k_max, 1..=length_max).prop_flat_map(|(k, length)| {
        let sources = prop::collection::vec(prop::collection::vec(any::<u8>(), length), k);
        let order = Just((0..k).collect::<Vec<_>>()).prop_shuffle();
        let repairs = Just((0..192).collect::<Vec<u8>>()).prop_shuffle();
        (sources, order, 0..=k, repairs, 0..3usize).prop_map(
            |(sources, mut lost, count, mut repairs, extra)| {
                lost.truncate(count);
                repairs.truncate(count + extra);
                Case {
                    sources,
                    lost,
                    repairs,
                }
            },
        )
    })
}

/// What `rebuild` makes of a case, with the repair symbols of the crate itself.
fn rebuilt(case: &Case) -> Vec<u8> {
    let (block, length) = (case.block(), case.symbol_len());
    let mut symbols: Vec<Vec<u8>> = Vec::new();
    for &repair in &case.repairs {
        let mut symbol = vec![0x77; length];
        repair_symbol(&block, repair, &mut symbol).unwrap();
        symbols.push(symbol);
    }
    let mut damaged = block;
    for &j in &case.lost {
        damaged[j * length..][..length].fill(0x99);
    }
    let mut given: Vec<(u8, &mut [u8])> = case
        .repairs
        .iter()
        .copied()
        .zip(symbols.iter_mut().map(Vec::as_mut_slice))
        .collect();
    rebuild(&mut damaged, length, case.present(), &mut given).unwrap();
    damaged
}

proptest! {
    #[test]
    fn any_k_symbols_rebuild_the_block(case in cases(64, 300)) {
        prop_assert_eq!(rebuilt(&case), case.block());
    }

    /// The reference solves the same equations by elimination, from repair symbols that the crate made.
    #[test]
    fn reference_rebuilds_the_same(case in cases(12, 9)) {
        let (block, k) = (case.block(), case.sources.len());
        let mut received: Vec<(usize, Vec<u8>)> = Vec::new();
        for (j, source) in case.sources.iter().enumerate().filter(|(j, _)| !case.lost.contains(j)) {
            received.push((j, source.clone()));
        }
        for &repair in &case.repairs[..case.lost.len()] {
            let mut symbol = vec![0; case.symbol_len()];
            repair_symbol(&block, repair, &mut symbol).unwrap();
            received.push((k + usize::from(repair), symbol));
        }
        prop_assert_eq!(reference::solve(k, &received), Some(case.sources.clone()));
        prop_assert_eq!(rebuilt(&case), block);
    }

    #[test]
    fn repair_symbols_equal_the_reference(case in cases(64, 40), repair in 0..192u8) {
        let mut symbol = vec![0x55; case.symbol_len()];
        repair_symbol(&case.block(), repair, &mut symbol).unwrap();
        prop_assert_eq!(symbol, reference::repair_symbol(&case.sources, repair));
    }

    #[test]
    fn several_at_once_equal_one_by_one(case in cases(20, 150), first in 0..180u8, count in 0..=12usize) {
        let (block, length) = (case.block(), case.symbol_len());
        let mut together = vec![0x55; count * length];
        repair_symbols(&block, length, first, &mut together).unwrap();
        for (repair, symbol) in (first..).zip(together.chunks(length)) {
            let mut alone = vec![0; length];
            repair_symbol(&block, repair, &mut alone).unwrap();
            prop_assert_eq!(symbol, &alone[..]);
        }
    }

    #[test]
    fn short_last_symbol_counts_as_padded(case in cases(64, 200), repair in 0..189u8, cut in 0..200usize) {
        let (mut block, length) = (case.block(), case.symbol_len());
        let short = block.len() - cut % length;
        block[short..].fill(0);
        let (mut padded, mut cut_off) = (vec![1; 3 * length], vec![2; 3 * length]);
        repair_symbols(&block, length, repair, &mut padded).unwrap();
        repair_symbols(&block[..short], length, repair, &mut cut_off).unwrap();
        prop_assert_eq!(padded, cut_off);
    }

    /// Whatever is passed in, an answer comes back, and an error leaves everything as it was.
    #[test]
    fn nothing_panics(
        mut block in prop::collection::vec(any::<u8>(), 0..300),
        length in 0..40usize,
        present in any::<u64>(),
        shift in 0..64u32,
        mut symbols in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)), 0..70),
        first in any::<u8>(),
        alike in any::<bool>(),
    ) {
        if alike {
            symbols.iter_mut().for_each(|(_, symbol)| symbol.resize(length, 0));
        }
        let (before, symbols_before) = (block.clone(), symbols.clone());
        let mut given: Vec<(u8, &mut [u8])> = symbols.iter_mut().map(|(i, s)| (*i, &mut s[..])).collect();
        if rebuild(&mut block, length, present >> shift, &mut given).is_err() {
            prop_assert_eq!(&block, &before);
            prop_assert_eq!(&symbols, &symbols_before);
        }
        let mut out = block.clone();
        if repair_symbols(&before, length, first, &mut out).is_err() {
            prop_assert_eq!(&out, &block);
        }
        let _ = repair_symbol(&before, first, &mut out[..length.min(block.len())]);
    }
}

/// Every loss pattern of small blocks, with every choice among as many repair symbols as sources.
#[test]
fn every_pattern_of_small_blocks_rebuilds() {
    for k in 1..=5usize {
        let sources: Vec<Vec<u8>> = (0..k)
            .map(|j| vec![j as u8 + 1, 0xF0 ^ j as u8, 7])
            .collect();
        for lost in 0..1u32 << k {
            let choices = (0..1u32 << k).filter(|choice| choice.count_ones() == lost.count_ones());
            for choice in choices {
                let lost = (0..k).filter(|j| lost >> j & 1 == 1).collect();
                let repairs = (0..k as u8).filter(|i| choice >> i & 1 == 1).collect();
                let case = Case {
                    sources: sources.clone(),
                    lost,
                    repairs,
                };
                assert_eq!(rebuilt(&case), case.block(), "{case:?}");
            }
        }
    }
}

#[test]
fn with_one_source_every_repair_symbol_is_a_copy() {
    let source: Vec<u8> = (0..=255).collect();
    for repair in 0..192 {
        let mut copy = [0; 256];
        repair_symbol(&source, repair, &mut copy).unwrap();
        assert_eq!(&copy[..], &source[..]);
    }
}

#[test]
fn repair_symbol_zero_is_the_exclusive_or() {
    let block: Vec<u8> = (0..64 * 33).map(|i| (i * i % 251) as u8).collect();
    let mut repair = [0; 33];
    repair_symbol(&block, 0, &mut repair).unwrap();
    for (at, &byte) in repair.iter().enumerate() {
        assert_eq!(
            byte,
            block.iter().skip(at).step_by(33).fold(0, |sum, &b| sum ^ b)
        );
    }
}
