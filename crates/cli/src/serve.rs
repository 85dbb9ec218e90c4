//! `punctual serve`: takes in what `punctual send` sends.

use crate::failure::Failure;

/// Take in the messages that `punctual send` sends from another machine.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let _ = args.json;
    Err(Failure::failed(
        "this command is not built yet; try `punctual lab simulate`",
    ))
}
