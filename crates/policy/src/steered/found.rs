//! Last flights in bursts that were found before.
//!
//! To find one takes microseconds (`spacing.rs`), to look it up some nanoseconds. What is found is that of the nearest points of a grid, up to sixteen an octave,
//! drawn by the message so that they are right on average, as the losses of the other tables are.

use core::time::Duration;

use super::memo::{Axis, Memo, key, point_of_share};
use super::spacing::Task;
use crate::limits::SOURCE_SYMBOLS_MAX;
use crate::{Action, Burst};

/// Bits of a key.
const KEY_BITS: u32 = 4 * BITS + 7 + 8 + 6;
/// Correlations: so many points from 0 to 1.
const CORRELATIONS: u32 = 64;
/// Bursts that the slack has room for, at most: more than the moments of all flights are apart make no difference.
const BURSTS_MAX: f32 = 4096.0;

/// Those of the process: constants of nature, as the tables are.
pub(super) static FOUND: Memo<KEY_BITS> = Memo::new();

/// The flight with the least symbols and misses, by the points around the task. O(1) if it was found before.
pub(super) fn best(task: &Task, draw: u32) -> Action {
    Flight::around(task, draw).of(task)
}

/// Probability that fewer than the deficit arrive of what [`best`] sends. (Of what were best for the task, as many misses are expected at a price at which what
/// is drawn changes: with 5 % of loss, one round and k = 1, 0.075 % for 0.1.) O(symbols).
pub(super) fn miss(task: &Task, draw: u32) -> f64 {
    let flight = Flight::around(task, draw);
    let spacing = task.spacing_of(flight.moments.into());
    task.miss_of(flight.symbols.into(), flight.together(task), spacing)
}

/// Symbols and misses (in symbols) of a flight at the points around the task: where the message decides.
pub(super) fn worth(task: &Task, draw: u32, flight: Action) -> f64 {
    let at_point = Point::around(task, draw).task();
    let lasts = task.burst.lasts.as_secs_f32().max(1e-6);
    let spacing = flight.spacing.as_secs_f32() / lasts;
    let spacing = Duration::try_from_secs_f32(spacing).unwrap_or(Duration::MAX);
    at_point.worth(flight.symbols, flight.together, spacing)
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
    fn around(task: &Task, draw: u32) -> Self {
        let point = Point::around(task, draw);
        Self::unpack(FOUND.get(point.key(), || point.find().pack()))
    }

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

    const fn together(self, task: &Task) -> u16 {
        if self.by_all { task.deficit as u16 } else { 1 }
    }

    fn of(self, task: &Task) -> Action {
        Action {
            symbols: self.symbols.into(),
            together: self.together(task),
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

/// Bits of a point of these axes.
const BITS: u32 = 9;
const LOSS: Axis = Axis::new(-15, 16, BITS);
const FIRST_BAD: Axis = Axis::new(-31, 8, BITS);
const BURSTS: Axis = Axis::new(-12, 4, BITS);
const PRICE: Axis = Axis::new(-3, 16, BITS);

impl Point {
    fn around(task: &Task, draw: u32) -> Self {
        let slack = task.slack.as_secs_f32();
        let bursts = (slack / task.burst.lasts.as_secs_f32().max(1e-6)).min(BURSTS_MAX);
        // Other bits for each.
        let correlation = point_of_share(task.burst.correlation, CORRELATIONS, draw.rotate_left(6));
        Self {
            deficit: task.deficit.clamp(1, SOURCE_SYMBOLS_MAX),
            cap: task.cap.min(u16::from(u8::MAX)) as u8,
            loss: LOSS.point(task.loss as f32, draw),
            first_bad: FIRST_BAD.point(task.first_bad as f32, draw.rotate_left(12)),
            correlation,
            bursts: BURSTS.point(bursts, draw.rotate_left(18)),
            price: PRICE.point(task.price as f32, draw.rotate_left(24)),
        }
    }

    fn key(&self) -> u64 {
        key(&[
            (self.bursts.into(), BITS),
            (self.loss.into(), BITS),
            (self.first_bad.into(), BITS),
            (self.price.into(), BITS),
            (self.correlation.into(), 7),
            (self.cap.into(), 8),
            (u64::from(self.deficit - 1), 6),
        ])
    }

    /// The task at the point, of bursts that last for a second.
    fn task(&self) -> Task {
        let lasts = Duration::from_secs(1);
        Task {
            deficit: self.deficit,
            cap: self.cap.into(),
            loss: LOSS.value(self.loss).min(1.0).into(),
            burst: Burst {
                correlation: self.correlation as f32 / CORRELATIONS as f32,
                lasts,
                ..Burst::default()
            },
            first_bad: FIRST_BAD.value(self.first_bad).min(1.0).into(),
            slack: lasts.mul_f32(BURSTS.value(self.bursts)),
            price: PRICE.value(self.price).into(),
        }
    }

    fn find(&self) -> Flight {
        let best = self.task().best();
        Flight {
            symbols: best.symbols.min(u16::from(u8::MAX)) as u8,
            moments: best.moments.min(u16::from(u8::MAX)) as u8,
            by_all: best.together > 1,
        }
    }
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

    /// What is found is worth about as much as the best, whatever is drawn, and the second look finds the same.
    #[test]
    fn what_is_found_is_about_the_best() {
        for loss in [0.004, 0.02, 0.1, 0.4] {
            for price in [2.0, 90.0, 3e3, 1e5] {
                for (deficit, slack_ms) in [(1, 50), (4, 20), (16, 150), (5, 0)] {
                    let task = task(loss, price, deficit, slack_ms);
                    let wanted = task.best();
                    let least = f64::from(wanted.symbols) + price * wanted.miss;
                    for draw in [0, 0x1234_5678, u32::MAX] {
                        let found = best(&task, draw);
                        assert_eq!(found, best(&task, draw));
                        let worth = task.worth(found.symbols, found.together, found.spacing);
                        assert!(
                            worth < 1.15 * least + 1.0,
                            "{loss} {price} {deficit} {slack_ms}: {found:?} {worth}, {wanted:?} {least}"
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
            assert!(best(&large, u32::MAX).symbols >= 1);
        }
    }
}
