//! The dynamic programme for one price of a miss: the best action for each number of rounds left and each deficit.
//!
//! V(s, q) = min over a of a + E V(s - 1, max(0, q - arrivals of a)), with V(s, 0) = 0 and V(0, q > 0) = price
//! (design, section 5; the paper's equation 5 divided by its lambda, so that a price reads as symbols a miss).
//!
//! The expectation over a symbols is had from that over a - 1: the last symbol arrives or does not,
//! E_a(q) = (1-p) E_(a-1)(q-1) + p E_(a-1)(q). So every action costs two multiplications a deficit, all actions are tried, and
//! nothing is assumed about the shape of V.

use alloc::vec::Vec;
use core::mem;

use super::Rule;
use crate::limits::{FLIGHT_MAX, SOURCE_SYMBOLS_MAX};

/// Deficits 0..=64.
const STATES: usize = SOURCE_SYMBOLS_MAX as usize + 1;

/// By deficit.
type Column = [f64; STATES];

/// Values closer than this share count as equal. Rounding differs by about 1e-15.
const TIE: f64 = 1e-13;

/// Below this an expectation is taken as 0: the arithmetic would slow down hundredfold on denormal numbers.
const VANISHED: f64 = 1e-250;

/// What is solved: the channel, the block and what the policy may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Game {
    pub(crate) loss: f64,
    pub(crate) source_symbols: u8,
    pub(crate) rounds: u16,
    pub(crate) rule: Rule,
}

/// A policy for one game: actions by rounds left 1..=N, then by deficit 1..=k; and what it leads to from the full deficit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) actions: Vec<u8>,
    pub(crate) cost: f64,
    pub(crate) miss: f64,
}

/// What is best in one state, and what it leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) symbols: u8,
    /// Probability of a miss.
    pub(crate) miss: f64,
    /// Expected symbols, misses at their price included.
    pub(crate) value: f64,
}

/// One number of rounds left, solved.
#[derive(Clone)]
struct Row {
    actions: [u8; STATES],
    value: Column,
    miss: Column,
}

/// Solves games; keeps its memory between them.
pub(crate) struct Trellis {
    rows: Vec<Row>,
}

impl Trellis {
    pub(crate) fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// Solves `game` at `price` symbols a miss; returns the expected symbols and the miss probability of the best policy.
    pub(crate) fn solve(&mut self, game: &Game, price: f64) -> (f64, f64) {
        let rounds = usize::from(game.rounds);
        self.rows
            .resize(self.rows.len().max(rounds + 1), Row::at_the_end(0.0));
        self.rows[0] = Row::at_the_end(price);
        for left in 1..=rounds {
            let (after, now) = self.rows.split_at_mut(left);
            now[0].solve(&after[left - 1], game, price);
        }
        let (last, full) = (&self.rows[rounds], usize::from(game.source_symbols));
        (last.value[full] - price * last.miss[full], last.miss[full])
    }

    /// What `solve` has just found for a number of rounds left and a deficit, both within the game's.
    pub(crate) fn state(&self, left: u16, deficit: usize) -> State {
        let row = &self.rows[usize::from(left)];
        State {
            symbols: row.actions[deficit],
            miss: row.miss[deficit],
            value: row.value[deficit],
        }
    }

    /// The policy that `solve` has just found.
    pub(crate) fn plan(&self, game: &Game, (cost, miss): (f64, f64)) -> Plan {
        let rows = &self.rows[1..=usize::from(game.rounds)];
        let by_deficit = 1..=usize::from(game.source_symbols);
        let actions = rows
            .iter()
            .flat_map(|row| &row.actions[by_deficit.clone()])
            .copied()
            .collect();
        Plan {
            actions,
            cost,
            miss,
        }
    }
}

impl Row {
    /// No round left: whatever is still needed is missed.
    fn at_the_end(price: f64) -> Self {
        let mut row = Self {
            actions: [0; STATES],
            value: [price; STATES],
            miss: [1.0; STATES],
        };
        (row.value[0], row.miss[0]) = (0.0, 0.0);
        row
    }

