//! The constrained optimum: at which price of a miss the miss target is just met.
//!
//! All policies are points (expected symbols, miss probability); the best ones lie on their lower convex hull, and each price
//! finds one of its vertices. Given a vertex that meets the target (dear) and one that does not (cheap), the slope of the chord
//! between them is the price at which both are equal: solving there finds either a vertex below the chord, which replaces
//! one of the two, or none, and then the two are neighbours on the hull. This ends after finitely many steps without a
//! tolerance to tune (docs/notes/redundancy.md#mixture), and finds the same vertex as the paper's bisection.

use alloc::vec;

use super::Rule;
use super::trellis::{Game, Plan, Trellis};
use crate::chance;

/// The hull's neighbours on both sides of the miss target.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Optimum {
    /// The cheapest vertex that meets the target. (The best to be had, where no flight of 255 symbols meets it.)
    pub(crate) dear: Plan,
    /// The vertex before it, with a greater miss probability than the target.
    pub(crate) cheap: Plan,
    /// How often to follow the dear one, so that together they just meet the target.
    pub(crate) dear_weight: f64,
}

/// A vertex as the search sees it; the plan is taken once it is known to matter.
type Point = (f64, f64);

/// Distance to the chord, as a share of the value, below which a vertex counts as lying on it.
const ON_THE_CHORD: f64 = 1e-11;
/// No miss is worth more. Beyond, the sums would lose the symbols against the misses.
const PRICE_MAX: f64 = 1e14;
/// Five steps a table are usual; this is the bound that every loop has.
const STEPS_MAX: usize = 200;

impl Optimum {
    /// Solves `game` for `miss_target`; the search begins at `*price`, and leaves the price found there for a similar game.
    ///
    /// Only for games in which sending just the deficit misses the target: the cheap side starts from there.
    pub(crate) fn find(
        trellis: &mut Trellis,
        game: &Game,
        miss_target: f64,
        price: &mut f64,
    ) -> Self {
        let mut cheap = cheapest(trellis, game);
        let mut dear = loop {
            let point = trellis.solve(game, *price);
            let plan = trellis.plan(game, point);
            if plan.miss <= miss_target || *price >= PRICE_MAX {
                break plan;
            }
            cheap = plan;
            *price *= 8.0;
        };
        if dear.miss > miss_target {
            return Self {
                cheap: dear.clone(),
                dear,
                dear_weight: 1.0,
            };
        }
        for _ in 0..STEPS_MAX {
            *price = (dear.cost - cheap.cost) / (cheap.miss - dear.miss);
            let point = trellis.solve(game, *price);
            let gain = value(&(dear.cost, dear.miss), *price) - value(&point, *price);
            if gain <= ON_THE_CHORD * dear.cost {
                break;
            }
            let side = if point.1 <= miss_target {
                &mut dear
            } else {
                &mut cheap
            };
            *side = trellis.plan(game, point);
        }
        let dear_weight = ((cheap.miss - miss_target) / (cheap.miss - dear.miss)).clamp(0.0, 1.0);
        Self {
            dear,
            cheap,
            dear_weight,
        }
    }

    /// Expected symbols of the mixture.
    pub(crate) fn mixed_cost(&self) -> f64 {
        self.dear_weight * self.dear.cost + (1.0 - self.dear_weight) * self.cheap.cost
    }

    /// Miss probability of the mixture.
    pub(crate) fn mixed_miss(&self) -> f64 {
        self.dear_weight * self.dear.miss + (1.0 - self.dear_weight) * self.cheap.miss
    }
}

/// The policy for a price of 0.
fn cheapest(trellis: &mut Trellis, game: &Game) -> Plan {
    match game.rule {
        Rule::MustDeliver => {
            let point = trellis.solve(game, 0.0);
            trellis.plan(game, point)
        }
        Rule::MayGiveUp => {
            let actions = vec![0; usize::from(game.rounds) * usize::from(game.source_symbols)];
            Plan {
                actions,
                cost: 0.0,
                miss: 1.0,
            }
        }
    }
}

fn value(point: &Point, price: f64) -> f64 {
    point.0 + price * point.1
}

/// Rounds 1..=n, at most `limit`, in which sending just the deficit does not meet the target.
pub(crate) fn rounds_not_trivial(
    source_symbols: u8,
    loss: f64,
    miss_target: f64,
    limit: u16,
) -> u16 {
    // The miss falls with every round.
    let misses =
        |rounds: &u16| chance::retransmit_miss(source_symbols, *rounds, loss) > miss_target;
    (1..=limit).take_while(misses).count() as u16
}
