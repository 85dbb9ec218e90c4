//! Reads the command line; what is wrong with it becomes one sentence.

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches};

use crate::failure::Failure;

/// The arguments of the program. `--help` and `--version` are printed, and end it.
pub(crate) fn parse<T: CommandFactory + FromArgMatches>() -> Result<T, Failure> {
    let matches = with_negative_numbers(T::command()).try_get_matches();
    matches
        .and_then(|matches| T::from_arg_matches(&matches))
        .map_err(usage)
}

/// So that `--loss -1` is told what a loss is, and not that there is no flag `-1`.
fn with_negative_numbers(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let takes_values = arg.get_action().takes_values();
        arg.allow_negative_numbers(takes_values)
    });
    command.mut_subcommands(with_negative_numbers)
}

fn usage(error: clap::Error) -> Failure {
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !error.use_stderr() || is_help {
        error.exit();
    }
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n");
    let first = paragraphs.next().unwrap_or_default();
    // A tip (`a similar argument exists`) is worth keeping; the usage line and the pointer to --help are not.
    let tip = paragraphs
        .next()
        .filter(|paragraph| paragraph.contains("tip:"));
    let words = first
        .split_whitespace()
        .chain(tip.unwrap_or_default().split_whitespace());
    let sentence = words.collect::<Vec<_>>().join(" ");
    Failure::bad_input(sentence.trim_start_matches("error: "))
}
