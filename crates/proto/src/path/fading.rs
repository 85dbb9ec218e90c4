//! How fast the influence of a loss fades: how often packets are lost by the time since a lost one, whatever was sent in between.
//!
//! Bursts that last exponentially long make a correlation that falls exponentially with that time, from what is sent together on. Two times at
//! which it was seen say how fast, and so what it is at those in between, and together.

use core::ops::Range;
use core::time::Duration;

use super::burst::{After, CHANCES, DECIDED_MOST, ENOUGH, GONE, chance_alone};
use crate::time::nanos;

/// Octaves of time that are kept apart, ..
const CLASSES: usize = 6;
/// .. of which the first begins at two milliseconds. (What comes after 128 ms is too late to be of use, or another message.)
const FIRST_LOG2_MS: u32 = 1;
/// Pairs that a class remembers at most: a loss is the first of up to sixteen.
const MEMORY: u16 = 4095;
/// Parts that a class of times is cut into.
const PARTS: u32 = 16;

/// Times within a class: the sum of the parts of it that they are in. Of up to [`MEMORY`].
#[derive(Clone, Copy, Default)]
pub(super) struct Lags(u16);

impl Lags {
    /// One more; the older ones may have been halved for it.
    pub(super) fn note(&mut self, lag: Duration, span_ms: Range<u64>, is_halved: bool) {
        if is_halved {
            self.0 /= 2;
        }
        self.0 = self.0.saturating_add(part_of(lag, &span_ms));
    }

    pub(super) fn forget(&mut self, lag: Duration, span_ms: Range<u64>) {
        self.0 = self.0.saturating_sub(part_of(lag, &span_ms));
    }

    /// Their mean, of so many, in seconds.
    pub(super) fn mean_s(self, count: f32, span_ms: Range<u64>) -> f32 {
        let parts = (f32::from(self.0) / count.max(1.0) + 0.5) / PARTS as f32;
        let (begin, width) = (span_ms.start as f32, (span_ms.end - span_ms.start) as f32);
        (begin + width * parts) / 1e3
    }
}

fn part_of(lag: Duration, span_ms: &Range<u64>) -> u16 {
    let width_ns = (span_ms.end - span_ms.start) * 1_000_000;
    let since_ns = nanos(lag).saturating_sub(span_ms.start * 1_000_000);
    let part = since_ns * u64::from(PARTS) / width_ns;
    part.min(u64::from(PARTS - 1)) as u16
}

/// Packets so long after a lost one.
#[derive(Clone, Copy, Default)]
struct Later {
    after: After,
    lags: Lags,
}

/// A correlation as it was seen.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    correlation: f32,
    /// Its standard deviation.
    chance: f32,
}

impl Seen {
    fn new(after: &After, loss: f32) -> Self {
        Self::of(after, after.correlation(loss, loss, 1.0), loss)
    }

    /// A correlation that packets after a lost one have shown, where any other is lost with probability `loss`.
    pub(super) fn of(after: &After, correlation: f32, loss: f32) -> Self {
        // (Of all, or none, chance is not nothing.)
        let usual = ((after.lost_share() + loss) / 2.0).clamp(0.01, 0.99);
        Self {
            correlation,
            chance: chance_alone(usual, after.packets().max(1.0)),
        }
    }

    fn is_told(self) -> bool {
        self.correlation > GONE.max(CHANCES * self.chance)
    }
}

/// The line through logarithms of correlations by time, each with the weight that it is known with.
#[derive(Default)]
struct Line {
    points: u32,
    weight: f32,
    time: f32,
    log: f32,
    times: f32,
    time_log: f32,
}

impl Line {
    fn add(&mut self, time_s: f32, seen: Seen) {
        let relative = seen.correlation / seen.chance;
        let (weight, log) = (relative * relative, libm::logf(seen.correlation));
        self.points += 1;
        self.weight += weight;
        self.time += weight * time_s;
        self.log += weight * log;
        self.times += weight * time_s * time_s;
        self.time_log += weight * time_s * log;
    }

