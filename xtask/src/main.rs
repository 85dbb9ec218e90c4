//! Repository chores. `cargo xtask test` is exactly what CI runs (`.ci/run`), and what README.md names.

mod docs;
mod licences;
mod steps;
mod test;
mod tools;
#[cfg(feature = "vectors")]
mod vectors;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask test [--quick]     all checks and tests; --quick without the slow ones\n       \
                            cargo xtask licences           whether deny.toml allows the licences of all dependencies\n       \
                            cargo xtask vectors [--check]  write the test vectors of PROTOCOL.md, or compare them\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["test"] => test::run(false),
        ["test", "--quick"] => test::run(true),
        ["licences"] => steps::exit_code(&licences::check()),
        ["vectors", ref rest @ ..] => vectors(rest),
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

#[cfg(feature = "vectors")]
fn vectors(rest: &[&str]) -> ExitCode {
    let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
    vectors::run(&rest)
}

/// Runs this program again, with the feature.
#[cfg(not(feature = "vectors"))]
fn vectors(rest: &[&str]) -> ExitCode {
    let run = [
        "run",
        "--quiet",
        "--package",
        "xtask",
        "--features",
        "vectors",
        "--",
        "vectors",
    ];
    steps::exit_code(&steps::cargo(&[&run, rest].concat()))
}
