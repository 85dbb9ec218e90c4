//! 95 % intervals of a quantile, by order statistics: no assumption about the form of the distribution.

use super::Cluster;

/// Probability on each side.
const OUTSIDE: f64 = 0.025;
const Z: f64 = 1.959_963_984_540_054;
/// From this variance on the binomial distribution is taken for normal.
const NORMAL_FROM: f64 = 1000.0;

/// Between which two of `of` independent values in order, counted from 1, the quantile `share` (above 0 and below 1) lies with
/// at least 95 %. None on a side where so few values can bound it: below the least, or above the greatest.
pub fn quantile_ranks(share: f64, of: u64) -> (Option<u64>, Option<u64>) {
    let high = lower_rank(1.0 - share, of).map(|rank| of + 1 - rank);
    (lower_rank(share, of), high)
}

/// The greatest rank l at which P(B < l) <= 2.5 %, where B, binomial, counts the values below the quantile.
fn lower_rank(share: f64, of: u64) -> Option<u64> {
    // Written so that NaN fails.
    if of == 0 || !(share > 0.0 && share < 1.0) {
        return None;
    }
    let n = of as f64;
    let variance = n * share * (1.0 - share);
    if variance > NORMAL_FROM {
        let most = n * share - Z * libm::sqrt(variance) - 0.5;
        return Some(most as u64 + 1);
    }
    // The rarer side is added up term by term: at most some 2,200 terms.
    let rare = share.min(1.0 - share);
    let odds = libm::log(rare / (1.0 - rare));
    let mut log_term = n * libm::log1p(-rare);
    let mut below = 0.0;
    for k in 0..=of {
        // Now `below` is P(rare side < k).
        let through = below + libm::exp(log_term);
        if share <= 0.5 && through > OUTSIDE {
            return (k > 0).then_some(k);
        }
        // The other way round: B < l is that the rare side has more than of - l.
        if share > 0.5 && 1.0 - through <= OUTSIDE {
            return (k < of).then_some(of - k);
        }
        below = through;
        log_term += libm::log((n - k as f64) / (k as f64 + 1.0)) + odds;
    }
    None
}

/// How many times more the share of hits varies between the clusters than if all were independent; at least 1. So many values
/// are worth one independent value.
pub fn design_effect(clusters: &[Cluster]) -> f64 {
    let (hits, of) = clusters.iter().fold((0, 0), |(hits, of), cluster| {
        (hits + cluster.hits, of + cluster.of)
    });
    if clusters.len() < 2 || hits == 0 || hits == of {
        return 1.0;
    }
    let (groups, n) = (clusters.len() as f64, of as f64);
    let share = hits as f64 / n;
    let squares: f64 = clusters
        .iter()
        .map(|cluster| {
            let residual = cluster.hits as f64 - share * cluster.of as f64;
            residual * residual
        })
        .sum();
    // The variance of a ratio, linearised, over that of independent values: share (1 - share) / n.
    let between = groups / (groups - 1.0) * squares / (n * n);
    (between / (share * (1.0 - share) / n)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{Chance, Purpose};

    #[test]
    fn ranks_have_known_values() {
        // The sign test's tables: n = 10 -> 2nd and 9th (97.9 %), n = 20 -> 6th and 15th, n = 100 -> 40th and 61st.
        assert_eq!(quantile_ranks(0.5, 10), (Some(2), Some(9)));
        assert_eq!(quantile_ranks(0.5, 20), (Some(6), Some(15)));
        assert_eq!(quantile_ranks(0.5, 100), (Some(40), Some(61)));
        assert_eq!(quantile_ranks(0.5, 5), (None, None));
        // 0.99^n <= 2.5 % from n = 368 on.
        assert_eq!(quantile_ranks(0.99, 367).1, None);
        assert_eq!(quantile_ranks(0.99, 368).1, Some(368));
        assert_eq!(quantile_ranks(0.01, 368).0, Some(1));
        assert_eq!(quantile_ranks(0.5, 0), (None, None));
        assert_eq!(quantile_ranks(f64::NAN, 10), (None, None));
    }

    #[test]
    fn the_normal_form_continues_the_exact_one() {
        for share in [0.1, 0.5, 0.9] {
            let edge = (NORMAL_FROM / (share * (1.0 - share))) as u64;
            let (exact, normal) = (
                quantile_ranks(share, edge - 2),
                quantile_ranks(share, edge + 2),
            );
            assert!(exact.0.unwrap().abs_diff(normal.0.unwrap()) <= 5);
            assert!(exact.1.unwrap().abs_diff(normal.1.unwrap()) <= 5);
        }
    }

    /// The share of intervals that hold the truth: uniform values, whose quantile is known.
    #[test]
    fn intervals_cover_the_truth() {
        for (share, of) in [(0.5, 40), (0.95, 200), (0.99, 1000)] {
            let studies = 2000;
            let covered = (0..studies)
                .filter(|&study| {
                    let chance = Chance::new(study, 3);
                    let below = (0..of)
                        .filter(|&i| chance.share(Purpose::Workload, i, 0) < share)
                        .count() as u64;
                    // X_(l) is below the quantile when at least l values are, X_(u) above when fewer than u are.
                    let (low, high) = quantile_ranks(share, of);
                    low.is_none_or(|low| below >= low) && high.is_none_or(|high| below < high)
                })
                .count();
            let coverage = covered as f64 / studies as f64;
            assert!((0.94..=0.99).contains(&coverage), "{share}: {coverage}");
        }
    }

    #[test]
    fn clusters_that_differ_are_worth_less() {
        let alike = vec![Cluster { hits: 5, of: 100 }; 20];
        assert_eq!(design_effect(&alike), 1.0);
        // Whole clusters hit or not: 100 values are worth one (and 20 groups estimate it with 20 / 19).
        let whole: Vec<_> = (0..20)
            .map(|i| Cluster {
                hits: if i % 4 == 0 { 100 } else { 0 },
                of: 100,
            })
            .collect();
        assert!((design_effect(&whole) - 100.0 * 20.0 / 19.0).abs() < 1e-9);
        assert_eq!(design_effect(&whole[..1]), 1.0);
        assert_eq!(design_effect(&[]), 1.0);
    }
}
