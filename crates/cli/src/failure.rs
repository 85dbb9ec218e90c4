//! What went wrong, in one sentence that says what to do next, and the exit code that scripts see.

use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::interrupt;

/// Why a command ended without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input or the flags make no sense: exit code 2. The user can mend it.
    BadInput(String),
    /// This machine lacks something that the command needs, whatever the input: exit code 69, the EX_UNAVAILABLE of BSD's sysexits.
    Unavailable(String),
    /// The input was fine, the work did not succeed: exit code 1.
    Failed(String),
    /// The user pressed Ctrl-C, or something sent SIGTERM: exit code 130, as shells count the first.
    Interrupted,
    /// A program that was run ended so; it has said itself why.
    Program(u8),
    /// Whoever read standard output has gone (`| head`): nothing to say, exit code 0.
    OutputClosed,
}

impl Failure {
    /// The input or the flags make no sense; `sentence` says which and what to do.
    pub(crate) fn bad_input(sentence: impl fmt::Display) -> Self {
        Self::BadInput(sentence.to_string())
    }

    /// This machine lacks something; `sentence` says what, and how to have it.
    pub(crate) fn unavailable(sentence: impl fmt::Display) -> Self {
        Self::Unavailable(sentence.to_string())
    }

    /// The work did not succeed; `sentence` says why and what to do.
    pub(crate) fn failed(sentence: impl fmt::Display) -> Self {
        Self::Failed(sentence.to_string())
    }

    /// Standard output could not be written.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::failed(format_args!("standard output cannot be written: {error}")),
        }
    }
}

/// Says on standard error what went wrong, and returns the code to end with.
pub(crate) fn exit_code(result: Result<(), Failure>) -> ExitCode {
    let (sentence, code) = match result {
        Ok(()) | Err(Failure::OutputClosed) => return ExitCode::SUCCESS,
        Err(Failure::Program(code)) => return ExitCode::from(code),
        Err(Failure::BadInput(sentence)) => (sentence, 2),
        Err(Failure::Unavailable(sentence)) => (sentence, 69),
        Err(Failure::Failed(sentence)) => (sentence, 1),
        Err(Failure::Interrupted) => ("interrupted".to_owned(), interrupt::exit_code()),
    };
    // Nobody is left to tell when this fails.
    let _ = io::Write::write_all(
        &mut io::stderr(),
        format!("punctual: {sentence}\n").as_bytes(),
    );
    ExitCode::from(code)
}
