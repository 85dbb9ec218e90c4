//! `cargo xtask test`: everything that has to hold before a change is done.

use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, fs};

use crate::steps::{self, Done, StepResult, Steps, capture, cargo, cargo_command, show};
use crate::{docs, licences, tools};

/// Everything that is off by default.
const FEATURES: &str = "xtask/vectors,punctual-cli/rivals,punctual-net/portable";

/// Runs all steps; `is_quick` leaves out what takes long.
pub(crate) fn run(is_quick: bool) -> ExitCode {
    let slow = |step: fn() -> StepResult| {
        move || match is_quick {
            true => Ok(Done::Skipped("--quick".to_owned())),
            false => step(),
        }
    };
    let mut steps = Steps::new();
    steps.step("tools", tools::provide);
    steps.step("format", format);
    steps.step("licences", licences::check);
    steps.step("clippy", clippy);
    steps.step("the protocol elsewhere", elsewhere);
    steps.step("documentation", documentation);
    steps.step("file names in the docs", docs::check);
    steps.step("vectors are what the code writes", || {
        cargo(&["xtask", "vectors", "--check"])
    });
    steps.step("vectors decode by PROTOCOL.md alone", decode_vectors);
    steps.step("tests", || {
        cargo(&["test", "--workspace", "--features", FEATURES])
    });
    // Tests that need these pass without a word where they are not there.
    steps.step("an emulated network", emulated);
    steps.step("recorded networks", recorded);
    steps.step("fuzz targets, short", slow(fuzz));
    steps.step("examples", slow(examples));
    steps.step("demo", slow(demo));
    steps.step("papers, quick", slow(papers));
    steps.finish()
}

fn format() -> StepResult {
    cargo(&["fmt", "--all", "--check"])?;
    match has_fuzz_targets() {
        true => of_fuzz(&["fmt", "--check"]),
        false => Ok(Done::Passed),
    }
}

fn clippy() -> StepResult {
    let lint = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        FEATURES,
    ];
    cargo(&[&lint[..], &["--", "-D", "warnings"]].concat())
}

/// The protocol, and with it policy and code, where there is no operating system, and in a browser: their other kernels as well.
fn elsewhere() -> StepResult {
    let bare: &[&str] = &["--no-default-features"];
    for (target, features) in [
        ("aarch64-unknown-none", bare),
        ("wasm32-unknown-unknown", &[]),
    ] {
        if !tools::has_target(target) {
            return Ok(Done::Skipped(format!(
                "no Rust for {target} can be had here"
            )));
        }
        let check = ["check", "--package", "punctual-proto", "--target", target];
        cargo(&[&check[..], features].concat())?;
    }
    Ok(Done::Passed)
}

fn documentation() -> StepResult {
    let arguments = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ];
    show(
        cargo_command()
            .args(arguments)
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// The second reading of PROTOCOL.md: a script that shares nothing with the code.
fn decode_vectors() -> StepResult {
    if !steps::works("python3", &["--version"]) {
        return Ok(Done::Skipped("there is no python3".to_owned()));
    }
    show(
        Command::new("python3")
            .arg("xtask/decode_vectors.py")
            .current_dir(steps::root()),
    )
}

/// The targets as ordinary tests, over the vectors and random bytes; fuzzing for hours is `cargo fuzz run`.
fn fuzz() -> StepResult {
    if !has_fuzz_targets() {
        return Ok(Done::Skipped("there are no fuzz targets".to_owned()));
    }
    of_fuzz(&[
        "clippy",
        "--locked",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ])?;
    of_fuzz(&["test"])
}

fn has_fuzz_targets() -> bool {
    steps::root().join("fuzz").is_dir()
}

/// They are a workspace of their own.
fn of_fuzz(arguments: &[&str]) -> StepResult {
    let (first, rest) = arguments.split_first().expect("a command");
    let manifest = [first, "--manifest-path", "fuzz/Cargo.toml"];
    cargo(&[&manifest[..], rest].concat())
}

/// Whether namespaces and devices can be had here.
fn emulated() -> StepResult {
    let run = ["run", "--quiet", "--package", "punctual-cli", "--"];
    let lab = ["lab", "run", "--rtt-ms", "2", "--", "true"];
    let words = "cargo run .. -- lab run --rtt-ms 2 -- true";
    println!("   {words}");
    let output = cargo_command().args(run).args(lab).output();
    let output = output.map_err(|error| format!("`{words}` did not start: {error}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Ok(Done::Passed),
        // What says that this machine lacks something.
        Some(69) => Ok(Done::Skipped(error.trim().to_owned())),
        _ => Err(format!("`{words}`: {}: {}", output.status, error.trim())),
    }
}

/// Whether there are recordings to play over.
fn recorded() -> StepResult {
    let beside = steps::root().join("../shared/traces");
    if env::var_os("PUNCTUAL_TRACES").is_some() || beside.is_dir() {
        return Ok(Done::Passed);
    }
    Ok(Done::Skipped(
        "PUNCTUAL_TRACES names no folder of them".to_owned(),
    ))
}

/// Every example is a program that ends by itself.
fn examples() -> StepResult {
    cargo(&["build", "--package", "punctual", "--examples"])?;
    let sources = fs::read_dir(steps::root().join("crates/punctual/examples"))
        .map_err(|error| format!("the examples cannot be listed: {error}"))?;
    let mut names: Vec<_> = sources
        .filter_map(|entry| entry.ok()?.path().file_stem().map(ToOwned::to_owned))
        .collect();
    names.sort();
    let folder = steps::target_folder()?.join("examples");
    for name in names {
        let program = folder.join(name).with_extension(env::consts::EXE_EXTENSION);
        steps::ends_within(&program, Duration::from_secs(60))?;
    }
    Ok(Done::Passed)
}

/// Real sockets, a short run: all four policies deliver everything.
fn demo() -> StepResult {
    let run = ["run", "--quiet", "--package", "punctual-cli", "--", "demo"];
    let short = ["--seconds", "3", "--clients", "20", "--json"];
    let output = capture(cargo_command().args(run).args(short))?;
    let output = output.replace(' ', "");
    let complete = output.matches("\"lost_messages\":0,").count();
    // What is not accepted counts as lost, but nothing sent is nothing lost.
    if complete == 4 && !output.contains("\"messages\":0,") {
        return Ok(Done::Passed);
    }
    print!("{output}");
    Err(format!("{complete} of 4 policies delivered everything"))
}

/// What the papers measured, on this machine's kernel, quickly: that each of it can be played and reported.
fn papers() -> StepResult {
    if let Done::Skipped(why) = emulated()? {
        return Ok(Done::Skipped(why));
    }
    let run = ["run", "--quiet", "--package", "punctual-cli"];
    let quick = ["--features", "rivals", "--", "lab", "reproduce", "all"];
    let mut command = cargo_command();
    command.args(run).args(quick).args(["--quick", "--json"]);
    let words = "cargo run .. -- lab reproduce all --quick --json";
    println!("   {words}");
    let output = command
        .output()
        .map_err(|error| format!("`{words}` did not start: {error}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!(
            "`{words}` ended with {}: {}",
            output.status,
            error.trim()
        ));
    }
    let count = String::from_utf8_lossy(&output.stdout)
        .matches("\"verdict\"")
        .count();
    println!("   {count} verdicts");
    if count == 0 {
        return Err("nothing was reproduced".to_owned());
    }
    Ok(Done::Passed)
}
