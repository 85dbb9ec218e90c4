//! The few probabilities that look-ups, stopgap and prediction share. Only `+ - * /` and `libm`, so equal on every target.

use crate::limits::SOURCE_SYMBOLS_MAX;

/// A loss as a probability: within 0..=1, and 1 when it is not a number.
pub(crate) fn loss_within_bounds(loss: f32) -> f64 {
    if loss.is_nan() {
        1.0
    } else {
        f64::from(loss.clamp(0.0, 1.0))
    }
}

/// `base` to the power of `exponent`, by squaring.
pub(crate) fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        // A factor of 1 instead of a branch, which no processor could foresee.
        result *= if exponent & 1 == 1 { base } else { 1.0 };
        base *= base;
        exponent >>= 1;
    }
    result
}

/// Probability that sending just the deficit in every one of `rounds` rounds misses: 1 - (1 - p^N)^k, since each of the k
/// symbols is then sent until it arrives, at most N times.
pub(crate) fn retransmit_miss(source_symbols: u8, rounds: u16, loss: f64) -> f64 {
    let never_arrives = power(loss, u32::from(rounds));
    // The plain formula would lose all digits where the miss is small against 1.
    -libm::expm1(f64::from(source_symbols) * libm::log1p(-never_arrives))
}

/// Expected symbols that sending just the deficit in every one of `rounds` rounds sends: k (1 + p + .. + p^(N-1)).
pub(crate) fn retransmit_symbols(source_symbols: f64, rounds: u16, loss: f64) -> f64 {
    if loss >= 1.0 {
        return source_symbols * f64::from(rounds);
    }
    source_symbols * (1.0 - power(loss, u32::from(rounds))) / (1.0 - loss)
}

/// Least flight out of which at least `deficit` symbols arrive but for a probability of `miss_target`; `limit` if more were needed.
pub(crate) fn least_flight(deficit: u8, loss: f64, miss_target: f64, limit: u16) -> u16 {
    let needed = u16::from(deficit);
    // The deficit-th arrival is the n-th symbol sent with probability C(n-1, q-1) (1-p)^q p^(n-q): a negative binomial, one
    // multiplication a step.
    let mut exactly = power(1.0 - loss, u32::from(deficit));
    let mut miss = 1.0 - exactly;
    let mut flight = needed;
    while miss > miss_target && flight < limit {
        exactly *= loss * f64::from(flight) / f64::from(flight + 1 - needed);
        miss -= exactly;
        flight += 1;
    }
    flight
}

/// How a flight loses symbols: each with probability `loss`; and where `uneven` is above zero, the share that is lost differs from flight to flight
/// as a beta distribution does, so that the fates of two symbols of a flight have this correlation (below 1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Losses {
    pub(crate) loss: f64,
    pub(crate) uneven: f64,
}

impl Losses {
    /// Probability that so many symbols all arrive. O(symbols) where losses are uneven.
    pub(crate) fn all_arrive(self, symbols: u16) -> f64 {
        if self.uneven <= 0.0 {
            return power(1.0 - self.loss, u32::from(symbols));
        }
        // Of symbols that arrived before it, the share of the flight's good ones is learned (Polya's urn).
        // (Both products by themselves grow as factorials do.)
        let mut arrive = 1.0;
        for before in 0..symbols {
            let grown = f64::from(before) * self.uneven;
            let own = 1.0 - self.uneven;
            arrive *= ((1.0 - self.loss) * own + grown) / (own + grown);
        }
        arrive
    }

    /// Probability that fewer than the deficit arrive of so many symbols. O(symbols).
    pub(crate) fn miss(self, deficit: u16, symbols: u16) -> f64 {
        if symbols < deficit {
            return 1.0;
        }
        let mut completes = self.all_arrive(deficit);
        let mut complete = completes;
        for sent in deficit..symbols {
            completes *= self.grows(deficit, sent);
            complete += completes;
        }
        (1.0 - complete).max(0.0)
    }