    /// How fast it falls, if it does beyond chance. (Of times that are nearly the same, as on both sides of where a class ends, chance says anything.)
    fn slope(&self) -> Option<f32> {
        let spread = self.weight * self.times - self.time * self.time;
        let slope = (self.weight * self.time_log - self.time * self.log) / spread;
        let chance = libm::sqrtf(self.weight / spread);
        (slope < -CHANCES * chance).then_some(slope)
    }

    /// That from the only point to another.
    fn slope_to(&self, time_s: f32, log: f32) -> f32 {
        (log - self.log / self.weight) / (time_s - self.time / self.weight)
    }

    /// Its value for packets sent together.
    fn at_once(&self, slope: f32) -> f32 {
        libm::expf((self.log - slope * self.time) / self.weight)
    }
}

/// What was seen of later packets.
#[derive(Clone, Copy, Default)]
pub(super) struct Fading {
    classes: [Later; CLASSES],
}

impl Fading {
    /// A packet so long after a lost one was lost or not. To be called once for each such pair.
    pub(super) fn note(&mut self, lag: Duration, lost: bool) {
        let Some((later, span_ms)) = self.class_mut(lag) else {
            return;
        };
        let is_halved = later.after.note(lost, MEMORY);
        later.lags.note(lag, span_ms, is_halved);
    }

    /// The second packet of a pair that was noted as lost has arrived after all.
    pub(super) fn correct_second(&mut self, lag: Duration) {
        if let Some((later, _)) = self.class_mut(lag) {
            later.after.correct();
        }
    }

    /// The first packet of a pair that was noted, the second of which was lost or not, was not lost: it is none.
    pub(super) fn forget(&mut self, lag: Duration, lost: bool) {
        if let Some((later, span_ms)) = self.class_mut(lag) {
            later.after.forget(lost);
            later.lags.forget(lag, span_ms);
        }
    }

    /// The correlation of packets sent together, and the time over which it falls to 1/e, on a path that loses `loss`; `together` is what was seen of such
    /// packets, if anything. `None` where what was seen does not say it. O(classes).
    pub(super) fn shape(&self, loss: f32, together: Option<Seen>) -> Option<(f32, Duration)> {
        let mut line = Line::default();
        if let Some(together) = together.filter(|together| together.is_told()) {
            line.add(0.0, together);
        }
        let mut gone = None;
        for (class, later) in self.classes.iter().enumerate() {
            let packets = later.after.packets();
            if packets < ENOUGH {
                continue;
            }
            let seen = Seen::new(&later.after, loss);
            let lag_s = later.lags.mean_s(packets, span_of(class));
            if !seen.is_told() {
                // It falls: what is seen later is chance.
                gone = Some((lag_s, libm::logf(seen.chance.max(GONE))));
                break;
            }
            line.add(lag_s, seen);
        }
        let slope = match (line.points, gone) {
            (2.., _) => line.slope()?,
            // No less fast than that.
            (1, Some((time_s, log))) => line.slope_to(time_s, log),
            _ => return None,
        };
        (slope < 0.0).then(|| {
            let time_s = (-1.0 / slope).clamp(0.0, 1.0);
            let together = line.at_once(slope).min(DECIDED_MOST);
            (together, Duration::from_secs_f32(time_s))
        })
    }

    fn class_mut(&mut self, lag: Duration) -> Option<(&mut Later, Range<u64>)> {
        let lag_ms = nanos(lag) / 1_000_000;
        let class = lag_ms.checked_ilog2()?.checked_sub(FIRST_LOG2_MS)? as usize;
        Some((self.classes.get_mut(class)?, span_of(class)))
    }
}

