//! This crate and the two that it is measured against, behind one interface.
//!
//! Fair means: same bytes, same losses; encoders, decoders and buffers are made once and used again; what a code needs
//! anew for each message (this crate: repair symbols, since rebuilding uses them up) is measured with it. The repair
//! symbols of this crate start at number 1: number 0 would be a mere exclusive or.

use punctual_erasure::{rebuild, repair_symbols};
use reed_solomon_erasure::galois_8::ReedSolomon;
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

/// Bytes in a symbol: an Ethernet frame less headers.
pub(crate) const SYMBOL_LEN: usize = 1408;

/// The number of this crate's first repair symbol.
const FIRST: u8 = 1;

/// How many source symbols a block has, and how many are lost and repaired.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// Source symbols.
    pub(crate) k: usize,
    /// Repair symbols made; as many sources are lost, the first ones.
    pub(crate) e: usize,
}

/// What is measured.
pub(crate) const CASES: [Case; 5] = [
    Case { k: 4, e: 1 },
    Case { k: 16, e: 2 },
    Case { k: 64, e: 4 },
    Case { k: 16, e: 16 },
    Case { k: 64, e: 64 },
];

impl Case {
    /// The sources, one after another.
    pub(crate) fn block(self) -> Vec<u8> {
        (0..self.k * SYMBOL_LEN)
            .map(|i| (i * i % 65_521 % 251) as u8)
            .collect()
    }
}

/// A code with its buffers, ready to be run again and again.
pub(crate) trait Contender {
    /// The crate's name.
    fn name(&self) -> &'static str;
    /// Makes the repair symbols of the block.
    fn encode(&mut self);
    /// Rebuilds the lost sources from the others and the repair symbols. Comes after `encode`.
    fn rebuild(&mut self);
    /// The lost sources as rebuilt.
    fn rebuilt(&self) -> Vec<u8>;
}

/// All contenders, this crate first. Each has encoded and rebuilt once, correctly.
pub(crate) fn contenders(case: Case) -> Vec<Box<dyn Contender>> {
    let mut codes: Vec<Box<dyn Contender>> = vec![
        Box::new(Own::new(case)),
        Box::new(Erasure::new(case)),
        Box::new(Simd::new(case)),
    ];
    let lost = &case.block()[..case.e * SYMBOL_LEN];
    for code in &mut codes {
        code.encode();
        code.rebuild();
        assert!(
            code.rebuilt() == lost,
            "{} rebuilt something else",
            code.name()
        );
    }
    codes
}

struct Own {
    case: Case,
    block: Vec<u8>,
    damaged: Vec<u8>,
    repairs: Vec<u8>,
    scratch: Vec<u8>,
}

impl Own {
    fn new(case: Case) -> Self {
        let block = case.block();
        let mut damaged = block.clone();
        damaged[..case.e * SYMBOL_LEN].fill(0);
        let repairs = vec![0; case.e * SYMBOL_LEN];
        Self {
            case,
            block,
            damaged,
            scratch: repairs.clone(),
            repairs,
        }
    }

    fn rebuild_listed<const N: usize>(&mut self) {
        let Case { k, e } = self.case;
        self.scratch.copy_from_slice(&self.repairs);
        let mut symbols = self.scratch.chunks_exact_mut(SYMBOL_LEN);
        let mut given: [(u8, &mut [u8]); N] =
            std::array::from_fn(|i| (FIRST + i as u8, symbols.next().unwrap_or_default()));
        let present = (u64::MAX >> (64 - k)) & !(u64::MAX >> (64 - e));
        rebuild(&mut self.damaged, SYMBOL_LEN, present, &mut given[..e]).unwrap();
    }
}

impl Contender for Own {
    fn name(&self) -> &'static str {
        "punctual-erasure"
    }

    fn encode(&mut self) {
        repair_symbols(&self.block, SYMBOL_LEN, FIRST, &mut self.repairs).unwrap();
    }

    fn rebuild(&mut self) {
        // A caller keeps its list of symbols in an array of about the size that it needs.
        match self.case.e {
            0..=4 => self.rebuild_listed::<4>(),
            _ => self.rebuild_listed::<64>(),
        }
    }

    fn rebuilt(&self) -> Vec<u8> {
        self.damaged[..self.case.e * SYMBOL_LEN].to_vec()
    }
}

