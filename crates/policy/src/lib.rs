//! How many symbols of a message to send in a round, and when to look again.
//!
//! A message is cut into `k` equal source symbols; any `k` distinct symbols (source or repair) rebuild it. A *round* is one
//! transmission opportunity. Each round a [`Policy`] sees the *deficit* (symbols still needed) and answers how many symbols to
//! send now, so that the share of messages that miss their deadline stays below the *miss target* at the least cost.
//!
//! This crate is pure: no clock, no socket, no randomness of its own. Everything here runs without `std`; the solver that
//! fills the tables is behind the feature `solve` (on by default).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use core::time::Duration;

/// Most source symbols that one block may have.
pub const SOURCE_SYMBOLS_MAX: u8 = 64;

/// What a policy sees when it decides about one block of one message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Situation {
    /// k, the source symbols of the block, 1..=64.
    pub source_symbols: u8,
    /// Symbols still needed to rebuild the block, 1..=k. Symbols on the way are not subtracted.
    pub deficit: u8,
    /// Symbols sent that are neither acknowledged nor known to be lost.
    pub unaccounted: u16,
    /// Symbols of the block sent so far; 0 before the first flight.
    pub sent: u16,
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
        Self { symbols, spacing: Duration::ZERO, look_again: None }
    }
}

/// Decides how much redundancy a message gets. A value behind this trait, so that tests, the lab and users can swap it.
pub trait Policy: Send + Sync {
    /// The name used in reports, such as `exact`.
    fn name(&self) -> &'static str;

    /// What to send now. Pure: equal situations give equal answers once the policy's tables are ready.
    fn decide(&self, situation: &Situation) -> Action;

    /// Expected symbols sent for a block of `source_symbols` with `rounds` rounds under loss `loss`, for choosing k.
    fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32;
}
