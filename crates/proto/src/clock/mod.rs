//! The offset between the peer's clock and ours, from four timestamps, with its error bound.
//!
//! A packet leaves at t1 (our clock) and arrives at t2 (the peer's); its acknowledgement leaves at t3 (the peer's) and arrives at
//! t4 (ours). The round trip without the peer's waiting is (t4 - t1) - (t3 - t2), and if both ways took equally long, the offset is
//! ((t2 - t1) + (t3 - t4)) / 2. The sample with the shortest round trip is kept, since it waited in the fewest queues.
//!
//! Two bounds are stated. The *residual* is what queues and drift may have added: it enters margins. The *hard* bound is half
//! the round trip: one way might take all of it, and no measurement between two clocks can show that it does not (decision
//! 0002 says why margins do not use it).
//!
//! Timestamps travel as the lowest 32 bits of microseconds; all of this is arithmetic modulo 2^32, and spans stay far below half
//! of that.

use core::time::Duration;

use crate::time::{Instant, nanos};

/// Quartz drifts by up to 30 us a second (research/fec.md section 1.4: Huygens measures 5-10, at most 30).
const DRIFT_PPM: u64 = 30;

#[derive(Clone, Copy)]
struct Sample {
    /// Peer's clock minus ours, modulo 2^32 microseconds.
    offset_us: u32,
    round_trip: Duration,
    at: Instant,
}

/// What is known of the peer's clock.
#[derive(Default)]
pub(crate) struct ClockOffset {
    best: Option<Sample>,
    round_trip_min: Option<Duration>,
}

/// One exchange of four timestamps.
pub(crate) struct Exchange {
    pub(crate) sent_at: Instant,
    /// The peer's clock when it arrived.
    pub(crate) received_at_us: u32,
    /// How long the peer held the answer back.
    pub(crate) held: Duration,
    pub(crate) answered_at: Instant,
}

impl ClockOffset {
    /// Takes in an exchange.
    pub(crate) fn record(&mut self, exchange: &Exchange) {
        let Some(round_trip) = exchange
            .answered_at
            .since(exchange.sent_at)
            .checked_sub(exchange.held)
        else {
            return;
        };
        let half_us = (nanos(round_trip) / 2_000) as u32;
        let offset_us = exchange
            .received_at_us
            .wrapping_sub(exchange.sent_at.wire_micros())
            .wrapping_sub(half_us);
        let sample = Sample {
            offset_us,
            round_trip,
            at: exchange.answered_at,
        };
        self.round_trip_min = Some(
            self.round_trip_min
                .map_or(round_trip, |min| min.min(round_trip)),
        );
        let is_better = match &self.best {
            None => true,
            Some(best) => self.residual_of(&sample, sample.at) <= self.residual_of(best, sample.at),
        };
        if is_better {
            self.best = Some(sample);
        }
    }

    fn residual_of(&self, sample: &Sample, now: Instant) -> Duration {
        let queued = sample
            .round_trip
            .saturating_sub(self.round_trip_min.unwrap_or(sample.round_trip))
            / 2;
        let drift = Duration::from_nanos(nanos(now.since(sample.at)) / 1_000_000 * DRIFT_PPM);
        // Two clocks that tick in microseconds.
        queued + drift + Duration::from_micros(2)
    }

    /// What queues and drift may have put into the offset; `None` until there is one.
    pub(crate) fn residual(&self, now: Instant) -> Option<Duration> {
        self.best.as_ref().map(|best| self.residual_of(best, now))
    }

    /// The bound that holds however unequal the two ways are: half the round trip besides the residual.
    pub(crate) fn hard_bound(&self, now: Instant) -> Option<Duration> {
        let best = self.best.as_ref()?;
        Some(best.round_trip / 2 + self.residual_of(best, now))
    }

    /// How long a packet that left at `sent_at` took, when the peer says that it arrived at `received_at_us`.
    pub(crate) fn one_way_delay(&self, sent_at: Instant, received_at_us: u32) -> Option<Duration> {
        let best = self.best.as_ref()?;
        let took = received_at_us
            .wrapping_sub(sent_at.wire_micros())
            .wrapping_sub(best.offset_us) as i32;
        Some(Duration::from_micros(took.max(0) as u64))
    }

    /// Peer's clock minus ours in microseconds, modulo 2^32.
    #[cfg(test)]
    fn offset_us(&self) -> Option<u32> {
        self.best.map(|best| best.offset_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(
        t1_us: u64,
        forward_us: u64,
        held_us: u64,
        back_us: u64,
        offset_us: u32,
    ) -> Exchange {
        Exchange {
            sent_at: Instant::from_micros(t1_us),
            received_at_us: ((t1_us + forward_us) as u32).wrapping_add(offset_us),
            held: Duration::from_micros(held_us),
            answered_at: Instant::from_micros(t1_us + forward_us + held_us + back_us),
        }
    }

    #[test]
    fn the_shortest_round_trip_wins_and_the_bound_holds() {
        let mut clock = ClockOffset::default();
        let truth = 0xffff_fff0u32;
        for i in 0..100u64 {
            let queue = (i * 7919) % 20_000;
            clock.record(&exchange(
                1_000_000 + i * 50_000,
                40_000 + queue,
                300,
                40_000,
                truth,
            ));
            let error = clock.offset_us().unwrap().wrapping_sub(truth) as i32;
            let now = Instant::from_micros(1_000_000 + i * 50_000 + 100_000);
            let bound = clock.hard_bound(now).unwrap();
            assert!(u128::from(error.unsigned_abs()) <= bound.as_micros());
        }
        // A newer sample wins over an older one that waited less but may have drifted: the residual says by how much at most.
        let error = clock.offset_us().unwrap().wrapping_sub(truth) as i32;
        let residual = clock.residual(Instant::from_micros(6_050_000)).unwrap();
        assert!(
            u128::from(error.unsigned_abs()) <= residual.as_micros(),
            "{error} against {residual:?}"
        );
        assert!(residual < Duration::from_millis(1));
        let took = clock
            .one_way_delay(
                Instant::from_micros(9_000_000),
                9_055_000u32.wrapping_add(truth),
            )
            .unwrap();
        assert!(took.abs_diff(Duration::from_micros(55_000)) <= residual);
    }

    #[test]
    fn an_old_sample_gives_way() {
        let mut clock = ClockOffset::default();
        clock.record(&exchange(0, 10_000, 0, 10_000, 5));
        // An hour later the clocks have drifted apart by 100 ms, and the round trip is 1 ms longer.
        clock.record(&exchange(3_600_000_000, 10_500, 0, 10_500, 100_005));
        assert_eq!(clock.offset_us(), Some(100_005));
    }

    #[test]
    fn asymmetry_is_within_the_hard_bound_only() {
        let mut clock = ClockOffset::default();
        clock.record(&exchange(0, 250_000, 0, 0, 0));
        let error = Duration::from_micros(u64::from(clock.offset_us().unwrap()));
        let now = Instant::from_micros(250_000);
        assert!(error > clock.residual(now).unwrap());
        assert!(error <= clock.hard_bound(now).unwrap());
    }
}
