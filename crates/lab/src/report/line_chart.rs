//! Lines over anything: overhead over loss, for one.

use serde::Serialize;

use super::Series;
use super::svg::{Axis, Picture, fill_class, millis, percent, series_class, short};

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By factors; values of zero and below are left out.
    Log,
}

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// As they are.
    #[default]
    Number,
    /// Shares, written as percentages.
    Share,
    /// Milliseconds.
    Millis,
}

impl Unit {
    /// A value with its unit, as a few digits.
    pub fn write(self, value: f64) -> String {
        match self {
            Self::Number => short(value, 3),
            Self::Share => percent(value),
            Self::Millis => format!("{} ms", millis(value)),
        }
    }
}

/// A chart of lines.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LineChart {
    /// Its heading.
    pub title: String,
    /// What is to be read from it; may be empty.
    pub caption: String,
    /// What the horizontal axis shows.
    pub x_label: String,
    /// What the vertical axis shows.
    pub y_label: String,
    /// How horizontal values are written.
    pub x_unit: Unit,
    /// How vertical values are written.
    pub y_unit: Unit,
    /// How the horizontal axis is divided.
    pub x_scale: Scale,
    /// How the vertical axis is divided.
    pub y_scale: Scale,
    /// The horizontal values that are written at the axis; round ones where there are none.
    pub x_ticks: Vec<f64>,
    /// Upright lines, and what they are.
    pub x_marks: Vec<(f64, String)>,
    /// The lines.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 84.0;
const MARK_HEIGHT: f64 = 16.0;

impl LineChart {
    /// The chart as SVG, for pages with this crate's style.
    pub fn svg(&self) -> String {
        let (mut picture, x, y) = self.axes(Picture::legend);
        for (i, series) in self.series.iter().enumerate() {
            let points: Vec<_> = self
                .drawn(series)
                .map(|(vx, vy)| (x.place(vx), y.place(vy)))
                .collect();
            match points[..] {
                // A line needs two.
                [only] => picture.circle(&fill_class(i), only, 5.0, &series.name),
                _ => picture.polyline(&series_class(i), &points, &series.name),
            }
        }
        picture.finish()
    }

    /// A picture with the axes and the legend, and where values are on it.
    pub(super) fn axes(
        &self,
        legend: impl Fn(&mut Picture, (f64, f64), &[&str]) -> f64,
    ) -> (Picture, Axis, Axis) {
        let mut picture = Picture::new(WIDTH, HEIGHT, &self.title);
        let names: Vec<&str> = self
            .series
            .iter()
            .map(|series| series.name.as_str())
            .collect();
        // What the marks are stands above the lines, which would go through the words.
        let marks_top = 16.0 + legend(&mut picture, (LEFT, 16.0), &names);
        let top = marks_top + MARK_HEIGHT * self.x_marks.len() as f64;
        let x = self.x_axis((LEFT, WIDTH - 26.0));
        let height = picture.height();
        let y = self.y_axis((height - 52.0, top));
        for value in self.ticks_of_x(&x, 8) {
            let at = x.place(value);
            picture.line("grid", (at, y.places.1), (at, y.places.0));
            picture.text(
                "tick",
                "middle",
                (at, y.places.0 + 18.0),
                &self.x_unit.write(value),
            );
        }
        for value in y.ticks(6) {
            let at = y.place(value);
            picture.line("grid", (x.places.0, at), (x.places.1, at));
            picture.text(
                "tick",
                "end",
                (x.places.0 - 8.0, at + 4.0),
                &self.y_unit.write(value),
            );
        }
        for (i, (value, name)) in self.x_marks.iter().enumerate() {
            let at = x.place(*value);
            let above = marks_top + MARK_HEIGHT * i as f64;
            picture.line("deadline", (at, above), (at, y.places.0));
            let (anchor, beside) = match at < LEFT + 120.0 {
                true => ("start", at + 5.0),
                false => ("end", at - 5.0),
            };
            picture.text("mark", anchor, (beside, above + 12.0), name);
        }
        picture.text(
            "axis",
            "middle",
            (0.5 * (x.places.0 + x.places.1), height - 10.0),
            &self.x_label,
        );
        picture.text_upwards(
            "axis",
            (16.0, 0.5 * (y.places.0 + y.places.1)),
            &self.y_label,
        );
        (picture, x, y)
    }

    /// Whether there are points, and none can be drawn: they are zeros on logarithmic axes.
    pub(super) fn is_all_zeros(&self) -> bool {
        self.is_empty() && self.series.iter().any(|series| !series.points.is_empty())
    }

    /// Whether no point can be drawn.
    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// The values to write at the horizontal axis.
    pub(super) fn ticks_of_x(&self, axis: &Axis, count: usize) -> Vec<f64> {
        if self.x_ticks.is_empty() {
            axis.ticks(count)
        } else {
            self.x_ticks.clone()
        }
    }

    /// The points that can be drawn.
    pub(super) fn drawn<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = (f64, f64)> + 'a {
        series.points.iter().copied().filter(|&(x, y)| {
            let fits =
                |value: f64, scale| value.is_finite() && (scale == Scale::Linear || value > 0.0);
            fits(x, self.x_scale) && fits(y, self.y_scale)
        })
    }

    pub(super) fn x_axis(&self, places: (f64, f64)) -> Axis {
        let marked = self.x_marks.iter().map(|(value, _)| *value);
        let values = bounds(self.all().map(|point| point.0).chain(marked));
        Axis {
            values,
            places,
            is_log: self.x_scale == Scale::Log,
        }
    }

    /// A linear vertical axis begins at 0.
    pub(super) fn y_axis(&self, places: (f64, f64)) -> Axis {
        let (low, high) = bounds(self.all().map(|point| point.1));
        let is_log = self.y_scale == Scale::Log;
        let values = if is_log {
            (low, high * 1.1)
        } else {
            // Nothing but zeros is on the floor of something.
            let is_zero = low.abs().max(high.abs()) < 1e-8;
            let high = if is_zero { 1.0 } else { high.max(0.0) };
            (low.min(0.0), high * 1.05)
        };
        Axis {
            values,
            places,
            is_log,
        }
    }

    fn all(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.series.iter().flat_map(|series| self.drawn(series))
    }
}

/// The least and the greatest value; (0.1, 1) when there are none.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| {
        (low.min(v), high.max(v))
    });
    if low > high {
        (0.1, 1.0)
    } else if low == high {
        (low - low.abs() * 0.5, high + high.abs() * 0.5 + 1e-9)
    } else {
        (low, high)
    }
}
