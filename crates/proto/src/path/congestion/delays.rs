//! Minima and maxima of the round trip over sliding windows, in a few words each.

use core::time::Duration;

use super::hindsight::Hindsight;
use crate::time::{Instant, nanos};

/// The least value of the last one to two spans: one bucket fills while the one before is still remembered.
#[derive(Clone, Copy)]
pub(super) struct Least {
    began: Instant,
    current_us: u32,
    before_us: u32,
}

impl Default for Least {
    fn default() -> Self {
        Self {
            began: Instant::ZERO,
            current_us: u32::MAX,
            before_us: u32::MAX,
        }
    }
}

impl Least {
    /// Takes a value in; buckets are `span` long. Whether a new one began.
    pub(super) fn record(&mut self, now: Instant, value_us: u32, span: Duration) -> bool {
        let age = now.since(self.began);
        if age >= span {
            self.before_us = if age >= span * 2 {
                u32::MAX
            } else {
                self.current_us
            };
            self.current_us = u32::MAX;
            self.began = now;
        }
        self.current_us = self.current_us.min(value_us);
        age >= span
    }

    /// Nothing was taken in for so long that all is forgotten.
    fn is_over(&self, now: Instant, span: Duration) -> bool {
        now.since(self.began) >= span * 2
    }

    const fn current(&self) -> u32 {
        self.current_us
    }

    pub(super) fn get_us(&self) -> u32 {
        self.current_us.min(self.before_us)
    }
}

/// The least round trips of the sizes of packets that were seen last: at 8 Mbit/s a full packet takes 1.4 ms more than a tiny one without
/// any queue. The latest is the first.
#[derive(Clone, Copy, Default)]
struct LeastBySize([(u8, Least); SIZES]);

/// Sizes whose least round trips are remembered. What is measured at a time is not much smaller than the largest: two or three.
const SIZES: usize = 4;
/// Sizes of a class differ by less than an eighth: 1 / ln(8/7).
const CLASSES: f32 = 7.489;

impl LeastBySize {
    /// Takes in that a packet of so many bytes took so long on a path that carries at least `rate` bytes a second. Whether it is the first of its
    /// size.
    fn record(&mut self, now: Instant, bytes: u16, value_us: u32, rate: f32) -> bool {
        let class = (libm::logf(f32::from(bytes).max(1.0)) * CLASSES) as u8;
        let found = self.0.iter().position(|(of, _)| *of == class);
        self.0[..=found.unwrap_or(SIZES - 1)].rotate_right(1);
        if found.is_none() {
            self.0[0] = (class, Least::default());
        }
        self.0[0].1.record(now, value_us, MEMORY);
        // A smaller packet takes no longer than a larger one. Nor does the first of the larger ones take longer than its size explains: it may have
        // met a queue that was there before it.
        let known = self.0[1..]
            .iter()
            .filter(|(_, least)| !least.is_over(now, MEMORY));
        let is_new = found.is_none();
        let bounds = known.filter_map(|(of, least)| {
            if *of > class {
                return Some(least.get_us());
            }
            (is_new && rate > 0.0).then(|| {
                let more = f32::from(bytes) - libm::expf(f32::from(*of) / CLASSES);
                least.get_us().saturating_add((1e6 * more / rate) as u32)
            })
        });
        if let Some(bound_us) = bounds.min() {
            self.0[0].1.record(now, bound_us, MEMORY);
        }
        is_new
    }

    fn get_us(&self) -> u32 {
        self.0[0].1.get_us()
    }
}

/// How long the least round trip is believed: a bucket's length, so between this and twice this. Copa says 10 s.
const MEMORY: Duration = Duration::from_secs(10);
/// The least round trip is looked for when it was not seen for so long.
const STALE: Duration = Duration::from_secs(4);
/// Round trips are equal within a thirty-second of themselves, but at least and at most so many microseconds.
const NEAR_US: (u32, u32) = (50, 100);

