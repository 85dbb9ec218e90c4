//! Last flights in bursts that were found before: a table that is built on demand, since its axes are too many to build it ahead.
//!
//! To find one takes microseconds (`spacing.rs`), to look it up some nanoseconds. What is found is that of the nearest points of a grid, up to sixteen an octave,
//! drawn by the message so that they are right on average, as the losses of the other tables are; so it is the same whether it was found before or not.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use super::spacing::Task;
use crate::limits::SOURCE_SYMBOLS_MAX;
use crate::{Action, Burst};

/// Rows of flights that are remembered, and how many share a row: a new one is the first of its row, and the last is forgotten.
const ROWS: usize = 1 << ROW_BITS;
const ROW_BITS: u32 = 11;
const IN_A_ROW: usize = 4;
/// Bits of a key, and those of it that are kept with a flight: all that its row does not say.
const KEY_BITS: u32 = 57;
const TAG_BITS: u32 = KEY_BITS - ROW_BITS;
/// Odd, so that keys stay apart (the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Mantissa bits dropped for sixteen points an octave, for eight and for four.
const SIXTEENTHS: u32 = 19;
const EIGHTHS: u32 = 20;
const QUARTERS: u32 = 21;
/// Bits of a point of an axis.
const AXIS_BITS: u32 = 9;
const POINTS: u32 = 1 << AXIS_BITS;
/// Correlations: so many points from 0 to 1.
const CORRELATIONS: f32 = 64.0;
/// Bursts that the slack has room for, at most: more than the moments of all flights are apart make no difference.
const BURSTS_MAX: f32 = 4096.0;

/// Flights, each with the tag of its key in one word. 64 KB.
pub(super) struct Found {
    rows: [[AtomicU64; IN_A_ROW]; ROWS],
}

/// Those of the process: constants of nature, as the tables are.
pub(super) static FOUND: Found = Found::new();

impl Found {
    const fn new() -> Self {
        Self {
            rows: [const { [const { AtomicU64::new(0) }; IN_A_ROW] }; ROWS],
        }
    }

    /// The flight with the least symbols and misses, by the points around the task. O(1) if it was found before.
    pub(super) fn best(&self, task: &Task, draw: u32) -> Action {
        let point = Point::around(task, draw);
        let spread = point.key().wrapping_mul(SPREAD) & ((1 << KEY_BITS) - 1);
        let tag = spread & ((1 << TAG_BITS) - 1);
        let Some(row) = self.rows.get((spread >> TAG_BITS) as usize) else {
            return point.find().of(task);
        };
        let known = row.iter().map(|flight| flight.load(Relaxed));
        // A flight has symbols: what is 0 was never written.
        let mut same = known.filter(|known| *known != 0 && known >> Flight::BITS == tag);
        if let Some(known) = same.next() {
            return Flight::unpack(known).of(task);
        }
        let flight = point.find();
        // Whoever else writes here meanwhile: a word is a whole flight, and only to be found again may be lost.
        let mut moved = tag << Flight::BITS | flight.pack();
        for place in row {
            moved = place.swap(moved, Relaxed);
        }
        flight.of(task)
    }
}

/// A flight, whatever the time is that it is spread over.
#[derive(Clone, Copy)]
struct Flight {
    symbols: u8,
    moments: u8,
    /// All that is missing leaves together.
    by_all: bool,
}

impl Flight {
    const BITS: u32 = 17;

    const fn pack(self) -> u64 {
        self.symbols as u64 | (self.moments as u64) << 8 | (self.by_all as u64) << 16
    }

    const fn unpack(bits: u64) -> Self {
        Self {
            symbols: bits as u8,
            moments: (bits >> 8) as u8,
            by_all: bits >> 16 & 1 == 1,
        }
    }

    fn of(self, task: &Task) -> Action {
        Action {
            symbols: self.symbols.into(),
            together: if self.by_all { task.deficit.into() } else { 1 },
            spacing: task.spacing_of(self.moments.into()),
            look_again: None,
        }
    }
}

/// A point of the grid; each axis from 0.
struct Point {
    deficit: u8,
    cap: u8,
    loss: u32,
    first_bad: u32,
    correlation: u32,
    /// Bursts that the slack has room for.
    bursts: u32,
    price: u32,
}

/// The axes: the logarithm to base 2 of the first point, and the bits that are dropped.
const LOSS: (i32, u32) = (-15, SIXTEENTHS);
const FIRST_BAD: (i32, u32) = (-31, EIGHTHS);
const BURSTS: (i32, u32) = (-12, QUARTERS);
const PRICE: (i32, u32) = (-3, SIXTEENTHS);

impl Point {
    fn around(task: &Task, draw: u32) -> Self {
        let slack = task.slack.as_secs_f32();
        let bursts = (slack / task.burst.lasts.as_secs_f32().max(1e-6)).min(BURSTS_MAX);
        let correlation = task.burst.correlation.clamp(0.0, 1.0) * CORRELATIONS;
        // Other bits for each, and others than those that the tables' losses are drawn with.
        let share = draw.rotate_left(6) as f32 / (u32::MAX as f32 + 1.0);
        Self {
            deficit: task.deficit.clamp(1, SOURCE_SYMBOLS_MAX),
            cap: task.cap.min(u16::from(u8::MAX)) as u8,
            loss: step(LOSS, task.loss as f32, draw),
            first_bad: step(FIRST_BAD, task.first_bad as f32, draw.rotate_left(12)),
            correlation: (correlation + share) as u32,
            bursts: step(BURSTS, bursts, draw.rotate_left(18)),
            price: step(PRICE, task.price as f32, draw.rotate_left(24)),
        }
    }

