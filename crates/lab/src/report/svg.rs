//! Axes and shapes.

use std::fmt::Write;

/// Text made safe for HTML and SVG, within elements and attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Control characters are not allowed in either.
            c if c.is_control() && c != '\n' => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// There are so many colours, and so many dashes.
pub(super) const COLOURS: usize = 8;

/// Height of a row of names.
const NAMES_ROW: f64 = 20.0;

/// An SVG picture that grows as shapes are added.
#[derive(Debug)]
pub(super) struct Picture {
    body: String,
    width: f64,
    height: f64,
    label: String,
}

impl Picture {
    /// `label` is read out by screen readers.
    pub(super) fn new(width: f64, height: f64, label: &str) -> Self {
        Self {
            body: String::new(),
            width,
            height,
            label: escape(label),
        }
    }

    pub(super) fn finish(self) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">\n{}</svg>\n",
            self.width, self.height, self.label, self.body
        )
    }

    /// How high it is.
    pub(super) const fn height(&self) -> f64 {
        self.height
    }

    /// Makes room at its top for rows of names after the first; the height that they take, of names of such widths, each drawn by `draw` where it stands.
    pub(super) fn names(
        &mut self,
        at: (f64, f64),
        widths: &[f64],
        mut draw: impl FnMut(&mut Self, usize, (f64, f64)),
    ) -> f64 {
        let (mut x, mut y) = at;
        for (i, width) in widths.iter().enumerate() {
            if x + width > self.width && x > at.0 {
                x = at.0;
                y += NAMES_ROW;
            }
            draw(self, i, (x, y));
            x += width + 8.0;
        }
        // What is drawn below has as much room whatever there is to name.
        self.height += y - at.1;
        y - at.1 + NAMES_ROW
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    pub(super) fn text(&mut self, class: &str, anchor: &str, at: (f64, f64), text: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            at.0,
            at.1,
            escape(text)
        );
    }

    /// Text that reads upwards, for the left axis.
    pub(super) fn text_upwards(&mut self, class: &str, at: (f64, f64), text: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" text-anchor=\"middle\" transform=\"translate({:.1} {:.1}) rotate(-90)\">{}</text>",
            at.0,
            at.1,
            escape(text)
        );
    }

    pub(super) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), hint: &str) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"><title>{}</title></rect>",
            at.0,
            at.1,
            size.0.max(0.0),
            size.1.max(0.0),
            escape(hint)
        );
    }

    pub(super) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64, hint: &str) {
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\"><title>{}</title></circle>",
            at.0,
            at.1,
            escape(hint)
        );
    }

    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)], hint: &str) {
        let mut path = String::new();
        for (x, y) in points {
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        let _ = writeln!(
            self.body,
            "<polyline class=\"{class}\" points=\"{}\"><title>{}</title></polyline>",
            path.trim_end(),
            escape(hint)
        );
    }

    /// A legend from left to right at `at`, in rows no wider than the picture; returns the height that it takes.
    pub(super) fn legend(&mut self, at: (f64, f64), names: &[&str]) -> f64 {
        let widths: Vec<f64> = names.iter().map(|name| 44.0 + text_width(name)).collect();
        self.names(at, &widths, |picture, i, (x, y)| {
            picture.line(&series_class(i), (x, y - 4.0), (x + 26.0, y - 4.0));
            picture.text("legend", "start", (x + 32.0, y), names[i]);
        })
    }
}

/// The class of the `i`th series: a colour, and a dash that differs as well, for those who see no colours. When colours begin again they
/// meet other dashes: 64 series differ.
pub(super) fn series_class(i: usize) -> String {
    format!("series c{} d{}", i % COLOURS, (i + i / COLOURS) % COLOURS)
}

/// The class of the `i`th series' areas and dots.
pub(super) fn fill_class(i: usize) -> String {
    format!("f{}", i % COLOURS)
}

/// Roughly how wide a text is at 13 px.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.2
}

/// From values to places on the picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub(super) values: (f64, f64),
    pub(super) places: (f64, f64),
    pub(super) is_log: bool,
}

impl Axis {
    pub(super) fn place(&self, value: f64) -> f64 {
        let map = |value: f64| {
            if self.is_log {
                value.max(1e-300).log10()
            } else {
                value
            }
        };
        let (low, high) = (map(self.values.0), map(self.values.1));
        let share = if high > low {
            (map(value) - low) / (high - low)
        } else {
            0.5
        };
        self.places.0 + share.clamp(-0.02, 1.02) * (self.places.1 - self.places.0)
    }

    /// Round values to mark, about `count` of them (on a log axis: the decades, and 2 and 5 when there are few).
    pub(super) fn ticks(&self, count: usize) -> Vec<f64> {
        let (low, high) = self.values;
        if !self.is_log {
            let step = round_step((high - low) / count.max(1) as f64);
            let first = (low / step).ceil() as i64;
            return (first..)
                .map(|i| i as f64 * step)
                .take_while(|&v| v <= high + step * 1e-6)
                .take(100)
                .collect();
        }
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let few = high / low < 200.0;
        decades
            .flat_map(|decade| {
                let base = 10f64.powi(decade);
                if few {
                    vec![base, 2.0 * base, 5.0 * base]
                } else {
                    vec![base]
                }
            })
            .filter(|v| (low * 0.999..=high * 1.001).contains(v))
            .collect()
    }
}

/// 1, 2, 2.5 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    if !step.is_finite() || step <= 0.0 {
        return 1.0;
    }
    let base = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .find(|f| f * base >= step * 0.999);
    factor.unwrap_or(10.0) * base
}

/// A number with as many digits as it needs, at most `digits` after the point.
pub(super) fn short(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A share as a percentage for axes: `0.1 %`, `2.5 %`, `50 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", short(share * 100.0, percent_digits(share)))
}

/// A measured share as a percentage, with two or three significant digits: `0.050 %`, `4.10 %`, `25.0 %`.
pub fn measured(share: f64) -> String {
    let digits = percent_digits(share);
    format!("{:.digits$} %", share * 100.0)
}

/// The same; `-` where there is none.
pub(super) fn optional(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), measured)
}

fn percent_digits(share: f64) -> usize {
    match (share * 100.0).abs() {
        p if p == 0.0 || p >= 100.0 => 0,
        p if p >= 10.0 => 1,
        p if p >= 0.1 => 2,
        p if p >= 0.01 => 3,
        p if p >= 0.001 => 4,
        _ => 5,
    }
}

/// Milliseconds with a sensible number of digits: `50.2`, `1234`.
pub(super) fn millis(ms: f64) -> String {
    if ms >= 1000.0 {
        format!("{ms:.0}")
    } else {
        format!("{ms:.1}")
    }
}

/// A count with its thousands apart: `60,000`.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