/// How fast a paced window fills a queue, in seconds a second.
const SLOPE: f64 = 0.005;
/// What a packet of our own changes at most, in microseconds.
const OWN_MAX_US: f64 = 2_000.0;
/// What a jittery path adds to the least on average, in units of its mean change within a quarter of a round trip.
const NOISE_GAIN: f64 = 8.0;
/// No more than this is taken for noise, in microseconds.
const NOISE_MAX_US: f64 = 4_000.0;
/// Quarters of a round trip over which the path without our queue is averaged: four round trips.
const CLEAR_SAMPLES: f32 = 16.0;
/// Quarters of a round trip of which the mean tells a queue from a jump, where the path wanders: a round trip.
const MEAN_SAMPLES: f32 = 4.0;
/// Deviations by which the largest of some round trips lies above their mean and one deviation.
const LARGEST_DEVIATIONS: f64 = 2.0;
/// A path without noise deviates by this: the tail of a queue that has just emptied.
const DEVIATION_OF_QUIET_US: f64 = 300.0;
/// The least of ten seconds lies up to 2.8 standard deviations, 3.5 mean deviations, below a normal delay's mean. What lies
/// further below is somebody's queue.
const DEVIATIONS_MAX: f64 = 3.5;
/// No more than this is taken for the path's own, in microseconds: recorded Wi-Fi has a standard deviation of 5 to 20 ms.
pub(super) const WANDER_MAX_US: f64 = 20_000.0;

/// The queue at which the start ends, as a part of the least round trip, and within these bounds in microseconds: RFC 9406 section 4.3, MIN_RTT_DIVISOR,
/// MIN_RTT_THRESH and MAX_RTT_THRESH.
const START_QUEUE_DIVISOR: f64 = 8.0;
const START_QUEUE_US: (f64, f64) = (4_000.0, 16_000.0);

/// A round trip, and what is known of the circumstances.
pub(super) struct Sample {
    pub(super) took: Duration,
    /// Up to so much of it may be a frame's of the peer.
    pub(super) waited: Duration,
    pub(super) smoothed: Duration,
    /// Of the packet.
    pub(super) bytes: u16,
    /// Answers come together that belong to packets of about so long a time.
    pub(super) gathered: Duration,
    /// The most that has come back lately, in bytes a second; 0 when that is not known.
    pub(super) rate: f32,
    /// The standing round trip is the least over one to two of these.
    pub(super) span: Duration,
    /// Neither room is made nor the window's size looked for: the window is not what changes the queue.
    pub(super) is_steady: bool,
    /// Nothing of ours stands in the queue.
    pub(super) is_clear: bool,
    /// What seems to be a queue was found to be what the path varies by.
    pub(super) varies: bool,
    /// The most that has come back lately, in bytes a second, where that tells later whether something of ours stands in the queue.
    pub(super) rate_max: Option<f32>,
}

/// What Copa asks of round trips.
#[derive(Clone, Copy, Default)]
pub(super) struct Delays {
    /// Over 10 s: the path without a queue.
    least: LeastBySize,
    /// Over half a smoothed round trip: the path with what stands in its queue, without what a burst or a jittery link adds.
    standing: Least,
    /// The largest over four smoothed round trips, negated.
    largest: Least,
    smoothed_us: u32,
    gathered_us: u32,
    /// The size of the packets that are measured, in bytes.
    size: u16,
    /// The standing round trip of the bucket before, and how much it differs from bucket to bucket, smoothed.
    standing_then_us: u32,
    change_us: i32,
    noise_us: f32,
    /// Mean of the standing round trip, and mean deviation from it, while our packets find no queue of ours.
    clear_us: f32,
    deviation_us: f32,
    /// Small deviations are the path's as well, and no queue's that has just emptied.
    varies: bool,
    hindsight: Hindsight,
    /// Mean of the standing round trip over about a round trip.
    mean_us: f32,
    /// When a round trip was last about as short as the least.
    least_at: Instant,
}

