//! `punctual lab`: the shipping protocol over a network that is computed, in virtual time.
//!
//! `simulate.rs` and `replay.rs` say over which network; `network.rs` has what both can add to it, `workload.rs` what is
//! sent, `measure.rs` runs it and reports. `scenario.rs` has all of that from a file; `thin_streams.rs` is a study of its own,
//! `compare/` plays all policies over all traces of a folder,
//! `population.rs` shows synthetic clients.
//! On the real kernel: `emulate/` plays a scenario, `inside.rs` runs programs, `calibrate.rs` holds the emulator against itself,
//! `packets.rs` says what became of packets, `scorecard/` compares transports (`arms/`) over networks (`networks.rs`),
//! `reproduce/` repeats what papers measured.

#[cfg(target_os = "linux")]
mod arms;
#[cfg(target_os = "linux")]
mod calibrate;
mod compare;
#[cfg(target_os = "linux")]
mod emulate;
#[cfg(target_os = "linux")]
mod end;
#[cfg(target_os = "linux")]
mod inside;
pub(crate) mod measure;
mod network;
#[cfg(target_os = "linux")]
mod networks;
#[cfg(target_os = "linux")]
mod packets;
mod path;
mod population;
mod replay;
#[cfg(target_os = "linux")]
mod reproduce;
mod scenario;
#[cfg(target_os = "linux")]
mod scorecard;
mod simulate;
mod thin_streams;
mod workload;

use crate::failure::Failure;

pub(crate) use network::Additions;
pub(crate) use path::PathArgs;
pub(crate) use workload::{Deadline, deadline};

/// Measure policies over a simulated or a recorded network, in virtual time: exact clocks, and the same run each time.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Simulate(Box<simulate::Args>),
    Replay(Box<replay::Args>),
    ComparePolicies(Box<compare::Args>),
    ThinStreams(thin_streams::Args),
    Population(population::Args),
    #[cfg(target_os = "linux")]
    Scorecard(Box<scorecard::Args>),
    #[cfg(target_os = "linux")]
    Reproduce(Box<reproduce::Args>),
    #[cfg(target_os = "linux")]
    Emulate(Box<emulate::Args>),
    #[cfg(target_os = "linux")]
    Calibrate(calibrate::Args),
    #[cfg(target_os = "linux")]
    Run(Box<inside::RunArgs>),
    #[cfg(target_os = "linux")]
    Shell(Box<inside::ShellArgs>),
}

/// Runs the command.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Simulate(args) => simulate::run(*args),
        Command::Replay(args) => replay::run(*args),
        Command::ComparePolicies(args) => compare::run(&args),
        Command::ThinStreams(args) => thin_streams::run(&args),
        Command::Population(args) => population::run(&args),
        #[cfg(target_os = "linux")]
        Command::Scorecard(args) => scorecard::run(&args),
        #[cfg(target_os = "linux")]
        Command::Reproduce(args) => reproduce::run(&args),
        #[cfg(target_os = "linux")]
        Command::Emulate(args) => emulate::run(&args),
        #[cfg(target_os = "linux")]
        Command::Calibrate(args) => calibrate::run(&args),
        #[cfg(target_os = "linux")]
        Command::Run(args) => inside::run(&args),
        #[cfg(target_os = "linux")]
        Command::Shell(args) => inside::shell(&args),
    }
}
