//! Whether a candidate holds what is asked of it beside a reference.

use std::fmt;

use serde::Serialize;

use super::{Part, PolicyRow, Row};

/// By so much more may be late with the candidate than with the reference, where that is above the target.
const LATER_MAX: f64 = 0.001;
/// Costs are compared where the reference spends more than this: elsewhere there is nothing to save.
const COST_MIN: f64 = 0.02;
/// Added to what is spent beyond the floor, so that savings below a twentieth of a percent do not decide a ratio.
const COST_GRAIN: f64 = 0.0005;
/// The candidate's cost beyond the floor, as a ratio to the reference's: at most.
const COST_RATIO_MAX: f64 = 0.2;
/// Rows whose prediction should lie within the interval, at least. Asked of stationary networks; recorded ones are seldom stationary.
const CALIBRATED_MIN: f64 = 0.9;

/// Who is judged, and beside whom: names of policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rivals {
    /// Who is judged.
    pub candidate: String,
    /// Beside whom.
    pub reference: String,
}

/// A candidate beside a reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// Who is judged.
    pub candidate: String,
    /// Beside whom.
    pub reference: String,
    /// Over all recordings, over those for tuning, and over those that judge.
    pub parts: Vec<PartJudgement>,
}

/// How it came out over some recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartJudgement {
    /// Over which; None (null) is all.
    pub part: Option<Part>,
    /// How many recordings.
    pub traces: usize,
    /// How late.
    pub lateness: Lateness,
    /// At what cost.
    pub cost: Cost,
    /// Where the reference loses too much.
    pub loss_misses: LossMisses,
    /// How well it foretold that.
    pub calibration: Calibration,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As asked.
    Held,
    /// Not as asked, beyond chance.
    Missed,
    /// Not as asked in some row, but none of them beyond chance: more messages may tell.
    Undecided,
    /// There was no row to judge by.
    Open,
}

/// Rows in which the candidate's preventable late share is at most the greater of the miss target and the reference's + 0.1 pp.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lateness {
    /// Rows in all.
    pub rows: usize,
    /// Rows as asked.
    pub rows_held: usize,
    /// Rows that are not, and beyond chance: even the low end of the share's interval is above what is asked.
    pub rows_missed_beyond_chance: usize,
    /// Rows that would be as asked if what nobody could prevent counted as well: a policy may cause queues itself.
    pub rows_held_counting_all: usize,
    /// The most by which a row is above what is asked; zero when all hold.
    pub excess_max: f64,
    /// Held when all rows are; missed when one is beyond chance.
    pub verdict: Verdict,
}

/// Recovery overhead - floor + 0.05 pp, over rows in which the reference spends more than 2 %. (Less than the floor counts as the floor.)
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Those rows.
    pub rows: usize,
    /// Geometric mean of the candidate's; None (null) without rows, as below.
    pub candidate: Option<f64>,
    /// Geometric mean of the reference's.
    pub reference: Option<f64>,
    /// The first by the second.
    pub ratio: Option<f64>,
    /// Held when it is at most a fifth.
    pub verdict: Verdict,
}

/// Rows in which the reference's preventable late share is above the miss target.
///
/// Asked is that the candidate's is less wherever that is beyond chance: elsewhere it is not known whether the reference misses at all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LossMisses {
    /// Those rows.
    pub rows: usize,
    /// Of them, rows in which the candidate's preventable late share is less.
    pub rows_preventable_less: usize,
    /// Of them, rows in which the candidate is late less, all causes counted.
    pub rows_late_less: usize,
    /// Of them, rows in which the reference misses beyond chance: even the low end of its interval is above the target.
    pub rows_beyond_chance: usize,
    /// Of those, rows in which the candidate's preventable late share is less.
    pub rows_beyond_chance_preventable_less: usize,
    /// Of those, rows in which the candidate is late less, all causes counted.
    pub rows_beyond_chance_late_less: usize,
    /// Of those, rows in which the candidate's preventable late share is not less, beyond chance: even the low end of its interval is above
    /// the reference's share.
    pub rows_missed_beyond_chance: usize,
    /// Of all of them, rows in which it is late more, all causes counted, and beyond chance.
    pub rows_later_beyond_chance: usize,
    /// Held when it is less wherever the reference misses beyond chance; missed when it is more beyond chance in one of those.
    pub verdict: Verdict,
}

/// What the protocol predicted with the candidate, against what came.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Calibration {
    /// Rows with a prediction.
    pub rows: usize,
    /// Of them, rows in which it lies within the 95 % interval of the late share.
    pub rows_within: usize,
    /// Mean of the difference between prediction and late share, without its sign; None (null) without rows.
    pub error_mean: Option<f64>,
    /// Held when it is within in nine rows of ten.
    pub verdict: Verdict,
}