    /// Finds the best actions for one round more than `after` has.
    fn solve(&mut self, after: &Self, game: &Game, price: f64) {
        let full = usize::from(game.source_symbols);
        let mut search = Search::new(after, game.loss, full);
        for symbols in 0..=FLIGHT_MAX {
            search.weigh(symbols, game.rule);
            // No value is negative: more symbols than the worst deficit's best value cannot better any.
            let dearest = search.best.value[full];
            if f64::from(symbols) + 1.0 >= dearest {
                break;
            }
            search.add_symbol();
        }
        debug_assert!(
            search.best.value[full].is_finite(),
            "an action was found; price {price}"
        );
        self.value = search.best.value;
        self.miss = search.best.miss;
        (self.value[0], self.miss[0]) = (0.0, 0.0);
        for (action, best) in self.actions.iter_mut().zip(&search.best.symbols) {
            *action = *best as u8;
        }
    }
}

/// The search for one row's actions, by ascending number of symbols.
struct Search {
    arrives: f64,
    lost: f64,
    full: usize,
    /// Deficits below are dealt with: what remains to be paid has vanished.
    least: usize,
    /// Expectation of what follows, and of the miss, after the symbols so far.
    value: Column,
    miss: Column,
    spare: Column,
    best: Best,
}

/// The best found so far, by deficit. Symbols are kept as floats, so that the comparison runs on vectors.
struct Best {
    value: Column,
    miss: Column,
    symbols: Column,
}

impl Search {
    fn new(after: &Row, loss: f64, full: usize) -> Self {
        let best = Best {
            value: [f64::INFINITY; STATES],
            miss: [0.0; STATES],
            symbols: [0.0; STATES],
        };
        let (value, miss) = (after.value, after.miss);
        Self {
            arrives: 1.0 - loss,
            lost: loss,
            full,
            least: 1,
            value,
            miss,
            spare: [0.0; STATES],
            best,
        }
    }

    /// Compares sending `symbols` with the best so far, for every deficit for which the rule allows it.
    fn weigh(&mut self, symbols: u16, rule: Rule) {
        let covered = usize::from(symbols).clamp(self.least - 1, self.full);
        self.weigh_range(self.least, covered, symbols, 1.0 - TIE);
        if rule == Rule::MayGiveUp {
            // Of equal values the flight nearest the deficit wins. With many rounds to go, sending later costs the same but
            // for rounding, and nobody wants a policy that idles.
            self.weigh_range(covered + 1, self.full, symbols, 1.0 + TIE);
        }
    }

    fn weigh_range(&mut self, from: usize, to: usize, symbols: u16, tie: f64) {
        let sent = f64::from(symbols);
        let (value, miss) = (&self.value[from..=to], &self.miss[from..=to]);
        let best_value = &mut self.best.value[from..=to];
        let (best_miss, best_symbols) = (
            &mut self.best.miss[from..=to],
            &mut self.best.symbols[from..=to],
        );
        let best = best_value.iter_mut().zip(best_miss).zip(best_symbols);
        for (((best_value, best_miss), best_symbols), (value, miss)) in
            best.zip(value.iter().zip(miss))
        {
            let value = sent + value;
            let is_better = value < *best_value * tie;
            *best_value = if is_better { value } else { *best_value };
            *best_miss = if is_better { *miss } else { *best_miss };
            *best_symbols = if is_better { sent } else { *best_symbols };
        }
    }

    /// Moves the expectations on by one symbol.
    fn add_symbol(&mut self) {
        for column in [&mut self.value, &mut self.miss] {
            let next = &mut self.spare[self.least..=self.full];
            let less = &column[self.least - 1..self.full];
            let same = &column[self.least..=self.full];
            for ((next, less), same) in next.iter_mut().zip(less).zip(same) {
                *next = self.arrives * less + self.lost * same;
            }
            self.spare[..self.least].fill(0.0);
            mem::swap(column, &mut self.spare);
        }
        let least = self.least;
        if least < self.full && self.value[least] < VANISHED && self.miss[least] < VANISHED {
            (self.value[least], self.miss[least]) = (0.0, 0.0);
            self.least += 1;
        }
    }
}
