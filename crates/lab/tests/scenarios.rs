//! Scenarios: every file runs, runs are equal, and small versions of the studies stay within their bounds.
//!
//! The bounds are those of the studies where small versions can show them; `docs/manual/scenarios.md` says how to run the whole ones.

use std::fs;
use std::path::Path;
use std::time::Duration;

use punctual_lab::scenario::{
    Outcome, Remedies, RunError, Scenario, ScenarioResult, Shape, ThinStudy, run, thin_streams,
};
use punctual_proto::Uplink;

fn open(name: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    Scenario::open(&folder.join(name)).unwrap()
}

fn play(scenario: &Scenario, seeds: u64) -> ScenarioResult {
    let seeds = scenario.seed..scenario.seed + seeds;
    let Outcome { result, tallies } = run(scenario, seeds, |_| {}).unwrap();
    assert_eq!(result.broken_promises(), Vec::<String>::new());
    assert_eq!(tallies.len(), scenario.streams.len());
    result
}

/// Two seconds of it; what begins later begins at once.
fn briefly(mut scenario: Scenario) -> Scenario {
    scenario.duration = Duration::from_secs(2);
    scenario.settle = scenario.settle.min(Duration::from_millis(500));
    scenario.sessions = scenario.sessions.min(20);
    for stream in &mut scenario.streams {
        stream.traffic.start = Duration::ZERO;
        stream.traffic.pause = None;
    }
    if let Some(rivals) = &mut scenario.rivals {
        (rivals.start, rivals.stop) = (Duration::ZERO, Some(Duration::from_secs(1)));
    }
    scenario
}

/// A regression: a lost message that a newer one had replaced taught nothing, and those that arrived that all was well; so streams whose messages replace each other within a
/// round trip bought ever less. After twenty minutes 0.5 % were lost, for the 0.1 % that was promised and predicted.
#[test]
fn what_is_replaced_and_lost_counts_for_the_price() {
    for delivery in ["unreliable_sequenced", "latest"] {
        let text = format!(
            "sessions = 4\nseconds = 1200\nsettle_s = 600\n[network]\nrtt_ms = 60\nloss_forward = 0.02\n[[stream]]\nname = 'moves'\ndelivery = '{delivery}'\n\
             deadline_ms = 50\ntraffic = {{ every_ms = 16.667, bytes = 100 }}\n"
        );
        let result = play(&Scenario::parse("moves.toml", &text).unwrap(), 1);
        let stream = &result.streams[0];
        let lost = 1.0 - stream.messages_delivered as f64 / stream.messages_sent as f64;
        let predicted = 1.0 - stream.predicted_on_time_share.unwrap();
        assert!((0.0007..0.0013).contains(&lost), "{delivery}: {lost}");
        assert!(
            (0.8..1.25).contains(&(predicted / lost)),
            "{predicted} {lost}"
        );
    }
}

/// Goal: what a session had counted is counted, whatever became of it.   Method: the path goes dark for good, and all sessions end.
#[test]
fn what_ended_sessions_had_counted_is_counted() {
    let dark = "sessions = 3\nseconds = 60\n[network]\nrtt_ms = 40\n[network.forward]\nblackouts_s = [[8, 900]]\n\
                [[stream]]\nname = 'moves'\ndelivery = 'unreliable'\ndeadline_ms = 100\ntraffic = { every_ms = 50, bytes = 60 }\n\
                [[stream]]\nname = 'chat'\ndelivery = 'reliable'\ntraffic = { every_ms = 500, bytes = 90 }\n";
    let result = play(&Scenario::parse("dark.toml", dark).unwrap(), 1);
    assert_eq!(result.runs[0].sessions_closed, 3);
    assert!(
        result.runs[0].encapsulation_overhead.is_some(),
        "{result:?}"
    );
    for stream in &result.streams {
        assert!(stream.recovery_overhead > Some(-1.0), "{stream:?}");
    }
    assert!(result.streams[0].predicted_on_time_share.is_some());
}

