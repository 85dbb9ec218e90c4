//! Papers repeated, as users meet it. What needs network namespaces is skipped, with a word, where none can be made.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

use serde_json::Value;

fn punctual(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_punctual"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the program was built for this test")
}

fn results(output: &Output) -> Vec<Value> {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let all: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    all["reproductions"].as_array().expect("a list").clone()
}

fn differing(result: &Value) -> Vec<&str> {
    let rows = result["rows"].as_array().expect("a list").iter();
    rows.filter(|row| row["verdict"] == "differs")
        .map(|row| row["what"].as_str().expect("a name"))
        .collect()
}

#[test]
fn what_needs_no_network_agrees() {
    let output = punctual(
        "lab reproduce pangolin-figure-6 pangolin-figure-2 pangolin-figure-3 --quick --json",
    );
    let results = results(&output);
    assert_eq!(results.len(), 3);
    for result in &results {
        assert_eq!(differing(result), [""; 0], "{result}");
        assert!(!result["charts"].as_array().expect("a list").is_empty());
    }
}

#[test]
fn lists_are_for_people_and_for_programs() {
    let json = |arguments: &str| -> Value {
        let output = punctual(&format!("{arguments} --json"));
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("--json prints one object")
    };
    let list = &json("lab reproduce list")["list"];
    assert_eq!(list[0]["names"][0], "pangolin-figure-2", "{list}");
    let arms = &json("lab scorecard --arms help")["arms"];
    assert_eq!(arms[0]["arm"], "punctual");
    assert!(arms[0]["missing"].is_null(), "{arms}");
    let text = punctual("lab scorecard --arms help").stdout;
    let text = String::from_utf8(text).expect("text");
    assert!(
        text.starts_with("punctual\n") && text.contains("\ntcp-cubic\n"),
        "{text}"
    );
    assert!(text.contains("Any policy"), "{text}");
}

#[test]
fn wrong_names_are_told() {
    for (name, words) in [("table-99", "pangolin-table-1"), ("tablet", "there is no")] {
        let output = punctual(&format!("lab reproduce {name}"));
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(words), "{error}");
    }
    let output = punctual("lab population --region mars");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_population_says_that_it_is_synthetic() {
    let output = punctual("lab population --region eu --clients 100 --json");
    assert!(output.status.success());
    let population: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let source = population["source"].as_str().expect("a text");
    assert!(
        source.contains("Synthetic") && source.contains("assumed"),
        "{source}"
    );
    assert_eq!(population["regions"][0]["clients"], 100);
}
