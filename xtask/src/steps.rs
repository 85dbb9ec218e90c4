//! Runs steps one after the other: a heading and the time of each, a summary at the end, a stop at the first failure.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How a step went well.
pub(crate) enum Done {
    /// All of it was done.
    Passed,
    /// It was left out, or a part of it; why.
    Skipped(String),
}

/// A sentence when it did not.
pub(crate) type StepResult = Result<Done, String>;

/// The steps so far.
pub(crate) struct Steps {
    begin: Instant,
    lines: Vec<String>,
    is_failed: bool,
    skipped: usize,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            begin: Instant::now(),
            lines: Vec::new(),
            is_failed: false,
            skipped: 0,
        }
    }

    /// Runs a step, unless one has failed before.
    pub(crate) fn step(&mut self, name: &str, run: impl FnOnce() -> StepResult) {
        if self.is_failed {
            return;
        }
        println!("\n== {name}");
        let begin = Instant::now();
        let result = run();
        let seconds = begin.elapsed().as_secs_f64();
        let line = match result {
            Ok(Done::Passed) => format!("passed   {seconds:7.1} s  {name}"),
            Ok(Done::Skipped(why)) => {
                self.skipped += 1;
                format!("skipped  {seconds:7.1} s  {name}: {why}")
            }
            Err(why) => {
                self.is_failed = true;
                format!("FAILED   {seconds:7.1} s  {name}: {why}")
            }
        };
        println!("-- {line}");
        self.lines.push(line);
    }

    /// Prints the summary.
    pub(crate) fn finish(self) -> ExitCode {
        println!("\n== summary");
        for line in &self.lines {
            println!("{line}");
        }
        let seconds = self.begin.elapsed().as_secs_f64();
        if self.is_failed {
            println!("stopped after {seconds:.0} s: the last line says at what");
            return ExitCode::FAILURE;
        }
        match self.skipped {
            0 => println!("all of it passed in {seconds:.0} s"),
            skipped => println!("passed in {seconds:.0} s, but for what {skipped} lines say"),
        }
        ExitCode::SUCCESS
    }
}

/// The exit code of a single step, with its sentence on standard error.
pub(crate) fn exit_code(result: &StepResult) -> ExitCode {
    match result {
        Ok(Done::Passed) => ExitCode::SUCCESS,
        Ok(Done::Skipped(why)) => {
            eprintln!("skipped: {why}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("failed: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the repository")
}

/// The cargo that runs this.
pub(crate) fn cargo_command() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// Runs cargo, with its output shown.
pub(crate) fn cargo(arguments: &[&str]) -> StepResult {
    show(cargo_command().args(arguments))
}

/// Runs a command with its output shown; fails unless it succeeds.
pub(crate) fn show(command: &mut Command) -> StepResult {
    let words = words(command);
    println!("   {words}");
    match command.status() {
        Ok(status) if status.success() => Ok(Done::Passed),
        Ok(status) => Err(format!("`{words}` ended with {status}")),
        Err(error) => Err(format!("`{words}` did not start: {error}")),
    }
}

/// Runs a command and gives what it printed on standard output; fails unless it succeeds.
pub(crate) fn capture(command: &mut Command) -> Result<String, String> {
    let words = words(command);
    let output = command.stderr(Stdio::inherit()).output();
    match output {
        Ok(Output { status, stdout, .. }) if status.success() => {
            Ok(String::from_utf8_lossy(&stdout).into_owned())
        }
        Ok(Output { status, .. }) => Err(format!("`{words}` ended with {status}")),
        Err(error) => Err(format!("`{words}` did not start: {error}")),
    }
}

/// Whether a command can be run and succeeds; nothing is shown.
pub(crate) fn works(program: impl Into<OsString>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program.into());
    let status = command
        .args(arguments)
        .current_dir(root())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Runs a program that has to end by itself within `limit`; standard output is dropped, errors are shown.
pub(crate) fn ends_within(program: &Path, limit: Duration) -> Result<(), String> {
    let name = program.display();
    println!("   {name}");
    let child = Command::new(program)
        .current_dir(root())
        .stdout(Stdio::null())
        .spawn();
    let mut child = child.map_err(|error| format!("`{name}` did not start: {error}"))?;
    let begin = Instant::now();
    loop {
        let status = child
            .try_wait()
            .map_err(|error| format!("`{name}` is lost: {error}"))?;
        match status {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("`{name}` ended with {status}")),
            None if begin.elapsed() > limit => {
                // It may have ended just now; then there is nothing to kill.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("`{name}` did not end within {limit:?}"));
            }
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Where cargo puts programs of the dev profile: beside this one.
pub(crate) fn target_folder() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("where am I? {error}"))?;
    let folder = program.parent().ok_or("a program lies in a folder")?;
    Ok(folder.to_owned())
}

fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
