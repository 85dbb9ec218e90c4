//! A distribution of delays in 192 bytes: a minimum, and a histogram of what comes on top of it.
//!
//! The first bin holds excesses below 256 us; above, every octave has four bins up to 8 s, so that an excess is known to
//! within a quarter. Counts are halved when they have grown to [`MEMORY`], so that old samples fade.

use core::time::Duration;

use crate::time::{Instant, nanos};

const BINS: usize = 64;
/// Width of the first bin, in microseconds, as a power of two.
const FIRST_LOG: u32 = 8;
/// Samples after which all counts are halved.
const MEMORY: u32 = 2048;
/// Samples from which on the longest of them tells how long most take. (A broadcast to a thousand young sessions through a queue was relied on to take what
/// its first packets had: 80 % on time for 84.)
const TELLING: u32 = 100;

/// So many samples, with so much time between them at least, that all take longer than half of all did before: the path is another, and the others
/// say nothing of it. (After a change of routes, messages that none of could be in time were predicted to be for minutes.)
const LATEST: u8 = 32;
const LATEST_APART: Duration = Duration::from_millis(50);

/// Which paths are others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Another {
    LongerOrShorter,
    /// What becomes longer by itself is followed by its quantiles.
    Shorter,
}

/// Samples since it was last asked whether the path is another.
#[derive(Default)]
struct Latest {
    count: u8,
    least_us: u32,
    most_us: u32,
    /// What half of all samples did not exceed when these began, and the ones before them.
    halves_us: [u32; 2],
    /// The least that counted then; zero before anything did.
    floors_us: [u32; 2],
    at: Instant,
}

/// Delays, compactly.
pub(crate) struct DelayHistogram {
    /// The least of all, and of those that count.
    least_us: u32,
    min_us: u32,
    /// What the bins count from: the minimum, or up to a first bin's width above it.
    base_us: u32,
    /// No sample that counts took longer.
    max_us: u32,
    total: u32,
    /// The bin of the 99 % quantile, and the samples up to and in it: moved by a sample, not counted anew.
    high: u8,
    up_to_high: u16,
    bins: [u16; BINS],
    latest: Latest,
}

impl Default for DelayHistogram {
    fn default() -> Self {
        Self {
            least_us: u32::MAX,
            min_us: u32::MAX,
            base_us: u32::MAX,
            max_us: 0,
            total: 0,
            high: 0,
            up_to_high: 0,
            bins: [0; BINS],
            latest: Latest::default(),
        }
    }
}

impl DelayHistogram {
    pub(crate) const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The least of all samples, whatever was forgotten since: a queue that stands for seconds looks like a longer path.
    pub(crate) const fn min(&self) -> Duration {
        Duration::from_micros(if self.is_empty() {
            0
        } else {
            self.least_us as u64
        })
    }

    const fn base(&self) -> Duration {
        Duration::from_micros(if self.is_empty() {
            0
        } else {
            self.base_us as u64
        })
    }

    fn record(&mut self, delay: Duration) {
        let us = micros(delay);
        self.least_us = self.least_us.min(us);
        if self.is_empty() {
            (self.min_us, self.base_us) = (us, us);
        } else if us < self.min_us {
            self.min_us = us;
            self.rebase();
        }
        if self.total >= MEMORY {
            self.fade();
        }
        self.max_us = self.max_us.max(us.saturating_add(1));
        let index = bin(us.saturating_sub(self.base_us));
        self.bins[index] += 1;
        self.total += 1;
        self.up_to_high += u16::from(index <= usize::from(self.high));
        self.move_high();
    }

    /// Takes in a sample, and forgets the others where the path is another: the latest all took less than any did before, or longer than half did. O(1).
    pub(crate) fn record_at(&mut self, now: Instant, delay: Duration, another: Another) {
        self.record(delay);
        let latest = &mut self.latest;
        if now.since(latest.at) < LATEST_APART {
            return;
        }
        latest.at = now;
        if latest.count == 0 {
            latest.least_us = u32::MAX;
            latest.most_us = 0;
        }
        latest.least_us = latest.least_us.min(micros(delay));
        latest.most_us = latest.most_us.max(micros(delay));
        latest.count += 1;
        if latest.count < LATEST {
            return;
        }
        latest.count = 0;
        let (least_us, half_before_us) = (latest.least_us, latest.halves_us[1]);
        let (most_us, floor_before_us) = (latest.most_us, latest.floors_us[1]);
        let is_longer =
            another == Another::LongerOrShorter && half_before_us > 0 && least_us > half_before_us;
        if is_longer || most_us < floor_before_us {
            *self = Self {
                least_us: self.least_us,
                ..Self::default()
            };
            self.record(Duration::from_micros(least_us.into()));
            if !is_longer {
                self.record(Duration::from_micros(most_us.into()));
            }
            self.record(delay);
            self.latest.at = now;
        } else {
            let half_us = micros(self.quantile(0.5));
            let latest = &mut self.latest;
            latest.halves_us = [half_us, latest.halves_us[0]];
            latest.floors_us = [self.min_us, latest.floors_us[0]];
        }
    }

