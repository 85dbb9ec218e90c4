//! What the path's delay was, told later: where a path carries clearly more than before, nothing of ours stood in its queue before.
//!
//! A window that has stopped at a radio's jitter never sends clearly less than the path has carried, so nothing else tells it that what it takes
//! for a queue is there without it.

/// The share of what the path has carried since, below which it was not full.
const CLEAR_SHARE: f32 = 0.6;
/// Rates are the same up to this factor.
const SAME: f32 = 1.25;
/// Round trips (of a quarter of one) that tell something.
const COUNT_MIN: u8 = 8;
/// Those that are averaged over: four round trips.
const COUNT_MAX: u8 = 16;

/// Standing round trips while the path carried about as much.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Hindsight {
    /// The most that had come back when they began, in bytes a second; 0 before.
    rate: f32,
    /// Their mean, and mean deviation from it, in microseconds.
    pub(super) mean_us: f32,
    pub(super) deviation_us: f32,
    count: u8,
}

impl Hindsight {
    /// A quarter of a round trip had this least, and `rate_max` is the most that has come back lately, in bytes a second. What was seen while it
    /// was clearly less, once.
    pub(super) fn look_back(&mut self, standing_us: f32, rate_max: f32) -> Option<Self> {
        let carries_more = self.rate <= rate_max * CLEAR_SHARE;
        if carries_more || rate_max < self.rate / SAME {
            let now = Self {
                rate: rate_max,
                ..Self::default()
            };
            let before = core::mem::replace(self, now);
            return Some(before).filter(|before| carries_more && before.count >= COUNT_MIN);
        }
        if rate_max <= self.rate * SAME {
            self.note(standing_us);
        }
        None
    }

    fn note(&mut self, standing_us: f32) {
        if self.count == 0 {
            self.mean_us = standing_us;
        }
        let off = standing_us - self.mean_us;
        let deviations = self.count.max(1);
        self.count = (self.count + 1).min(COUNT_MAX);
        self.mean_us += off / f32::from(self.count);
        self.deviation_us += (off.abs() - self.deviation_us) / f32::from(deviations);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    /// Round trips of 150 ms and 2 ms more or less, at each of these rates.
    fn look_back_at(rates: &[f32]) -> Vec<Hindsight> {
        let mut hindsight = Hindsight::default();
        let each = |(index, rate): (usize, &f32)| {
            let jitter = if index % 2 == 0 { 2_000.0 } else { -2_000.0 };
            hindsight.look_back(150_000.0 + jitter, *rate)
        };
        rates.iter().enumerate().filter_map(each).collect()
    }

    #[test]
    fn what_was_seen_at_a_lower_rate_is_the_path() {
        let mut rates = vec![100.0; 40];
        rates.push(200.0);
        let [seen] = look_back_at(&rates)[..] else {
            panic!("once");
        };
        assert!((seen.mean_us - 150_000.0).abs() < 500.0, "{seen:?}");
        assert!((seen.deviation_us - 2_000.0).abs() < 500.0, "{seen:?}");
    }

    #[test]
    fn a_rate_that_stays_or_falls_tells_nothing() {
        let mut rates = vec![100.0; 40];
        rates.extend([110.0; 40]);
        rates.extend([60.0; 40]);
        rates.extend([80.0; 40]);
        assert_eq!(look_back_at(&rates), []);
    }

    #[test]
    fn few_round_trips_tell_nothing() {
        let mut rates = vec![100.0; 6];
        rates.push(200.0);
        assert_eq!(look_back_at(&rates), []);
    }
}
