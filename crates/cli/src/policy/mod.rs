//! `punctual policy`: what redundancy costs, from the solver alone (`explain.rs` also plays it over a path, in virtual time).

mod curve;
mod explain;
mod solve;
mod table;

use crate::failure::Failure;

/// Ask how many symbols a deadline costs on a lossy path.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Solve(solve::Args),
    Table(table::Args),
    Curve(curve::Args),
    Explain(Box<explain::Args>),
}

/// Runs the command.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Solve(args) => solve::run(args),
        Command::Table(args) => table::run(args),
        Command::Curve(args) => curve::run(args),
        Command::Explain(args) => explain::run(*args),
    }
}
