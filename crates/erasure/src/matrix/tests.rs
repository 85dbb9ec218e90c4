//! The matrix against its definition, and every submatrix of it against its inverse.

use std::collections::BTreeSet;
use std::vec::Vec;

use super::*;

fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        0
    } else {
        exp(log(a) + log(b))
    }
}

/// Whether the inverse in closed form times the submatrix is the identity, which also shows that it can be inverted.
fn is_inverted(repairs: &[u8], missing: &[u8]) -> bool {
    let inverse = Inverse::new(repairs.iter().copied(), missing.iter().copied());
    (0..missing.len()).all(|slot| {
        let solution = inverse.row(slot);
        missing.iter().enumerate().all(|(other, &column)| {
            let terms = repairs.iter().zip(solution);
            let sum = terms.fold(0, |sum, (&repair, coefficient)| {
                sum ^ product(coefficient, row(repair)[usize::from(column)])
            });
            sum == u8::from(slot == other)
        })
    })
}

/// The elements whose bit is set.
fn subset(bits: u32) -> Vec<u8> {
    (0..32).filter(|i| bits >> i & 1 == 1).collect()
}

#[test]
fn first_row_and_first_column_are_ones() {
    assert!(row(0).iter().all(|&coefficient| coefficient == 1));
    assert!((0..192).all(|repair| row(repair)[0] == 1));
}

/// m(i, j) * x(0) * (x(i) + y(j)) = x(i) * (x(0) + y(j)), as the crate's documentation has it.
#[test]
fn coefficients_are_as_defined() {
    for i in 0..192u8 {
        for j in 0..64u8 {
            let left = mul(row(i)[usize::from(j)], mul(64, (64 + i) ^ j));
            assert_eq!(left, mul(64 + i, 64 ^ j), "row {i}, column {j}");
        }
    }
}

/// All 48,619 square submatrices of the first 9 rows and columns.
#[test]
fn every_small_submatrix_is_inverted() {
    for rows in 1..1u32 << 9 {
        for columns in (1..1u32 << 9).filter(|columns| columns.count_ones() == rows.count_ones()) {
            assert!(
                is_inverted(&subset(rows), &subset(columns)),
                "{rows:#b} {columns:#b}"
            );
        }
    }
}

/// All 37 million of two rows and two columns, by their determinants.
#[test]
fn every_pair_of_rows_and_columns_is_independent() {
    for r in 0..192u8 {
        for s in 0..r {
            // a/b = c/d would be a zero determinant: no ratio may occur twice.
            let ratios = row(r)
                .iter()
                .zip(row(s))
                .map(|(&a, &b)| (log(a) + ORDER - log(b)) % ORDER);
            let distinct: BTreeSet<u16> = ratios.collect();
            assert_eq!(distinct.len(), 64, "rows {r} and {s}");
        }
    }
}

#[test]
fn random_large_submatrices_are_inverted() {
    let mut state = 1u64;
    let mut below = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for round in 0..200 {
        let size = if round < 20 { 64 } else { 10 + below(55) };
        let mut rows: Vec<u8> = (0..192).collect();
        let mut columns: Vec<u8> = (0..64).collect();
        for slot in 0..size {
            rows.swap(slot, slot + below(192 - slot));
            columns.swap(slot, slot + below(64 - slot));
        }
        assert!(
            is_inverted(&rows[..size], &columns[..size]),
            "round {round}"
        );
    }
}