/// The times of a class, in milliseconds.
const fn span_of(class: usize) -> Range<u64> {
    let begin = 1 << (class + FIRST_LOG2_MS as usize);
    begin..2 * begin
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What packets each so many milliseconds say, with bursts that begin after so many on average and take all for so many.
    fn met(apart_ms: u64, good_ms: f32, bad_ms: f32) -> (Fading, f32) {
        let mut random = 7_u64;
        let mut exponential = |mean: f32| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let uniform = ((random >> 40) as f32 + 0.5) / (1_u64 << 24) as f32;
            -mean * libm::logf(uniform)
        };
        let mut met = Fading::default();
        let (mut is_bad, mut until_ms) = (false, 0.0_f64);
        let mut before = [None; 17];
        for packet in 0..400_000_u64 {
            let at_ms = packet * apart_ms;
            while until_ms < at_ms as f64 {
                is_bad = !is_bad;
                until_ms += f64::from(exponential(if is_bad { bad_ms } else { good_ms }));
            }
            for first_ms in before.iter().flatten() {
                met.note(Duration::from_millis(at_ms - first_ms), is_bad);
            }
            before.rotate_right(1);
            before[0] = is_bad.then_some(at_ms);
        }
        (met, bad_ms / (good_ms + bad_ms))
    }

    #[test]
    fn exponential_bursts_are_found_as_they_are() {
        for (apart_ms, good_ms, bad_ms) in [(6, 95.0, 5.0), (12, 180.0, 20.0), (3, 990.0, 10.0)] {
            let (met, loss) = met(apart_ms, good_ms, bad_ms);
            let (together, time) = met.shape(loss, None).expect("several times tell");
            // Spells that end at rates of 1/good and 1/bad are forgotten at the sum of both.
            let truly_s = bad_ms * (1.0 - loss) / 1e3;
            let ratio = time.as_secs_f32() / truly_s;
            assert!((0.8..1.25).contains(&ratio), "{apart_ms}: {time:?}");
            assert!(together > 0.75, "{apart_ms}: {together}");
        }
    }

    #[test]
    fn one_time_alone_says_nothing() {
        let mut met = Fading::default();
        for packet in 0..1000 {
            met.note(Duration::from_millis(5), packet % 2 == 0);
        }
        assert_eq!(met.shape(0.05, None), None);
        // It has gone by then, at least.
        for _ in 0..1000 {
            met.note(Duration::from_millis(40), false);
        }
        let (_, time) = met.shape(0.05, None).expect("it is gone");
        assert!(time < Duration::from_millis(14), "{time:?}");
        let together = Seen {
            correlation: 0.95,
            chance: 0.05,
        };
        let (correlation, _) = met.shape(0.05, Some(together)).expect("two times");
        assert!((0.8..=1.0).contains(&correlation), "{correlation}");
    }

    /// Packets four milliseconds apart, give or take some, are on both sides of where a class ends.
    #[test]
    fn times_that_are_nearly_the_same_say_nothing() {
        for (sooner, later) in [(10, 9), (9, 10)] {
            let mut met = Fading::default();
            for packet in 0..400 {
                met.note(Duration::from_micros(3900), packet % 20 < sooner);
                met.note(Duration::from_micros(4100), packet % 20 < later);
            }
            assert_eq!(met.shape(0.05, None), None, "{sooner} {later}");
        }
    }

    #[test]
    fn losses_by_themselves_have_no_shape() {
        let mut met = Fading::default();
        for packet in 0..10_000_u64 {
            met.note(Duration::from_millis(2 + packet % 200), packet % 20 == 7);
        }
        assert_eq!(met.shape(0.05, None), None);
    }

    #[test]
    fn what_was_no_loss_is_taken_back() {
        let mut met = Fading::default();
        let lag = Duration::from_millis(5);
        met.note(lag, true);
        met.note(lag, false);
        met.correct_second(lag);
        met.forget(lag, false);
        let left = &met.classes[1].after;
        assert_eq!((left.packets(), left.lost_share()), (1.0, 0.0));
        // Nothing was, and nothing is less.
        met.forget(Duration::from_secs(9), true);
        met.forget(Duration::ZERO, true);
        met.correct_second(Duration::from_millis(100));
    }
}
