//! The network of a scenario file: what it can say, and what is said of files that are wrong.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::tests::{LEAST, ms, parse, said_of, spoil};
use super::*;
use crate::channel::{
    self, Capacity, Channel, ChannelSpec, DelayModel, Direction, LossModel, RateSpec,
};

const FULL: &str = "\
[network]
mtu = 1400
jitter_ms = 1
[network.forward]
delay_ms = 40
delay_sd_ms = 8
coherence_ms = 20
jitter_ms = 3
loss = 0.02
burst_ms = 50
reorder = 0.01
reorder_ms = 15
duplicate = 0.005
rate_mbit_per_s = 5
queue_bytes = 20000
blackouts_s = [[1, 2], [5.5, 6]]
outage_every_s = 20
outage_ms = 300
outage_share = 0.5
[network.backward]
delay_ms = 30
";

fn with_network(network: &str) -> Result<Scenario, ScenarioError> {
    parse(&LEAST.replace("[network]\nrtt_ms = 100\n", network))
}

#[test]
fn a_direction_can_say_all_that_a_channel_has() {
    let scenario = with_network(FULL).unwrap();
    assert_eq!(scenario.mtu, Some(1400));
    let (forward, backward) = (&scenario.path.forward, &scenario.path.backward);
    let DelayModel::Gamma(gamma) = &forward.delay else {
        panic!("{:?}", forward.delay)
    };
    assert_eq!((gamma.mean(), gamma.sd()), (ms(40), ms(8)));
    assert_eq!(forward.variation.coherence, ms(20));
    assert_eq!((forward.jitter, backward.jitter), (ms(3), ms(1)));
    assert!(
        matches!(forward.loss, LossModel::Gilbert { loss_share: 0.02, mean_burst, .. } if mean_burst == ms(50))
    );
    assert_eq!(
        (forward.reorder.share, forward.reorder.extra),
        (0.01, ms(15))
    );
    assert_eq!(forward.duplicate, 0.005);
    let rate = forward.rate.as_ref().unwrap();
    assert!(matches!(
        rate.capacity,
        Capacity::Constant {
            bits_per_second: 5_000_000
        }
    ));
    assert_eq!(rate.queue_bytes, 20_000);
    assert_eq!(
        forward.blackouts,
        [(ms(1000), ms(2000)), (ms(5500), ms(6000))]
    );
    let outages = forward.outages.as_ref().unwrap();
    assert_eq!(
        (outages.period, outages.length, outages.share),
        (ms(20_000), ms(300), 0.5)
    );
    assert!(matches!(backward.delay, DelayModel::Fixed(delay) if delay == ms(30)));
    assert!(matches!(backward.loss, LossModel::None) && backward.rate.is_none());
}

#[test]
fn a_direction_adds_to_a_round_trip_and_to_a_profile() {
    let to = "rtt_ms = 100\nburst_ms = 30\n[network.forward]\nloss = 0.1\nrate_mbit_per_s = 1\n[network.backward]\nduplicate = 1";
    let scenario = parse(&LEAST.replace("rtt_ms = 100", to)).unwrap();
    let forward = &scenario.path.forward;
    assert!(matches!(forward.delay, DelayModel::Fixed(delay) if delay == ms(50)));
    assert!(matches!(forward.loss, LossModel::Gilbert { mean_burst, .. } if mean_burst == ms(30)));
    // The default of `--queue-kib`.
    assert_eq!(forward.rate.as_ref().unwrap().queue_bytes, 65_536);
    assert_eq!(scenario.path.backward.duplicate, 1.0);

    let to =
        "profile = 'clean'\n[network.backward]\nreorder = 0.5\noutage_every_s = 3\noutage_ms = 10";
    let scenario = parse(&LEAST.replace("rtt_ms = 100", to)).unwrap();
    let backward = &scenario.path.backward;
    assert_eq!(
        (backward.reorder.share, backward.reorder.extra),
        (0.5, ms(20))
    );
    assert_eq!(backward.outages.as_ref().unwrap().share, 1.0);
    assert_eq!(scenario.path.forward.reorder.share, 0.0);
}

