//! `punctual lab run` and `punctual lab shell`: programs on an emulated network.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use punctual_lab::arm::Stack;
use punctual_lab::channel::PathSpec;
use punctual_lab::emulator::{
    self, Cable, Capture, DropLog, Emulator, EmulatorError, EmulatorOptions, FIRST_CLIENT,
    Namespace, Process, Report, SERVER, Site, contained,
};
use punctual_lab::world::Forward;
use serde_json::{Map, Value, json};

use super::network::Additions;
use super::networks::NamedNetwork;
use super::path::PathArgs;
use super::{measure, networks, packets};
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::values;

/// Run a program on an emulated network: it is a client, and 10.0.0.1 is the server at the other end.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    punctual lab run --rtt-ms 80 --loss 0.02 -- ping -c 5 10.0.0.1\n  \
    punctual lab run --profile lte --server 'iperf3 -s -1' -- iperf3 -c 10.0.0.1\n\n\
    The program sees no other network. It and all that it starts end with this command. Its exit code is this command's.\n\
    Ctrl-C in the terminal is the program's; to end this command from elsewhere send it SIGTERM.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    place: Place,
    /// The program and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    program: Vec<String>,
}

/// Open a shell on an emulated network: it is a client, and 10.0.0.1 is the server at the other end.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual lab shell --profile lte --server 'python3 -m http.server 80'"
)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    place: Place,
}

/// The network and what is noted of it.
#[derive(clap::Args)]
struct Place {
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    additions: Additions,
    /// A recording, a scenario file (its network) or a built-in path, instead of the numbers above.
    #[arg(long, value_name = "NAME|FILE", help_heading = "Emulator", conflicts_with_all = [
        "rtt_ms", "split", "loss", "loss_back", "burst_ms", "delay", "coherence_ms", "profile"])]
    network: Option<String>,
    /// Run this at the server's end meanwhile (by sh -c); the program begins when it listens, or after two seconds.
    #[arg(long, value_name = "COMMAND", help_heading = "Emulator")]
    server: Option<String>,
    /// Run the program at the server's end; clients are 10.128.0.1 and on.
    #[arg(long, conflicts_with = "server", help_heading = "Emulator")]
    at_server: bool,
    /// Addresses at the clients' end, each with a path of its own.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Emulator",
        value_parser = values::whole::<u32>(1..=emulator::PATHS_MAX as u64))]
    clients: u32,
    /// Largest IP packet in bytes (default: what a scenario file says, else 1500).
    #[arg(long, value_name = "BYTES", help_heading = "Emulator",
        value_parser = values::whole::<u16>(576..=65_535))]
    mtu: Option<u16>,
    /// Congestion control of TCP: cubic, reno, bbr or what the kernel has (default: the kernel's own choice).
    #[arg(long, value_name = "NAME", help_heading = "Emulator")]
    congestion_control: Option<String>,
    /// Repeats the fates of packets.
    #[arg(long, default_value_t = 1, help_heading = "Emulator")]
    seed: u64,
    /// Write down every packet that is dropped, as CSV.
    #[arg(long, value_name = "FILE", help_heading = "Emulator")]
    drops: Option<PathBuf>,
    /// Write down all packets: client.pcap and server.pcap in this directory.
    #[arg(long, value_name = "DIR", help_heading = "Emulator")]
    pcap: Option<PathBuf>,
    /// Print what became of the packets as one JSON object; the program's own output then goes to standard error.
    #[arg(long, help_heading = "Emulator")]
    json: bool,
}

/// Runs `run`.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let program = args.program.first().expect("clap requires one");
    play(&args.place, under_shell(&args.program), program)
}

/// The first process of a PID namespace is spared by signals that it does not handle, its own included: a shell is that one, and the program its child.
/// (`exit` at the end keeps the shell from becoming the program.)
fn under_shell(program: &[String]) -> Command {
    let script = [
        "-c".to_owned(),
        "\"$@\"; exit $?".to_owned(),
        "sh".to_owned(),
    ];
    contained("sh", &[&script, program].concat())
}

/// Runs `shell`.
pub(crate) fn shell(args: &ShellArgs) -> Result<(), Failure> {
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let (here, there) = if args.place.at_server {
        (SERVER, FIRST_CLIENT)
    } else {
        (FIRST_CLIENT, SERVER)
    };
    output::note(&format!(
        "You are {here}; at the other end is {there}. Leave with exit."
    ));
    play(&args.place, contained(&shell, &[]), &shell)
}

/// How long the command of `--server` has to listen before the program begins.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);

/// How often programs are looked after.
const LOOK: Duration = Duration::from_millis(20);

