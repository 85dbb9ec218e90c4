//! The coefficients of the code, and the inverse of the part of the matrix that a loss leaves behind.
//!
//! The crate's documentation defines the matrix; `ROWS` holds it as a table (12 KiB, a row is one cache line).

use crate::field::{ORDER, exp, inverse_table, log, mul};
use crate::{REPAIR_SYMBOLS_MAX, SOURCE_SYMBOLS_MAX};

/// x(0), the first point that no source symbol uses.
const FIRST_REPAIR_POINT: u8 = SOURCE_SYMBOLS_MAX as u8;

/// m(i, j) for repair symbol i (row) and source symbol j (column).
static ROWS: [Row; REPAIR_SYMBOLS_MAX] = rows();

/// The coefficients of one sum, one for each source.
pub(crate) type Row = [u8; SOURCE_SYMBOLS_MAX];

/// The coefficients of repair symbol `repair`, which is below [`REPAIR_SYMBOLS_MAX`].
pub(crate) fn row(repair: u8) -> &'static Row {
    &ROWS[usize::from(repair)]
}

/// x(i): the point of a repair symbol. It never is zero, nor the point of a source symbol.
const fn repair_point(repair: u8) -> u8 {
    FIRST_REPAIR_POINT + repair
}

const fn rows() -> [Row; REPAIR_SYMBOLS_MAX] {
    let inverse = inverse_table();
    let mut rows = [[0; SOURCE_SYMBOLS_MAX]; REPAIR_SYMBOLS_MAX];
    let mut i = 0;
    while i < REPAIR_SYMBOLS_MAX {
        let x = repair_point(i as u8);
        let row_scale = mul(x, inverse[FIRST_REPAIR_POINT as usize]);
        let mut j = 0;
        while j < SOURCE_SYMBOLS_MAX {
            let y = j as u8;
            let cauchy = inverse[(x ^ y) as usize];
            let column_scale = FIRST_REPAIR_POINT ^ y;
            rows[i][j] = mul(row_scale, mul(cauchy, column_scale));
            j += 1;
        }
        i += 1;
    }
    rows
}

/// The inverse of the submatrix of some rows (repair symbols in hand) and as many columns (source symbols missing).
///
/// In closed form, so that e lost symbols cost O(e^2) and not O(e^3). For the points x of the rows and y of the columns
/// the inverse of the unscaled Cauchy matrix is, at column j and row r (minus is plus in this field)
///
/// ```text
///  prod_s (x(s) + y(j))         prod_l (x(r) + y(l))             1
/// ------------------------- * ------------------------- * ---------------
///  prod_{l!=j} (y(j) + y(l))   prod_{s!=r} (x(r) + x(s))    x(r) + y(j)
/// ```
///
/// The first two factors are kept as logarithms, with the scales of the code's matrix taken off.
pub(crate) struct Inverse {
    /// Of each column, 0 to 254.
    column_logs: [u8; SOURCE_SYMBOLS_MAX],
    /// Of each row, 0 to 254.
    row_logs: [u8; SOURCE_SYMBOLS_MAX],
    /// x of each row.
    row_points: [u8; SOURCE_SYMBOLS_MAX],
    /// y of each column.
    column_points: [u8; SOURCE_SYMBOLS_MAX],
    size: usize,
}

impl Inverse {
    /// For distinct `repairs` and as many distinct source symbols `missing`, at most 64 of each.
    pub(crate) fn new(
        repairs: impl Iterator<Item = u8>,
        missing: impl Iterator<Item = u8>,
    ) -> Self {
        let mut inverse = Self {
            column_logs: [0; SOURCE_SYMBOLS_MAX],
            row_logs: [0; SOURCE_SYMBOLS_MAX],
            row_points: [0; SOURCE_SYMBOLS_MAX],
            column_points: [0; SOURCE_SYMBOLS_MAX],
            size: 0,
        };
        for (slot, (repair, source)) in repairs.zip(missing).enumerate() {
            inverse.row_points[slot] = repair_point(repair);
            inverse.column_points[slot] = source;
            inverse.size = slot + 1;
        }
        let (rows, columns) = (
            &inverse.row_points[..inverse.size],
            &inverse.column_points[..inverse.size],
        );
        let first_log = i32::from(log(FIRST_REPAIR_POINT));
        for (slot, (&x, &y)) in rows.iter().zip(columns).enumerate() {
            // Taking off the scales: the column's is x(0) + y, the row's is x / x(0).
            let column = log_of_quotient(y, rows, columns) - i32::from(log(FIRST_REPAIR_POINT ^ y));
            let row = log_of_quotient(x, columns, rows) - i32::from(log(x)) + first_log;
            inverse.column_logs[slot] = column.rem_euclid(i32::from(ORDER)) as u8;
            inverse.row_logs[slot] = row.rem_euclid(i32::from(ORDER)) as u8;
        }
        inverse
    }

    /// The coefficients that make missing source symbol number `slot` out of what the repair symbols still hold.
    pub(crate) fn row(&self, slot: usize) -> Row {
        let y = self.column_points[slot];
        let column_log = u16::from(self.column_logs[slot]);
        let mut row = [0; SOURCE_SYMBOLS_MAX];
        let factors = self.row_points.iter().zip(&self.row_logs);
        for (coefficient, (&x, &row_log)) in row.iter_mut().zip(factors).take(self.size) {
            *coefficient = exp(column_log + u16::from(row_log) + ORDER - log(x ^ y));
        }
        row
    }
}

/// Logarithm of the product of (point + p) over `others`, divided by that over the rest of `own`; not reduced.
fn log_of_quotient(point: u8, others: &[u8], own: &[u8]) -> i32 {
    let mut sum = 0;
    for (&other, &sibling) in others.iter().zip(own) {
        sum += i32::from(log(point ^ other));
        if sibling != point {
            sum -= i32::from(log(point ^ sibling));
        }
    }
    sum
}

#[cfg(test)]
mod tests;
