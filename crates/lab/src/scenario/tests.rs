//! Scenario files: what is read, and what is said of those that are refused.

use std::path::Path;
use std::time::Duration;

use punctual_proto::Promise;

use super::*;
use crate::channel::{DelayModel, LossModel};
use crate::world::Forward;

pub(super) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) const LEAST: &str = "[network]\nrtt_ms = 100\n[[stream]]\nname = 'a'\ndelivery = 'reliable'\ntraffic = { every_ms = 50, bytes = 100 }\n";

pub(super) fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("dir/file.toml", text)
}

/// What is said of the least scenario with `from` replaced by `to`.
pub(super) fn said_of(from: &str, to: &str) -> String {
    assert!(LEAST.contains(from), "{from}");
    match parse(&LEAST.replacen(from, to, 1)) {
        Ok(_) => panic!("accepted: {to}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_least_scenario_has_the_defaults() {
    let scenario = parse(LEAST).unwrap();
    assert_eq!(scenario.name, "file");
    assert_eq!((scenario.sessions, scenario.seed), (1, 1));
    assert_eq!(scenario.duration, Duration::from_secs(60));
    assert_eq!(scenario.direction, Forward::ToClient);
    assert!(matches!(scenario.path.forward.delay, DelayModel::Fixed(delay) if delay == ms(50)));
    assert!(matches!(scenario.path.forward.loss, LossModel::None));
    assert_eq!((scenario.link, scenario.rivals), (None, None));
    assert_eq!(scenario.thin, Thin::default());
    let stream = &scenario.streams[0];
    assert_eq!((stream.weight, stream.importance, stream.keys), (1, 128, 1));
    assert_eq!((stream.deadline, stream.on_time), (None, 0.999));
    assert_eq!(stream.traffic.sizes, Sizes::Fixed(100));
}

#[test]
fn the_examples_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let lobby = Scenario::open(&folder.join("lobby.toml")).unwrap();
    let link = lobby.link.unwrap();
    // 20 Mbit/s for 50 ms (the path's jitter of 0..2 ms each way adds some 2 ms): 125,000 bytes and a little.
    assert!((125_000..=132_000).contains(&link.queue_bytes), "{link:?}");
    assert_eq!(link.ecn_mark_bytes, Some(12_500));
    let rivals = lobby.rivals.unwrap();
    assert_eq!((rivals.cubic, rivals.start), (1, Duration::from_secs(20)));
    let names: Vec<_> = lobby.streams.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["moves", "events", "voice", "map", "textures"]);
    assert_eq!(lobby.streams[0].key_of(17), 1);
    assert_eq!(lobby.streams[4].quality, Some(1.5));
    let map = &lobby.streams[3].traffic;
    assert_eq!(map.pattern, Pattern::Bulk { bytes: 8_000_000 });
    assert_eq!(map.start, Duration::from_secs(10));
    let bzflag = Scenario::open(&folder.join("bzflag-thin-streams.toml")).unwrap();
    assert_eq!(bzflag.streams[0].bounds, [ms(66), ms(130), ms(261)]);
    assert_eq!(bzflag.streams[0].traffic.sizes, Shape::BzFlag.sizes());
}

#[test]
fn profiles_and_splits() {
    let text = LEAST.replace("rtt_ms = 100", "profile = 'busy-hour'\njitter_ms = 3");
    let scenario = parse(&text).unwrap();
    assert_eq!(scenario.path.name, "busy-hour");
    assert_eq!(scenario.path.forward.jitter, ms(3));
    for (split, forward) in [("'forward'", 100), ("0.25", 25), ("'backward'", 0)] {
        let to = format!("rtt_ms = 100\nsplit = {split}");
        let scenario = parse(&LEAST.replace("rtt_ms = 100", &to)).unwrap();
        let delay = &scenario.path.forward.delay;
        assert!(matches!(delay, DelayModel::Fixed(delay) if *delay == ms(forward)));
    }
}

