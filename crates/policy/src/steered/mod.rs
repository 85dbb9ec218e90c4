//! Least symbols at a price: the policy whose redundancy is steered by what was achieved.
//!
//! A constrained decision process has one multiplier for everything it decides (Altman): where a stream of messages meets
//! changing loss, rounds and sizes, the least symbols for a share of misses are spent when a miss has the same price everywhere,
//! not when each message by itself meets the target. The price is the situation's ([`crate::Steering`] moves it); without
//! one, the policy takes the price at which messages like this one just meet the target, mixing two neighbours by the
//! message's draw as [`crate::Exact`] does.
//!
//! Against the older policies:
//!
//! - It decides with the expected loss, not with an upper bound: steering answers for what the estimate gets wrong.
//! - A miss that symbols cannot prevent is not paid for: the price counts as far as symbols arrive in time at all
//!   ([`Situation::on_time`]), and as far as no flight after the last round could still save it ([`Situation::last_chance`]).
//! - Silence is not total loss ([`crate::Answers::missing`], docs/notes/redundancy.md#silence): symbols that nobody has answered for count as
//!   arrived as far as it is likelier that the answer is late or lost, and the round may pass without sending.
//! - Waiting is a choice (docs/notes/redundancy.md#waiting): a round lasts as long as the deadline leaves time for the rounds that are worth
//!   having; fewer and longer ones save what late answers would have sent twice.
//! - Where losses come in bursts, the last flight is spread over the time that is left (`spacing.rs`); those before, which leave together,
//!   get repair symbols only against what good moments lose.
//! - One block never gets more than [`COST_CAP`] symbols for each of its own, and as many for the block.

mod chances;
mod found;
pub(crate) mod grid;
mod memo;
mod pace;
mod silence;
mod spacing;
pub(crate) mod tables;
mod without;
mod worth;

use core::time::Duration;

use crate::chance::Losses;
use crate::error::checked_miss_target;
use crate::limits::{FLIGHT_MAX, SOURCE_SYMBOLS_MAX};
use crate::{Action, Burst, OutOfRange, Policy, Price, Situation, chance, stopgap};
use grid::{DEFICITS, PRICES};
use spacing::Task;
use tables::{PriceTable, SHELF};
pub use without::{Part, Without};

/// Most symbols sent for each source symbol of a block; and as many more for the block.
pub const COST_CAP: u16 = 8;

/// The policy that decides by a price. Its tables are shared by all of the process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steered {
    miss_target: f64,
    /// It chooses how many rounds to make of the time that is left, and how long they wait.
    is_patient: bool,
}

impl Steered {
    /// The policy for one miss target, which only matters to situations without a price.
    ///
    /// # Errors
    ///
    /// [`OutOfRange::MissTarget`] unless the target is at least [`crate::MISS_TARGET_MIN`] and below 1.
    pub fn new(miss_target: f32) -> Result<Self, OutOfRange> {
        let miss_target = checked_miss_target(f64::from(miss_target))?;
        Ok(Self {
            miss_target,
            is_patient: true,
        })
    }

    /// The same with as many rounds as fit, each of a round time.
    pub(crate) const fn without_patience(self) -> Self {
        Self {
            is_patient: false,
            ..self
        }
    }

    /// The share of messages that may miss.
    #[must_use]
    pub const fn miss_target(&self) -> f64 {
        self.miss_target
    }

    /// Whether look-ups have missed tables that are not built yet.
    #[must_use]
    pub fn is_wanting(&self) -> bool {
        SHELF.is_wanting()
    }

    /// What sending `flight` now comes to: symbols, these included, and misses at the situation's price (in symbols), if all that follows
    /// is decided by this policy. `None` without a table, when nothing is missing, and where it is more than the block may cost.
    ///
    /// It is reckoned at the points of the tables that the message draws, where the decision was, so of all flights what is decided has about the least of it.
    /// For explaining a decision: all unaccounted symbols are taken for lost. O(deficit x symbols).
    #[must_use]
    pub fn worth(&self, situation: &Situation, flight: Action) -> Option<f64> {
        let is_too_dear = flight.symbols > cost_cap(situation);
        if situation.rounds_left == 0 || situation.deficit == 0 || is_too_dear {
            return None;
        }
        Some(self.state(situation)?.worth_of(flight))
    }