/// A folder of recordings that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("punctual-scenario-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn parse(&self, network: &str) -> Result<Scenario, ScenarioError> {
        let text = LEAST.replace("rtt_ms = 100", network);
        let file = self.0.join("file.toml");
        Scenario::parse(&file.display().to_string(), &text)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn recordings_lie_beside_the_file() {
    let folder = Folder::new("beside");
    folder.write("rtt.csv", "time_s,rtt_ms\n0,40\n0.1,60\n0.2,\n0.3,50\n");
    folder.write("capacity", "1\n2\n3\n4\n");
    folder.write("slow", "10\n20\n");

    let recorded = folder
        .parse("trace = 'rtt.csv'\nsplit = 0.25\ntrace_loss_forward = 1\n[network.forward]\nduplicate = 0.1")
        .unwrap();
    assert!(matches!(recorded.path.forward.delay, DelayModel::Trace(_)));
    assert_eq!(recorded.path.forward.duplicate, 0.1);
    let median = recorded.path.median_rtt();
    assert!((ms(40)..=ms(60)).contains(&median), "{median:?}");

    // Up is the way of the messages where clients send.
    folder.write(
        "ways.csv",
        "time_s,owd_up_ms,owd_down_ms\n0,10,30\n0.1,10,30\n",
    );
    let ways = folder.parse("trace = 'ways.csv'").unwrap();
    let delay_us = |channel: &Arc<ChannelSpec>| match Channel::new(
        Arc::clone(channel),
        1,
        0,
        Direction::Forward,
    )
    .fate(0, 100)
    {
        channel::Fate::Delivered { delay_us, .. } => delay_us,
        lost => panic!("{lost:?}"),
    };
    let (forward, backward) = (&ways.path.forward, &ways.path.backward);
    assert_eq!((delay_us(forward), delay_us(backward)), (30_000, 10_000));

    let mbit = |channel: &ChannelSpec| match &channel.rate {
        Some(RateSpec {
            capacity: Capacity::Trace(trace),
            ..
        }) => trace.bits_per_second() / 1e6,
        other => panic!("{other:?}"),
    };
    let capacity = folder
        .parse("trace = 'capacity'\ntrace_back = 'slow'\nrtt_ms = 30")
        .unwrap();
    assert_eq!(
        (mbit(&capacity.path.forward), mbit(&capacity.path.backward)),
        (12.0, 1.2)
    );
    assert!(matches!(capacity.path.forward.delay, DelayModel::Fixed(delay) if delay == ms(15)));
    let one_way = folder
        .parse("rtt_ms = 30\n[network.backward]\ncapacity_trace = 'slow'")
        .unwrap();
    assert_eq!(mbit(&one_way.path.backward), 1.2);
    assert!(one_way.path.forward.rate.is_none());
}

