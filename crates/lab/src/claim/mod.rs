//! What papers say of TCP and games, beside what kernels and Punctual do here.
//!
//! `thin_streams.rs` plays a game of tanks over what the thin-stream paper emulated; `online_games.rs` plays the traffic of a
//! role-playing game (`mmorpg.rs`) over paths like those of the TCP-in-online-games paper. Each gives an [`Arena`](crate::arena::Arena)
//! and makes [`Reproduced`](crate::reproduce::Reproduced) of how it went.

mod mmorpg;
mod online_games;
mod thin_streams;

#[cfg(test)]
mod tests;

pub use online_games::OnlineGames;
pub use thin_streams::ThinStreamGame;

use crate::report::Unit;
use crate::reproduce::Row;
use crate::stats::{Cluster, Interval, bootstrap, share_interval};

/// Draws of the bootstrap.
const ROUNDS: u32 = 1000;

/// Sum and number of the values of a group.
type Sum = (f64, f64);

/// A number and its 95 % interval.
type Here = (f64, Option<Interval>);

/// A number of an arm, compared where the paper has one.
fn row(arm: &str, what: &str, unit: Unit, paper: Option<f64>, (here, here_95): Here) -> Row {
    let what = format!("{arm}: {what}");
    let here = Some(here).filter(|here| here.is_finite());
    match paper {
        Some(paper) => Row::compared(what, unit, paper, here, here_95),
        None => Row::shown(what, unit, None, here).with_interval(here_95),
    }
}

/// The mean over all groups, no number where there is no value, and its interval by drawing whole groups.
fn mean(groups: &[Sum]) -> Here {
    let over = |places: &mut dyn Iterator<Item = usize>| {
        let (mut sum, mut of) = (0.0, 0.0);
        for place in places {
            sum += groups[place].0;
            of += groups[place].1;
        }
        (sum, of)
    };
    let (sum, of) = over(&mut (0..groups.len()));
    if of == 0.0 {
        return (f64::NAN, None);
    }
    let interval = bootstrap(groups.len(), ROUNDS, 5, |drawn| {
        let (sum, of) = over(&mut drawn.iter().copied());
        if of == 0.0 { 0.0 } else { sum / of }
    });
    (sum / of, interval)
}

/// The mean of what counts or not, which is a share, and its interval: where none of 22 connections has something, it is none of none wide.
fn share(groups: &[Sum]) -> Here {
    let clusters: Vec<_> = groups
        .iter()
        .map(|&(hits, of)| Cluster {
            hits: hits as u64,
            of: of as u64,
        })
        .collect();
    let of: u64 = clusters.iter().map(|cluster| cluster.of).sum();
    if of == 0 {
        return (f64::NAN, None);
    }
    let hits: u64 = clusters.iter().map(|cluster| cluster.hits).sum();
    let interval = (clusters.len() > 1).then(|| share_interval(&clusters, 5));
    (hits as f64 / of as f64, interval)
}

/// A group of values.
fn sum(values: impl Iterator<Item = f64>) -> Sum {
    values.fold((0.0, 0.0), |(sum, of), value| (sum + value, of + 1.0))
}

/// A group of which some count.
fn count(values: impl Iterator<Item = bool>) -> Sum {
    sum(values.map(|value| f64::from(u8::from(value))))
}

/// The quantile of values in any order; None without any.
fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len().max(1));
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(rank - 1, f64::total_cmp).1)
}

/// (value, share of values up to it) at so many points from 0 to `most`.
fn cumulative(values: &[f64], most: f64, points: usize) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (0..=points)
        .map(|point| {
            let value = most * point as f64 / points as f64;
            let within = sorted.partition_point(|&other| other <= value);
            (value, within as f64 / sorted.len().max(1) as f64)
        })
        .collect()
}