    /// The price of the situation, or the one at which blocks like this just meet the target.
    fn price(&self, table: &PriceTable, situation: &Situation) -> Price {
        if let Some(price) = situation.price {
            return price;
        }
        let (dear, weight) = self.dear_and_weight(table, situation);
        // Other bits of the draw than those that choose the loss.
        let draw = f64::from(situation.draw.rotate_left(16));
        let follows_dear = draw <= weight * f64::from(u32::MAX);
        grid::price_at(if follows_dear { dear } else { dear - 1 })
    }

    /// The least price at which blocks like this meet the target, and the share of them that have it, so that with the price before it they just meet it.
    fn dear_and_weight(&self, table: &PriceTable, situation: &Situation) -> (usize, f64) {
        let planned = situation.rounds_planned.max(situation.rounds_left);
        let deficit = situation.source_symbols.into();
        let miss = |price| table.miss(grid::row(price, planned), deficit);
        // The miss falls with the price.
        let mut dear = 0;
        for step in [32, 16, 8, 4, 2, 1] {
            if dear + step < PRICES && miss(dear + step - 1) > self.miss_target {
                dear += step;
            }
        }
        if dear == 0 {
            return (dear, 1.0);
        }
        let (above, below) = (miss(dear - 1), miss(dear));
        let weight = (above - self.miss_target) / (above - below).max(f64::MIN_POSITIVE);
        (dear, weight.clamp(0.0, 1.0))
    }

    /// The situation with its table and price; `None` while there is no table.
    fn state<'a>(&self, situation: &'a Situation) -> Option<State<'a>> {
        let table_of = |loss| SHELF.get(grid::loss_index(loss, situation.draw));
        let again = situation.loss_again();
        // What is sent again is lost more often, now or later.
        let is_later = situation.sent > 0;
        let now = again.filter(|_| is_later).and_then(table_of);
        let table = now.or_else(|| table_of(situation.loss_mean))?;
        let later = again.filter(|_| !is_later).and_then(table_of);
        let in_good = situation.is_bursty().then(|| {
            let (_, lost_when_good) = situation.burst.moments(f64::from(situation.loss_mean));
            SHELF.get(grid::loss_index(lost_when_good as f32, situation.draw))
        });
        let full_price = self.price(table, situation);
        let counted = situation.on_time
            * (1.0 - situation.saved_at_last()) as f32
            * (1.0 - situation.comes_anyway);
        Some(State {
            table,
            in_good: in_good.flatten().unwrap_or(table),
            later: later.unwrap_or(table),
            price: full_price.discounted(counted),
            full_price,
            situation,
            is_patient: self.is_patient,
        })
    }

    #[cold]
    fn stopgap(&self, situation: &Situation) -> u16 {
        let loss = chance::loss_within_bounds(situation.loss);
        let symbols = stopgap::symbols(
            situation.deficit,
            situation.rounds_left,
            loss,
            self.miss_target,
        );
        symbols.min(cost_cap(situation))
    }
}

#[cfg(feature = "solve")]
impl Steered {
    /// Builds the tables that look-ups have missed, beside look-ups that go on; returns how many are new, one for each loss.
    pub fn build_wanted(&self) -> usize {
        SHELF.build_wanted()
    }

    /// Builds the tables of all losses; returns how many are new.
    pub fn build_all(&self) -> usize {
        (0..grid::LOSSES)
            .filter(|index| SHELF.build(*index))
            .count()
    }

    /// Tables stored so far, and the bytes of all of it.
    #[must_use]
    pub fn stored(&self) -> (usize, usize) {
        let (tables, bytes) = SHELF.stored();
        let memos = size_of_val(&found::FOUND)
            + size_of_val(&chances::CHANCES)
            + size_of_val(&silence::SILENCES);
        (tables, bytes + memos)
    }
}

