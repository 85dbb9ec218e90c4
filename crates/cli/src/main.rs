//! The punctual program: a table of contents. Each command is a module with its arguments (`Args`) and what it does (`run`).
//!
//! Shared by all: `arguments` (reads the command line), `values` (what flags accept), `failure` (what went wrong, what to do
//! next, exit codes), `output` (tables, JSON and files), `progress` (a bar on standard error), `interrupt` (Ctrl-C), `listen` (a
//! server's flags), `scoreboard` (policies as columns), `tables` (policies solved ahead), `terminal` (how wide it is), `descriptors` (open
//! files), `key_file` (secrets in files).
#![forbid(unsafe_code)]

mod arguments;
mod demo;
mod descriptors;
mod failure;
mod interrupt;
mod key_file;
mod keygen;
mod lab;
mod listen;
mod measure;
mod output;
mod policy;
mod progress;
mod scoreboard;
mod send;
mod serve;
mod tables;
mod terminal;
mod token;
mod values;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::Failure;

/// Messages that keep their deadlines: try it, run it between two machines, ask what it costs, prove it on a network.
#[derive(Parser)]
#[command(
    name = "punctual",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Serve(serve::Args),
    Send(send::Args),
    #[command(subcommand)]
    Measure(measure::Command),
    Keygen(keygen::Args),
    Token(token::Args),
    #[command(subcommand)]
    Policy(policy::Command),
    #[command(subcommand)]
    Lab(lab::Command),
}

fn main() -> ExitCode {
    failure::exit_code(arguments::parse().and_then(run))
}

fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Send(args) => send::run(args),
        Command::Measure(command) => measure::run(command),
        Command::Keygen(args) => keygen::run(args),
        Command::Token(args) => token::run(args),
        Command::Policy(command) => policy::run(command),
        Command::Lab(command) => lab::run(command),
    }
}