impl Rivals {
    /// Whether more messages may turn an answer of this row: what is allowed lies within the interval of the candidate's preventable
    /// late share; or the miss target within the reference's; or, where the reference misses, the reference's share within the
    /// candidate's interval. It leaves no row open that lacks one of them.
    pub fn leave_open(&self, row: &Row) -> bool {
        self.in_row(row).is_some_and(|pair| {
            let preventable = |policy: &PolicyRow| policy.preventable_late_share;
            let own = pair.candidate.preventable_late_share_95;
            let others = pair.reference.preventable_late_share_95;
            let is_less_open =
                pair.misses_beyond_chance() && own.contains(pair.reference.preventable_late_share);
            own.contains(pair.allowed(preventable))
                || others.contains(row.miss_target())
                || is_less_open
        })
    }

    fn in_row<'a>(&self, row: &'a Row) -> Option<Pair<'a>> {
        Some(Pair {
            row,
            candidate: row.policy(&self.candidate)?,
            reference: row.policy(&self.reference)?,
        })
    }
}

impl Judgement {
    /// Of these two; None when a row lacks one of them, or both are the same.
    pub fn new(rows: &[Row], rivals: &Rivals) -> Option<Self> {
        if rivals.candidate == rivals.reference {
            return None;
        }
        let pairs = rows.iter().map(|row| rivals.in_row(row));
        let pairs = pairs.collect::<Option<Vec<_>>>()?;
        let parts = [None, Some(Part::Tuning), Some(Part::Judged)];
        let parts = parts.map(|part| PartJudgement::new(&pairs, part));
        Some(Self {
            candidate: rivals.candidate.clone(),
            reference: rivals.reference.clone(),
            parts: parts.into(),
        })
    }
}

/// Both in one row.
#[derive(Clone, Copy)]
struct Pair<'a> {
    row: &'a Row,
    candidate: &'a PolicyRow,
    reference: &'a PolicyRow,
}

impl Pair<'_> {
    /// Even the low end of the reference's interval is above the miss target.
    fn misses_beyond_chance(&self) -> bool {
        self.reference.preventable_late_share_95.low > self.row.miss_target()
    }

    /// What may be late, as `share` counts it.
    fn allowed(&self, share: fn(&PolicyRow) -> f64) -> f64 {
        (share(self.reference) + LATER_MAX).max(self.row.miss_target())
    }

    /// What is late, as `share` counts it, beyond what is asked.
    fn excess(&self, share: fn(&PolicyRow) -> f64) -> f64 {
        // Shares are counts by counts: what is above by rounding alone is not above.
        let excess = share(self.candidate) - self.allowed(share);
        if excess > 1e-9 { excess } else { 0.0 }
    }
}

/// What a policy spends beyond the floor of its row, as it is compared.
pub(super) fn cost(row: &Row, policy: &PolicyRow) -> f64 {
    let floor = row.floor_recovery_overhead.unwrap_or(0.0);
    (policy.recovery_overhead - floor).max(0.0) + COST_GRAIN
}