impl Policy for Steered {
    fn name(&self) -> &'static str {
        "steered"
    }

    fn decide(&self, situation: &Situation) -> Action {
        let deficit = u16::from(situation.deficit);
        if situation.rounds_left == 0 || deficit == 0 {
            return Action::burst(deficit);
        }
        let Some(state) = self.state(situation) else {
            return Action::burst(self.stopgap(situation));
        };
        let pace = state.pace();
        let (rounds_left, look_again) = (pace.rounds, pace.wait);
        let symbols = match pace.chance {
            Some(chance) => chance.symbols,
            None => state.symbols_now(rounds_left, self.miss_target),
        };
        if symbols > 0 && rounds_left == 1 && state.is_bursty() {
            return Action {
                look_again,
                ..found::best(&state.last_flight(), situation.draw)
            };
        }
        Action {
            look_again,
            ..Action::burst(symbols.min(cost_cap(situation)))
        }
    }

    fn expected_symbols(&self, source_symbols: u8, rounds: u16, loss: f32) -> f32 {
        let situation = Situation::first(source_symbols.clamp(1, SOURCE_SYMBOLS_MAX), rounds, loss);
        match SHELF.get(grid::nearest_loss(loss)) {
            Some(table) => {
                let (dear, weight) = self.dear_and_weight(table, &situation);
                let deficit = source_symbols.into();
                let at = |price| {
                    let row = grid::row(price, rounds);
                    let misses = table.miss(row, deficit) * grid::price_at(price).symbols();
                    table.value(row, deficit) - misses
                };
                let mixed = weight * at(dear) + (1.0 - weight) * at(dear.saturating_sub(1));
                (mixed as f32).max(source_symbols.into())
            }
            None => {
                let loss = chance::loss_within_bounds(loss);
                let rounds = rounds.max(1);
                stopgap::expected_symbols(source_symbols, rounds, loss, self.miss_target) as f32
            }
        }
    }

    fn miss_at_price(&self, situation: &Situation) -> Option<f32> {
        let miss = |loss_mean, draw| {
            let drawn = Situation {
                loss_mean,
                draw,
                ..*situation
            };
            Some(self.state(&drawn)?.expected_miss(self.miss_target) as f32)
        };
        // Which of the two points around the loss is drawn is no news of the path. (An only flight is reckoned without points, and a search is
        // not made twice.)
        let is_only = situation.rounds_left <= 1 && situation.sent == 0;
        if is_only || situation.is_bursty() {
            return miss(situation.loss_mean, situation.draw);
        }
        let decided_by = situation.loss_later();
        let (draws, upper) = grid::lower_and_upper(decided_by);
        // (What else is drawn has other bits.)
        let others = situation.draw & !draws[0];
        let miss_of = |draw| {
            let point = grid::loss_at(grid::loss_index(decided_by, draw));
            let miss = miss(decided_by, others | draw)?;
            Some(miss_at_loss(miss, point as f32, situation))
        };
        let low = miss_of(draws[0])?;
        if upper == 0.0 {
            return Some(low);
        }
        Some(low + upper * (miss_of(draws[1])? - low))
    }
}

/// How often what is decided at a point of the grid, where it misses with this probability, misses at the situation's loss. (Of two points that decide the
/// same, what one expects too few the other expects too many; but where they do not, the lower sends less and expects too few of it: 0.111 % were
/// late for 0.1 with 20 % of loss.)
///
/// Misses of a block that still needs `deficit` symbols grow about as that power of the loss which makes them so rare.
fn miss_at_loss(miss: f32, point: f32, situation: &Situation) -> f32 {
    let of_each = miss / f32::from(situation.deficit.max(1));
    let is_rarer = of_each > f32::MIN_POSITIVE && of_each < point;
    if !is_rarer {
        return miss;
    }
    let power = log2_about(of_each) / log2_about(point);
    // The logarithm of the ratio, good to half a percent as far as points are apart.
    let loss = situation.loss_mean;
    let log_ratio = 2.0 * (loss - point) / (loss + point);
    // (The last point is a half: beyond, the power would bring it above one.)
    (miss * libm::expf(power * log_ratio)).min(1.0)
}

