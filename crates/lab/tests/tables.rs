//! What streams achieve, as a table that is looked at in review: simulations are equal everywhere, so any change of it is a change
//! of the protocol. After one, `PUNCTUAL_BLESS=1 cargo test -p punctual-lab --test tables` writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use punctual_lab::scenario::{Scenario, ScenarioResult, ThinStudy, run, thin_streams};
use punctual_proto::Uplink;

fn open(name: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    Scenario::open(&folder.join(name)).expect("the files are tested by themselves")
}

fn play(scenario: &Scenario, seeds: u64) -> ScenarioResult {
    let seeds = scenario.seed..scenario.seed + seeds;
    run(scenario, seeds, |_| {})
        .expect("it can be played")
        .result
}

/// p99 of the game's messages with and without a download, and what the download gets.
fn mixed_game(table: &mut String) {
    writeln!(
        table,
        "mixed game, 12 seeds: p99 in ms; download in Mbit/s; queue p99 in ms"
    )
    .unwrap();
    for file in ["mixed-game-no-download.toml", "mixed-game.toml"] {
        let result = play(&open(file), 12);
        let p99 = |name: &str| {
            let stream = result.stream(name).expect("it is in both files");
            stream.latency_ms.p99.unwrap_or(f64::NAN)
        };
        let download = result
            .stream("download")
            .map_or(0.0, |s| s.goodput_bits_per_s);
        let queue = result.link.and_then(|link| link.queue_ms.p99);
        writeln!(
            table,
            "  {file:<28} positions {:5.1}  shots {:5.1}  download {:.2}  queue {:.1}",
            p99("positions"),
            p99("shots"),
            download / 1e6,
            queue.unwrap_or(0.0)
        )
        .unwrap();
    }
}

fn thin(table: &mut String) {
    writeln!(
        table,
        "thin streams, about 4,000 messages a row: share undelayed in %, p99 in ms"
    )
    .unwrap();
    let study = ThinStudy {
        messages: 4000,
        ..ThinStudy::default()
    };
    let results = thin_streams(&study, |_| {}).expect("it can be played");
    for row in results.rows {
        writeln!(
            table,
            "  {:<18} {:<19} {:6.2} of {:6.2}  p99 {:6.1}",
            row.shape,
            row.remedies,
            row.undelayed_share * 100.0,
            row.goal * 100.0,
            row.latency_ms.p99.unwrap_or(f64::NAN)
        )
        .unwrap();
    }
}

fn fairness(table: &mut String) {
    writeln!(table, "fairness: Mbit/s by weight; frames a second").unwrap();
    let weights = play(&open("fairness-weights.toml"), 1);
    for stream in &weights.streams {
        let rate = stream.goodput_bits_per_s / 1e6;
        writeln!(table, "  weight {}: {rate:.3}", stream.weight).unwrap();
    }
    let quality = play(&open("fairness-quality.toml"), 1);
    for stream in &quality.streams {
        let frames = stream.quality_per_s.unwrap_or(0.0);
        writeln!(table, "  {}: {frames:.2}", stream.stream).unwrap();
    }
}

fn beside_tcp(table: &mut String) {
    writeln!(
        table,
        "8 of ours and 8 CUBIC flows, 8 seeds: our part of half; Jain among ours"
    )
    .unwrap();
    for file in ["half", "one", "four"] {
        let result = play(&open(&format!("shared-bottleneck-{file}-bdp.toml")), 8);
        let (mut ours, mut even) = (0.0, 0.0);
        for run in &result.runs {
            let ratio = run
                .rivals
                .as_ref()
                .and_then(|r| r.session_to_rival)
                .unwrap_or(0.0);
            let share = 2.0 * ratio / (1.0 + ratio);
            let jain = run.sessions_fairness;
            writeln!(
                table,
                "  {file:<4} BDP, seed {}: {share:.3} {jain:.3}",
                run.seed
            )
            .unwrap();
            ours += share / result.runs.len() as f64;
            even += jain / result.runs.len() as f64;
        }
        // Means: over 48 seeds the share is 1.08, 1.11 and 0.94, and Jain's index 0.98, 0.95 and 0.97, with 0.03 from one seed to the next.
        assert!((0.82..=1.18).contains(&ours), "{file}: {ours}");
        assert!(even >= 0.92, "{file}: {even}");
    }
}

fn broadcast(table: &mut String) {
    writeln!(
        table,
        "broadcasts to 1,000 sessions: on time in %, p99 in ms, packets dropped"
    )
    .unwrap();
    let mut scenario = open("broadcast.toml");
    scenario.duration = std::time::Duration::from_secs(7);
    let known = Uplink::BytesPerSecond(12_500_000);
    for uplink in [known, Uplink::Unknown, Uplink::Unlimited] {
        scenario.uplink = uplink;
        let result = play(&scenario, 1);
        let stream = &result.streams[0];
        writeln!(
            table,
            "  {:<25} {:6.2}  p99 {:5.1}  dropped {}",
            format!("{uplink:?}"),
            stream.on_time_share.unwrap_or(0.0) * 100.0,
            stream.latency_ms.p99.unwrap_or(f64::NAN),
            result.link.map_or(0, |link| link.packets_dropped)
        )
        .unwrap();
    }
}

#[test]
fn what_streams_achieve() {
    let mut table = String::new();
    for part in [mixed_game, thin, fairness, beside_tcp, broadcast] {
        part(&mut table);
        table.push('\n');
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables/streams.txt");
    if std::env::var_os("PUNCTUAL_BLESS").is_some() {
        fs::write(&path, &table).expect("the tests' folder can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        table == expected,
        "the table has changed; look at it, and bless it if it is right:\n{table}"
    );
}
