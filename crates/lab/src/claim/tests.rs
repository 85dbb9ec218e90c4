//! What needs namespaces is skipped, with a word, where they cannot be made.

use std::time::Duration;

use super::mmorpg::Player;
use super::{OnlineGames, ThinStreamGame, cumulative, mean, quantile, share};
use crate::arena::{Arena, ArenaRun};
use crate::arm::{Arm, Exchange, Script, Sender, Tcp, Workload};
use crate::channel::LossModel;
use crate::reproduce::{Reproduced, Row};
use crate::tcp_trace::{Profile, SenderSide, connections};

#[test]
fn means_are_over_everything_and_intervals_over_groups() {
    let (value, interval) = mean(&[(10.0, 10.0), (0.0, 30.0)]);
    assert_eq!(value, 0.25);
    let interval = interval.unwrap();
    assert_eq!((interval.low, interval.high), (0.0, 1.0));
    // A regression: none of few was an interval of no width.
    let (none, interval) = share(&[(0.0, 1.0); 22]);
    assert!(none == 0.0 && interval.unwrap().high > 0.1, "{interval:?}");
    assert!(mean(&[]).0.is_nan() && mean(&[(0.0, 0.0)]).1.is_none());
}

#[test]
fn quantiles_and_shares_of_few_values() {
    let mut values = [4.0, 1.0, 3.0, 2.0];
    assert_eq!(quantile(&mut values, 0.5), Some(2.0));
    assert_eq!(quantile(&mut values, 0.99), Some(4.0));
    assert_eq!(quantile(&mut [], 0.5), None);
    let points = cumulative(&[1.0, 2.0, 8.0, 20.0], 8.0, 4);
    let expected = [(0.0, 0.0), (2.0, 0.5), (4.0, 0.5), (6.0, 0.5), (8.0, 0.75)];
    assert_eq!(points, expected);
}

#[test]
fn players_are_like_those_of_the_paper() {
    let length = Duration::from_secs(60);
    let (mut rtts, mut lossless, mut losses) = (Vec::new(), 0, Vec::new());
    let (mut commands, mut updates, mut bytes) = (0, 0, 0.0);
    let players = 2000;
    for number in 0..players {
        let player = Player::new(3, number);
        let path = player.path();
        path.check().unwrap();
        rtts.push(2.0 * player.one_way_ms());
        match path.forward.loss {
            LossModel::Uniform(loss) => losses.push(loss),
            _ => lossless += 1,
        }
        if number < 100 {
            let (up, down) = (player.commands(length), player.updates(length));
            assert!(down.is_sorted_by_key(|message| message.at));
            assert!(
                up.iter()
                    .chain(&down)
                    .all(|message| message.at < length + length)
            );
            commands += up.len();
            updates += down.len();
            bytes += down
                .iter()
                .map(|message| f64::from(message.bytes + 4))
                .sum::<f64>();
        }
    }
    let average = rtts.iter().sum::<f64>() / rtts.len() as f64;
    assert!((175.0..195.0).contains(&average), "{average}");
    assert!((90.0..100.0).contains(&quantile(&mut rtts, 0.01).unwrap()));
    assert!((480.0..680.0).contains(&quantile(&mut rtts, 0.99).unwrap()));
    let lossless = f64::from(lossless) / f64::from(players);
    assert!((0.33..0.39).contains(&lossless), "{lossless}");
    let beyond = |loss: f64| {
        losses.iter().filter(|&&other| other > loss).count() as f64 / losses.len() as f64
    };
    assert!((0.27..0.36).contains(&beyond(0.05)), "{}", beyond(0.05));
    assert!((0.05..0.13).contains(&beyond(0.1)), "{}", beyond(0.1));
    let per_second = |messages: usize| messages as f64 / 100.0 / length.as_secs_f64();
    assert!(
        (5.5..7.5).contains(&per_second(commands)),
        "{}",
        per_second(commands)
    );
    assert!(
        (3.3..4.3).contains(&per_second(updates)),
        "{}",
        per_second(updates)
    );
    let bytes = bytes / updates as f64;
    assert!((105.0..135.0).contains(&bytes), "{bytes}");
}

