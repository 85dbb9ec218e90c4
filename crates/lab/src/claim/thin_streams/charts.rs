//! Figures 2, 5 and 6.

use super::Seen;
use super::rows::mean_angle;
use crate::claim::cumulative;
use crate::game::{self, HALF_LENGTH, HALF_WIDTH};
use crate::report::{LineChart, Series, Unit};

/// Every arm's line.
fn series(seen: &[Seen], points: impl Fn(&Seen) -> Vec<(f64, f64)>) -> Vec<Series> {
    let all = seen.iter().map(|arm| Series {
        name: arm.name.clone(),
        points: points(arm),
    });
    all.collect()
}

fn flat(flows: &[Vec<f64>]) -> Vec<f64> {
    flows.iter().flatten().copied().collect()
}

pub(super) fn latency_charts(seen: &[Seen]) -> Vec<LineChart> {
    let chart = |title: &str, caption: &str, flows: fn(&Seen) -> &Vec<Vec<f64>>| LineChart {
        title: title.to_owned(),
        caption: caption.to_owned(),
        x_label: "beyond the one-way delay".to_owned(),
        y_label: "share".to_owned(),
        x_unit: Unit::Millis,
        y_unit: Unit::Share,
        series: series(seen, |arm| cumulative(&flat(flows(arm)), 600.0, 300)),
        ..LineChart::default()
    };
    vec![
        chart(
            "Figure 2(a): transport layer latency",
            "From the server to the clients, arrival.",
            |arm| &arm.transport_ms,
        ),
        chart(
            "Figure 2(b): application layer latency",
            "The same until everything before has arrived too.",
            |arm| &arm.application_ms,
        ),
    ]
}

pub(super) fn angle_chart(seen: &[Seen]) -> LineChart {
    LineChart {
        title: "Figure 5: angle between seen and actual position".to_owned(),
        x_label: "degrees".to_owned(),
        y_label: "share of sights at shots".to_owned(),
        y_unit: Unit::Share,
        series: series(seen, |arm| cumulative(&flat(&arm.angles_deg), 15.0, 300)),
        ..LineChart::default()
    }
}

pub(super) fn hit_charts(seen: &[Seen]) -> Vec<LineChart> {
    let distances = || (1..=60).map(|step| f64::from(step) * 2.5);
    let chart = |title: &str, y_label: &str, y_unit, series| LineChart {
        title: title.to_owned(),
        x_label: "distance, world units".to_owned(),
        y_label: y_label.to_owned(),
        y_unit,
        series,
        ..LineChart::default()
    };
    let constant = |name: &str, value: f64| Series {
        name: name.to_owned(),
        points: vec![(2.5, value), (150.0, value)],
    };
    let mut radius = series(seen, |arm| {
        let tangent = libm::tan(mean_angle(arm).0.to_radians());
        distances()
            .map(|distance| (distance, distance * tangent))
            .collect()
    });
    radius.push(constant("tank from the front", HALF_WIDTH));
    radius.push(constant("tank from the side", HALF_LENGTH));
    let chances = series(seen, |arm| {
        let angles = flat(&arm.angles_deg);
        distances()
            .map(|distance| (distance, game::hit_share(&angles, distance, HALF_WIDTH)))
            .collect()
    });
    vec![
        chart(
            "Figure 6(a): hit box for a perfect shot",
            "radius, world units",
            Unit::Number,
            radius,
        ),
        chart(
            "Figure 6(b): chance of a perfect shot at a tank's front",
            "share of shots",
            Unit::Share,
            chances,
        ),
    ]
}
