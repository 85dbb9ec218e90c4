//! The distribution of latency with its tail stretched: 90 %, 99 %, 99.9 % ... at equal distances.
//!
//! A policy keeps its promise when its line is above the target where it crosses the deadline. An ordinary plot of the
//! distribution would show all policies as the same line at the top.

use super::svg::{Axis, Picture, millis, percent, series_class, short};
use super::{Figures, Series};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 26.0;
const BOTTOM: f64 = 52.0;

pub(super) fn draw(figures: &Figures) -> String {
    let mut picture = Picture::new(
        WIDTH,
        HEIGHT,
        "Latency of each policy: share of messages that arrived, with a stretched tail",
    );
    let names: Vec<&str> = figures
        .latency
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    let top = 34.0 + picture.legend((LEFT, 16.0), &names);
    let x = latency_axis(figures);
    let y = tail_axis(figures, (top, picture.height() - BOTTOM));
    grid(&mut picture, &x, &y);
    marks(&mut picture, figures, &x, &y);
    for (i, series) in figures.latency.iter().enumerate() {
        curve(&mut picture, &series_class(i), series, &x, &y);
    }
    picture.finish()
}

/// From 0, or from near the least latency when all are far from 0, to the greatest, but not beyond six deadlines: a few
/// stragglers would squeeze everything that matters.
fn latency_axis(figures: &Figures) -> Axis {
    let all = || {
        figures
            .latency
            .iter()
            .flat_map(|series| &series.points)
            .map(|point| point.0)
    };
    let deadline = figures.deadline_ms.into_iter();
    let high = all().chain(deadline.clone()).fold(1.0, f64::max) * 1.03;
    let high = figures
        .deadline_ms
        .map_or(high, |deadline| high.min(6.0 * deadline.max(1.0)));
    let low = all().chain(deadline).fold(high, f64::min);
    let low = if low > 0.4 * high {
        (low - 0.1 * (high - low)).max(0.0)
    } else {
        0.0
    };
    Axis {
        values: (low, high),
        places: (LEFT, WIDTH - RIGHT),
        is_log: false,
    }
}

/// The later share from 1 down to where the data end: below one message nothing is known.
fn tail_axis(figures: &Figures, places: (f64, f64)) -> Axis {
    let shares = figures
        .latency
        .iter()
        .flat_map(|series| &series.points)
        .map(|point| point.1);
    let least = shares.filter(|&share| share > 1e-9).fold(0.5, f64::min);
    let target = figures
        .on_time_target
        .map_or(0.01, |target| (1.0 - target) / 3.0);
    // A little further, so that the last message can be seen to arrive.
    let least = 0.6 * least.min(target).clamp(1e-7, 0.1);
    // The later share falls upwards.
    Axis {
        values: (least, 1.0),
        places,
        is_log: true,
    }
}

fn grid(picture: &mut Picture, x: &Axis, y: &Axis) {
    for latency in x.ticks(9) {
        let at = x.place(latency);
        picture.line("grid", (at, y.places.0), (at, y.places.1));
        picture.text(
            "tick",
            "middle",
            (at, y.places.1 + 18.0),
            &short(latency, 2),
        );
    }
    let decades = (0..9).map(|decade| 10f64.powi(-decade));
    let shown = decades.take_while(|&later| later >= y.values.0 * 0.999);
    for later in shown.chain([0.5]) {
        let at = y.place(later);
        picture.line("grid", (x.places.0, at), (x.places.1, at));
        picture.text("tick", "end", (x.places.0 - 8.0, at + 4.0), &on_time(later));
    }
    let middle = 0.5 * (x.places.0 + x.places.1);
    let below = (middle, picture.height() - 10.0);
    picture.text("axis", "middle", below, "latency (ms)");
    picture.text_upwards(
        "axis",
        (16.0, 0.5 * (y.places.0 + y.places.1)),
        "messages that have arrived",
    );
}

/// `99.9 %` for a later share of 0.001.
fn on_time(later: f64) -> String {
    let digits = -later.log10().round() as usize;
    format!("{:.*} %", digits.saturating_sub(2), 100.0 * (1.0 - later))
}

fn marks(picture: &mut Picture, figures: &Figures, x: &Axis, y: &Axis) {
    if let Some(deadline) = figures.deadline_ms {
        let at = x.place(deadline);
        picture.line("deadline", (at, y.places.0 - 6.0), (at, y.places.1));
        let label = format!("deadline {} ms", short(deadline, 1));
        let anchor = if at > 0.8 * WIDTH { "end" } else { "middle" };
        picture.text("mark", anchor, (at, y.places.0 - 10.0), &label);
    }
    if let Some(target) = figures.on_time_target {
        let at = y.place(1.0 - target);
        picture.line("target", (x.places.0, at), (x.places.1, at));
        let label = format!(
            "target {}",
            percent(target).replace("100 %", &format!("{} %", short(target * 100.0, 5)))
        );
        picture.text("mark", "end", (x.places.1 - 4.0, at - 6.0), &label);
    }
}

fn curve(picture: &mut Picture, class: &str, series: &Series, x: &Axis, y: &Axis) {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for &(latency, later) in &series.points {
        if latency > x.values.1 {
            // The line leaves the picture: it goes on to the edge at the share that it had.
            if let Some(&(_, last)) = points.last() {
                points.push((x.places.1, last));
            }
            break;
        }
        let here = (
            x.place(latency),
            y.place(later.max(y.values.0 * 0.5)).max(y.places.0),
        );
        // Up at each latency that occurred, level between two: nothing arrived there.
        let level = points.last().map_or(y.places.1, |last| last.1);
        points.push((here.0, level));
        points.push(here);
    }
    picture.polyline(class, &points, &hint(series));
}

fn hint(series: &Series) -> String {
    let quantile = |later: f64| {
        let reached = series.points.iter().find(|point| point.1 <= later);
        reached.map_or_else(
            || "never".to_owned(),
            |point| format!("{} ms", millis(point.0)),
        )
    };
    format!(
        "{}: 99 % within {}, 99.9 % within {}",
        series.name,
        quantile(0.01),
        quantile(0.001)
    )
}
