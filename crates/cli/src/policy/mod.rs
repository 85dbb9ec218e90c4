//! `punctual policy`: what redundancy costs, from the solver alone; no network is involved.

mod curve;
mod solve;
mod table;

use crate::failure::Failure;

/// Ask how many symbols a deadline costs on a lossy path.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Solve(solve::Args),
    Table(table::Args),
    Curve(curve::Args),
}

/// Runs the command.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Solve(args) => solve::run(args),
        Command::Table(args) => table::run(args),
        Command::Curve(args) => curve::run(args),
    }
}
