//! The program as users and scripts meet it: what it prints, what it refuses, and how it ends.

mod support;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;
use support::{json, punctual, refused, scratch};

#[test]
fn the_paper_s_example_is_solved() {
    let found = json(
        "policy solve --loss 0.02 --symbols 4 --rounds 2 --miss 0.001 --policy pangolin --json",
    );
    let symbols = found["expected_symbols"].as_f64().expect("a number");
    assert!((symbols - 4.158).abs() <= 0.001, "{symbols}");
    assert!(found["miss_probability"].as_f64().expect("a number") <= 0.001);
    assert_eq!(
        found["actions"],
        serde_json::json!([[1, 2, 3, 4], [2, 3, 4, 5]])
    );
    assert!(found.get("mixture").is_none());
    for (loss, late) in [("0", "late: 0 %\n"), ("0.02", "late: 0.0")] {
        let output = punctual(&format!("policy solve --loss {loss} --policy pangolin"));
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains(late) && !text.contains("e-"), "{text}");
    }
}

#[test]
fn exact_is_a_mixture() {
    let found = json("policy solve --policy exact --json");
    assert!(found.get("actions").is_none());
    let parts = found["mixture"].as_array().expect("a list");
    let weights: f64 = parts
        .iter()
        .filter_map(|part| part["weight"].as_f64())
        .sum();
    assert!((weights - 1.0).abs() < 1e-9);
    assert!(parts.iter().all(|part| {
        part["actions"]
            .as_array()
            .is_some_and(|rounds| rounds.len() == 2)
    }));
}

#[test]
fn curves_are_drawn_and_written() {
    let (html, svg) = (scratch("curve.html"), scratch("curve.svg"));
    let files = format!("--html {} --svg {}", html.display(), svg.display());
    let output = punctual(&format!("policy curve --points 10 {files}"));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && text.contains("oracle"), "{text}");
    assert!(
        fs::read_to_string(&html)
            .expect("written")
            .ends_with("</html>\n")
    );
    assert!(
        fs::read_to_string(&svg)
            .expect("written")
            .ends_with("</svg>\n")
    );
    let curves = json("policy curve --points 10 --json");
    let points = |i: usize| {
        curves["curves"][i]["points"]
            .as_array()
            .cloned()
            .expect("a list")
    };
    assert_eq!((points(0).len(), points(1).len()), (11, 11));
    // A stricter target costs more, and nobody does better than the oracle.
    let overhead = |i: usize| points(i)[10]["overhead"].as_f64().expect("a number");
    assert!(overhead(1) > overhead(0) && overhead(0) > 0.0);
    let _ = (fs::remove_file(html), fs::remove_file(svg));
}

/// One file for two outputs held the second, and one for a recording and a page the page.
#[test]
fn a_file_is_written_once_and_never_over_the_input() {
    let file = scratch("once.csv");
    let recording = "time_s,rtt_ms\n0,40\n0.1,41\n";
    fs::write(&file, recording).expect("temporary files can be written");
    let name = file.display();
    let other = format!(
        "{}/./once-{}",
        env::temp_dir().display(),
        std::process::id()
    );
    let same = other.replace("/./", "/");
    for arguments in [
        format!("policy curve --points 2 --html {same} --svg {other}"),
        format!("policy explain --messages 10 --html {same} --svg {other}"),
        format!("lab replay --trace {name} --report {name}"),
        format!("lab simulate --scenario {name} --report {name}"),
        format!("policy explain --trace {name} --svg {name}"),
        format!("demo --trace {name} --report {name}"),
    ] {
        refused(&arguments, "both name");
    }
    assert!(!PathBuf::from(same).exists());
    assert_eq!(fs::read_to_string(&file).expect("still there"), recording);
    let devices = punctual("policy curve --points 2 --html /dev/null --svg /dev/null");
    assert!(devices.status.success());
    let _ = fs::remove_file(file);
}

