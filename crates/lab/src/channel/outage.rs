//! When a direction is dark: blackouts at stated times, and outages that come back with a period.

use super::{ChannelSpec, micros};
use crate::chance::{Chance, Purpose};

#[derive(Debug, Clone)]
pub(super) struct Darkness {
    /// Sorted by start, merged.
    blackouts: Vec<(u64, u64)>,
    periodic: Option<Periodic>,
}

impl Darkness {
    /// `shared` is the chance of the path: an outage takes both directions at once.
    pub(super) fn new(spec: &ChannelSpec, shared: Chance) -> Self {
        let mut sorted: Vec<_> = spec
            .blackouts
            .iter()
            .map(|&(start, end)| (micros(start), micros(end)))
            .collect();
        sorted.sort_unstable();
        let mut blackouts: Vec<(u64, u64)> = Vec::with_capacity(sorted.len());
        for (start, end) in sorted {
            match blackouts.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => blackouts.push((start, end)),
            }
        }
        let periodic = spec.outages.as_ref().map(|outages| {
            let period_us = micros(outages.period);
            Periodic {
                period_us,
                length_us: micros(outages.length),
                share: outages.share,
                phase_us: shared.below(period_us, Purpose::Offset, 0, 1),
                shared,
            }
        });
        Self {
            blackouts,
            periodic,
        }
    }

    #[inline]
    pub(super) fn is_dark(&self, at_us: u64) -> bool {
        if !self.blackouts.is_empty() {
            let next = self.blackouts.partition_point(|&(start, _)| start <= at_us);
            if next > 0 && at_us < self.blackouts[next - 1].1 {
                return true;
            }
        }
        self.periodic
            .as_ref()
            .is_some_and(|periodic| periodic.is_dark(at_us))
    }
}

#[derive(Debug, Clone)]
struct Periodic {
    period_us: u64,
    length_us: u64,
    share: f64,
    phase_us: u64,
    shared: Chance,
}

impl Periodic {
    #[inline]
    fn is_dark(&self, at_us: u64) -> bool {
        let shifted = at_us + self.phase_us;
        let number = shifted / self.period_us;
        shifted - number * self.period_us < self.length_us
            && self.shared.share(Purpose::Outage, number, 0) < self.share
    }
}
