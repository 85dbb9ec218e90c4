//! Against `reed-solomon-erasure`.
//!
//! Its field is another (0x11D) and so is its matrix: the repair symbols differ. What must be equal is what both codes
//! rebuild from the same sources and the same losses.

use proptest::prelude::*;
use punctual_erasure::{rebuild, repair_symbols};
use reed_solomon_erasure::galois_8::ReedSolomon;

/// Loses the given symbols (by ESI) and rebuilds the sources with the other crate.
fn theirs(sources: &[Vec<u8>], repairs: usize, lost: &[usize]) -> Vec<u8> {
    let (k, length) = (sources.len(), sources[0].len());
    let code = ReedSolomon::new(k, repairs).unwrap();
    let mut shards = sources.to_vec();
    shards.resize(k + repairs, vec![0; length]);
    code.encode(&mut shards).unwrap();
    let mut shards: Vec<Option<Vec<u8>>> = shards.into_iter().map(Some).collect();
    lost.iter().for_each(|&esi| shards[esi] = None);
    code.reconstruct_data(&mut shards).unwrap();
    shards.into_iter().take(k).flatten().flatten().collect()
}

/// The same with this crate.
fn ours(sources: &[Vec<u8>], repairs: usize, lost: &[usize]) -> Vec<u8> {
    let (k, length) = (sources.len(), sources[0].len());
    let mut block = sources.concat();
    let mut symbols = vec![0; repairs * length];
    repair_symbols(&block, length, 0, &mut symbols).unwrap();
    let mut present = u64::MAX >> (64 - k);
    for &esi in lost.iter().filter(|&&esi| esi < k) {
        block[esi * length..][..length].fill(0);
        present &= !(1 << esi);
    }
    let symbols = symbols.chunks_mut(length).zip(0..);
    let arrived = symbols.filter(|(_, repair)| !lost.contains(&(k + usize::from(*repair))));
    let mut given: Vec<(u8, &mut [u8])> =
        arrived.map(|(symbol, repair)| (repair, symbol)).collect();
    rebuild(&mut block, length, present, &mut given).unwrap();
    block
}

proptest! {
    #[test]
    fn both_codes_rebuild_the_same(
        (sources, repairs, lost) in (1..=64usize, 1..=24usize, 1..=100usize).prop_flat_map(|(k, repairs, length)| {
            let sources = prop::collection::vec(prop::collection::vec(any::<u8>(), length), k);
            let lost = Just((0..k + repairs).collect::<Vec<_>>()).prop_shuffle();
            let lost = (lost, 0..=repairs).prop_map(|(mut lost, count)| {
                lost.truncate(count);
                lost
            });
            (sources, Just(repairs), lost)
        })
    ) {
        let ours = ours(&sources, repairs, &lost);
        prop_assert_eq!(&ours, &theirs(&sources, repairs, &lost));
        prop_assert_eq!(ours, sources.concat());
    }
}