/// A regression: a page took the place of a recording in a folder, or one that a scenario names, by a slip of the hand.
#[test]
fn a_page_takes_no_other_file_s_place() {
    let recording = scratch("recording.csv");
    fs::write(&recording, "time_s,rtt_ms\n0,20\n1,21\n").expect("the directory is there");
    let file = recording.display();
    for arguments in [
        "lab simulate --messages 200 --report",
        "lab population --clients 50 --report",
        "policy curve --html",
    ] {
        refused(&format!("{arguments} {file}"), "is not written over");
    }
    let text = fs::read_to_string(&recording).expect("it is there");
    assert!(text.starts_with("time_s,rtt_ms"));
    let page = scratch("page.html");
    for _ in 0..2 {
        let arguments = format!("lab simulate --messages 200 --report {}", page.display());
        assert!(punctual(&arguments).status.success());
    }
    for file in [recording, page] {
        fs::remove_file(file).expect("it is there");
    }
}

/// A regression: messages that were refused were in no figure and no file, and a policy looked better than what no sender beats.
/// And the figures were gone where the page could not be written.
#[test]
fn what_was_refused_is_told_and_figures_survive_a_full_disk() {
    // (Sessions end in the dark.)
    let arguments = "lab simulate --messages 500 --sessions 5 --blackout 10..100";
    let output = punctual(&format!("{arguments} --json"));
    let told: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let refused = &told["settings"]["refused_messages"]["steered"];
    // They count as lost: figures of the others alone only flattered the policy.
    let (messages, lost) = (
        &told["policies"][0]["messages"],
        &told["policies"][0]["lost_messages"],
    );
    assert_eq!(messages.as_u64(), Some(500));
    assert!(refused.as_u64() > Some(100), "{refused}");
    assert!(lost.as_u64() >= refused.as_u64(), "{lost} {refused}");
    assert_eq!(told["settings"]["is_complete"], true);
    let full = "/dev/full";
    if !std::path::Path::new(full).exists() {
        return;
    }
    let output = punctual(&format!("{arguments} --report {full}"));
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains("Note: steered: ") && text.contains("were refused"),
        "{text}"
    );
}