    /// The delay that 99 % of samples did not exceed: asked for several times a packet.
    pub(crate) fn high(&self) -> Duration {
        if self.is_empty() {
            return Duration::ZERO;
        }
        self.end_of(usize::from(self.high))
    }

    /// The upper edge of its bin, near which no sample may have come: what is not to be fallen short of by one that is a little longer.
    pub(crate) fn above_high(&self) -> Duration {
        Duration::from_micros(self.edge_of(usize::from(self.high)).into())
    }

    fn edge_of(&self, bin: usize) -> u32 {
        self.base_us.saturating_add(lower_edge(bin + 1))
    }

    /// No sample of a bin took longer.
    fn end_of(&self, bin: usize) -> Duration {
        let edge = self.edge_of(bin);
        let is_told = self.total >= TELLING;
        Duration::from_micros(if is_told { edge.min(self.max_us) } else { edge }.into())
    }

    /// Brings the 99 % quantile to the first bin up to which 99 % of samples lie.
    fn move_high(&mut self) {
        let wanted = (self.total - self.total / 100) as u16;
        while self.up_to_high < wanted {
            self.high += 1;
            self.up_to_high += self.bins[usize::from(self.high)];
        }
        while self.up_to_high - self.bins[usize::from(self.high)] >= wanted {
            self.up_to_high -= self.bins[usize::from(self.high)];
            self.high -= 1;
        }
    }

    /// The bins have changed as a whole.
    fn find_high(&mut self) {
        (self.high, self.up_to_high) = (0, self.bins[0]);
        self.move_high();
    }

    /// A smaller minimum: what was an excess over the old one is a larger excess now.
    fn rebase(&mut self) {
        let shift = self.base_us - self.min_us;
        // Excesses within the first bin's width are not told apart, so a shift below it can wait.
        if shift < 1 << FIRST_LOG {
            return;
        }
        self.base_us = self.min_us;
        let old = core::mem::replace(&mut self.bins, [0; BINS]);
        for (index, count) in old.into_iter().enumerate() {
            self.bins[bin(lower_edge(index).saturating_add(shift))] += count;
        }
        self.find_high();
    }

    fn fade(&mut self) {
        self.total = 0;
        let mut last = 0;
        for (index, count) in self.bins.iter_mut().enumerate() {
            *count /= 2;
            self.total += u32::from(*count);
            if *count > 0 {
                last = index;
            }
        }
        self.max_us = self.max_us.min(self.edge_of(last));
        self.find_high();
    }

    /// The delay that a share `q` of samples did not exceed: the upper edge of its bin, so never too small, or the longest that was seen.
    pub(crate) fn quantile(&self, q: f64) -> Duration {
        let wanted = libm::ceil(q * f64::from(self.total)) as u32;
        let mut below = 0;
        for (index, &count) in self.bins.iter().enumerate() {
            below += u32::from(count);
            if count > 0 && below >= wanted {
                return self.end_of(index);
            }
        }
        self.base()
    }

    /// Share of samples that took at most `limit`; within a bin they count as spread evenly.
    pub(crate) fn share_within(&self, limit: Duration) -> f64 {
        if self.total == 0 {
            return 1.0;
        }
        if limit < Duration::from_micros(self.min_us.into()) {
            return 0.0;
        }
        let excess = limit.saturating_sub(self.base());
        let excess = u32::try_from(nanos(excess) / 1000).unwrap_or(u32::MAX);
        let last = bin(excess);
        let below: u32 = self.bins[..last]
            .iter()
            .map(|&count| u32::from(count))
            .sum();
        let (low, high) = (lower_edge(last), lower_edge(last + 1));
        let part = f64::from(excess - low) / f64::from((high - low).max(1));
        // Everything within the first bin is as good as the minimum: what is finer than 256 us is not known.
        let part = if last == 0 { 1.0 } else { part.min(1.0) };
        (f64::from(below) + part * f64::from(self.bins[last])) / f64::from(self.total)
    }
}

fn micros(delay: Duration) -> u32 {
    u32::try_from(nanos(delay) / 1000).unwrap_or(u32::MAX - 1)
}

const fn bin(excess_us: u32) -> usize {
    if excess_us < 1 << FIRST_LOG {
        return 0;
    }
    let octave = 31 - excess_us.leading_zeros();
    let quarter = (excess_us >> (octave - 2)) & 3;
    let index = 1 + (octave - FIRST_LOG) * 4 + quarter;
    if index as usize >= BINS {
        BINS - 1
    } else {
        index as usize
    }
}

/// Least excess of a bin, in microseconds.
const fn lower_edge(index: usize) -> u32 {
    if index == 0 {
        return 0;
    }
    let octave = FIRST_LOG + (index as u32 - 1) / 4;
    let quarter = (index as u32 - 1) % 4;
    (4 + quarter) << (octave - 2)
}

