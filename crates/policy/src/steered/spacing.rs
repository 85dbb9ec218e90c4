//! The last flight of a block where losses come in bursts: how many symbols, and how far apart.
//!
//! Sent together, symbols share their moment: a burst takes all of them, however many. Spread over the time that is left they
//! meet different moments (docs/notes/redundancy.md#bursts: with bursts of 5 ms and one round, four symbols need more than 200 back to back
//! for one miss in a thousand, 9 at 5 ms, 6 at 20 ms). Beyond [`INDEPENDENT`] bursts' lengths nothing is gained.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::Burst;
use crate::limits::SOURCE_SYMBOLS_MAX;
use crate::situation;

/// Lengths of a burst after which fates do not depend on each other. Three would do (e^-3) if the length were known; but packets that far apart only
/// show that it is less, and being in time is what counts, not being early.
const INDEPENDENT: u32 = 12;
/// Symbols that spreading must save.
const WORTH: f64 = 0.05;
/// Symbols beyond the deficit for which a spacing of their own is tried.
const BEYOND: [u16; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 13, 20];
/// Moments for which it is tried to send all that is missing in each. (What a burst takes whole is as good in one moment as in many; and what is needed
/// together is to be there together when the burst is over: two symbols one by one are, only if many are sent.)
const MOMENTS: [u16; 10] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12];

/// A flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) symbols: u16,
    /// So many leave at once, and then none until the next moment.
    pub(crate) together: u16,
    /// Moments that the slack is divided among ([`Task::spacing_of`]); below 2 all leave together.
    pub(crate) moments: u16,
    /// Probability that fewer than the deficit arrive.
    pub(crate) miss: f64,
}

/// Probability that now is a bad moment, by what was heard of last.
pub(crate) fn first_bad(burst: Burst, loss: f64) -> f64 {
    Moments::new(burst, loss).first_bad(&burst)
}

/// What a flight is to do.
pub(crate) struct Task {
    pub(crate) deficit: u8,
    /// Most symbols.
    pub(crate) cap: u16,
    /// Loss of a symbol of which nothing else is known, 0..=1.
    pub(crate) loss: f64,
    /// What was heard of last is in `first_bad`.
    pub(crate) burst: Burst,
    /// Probability that now is a bad moment.
    pub(crate) first_bad: f64,
    /// Time between the first and the last symbol, at most.
    pub(crate) slack: Duration,
    /// Symbols that a miss is worth.
    pub(crate) price: f64,
}

impl Task {
    /// The flight with the least symbols and misses. O(deficit x symbols) for each of some fifteen spacings: decisions look it up in `found.rs`.
    pub(crate) fn best(&self) -> Spread {
        let mut best = self.best_at(1, 0, 1..=self.cap);
        let mut consider = |spread: Spread| {
            if self.value(&spread) + WORTH < self.value(&best) {
                best = spread;
            }
        };
        for beyond in BEYOND {
            let symbols = (u16::from(self.deficit) + beyond).max(2);
            if symbols > self.cap {
                break;
            }
            consider(self.best_at(1, symbols, 1..=symbols));
        }
        let all = u16::from(self.deficit);
        for moments in MOMENTS {
            if all == 1 || moments * all > self.cap {
                break;
            }
            let symbols = moments * all;
            consider(self.best_at(all, moments, symbols..=symbols));
        }
        best
    }

    /// Probability that a moment so long after a bad one is bad.
    pub(crate) fn bad_after_bad(&self, time: Duration) -> f64 {
        Moments::new(self.burst, self.loss).after(time).0
    }

    /// Symbols and misses (in symbols) of a flight of so many, so many of which leave together, so far apart.
    pub(super) fn worth(&self, symbols: u16, together: u16, spacing: Duration) -> f64 {
        f64::from(symbols) + self.price * self.miss_of(symbols, together, spacing)
    }

    /// Probability that fewer than the deficit arrive of so many symbols, so many of which leave together, so far apart. O(deficit x symbols).
    pub(super) fn miss_of(&self, symbols: u16, together: u16, spacing: Duration) -> f64 {
        let needed = self.needed();
        if symbols < needed {
            return 1.0;
        }
        let path = Moments::new(self.burst, self.loss);
        let mut flight = Flight::new(&path, spacing, self.first_bad, needed, symbols);
        for sent in 0..symbols {
            flight.send(sent.is_multiple_of(together.max(1)));
        }
        flight.miss()
    }

    fn needed(&self) -> u16 {
        self.deficit.clamp(1, SOURCE_SYMBOLS_MAX).into()
    }

