//! The offset between the two clocks over a whole measurement, from four timestamps, with its bounds. Unlike the session's own
//! (punctual-proto, `clock/`, a line through the samples so far) it has hindsight: an exchange serves the packets before it as well.
//!
//! Each exchange gives an offset that is right if both ways took equally long. What queues put into it is at most half of what
//! its round trip lies above the least one; what drift adds grows with the time from it. For each packet the exchange with the
//! least sum of both is taken.

use std::time::Duration;

use punctual_proto::Instant;

/// Quartz drifts by up to 30 us a second against another.
const DRIFT_PPM: u64 = 30;

/// How far one-way delays can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The most that queues and drift may have added, if both ways are equally long when nothing waits: the error of changes.
    pub residual: Duration,
    /// The most by which one-way delays can be wrong at all: half the least round trip besides. If one way takes all of
    /// it, nothing between two clocks can show it. Round trips are not concerned.
    pub bound: Duration,
}

/// A probe and its echo.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) at: Instant,
    /// The server's clock less ours, modulo 2^32 us.
    offset_us: u32,
    rtt: Duration,
}

impl Exchange {
    /// `arrived_us`: the server's clock when the probe came; `rtt`: without what the server held.
    pub(super) fn new(departed: Instant, arrived_us: u32, rtt: Duration) -> Self {
        let half_us = (rtt.as_nanos() / 2_000) as u32;
        Self {
            at: departed,
            offset_us: arrived_us
                .wrapping_sub(departed.as_micros() as u32)
                .wrapping_sub(half_us),
            rtt,
        }
    }
}

/// All exchanges that are of use, in order of time.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    exchanges: Vec<Exchange>,
    /// For each, the best of those up to it, and the best of those from it on.
    best: Vec<[u32; 2]>,
    rtt_min: Duration,
    residual_max: Duration,
}

impl Offsets {
    /// Takes exchanges in; forgets those that will never be the best for any time.
    pub(super) fn add(&mut self, new: impl IntoIterator<Item = Exchange>) {
        self.exchanges.extend(new);
        self.exchanges.sort_by_key(|exchange| exchange.at);
        self.find_best();
        let is_of_use = |i: usize| self.best[i].contains(&(i as u32));
        let kept = (0..self.exchanges.len()).filter(|&i| is_of_use(i));
        self.exchanges = kept.map(|i| self.exchanges[i]).collect();
        self.find_best();
    }

    fn find_best(&mut self) {
        let rtts = self.exchanges.iter().map(|exchange| exchange.rtt);
        self.rtt_min = rtts.min().unwrap_or_default();
        let count = self.exchanges.len();
        let mut best = vec![[0; 2]; count];
        let mut before = 0;
        for (i, best) in best.iter_mut().enumerate() {
            if self.residual_of(i, i) <= self.residual_of(before, i) {
                before = i;
            }
            best[0] = before as u32;
        }
        let mut after = count.saturating_sub(1);
        for (i, best) in best.iter_mut().enumerate().rev() {
            if self.residual_of(i, i) <= self.residual_of(after, i) {
                after = i;
            }
            best[1] = after as u32;
        }
        self.best = best;
    }

    /// What exchange `i` may be off by at the time of exchange `j`.
    fn residual_of(&self, i: usize, j: usize) -> Duration {
        self.residual(&self.exchanges[i], self.exchanges[j].at)
    }

    fn residual(&self, exchange: &Exchange, at: Instant) -> Duration {
        let apart = at.since(exchange.at).max(exchange.at.since(at));
        let drift = Duration::from_nanos((apart.as_nanos() as u64) / 1_000_000 * DRIFT_PPM);
        // Two clocks that tick in microseconds.
        (exchange.rtt - self.rtt_min) / 2 + drift + Duration::from_micros(2)
    }

    /// How long a packet took that left at `departed` and came at `arrived_us` of the server's clock; `None` without any exchange.
    pub(super) fn one_way(&mut self, departed: Instant, arrived_us: u32) -> Option<Duration> {
        let next = self
            .exchanges
            .partition_point(|exchange| exchange.at < departed);
        let before = next.checked_sub(1).map(|i| self.best[i][0] as usize);
        let after = self.best.get(next).map(|best| best[1] as usize);
        let candidates = [before, after].into_iter().flatten();
        let residuals = candidates.map(|i| (self.residual(&self.exchanges[i], departed), i));
        let (residual, i) = residuals.min()?;
        self.residual_max = self.residual_max.max(residual);
        let took_us = arrived_us
            .wrapping_sub(departed.as_micros() as u32)
            .wrapping_sub(self.exchanges[i].offset_us) as i32;
        Some(Duration::from_micros(took_us.max(0) as u64))
    }

    /// How far what [`one_way`](Self::one_way) answered so far can be trusted; `None` without any exchange.
    pub(super) fn clocks(&self) -> Option<Clocks> {
        self.exchanges.first()?;
        Some(Clocks {
            residual: self.residual_max,
            bound: self.residual_max + self.rtt_min / 2,
        })
    }
}