/// The logarithm of a positive number, a twelfth too small at most: its bits are that, but for what is linear between powers of two.
fn log2_about(number: f32) -> f32 {
    number.to_bits() as f32 / (1 << 23) as f32 - 127.0
}

/// Most symbols that the block may still get in this round: never less than the deficit.
fn cost_cap(situation: &Situation) -> u16 {
    let cap = COST_CAP * (u16::from(situation.source_symbols) + 1);
    let left = cap.min(FLIGHT_MAX).saturating_sub(situation.sent);
    left.max(u16::from(situation.deficit))
}

/// A situation with its table and price.
#[derive(Clone, Copy)]
struct State<'a> {
    table: &'static PriceTable,
    /// That of the loss in good moments: what repair symbols of a flight that leaves together can be of use against.
    in_good: &'static PriceTable,
    /// That of the loss of what is sent again.
    later: &'static PriceTable,
    /// Discounted by what symbols cannot prevent in the last of the rounds left, or a flight after it still does.
    price: Price,
    full_price: Price,
    situation: &'a Situation,
    is_patient: bool,
}

impl State<'_> {
    /// Whether it makes a difference how far apart symbols are.
    fn is_bursty(&self) -> bool {
        self.situation.is_bursty() && self.situation.loss_mean < 1.0
    }

    /// The flight, if none is to follow.
    fn last_flight(&self) -> Task {
        let (loss, burst) = (
            chance::loss_within_bounds(self.situation.loss_mean),
            self.situation.burst,
        );
        Task {
            deficit: self.situation.deficit,
            cap: cost_cap(self.situation),
            loss,
            burst,
            first_bad: spacing::first_bad(burst, loss),
            slack: self.situation.timing.slack,
            // Where only the feedback is missing, there is nothing to prevent.
            price: self.price.symbols() * (1.0 - f64::from(self.situation.answers.missing)),
        }
    }

    /// What to send, by the tables; but in the only round without their steps of loss and price. (In the last of several it has to be what
    /// was reckoned with when the first began.)
    fn symbols(&self, rounds_left: u16) -> u16 {
        if self.is_alone(rounds_left) {
            return self.alone().0;
        }
        let deficit = self.situation.deficit.into();
        self.in_good.symbols(self.row(rounds_left), deficit)
    }

    /// Probability of a miss, whatever may happen to answers.
    fn expected_miss(&self, miss_target: f64) -> f64 {
        if self.situation.is_intricate() {
            return self.miss_answered_or_not(miss_target);
        }
        let miss = self.miss_with_all(self.situation.rounds_left);
        miss * (1.0 - self.situation.saved_at_last())
    }

    /// Whether a flight is the first and the last, and loses symbols one by one.
    fn is_alone(&self, rounds_left: u16) -> bool {
        rounds_left <= 1 && self.situation.sent == 0 && !self.is_bursty()
    }

    /// The best flight if it is alone, and its probability of a miss.
    fn alone(&self) -> (u16, f64) {
        let loss = chance::loss_within_bounds(self.situation.loss_mean);
        let (deficit, most) = (u16::from(self.situation.deficit), cost_cap(self.situation));
        let uneven = f64::from(self.situation.burst.uneven);
        chance::best_flight(deficit, Losses { loss, uneven }, self.price.symbols(), most)
    }

    /// Probability of a miss with all that is missing and so many rounds left, where answers are not lost.
    fn miss_with_all(&self, rounds_left: u16) -> f64 {
        if self.is_alone(rounds_left) {
            return self.alone().1;
        }
        self.miss(rounds_left, u16::from(self.situation.deficit))
    }

    /// Probability of a miss where losses come in bursts. Mostly a burst takes the first flight, lasts for all rounds but the last, and
    /// spoils the last flight, which is spread; or a good moment loses a symbol, and what follows is as without bursts but for the last flight.
    fn miss_in_bursts(&self, rounds: u16, wait: Duration) -> f64 {
        let situation = self.situation;
        let task = self.last_flight();
        if rounds <= 1 {
            return found::miss(&task, situation.draw);
        }
        let between = u32::from(rounds - 1);
        let stays_bad = task.bad_after_bad(wait);
        let was_lost = Burst {
            was_lost: true,
            age: wait,
            ..situation.burst
        };
        let last = Task {
            first_bad: spacing::first_bad(was_lost, task.loss),
            slack: (situation.timing.slack).saturating_sub(wait.saturating_mul(between)),
            ..task
        };
        let (bad, lost_when_good) = situation.burst.moments(task.loss);
        // What leaves is what is best after any loss; that it was a burst is known here.
        let leaves = found::best(&last, situation.draw);
        let in_burst = Task {
            first_bad: stays_bad,
            ..last
        };
        let outlasted = task.first_bad
            * chance::power(stays_bad, between - 1)
            * in_burst.miss_of(leaves.symbols, leaves.together, leaves.spacing);
        let without = self.miss(rounds, u16::from(situation.deficit)) * self.last_over_table(&last);
        let lost_alone = (1.0 - bad) * lost_when_good / task.loss.max(f64::MIN_POSITIVE);
        outlasted + lost_alone * without.min(1.0)
    }

    /// How often a last flight misses after a loss in a good moment, as a multiple of what the tables expect. What leaves is what is best after any loss,
    /// burst or not, as it is spread; the tables have their own price for a second symbol. (Between the two prices half as many misses were expected
    /// as came: 0.126 % were late for 0.1 with bursts of 5 ms, 5 % of loss, two rounds and k = 1.) Mostly it is one symbol that is missing. O(symbols).
    fn last_over_table(&self, last: &Task) -> f64 {
        let of_one = Task {
            deficit: 1,
            ..*last
        };
        let leaves = found::best(&of_one, self.situation.draw);
        let after_good = Task {
            first_bad: last.burst.moments(last.loss).0,
            ..of_one
        };
        let misses = after_good.miss_of(leaves.symbols, leaves.together, leaves.spacing);
        misses / self.miss(1, 1).max(f64::MIN_POSITIVE)
    }

    /// Probability of a miss with all of the rounds left, where what is sent again is lost more often. O(deficit).
    fn miss_if_sent_again(&self, rounds: u16) -> f64 {
        let deficit = u16::from(self.situation.deficit).min(DEFICITS as u16);
        if rounds <= 1 || core::ptr::eq(self.later, self.table) {
            return self.miss_with_all(rounds);
        }
        let later = State {
            table: self.later,
            ..*self
        };
        let loss = chance::loss_within_bounds(self.situation.loss_mean);
        let mut miss = 0.0;
        chance::arrivals_below(
            self.symbols(rounds),
            1.0 - loss,
            deficit,
            |arrived, chance| {
                miss += chance * later.miss(rounds - 1, deficit - arrived);
            },
        );
        miss
    }

    /// Probability of a miss with this deficit and so many rounds left, where answers are not lost.
    fn miss(&self, rounds_left: u16, deficit: u16) -> f64 {
        self.table.miss(self.row(rounds_left), deficit)
    }

    /// Expected symbols and misses with this deficit and so many rounds left.
    fn value(&self, rounds_left: u16, deficit: u16) -> f64 {
        if deficit == 0 {
            return 0.0;
        }
        if rounds_left == 0 {
            // That of the tables: steering reckons with what they lead to.
            return grid::price_at(grid::price_index(self.price)).symbols();
        }
        self.table.value(self.row(rounds_left), deficit)
    }

    /// That of the tables.
    fn row(&self, rounds_left: u16) -> usize {
        grid::row(grid::price_index(self.price), rounds_left)
    }
}