impl Delays {
    /// Takes a round trip in. Only those of about the largest packets are compared, and each with the least of its own size. (The least was
    /// once forgotten whenever packets grew. Where a live stream makes packets of many sizes, that was all the time, and no queue was
    /// ever seen: `live-beside-cubic.toml`.) Whether the sample was of use.
    pub(super) fn record(&mut self, now: Instant, sample: &Sample) -> bool {
        let (size, bytes) = (u32::from(self.size), u32::from(sample.bytes));
        if bytes * 8 < size * 7 {
            self.size -= (self.size / 256).max(1);
            return false;
        }
        let us = micros(sample.took).max(1);
        if self.least.record(now, sample.bytes, us, sample.rate) {
            self.clear_us = 0.0;
        }
        self.size = sample.bytes;
        self.varies = sample.varies;
        self.gathered_us = micros(sample.gathered);
        self.smoothed_us = micros(sample.smoothed).max(1);
        let least = self.least.get_us();
        let us = us.saturating_sub(micros(sample.waited)).max(least.min(us));
        if us <= least + (least / 32).clamp(NEAR_US.0, NEAR_US.1) {
            self.least_at = now;
        }
        let before = self.standing.current();
        if self.standing.record(now, us, sample.span) {
            self.note_mean(before);
            self.note_noise(before, sample.is_steady);
            if sample.is_clear && before != u32::MAX {
                self.note_clear(before as f32);
            }
            self.look_back(before, sample);
        }
        self.largest.record(now, u32::MAX - us, sample.smoothed * 2);
        true
    }

    /// The path may be another now. How much it varies is kept.
    pub(super) fn forget_path(&mut self) {
        self.least = LeastBySize::default();
        self.standing = Least::default();
        self.largest = Least::default();
        self.clear_us = 0.0;
        self.hindsight = Hindsight::default();
        self.mean_us = 0.0;
        self.smoothed_us = 0;
        self.size = 0;
    }

    fn note_mean(&mut self, standing_us: u32) {
        if standing_us == u32::MAX {
            return;
        }
        let standing_us = standing_us as f32;
        if self.mean_us == 0.0 {
            self.mean_us = standing_us;
        }
        self.mean_us += (standing_us - self.mean_us) / MEAN_SAMPLES;
    }

    /// A quarter of a round trip had this least. Only what turns back at once counts: a queue rises or falls for longer.
    fn note_noise(&mut self, standing_us: u32, is_steady: bool) {
        if standing_us == u32::MAX {
            return;
        }
        let then = core::mem::replace(&mut self.standing_then_us, standing_us);
        let change = standing_us as i32 - then as i32;
        let change_then = core::mem::replace(&mut self.change_us, change);
        if !is_steady {
            // Our own doing.
            self.change_us = 0;
            return;
        }
        let turns = (change < 0) != (change_then < 0);
        let noise = change.abs().min(change_then.abs()) as f32;
        self.noise_us += (noise * f32::from(u8::from(turns)) - self.noise_us) / 64.0;
    }

    /// A quarter of a round trip had this least, and we had nothing in the queue.
    fn note_clear(&mut self, standing_us: f32) {
        if self.clear_us == 0.0 {
            self.clear_us = standing_us;
        }
        let off = standing_us - self.clear_us;
        self.clear_us += off / CLEAR_SAMPLES;
        self.deviation_us += (off.abs() - self.deviation_us) / CLEAR_SAMPLES;
    }

    /// The same may show later. If the delay fell when more came back, somebody else's queue has gone.
    fn look_back(&mut self, standing_us: u32, sample: &Sample) {
        let Some(rate_max) = sample.rate_max else {
            self.hindsight = Hindsight::default();
            return;
        };
        if standing_us == u32::MAX || !sample.is_steady {
            return;
        }
        let seen = self.hindsight.look_back(standing_us as f32, rate_max);
        if let Some(seen) = seen.filter(|seen| self.mean_us >= seen.mean_us - seen.deviation_us) {
            self.clear_us = seen.mean_us;
            self.deviation_us = self.deviation_us.max(seen.deviation_us);
        }
    }