/// Plays it; None, said aloud, where there cannot be a network, or the machine did not keep its time: all figures are of time.
fn play(arena: &Arena<Script>, arms: &[&str]) -> Option<ArenaRun<Exchange>> {
    let tcp = |name: &&str| -> Box<dyn Arm> {
        let mut all = Tcp::ALL.iter().chain(&Tcp::OF_TWO_AGES);
        Box::new(*all.find(|tcp| tcp.name() == *name).unwrap())
    };
    match arena.run(&arms.iter().map(tcp).collect::<Vec<_>>(), |_| true) {
        Ok(run) if run.timing.is_held() => Some(run),
        Ok(run) => {
            println!("skipped: {}", run.timing.verdict());
            None
        }
        Err(error) if error.is_unavailable() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn here(all: &[Reproduced], what: &str) -> f64 {
    let mut rows = all.iter().flat_map(|one| &one.rows);
    let row: Option<&Row> = rows.find(|row| row.what.starts_with(what));
    row.and_then(|row| row.here)
        .unwrap_or_else(|| panic!("no {what}"))
}

#[test]
fn a_short_game_of_tanks_gives_all_figures() {
    let study = ThinStreamGame::new(Duration::from_secs(5), 1);
    let arena = study.arena();
    assert!(arena.contest.is_relayed());
    let Some(run) = play(&arena, &["tcp-2008", "tcp-cubic"]) else {
        return;
    };
    let all = study.reproduced(run);
    assert_eq!(
        all.iter().map(|one| one.name).collect::<Vec<_>>(),
        ThinStreamGame::NAMES
    );
    // 2 % are lost, of some 3,000 packets; in order, more have to wait.
    for arm in ["tcp-2008", "tcp-cubic"] {
        let arrives = here(&all, &format!("{arm}: arrives undelayed"));
        let reads = here(&all, &format!("{arm}: can be read undelayed"));
        assert!((0.9..1.0).contains(&arrives), "{arrives}");
        assert!(reads < arrives - 0.02, "{reads} {arrives}");
        // Two hops at full speed and 100 units away are 1.9 degrees.
        let angle = here(&all, &format!("{arm}: mean angle"));
        assert!((0.5..10.0).contains(&angle), "{angle}");
    }
    assert!(all.iter().all(|one| !one.charts.is_empty()));
}

#[test]
fn a_short_role_playing_game_gives_all_tables() {
    let study = OnlineGames {
        players: 20,
        length: Duration::from_secs(5),
        seed: 1,
    };
    let arena = study.arena();
    assert!(arena.contest.messages(Sender::Client, 0) > 5);
    let Some(run) = play(&arena, &["tcp-2006", "tcp-cubic"]) else {
        return;
    };
    for arm in &run.arms {
        let profile = Profile {
            has_probes: arm.name != "tcp-2006",
        };
        let again = connections(arm.packets.clone())
            .iter()
            .filter_map(|connection| SenderSide::new(connection, Sender::Server, profile))
            .map(|side| side.retransmissions.len() as u64)
            .sum::<u64>();
        // The kernel's counters are read a moment before the last packet is.
        let counted = arm.kernel.get("Tcp.RetransSegs");
        assert!(
            again.abs_diff(counted) <= 3,
            "{}: {again} {counted}",
            arm.name
        );
    }
    let all = study.reproduced(run);
    assert_eq!(
        all.iter().map(|one| one.name).collect::<Vec<_>>(),
        OnlineGames::NAMES
    );
    // Timestamps are 12 bytes more.
    let headers = |arm: &str| here(&all, &format!("{arm}: headers among all bytes"));
    let (then, today) = (headers("tcp-2006"), headers("tcp-cubic"));
    assert!(0.3 < then && then < today && today < 0.8, "{then} {today}");
    let once = here(
        &all,
        "tcp-2006: mean latency of packets that were sent once",
    );
    assert!((100.0..400.0).contains(&once), "{once}");
}