    /// How many times as likely the symbol after `sent`, at least the deficit, completes the deficit as the last of `sent` does.
    fn grows(self, deficit: u16, sent: u16) -> f64 {
        let own = 1.0 - self.uneven;
        let (sent, lost) = (f64::from(sent), f64::from(sent - deficit));
        let is_lost = self.loss * own + lost * self.uneven;
        let of = own + sent * self.uneven;
        is_lost * sent / (of * (lost + 1.0))
    }
}

/// The flight with the least symbols and misses, where a miss is worth `price` symbols and nothing follows: how many symbols, at most `limit`, and
/// the probability that fewer than the deficit arrive. O(symbols beyond the deficit), and O(deficit) more where losses are uneven.
pub(crate) fn best_flight(deficit: u16, losses: Losses, price: f64, limit: u16) -> (u16, f64) {
    // As in `least_flight`: each symbol more saves the misses in which the deficit is complete with it. That rises, if at all, before it falls: the
    // best is where it has fallen to what a symbol is worth, or none more.
    let all_arrive = losses.all_arrive(deficit);
    let worth = price.recip();
    let (mut saves, mut saved) = (all_arrive, 0.0);
    let mut flight = deficit;
    while flight < limit {
        let grows = losses.grows(deficit, flight);
        let next = saves * grows;
        if next <= worth && grows < 1.0 {
            break;
        }
        saves = next;
        saved += next;
        flight += 1;
    }
    let missed = 1.0 - all_arrive;
    if price * saved > f64::from(flight - deficit) {
        (flight, (missed - saved).max(0.0))
    } else {
        (deficit, missed)
    }
}

/// Calls `with` with (arrivals, probability) of a flight of `symbols`, of which each arrives with probability `arrives`, for
/// every number of arrivals below `below`.
///
/// The recursion starts at the likelier end, so that no start value underflows and small probabilities keep their digits.
pub(crate) fn arrivals_below(
    symbols: u16,
    arrives: f64,
    below: u16,
    mut with: impl FnMut(u16, f64),
) {
    let lost = 1.0 - arrives;
    let end = below.min(symbols.saturating_add(1));
    if arrives < 0.5 {
        let odds = arrives / lost;
        let mut probability = power(lost, u32::from(symbols));
        for arrived in 0..end {
            with(arrived, probability);
            probability *= odds * f64::from(symbols - arrived) / (f64::from(arrived) + 1.0);
        }
        return;
    }
    let odds = lost / arrives;
    let mut probability = power(arrives, u32::from(symbols));
    for missing in 0..=symbols {
        let arrived = symbols - missing;
        if arrived < end {
            with(arrived, probability);
        }
        probability *= odds * f64::from(arrived) / (f64::from(missing) + 1.0);
    }
}

