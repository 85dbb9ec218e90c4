//! The bounds of every table and loop of this crate.

use core::time::Duration;

/// Most source symbols that one block may have.
pub const SOURCE_SYMBOLS_MAX: u8 = 64;

/// Most rounds that a table is made for; the paper's 100 steps of 10 ms in a second. More are served as this many.
pub const ROUNDS_MAX: u16 = 100;

/// Strictest miss target that tables are made for. Nobody measures a thousand million messages on one path; below, sums of
/// probabilities close to 1 would also begin to lose the digits that matter.
pub const MISS_TARGET_MIN: f32 = 1e-9;

/// Most symbols in one flight of a table: symbol indices are bytes, and so are the actions stored.
pub const FLIGHT_MAX: u16 = 255;

/// Greatest loss that tables are made for. Above, the tables of this loss serve, and the target is missed.
pub const LOSS_MAX: f64 = 0.5;

/// Miss targets for which a [`crate::Library`] keeps tables of their own.
pub const MISS_TARGETS_MAX: usize = 16;

/// Between an acknowledgement and its repetition, where they get lost: another moment, and before its peer takes it for lost.
pub const ANSWERS_APART: Duration = Duration::from_millis(2);
