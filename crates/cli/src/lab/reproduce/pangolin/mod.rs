//! "Concurrent messaging in online games" (Pangolin, CoNEXT 2011): tables 1 to 4, figures 2 to 4 and 6 to 8.
//!
//! The paper's latencies are round trips, since its emulator let packets wait for a whole one; ours are one way, so the way back is added
//! wherever the two stand side by side. Its traces were never published: clients are the synthetic ones of
//! [`punctual_lab::population`].

mod clients;
mod costs;
mod simple;
mod tcp;
mod wild;

use std::time::Duration;

use punctual_lab::arena::ArmRun;
use punctual_lab::report::{LineChart, Scale, Series, Unit};
use punctual_lab::reproduce::{QUANTILES, Row, Sample, Verdict};

use super::Reproduction;

/// All of it, in order.
pub(super) fn all() -> Vec<Box<dyn Reproduction>> {
    vec![
        Box::new(clients::Clients),
        Box::new(tcp::TcpInTheWild),
        Box::new(costs::Costs),
        Box::new(simple::SimpleScenario),
        Box::new(wild::Policies),
        Box::new(wild::PacketSizes),
    ]
}

/// Rows of an arm's quantiles beside the paper's.
fn quantile_rows(
    arm: &str,
    paper: &[Option<f64>; QUANTILES.len()],
    sample: &Sample,
    reason: &str,
) -> Vec<Row> {
    let row = |((name, share), paper): ((&str, f64), &Option<f64>)| {
        let what = format!("{arm}, {name}");
        let (here, here_95) = (sample.quantile_ms(share), sample.quantile_ms_95(share));
        match *paper {
            Some(paper) => {
                let row = Row::compared(what.clone(), Unit::Millis, paper, here, here_95);
                // (What never arrives is no want of messages.)
                let is_unbounded = here.is_some() && here_95.is_none();
                if row.verdict == Verdict::Differs && is_unbounded {
                    Row::shown(what, Unit::Millis, Some(paper), here)
                        .with_note("too few messages to say between which values it lies")
                } else {
                    row.with_reason(reason)
                }
            }
            None => Row::shown(what, Unit::Millis, None, here).with_interval(here_95),
        }
    };
    QUANTILES.into_iter().zip(paper).map(row).collect()
}

/// Lines of shares of messages that arrived by then.
fn distributions(title: &str, caption: &str, lines: &[(&str, &Sample)]) -> LineChart {
    let line = |&(name, sample): &(&str, &Sample)| Series {
        name: name.to_owned(),
        points: sample.distribution(),
    };
    LineChart {
        title: title.to_owned(),
        caption: caption.to_owned(),
        x_label: "latency as a round trip".to_owned(),
        y_label: "share of messages that arrived by then".to_owned(),
        x_unit: Unit::Millis,
        y_unit: Unit::Share,
        x_scale: Scale::Log,
        series: lines.iter().map(line).collect(),
        ..LineChart::default()
    }
}

/// The same, the tail of it: shares that had not arrived yet.
fn tails(title: &str, lines: &[(&str, &Sample)]) -> LineChart {
    let mut chart = distributions(title, "Each step up is ten times fewer messages.", lines);
    chart.y_label = "share of messages that arrived later".to_owned();
    chart.y_scale = Scale::Log;
    for series in &mut chart.series {
        for point in &mut series.points {
            point.1 = 1.0 - point.1;
        }
    }
    chart
}

/// Messages of an arm as the paper counts them: with the way back.
fn round_trips(run: &ArmRun, ways_back: &[Duration]) -> Sample {
    Sample::round_trips(&run.played, |client| ways_back[client])
}