impl PartJudgement {
    fn new(pairs: &[Pair<'_>], part: Option<Part>) -> Self {
        let is_in = |pair: &&Pair<'_>| part.is_none_or(|part| pair.row.part == part);
        let pairs: Vec<Pair<'_>> = pairs.iter().filter(is_in).copied().collect();
        // Rows of a recording follow each other.
        let mut traces: Vec<&str> = pairs.iter().map(|pair| &*pair.row.trace).collect();
        traces.dedup();
        Self {
            part,
            traces: traces.len(),
            lateness: Lateness::new(&pairs),
            cost: Cost::new(&pairs),
            loss_misses: LossMisses::new(&pairs),
            calibration: Calibration::new(&pairs),
        }
    }
}

impl Lateness {
    fn new(pairs: &[Pair<'_>]) -> Self {
        let preventable: fn(&PolicyRow) -> f64 = |policy| policy.preventable_late_share;
        let all: fn(&PolicyRow) -> f64 = |policy| policy.late_share;
        let low: fn(&PolicyRow) -> f64 = |policy| policy.preventable_late_share_95.low;
        let beyond_chance = |pair: &&Pair<'_>| low(pair.candidate) > pair.allowed(preventable);
        let held = |share: fn(&PolicyRow) -> f64| {
            let held = pairs.iter().filter(|pair| pair.excess(share) == 0.0);
            held.count()
        };
        let rows_held = held(preventable);
        let rows_missed_beyond_chance = pairs.iter().filter(beyond_chance).count();
        let excesses = pairs.iter().map(|pair| pair.excess(preventable));
        Self {
            rows: pairs.len(),
            rows_held,
            rows_missed_beyond_chance,
            rows_held_counting_all: held(all),
            excess_max: excesses.fold(0.0, f64::max),
            verdict: Verdict::beside_chance(pairs.len(), rows_held, rows_missed_beyond_chance),
        }
    }
}

impl Cost {
    fn new(pairs: &[Pair<'_>]) -> Self {
        let spends = |pair: &&Pair<'_>| pair.reference.recovery_overhead > COST_MIN;
        let pairs: Vec<_> = pairs.iter().filter(spends).collect();
        let mean = |of: &dyn Fn(&Pair<'_>) -> f64| {
            let logs: f64 = pairs.iter().map(|pair| libm::log(of(pair))).sum();
            (!pairs.is_empty()).then(|| libm::exp(logs / pairs.len() as f64))
        };
        let candidate = mean(&|pair| cost(pair.row, pair.candidate));
        let reference = mean(&|pair| cost(pair.row, pair.reference));
        let ratio = candidate.zip(reference).map(|(own, other)| own / other);
        Self {
            rows: pairs.len(),
            candidate,
            reference,
            ratio,
            verdict: Verdict::of(
                ratio.is_some_and(|ratio| ratio <= COST_RATIO_MAX),
                pairs.len(),
            ),
        }
    }
}

impl LossMisses {
    fn new(pairs: &[Pair<'_>]) -> Self {
        let misses = |pair: &&Pair<'_>| {
            pair.reference.preventable_late_share > pair.row.miss_target() + 1e-9
        };
        let above: Vec<_> = pairs.iter().filter(misses).collect();
        let is_beyond = |pair: &&&Pair<'_>| pair.misses_beyond_chance();
        let beyond: Vec<_> = above.iter().filter(is_beyond).copied().collect();
        let is_less = |pair: &&&Pair<'_>| pair.candidate.late_share < pair.reference.late_share;
        let is_less_preventable = |pair: &&&Pair<'_>| {
            pair.candidate.preventable_late_share < pair.reference.preventable_late_share
        };
        let is_more_preventable = |pair: &&&Pair<'_>| {
            let own = pair.candidate.preventable_late_share_95;
            own.low > pair.reference.preventable_late_share
        };
        let is_more =
            |pair: &&&Pair<'_>| pair.candidate.late_share_95.low > pair.reference.late_share;
        let rows_beyond_chance_preventable_less = beyond.iter().filter(is_less_preventable).count();
        let rows_missed_beyond_chance = beyond.iter().filter(is_more_preventable).count();
        Self {
            rows: above.len(),
            rows_preventable_less: above.iter().filter(is_less_preventable).count(),
            rows_late_less: above.iter().filter(is_less).count(),
            rows_beyond_chance: beyond.len(),
            rows_beyond_chance_preventable_less,
            rows_beyond_chance_late_less: beyond.iter().filter(is_less).count(),
            rows_missed_beyond_chance,
            rows_later_beyond_chance: above.iter().filter(is_more).count(),
            verdict: Verdict::beside_chance(
                beyond.len(),
                rows_beyond_chance_preventable_less,
                rows_missed_beyond_chance,
            ),
        }
    }
}

impl Calibration {
    fn new(pairs: &[Pair<'_>]) -> Self {
        Self::of(pairs.iter().map(|pair| pair.candidate))
    }

    /// Of one policy's rows.
    pub(super) fn of<'a>(policy: impl Iterator<Item = &'a PolicyRow>) -> Self {
        let (mut rows, mut rows_within, mut error) = (0, 0, 0.0);
        for row in policy {
            let Some(predicted) = row.predicted_late_share else {
                continue;
            };
            rows += 1;
            rows_within += usize::from(row.predicted_within_95);
            error += (predicted - row.late_share).abs();
        }
        let is_held = rows_within as f64 >= CALIBRATED_MIN * rows as f64;
        Self {
            rows,
            rows_within,
            error_mean: (rows > 0).then(|| error / rows as f64),
            verdict: Verdict::of(is_held, rows),
        }
    }
}

impl Verdict {
    const fn of(is_held: bool, rows: usize) -> Self {
        match (rows, is_held) {
            (0, _) => Self::Open,
            (_, true) => Self::Held,
            (_, false) => Self::Missed,
        }
    }

    /// Of so many rows, in so many as asked and in so many not, beyond chance.
    const fn beside_chance(rows: usize, held: usize, missed: usize) -> Self {
        match (Self::of(held == rows, rows), missed) {
            (Self::Missed, 0) => Self::Undecided,
            (verdict, _) => verdict,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Held => "held",
            Self::Missed => "missed",
            Self::Undecided => "left open by chance",
            Self::Open => "nothing to judge by",
        })
    }
}
