//! A game of tanks: who moves how, what they tell each other, and what each sees of the others.
//!
//! Made after what the thin-stream paper (Petlund and others, NetGames 2008) played, BZFlag, from its numbers and not from its code.
//! Tanks drive on a square field and turn and stop as computer players do. Between updates the others extrapolate a tank's motion;
//! a tank sends an update when that would deviate, or when it has said nothing for a while (*dead reckoning*). Now and then it
//! shoots, which is a message too. Nobody knows how long an update was under way: it is extrapolated from its arrival. So a tank is
//! seen where it was, and the *angle* between there and where it is, from whoever shoots, is what latency costs (`sight.rs`).
//!
//! All of it follows from a seed; no clock is read and nothing is sent here.

mod motion;
mod sight;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::chance::{Chance, Purpose};
pub use motion::{Motion, Point};
pub use sight::{angle_deg, angles_deg, hit_distance, hit_share};

/// Half of what is seen of a tank from the front: 2.8 world units.
pub const HALF_WIDTH: f64 = 1.4;
/// Half of what is seen of a tank from the side: 6 world units.
pub const HALF_LENGTH: f64 = 3.0;

/// How it is played. Lengths are in world units, `wu`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Tanks.
    pub players: u32,
    /// Computers on which they are played; the tanks of one decide, and send, in the same frames.
    pub machines: u32,
    /// Side of the field.
    pub field: f64,
    /// Fastest, in world units a second.
    pub speed: f64,
    /// Fastest turn, in radians a second.
    pub turn: f64,
    /// From one frame of a computer to the next.
    pub frame: Duration,
    /// Share of a tank's frames in which it chooses another motion.
    pub change_share: f64,
    /// Share of a tank's frames in which it shoots.
    pub shot_share: f64,
    /// A deviation from the extrapolation that is not worth an update.
    pub tolerance: f64,
    /// Longest time without an update.
    pub silence_max: Duration,
    /// Bytes of an update.
    pub update_bytes: u32,
    /// Bytes of a shot.
    pub shot_bytes: u32,
    /// How long it lasts.
    pub length: Duration,
    /// Repeats it.
    pub seed: u64,
}

impl Default for Rules {
    /// As the paper played: 26 tanks on three computers, a field of 200 by 200. Speeds and tolerance are BZFlag's own. The rest is
    /// chosen so that what the server sends to a client is like the paper's table 1: gaps of 24 ms on average, 0 in the median (tanks
    /// of a computer send together) and 151 ms in one of a hundred (hence the frame), and 30 bytes with 4 for the length.
    fn default() -> Self {
        Self {
            players: 26,
            machines: 3,
            field: 200.0,
            speed: 25.0,
            turn: core::f64::consts::FRAC_PI_4,
            frame: Duration::from_millis(150),
            change_share: 0.12,
            shot_share: 0.03,
            tolerance: 0.09,
            silence_max: Duration::from_secs(1),
            update_bytes: 25,
            shot_bytes: 40,
            length: Duration::from_secs(60),
            seed: 1,
        }
    }
}

/// What a tank does and says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Track {
    /// How it moves, and from when on.
    motions: Vec<(Duration, Motion)>,
    /// What it tells the others, in the order of time.
    pub messages: Vec<Message>,
}

/// Something that a tank tells the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message {
    /// When.
    pub at: Duration,
    /// Its size.
    pub bytes: u32,
    /// What it says: how the tank moves from then on; None for a shot.
    pub motion: Option<Motion>,
}

/// A game from beginning to end.
#[derive(Debug, Clone, PartialEq)]
pub struct Game {
    /// By tank.
    pub tracks: Vec<Track>,
}

impl Game {
    /// Plays it.
    pub fn new(rules: &Rules) -> Self {
        let tracks = (0..rules.players).map(|player| track(rules, player));
        Self {
            tracks: tracks.collect(),
        }
    }
}

impl Track {
    /// Where the tank is.
    pub fn position(&self, at: Duration) -> Point {
        let after = self.motions.partition_point(|motion| motion.0 <= at);
        match self.motions[..after].last() {
            Some((since, motion)) => motion.after(at - *since).at,
            None => Point::default(),
        }
    }

    /// When it shoots.
    pub fn shots(&self) -> impl Iterator<Item = Duration> + '_ {
        let shots = self.messages.iter();
        shots
            .filter(|message| message.motion.is_none())
            .map(|shot| shot.at)
    }
}

fn track(rules: &Rules, player: u32) -> Track {
    let chance = Chance::new(rules.seed, u64::from(player));
    let draw = |what: Draw, frame: u64| chance.share(Purpose::Workload, frame, what as u64);
    // Computers do not begin their frames together.
    let machine = Chance::new(
        rules.seed,
        1 << 32 | u64::from(player % rules.machines.max(1)),
    );
    let first = rules.frame.mul_f64(machine.share(Purpose::Offset, 0, 0));
    let mut motion = Motion {
        at: Point {
            x: rules.field * draw(Draw::X, 0),
            y: rules.field * draw(Draw::Y, 0),
        },
        heading: core::f64::consts::TAU * draw(Draw::Heading, 0),
        speed: 0.0,
        turn: 0.0,
    };
    let mut track = Track::default();
    let mut told: Option<(Duration, Motion)> = None;
    let frames = (rules.length.as_secs_f64() / rules.frame.as_secs_f64()) as u32;
    for number in 0..frames {
        let (at, frame) = (first + rules.frame * number, u64::from(number));
        let is_leaving = !motion.after(rules.frame).at.is_within(rules.field);
        if number == 0 || is_leaving || draw(Draw::Changes, frame) < rules.change_share {
            motion = choose(rules, motion, |what| draw(what, frame));
        }
        track.motions.push((at, motion));
        let is_wrong = told.is_none_or(|(since, told)| {
            let seen = told.after(at + rules.frame - since).at;
            let deviation = seen.distance(motion.after(rules.frame).at);
            deviation > rules.tolerance || at - since >= rules.silence_max
        });
        if is_wrong {
            told = Some((at, motion));
            track.messages.push(Message {
                at,
                bytes: rules.update_bytes,
                motion: Some(motion),
            });
        }
        if draw(Draw::Shoots, frame) < rules.shot_share {
            track.messages.push(Message {
                at,
                bytes: rules.shot_bytes,
                motion: None,
            });
        }
        motion = motion.after(rules.frame);
    }
    track
}

/// What a number is drawn for.
#[derive(Clone, Copy)]
enum Draw {
    X,
    Y,
    Heading,
    Changes,
    Shoots,
    Speed,
    Turn,
}

/// Another motion: mostly ahead at full speed, sometimes back or not at all; straight or in a bend. At the edge it turns back at once.
fn choose(rules: &Rules, from: Motion, draw: impl Fn(Draw) -> f64) -> Motion {
    let speed = match draw(Draw::Speed) {
        ..0.75 => rules.speed,
        0.75..0.9 => -rules.speed / 2.0,
        _ => 0.0,
    };
    let turn = match draw(Draw::Turn) {
        share @ ..0.3 => -rules.turn * share / 0.3,
        share @ 0.7.. => rules.turn * (share - 0.7) / 0.3,
        _ => 0.0,
    };
    let chosen = Motion {
        speed,
        turn,
        ..from
    };
    if chosen.after(rules.frame).at.is_within(rules.field) {
        return chosen;
    }
    let middle = rules.field / 2.0;
    Motion {
        heading: libm::atan2(middle - from.at.y, middle - from.at.x),
        speed: rules.speed,
        turn: 0.0,
        ..from
    }
}
