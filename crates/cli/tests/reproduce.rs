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
