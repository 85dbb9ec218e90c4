//! Points over anything: one thing against another, row by row.

use super::LineChart;
use super::svg::{Axis, COLOURS, Picture, text_width};

/// A chart of points. Series differ in their shape as well as in their colour: dots and squares in turn.
#[derive(Debug, Clone, Default)]
pub struct Scatter {
    /// Axes, words, and the points in its series.
    pub chart: LineChart,
    /// Whether the line is drawn on which both values are the same.
    pub has_diagonal: bool,
}

const RADIUS: f64 = 3.0;

impl Scatter {
    /// The chart as SVG, for pages with this crate's style.
    pub fn svg(&self) -> String {
        let (mut picture, x, y) = self.chart.axes(legend);
        if self.has_diagonal {
            let low = x.values.0.max(y.values.0);
            let high = x.values.1.min(y.values.1);
            let at = |value: f64| (x.place(value), y.place(value));
            if low < high {
                picture.line("target", at(low), at(high));
            }
        }
        for (i, series) in self.chart.series.iter().enumerate() {
            for (vx, vy) in self.chart.drawn(series) {
                mark(&mut picture, i, place((&x, &y), (vx, vy)), &series.name);
            }
        }
        picture.finish()
    }
}

fn place(axes: (&Axis, &Axis), value: (f64, f64)) -> (f64, f64) {
    (axes.0.place(value.0), axes.1.place(value.1))
}

fn mark(picture: &mut Picture, i: usize, at: (f64, f64), hint: &str) {
    let class = format!("point f{}", i % COLOURS);
    if i.is_multiple_of(2) {
        picture.circle(&class, at, RADIUS, hint);
    } else {
        let corner = (at.0 - RADIUS, at.1 - RADIUS);
        picture.rect(&class, corner, (2.0 * RADIUS, 2.0 * RADIUS), hint);
    }
}

/// Marks and names from left to right; returns the height that they take.
fn legend(picture: &mut Picture, at: (f64, f64), names: &[&str]) -> f64 {
    let widths: Vec<f64> = names.iter().map(|name| 28.0 + text_width(name)).collect();
    picture.names(at, &widths, |picture, i, (x, y)| {
        mark(picture, i, (x + 6.0, y - 4.0), names[i]);
        picture.text("legend", "start", (x + 18.0, y), names[i]);
    })
}
