//! The numbers of figures 2, 5 and 6 and of the text around them.

use super::{MODIFIED, Seen, UNDELAYED_MS, UNMODIFIED};
use crate::arena::ArmRun;
use crate::arm::Exchange;
use crate::claim::{Here, ROUNDS, count, mean, quantile, row, share, sum};
use crate::game::{self, HALF_LENGTH, HALF_WIDTH};
use crate::report::Unit;
use crate::reproduce::Row;
use crate::stats::{Interval, bootstrap};

pub(super) fn find<'a>(seen: &'a [Seen], name: &str) -> Option<&'a Seen> {
    seen.iter().find(|arm| arm.name == name)
}

/// What the paper has for an arm: without its changes, with them, or nothing.
fn of_paper(arm: &str, unmodified: f64, modified: f64) -> Option<f64> {
    match arm {
        UNMODIFIED => Some(unmodified),
        MODIFIED => Some(modified),
        _ => None,
    }
}

fn undelayed(flows: &[Vec<f64>]) -> Here {
    let flow = |flow: &Vec<f64>| count(flow.iter().map(|&delay| delay <= UNDELAYED_MS));
    share(&flows.iter().map(flow).collect::<Vec<_>>())
}

fn p99(flows: &[Vec<f64>]) -> Here {
    let over = |places: &mut dyn Iterator<Item = usize>| {
        let all = places.flat_map(|place| flows[place].iter().copied());
        quantile(&mut all.collect::<Vec<_>>(), 0.99).unwrap_or(f64::NAN)
    };
    // Fewer draws: each looks at everything anew.
    let interval = bootstrap(flows.len(), 200, 6, |drawn| {
        over(&mut drawn.iter().copied())
    });
    (over(&mut (0..flows.len())), interval)
}

pub(super) fn latency_rows(arm: &Seen) -> Vec<Row> {
    let row = |what, unit, paper, here| row(&arm.name, what, unit, paper, here);
    let is_unmodified = arm.name == UNMODIFIED;
    vec![
        row(
            "arrives undelayed",
            Unit::Share,
            of_paper(&arm.name, 0.98, 0.98),
            undelayed(&arm.transport_ms),
        ),
        row(
            "can be read undelayed, in order",
            Unit::Share,
            of_paper(&arm.name, 0.85, 0.99),
            undelayed(&arm.application_ms),
        )
        .with_reason(
            "a loss holds up what follows until it is made up for, so this depends on how soon that is and how much follows: today's \
             kernel needs less time for it than that of 2008",
        ),
        row(
            "99 % can be read, in order, beyond the one-way delay within",
            Unit::Millis,
            is_unmodified.then_some(261.0),
            p99(&arm.application_ms),
        )
        .with_reason("the paper has it as a bound from below, of all bytes"),
        row(
            "99 % arrive, beyond the one-way delay within",
            Unit::Millis,
            None,
            p99(&arm.transport_ms),
        ),
    ]
}

pub(super) fn mean_angle(arm: &Seen) -> Here {
    let tank = |angles: &Vec<f64>| sum(angles.iter().copied());
    mean(&arm.angles_deg.iter().map(tank).collect::<Vec<_>>())
}

pub(super) fn angle_rows(arm: &Seen) -> Vec<Row> {
    let what = "mean angle between seen and actual position, degrees";
    let paper = of_paper(&arm.name, 3.5, 2.7);
    let row = row(&arm.name, what, Unit::Number, paper, mean_angle(arm));
    vec![row.with_reason(
        "two hops of 65 ms make most of it, whatever the transport; how much that is depends on how fast tanks drive and how near \
         they come to each other",
    )]
}

pub(super) fn hit_rows(arm: &Seen) -> Vec<Row> {
    let (angle, interval) = mean_angle(arm);
    let distance = |angle| game::hit_distance(angle, HALF_WIDTH);
    let distances = interval.map(|interval| Interval {
        low: distance(interval.high),
        high: distance(interval.low),
    });
    let all: Vec<f64> = arm.angles_deg.iter().flatten().copied().collect();
    let chance = |half| (game::hit_share(&all, 50.0, half), None);
    vec![
        row(
            &arm.name,
            "a perfect shot hits a tank's front up to, world units",
            Unit::Number,
            of_paper(&arm.name, 23.0, 30.0),
            (distance(angle), distances),
        )
        .with_reason("from the mean angle, as in the paper"),
        row(
            &arm.name,
            "chance to hit a tank's front from 50 world units",
            Unit::Share,
            None,
            chance(HALF_WIDTH),
        ),
        row(
            &arm.name,
            "chance to hit a tank's side from 50 world units",
            Unit::Share,
            None,
            chance(HALF_LENGTH),
        ),
    ]
}