#[test]
fn errors_name_file_line_field_and_range() {
    let cases = [
        (
            "every_ms = 50",
            "every_ms = 0",
            "dir/file.toml, line 6: `stream.traffic.every_ms` must be a number from 0.001 to 86400000, not 0",
        ),
        (
            "rtt_ms = 100",
            "rtt_ms = 100\nloss_forward = 1.0",
            "dir/file.toml, line 3: `network.loss_forward` must be at least 0 and below 1, not 1",
        ),
        (
            "rtt_ms = 100",
            "loss_forward = 0.1",
            "dir/file.toml, line 1: `network.rtt_ms` is missing",
        ),
        (
            "rtt_ms = 100",
            "profile = 'clean'\nrtt_ms = 100",
            "dir/file.toml, line 3: `network.rtt_ms` cannot stand beside `profile`, which has its own",
        ),
        (
            "[network]",
            "sessions = 100001\n[network]",
            "dir/file.toml, line 1: `sessions` must be a whole number from 1 to 100000, not 100001",
        ),
        (
            "[network]",
            "rivals = { cubic = 3 }\n[network]",
            "dir/file.toml, line 1: `rivals` need a [link] to share",
        ),
        (
            "bytes = 100",
            "bytes = 3",
            "dir/file.toml, line 6: `stream.traffic.bytes` must be a whole number from 4 to 262144, not 3",
        ),
        (
            "bytes = 100",
            "bytes = 100, rate_per_s = 3",
            "dir/file.toml, line 6: `stream.traffic.rate_per_s` must be the only one of `every_ms`, `rate_per_s`, `shape`, `bulk_bytes` and `saturate`",
        ),
        (
            "every_ms = 50, ",
            "",
            "dir/file.toml, line 6: `stream.traffic` needs one of `every_ms`, `rate_per_s`, `shape`, `bulk_bytes` and `saturate`",
        ),
        (
            "name = 'a'",
            "name = 'a'\non_time = 0.9",
            "dir/file.toml, line 5: `stream.on_time` says nothing without `deadline_ms`",
        ),
        (
            "name = 'a'",
            "name = 'a'\ndeadline_ms = 20\non_time = 1",
            "dir/file.toml, line 6: `stream.on_time` must be above 0 and below 1, such as 0.999, not 1",
        ),
    ];
    for (from, to, sentence) in cases {
        assert_eq!(said_of(from, to), sentence);
    }
}

#[test]
fn the_second_of_two_streams_is_found() {
    let second = "[[stream]]\nname = 'b'\ndelivery = 'latest'\nkeys = 0\ntraffic = { every_ms = 50, bytes = 100 }\n";
    let error = parse(&format!("{LEAST}{second}")).unwrap_err();
    assert_eq!(error.line, Some(10), "{error}");
    let twice = second.replace("'b'", "'a'");
    let error = parse(&format!("{LEAST}{twice}")).unwrap_err().to_string();
    assert!(error.contains("line 8: `stream.name` must be"), "{error}");
}

#[test]
fn what_the_parser_refuses_has_its_place_too() {
    let unknown = said_of("rtt_ms", "rtt = 5\nrtt_ms");
    assert!(
        unknown.starts_with("dir/file.toml, line 2: unknown field `rtt`"),
        "{unknown}"
    );
    let wrong_type = said_of("rtt_ms = 100", "rtt_ms = 'fast'");
    assert!(
        wrong_type.starts_with("dir/file.toml, line 2: `network.rtt_ms`: invalid type"),
        "{wrong_type}"
    );
    let negative = said_of("[network]", "seed = -1\n[network]");
    assert!(
        negative.starts_with("dir/file.toml, line 1: `seed`: invalid value"),
        "{negative}"
    );
    let delivery = said_of("'reliable'", "'certain'");
    assert!(
        delivery.contains("line 5")
            && delivery.contains("certain")
            && delivery.contains("reliable_ordered"),
        "{delivery}"
    );
    let broken = said_of("rtt_ms = 100", "rtt_ms = = 100");
    assert!(broken.starts_with("dir/file.toml, line 2: "), "{broken}");
    for error in [&unknown, &wrong_type, &negative, &delivery, &broken] {
        assert!(!error.contains('\n'), "{error}");
        println!("{error}");
    }
}

