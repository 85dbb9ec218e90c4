use proptest::prelude::*;

use super::*;
use crate::channel::{Channel, Direction, Fate, LossReason};
use std::sync::Arc;

fn error(text: &str) -> (u64, String) {
    let error = parse(text.as_bytes()).expect_err("must be refused");
    (error.line, error.to_string())
}

fn lost(sample: &Sample) -> bool {
    matches!(sample.outcome, Outcome::Lost(_))
}

const PING: &str = "\
ping: Warning: time of day goes back (-5us), taking countermeasures
PING example (192.0.2.1) 56(84) bytes of data.
[1000.100000] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=63 time=100 ms
[1000.140000] 64 bytes from 192.0.2.1: icmp_seq=3 ttl=63 time=100 ms
[1000.120500] 64 bytes from 192.0.2.1: icmp_seq=2 ttl=63 time=100.5 ms
[1000.141000] 64 bytes from 192.0.2.1: icmp_seq=3 ttl=63 time=101 ms (DUP!)
[1000.300000] no answer yet for icmp_seq=4
[1000.300100] From 192.0.2.9 icmp_seq=5 Destination Host Unreachable
[1000.220000] 64 bytes from 192.0.2.1: icmp_seq=7 ttl=63 time=100 ms

--- example ping statistics ---
7 packets transmitted, 4 received, 42% packet loss, time 120ms
";

#[test]
fn ping_output_is_read() {
    let trace = parse(PING.as_bytes()).unwrap();
    assert_eq!(trace.format, Format::Ping);
    let at: Vec<_> = trace
        .samples()
        .iter()
        .map(|sample| sample.at_us / 1000)
        .collect();
    assert_eq!(at, [0, 20, 40, 60, 80, 100, 120]);
    let is_lost: Vec<_> = trace.samples().iter().map(lost).collect();
    assert_eq!(is_lost, [false, false, false, true, true, true, false]);
    assert_eq!(
        trace.samples()[1].outcome,
        Outcome::RoundTrip { rtt_us: 100_500 }
    );

    let (line, text) = error("PING x\n64 bytes from 192.0.2.1: icmp_seq=1 ttl=63 time=100 ms\n");
    assert_eq!(line, 2);
    assert!(text.contains("-D"), "{text}");
    assert_eq!(
        error("PING x\n\n[1.0] 64 bytes from x: icmp_seq=x ttl=6 time=10 ms\n").0,
        3
    );
    assert_eq!(
        error("[1.0] 64 bytes from x: icmp_seq=1 time=10 ms\n[1.1] 64 bytes from x: icmp_seq=2\n")
            .0,
        2
    );
    let huge = "[1.0] 64 bytes from x: icmp_seq=1 time=1 ms\n[1.1] 64 bytes from x: icmp_seq=4000000000 time=1 ms\n";
    assert!(error(huge).1.contains("sequence number"));
    assert!(error("PING x\n").1.contains("no samples"));
}

#[test]
fn ping_sequence_numbers_begin_again() {
    let text: String = [65_534, 65_535, 0, 2, 1, 3]
        .iter()
        .enumerate()
        .map(|(i, seq)| {
            format!(
                "[{}.0] 64 bytes from x: icmp_seq={seq} ttl=1 time=1 ms\n",
                10 + i
            )
        })
        .collect();
    let trace = parse(text.as_bytes()).unwrap();
    assert_eq!(trace.samples().len(), 6);
    assert!(!trace.samples().iter().any(lost));
}

/// A regression: of a log that was appended to another nothing was left, or losses were made up between the two.
#[test]
fn two_logs_in_one_file_are_refused() {
    let log = |from: u64| -> String {
        let line = |seq| {
            let at = from + seq;
            format!("[{at}.0] 64 bytes from x: icmp_seq={seq} ttl=1 time=1 ms\n")
        };
        (1..9).map(line).collect()
    };
    let both = log(100) + &log(4000);
    assert!(error(&both).1.contains("icmp_seq=1"));
    let both = format!("PING x\n{}PING x\n{}", log(100), log(4000));
    let (line, text) = error(&both);
    assert_eq!(line, 10);
    assert!(text.contains("a file of its own"), "{text}");
}