#[test]
fn a_policy_is_explained() {
    let (html, svg) = (scratch("why.html"), scratch("why.svg"));
    let path = "--rtt-ms 60 --loss 0.05 --deadline-ms 150 --symbols 4 --messages 2000 --sessions 2";
    let files = format!("--html {} --svg {}", html.display(), svg.display());
    let output = punctual(&format!("policy explain {path} {files}"));
    let text = String::from_utf8(output.stdout).expect("text");
    for part in [
        "What is sent when, and why: one message more",
        "whole runs, 2000 messages each",
        "a miss is worth",
        "without spacing",
        "at best, by what was lost",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (file, end) in [(&html, "</html>\n"), (&svg, "</svg>\n")] {
        let written = fs::read_to_string(file).expect("written");
        assert!(written.ends_with(end));
    }
    let told = json(&format!("policy explain {path} --json"));
    let decisions = told["decisions"].as_array().expect("a list");
    let first = &decisions[0];
    assert_eq!((&first["round"], &first["needed"]), (&1.into(), &4.into()));
    says_why(&told);
    // (What one more would save was once reckoned beside the tables that decide: more than it is, and not sent.)
    for hard in [
        "--loss 0.3 --deadline-ms 100 --symbols 4",
        "--loss 0.1 --burst-ms 20 --deadline-ms 70 --symbols 4",
    ] {
        let told = json(&format!(
            "policy explain --rtt-ms 60 {hard} --messages 2000 --json"
        ));
        says_why(&told);
        let decisions = told["decisions"].as_array().expect("a list");
        let is_told = |decision: &Value| decision["last_saves"].is_number();
        assert!(decisions.iter().any(is_told), "{decisions:?}");
    }
    assert_eq!(told["policies"].as_array().map(Vec::len), Some(10));
    assert!(told["seen"]["miss_price_symbols"].is_number(), "{told}");
    let exact = json(&format!("policy explain {path} --policy exact --json"));
    assert!(exact["decisions"][0]["last_saves"].is_null());
    assert_eq!(exact["source_symbols"]["exact"], 4);
    // Nothing can be in time, and nothing is made up about it.
    let hopeless =
        punctual("policy explain --rtt-ms 60 --deadline-ms 1 --messages 200 --sessions 1");
    let text = String::from_utf8(hopeless.stdout).expect("text");
    assert!(
        text.contains("nothing that leaves now is in time") && !text.contains("saves"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let _ = (fs::remove_file(html), fs::remove_file(svg));
}

/// What is sent beyond what is needed saves more than it is, and what is not sent would not.
fn says_why(told: &Value) {
    for decision in told["decisions"].as_array().expect("a list") {
        let saves = |field: &str| decision[field].as_f64();
        assert!(
            saves("last_saves").is_none_or(|saves| saves > 0.97),
            "{decision}"
        );
        assert!(
            saves("next_would_save").is_none_or(|saves| saves < 1.03),
            "{decision}"
        );
    }
}

const SMALL: &str = "--messages 400 --sessions 20 --policy exact,fixed:1";

#[test]
fn a_simulation_reports_what_is_documented_and_repeats() {
    let page = scratch("report.html");
    let small = format!("lab simulate --rtt-ms 60 --deadline-ms 150 {SMALL} --json");
    let report = json(&small);
    let fields: Vec<&String> = report.as_object().expect("an object").keys().collect();
    let floors = [
        "floor_late_share",
        "floor_late_share_95",
        "floor_recovery_overhead",
        "floor_recovery_overhead_95",
    ];
    assert_eq!(fields[..4], floors);
    assert_eq!(fields[4..], ["policies", "settings"]);
    let policies = report["policies"].as_array().expect("a list");
    let names: Vec<_> = policies
        .iter()
        .filter_map(|policy| policy["policy"].as_str())
        .collect();
    assert_eq!(names, ["exact", "fixed(1)"]);
    for policy in policies {
        assert_eq!(
            (&policy["messages"], &policy["lost_messages"]),
            (&400.into(), &0.into())
        );
        assert!(
            policy["latency_ms"]["p50"]
                .as_f64()
                .is_some_and(|ms| (30.0..31.0).contains(&ms))
        );
    }
    assert_eq!(report, json(&small));
    let output = punctual(&format!("lab simulate {SMALL} --report {}", page.display()));
    assert!(output.status.success());
    let html = fs::read_to_string(&page).expect("written");
    // The command that repeats the run is in it.
    assert!(
        html.contains("punctual lab simulate --messages 400"),
        "{html}"
    );
    let _ = fs::remove_file(page);
}

/// A scenario of a second: a stream with a deadline over a shared link.
const SCENARIO: &str = "name = 'little'\nsessions = 2\nseconds = 1\nsettle_s = 0.2\nseed = 5\n[network]\nrtt_ms = 40\nloss_forward = 0.02\n\
    [link]\nrate_mbit_per_s = 4\n[[stream]]\nname = 'moves'\ndelivery = 'latest'\ndeadline_ms = 100\nbounds_ms = [30]\n\
    traffic = { every_ms = 20, bytes = 60 }\n";

#[test]
fn a_scenario_is_played_as_its_file_says() {
    let file = scratch("little.toml");
    fs::write(&file, SCENARIO).expect("temporary files can be written");
    let play = format!("lab simulate --scenario {}", file.display());
    let result = json(&format!("{play} --seeds 3 --json"));
    assert_eq!(result["scenario"], "little");
    assert_eq!(result["seeds"], serde_json::json!([5, 6, 7]));
    assert_eq!(result["runs"].as_array().map(Vec::len), Some(3));
    let stream = &result["streams"][0];
    assert_eq!(stream["stream"], "moves");
    // 2 sessions for 3 times 0.8 s.
    assert_eq!(stream["messages_sent"], 240);
    assert!(stream["settling"]["messages"].as_u64() > Some(50));
    assert!(result["link"]["utilisation"].as_f64() > Some(0.0));
    assert_eq!(result, json(&format!("{play} --seeds 3 --json")));
    assert_eq!(json(&format!("{play} --seed 9 --json"))["seeds"][0], 9);

    let page = scratch("scenario.html");
    let output = punctual(&format!("{play} --report {}", page.display()));
    let text = String::from_utf8(output.stdout).expect("tables are text");
    assert!(output.status.success());
    for words in [
        "little",
        "seed 5",
        "moves (first 0.2 s)",
        "on time [95 %]",
        "queue ms mean",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let html = fs::read_to_string(&page).expect("--report writes the file");
    assert!(html.contains("punctual lab simulate --scenario") && html.contains("Goodput"));

    refused(&format!("{play} --loss 0.1"), "--loss");
    refused(&format!("{play} --policy exact"), "--policy");
    refused(&format!("{play} --seeds 0"), "--seeds");
    let last = u64::MAX;
    refused(
        &format!("{play} --seeds 2 --seed {last}"),
        "beyond the largest",
    );
    assert_eq!(
        json(&format!("{play} --seed {last} --json"))["seeds"][0],
        last
    );
    refused("lab simulate --seeds 2", "--scenario");
    refused(
        "lab simulate --scenario /no/such/file.toml",
        "cannot be read",
    );
    fs::write(&file, SCENARIO.replace("every_ms = 20", "every_ms = 0")).expect("still");
    refused(&play, "line 16: `stream.traffic.every_ms` must be");
    let blocked = SCENARIO.replace("loss_forward = 0.02", "loss_forward = 0.999");
    fs::write(&file, blocked).expect("still");
    refused(&play, "0 of 2 sessions began");
    let _ = (fs::remove_file(&file), fs::remove_file(&page));
}

#[test]
fn a_scenario_says_why_messages_were_given_up() {
    let file = scratch("dark.toml");
    let dark = SCENARIO.replace("'latest'", "'unreliable'").replace(
        "[link]",
        "[network.forward]\nblackouts_s = [[0.5, 1.2]]\n[link]",
    );
    fs::write(&file, dark).expect("temporary files can be written");
    let page = scratch("dark.html");
    let play = format!("lab simulate --scenario {}", file.display());
    let output = punctual(&format!("{play} --report {}", page.display()));
    let text = String::from_utf8(output.stdout).expect("tables are text");
    let html = fs::read_to_string(&page).expect("--report writes the file");
    let dropped = &json(&format!("{play} --json"))["streams"][0]["outcomes"]["dropped"];
    let loss = dropped["path_down"].as_u64().expect("a number");
    assert!(loss > 10, "{dropped}");
    let (_, table) = text.split_once("Given up, and why\n").expect(&text);
    let mut lines = table.lines();
    let mut next = || lines.next().unwrap_or_default();
    assert!(next().contains("path down"), "{text}");
    assert!(
        next()
            .split_whitespace()
            .any(|cell| cell == loss.to_string()),
        "{text}"
    );
    assert!(html.contains("Given up, and why"));
    let _ = (fs::remove_file(&file), fs::remove_file(&page));
}

/// A bulk stream has no latency plot, which gave each stream after it another colour there than in the next chart.
#[test]
fn a_stream_has_one_colour_on_a_page() {
    let (file, page) = (scratch("colours.toml"), scratch("colours.html"));
    let bulk = "[[stream]]\nname = 'map'\ndelivery = 'reliable'\ntraffic = { bulk_bytes = 9000 }\n[[stream]]";
    let text = SCENARIO.replace("[[stream]]", bulk);
    let text = text.replace("seconds = 1\n", "seconds = 3\n");
    fs::write(&file, text).expect("temporary files can be written");
    let (file_name, page_name) = (file.display(), page.display());
    let output = punctual(&format!(
        "lab simulate --scenario {file_name} --report {page_name}"
    ));
    assert!(output.status.success(), "{output:?}");
    let html = fs::read_to_string(&page).expect("--report writes the file");
    let lines = html.split("<polyline class=\"").skip(1);
    let lines = lines.filter(|line| line.contains("<title>moves"));
    let classes: Vec<_> = lines.filter_map(|line| line.split('"').next()).collect();
    assert_eq!(classes, ["series c0 d0", "series c0 d0"]);
    let _ = (fs::remove_file(&file), fs::remove_file(&page));
}

#[test]
fn thin_streams_are_studied() {
    let result = json("lab thin-streams --messages 100 --seed 3 --json");
    let rows = result["rows"].as_array().expect("a list");
    assert_eq!((rows.len(), &result["seed"]), (50, &serde_json::json!(3)));
    assert_eq!(rows[0]["shape"], "anarchy-online");
    assert_eq!(rows[4]["remedies"], "all off");
    refused("lab thin-streams --messages 1", "from 100 to");
}

#[test]
fn a_recording_is_replayed() {
    let trace = scratch("trace.csv");
    let rows: String = (0..500)
        .map(|i| format!("{},{}\n", f64::from(i) * 0.02, 40 + i % 7))
        .collect();
    fs::write(&trace, format!("time_s,rtt_ms\n{rows}")).expect("writable");
    let report = json(&format!(
        "lab replay --trace {} {SMALL} --json",
        trace.display()
    ));
    // Twice the median of 40 to 46 ms, between which the delay moves steadily.
    let deadline = report["settings"]["deadline_ms"].as_f64();
    assert!(
        deadline.is_some_and(|ms| (85.0..=88.0).contains(&ms)),
        "{deadline:?}"
    );
    assert_eq!(report["policies"][0]["lost_messages"], 0);
    let _ = fs::remove_file(trace);
}

#[test]
fn a_closed_pipe_is_nothing_to_talk_about() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_punctual"))
        .args(["policy", "curve", "--json", "--points", "2000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built for this test");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success());
}

#[test]
fn help_names_every_command() {
    let help = String::from_utf8(punctual("--help").stdout).expect("text");
    for command in [
        "demo", "serve", "send", "measure", "keygen", "policy", "lab",
    ] {
        assert!(help.contains(command), "{help}");
    }
}

/// What is named twice is played once.
#[test]
fn a_policy_that_is_named_twice_is_played_once() {
    let result =
        json("lab simulate --policy exact,pangolin,exact --messages 100 --sessions 2 --json");
    let policies = result["policies"].as_array().expect("a list");
    assert_eq!(policies.len(), 2);
}

/// A regression: a path that is no UTF-8 made a panic of the JSON, once the work was done.
#[cfg(unix)]
#[test]
fn paths_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let directory = scratch("no-text");
    fs::create_dir_all(&directory).expect("writable");
    let path = |name: &[u8]| directory.join(OsStr::from_bytes(name));
    let (trace, key) = (path(b"r\xe9seau.csv"), path(b"cl\xe9"));
    let rows: String = (0..300)
        .map(|i| format!("{},40\n", f64::from(i) * 0.02))
        .collect();
    fs::write(&trace, format!("time_s,rtt_ms\n{rows}")).expect("writable");
    let run = |words: &[&str], file: &PathBuf, more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_punctual"))
            .args(words)
            .arg(file)
            .args(more)
            .output()
            .expect("the program was built for this test")
    };
    let small = ["--messages", "100", "--sessions", "1", "--json"];
    for output in [
        run(&["lab", "replay", "--trace"], &trace, &small),
        run(
            &[
                "policy",
                "explain",
                "--messages",
                "100",
                "--json",
                "--trace",
            ],
            &trace,
            &[],
        ),
        run(&["keygen", "--json", "--out"], &key, &[]),
    ] {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(value.is_object());
    }
    let _ = fs::remove_dir_all(directory);
}