/// Calls `with` with (source symbols still missing, probability) of a round that sends `missing` source symbols and `repair`
/// repair symbols of them alone, for every number above 0: as many arrived of the repair symbols as are missing of the others
/// would have completed it, fewer are of no use.
pub(crate) fn source_still_missing(
    missing: u8,
    repair: u16,
    arrives: f64,
    mut with: impl FnMut(u8, f64),
) {
    const STATES: usize = SOURCE_SYMBOLS_MAX as usize + 1;
    // Probability that fewer repair symbols arrive than the index says.
    let mut fewer = [0.0; STATES];
    let missing = missing.min(SOURCE_SYMBOLS_MAX);
    let needed = u16::from(missing);
    arrivals_below(repair, arrives, needed, |arrived, probability| {
        fewer[usize::from(arrived) + 1] = probability;
    });
    for count in 1..STATES {
        fewer[count] += fewer[count - 1];
    }
    arrivals_below(needed, arrives, needed, |arrived, probability| {
        let still = needed - arrived;
        with(still as u8, probability * fewer[usize::from(still)]);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn even(loss: f64) -> Losses {
        Losses { loss, uneven: 0.0 }
    }

    /// A regression: of some hundred symbols the probability was no number, and with it no price was one.
    #[test]
    fn of_however_many_symbols_a_probability_is_a_number() {
        for (loss, uneven) in [
            (0.98, 0.02),
            (0.985, 0.085),
            (0.9, 0.2),
            (0.99, 0.5),
            (0.999, 0.995),
        ] {
            let losses = Losses { loss, uneven };
            let mut before = 1.0;
            for symbols in [1, 10, 100, 174, 313, 526, 5000, u16::MAX] {
                let all = losses.all_arrive(symbols);
                assert!((0.0..=before).contains(&all), "{losses:?} {symbols}: {all}");
                before = all;
            }
        }
        // Of two: the mean of the square.
        let two = Losses {
            loss: 0.3,
            uneven: 0.5,
        }
        .all_arrive(2);
        assert!((two - (0.49 + 0.5 * 0.7 * 0.3)).abs() < 1e-12, "{two}");
    }

    #[test]
    fn the_best_flight_is_the_best_of_all() {
        for deficit in [1, 4, 16, 64] {
            for loss in [0.0, 0.001, 0.1, 0.3, 0.6, 1.0] {
                for price in [1.5, 100.0, 1e5] {
                    let value = |flight: u16| {
                        let mut miss = 0.0;
                        arrivals_below(flight, 1.0 - loss, deficit, |_, chance| miss += chance);
                        f64::from(flight) + price * miss
                    };
                    let (best, miss) = best_flight(deficit, even(loss), price, 250);
                    let found = f64::from(best) + price * miss;
                    let least = (deficit..=250).map(value).fold(f64::INFINITY, f64::min);
                    assert!(
                        (found - least).abs() < 1e-6 * price,
                        "{deficit} {loss} {price}: {best} {found} {least}"
                    );
                }
            }
        }
    }

    /// A regression: the search began at the smallest probability that was told apart, where the true one was less: at this loss nothing seemed to be missed.
    #[test]
    fn what_hardly_ever_arrives_is_missed() {
        for (loss, uneven) in [(0.9, 0.005), (0.98, 0.02)] {
            let losses = Losses { loss, uneven };
            let (flight, miss) = best_flight(64, losses, 1e5, 255);
            let expected = losses.miss(64, flight);
            assert!(
                (miss - expected).abs() < 1e-9,
                "{losses:?}: {miss} for {expected}"
            );
            assert!(miss > 0.9, "{losses:?}: {miss} of {flight}");
        }
    }

    /// The search stopped where a symbol more began to save less, before what had been saved was worth what had been sent for it: nothing beyond the
    /// deficit for 13 symbols that come to less.
    #[test]
    fn a_flight_that_pays_only_as_a_whole_is_found() {
        let (flight, miss) = best_flight(15, even(0.4), 16.0, 128);
        assert_eq!(flight, 28);
        assert!(f64::from(flight) + 16.0 * miss < 15.0 + 16.0 * (1.0 - power(0.6, 15)));
    }

    /// The binomial distribution in the mean over a beta distribution of the loss, by sums over many points of it.
    #[test]
    fn uneven_flights_are_binomial_ones_in_the_mean() {
        let (loss, uneven) = (0.2, 0.25);
        let size = (1.0 - uneven) / uneven;
        let (a, b) = (loss * size, (1.0 - loss) * size);
        let points = (0..200_000).map(|at| {
            let p = (f64::from(at) + 0.5) / 200_000.0;
            (p, libm::pow(p, a - 1.0) * libm::pow(1.0 - p, b - 1.0))
        });
        let whole: f64 = points.clone().map(|(_, weight)| weight).sum();
        let losses = Losses { loss, uneven };
        for deficit in [1, 4, 16] {
            for limit in [deficit, deficit + 1, deficit + 6] {
                let (flight, miss) = best_flight(deficit, losses, 1e9, limit);
                assert_eq!(flight, limit);
                let mut expected = 0.0;
                for (p, weight) in points.clone() {
                    arrivals_below(flight, 1.0 - p, deficit, |_, chance| {
                        expected += weight / whole * chance;
                    });
                }
                assert!(
                    (miss - expected).abs() < 2e-3,
                    "{deficit} {limit}: {miss} {expected}"
                );
            }
        }
    }
}
