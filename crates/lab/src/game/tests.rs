use std::time::Duration;

use super::{
    Game, Message, Motion, Point, Rules, Track, angle_deg, angles_deg, hit_distance, hit_share,
};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn point(x: f64, y: f64) -> Point {
    Point { x, y }
}

#[test]
fn tanks_drive_in_lines_and_circles() {
    let straight = Motion {
        at: point(10.0, 10.0),
        heading: core::f64::consts::FRAC_PI_2,
        speed: 25.0,
        turn: 0.0,
    };
    assert!(straight.after(ms(400)).at.distance(point(10.0, 20.0)) < 1e-9);
    // Half a circle of radius 5, to the left.
    let turning = Motion {
        speed: 5.0,
        turn: 1.0,
        ..straight
    };
    let half = Duration::from_secs_f64(core::f64::consts::PI);
    assert!(turning.after(half).at.distance(point(0.0, 10.0)) < 1e-6);
    // In two steps as in one.
    let twice = turning.after(ms(300)).after(ms(500));
    assert!(twice.at.distance(turning.after(ms(800)).at) < 1e-9);
}

#[test]
fn angles_are_those_of_a_triangle() {
    let angle = angle_deg(point(0.0, 0.0), point(10.0, 0.0), point(10.0, 10.0));
    assert!((angle - 45.0).abs() < 1e-9);
    assert_eq!(
        angle_deg(point(1.0, 1.0), point(2.0, 2.0), point(3.0, 3.0)),
        0.0
    );
    let back = angle_deg(point(0.0, 0.0), point(1.0, 0.0), point(-1.0, 0.0));
    assert!((back - 180.0).abs() < 1e-9);
}

/// A tank passes another at a right angle to its sight, 100 units away, at 25 units a second.
fn passing() -> Game {
    let motion = Motion {
        at: point(0.0, 0.0),
        heading: core::f64::consts::FRAC_PI_2,
        speed: 25.0,
        turn: 0.0,
    };
    let update = |at| Message {
        at,
        bytes: 25,
        motion: Some(motion.after(at)),
    };
    let shot = Message {
        at: ms(1000),
        bytes: 40,
        motion: None,
    };
    let still = Motion {
        at: point(100.0, 25.0),
        ..Motion::default()
    };
    let tracks = vec![
        Track {
            motions: vec![(ms(0), motion)],
            messages: vec![update(ms(0)), update(ms(500)), update(ms(900))],
        },
        Track {
            motions: vec![(ms(0), still)],
            messages: vec![shot],
        },
    ];
    Game { tracks }
}

#[test]
fn a_known_lag_gives_a_known_angle() {
    let game = passing();
    let with_lag = |lag| {
        let angles = angles_deg(&game, ms(0), |_, from, number| {
            Some(game.tracks[from].messages[number].at + lag)
        });
        assert!(angles[0].is_empty());
        assert_eq!(angles[1].len(), 1);
        angles[1][0]
    };
    // Seen 130 ms late, which is 3.25 units of 100; the last update is on its way, and that before it says the same.
    let expected = libm::atan2(3.25, 100.0).to_degrees();
    assert!((with_lag(ms(130)) - expected).abs() < 1e-9);
    assert!(with_lag(ms(0)) < 1e-9);
}

#[test]
fn what_comes_late_is_not_news() {
    let game = passing();
    // The second update is overtaken by the third; the first was seen 10 ms late.
    let arrivals = [ms(10), ms(990), ms(950)];
    let angles = angles_deg(&game, ms(0), |_, _, number| Some(arrivals[number]));
    let expected = libm::atan2(0.05 * 25.0, 100.0).to_degrees();
    assert!((angles[1][0] - expected).abs() < 1e-9);
    // Nothing arrived, or the shot came too early: nothing is seen.
    assert!(angles_deg(&game, ms(0), |_, _, _| None)[1].is_empty());
    assert!(angles_deg(&game, ms(1001), |_, _, _| Some(ms(0)))[1].is_empty());
}

#[test]
fn hits_follow_from_angles() {
    // The paper's own arithmetic: 2.7 and 3.5 degrees and a tank 2.8 units wide.
    assert!((hit_distance(2.7, 1.4) - 29.7).abs() < 0.1);
    assert!((hit_distance(3.5, 1.4) - 22.9).abs() < 0.1);
    // At 50 units 1.4 are 1.604 degrees.
    assert_eq!(hit_share(&[0.0, 1.6, 1.61, 5.0], 50.0, 1.4), 0.5);
    assert_eq!(hit_share(&[], 50.0, 1.4), 0.0);
}

#[test]
fn the_traffic_is_like_the_papers_table() {
    let rules = Rules::default();
    let game = Game::new(&rules);
    assert_eq!(game, Game::new(&rules));
    // What a client gets: the messages of all others, as they are sent.
    let mut sent: Vec<_> = (game.tracks[1..].iter())
        .flat_map(|track| track.messages.iter())
        .collect();
    sent.sort_by_key(|message| message.at);
    let mut gaps: Vec<f64> = sent
        .windows(2)
        .map(|pair| (pair[1].at - pair[0].at).as_secs_f64() * 1e3)
        .collect();
    gaps.sort_by(f64::total_cmp);
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!((21.0..27.0).contains(&mean), "{mean}");
    assert_eq!(gaps[gaps.len() / 2], 0.0);
    let p99 = gaps[gaps.len() * 99 / 100];
    assert!((90.0..=151.0).contains(&p99), "{p99}");
    let bytes = sent
        .iter()
        .map(|message| f64::from(message.bytes + 4))
        .sum::<f64>()
        / sent.len() as f64;
    assert!((28.0..33.0).contains(&bytes), "{bytes}");
    for track in &game.tracks {
        assert!(track.messages.is_sorted_by_key(|message| message.at));
        assert!(track.shots().count() > 2);
        let seconds = (0..60).map(Duration::from_secs);
        assert!(
            seconds
                .skip(1)
                .all(|at| track.position(at).is_within(rules.field))
        );
    }
}

#[test]
fn dead_reckoning_stays_within_its_tolerance() {
    let rules = Rules::default();
    for track in &Game::new(&rules).tracks {
        let updates = track
            .messages
            .iter()
            .filter_map(|message| Some((message.at, message.motion?)));
        let updates: Vec<_> = updates.collect();
        let (first, last) = (updates[0].0, updates[updates.len() - 1].0);
        let mut at = first;
        while at < last {
            let known = updates.partition_point(|update| update.0 <= at);
            let (since, motion) = updates[known - 1];
            let deviation = motion.after(at - since).at.distance(track.position(at));
            assert!(deviation <= rules.tolerance + 1e-9, "{deviation} at {at:?}");
            assert!(at - since <= rules.silence_max + rules.frame);
            at += ms(37);
        }
    }
}