struct Erasure {
    case: Case,
    code: ReedSolomon,
    sources: Vec<Vec<u8>>,
    repairs: Vec<Vec<u8>>,
    shards: Vec<(Vec<u8>, bool)>,
}

impl Erasure {
    fn new(case: Case) -> Self {
        let sources: Vec<Vec<u8>> = case
            .block()
            .chunks(SYMBOL_LEN)
            .map(<[u8]>::to_vec)
            .collect();
        let repairs = vec![vec![0; SYMBOL_LEN]; case.e];
        let shards = sources
            .iter()
            .chain(&repairs)
            .map(|shard| (shard.clone(), true))
            .collect();
        let code = ReedSolomon::new(case.k, case.e).unwrap();
        Self {
            case,
            code,
            sources,
            repairs,
            shards,
        }
    }
}

impl Contender for Erasure {
    fn name(&self) -> &'static str {
        if cfg!(feature = "bench-c") {
            "reed-solomon-erasure"
        } else {
            "reed-solomon-erasure (without its C kernels)"
        }
    }

    fn encode(&mut self) {
        self.code
            .encode_sep(&self.sources, &mut self.repairs)
            .unwrap();
    }

    fn rebuild(&mut self) {
        for (shard, repair) in self.shards[self.case.k..].iter_mut().zip(&self.repairs) {
            shard.0.copy_from_slice(repair);
        }
        self.shards[..self.case.e]
            .iter_mut()
            .for_each(|shard| shard.1 = false);
        self.code.reconstruct_data(&mut self.shards).unwrap();
    }

    fn rebuilt(&self) -> Vec<u8> {
        self.shards[..self.case.e]
            .iter()
            .flat_map(|shard| shard.0.clone())
            .collect()
    }
}

struct Simd {
    case: Case,
    block: Vec<u8>,
    encoder: ReedSolomonEncoder,
    decoder: ReedSolomonDecoder,
    repairs: Vec<u8>,
    rebuilt: Vec<u8>,
}

impl Simd {
    fn new(case: Case) -> Self {
        let encoder = ReedSolomonEncoder::new(case.k, case.e, SYMBOL_LEN).unwrap();
        let decoder = ReedSolomonDecoder::new(case.k, case.e, SYMBOL_LEN).unwrap();
        let repairs = vec![0; case.e * SYMBOL_LEN];
        Self {
            case,
            block: case.block(),
            encoder,
            decoder,
            rebuilt: repairs.clone(),
            repairs,
        }
    }
}

impl Contender for Simd {
    fn name(&self) -> &'static str {
        "reed-solomon-simd"
    }

    fn encode(&mut self) {
        for source in self.block.chunks_exact(SYMBOL_LEN) {
            self.encoder.add_original_shard(source).unwrap();
        }
        let result = self.encoder.encode().unwrap();
        for (repair, symbol) in self
            .repairs
            .chunks_exact_mut(SYMBOL_LEN)
            .zip(result.recovery_iter())
        {
            repair.copy_from_slice(symbol);
        }
    }

    fn rebuild(&mut self) {
        for (j, source) in self
            .block
            .chunks_exact(SYMBOL_LEN)
            .enumerate()
            .skip(self.case.e)
        {
            self.decoder.add_original_shard(j, source).unwrap();
        }
        for (i, repair) in self.repairs.chunks_exact(SYMBOL_LEN).enumerate() {
            self.decoder.add_recovery_shard(i, repair).unwrap();
        }
        let result = self.decoder.decode().unwrap();
        for (j, symbol) in result.restored_original_iter() {
            self.rebuilt[j * SYMBOL_LEN..][..SYMBOL_LEN].copy_from_slice(symbol);
        }
    }

    fn rebuilt(&self) -> Vec<u8> {
        self.rebuilt.clone()
    }
}
