//! The program as it was built for the tests, and what it prints.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs};

use serde_json::Value;

pub(crate) fn punctual(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(arguments.split_whitespace());
    command
        .output()
        .expect("the program was built for this test")
}

pub(crate) fn json(arguments: &str) -> Value {
    let output = punctual(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {error}");
    assert!(error.is_empty(), "{arguments}: {error}");
    serde_json::from_slice(&output.stdout).expect("--json prints one object")
}

/// Ends with code 2 and one sentence on standard error, which has `words` in it; returns it.
pub(crate) fn refused(arguments: &str, words: &str) -> String {
    let output = punctual(arguments);
    let error = String::from_utf8(output.stderr).expect("messages are text");
    assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
    assert_eq!(error.lines().count(), 1, "{arguments}: {error}");
    assert!(
        error.starts_with("punctual: ") && error.contains(words),
        "{arguments}: {error}"
    );
    assert!(output.stdout.is_empty(), "{arguments}");
    error
}

/// A path of this test run alone.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let path = env::temp_dir().join(format!("punctual-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}