#[test]
fn ping_tables_are_read() {
    let trace =
        parse(b"1694477135.50\t1\t44.5\n1694477135.65\t2\t-1\n1694477135.80\t3\t40\n").unwrap();
    assert_eq!(trace.format, Format::PingTable);
    assert_eq!(
        trace.samples()[2],
        Sample {
            at_us: 300_000,
            outcome: Outcome::RoundTrip { rtt_us: 40_000 }
        }
    );
    assert!(lost(&trace.samples()[1]));
    assert_eq!(error("1 1 5\n2 2 6\n1.5 3 7\n").0, 3);
    assert_eq!(error("1 1 5\n2 2\n").0, 2);
    let (line, text) = error("1 1 5\n# a comment\n2 2 abc\n");
    assert_eq!(line, 3);
    assert!(
        text.contains("expected a round-trip time") && text.contains("`abc`"),
        "{text}"
    );
}

#[test]
fn cloud_gaming_logs_are_read() {
    let trace = parse(b"0.000 4.37 3.8ms 0.00\n0.015 15.60 7.4ms 0.25\n").unwrap();
    assert_eq!(trace.format, Format::Hairpin);
    assert_eq!(
        trace.samples()[1].outcome,
        Outcome::Slot {
            rtt_us: 7400,
            loss: 0.25
        }
    );
    assert_eq!(
        error("0.000 4.37 3.8ms 0.00\n0.015 15.60 7.4ms 1.25\n").0,
        2
    );
    assert_eq!(error("0.000 4.37 3.8ms 0.00\n0.015 15.60 7.4 0.25\n").0, 2);
    assert_eq!(
        error("0.000 4.37 3.8ms 0.00\n0.015 15.60 NaNms 0.25\n").0,
        2
    );
}

#[test]
fn capacity_is_read() {
    let trace = parse(b"0\n5\n5\n12\n").unwrap();
    assert_eq!(trace.content, Content::Capacity(vec![0, 5, 5, 12]));
    assert_eq!(error("0\n5\n4\n").0, 3);
    assert_eq!(error("0\n5.5\n").0, 2);
    assert_eq!(error("0\n99999999999\n").0, 2);
    let path = trace.path(&PathOptions::default()).unwrap();
    assert!(path.forward.rate.is_some() && path.source.contains("chosen"));
    let other = parse(b"0.000 4.37 3.8ms 0.00\n").unwrap();
    assert!(capacity_path(&trace, &other, &PathOptions::default()).is_err());
}

const IRTT: &str = r#"
{ "version": {"irtt": "0.9.0"}, "config": {"interval": 20000000},
  "round_trips": [
  {"seqno": 0, "lost": "false", "timestamps": {"client": {"send": {"wall": 5000000000, "monotonic": 1000000}}},
   "delay": {"receive": 10000000, "rtt": 30000000, "send": 20000000}, "ipdv": {}},
  {"seqno": 1, "lost": "true_up", "timestamps": {"client": {"send": {"wall": 5020000000, "monotonic": 21000000}}}, "delay": {}},
  {"seqno": 2, "lost": "true_down", "delay": {}},
  {"seqno": 3, "lost": "true"},
  {"seqno": 4, "lost": "false", "delay": {"receive": -5, "rtt": 30000000, "send": 30000005}}
]}"#;

