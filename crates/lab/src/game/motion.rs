//! Driving in arcs: what a tank does, and what others extrapolate.

use std::time::Duration;

/// A place on the field, in world units.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    /// To the east.
    pub x: f64,
    /// To the north.
    pub y: f64,
}

impl Point {
    /// How far another is.
    pub fn distance(self, other: Self) -> f64 {
        libm::hypot(self.x - other.x, self.y - other.y)
    }

    pub(super) fn is_within(self, field: f64) -> bool {
        (0.0..=field).contains(&self.x) && (0.0..=field).contains(&self.y)
    }
}

/// Where something is, and how it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Motion {
    /// Where it is.
    pub at: Point,
    /// Where it goes, in radians from the east to the north.
    pub heading: f64,
    /// In world units a second; below 0 backwards.
    pub speed: f64,
    /// In radians a second.
    pub turn: f64,
}

/// Below this a bend cannot be told from a line.
const STRAIGHT: f64 = 1e-9;

impl Motion {
    /// The same motion some time later.
    #[must_use]
    pub fn after(&self, time: Duration) -> Self {
        let seconds = time.as_secs_f64();
        let heading = self.heading + self.turn * seconds;
        let (east, north) = if self.turn.abs() < STRAIGHT {
            let way = self.speed * seconds;
            (way * libm::cos(self.heading), way * libm::sin(self.heading))
        } else {
            let radius = self.speed / self.turn;
            let east = libm::sin(heading) - libm::sin(self.heading);
            let north = libm::cos(self.heading) - libm::cos(heading);
            (radius * east, radius * north)
        };
        Self {
            at: Point {
                x: self.at.x + east,
                y: self.at.y + north,
            },
            heading,
            ..*self
        }
    }
}
