//! All kernels that this CPU has against the scalar one.

use std::vec::Vec;
use std::{format, vec};

use super::*;
use crate::encode::encode;
use crate::rebuild::decode;

/// Reproducible noise (the multiplier is Knuth's, for MMIX).
struct Noise(u64);

impl Noise {
    fn byte(&mut self) -> u8 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 56) as u8
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    fn below(&mut self, bound: usize) -> usize {
        (usize::from(self.byte()) << 8 | usize::from(self.byte())) % bound
    }
}

/// Bytes between the outputs, which no kernel may touch.
const GAP: usize = 70;

/// Runs one pass into buffers that lie `GAP` apart, and returns everything, gaps included.
fn run(
    kernel: Kernel,
    rows: &[&Row],
    sources: &[&[u8]],
    from: usize,
    length: usize,
    start: Start,
) -> Vec<u8> {
    let mut memory = vec![0xA5; rows.len() * (length + GAP) + GAP];
    let (_, body) = memory.split_at_mut(GAP);
    let mut outs: Vec<&mut [u8]> = body
        .chunks_exact_mut(length + GAP)
        .map(|chunk| &mut chunk[..length])
        .collect();
    kernel.run(&mut Pass {
        rows,
        sources,
        from,
        outs: &mut outs,
        start,
    });
    memory
}

fn compare(noise: &mut Noise, count: usize, height: usize, length: usize, from: usize) {
    let bytes: Vec<Vec<u8>> = (0..count).map(|_| noise.bytes(from + length)).collect();
    let sources: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let ones = noise.below(4) == 0;
    let rows: Vec<Row> = (0..height)
        .map(|_| core::array::from_fn(|_| if ones { 1 } else { noise.byte() }))
        .collect();
    let rows: Vec<&Row> = rows.iter().collect();
    for start in [Start::Zero, Start::Output] {
        let expected = run(Kernel(Path::Scalar), &rows, &sources, from, length, start);
        for kernel in Kernel::available() {
            let found = run(kernel, &rows, &sources, from, length, start);
            let what = format!(
                "{} {count} sources, {height} rows, {length} from {from}",
                kernel.name()
            );
            assert_eq!(found, expected, "{what}");
        }
    }
}

#[test]
fn kernels_agree_on_every_short_length() {
    let mut noise = Noise(1);
    for length in 0..=330 {
        let (count, from) = (noise.below(9), noise.below(70));
        for height in 1..=ROWS_MAX {
            compare(&mut noise, count, height, length, from);
        }
    }
}

#[test]
fn kernels_agree_on_random_shapes() {
    let mut noise = Noise(2);
    for _ in 0..300 {
        let (count, height) = (noise.below(65), 1 + noise.below(ROWS_MAX));
        let (length, from) = (noise.below(3000), noise.below(200));
        compare(&mut noise, count, height, length, from);
    }
}

/// Every product of two bytes, in every kernel, against the field's own arithmetic.
#[test]
fn kernels_multiply_every_pair() {
    let bytes: Vec<u8> = (0..=255).collect();
    for kernel in Kernel::available() {
        for coefficient in 0..=255u8 {
            let row: Row = [coefficient; 64];
            let mut products = [0; 256];
            let outs: &mut [&mut [u8]] = &mut [&mut products];
            kernel.run(&mut Pass {
                rows: &[&row],
                sources: &[&bytes],
                from: 0,
                outs,
                start: Start::Zero,
            });
            for (&byte, product) in bytes.iter().zip(products) {
                assert_eq!(
                    product,
                    crate::field::mul(byte, coefficient),
                    "{}",
                    kernel.name()
                );
            }
        }
    }
}

/// Repair symbols made by one kernel, with which every other rebuilds.
#[test]
fn kernels_rebuild_what_others_encoded() {
    let mut noise = Noise(3);
    for maker in Kernel::available() {
        for solver in Kernel::available() {
            let (count, length) = (1 + noise.below(64), 1 + noise.below(200));
            let lost = 1 + noise.below(count);
            let block = noise.bytes(count * length);
            let mut repairs = vec![0; lost * length];
            encode(maker, &block, length, 7, &mut repairs).unwrap();
            let mut damaged = block.clone();
            damaged[..lost * length].fill(0xEE);
            let present = (u64::MAX >> (64 - count)) & !(u64::MAX >> (64 - lost));
            let mut given: Vec<(u8, &mut [u8])> = (7..).zip(repairs.chunks_mut(length)).collect();
            decode(solver, &mut damaged, length, present, &mut given).unwrap();
            assert!(damaged == block, "{} then {}", maker.name(), solver.name());
        }
    }
}

#[test]
fn chosen_kernel_is_the_best_one_and_stays() {
    let best = Kernel::available().next().unwrap();
    assert_eq!(Kernel::get(), best);
    assert_eq!(Kernel::get().name(), crate::kernel_name());
    assert_eq!(Kernel::available().last().unwrap().name(), "scalar");
}
