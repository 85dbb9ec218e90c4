//! What the tests need beyond a Rust toolchain and a C compiler: looked for, and installed where that can be done.

use std::process::{Command, Stdio};

use crate::steps::{Done, StepResult, cargo_command, show, works};

/// Provides rustfmt, clippy, python3, and what the emulator needs.
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
    let losses: Vec<_> = PROGRAMS.iter().filter_map(Program::provide).collect();
    if losses.is_empty() {
        return Ok(Done::Passed);
    }
    Ok(Done::Skipped(losses.join("; ")))
}

/// Whether Rust compiles for another system; rustup is asked for what is missing.
pub(crate) fn has_target(target: &str) -> bool {
    let list = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .output();
    let is_there = |list: &[u8]| {
        String::from_utf8_lossy(list)
            .lines()
            .any(|line| line == target)
    };
    list.is_ok_and(|list| {
        is_there(&list.stdout)
            || show(Command::new("rustup").args(["target", "add", target])).is_ok()
    })
}

/// A program that a part of the tests needs.
struct Program {
    /// Its name, and an argument with which it ends at once.
    call: (&'static str, &'static str),
    /// Debian's package.
    package: &'static str,
    /// What is not tested without it.
    loss: &'static str,
}

const PROGRAMS: [Program; 4] = [
    Program {
        call: ("python3", "--version"),
        package: "python3",
        loss: "the vectors will not be decoded by the script",
    },
    Program {
        call: ("ip", "-V"),
        package: "iproute2",
        loss: "there will be no emulated network",
    },
    Program {
        call: ("setpriv", "--version"),
        package: "util-linux",
        loss: "no programs will be run on the emulated network",
    },
    Program {
        call: ("srt-live-transmit", "-version"),
        package: "srt-tools",
        loss: "SRT will not be played against",
    },
];

impl Program {
    /// Only a root user of a machine with apt can be helped; the others lose a part: which.
    fn provide(&self) -> Option<String> {
        let (name, argument) = self.call;
        let is_there = || works(name, &[argument]);
        let may_install = || {
            let test = "test \"$(id -u)\" = 0 && command -v apt-get";
            works("sh", &["-c", test])
        };
        if !is_there() && may_install() {
            // Fails on a machine without a network; then what needs it is skipped.
            let apt_get = |arguments: &[&str]| {
                let mut command = Command::new("apt-get");
                let quiet = command.env("DEBIAN_FRONTEND", "noninteractive");
                show(quiet.args(arguments).stdin(Stdio::null()))
            };
            let _ = apt_get(&["update", "-q"]);
            let _ = apt_get(&["install", "-y", "-q", self.package]);
        }
        (!is_there()).then(|| format!("there is no {name}: {}", self.loss))
    }
}
