//! What serves until a table is ready: the deficit in every round but the last, and in the last the least flight that meets
//! the miss target by itself.
//!
//! Whatever deficit the last round finds, it then fails with probability <= eps, hence so does the whole. The cost is above
//! the optimum's, since it does not trade one deficit against another and ignores that the last round is seldom reached.

use crate::{chance, limits::FLIGHT_MAX};

/// Symbols to send with `rounds_left` rounds to go.
pub(crate) fn symbols(deficit: u8, rounds_left: u16, loss: f64, miss_target: f64) -> u16 {
    if rounds_left > 1 {
        return u16::from(deficit);
    }
    chance::least_flight(deficit, loss, miss_target, FLIGHT_MAX)
}

/// Expected symbols of the stopgap. An upper bound for the optimum, which may do the same.
pub(crate) fn expected_symbols(
    source_symbols: u8,
    rounds: u16,
    loss: f64,
    miss_target: f64,
) -> f64 {
    let before_last = rounds.saturating_sub(1);
    let before = chance::retransmit_symbols(f64::from(source_symbols), before_last, loss);
    // Each symbol is still missing after N - 1 rounds with probability p^(N-1).
    let missing = chance::power(loss, u32::from(before_last));
    let mut last = 0.0;
    chance::arrivals_below(
        u16::from(source_symbols),
        1.0 - missing,
        u16::from(source_symbols),
        |arrived, probability| {
            let deficit = source_symbols - arrived as u8;
            last += probability
                * f64::from(chance::least_flight(deficit, loss, miss_target, FLIGHT_MAX));
        },
    );
    before + last
}