#[test]
fn a_promise_may_be_of_all_sessions() {
    let with = |top: &str| LEAST.replace("[network]", &format!("{top}\n[network]"));
    assert_eq!(parse(LEAST).unwrap().promise, Promise::EachStream);
    let all = parse(&with("promise = 'all_sessions'")).unwrap();
    assert_eq!(all.promise, Promise::AllSessions);
    assert!(parse(&with("promise = 'each_stream'\npolicy = 'exact'")).is_ok());
    let said = said_of(
        "[network]",
        "policy = 'exact'\npromise = 'all_sessions'\n[network]",
    );
    assert!(
        said.contains("line 2: `promise` is shared by sessions only with"),
        "{said}"
    );
}

#[test]
fn numbers_that_are_none_are_refused() {
    for (from, to) in [
        ("rtt_ms = 100", "rtt_ms = nan"),
        ("rtt_ms = 100", "rtt_ms = inf"),
        ("rtt_ms = 100", "rtt_ms = -1"),
        ("[network]", "seconds = nan\n[network]"),
        ("[network]", "uplink_mbit_per_s = 0\n[network]"),
        ("every_ms = 50", "every_ms = nan"),
        ("every_ms = 50", "every_ms = 50, jitter_ms = 51"),
        ("every_ms = 50", "every_ms = 50, start_s = 60"),
        ("every_ms = 50", "every_ms = 50, start_s = 5, stop_s = 5"),
        (
            "bytes = 100",
            "bytes_min = 4, bytes_mean = 4, bytes_max = 9",
        ),
        ("bytes = 100", "bytes_min = 4, bytes_max = 9"),
        ("name = 'a'", "name = ''"),
        ("name = 'a'", "name = 'a'\nbounds_ms = [0]"),
        (
            "[[stream]]",
            "[link]\nrate_mbit_per_s = 1\nqueue_bdp = nan\n[[stream]]",
        ),
        (
            "[[stream]]",
            "[link]\nrate_mbit_per_s = 1\nqueue_bdp = 1\nqueue_bytes = 3000\n[[stream]]",
        ),
        (
            "[[stream]]",
            "[link]\nrate_mbit_per_s = 1\necn_mark_bytes = 3000\n[[stream]]",
        ),
        (
            "[[stream]]",
            "[thin]\nbundling = false\nbundle_bytes_max = 3\n[[stream]]",
        ),
    ] {
        let sentence = said_of(from, to);
        assert!(
            sentence.contains(", line ") && sentence.contains('`'),
            "{sentence}"
        );
    }
    assert!(
        parse("")
            .unwrap_err()
            .to_string()
            .contains("`network` is missing")
    );
    let missing = Scenario::open(Path::new("no/such.toml")).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("no/such.toml: the scenario cannot be read: ")
    );
}

/// Whatever a file says, it is read or refused with a sentence.
#[test]
fn spoilt_files_do_no_harm() {
    let refused = spoil(include_str!("../../scenarios/lobby.toml"));
    assert!((500..1900).contains(&refused), "{refused}");
}

/// How many of 2,000 files that differ from `text` in a line are refused.
pub(super) fn spoil(text: &str) -> u32 {
    use crate::chance::{Chance, Purpose};
    let extremes = [
        "0",
        "-1",
        "1e308",
        "-1e-308",
        "nan",
        "inf",
        "99999999999",
        "''",
        "[]",
        "{}",
        "true",
    ];
    let chance = Chance::new(1, 0);
    let mut refused = 0;
    for round in 0..2000 {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let below = |bound: usize, index| {
            chance.below(bound as u64, Purpose::Workload, round, index) as usize
        };
        let line = below(lines.len(), 0);
        match below(3, 1) {
            0 => _ = lines.remove(line),
            1 => lines.swap(line, line / 2),
            _ => {
                // Another value for the line's field.
                let field = lines[line].split('=').next().unwrap_or_default().to_owned();
                lines[line] = format!("{field}= {}", extremes[below(extremes.len(), 2)]);
            }
        }
        if let Err(error) = parse(&lines.join("\n")) {
            refused += 1;
            let sentence = error.to_string();
            assert!(
                sentence.starts_with("dir/file.toml") && !sentence.contains('\n'),
                "{sentence}"
            );
        }
    }
    refused
}