#[test]
fn every_file_runs_and_runs_are_equal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 14, "{names:?}");
    for name in names {
        let scenario = briefly(open(&name));
        let result = play(&scenario, 1);
        for stream in &result.streams {
            assert!(
                stream.messages_sent == 0 || stream.messages_delivered > 0,
                "{name}: {stream:?}"
            );
            assert_eq!(stream.outcomes.unsettled, 0, "{name}: {stream:?}");
            // What never arrived was given up, and the sender knows. (Of a sequenced stream what comes after a newer one arrives, too, but
            // is not handed on.)
            let given_up = stream.outcomes.dropped.total();
            let is_sequenced = stream.delivery == "unreliable_sequenced";
            assert!(
                is_sequenced || stream.messages_lost <= given_up,
                "{name}: {stream:?}"
            );
        }
        let run = &result.runs[0];
        assert_eq!(run.sessions_closed, 0, "{name}");
        assert_eq!(run.rivals.is_some(), scenario.rivals.is_some(), "{name}");
        assert_eq!(
            result,
            play(&scenario, 1),
            "{name}: the same seed, the same run"
        );
    }
}

#[test]
fn seeds_are_pooled() {
    let mut scenario = briefly(open("mixed-game.toml"));
    let pooled = play(&scenario, 3);
    assert_eq!(pooled.seeds, [1, 2, 3]);
    let alone: Vec<_> = (1..=3)
        .map(|seed| {
            scenario.seed = seed;
            play(&scenario, 1)
        })
        .collect();
    for (at, stream) in pooled.streams.iter().enumerate() {
        let sent: u64 = alone.iter().map(|r| r.streams[at].messages_sent).sum();
        assert_eq!(stream.messages_sent, sent);
    }
    let runs: Vec<_> = alone.iter().map(|r| r.runs[0].clone()).collect();
    assert_eq!(pooled.runs, runs);
    assert_eq!(run(&scenario, [], |_| {}).err(), Some(RunError::NoSeeds));
}

/// Goal: the game does not notice the download, and the download has what the game leaves.
/// Bounds: p99 of positions within a tenth of what it is for the game alone; nine tenths of what is left.
#[test]
fn a_download_does_not_disturb_a_game() {
    let alone = play(&open("mixed-game-no-download.toml"), 6);
    let beside = play(&open("mixed-game.toml"), 6);
    for name in ["positions", "shots"] {
        let p99 = |result: &ScenarioResult| result.stream(name).unwrap().latency_ms.p99.unwrap();
        let (alone, beside) = (p99(&alone), p99(&beside));
        // The tenth. Of shots six seeds have three hundred: their p99 is the third worst, and is given some room.
        let most = if name == "shots" { 1.25 } else { 1.1 };
        assert!(beside <= alone * most, "{name}: {alone} ms, {beside} ms");
    }
    assert_eq!(beside.stream("shots").unwrap().messages_lost, 0);
    let download = beside.stream("download").unwrap();
    assert_eq!(
        (download.messages_delivered, download.messages_refused),
        (6, 0)
    );
    let left = 8e6 - alone.link.unwrap().carried_bits_per_s;
    let share = download.goodput_bits_per_s / left;
    assert!(share > 0.9, "{share}");
}

/// Goal: live streams beside as many CUBIC flows take about half, and their own queue is no path that loses: what is dropped is answered by
/// sending less.   Before packets were compared by size a tenth was dropped, and symbols were sent against it.
#[test]
fn a_live_stream_of_many_sizes_beside_tcp() {
    let mut scenario = open("live-beside-cubic.toml");
    scenario.duration = Duration::from_secs(25);
    let result = play(&scenario, 1);
    let dropped = result.link.as_ref().unwrap().drop_share;
    assert!(dropped < 0.03, "{dropped}");
    let video = result.stream("video").unwrap();
    let half = 0.5 * result.link.as_ref().unwrap().carried_bits_per_s;
    let share = video.goodput_bits_per_s / half;
    assert!((0.7..=1.3).contains(&share), "{share}");
    let overhead = video.recovery_overhead.unwrap();
    assert!(overhead < 0.1, "{overhead}");
}

