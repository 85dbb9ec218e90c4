//! What players see of each other, and what that does to their shots.

use std::time::Duration;

use super::{Game, Motion, Point, Track};

/// The angle at `from` between two places, in degrees (by the law of cosines, written so that small angles keep their digits).
pub fn angle_deg(from: Point, one: Point, other: Point) -> f64 {
    let (x1, y1) = (one.x - from.x, one.y - from.y);
    let (x2, y2) = (other.x - from.x, other.y - from.y);
    libm::atan2((x1 * y2 - y1 * x2).abs(), x1 * x2 + y1 * y2).to_degrees()
}

/// By tank, for each of its shots after `settle` and each other tank that it knows of: the angle between where it sees that tank and
/// where it is. `arrival(to, from, number)` says when a message of a tank arrived at another; None: never.
pub fn angles_deg(
    game: &Game,
    settle: Duration,
    arrival: impl Fn(usize, usize, usize) -> Option<Duration>,
) -> Vec<Vec<f64>> {
    let tanks = game.tracks.iter().enumerate();
    tanks
        .map(|(to, shooter)| {
            let mut angles = Vec::new();
            let shots: Vec<_> = shooter.shots().filter(|&shot| shot >= settle).collect();
            for (from, target) in game.tracks.iter().enumerate() {
                if from == to {
                    continue;
                }
                let news = news(target, |number| arrival(to, from, number));
                for &shot in &shots {
                    let known = news.partition_point(|news| news.0 <= shot);
                    if let Some((since, motion)) = news[..known].last() {
                        let seen = motion.after(shot - *since).at;
                        let own = shooter.position(shot);
                        angles.push(angle_deg(own, seen, target.position(shot)));
                    }
                }
            }
            angles
        })
        .collect()
}

/// A tank's updates as they reach another, in the order in which they do; what is older than one that is there already is nothing
/// new.
fn news(target: &Track, arrival: impl Fn(usize) -> Option<Duration>) -> Vec<(Duration, Motion)> {
    let mut news: Vec<(Duration, usize, Motion)> = (target.messages.iter().enumerate())
        .filter_map(|(number, message)| Some((arrival(number)?, number, message.motion?)))
        .collect();
    news.sort_by_key(|&(at, number, _)| (at, number));
    let mut newest = None;
    news.retain(|&(_, number, _)| {
        let is_new = newest.is_none_or(|newest| number > newest);
        if is_new {
            newest = Some(number);
        }
        is_new
    });
    (news.into_iter())
        .map(|(at, _, motion)| (at, motion))
        .collect()
}

/// Up to which distance, in world units, a shot at the middle of what is seen hits, when the angle is `angle_deg` and the target
/// reaches `half` to either side.
pub fn hit_distance(angle_deg: f64, half: f64) -> f64 {
    half / libm::tan(angle_deg.to_radians())
}

/// The share of shots from a distance that would hit: those whose angle carries them no farther than `half` from the middle.
pub fn hit_share(angles_deg: &[f64], distance: f64, half: f64) -> f64 {
    let most = libm::atan2(half, distance).to_degrees();
    let hits = angles_deg.iter().filter(|&&angle| angle <= most).count();
    hits as f64 / angles_deg.len().max(1) as f64
}
