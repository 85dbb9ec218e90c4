//! What the tests need beyond a Rust toolchain and a C compiler: looked for, and installed where that can be done.

use std::process::Command;

use crate::steps::{Done, StepResult, cargo_command, show, works};

/// Provides rustfmt, clippy and python3.
pub(crate) fn provide() -> StepResult {
    if !works("cc", &["--version"]) {
        return Err(
            "there is no C compiler: install one that is called as `cc` (gcc or clang)".to_owned(),
        );
    }
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        let cargo = cargo_command().get_program().to_owned();
        if !works(cargo, &[command, "--version"]) {
            show(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    python()
}

/// Only a root user of a machine with apt can be helped; the others lose one step, and are told.
fn python() -> StepResult {
    let is_there = || works("python3", &["--version"]);
    let may_install = || works("sh", &["-c", "test \"$(id -u)\" = 0 && command -v apt-get"]);
    if !is_there() && may_install() {
        // Fails on a machine without a network; then the step that needs it is skipped.
        let _ = show(Command::new("apt-get").args(["update", "-q"]));
        let _ = show(Command::new("apt-get").args(["install", "-y", "-q", "python3"]));
    }
    if !is_there() {
        println!("   there is no python3: the vectors will not be decoded by the script");
    }
    Ok(Done::Passed)
}