fn play(place: &Place, mut command: Command, program: &str) -> Result<(), Failure> {
    let network = place.network()?;
    let paths = place.paths(&network)?;
    let first_path = paths[0].clone();
    emulator::acquire_privilege().map_err(emulator_failed)?;
    let emulator = place.start(&network, paths)?;
    if place.json {
        let stderr = io::stderr().as_fd().try_clone_to_owned();
        command.stdout(stderr.map_or_else(|_| Stdio::inherit(), Stdio::from));
    }
    let (own, other) = match place.at_server {
        true => (Site::Server, Site::Client),
        false => (Site::Client, Site::Server),
    };
    let helper = match &place.server {
        None => None,
        Some(line) => {
            let mut command = contained("sh", &["-c".to_owned(), line.clone()]);
            command.stdin(Stdio::null());
            command.stdout(Stdio::null());
            let started = Process::start(emulator.namespace(0, other), command);
            Some(started.map_err(|error| no_container(&error))?)
        }
    };
    // Ctrl-C is for the program; this one ends when it does.
    interrupt::watch_and_leave_ctrl_c();
    if let Some(helper) = &helper {
        await_server(helper, emulator.namespace(0, other));
    }
    if interrupt::is_requested_of_anybody() {
        return Err(Failure::Interrupted);
    }
    let process = Process::start(emulator.namespace(0, own), command)
        .map_err(|error| no_container(&error))?;
    while !process.is_over() && !emulator.has_ended() && !interrupt::is_requested() {
        thread::sleep(LOOK);
    }
    let status = process.is_over().then(|| process.wait()).transpose();
    let status = status.map_err(|error| {
        Failure::failed(format_args!("{program} could not be waited for: {error}"))
    })?;
    // (One that serves once ends with the program, and by itself.)
    let server_ended = helper.filter(Process::is_over).map(Process::wait);
    let server_ended = server_ended.transpose().map_err(|error| {
        Failure::failed(format_args!("--server could not be waited for: {error}"))
    })?;
    let report = emulator.stop().map_err(emulator_failed)?;
    if let Some(status) = server_ended.filter(|status| !status.success()) {
        output::note(&format!(
            "the command of --server failed before the program ended ({status}): from then on nobody was there"
        ));
    }
    let mut printed = Ok(());
    if place.json {
        let mut summary = summary(&first_path, &report, status);
        let code = server_ended.and_then(|status| status.code());
        summary.insert("server_exit_code".to_owned(), json!(code));
        printed = output::print_json(&summary);
    } else {
        tell(&report);
    }
    let ended = packets::check_written(&report).and_then(|()| match status {
        Some(status) => end_with(status),
        None => Err(Failure::Interrupted),
    });
    output::and_besides(printed, ended)
}

/// Gives what was started at the server's end the time to listen: its first client would be refused.
fn await_server(server: &Process, place: &Namespace) {
    let until = Instant::now() + SERVER_PATIENCE;
    while !server.is_over() && !interrupt::is_requested_of_anybody() {
        // (Where it cannot be told, nothing is waited for.)
        if place.has_listener().unwrap_or(true) {
            return;
        }
        if Instant::now() >= until {
            output::note(
                "nothing listens at the server's end yet; the program begins all the same",
            );
            return;
        }
        thread::sleep(LOOK);
    }
}

impl Place {
    fn network(&self) -> Result<NamedNetwork, Failure> {
        let mut network = match &self.network {
            None => NamedNetwork::alike("chosen".to_owned(), self.path.path()?, Forward::ToServer),
            Some(name) => networks::by_name(name, None)?,
        };
        network.mtu = self.mtu.unwrap_or(network.mtu);
        Ok(network)
    }

    /// Each client's.
    fn paths(&self, network: &NamedNetwork) -> Result<Vec<PathSpec>, Failure> {
        let paths = network.paths(self.clients).into_iter();
        paths.map(|path| self.additions.apply(path)).collect()
    }

    fn start(&self, network: &NamedNetwork, paths: Vec<PathSpec>) -> Result<Emulator, Failure> {
        let capture = self.pcap.as_deref().map(Capture::create).transpose();
        let cable = Cable {
            stack: Stack {
                congestion_control: self.congestion_control.clone(),
                ..Stack::default()
            },
            drop_log: drop_log(self.drops.as_deref())?,
            capture: capture.map_err(emulator_failed)?,
            observer: None,
        };
        let options = EmulatorOptions {
            paths,
            forward: network.forward,
            link: network.link,
            seed: self.seed,
            mtu: network.mtu,
            cables: vec![cable],
        };
        Emulator::start(options).map_err(emulator_failed)
    }
}

/// Begins the file for dropped packets, in place of an older one.
pub(super) fn drop_log(path: Option<&Path>) -> Result<Option<DropLog>, Failure> {
    let Some(path) = path else {
        return Ok(None);
    };
    output::check_replaceable(path, DropLog::HEADING)?;
    DropLog::create(path).map(Some).map_err(emulator_failed)
}

/// The sentence and exit code for an emulator's error.
pub(super) fn emulator_failed(error: EmulatorError) -> Failure {
    if error.is_unavailable() {
        Failure::unavailable(error)
    } else if error.is_bad_input() {
        Failure::bad_input(error)
    } else {
        Failure::failed(error)
    }
}

fn no_container(error: &io::Error) -> Failure {
    Failure::unavailable(format_args!(
        "programs are run with setpriv and unshare, which could not be started ({error}): install the package util-linux"
    ))
}

fn summary(path: &PathSpec, report: &Report, status: Option<ExitStatus>) -> Map<String, Value> {
    let mut object = measure::fields(json!({
        "command": output::command_line(),
        "path": path.to_string(),
        "path_source": path.source,
        "exit_code": status.and_then(|status| status.code()),
    }));
    object.extend(packets::numbers(report));
    object
}

fn tell(report: &Report) {
    let spoilt = packets::spoilt(report).map(|spoilt| format!("; {spoilt}"));
    output::note(&format!(
        "{}{}; {}",
        packets::sentence(report),
        spoilt.unwrap_or_default(),
        report.timing.verdict()
    ));
}

/// Ends as the program did.
fn end_with(status: ExitStatus) -> Result<(), Failure> {
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::Program(u8::try_from(code).unwrap_or(1))),
        // unshare itself was killed.
        None => Err(Failure::failed("the program was killed")),
    }
}