    /// The time between so many moments: as far apart as helps, and the slack allows.
    pub(super) fn spacing_of(&self, moments: u16) -> Duration {
        if moments < 2 {
            return Duration::ZERO;
        }
        // (As everywhere, bursts last for a moment at least: what is found to be best kept apart would leave together.)
        let lasts = self.burst.lasts.max(Duration::from_micros(1));
        let far = lasts.saturating_mul(INDEPENDENT);
        (self.slack / u32::from(moments - 1)).min(far)
    }

    fn value(&self, spread: &Spread) -> f64 {
        f64::from(spread.symbols) + self.price * spread.miss
    }

    /// The best number of symbols within `counts`, at least the deficit, of which so many leave together, as far apart as so many moments are.
    fn best_at(&self, together: u16, moments: u16, counts: RangeInclusive<u16>) -> Spread {
        let spacing = self.spacing_of(moments);
        let needed = self.needed();
        let most = (*counts.end()).max(needed);
        let path = Moments::new(self.burst, self.loss);
        let mut flight = Flight::new(&path, spacing, self.first_bad, needed, most);
        let mut best: Option<Spread> = None;
        for symbols in 1..=most {
            flight.send((symbols - 1).is_multiple_of(together));
            if symbols < needed.max(*counts.start()) {
                continue;
            }
            let spread = Spread {
                symbols,
                together,
                moments,
                miss: flight.miss(),
            };
            if best.is_none_or(|best| self.value(&spread) < self.value(&best)) {
                best = Some(spread);
            }
            if best.is_some_and(|best| f64::from(symbols) >= self.value(&best)) {
                break;
            }
        }
        best.unwrap_or(Spread {
            symbols: needed,
            together,
            moments,
            miss: 1.0,
        })
    }
}

/// The path as moments that are bad or good: a bad one takes everything, a good one takes symbols one by one. (With a chain of the
/// symbols' own fates, many symbols sent at once would seem to outlast a burst.)
struct Moments {
    /// Share of bad moments.
    bad: f64,
    lost_when_good: f64,
    /// Of those that saw a loss.
    bad_when_lost: f64,
    lasts: Duration,
}

impl Moments {
    fn new(burst: Burst, loss: f64) -> Self {
        let (bad, lost_when_good) = burst.moments(loss);
        Self {
            bad,
            lost_when_good,
            bad_when_lost: f64::from(burst.correlation).clamp(0.0, 1.0),
            lasts: burst.lasts,
        }
    }

    /// Probability that a moment is bad this long after a bad one, and after a good one.
    fn after(&self, time: Duration) -> (f64, f64) {
        let kept = self.kept(time);
        (self.bad + (1.0 - self.bad) * kept, self.bad * (1.0 - kept))
    }

    /// Probability that now is a bad moment, by what was heard of last.
    fn first_bad(&self, burst: &Burst) -> f64 {
        let then = if burst.was_lost {
            self.bad_when_lost
        } else {
            0.0
        };
        self.bad + (then - self.bad) * self.kept(burst.age)
    }

    /// What is left of a moment's influence after this time.
    fn kept(&self, time: Duration) -> f64 {
        situation::kept(self.lasts, time)
    }
}

const COUNTS: usize = SOURCE_SYMBOLS_MAX as usize;

/// What becomes of the symbols of a flight, one after the other. It counts arrivals or losses, whichever there are fewer of: of 64 symbols and
/// some for repair, losses.
struct Flight {
    needed: u16,
    sent: u16,
    counts_losses: bool,
    /// Counts that are kept apart; of arrivals, `needed` of them are enough, of losses, more are too many.
    counts: usize,
    /// Probability of so many and a bad moment, or a good one.
    bad: [f64; COUNTS],
    good: [f64; COUNTS],
    /// That enough have arrived, where arrivals are counted.
    complete: f64,
    stays_bad: f64,
    turns_bad: f64,
    lost_when_good: f64,
}

impl Flight {
    fn new(moments: &Moments, spacing: Duration, first_bad: f64, needed: u16, most: u16) -> Self {
        let may_be_lost = usize::from(most - needed) + 1;
        let (stays_bad, turns_bad) = moments.after(spacing);
        let mut flight = Self {
            needed,
            sent: 0,
            counts_losses: may_be_lost < usize::from(needed),
            counts: may_be_lost.min(usize::from(needed)),
            bad: [0.0; COUNTS],
            good: [0.0; COUNTS],
            complete: 0.0,
            stays_bad,
            turns_bad,
            lost_when_good: moments.lost_when_good,
        };
        flight.bad[0] = first_bad;
        flight.good[0] = 1.0 - first_bad;
        flight
    }

