//! Where a storm's choices come from.

use crate::chance::{Chance, Purpose};

/// A source of choices.
pub trait Choices {
    /// A number below `bound`; 0 when `bound` is 0.
    fn below(&mut self, bound: u64) -> u64;

    /// Whether there is nothing more to choose from.
    fn is_exhausted(&self) -> bool;
}

/// Choices from a seed: without end.
#[derive(Debug)]
pub struct SeedChoices {
    chance: Chance,
    drawn: u64,
}

impl SeedChoices {
    /// The choices of a seed.
    pub const fn new(seed: u64) -> Self {
        Self {
            chance: Chance::new(seed, 0x5702_3000),
            drawn: 0,
        }
    }
}

impl Choices for SeedChoices {
    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        self.chance.below(bound, Purpose::Workload, self.drawn, 0)
    }

    fn is_exhausted(&self) -> bool {
        false
    }
}

/// Choices from a fuzzer's bytes; zeros when they are used up.
#[derive(Debug)]
pub struct ByteChoices<'a> {
    rest: &'a [u8],
}

impl<'a> ByteChoices<'a> {
    /// Choices from `bytes`, from the front.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl Choices for ByteChoices<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        // As many bytes as the bound has, so that small choices cost the fuzzer one byte.
        let width = (bound - 1).ilog2() as usize / 8 + 1;
        let mut value = 0;
        for _ in 0..width {
            let (&byte, rest) = self.rest.split_first().unwrap_or((&0, &[]));
            self.rest = rest;
            value = value << 8 | u64::from(byte);
        }
        value % bound
    }

    fn is_exhausted(&self) -> bool {
        self.rest.is_empty()
    }
}