#[cfg(test)]
mod tests {
    use core::ops::Range;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn edges_and_bins_agree() {
        for index in 0..BINS {
            assert_eq!(bin(lower_edge(index)), index);
            if index > 0 {
                assert_eq!(bin(lower_edge(index) - 1), index - 1);
            }
        }
        assert_eq!(bin(u32::MAX), BINS - 1);
    }

    #[test]
    fn a_fixed_delay_is_known_to_a_quarter_millisecond() {
        let mut delays = DelayHistogram::default();
        for _ in 0..100_000 {
            delays.record(ms(250));
        }
        assert_eq!(delays.min(), ms(250));
        assert_eq!(delays.quantile(0.999), ms(250) + Duration::from_micros(1));
        assert_eq!(delays.high(), delays.quantile(0.99));
        assert_eq!(delays.above_high(), ms(250) + Duration::from_micros(256));
        assert!((delays.share_within(ms(250)) - 1.0).abs() < 1e-9);
        assert!(delays.share_within(ms(249)) < 1e-9);
        assert!(delays.total <= MEMORY);
    }

    #[test]
    fn quantiles_are_never_below_the_truth() {
        let mut delays = DelayHistogram::default();
        for i in 0..1000 {
            delays.record(ms(20) + Duration::from_micros(i * 100));
        }
        for q in [0.1, 0.5, 0.9, 0.99] {
            let truth = 20.0 + q * 100.0;
            let seen = delays.quantile(q).as_secs_f64() * 1e3;
            assert!(
                seen >= truth - 0.2 && seen < 20.0 + q * 100.0 * 1.26,
                "{q}: {seen} against {truth}"
            );
        }
        let half = delays.share_within(ms(70));
        assert!((half - 0.5).abs() < 0.05, "{half}");
    }

    #[test]
    fn an_outlier_is_the_longest_for_a_time() {
        let mut delays = DelayHistogram::default();
        delays.record(ms(900));
        for _ in 0..40_000 {
            delays.record(ms(20));
        }
        assert_eq!(delays.quantile(1.0), ms(20) + Duration::from_micros(256));
    }

    #[test]
    fn the_moved_quantile_is_the_counted_one() {
        let mut delays = DelayHistogram::default();
        let mut state = 7u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (octave, part) = ((state >> 60) as u32, (state >> 33) % 1000);
            delays.record(Duration::from_micros(2000 + (part << octave.min(12))));
            assert_eq!(delays.high(), delays.quantile(0.99));
        }
    }

    #[test]
    fn a_path_that_has_become_longer_is_known_within_seconds() {
        let mut delays = DelayHistogram::default();
        let at = |step: u64| Instant::from_micros(1_000_000 + step * 20_000);
        let record = |delays: &mut DelayHistogram, steps: Range<u64>, delay: fn(u64) -> u64| {
            for step in steps {
                delays.record_at(at(step), ms(delay(step)), Another::LongerOrShorter);
            }
        };
        record(&mut delays, 0..5000, |step| 15 + step % 3);
        assert_eq!(delays.min(), ms(15));
        record(&mut delays, 5000..5200, |step| 60 + step % 3);
        assert!(delays.share_within(ms(50)) < 1e-9);
        assert!(delays.quantile(0.01) >= ms(60) && delays.min() == ms(15));
        // A queue that empties again says nothing.
        record(&mut delays, 5200..20_000, |step| match step % 50 {
            ..45 => 100,
            _ => 60,
        });
        assert!(delays.share_within(ms(70)) > 0.05);
    }

    /// A regression: 99 % of what a long path took was the round time of a shorter one for minutes.
    #[test]
    fn a_path_that_has_become_shorter_is_known_within_seconds() {
        // After 120 to 149 ms.
        let then = |steps: u64, delay: fn(u64) -> u64| {
            let mut delays = DelayHistogram::default();
            for step in 0..5000 + steps {
                let ms_now = if step < 5000 {
                    120 + step % 30
                } else {
                    delay(step)
                };
                let at = Instant::from_micros(1_000_000 + step * 20_000);
                delays.record_at(at, ms(ms_now), Another::Shorter);
            }
            delays
        };
        // One that was fast is an exception, and a longer path is no other here.
        assert!(then(1, |_| 40).high() >= ms(140));
        assert!(then(300, |_| 300).quantile(0.01) < ms(130));
        assert!(then(200, |step| 40 + step % 5).high() < ms(50));
    }

    #[test]
    fn a_lower_minimum_moves_the_excesses() {
        let mut delays = DelayHistogram::default();
        for _ in 0..100 {
            delays.record(ms(100));
        }
        delays.record(ms(50));
        assert_eq!(delays.min(), ms(50));
        assert!(delays.quantile(0.9) >= ms(100));
        assert!(delays.share_within(ms(60)) < 0.05);
    }
}