    /// One symbol more, in the same moment as the one before or not. O(counts).
    fn send(&mut self, is_apart: bool) {
        if self.sent > 0 && is_apart {
            for (bad, good) in self.bad.iter_mut().zip(&mut self.good).take(self.counts) {
                let turned = *bad * (1.0 - self.stays_bad);
                let spoilt = *good * self.turns_bad;
                *bad += spoilt - turned;
                *good += turned - spoilt;
            }
        }
        self.sent += 1;
        for count in (0..self.counts).rev() {
            let lost = self.good[count] * self.lost_when_good;
            let arrives = self.good[count] - lost;
            if self.counts_losses {
                self.good[count] = arrives;
                let bad = core::mem::take(&mut self.bad[count]);
                // One more would be too many.
                if count + 1 < self.counts {
                    self.bad[count + 1] = bad;
                    self.good[count + 1] += lost;
                }
                continue;
            }
            self.good[count] = lost;
            if count + 1 == self.counts {
                self.complete += arrives;
            } else {
                // The count above was dealt with before.
                self.good[count + 1] += arrives;
            }
        }
    }

    /// Probability that too few have arrived.
    fn miss(&self) -> f64 {
        let complete = if self.counts_losses {
            let may_be_lost = usize::from(self.sent - self.needed);
            let kept = self.bad.iter().zip(&self.good).take(may_be_lost + 1);
            kept.map(|(bad, good)| bad + good).sum()
        } else {
            self.complete
        };
        (1.0 - complete).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance;

    #[test]
    fn counting_losses_is_counting_arrivals() {
        let task = task(0.7, 8, 4000.0);
        let moments = Moments::new(task.burst, task.loss);
        let spacing = Duration::from_millis(3);
        for needed in [1, 4, 20, 60] {
            for beyond in [0, 1, 5, 30] {
                let most = needed + beyond;
                let mut by_fewer = Flight::new(&moments, spacing, 0.02, needed, most);
                let mut by_arrivals = Flight {
                    counts_losses: false,
                    counts: usize::from(needed),
                    ..Flight::new(&moments, spacing, 0.02, needed, most)
                };
                for sent in 1..=most {
                    by_fewer.send(true);
                    by_arrivals.send(true);
                    if sent >= needed {
                        let (one, other) = (by_fewer.miss(), by_arrivals.miss());
                        assert!((one - other).abs() < 1e-9, "{needed} {sent}: {one} {other}");
                    }
                }
            }
        }
    }

    fn task(correlation: f32, lasts_ms: u64, price: f64) -> Task {
        let burst = Burst {
            correlation,
            lasts: Duration::from_millis(lasts_ms),
            age: Duration::from_secs(9),
            ..Burst::default()
        };
        Task {
            deficit: 4,
            cap: 250,
            loss: 0.02,
            burst,
            first_bad: first_bad(burst, 0.02),
            slack: Duration::from_millis(400),
            price,
        }
    }

    /// docs/notes/redundancy.md#bursts, at one miss in a thousand.
    #[test]
    fn spreading_over_bursts_takes_as_many_symbols_as_without_bursts() {
        // In the Gilbert model all is lost within a burst.
        let bursty = task(0.98, 5, 4000.0);
        let best = bursty.best();
        assert!(best.miss < 1e-3 && best.symbols <= 8, "{best:?}");
        assert!(
            bursty.spacing_of(best.moments) >= Duration::from_millis(10),
            "{best:?}"
        );
        let together = bursty.best_at(1, 0, 1..=250);
        assert!(
            together.miss > 1e-3 || together.symbols > 40,
            "{together:?}"
        );
    }

    /// A regression: two symbols at the end of the slack took 22 one by one, 2 ms apart, which filled the window of a session that nothing was answered
    /// for, so that others came too late (recorded Starlink, k = 2).
    #[test]
    fn what_is_missing_together_leaves_together() {
        let outage = Task {
            deficit: 2,
            slack: Duration::from_millis(130),
            ..task(0.98, 120, 32_000.0)
        };
        let best = outage.best();
        assert_eq!(best.together, 2);
        let last =
            outage.spacing_of(best.moments) * u32::from(best.symbols.div_ceil(best.together) - 1);
        assert!(last > Duration::from_millis(125), "{best:?}");
        let one_by_one = outage.best_at(1, best.symbols, 1..=best.symbols);
        assert!(one_by_one.miss > 1.1 * best.miss, "{one_by_one:?} {best:?}");
        assert!(best.symbols <= 16, "{best:?}");
    }

    #[test]
    fn independent_losses_are_not_spread() {
        let best = task(0.0, 0, 4000.0).best();
        assert_eq!(best.moments, 0);
        let mut missed = 0.0;
        chance::arrivals_below(best.symbols, 0.98, 4, |_, probability| {
            missed += probability;
        });
        assert!((missed - best.miss).abs() < 1e-12, "a binomial then");
    }

    #[test]
    fn a_worthless_miss_gets_the_deficit() {
        let best = task(0.9, 20, 1.0).best();
        assert_eq!((best.symbols, best.moments), (4, 0));
    }
}
