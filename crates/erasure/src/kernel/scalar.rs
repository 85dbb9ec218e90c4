//! The twin of all other kernels: plain loops over bytes, for any CPU.
//!
//! The product is free of branches and tables, so that the compiler makes vector code of these loops on its own.

use super::{Pass, Start};
use crate::field::mul;

/// Does the work of `pass`.
pub(super) fn run(pass: &mut Pass<'_, '_>) {
    for (row, out) in pass.rows.iter().zip(pass.outs.iter_mut()) {
        if pass.start == Start::Zero {
            out.fill(0);
        }
        for (&coefficient, source) in row.iter().zip(pass.sources) {
            let bytes = &source[pass.from..][..out.len()];
            if coefficient == 1 {
                out.iter_mut()
                    .zip(bytes)
                    .for_each(|(sum, &byte)| *sum ^= byte);
            } else {
                out.iter_mut()
                    .zip(bytes)
                    .for_each(|(sum, &byte)| *sum ^= mul(byte, coefficient));
            }
        }
    }
}
