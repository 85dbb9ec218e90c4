//! A line through samples of the offset.

use core::time::Duration;

use super::TICKS_US;
use super::sample::Sample;
use crate::time::Instant;

/// What clocks drift by, one standard deviation: quartz by 5 to 10 us a second, at most 30 (Huygens, NSDI 2018).
const DRIFT_PPM: f64 = 15.0;

/// By how much a drift changes within some minutes (warmth, and who slews the clock): what a sample says of the present is off by so much for each second of
/// its age.
const WANDER_PPM: f64 = 0.5;

/// The offset as it changes with time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Where it is known best.
    at: Instant,
    /// There; modulo 2^32.
    offset_us: u32,
    /// That and the drift do not depend on each other.
    offset_variance: f64,
    drift_ppm: f64,
    drift_variance: f64,
}

impl Line {
    /// The least squares, with a drift that is likelier the smaller it is (Bayesian linear regression); `None` of nothing. O(samples).
    ///
    /// A sample errs by about what its queues make it longer than the fastest, and that one by half of what is usual: where ways vary, the fastest has not
    /// been fast enough either.
    pub(super) fn through<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Option<Self> {
        let first = samples.clone().next()?;
        let fastest_us = samples.clone().map(Sample::both_us).min()?;
        let queued = |sample: &Sample| f64::from(sample.both_us() - fastest_us) / 2.0;
        let began = (samples.clone()).map(Sample::at).min()?;
        let newest = (samples.clone()).map(Sample::at).max()?;
        let (count, sum) = (samples.clone()).fold((0.0, 0.0), |(count, sum), sample| {
            (count + 1.0, sum + queued(sample))
        });
        let least = TICKS_US as f64 + sum / count / 2.0;
        // Weight, time, offset.
        let points = samples.map(|sample| {
            let deviation = least + queued(sample);
            let wandered = WANDER_PPM * newest.since(sample.at()).as_secs_f64();
            let offset_us = sample.offset_us().wrapping_sub(first.offset_us()) as i32;
            (
                1.0 / (deviation * deviation + wandered * wandered),
                sample.at().since(began).as_secs_f64(),
                f64::from(offset_us),
            )
        });
        let (mut weight, mut time, mut offset) = (0.0, 0.0, 0.0);
        for (w, x, y) in points.clone() {
            weight += w;
            time += w * x;
            offset += w * y;
        }
        let (time, offset) = (time / weight, offset / weight);
        let (mut along, mut across) = (1.0 / (DRIFT_PPM * DRIFT_PPM), 0.0);
        for (w, x, y) in points.clone() {
            along += w * (x - time) * (x - time);
            across += w * (x - time) * (y - offset);
        }
        // Where they do not lie on a line, they err by more than was thought.
        let misfit = points.fold(0.0, |misfit, (w, x, y)| {
            let off = y - offset - across / along * (x - time);
            misfit + w * off * off
        });
        let worse = (misfit / (count - 1.0).max(1.0)).max(1.0);
        Some(Self {
            at: began + Duration::from_secs_f64(time),
            offset_us: first.offset_us().wrapping_add(offset as i32 as u32),
            offset_variance: worse / weight,
            drift_ppm: across / along,
            drift_variance: worse / along,
        })
    }

    /// Modulo 2^32.
    pub(super) fn offset_us(&self, at: Instant) -> u32 {
        let drifted = self.drift_ppm * self.time_until(at);
        self.offset_us.wrapping_add(drifted as i32 as u32)
    }

    /// Standard deviation of the offset.
    pub(super) fn deviation_us(&self, at: Instant) -> f64 {
        let time = self.time_until(at);
        libm::sqrt(self.offset_variance + time * time * self.drift_variance)
    }

    /// In seconds.
    fn time_until(&self, at: Instant) -> f64 {
        at.since(self.at).as_secs_f64() - self.at.since(at).as_secs_f64()
    }
}