    fn key(&self) -> u64 {
        // 7, 8 and 6 bits, and those of the axes.
        let low = u64::from(self.correlation) << 14
            | u64::from(self.cap) << 6
            | u64::from(self.deficit - 1);
        let axes = [self.bursts, self.loss, self.first_bad, self.price];
        axes.iter()
            .fold(low, |key, axis| key << AXIS_BITS | u64::from(*axis))
    }

    fn find(&self) -> Flight {
        let lasts = Duration::from_secs(1);
        let task = Task {
            deficit: self.deficit,
            cap: self.cap.into(),
            loss: value(LOSS, self.loss).min(1.0).into(),
            burst: Burst {
                correlation: (self.correlation as f32 / CORRELATIONS).min(1.0),
                lasts,
                ..Burst::default()
            },
            first_bad: value(FIRST_BAD, self.first_bad).min(1.0).into(),
            slack: lasts.mul_f32(value(BURSTS, self.bursts)),
            price: value(PRICE, self.price).into(),
        };
        let best = task.best();
        Flight {
            symbols: best.symbols.min(u16::from(u8::MAX)) as u8,
            moments: best.moments.min(u16::from(u8::MAX)) as u8,
            by_all: best.together > 1,
        }
    }
}

/// One of the two points of an axis around a value; of all draws, so many take the upper as makes the value right on average. The first for what is
/// below, or no number.
fn step((first, dropped): (i32, u32), value: f32, draw: u32) -> u32 {
    let first = ((127 + first) as u32) << (23 - dropped);
    if value.is_nan() || value <= 0.0 {
        return 0;
    }
    // Between two points, the bits of a positive float are linear in it.
    let upper = value.to_bits().saturating_add(draw >> (32 - dropped)) >> dropped;
    upper.saturating_sub(first).min(POINTS - 1)
}

/// The value of a point.
fn value((first, dropped): (i32, u32), step: u32) -> f32 {
    let first = ((127 + first) as u32) << (23 - dropped);
    f32::from_bits((first + step) << dropped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steered::spacing::first_bad;

    fn task(loss: f64, price: f64, deficit: u8, slack_ms: u64) -> Task {
        let burst = Burst {
            correlation: 0.7,
            lasts: Duration::from_millis(20),
            age: Duration::from_millis(30),
            ..Burst::default()
        };
        Task {
            deficit,
            cap: 100,
            loss,
            burst,
            first_bad: first_bad(burst, loss),
            slack: Duration::from_millis(slack_ms),
            price,
        }
    }

    #[test]
    fn values_are_right_on_average() {
        for axis in [LOSS, FIRST_BAD] {
            for wanted in [0.013_f32, 0.2, 0.77] {
                let draws = (0..1000).map(|i: u32| i.wrapping_mul(0x9e37_79b9));
                let mean = draws
                    .map(|draw| value(axis, step(axis, wanted, draw)))
                    .sum::<f32>()
                    / 1000.0;
                assert!((mean / wanted - 1.0).abs() < 2e-3, "{wanted} {mean}");
            }
        }
        for broken in [f32::NAN, -1.0, 0.0, 1e-30] {
            assert_eq!(step(LOSS, broken, u32::MAX), 0);
        }
        assert_eq!(step(PRICE, f32::INFINITY, 0), POINTS - 1);
    }

    /// What is found is worth about as much as the best, whatever is drawn, and the second look finds the same.
    #[test]
    fn what_is_found_is_about_the_best() {
        for loss in [0.004, 0.02, 0.1, 0.4] {
            for price in [2.0, 90.0, 3e3, 1e5] {
                for (deficit, slack_ms) in [(1, 50), (4, 20), (16, 150), (5, 0)] {
                    let task = task(loss, price, deficit, slack_ms);
                    let best = task.best();
                    let least = f64::from(best.symbols) + price * best.miss;
                    for draw in [0, 0x1234_5678, u32::MAX] {
                        let found = FOUND.best(&task, draw);
                        assert_eq!(found, FOUND.best(&task, draw));
                        let worth = task.worth(found.symbols);
                        assert!(
                            worth < 1.15 * least + 1.0,
                            "{loss} {price} {deficit} {slack_ms}: {found:?} {worth}, {best:?} {least}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn no_task_is_too_large() {
        for (deficit, slack) in [
            (0, Duration::MAX),
            (255, Duration::MAX),
            (64, Duration::ZERO),
        ] {
            let large = Task {
                slack,
                ..task(1.0, f64::MAX, deficit, 0)
            };
            assert!(FOUND.best(&large, u32::MAX).symbols >= 1);
        }
    }

    /// Tasks that share a row do not get each other's flights.
    #[test]
    fn a_row_tells_flights_apart() {
        let found = Found::new();
        let mut random = 7_u64;
        for _ in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let pick = |shift: u32, of: u64| random >> shift & (of - 1);
            let loss = 0.002 * (1 << pick(20, 8)) as f64;
            let price = (1 << pick(30, 16)) as f64;
            let task = task(loss, price, 1 + pick(40, 2) as u8, 10 * pick(50, 8));
            let draw = (random >> 32) as u32;
            assert_eq!(
                found.best(&task, draw),
                Point::around(&task, draw).find().of(&task)
            );
        }
    }
}