/// Goal: weights are shares, to within 2 %; equal quality is equal, to within 3 %.
#[test]
fn saturating_streams_share_as_they_should() {
    let mut scenario = open("fairness-weights.toml");
    scenario.duration = Duration::from_secs(25);
    let result = play(&scenario, 1);
    let total: f64 = result.streams.iter().map(|s| s.goodput_bits_per_s).sum();
    for stream in &result.streams {
        let share = stream.goodput_bits_per_s / total;
        let due = f64::from(stream.weight) / 7.0;
        assert!(
            (share / due - 1.0).abs() < 0.02,
            "{}: {share}",
            stream.stream
        );
    }
    let mut scenario = open("fairness-quality.toml");
    scenario.duration = Duration::from_secs(35);
    let result = play(&scenario, 1);
    let quality: Vec<_> = result
        .streams
        .iter()
        .filter_map(|s| s.quality_per_s)
        .collect();
    let mean = quality.iter().sum::<f64>() / 3.0;
    assert_eq!(quality.len(), 3);
    assert!(
        quality.iter().all(|q| (q / mean - 1.0).abs() < 0.03),
        "{quality:?}"
    );
}

/// Goal: who begins late or wakes has a share at once, and no more than that.
#[test]
fn neither_beginning_nor_waking_earns_or_costs() {
    for (name, file, from) in [
        ("late", "fairness-new-stream.toml", 30),
        ("waking", "fairness-waking-stream.toml", 40),
    ] {
        let mut scenario = open(file);
        scenario.duration = Duration::from_secs(from + 10);
        let result = play(&scenario, 1);
        for second in from..from + 10 {
            let of = |name: &str| {
                let stream = result.stream(name).unwrap();
                stream.goodput_by_second_bits_per_s[second as usize]
            };
            let share = of(name) / (of(name) + of("first") + of("second"));
            // In the first of them its first message is still on its way for a part of the time.
            let least = if second == from { 0.29 } else { 0.323 };
            assert!(
                (least..0.343).contains(&share),
                "{name}, second {second}: {share}"
            );
        }
    }
}

/// Goal: what bundling can reach, to within 0.3 percentage points; and each part of the table in the right order.
#[test]
fn thin_streams_are_as_good_as_bundling_can_make_them() {
    let study = ThinStudy {
        shapes: vec![
            Shape::BzFlag,
            Shape::AgeOfConan,
            Shape::TestDrive,
            Shape::AnarchyOnline,
        ],
        remedies: vec![Remedies::All, Remedies::None],
        messages: 25_000,
        seed: 1,
    };
    let results = thin_streams(&study, |_| {}).unwrap();
    for rows in results.rows.chunks(2) {
        let [on, off] = rows else {
            unreachable!("two of each")
        };
        // 0.3, and two standard deviations of 2 % of 25,000 messages, 0.18.
        assert!(on.difference_pp.abs() < 0.48, "{on:?}");
        assert!(on.undelayed_share > off.undelayed_share, "{on:?} {off:?}");
        assert!(on.latency_ms.max < off.latency_ms.max, "{on:?} {off:?}");
    }
}

/// Goal: a broadcast keeps its deadline through an uplink whose queue it would overflow eight times.
#[test]
fn a_broadcast_is_spread() {
    let mut scenario = open("broadcast.toml");
    let known = Uplink::BytesPerSecond(12_500_000);
    for uplink in [known, Uplink::Unknown, Uplink::Unlimited] {
        scenario.uplink = uplink;
        let result = play(&scenario, 1);
        let stream = &result.streams[0];
        assert_eq!(stream.messages_sent, 10_000);
        let dropped = result.link.unwrap().packets_dropped;
        if uplink == Uplink::Unlimited {
            // What the others are measured against.
            assert!(dropped > 10_000, "{dropped} packets dropped");
            continue;
        }
        assert!(stream.on_time_share > Some(0.999), "{uplink:?}: {stream:?}");
        if uplink == known {
            assert_eq!(dropped, 0);
        }
    }
}