#[test]
fn irtt_is_read() {
    let trace = parse(IRTT.as_bytes()).unwrap();
    assert_eq!(trace.format, Format::Irtt);
    let outcomes: Vec<_> = trace
        .samples()
        .iter()
        .map(|sample| sample.outcome)
        .collect();
    assert_eq!(
        outcomes,
        [
            // Clocks that say of one answer that it came before it was sent are right about no other.
            Outcome::RoundTrip { rtt_us: 30_000 },
            Outcome::Lost(LostSide::Forward),
            Outcome::Lost(LostSide::Backward),
            Outcome::Lost(LostSide::Unknown),
            Outcome::RoundTrip { rtt_us: 30_000 },
        ]
    );
    let at: Vec<_> = trace.samples().iter().map(|sample| sample.at_us).collect();
    assert_eq!(at, [0, 20_000, 40_000, 60_000, 80_000]);
    let in_step = IRTT.replace("\"receive\": -5", "\"receive\": 5000");
    let outcomes = parse(in_step.as_bytes()).unwrap();
    let one_way = |up_us, down_us| Outcome::OneWay {
        up_us: Some(up_us),
        down_us: Some(down_us),
    };
    assert_eq!(outcomes.samples()[0].outcome, one_way(20_000, 10_000));
    assert_eq!(outcomes.samples()[4].outcome, one_way(30_000, 5));
    let (line, text) = error("{\"round_trips\": [\n{\"lost\": \"maybe\"}]}");
    assert_eq!(line, 2);
    assert!(text.contains("maybe"), "{text}");
    assert!(
        error("{\"round_trips\": [{\"delay\": {\"rtt\": 5}}]}")
            .1
            .contains("interval")
    );
    // A regression: the end of a trace of centuries overflowed.
    let trips = vec!["{\"lost\": \"true\"}"; 1002].join(",");
    let far = format!(
        "{{\"config\": {{\"interval\": {}}}, \"round_trips\": [{trips}]}}",
        u64::MAX
    );
    assert!(error(&far).1.contains("years"));
    assert!(error("{").1.contains("irtt"));
}

#[test]
fn own_csv_comes_back_as_written() {
    let texts = [
        "time_s,rtt_ms\n0.000000,41.200\n0.020000,\n0.040000,39.001\n",
        "time_s,rtt_ms,loss_share\n0.000000,41.200,0\n0.015000,43.000,0.25\n",
        "time_s,owd_up_ms,owd_down_ms\n0.000000,20.100,21.100\n0.020000,,22.000\n1.500000,,\n",
    ];
    for text in texts {
        let trace = parse(text.as_bytes()).unwrap();
        assert_eq!(trace.format, Format::Csv);
        let mut written = Vec::new();
        trace.write_csv(&mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), text);
    }
    // A regression: saved by a spreadsheet it was none of the formats.
    assert_eq!(
        parse("\u{feff}time_s,rtt_ms\r\n0,5\r\n".as_bytes())
            .unwrap()
            .samples()
            .len(),
        1
    );
    assert_eq!(error("time_s,rtt_ms\n0,5\n1,5,5\n").0, 3);
    assert_eq!(error("time_s,rtt\n0,5\n").0, 1);
    assert!(parse(b"5\n").unwrap().write_csv(Vec::new()).is_err());
}

#[test]
fn other_files_are_named_as_unknown() {
    let (line, text) = error("\n\nhello world\n");
    assert_eq!(line, 3);
    assert!(
        text.contains("hello world") && text.contains("irtt"),
        "{text}"
    );
    assert!(error("").1.contains("no samples"));
    assert!(error(&"x".repeat(5000)).1.contains("longer than"));
    assert!(matches!(
        parse(b"\xff\xfe\n").unwrap_err().kind,
        TraceErrorKind::NotText
    ));
    let missing = Trace::open(Path::new("/no/such/file")).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("/no/such/file: cannot be read"),
        "{missing}"
    );
}

/// Slots (ms) of a lap that are lost, for each direction, in a path made of the text.
fn dark_slots(text: &str, options: &PathOptions, laps: u64, length_ms: u64) -> [usize; 2] {
    let path = parse(text.as_bytes()).unwrap().path(options).unwrap();
    [
        (&path.forward, Direction::Forward),
        (&path.backward, Direction::Backward),
    ]
    .map(|(spec, direction)| {
        let mut channel = Channel::new(Arc::clone(spec), 1, 0, direction);
        let is_lost = |slot: u64| channel.fate(slot * 1000, 100) == Fate::Lost(LossReason::Trace);
        (0..laps * length_ms)
            .map(is_lost)
            .filter(|&lost| lost)
            .count()
    })
}