/// A number of one arm less that of another, tank by tank: both play the same game.
fn gain(arms: [&Seen; 2], of: impl Fn(&[f64]) -> f64) -> Here {
    let tanks = arms
        .map(|arm| arm.angles_deg.len())
        .into_iter()
        .min()
        .unwrap_or(0);
    let over = |places: &[usize]| {
        let [first, second] = arms.map(|arm| {
            let angles = places.iter().flat_map(|&tank| arm.angles_deg[tank].iter());
            of(&angles.copied().collect::<Vec<_>>())
        });
        first - second
    };
    let everybody: Vec<_> = (0..tanks).collect();
    (over(&everybody), bootstrap(tanks, 200, 7, over))
}

/// The paper's number, and its conclusion.
fn gain_rows(what: &str, unit: Unit, paper: f64, (here, here_95): Here) -> [Row; 2] {
    let is_gain = here_95.is_some_and(|interval| interval.low > 0.0);
    [
        Row::compared(what, unit, paper, Some(here), here_95),
        Row::said(format!("{what}: above zero"), unit, here, is_gain).with_interval(here_95),
    ]
}

pub(super) fn angle_gain(before: &Seen, after: &Seen) -> [Row; 2] {
    let mean = |angles: &[f64]| {
        let (sum, of) = sum(angles.iter().copied());
        sum / of
    };
    let what = format!(
        "mean angle of {} less that of {}, degrees",
        before.name, after.name
    );
    gain_rows(&what, Unit::Number, 0.7, gain([before, after], mean))
}

/// How much less the mean angle is, whatever the field's size and the tanks' speed.
pub(super) fn relative_angle(before: &Seen, after: &Seen) -> Row {
    let means = [before, after].map(|arm| {
        let tank = |angles: &Vec<f64>| sum(angles.iter().copied());
        arm.angles_deg.iter().map(tank).collect::<Vec<_>>()
    });
    let tanks = means[0].len().min(means[1].len());
    let over = |places: &[usize]| {
        let [before, after] = [0, 1].map(|arm: usize| {
            let tanks = places.iter().map(|&tank| means[arm][tank]);
            let (sum, of) = tanks.fold((0.0, 0.0), |all, tank| (all.0 + tank.0, all.1 + tank.1));
            sum / of
        });
        1.0 - after / before
    };
    let everybody: Vec<_> = (0..tanks).collect();
    let here_95 = bootstrap(tanks, ROUNDS, 9, over);
    let what = format!("mean angle of {} below that of {}", after.name, before.name);
    // 2.7 of 3.5 degrees.
    Row::compared(what, Unit::Share, 0.23, Some(over(&everybody)), here_95)
        .with_reason("what both share, the two hops, is more here")
}

pub(super) fn hit_gain(before: &Seen, after: &Seen) -> [Row; 2] {
    let chance = |angles: &[f64]| game::hit_share(angles, 50.0, HALF_WIDTH);
    let what = format!(
        "chance to hit a front from 50 world units, {} less {}",
        after.name, before.name
    );
    gain_rows(&what, Unit::Share, 0.12, gain([after, before], chance))
}

pub(super) fn cost_row(arm: &Seen, seen: &[Seen]) -> Option<Row> {
    let unmodified = find(seen, UNMODIFIED).filter(|_| arm.name != UNMODIFIED)?;
    let more = arm.bytes_from_server / unmodified.bytes_from_server - 1.0;
    let what = "IP bytes from the server beyond those of tcp-2008";
    let row = row(&arm.name, what, Unit::Share, None, (more, None));
    Some(row.with_note(
        "the paper calls its increase small, without a number; Punctual seals every packet and may share packets",
    ))
}

/// How losses were found, by the server's kernel.
pub(super) fn timers_row(arm: &ArmRun<Exchange>) -> Option<Row> {
    let count = |name: &str| arm.kernel.get(&format!("TcpExt.{name}")) as f64;
    let fast = count("TCPFastRetrans");
    let timers = count("TCPTimeouts") + count("TCPLossProbes");
    let found = fast + timers;
    (found > 0.0).then(|| {
        let what = "losses that a timer found, by the server's kernel";
        let row = row(&arm.name, what, Unit::Share, None, (timers / found, None));
        row.with_note(format!(
            "{fast:.0} fast retransmits, {timers:.0} timeouts and probes"
        ))
    })
}
