//! Policies beside each other: how many messages were late, and what it cost.

use super::Figures;
use super::svg::{Axis, COLOURS, Picture, measured, optional, percent, text_width};
use crate::stats::{Report, Summary};

const WIDTH: f64 = 860.0;
const ROW: f64 = 34.0;

/// The least share that is drawn; what is below is drawn there, with an arrow.
fn floor(report: &Report, target: Option<f64>) -> f64 {
    let values = report.policies.iter().flat_map(|policy| {
        [
            policy.late_share,
            policy.late_share_95.low,
            policy.predicted_late_share.unwrap_or(1.0),
        ]
    });
    let shown = values
        .chain(target.map(|target| 1.0 - target))
        .filter(|&share| share > 1e-8);
    10f64.powf(shown.fold(0.01, f64::min).log10().floor())
}

fn left(report: &Report) -> f64 {
    let widest = report
        .policies
        .iter()
        .map(|policy| text_width(&policy.policy))
        .fold(60.0, f64::max);
    (widest + 20.0).min(0.4 * WIDTH)
}

/// Late shares with their intervals and the predictions, on a log axis.
pub(super) fn late_shares(report: &Report, figures: &Figures) -> String {
    let height = 74.0 + ROW * report.policies.len() as f64;
    let mut picture = Picture::new(WIDTH, height, "Late messages of each policy");
    let (left, top, bottom) = (left(report), 26.0, height - 46.0);
    let high = report
        .policies
        .iter()
        .map(|policy| policy.late_share_95.high)
        .fold(0.02, f64::max);
    let low = floor(report, figures.on_time_target);
    let x = Axis {
        values: (low, high.min(1.0) * 1.3),
        places: (left, WIDTH - 190.0),
        is_log: true,
    };
    let decades = (x.values.1 / x.values.0).log10();
    for share in x.ticks(6) {
        let at = x.place(share);
        picture.line("grid", (at, top), (at, bottom));
        let is_decade = (share.log10() - share.log10().round()).abs() < 1e-6;
        if is_decade || decades < 3.0 {
            picture.text("tick", "middle", (at, bottom + 18.0), &percent(share));
        }
    }
    picture.text(
        "axis",
        "middle",
        (0.5 * (x.places.0 + x.places.1), height - 6.0),
        "messages late or lost",
    );
    if let Some(target) = figures.on_time_target {
        let at = x.place(1.0 - target);
        picture.line("target", (at, top - 4.0), (at, bottom));
        picture.text(
            "mark",
            "middle",
            (at, top - 9.0),
            &format!("at most {}", percent(1.0 - target)),
        );
    }
    for (i, policy) in report.policies.iter().enumerate() {
        let y = top + ROW * (i as f64 + 0.5);
        picture.text("row", "end", (left - 10.0, y + 4.0), &policy.policy);
        late_share(&mut picture, policy, i, y, &x);
    }
    picture.finish()
}

fn late_share(picture: &mut Picture, policy: &Summary, i: usize, y: f64, x: &Axis) {
    let interval = policy.late_share_95;
    let (from, to) = (
        x.place(interval.low).max(x.places.0),
        x.place(interval.high),
    );
    let share = measured(policy.late_share);
    let hint = format!(
        "{}: {share} late, 95 % interval {} to {}",
        policy.policy,
        measured(interval.low),
        measured(interval.high)
    );
    let colour = i % COLOURS;
    picture.rect(
        &format!("interval f{colour}"),
        (from, y - 4.0),
        ((to - from).max(2.0), 8.0),
        &hint,
    );
    if policy.late_share > 0.0 {
        picture.circle(
            &format!("f{colour}"),
            (x.place(policy.late_share).max(x.places.0), y),
            6.0,
            &hint,
        );
    }
    let mut label = share;
    if let Some(predicted) = policy.predicted_late_share {
        let at = x.place(predicted).max(x.places.0);
        let hint = format!("{}: {} predicted", policy.policy, measured(predicted));
        picture.line("predicted", (at, y - 10.0), (at, y + 10.0));
        picture.circle("predicted", (at, y), 3.5, &hint);
        label.push_str(&format!(" (pred. {})", measured(predicted)));
    }
    picture.text("value", "start", (x.places.1 + 10.0, y + 4.0), &label);
}

/// Recovery and encapsulation overhead, stacked.
pub(super) fn overheads(report: &Report) -> String {
    let height = 74.0 + ROW * report.policies.len() as f64;
    let mut picture = Picture::new(WIDTH, height, "Overhead of each policy");
    let (left, top, bottom) = (left(report), 26.0, height - 46.0);
    let headers = |policy: &Summary| policy.encapsulation_overhead.unwrap_or(0.0);
    let total = |policy: &Summary| policy.recovery_overhead + headers(policy);
    let high = report.policies.iter().map(total).fold(0.01, f64::max) * 1.05;
    let x = Axis {
        values: (0.0, high),
        places: (left, WIDTH - 150.0),
        is_log: false,
    };
    for share in x.ticks(6) {
        let at = x.place(share);
        picture.line("grid", (at, top), (at, bottom));
        picture.text("tick", "middle", (at, bottom + 18.0), &percent(share));
    }
    picture.text(
        "axis",
        "middle",
        (0.5 * (x.places.0 + x.places.1), height - 6.0),
        "sent beyond the messages themselves",
    );
    picture.rect("bar f0", (left, 4.0), (14.0, 12.0), "");
    picture.text(
        "legend",
        "start",
        (left + 20.0, 15.0),
        "recovery: symbols beyond those needed",
    );
    picture.rect("bar headers", (left + 300.0, 4.0), (14.0, 12.0), "");
    picture.text(
        "legend",
        "start",
        (left + 320.0, 15.0),
        "encapsulation: headers and tags",
    );
    for (i, policy) in report.policies.iter().enumerate() {
        let y = top + ROW * (i as f64 + 0.5);
        picture.text("row", "end", (left - 10.0, y + 4.0), &policy.policy);
        let middle = x.place(policy.recovery_overhead);
        let end = x.place(total(policy));
        let recovery = measured(policy.recovery_overhead);
        let headers = optional(policy.encapsulation_overhead);
        picture.rect(
            "bar f0",
            (left, y - 9.0),
            (middle - left, 18.0),
            &format!("{}: recovery {recovery}", policy.policy),
        );
        picture.rect(
            "bar headers",
            (middle, y - 9.0),
            (end - middle, 18.0),
            &format!("{}: encapsulation {headers}", policy.policy),
        );
        picture.text(
            "value",
            "start",
            (end + 8.0, y + 4.0),
            &format!("{recovery} + {headers}"),
        );
    }
    picture.finish()
}