#[test]
fn a_lost_probe_stands_for_its_slot_in_one_direction() {
    // Two lost probes 20 ms apart in a lap of 100 ms; the prober stalls after them.
    let text = "time_s,rtt_ms\n0.000,40\n0.020,\n0.040,\n0.060,40\n0.080,40\n";
    let options = PathOptions {
        loss_forward: 1.0,
        ..PathOptions::default()
    };
    assert_eq!(dark_slots(text, &options, 10, 100), [400, 0]);
    let even = dark_slots(text, &PathOptions::default(), 1000, 100);
    assert_eq!(even[0] + even[1], 40_000);
    assert!((18_000..22_000).contains(&even[0]), "{even:?}");
    let outage = PathOptions {
        outage_min: std::time::Duration::from_millis(40),
        ..options
    };
    assert_eq!(dark_slots(text, &outage, 10, 100), [400, 400]);
    let known = "time_s,owd_up_ms,owd_down_ms\n0.000,20,20\n0.020,,20\n0.040,20,\n0.060,20,20\n0.080,20,20\n";
    assert_eq!(
        dark_slots(known, &PathOptions::default(), 10, 100),
        [200, 200]
    );
    let stalled = "time_s,rtt_ms\n0.0,40\n0.1,40\n0.2,40\n0.3,40\n0.4,\n5.4,40\n5.5,40\n5.6,40\n";
    // Half way before (50 ms) and the median spacing after (100 ms), not 2.5 s.
    assert_eq!(dark_slots(stalled, &options, 1, 5700), [150, 0]);
}

/// Two packets a message, a message a second; of the second message one packet is lost up, of the third one down.
const PACKETS: &str = "\
# measured
time_s,message,try,owd_up_ms,owd_down_ms
0.000000,0,0,20.000,30.000
0.000040,0,0,21.000,31.000
1.000000,1,0,20.000,30.000
1.000040,1,0,,-
1.300000,1,1,,-
2.000000,2,0,22.000,
2.000040,2,0,20.000,30.000
3.000000,3,0,20.000,-
3.000040,3,0,20.000,30.000
";

/// Goal: packets that left together are one moment with a share lost in each direction, and repetitions count nothing.
#[test]
fn measured_packets_are_played_by_message() {
    let trace = parse(PACKETS.as_bytes()).unwrap();
    assert_eq!(trace.format, Format::Packets);
    let at: Vec<u64> = trace.samples().iter().map(|s| s.at_us).collect();
    assert_eq!(
        at,
        [0, 0, 1_000_000, 1_000_000, 2_000_000, 2_000_000, 3_000_000]
    );
    assert_eq!(trace.samples()[3].outcome, Outcome::Lost(LostSide::Forward));
    // Each loss is half the packets of a second out of four.
    let [up, down] = dark_slots(PACKETS, &PathOptions::default(), 1000, 4000);
    for dark in [up, down] {
        assert!((495_000..505_000).contains(&dark), "{dark}");
    }
    assert_eq!(trace.summary().spacing, std::time::Duration::from_secs(1));
    assert_eq!(
        error("time_s,message,try,owd_up_ms,owd_down_ms\n0,0,0,5\n").0,
        2
    );
    let falling = "time_s,message,try,owd_up_ms,owd_down_ms\n0,1,0,5,5\n1,0,0,5,5\n";
    assert_eq!(error(falling).0, 3);
}

/// Regressions: a recording during which the server went away was played as a perfect path, since its packets were not read, and once
/// they were as they were not played.
#[test]
fn what_nobody_answers_any_more_is_lost() {
    let rows = (0..10).map(|second| match second < 4 {
        true => format!("{second}.0,{second},0,20.0,20.0\n"),
        false => format!("{second}.0,{second},0,-,-\n"),
    });
    let text = format!("{PACKETS_HEADER}\n") + &rows.collect::<String>();
    let trace = parse(text.as_bytes()).unwrap();
    let outcomes: Vec<Outcome> = (trace.samples().iter())
        .map(|sample| sample.outcome)
        .collect();
    // Of the last three seconds an answer may have been on its way.
    assert_eq!(outcomes.len(), 7);
    assert_eq!(outcomes[4..], [Outcome::Lost(LostSide::Unknown); 3]);
    // In each lap of seven seconds: from half a second before the first of the three until half a second after the last.
    let dark = dark_slots(&text, &PathOptions::default(), 10, 7000);
    assert_eq!(dark, [30_000, 30_000]);
}

