//! `punctual send`: a stream of messages to a `punctual serve`, with the statistics as they come.

use crate::failure::Failure;

/// Send a stream of messages to a `punctual serve` and print how they fare.
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