    /// What wanders slower than that: the mean over the least, and a deviation, so that a window that fits the path rises more
    /// often than it falls.
    fn wander_us(&self) -> f64 {
        let deviation = self.path_deviation_us();
        let mean = f64::from(self.clear_us) - self.least_us();
        (mean.clamp(0.0, deviation * DEVIATIONS_MAX) + deviation).min(WANDER_MAX_US)
    }

    /// What stood in the queue, mostly, while nothing of ours did. It may have been somebody's.
    pub(super) fn clear_queue_us(&self) -> f64 {
        let mean = f64::from(self.clear_us) - self.least_us();
        mean.max(0.0) + self.path_deviation_us()
    }

    fn path_deviation_us(&self) -> f64 {
        let of_quiet_us = if self.varies {
            0.0
        } else {
            DEVIATION_OF_QUIET_US
        };
        (f64::from(self.deviation_us) - of_quiet_us).max(0.0)
    }

    /// When packets as large as the largest were last measured, to a quarter of a round trip.
    pub(super) const fn measured_at(&self) -> Instant {
        self.standing.began
    }

    pub(super) const fn is_known(&self) -> bool {
        self.smoothed_us > 0
    }

    pub(super) fn smoothed(&self) -> Duration {
        Duration::from_micros(u64::from(self.smoothed_us))
    }

    /// The least round trip has not been seen for a while, and will be forgotten.
    pub(super) fn is_least_stale(&self, now: Instant) -> bool {
        now.since(self.least_at) > STALE
    }

    pub(super) fn least_us(&self) -> f64 {
        f64::from(self.least.get_us())
    }

    pub(super) fn standing_us(&self) -> f64 {
        f64::from(self.standing.get_us())
    }

    /// After how long what left makes room for more: the round trip, and what both sides wait for to look.
    pub(super) fn turn_us(&self) -> f64 {
        self.standing_us() + f64::from(self.gathered_us)
    }

    /// For how long what stands is looked at, at least: a quarter of a round trip, or what is answered together.
    pub(super) fn looks_for(&self) -> Duration {
        let us = (self.smoothed_us / 4).max(self.gathered_us);
        Duration::from_micros(u64::from(us))
    }

    pub(super) fn largest_us(&self) -> f64 {
        f64::from(u32::MAX - self.largest.get_us())
    }

    /// The longest that stood in the queue in the last round trips.
    pub(super) fn longest_queue_us(&self) -> f64 {
        (self.largest_us() - self.least_us()).max(0.0)
    }

    /// By how much the largest of some round trips exceeds the least without a queue.
    pub(super) fn spread_us(&self) -> f64 {
        self.wander_us() + LARGEST_DEVIATIONS * self.path_deviation_us()
    }

    /// The queue at which the start ends.
    pub(super) fn start_queue_us(&self) -> f64 {
        let (least_us, most_us) = START_QUEUE_US;
        (self.least_us() / START_QUEUE_DIVISOR).clamp(least_us, most_us)
    }

    /// What stands in the queue; 0 before it is known.
    pub(super) fn queue_us(&self) -> f64 {
        (self.standing_us() - self.least_us()).max(0.0)
    }