/// Goal: what is written is read again.
#[test]
fn measured_packets_come_back_as_written() {
    let took = |us| Leg::Took { us };
    let rows = [
        (0, 0, took(20_000), took(30_001)),
        (40, 0, Leg::Lost, Leg::Unknown),
        (300_000, 1, Leg::Unknown, Leg::Lost),
        (1_000_000, 0, took(5), Leg::Lost),
    ]
    .map(|(sent_us, attempt, up, down)| PacketRow {
        sent_us,
        message: u32::from(sent_us > 500_000),
        attempt,
        up,
        down,
    });
    let mut written = format!("{PACKETS_HEADER}\n").into_bytes();
    write_packets(rows, &mut written).unwrap();
    let text = String::from_utf8(written.clone()).unwrap();
    assert!(text.contains("0.000040,0,0,,-\n"), "{text}");
    let outcomes: Vec<Outcome> = parse(&written)
        .unwrap()
        .samples()
        .iter()
        .map(|s| s.outcome)
        .collect();
    assert_eq!(
        outcomes,
        [
            Outcome::OneWay {
                up_us: Some(20_000),
                down_us: Some(30_001)
            },
            Outcome::Lost(LostSide::Forward),
            Outcome::OneWay {
                up_us: Some(5),
                down_us: None
            }
        ]
    );
}

#[test]
fn round_trips_are_split_as_stated() {
    let options = PathOptions {
        rtt_split: crate::channel::RttSplit::ratio(0.25).unwrap(),
        ..PathOptions::default()
    };
    let path = parse(b"time_s,rtt_ms\n0.000,40\n0.020,40\n")
        .unwrap()
        .path(&options)
        .unwrap();
    for (spec, expected) in [(&path.forward, 10_000), (&path.backward, 30_000)] {
        let mut channel = Channel::new(Arc::clone(spec), 1, 0, Direction::Forward);
        assert_eq!(
            channel.fate(0, 1),
            Fate::Delivered {
                delay_us: expected,
                duplicate: None
            }
        );
    }
    assert!(path.source.contains("25 %"), "{}", path.source);
    assert!(
        parse(b"time_s,rtt_ms\n0.000,\n")
            .unwrap()
            .path(&options)
            .is_err(),
        "no delay at all"
    );
}

#[test]
fn summaries_have_known_values() {
    let summary = parse(b"time_s,rtt_ms\n0,10\n1,20\n2,\n3,\n4,30\n5,40\n")
        .unwrap()
        .summary();
    assert_eq!(summary.rtt_ms, [10.0, 20.0, 40.0, 40.0, 40.0, 40.0]);
    assert!((summary.loss_share - 1.0 / 3.0).abs() < 1e-9);
    assert_eq!((summary.loss_run, summary.loss_run_max), (2.0, 2));
    assert!((summary.rtt_mean_ms - 25.0).abs() < 1e-9);
    let rate = parse(b"0\n10\n20\n30\n")
        .unwrap()
        .summary()
        .bits_per_second
        .unwrap();
    assert!((rate - 4.0 * 12_000.0 / 0.03).abs() < 1.0);
}

/// Parses and, when that succeeds, plays a little.
fn exercise(bytes: &[u8]) {
    let Ok(trace) = parse(bytes) else { return };
    trace.summary().to_string();
    let Ok(path) = trace.path(&PathOptions::for_trace(&trace)) else {
        return;
    };
    let mut channel = Channel::new(Arc::clone(&path.forward), 1, 1, Direction::Forward);
    for at in [0, 1000, 500, 1 << 40] {
        channel.fate(at, 100);
    }
}

proptest! {
    #[test]
    fn any_bytes_give_a_trace_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        exercise(&bytes);
    }

    #[test]
    fn any_change_to_a_good_file_gives_a_trace_or_an_error(
        which in 0usize..7,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 32u8..127), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let texts = [
            PING, IRTT, "1\t1\t5\n1.5\t2\t-1\n2\t3\t5\n", "0.0 4.37 3.8ms 0.00\n0.015 1 7.4ms 0.25\n",
            "0\n5\n5\n12\n", "time_s,owd_up_ms,owd_down_ms\n0,20,21\n0.02,,22\n1.5,,\n", PACKETS,
        ];
        let mut bytes = texts[which].as_bytes().to_vec();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        exercise(&bytes);
    }
}
