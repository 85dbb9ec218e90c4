//! The code once more, as slow and plain as can be. Shares nothing with the crate but the definition of the matrix.

/// The remainder of the carry-less product of `a` and `b` divided by 0x11B.
pub(crate) fn product(a: u8, b: u8) -> u8 {
    let mut wide = 0u16;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            wide ^= u16::from(a) << bit;
        }
    }
    for bit in (8..16).rev() {
        if wide >> bit & 1 == 1 {
            wide ^= 0x11B << (bit - 8);
        }
    }
    wide as u8
}

/// The element whose product with `a` is one, by trying all.
pub(crate) fn inverse(a: u8) -> u8 {
    (1..=255)
        .find(|&b| product(a, b) == 1)
        .expect("every element but zero has one")
}

/// m(i, j) = x(i) * (x(0) + y(j)) / (x(0) * (x(i) + y(j))).
pub(crate) fn coefficient(repair: u8, source: u8) -> u8 {
    let (x, y) = (64 + repair, source);
    product(product(x, 64 ^ y), inverse(product(64, x ^ y)))
}

/// Repair symbol `repair` of sources of equal length.
pub(crate) fn repair_symbol(sources: &[Vec<u8>], repair: u8) -> Vec<u8> {
    let mut out = vec![0; sources[0].len()];
    for (source, j) in sources.iter().zip(0..) {
        let factor = coefficient(repair, j);
        for (sum, &byte) in out.iter_mut().zip(source) {
            *sum ^= product(factor, byte);
        }
    }
    out
}

/// All `k` sources out of `k` symbols, each with its ESI, by Gauss-Jordan elimination; `None` when they depend on
/// each other.
pub(crate) fn solve(k: usize, received: &[(usize, Vec<u8>)]) -> Option<Vec<Vec<u8>>> {
    // A row is the equation of a symbol: k coefficients, then the bytes that they add up to.
    let mut rows: Vec<Vec<u8>> = received
        .iter()
        .map(|(esi, bytes)| {
            let left = (0..k).map(|j| match esi.checked_sub(k) {
                Some(repair) => coefficient(repair as u8, j as u8),
                None => u8::from(*esi == j),
            });
            left.chain(bytes.iter().copied()).collect()
        })
        .collect();
    for column in 0..k {
        let pivot = (column..rows.len()).find(|&row| rows[row][column] != 0)?;
        rows.swap(column, pivot);
        let scale = inverse(rows[column][column]);
        rows[column]
            .iter_mut()
            .for_each(|value| *value = product(*value, scale));
        let pivot = rows[column].clone();
        for (index, row) in rows
            .iter_mut()
            .enumerate()
            .filter(|(index, _)| *index != column)
        {
            let factor = row[column];
            debug_assert!(index < received.len());
            row.iter_mut()
                .zip(&pivot)
                .for_each(|(value, &p)| *value ^= product(factor, p));
        }
    }
    Some(
        rows.into_iter()
            .take(k)
            .map(|row| row[k..].to_vec())
            .collect(),
    )
}