#[test]
fn what_is_wrong_with_a_recording_is_said_with_both_lines() {
    let folder = Folder::new("wrong");
    folder.write("broken.csv", "time_s,rtt_ms\n0,40\n0.1,fast\n");
    folder.write("rtt.csv", "time_s,rtt_ms\n0,40\n0.1,60\n");
    let at = |name: &str| folder.0.join(name).display().to_string();
    let cases = [
        (
            "trace = 'broken.csv'",
            format!(
                "line 2: `network.trace`: {}, line 3: expected ",
                at("broken.csv")
            ),
        ),
        (
            "trace = 'none.csv'",
            format!(
                "line 2: `network.trace`: {}: cannot be read: ",
                at("none.csv")
            ),
        ),
        (
            "rtt_ms = 9\n[network.forward]\ncapacity_trace = 'rtt.csv'",
            format!(
                "line 4: `network.forward.capacity_trace`: {}: this needs a trace of capacity",
                at("rtt.csv")
            ),
        ),
        (
            "trace = 'rtt.csv'\ntrace_back = 'rtt.csv'",
            format!(
                "line 2: `network.trace`: {}: this needs a trace of capacity",
                at("rtt.csv")
            ),
        ),
        (
            "trace = 'rtt.csv'\nrtt_ms = 9",
            "line 3: `network.rtt_ms` cannot stand beside `trace`".to_owned(),
        ),
        (
            "trace = ''",
            "line 2: `network.trace` must be the name of a file".to_owned(),
        ),
    ];
    for (network, expected) in cases {
        let error = folder.parse(network).unwrap_err().to_string();
        assert!(error.contains(&expected), "{error}\n{expected}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn what_has_no_effect_or_no_sense_is_refused() {
    let forward = |fields: &str| format!("rtt_ms = 100\n[network.forward]\n{fields}");
    let cases = [
        (
            forward("delay_ms = 5"),
            "line 4: `network.forward.delay_ms` cannot stand beside `rtt_ms`",
        ),
        (
            "[network.forward]\ndelay_ms = 5\n[network.backward]".to_owned(),
            "`network.backward.delay_ms` is missing",
        ),
        (
            "split = 'even'\n[network.forward]\ndelay_ms = 5\n[network.backward]\ndelay_ms = 5"
                .to_owned(),
            "line 2: `network.split` says nothing without `rtt_ms`",
        ),
        (
            "profile = 'lte'\n[network.backward]\nloss = 0".to_owned(),
            "line 4: `network.backward.loss` cannot stand beside `profile`",
        ),
        (
            "profile = 'lte'\ntrace = 'x'".to_owned(),
            "line 3: `network.trace` cannot stand beside `profile`",
        ),
        (
            "rtt_ms = 9\ntrace_back = 'x'".to_owned(),
            "line 3: `network.trace_back` says nothing without `trace`",
        ),
        (
            "rtt_ms = 9\nloss_forward = 0.1\n[network.forward]\nloss = 0.1".to_owned(),
            "line 5: `network.forward.loss` cannot stand beside `loss_forward`",
        ),
        (
            forward("burst_ms = 5"),
            "`network.forward.burst_ms` says nothing without `loss`",
        ),
        (
            forward("loss = 1.0"),
            "line 4: `network.forward.loss` must be at least 0 and below 1, not 1",
        ),
        (
            forward("delay_sd_ms = 51"),
            "must be at most the direction's mean delay of 50ms, not 51",
        ),
        (
            forward("coherence_ms = 5"),
            "says nothing without `delay_sd_ms`",
        ),
        (forward("reorder_ms = 5"), "says nothing without `reorder`"),
        (
            forward("duplicate = nan"),
            "`network.forward.duplicate` must be a number from 0 to 1, not NaN",
        ),
        (
            forward("queue_bytes = 5000"),
            "says nothing without `rate_mbit_per_s` or `capacity_trace`",
        ),
        (
            forward("rate_mbit_per_s = 1\nqueue_bytes = 1499"),
            "must be a whole number from 1500 to 4294967296, not 1499",
        ),
        (
            forward("rate_mbit_per_s = 0"),
            "must be a number from 0.001 to 1000000, not 0",
        ),
        (
            forward("rate_mbit_per_s = 1\ncapacity_trace = 'x'"),
            "`network.forward.capacity_trace` cannot stand beside `rate_mbit_per_s`",
        ),
        (
            forward("blackouts_s = [[3, 3]]"),
            "must be pairs [from, until] of seconds from 0 to 86400, the later one second, not [3, 3]",
        ),
        (forward("blackouts_s = [[3]]"), "line 4: "),
        (
            forward("outage_ms = 5"),
            "`network.forward.outage_every_s` is missing",
        ),
        (
            forward("outage_every_s = 5"),
            "`network.forward.outage_ms` is missing",
        ),
        (
            forward("outage_every_s = 5\noutage_ms = 5001"),
            "must be a number from 0 to 5000, not 5001",
        ),
        (
            forward("latency_ms = 5"),
            "line 4: unknown field `latency_ms`",
        ),
        (
            "rtt_ms = 100\nmtu = 1227".to_owned(),
            "`network.mtu` must be a whole number from 1228 to 65535, not 1227",
        ),
    ];
    for (network, expected) in cases {
        let sentence = said_of("rtt_ms = 100", &network);
        assert!(sentence.starts_with("dir/file.toml, line "), "{sentence}");
        assert!(sentence.contains(expected), "{sentence}\n{expected}");
    }
}

#[test]
fn a_scenario_without_streams_is_a_network() {
    let scenario = parse("[network]\nrtt_ms = 20\nmtu = 576\n").unwrap();
    assert_eq!((scenario.streams.len(), scenario.mtu), (0, Some(576)));
    assert_eq!(run(&scenario, [1], |_| {}).err(), Some(RunError::NoStreams));
}

#[test]
fn spoilt_networks_do_no_harm() {
    let refused = spoil(&LEAST.replace("[network]\nrtt_ms = 100\n", FULL));
    assert!((500..1900).contains(&refused), "{refused}");
}

/// Goal: packets that are larger than the network takes are lost, in the virtual network as in the emulator.
#[test]
fn large_packets_do_not_get_through() {
    let text = "seconds = 3\n[network]\nrtt_ms = 10\nmtu = 1300\n\
        [[stream]]\nname = 'a'\ndelivery = 'reliable'\ntraffic = { every_ms = 20, bytes = 5000 }\n";
    let mut scenario = parse(text).unwrap();
    let (narrow, wide) = (play(&scenario), {
        scenario.mtu = None;
        play(&scenario)
    });
    for result in [&narrow, &wide] {
        assert_eq!(result.streams[0].messages_delivered, 150);
    }
    // 5,000 bytes are five packets of 1,272 and four of 1,472.
    let packets = |result: &ScenarioResult| result.runs[0].wire_packets_per_s;
    assert!(
        packets(&narrow) > 1.1 * packets(&wide),
        "{narrow:?} {wide:?}"
    );
}

/// Goal: each stream with a deadline has the limits of its network beside what it achieved. Half a second in five nothing gets through, and a
/// message has 200 ms, of which the way takes 50: 7 % of them (0.35 s of 5) cannot be on time.
#[test]
fn streams_with_deadlines_have_floors() {
    let text = "seconds = 100\nsettle_s = 5\nsessions = 3\n[network]\nrtt_ms = 100\nloss_forward = 0.1\n\
        [network.forward]\noutage_every_s = 5\noutage_ms = 500\n\
        [[stream]]\nname = 'a'\ndelivery = 'unreliable'\ndeadline_ms = 200\ntraffic = { every_ms = 20, bytes = 1000 }\n\
        [[stream]]\nname = 'b'\ndelivery = 'reliable'\ntraffic = { every_ms = 200, bytes = 100 }\n";
    let result = play(&parse(text).unwrap());
    let floors = result.streams[0].floors.unwrap();
    assert!((0.06..0.08).contains(&floors.late_share), "{floors:?}");
    assert!(floors.late_share_95.low > 0.05, "{floors:?}");
    // In an outage (10 % of the time) all is lost, besides 10 %: 19 % lost, 23 % more sent.
    let least = floors.recovery_overhead.unwrap();
    assert!((0.21..0.26).contains(&least), "{floors:?}");
    let late = 1.0 - result.streams[0].on_time_share.unwrap();
    assert!(late >= floors.late_share, "{late} {floors:?}");
    assert_eq!(result.streams[1].floors, None);
    let written = serde_json::to_value(&result).unwrap();
    assert!(written["streams"][0]["floor_late_share"].is_number());
    assert_eq!(written["streams"][1].get("floor_late_share"), None);
    assert_eq!(
        serde_json::from_value::<ScenarioResult>(written).unwrap(),
        result
    );
}

fn play(scenario: &Scenario) -> ScenarioResult {
    run(scenario, [1], |_| {}).unwrap().result
}

/// A regression: where a client had given up and tried again, what it had left at the server counted for another, and the run panicked.
#[test]
fn sessions_begin_over_a_path_that_loses_a_third() {
    let network = "rtt_ms = 100\nloss_forward = 0.3\nloss_backward = 0.3";
    let text = LEAST.replace("rtt_ms = 100", network);
    let text = format!("sessions = 200\nseconds = 3\n{text}");
    for seed in 2..4 {
        let mut scenario = parse(&text).unwrap();
        scenario.seed = seed;
        assert_eq!(play(&scenario).streams[0].sessions, 200);
    }
}