    /// What stands in the queue, less what the path itself varies by. A paced window cannot change a queue by more than a few
    /// percent of the time that passes, and half a packet's time (`packet_us`); what changes faster is a radio's doing, and
    /// no reason to slow down. Where the path wanders, a queue is one when it stands for a round trip: else each jump of a radio ends what
    /// the window has risen by.
    pub(super) fn own_queue_us(&self, packet_us: f64) -> f64 {
        let own = SLOPE * f64::from(self.smoothed_us) / 4.0 + (packet_us / 2.0).min(OWN_MAX_US);
        let noise = NOISE_GAIN * (f64::from(self.noise_us) - own).max(0.0);
        let wander = self.wander_us();
        let queue = if wander > 0.0 {
            (f64::from(self.mean_us) - self.least_us()).min(self.queue_us())
        } else {
            self.queue_us()
        };
        (queue - noise.min(NOISE_MAX_US).max(wander)).max(0.0)
    }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(nanos(span) / 1000).unwrap_or(u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_forgotten_after_two_spans() {
        let mut least = Least::default();
        let span = Duration::from_millis(100);
        let at = |ms: u64| Instant::from_micros(ms * 1000);
        least.record(at(1000), 50, span);
        for (ms, expected) in [(1050, 50), (1100, 50), (1199, 50), (1200, 70)] {
            least.record(at(ms), 70, span);
            assert_eq!(least.get_us(), expected, "{ms}");
        }
        least.record(at(1500), 90, span);
        assert_eq!(
            least.get_us(),
            90,
            "after a silence only what is new counts"
        );
    }

    /// A download whose packets grew step by step from a game's small ones to full size took their transmission time for a rival's
    /// queue, and stayed at a quarter of the rate (`mixed-game.toml`, seed 122).
    #[test]
    fn packets_that_grow_step_by_step_are_not_compared_with_small_ones() {
        let mut delays = Delays::default();
        let mut bytes = 100u16;
        for step in 0..400u64 {
            // A byte takes a microsecond on top of 130 ms.
            let sample = Sample {
                took: Duration::from_micros(130_000 + u64::from(bytes)),
                waited: Duration::ZERO,
                smoothed: Duration::from_millis(131),
                bytes,
                gathered: Duration::ZERO,
                rate: 0.0,
                span: Duration::from_millis(30),
                is_steady: true,
                is_clear: false,
                varies: false,
                rate_max: None,
            };
            delays.record(Instant::from_micros(1_000_000 + step * 10_000), &sample);
            bytes = (bytes + bytes / 10).min(1472);
        }
        assert!(delays.queue_us() < 200.0, "{}", delays.queue_us());
    }

    /// A live stream bundled with small messages makes packets of many sizes. Each larger one made the least round trip be forgotten, so that a full
    /// queue was the path (`live-beside-cubic.toml`).
    #[test]
    fn packets_of_many_sizes_do_not_hide_a_queue() {
        for rate in [0.0, 1e6] {
            let mut delays = Delays::default();
            for step in 0..4000u64 {
                let queue_ms = if step < 100 { 0 } else { 40 };
                let sample = Sample {
                    took: Duration::from_millis(40 + queue_ms),
                    waited: Duration::ZERO,
                    smoothed: Duration::from_millis(40 + queue_ms),
                    bytes: [1035, 1110, 1201][step as usize % 6 / 2],
                    gathered: Duration::ZERO,
                    rate,
                    span: Duration::from_millis(10),
                    is_steady: true,
                    is_clear: false,
                    varies: false,
                    rate_max: None,
                };
                delays.record(Instant::from_micros(1_000_000 + step * 2_000), &sample);
            }
            assert!(delays.queue_us() > 39_000.0, "{}", delays.queue_us());
        }
    }

    /// The first packet of a size may find a queue that is there: another size has seen the path without it.
    #[test]
    fn a_size_that_comes_late_finds_the_queue_that_others_know() {
        for (first, then, most_us) in [(1472u16, 1300u16, 0), (1300, 1472, 2_400)] {
            let mut delays = Delays::default();
            for step in 0..1000u64 {
                let is_late = step >= 100;
                let took_ms = if is_late { 90 } else { 40 };
                let sample = Sample {
                    took: Duration::from_millis(took_ms),
                    waited: Duration::ZERO,
                    smoothed: Duration::from_millis(took_ms),
                    bytes: if is_late { then } else { first },
                    gathered: Duration::ZERO,
                    rate: 125e3,
                    span: Duration::from_millis(10),
                    is_steady: true,
                    is_clear: false,
                    varies: false,
                    rate_max: None,
                };
                delays.record(Instant::from_micros(1_000_000 + step * 2_000), &sample);
            }
            let hidden_us = 50_000.0 - delays.queue_us();
            assert!(
                (0.0..=f64::from(most_us)).contains(&hidden_us),
                "{hidden_us}"
            );
        }
    }
}
