//! What a policy sees and what it answers.

use core::time::Duration;

/// What a policy sees when it decides about one block of one message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Situation {
    /// k, the source symbols of the block, 1..=64.
    pub source_symbols: u8,
    /// What the policy counts ([`crate::Policy::counts`]), 1..=k: symbols still needed to rebuild the block, or source symbols
    /// that are not acknowledged. Symbols on the way are not subtracted.
    pub deficit: u8,
    /// Symbols sent that are neither acknowledged nor known to be lost.
    pub unaccounted: u16,
    /// Symbols of the block sent so far; 0 before the first flight.
    pub sent: u16,
    /// Rounds that were available when the first flight was sent. It names the table, and stays as it is for the whole block.
    pub rounds_planned: u16,
    /// Rounds, this one included, whose symbols can still arrive in time; 0 when it is too late for any.
    pub rounds_left: u16,
    /// Upper credible bound of the probability that a symbol sent now is lost, 0..=1.
    pub loss: f32,
    /// Uniform over all values, fixed for the message: mixed policies draw with it, once a message.
    pub draw: u32,
    /// Time left until the deadline.
    pub time_left: Duration,
    /// Time after which missing feedback means loss.
    pub round_time: Duration,
    /// Smoothed round-trip time and its mean deviation, both as in RFC 9002 section 5.3; zero when nothing is known.
    pub rtt: Duration,
    /// See `rtt`.
    pub rtt_deviation: Duration,
}

impl Situation {
    /// Before the first flight of a block, with a draw of 0 and no clock: what reports and tests begin with.
    #[must_use]
    pub const fn first(source_symbols: u8, rounds: u16, loss: f32) -> Self {
        Self {
            source_symbols,
            deficit: source_symbols,
            unaccounted: 0,
            sent: 0,
            rounds_planned: rounds,
            rounds_left: rounds,
            loss,
            draw: 0,
            time_left: Duration::ZERO,
            round_time: Duration::ZERO,
            rtt: Duration::ZERO,
            rtt_deviation: Duration::ZERO,
        }
    }
}

/// What a policy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Symbols to send in this round. Fewer than the deficit gives the round up; more adds repair symbols.
    pub symbols: u16,
    /// Time between two symbols of the flight; zero sends them back to back.
    pub spacing: Duration,
    /// When to look again if no feedback settles the round before; the round time when `None`.
    pub look_again: Option<Duration>,
}

impl Action {
    /// A flight of `symbols` sent back to back, looked at again after a round time.
    #[must_use]
    pub const fn burst(symbols: u16) -> Self {
        Self {
            symbols,
            spacing: Duration::ZERO,
            look_again: None,
        }
    }
}
