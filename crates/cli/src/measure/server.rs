//! `punctual measure server`: allows clients to measure, and keeps their traces.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use punctual::{Capacity, CloseCode, Config, Endpoint, MeasureRules, Receive, TracePart};
use serde_json::{Value, json};

use super::keep::{Keep, Kept, Limits};
use crate::failure::Failure;
use crate::listen::Listen;
use crate::serve;
use crate::serve::guests::{Guest, Guests};
use crate::values;
use crate::{interrupt, output};

/// Time between two looks at the sessions; answers to probes do not wait for it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a farewell may take to leave.
const FAREWELL: Duration = Duration::from_millis(100);

/// Let clients measure the path to this machine, and keep the traces that they upload.
///
/// Prints the URL that clients need. Runs until Ctrl-C. Everything that a client can make it do is bounded: answers are never larger than
/// questions, names of files are the server's own, and the directory holds no more than --keep-mib and --keep-traces; then
/// measuring is switched off, as with --off.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual measure server --listen 0.0.0.0:7777 --keep traces --key server.key"
)]
pub(crate) struct Args {
    #[command(flatten)]
    listen: Listen,
    /// The directory for traces, one file each; made when it is not there.
    #[arg(long, value_name = "DIR", required_unless_present = "off")]
    keep: Option<PathBuf>,
    /// Answer clients that measuring is switched off; they stop at once.
    #[arg(long)]
    off: bool,
    /// Clients measure one message in so many at the most.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = values::whole::<u16>(1..=10_000))]
    sample: u16,
    /// Packets of a trace: a client that has so many stops.
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = values::whole::<u32>(100..=200_000))]
    trace_packets: u32,
    /// Size of all traces in the directory.
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = values::whole::<u64>(1..=1_048_576))]
    keep_mib: u64,
    /// Number of all traces in the directory.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = values::whole::<u64>(1..=1_000_000))]
    keep_traces: u64,
    /// Traces of one address, until the server ends; what it sends beyond that is dropped.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = values::whole::<u32>(1..=u64::MAX))]
    per_address: u32,
    /// Sessions at the same time; further clients are turned away.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = values::whole::<u32>(1..=262_144))]
    sessions: u32,
    /// Print JSON objects, one a line, each with an `event` and `unix_s`: `listening` {`urls`}, `connected` {`session`, `remote`, `identity`}, `trace` {`file`,
    /// `packets`}, `dropped` {`remote`, `reason`} for one that is not kept, `off` {`reason`}, `closed` {`session`, `remote`, `reason`}.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn rules(&self) -> MeasureRules {
        MeasureRules {
            is_on: !self.off,
            sample: self.sample,
            packets_max: self.trace_packets,
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            bytes: self.keep_mib << 20,
            traces: self.keep_traces,
            per_address: self.per_address,
        }
    }

    fn say_closed(&self, guest: &Guest) -> Result<(), Failure> {
        let reason = guest.reason.as_deref().unwrap_or("over");
        let event = json!({"event": "closed", "session": guest.number, "remote": guest.name(), "reason": reason});
        self.say(&format!("{} left: {reason}", guest.name()), event)
    }

    /// Says something: `text` for people, `value` for programs.
    fn say(&self, text: &str, value: Value) -> Result<(), Failure> {
        if self.json {
            serve::print_line(value)
        } else {
            output::note(text);
            Ok(())
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let keep = args.keep.as_ref();
    let mut keep = keep
        .map(|directory| Keep::open(directory, args.limits()))
        .transpose()?;
    let endpoint = listen(&args)?;
    interrupt::watch();
    if let Some(keep) = keep.as_mut().filter(|_| !args.off) {
        switch_off_when_full(&args, keep, &endpoint)?;
    }
    let mut guests = Guests::default();
    while !interrupt::is_requested() {
        let arrival = endpoint
            .accept_timeout(LOOK_EVERY)
            .map_err(Failure::failed)?;
        if let Some(session) = arrival {
            let (text, event) = guests.admit(session).connected();
            args.say(&text, event)?;
        }
        for guest in guests.serve() {
            args.say_closed(&guest)?;
        }
        take_traces(&args, keep.as_mut(), &endpoint)?;
    }
    let said = farewell(&args, &endpoint, &mut guests);
    output::and_besides(said, take_traces(&args, keep.as_mut(), &endpoint))
}

fn listen(args: &Args) -> Result<Endpoint, Failure> {
    if args.listen.is_ephemeral() {
        output::note(
            "This key lasts until the server ends; for one that stays: punctual keygen --out server.key, then --key server.key",
        );
    }
    let config = Config {
        capacity: Capacity {
            sessions_max: args.sessions as usize,
            ..Capacity::default()
        },
        // Ordinary messages are thrown away as they come.
        receive: Receive::Pieces,
        measure: Some(args.rules()),
        ..Config::default()
    };
    let (endpoint, urls) = args.listen.open(config)?;
    if args.json {
        serve::print_line(json!({"event": "listening", "urls": urls}))?;
    } else {
        let mut text = "Clients measure with one of:\n".to_owned();
        for url in urls {
            let token = args.listen.token_flag();
            text += &format!("  punctual measure client '{url}'{token}\n");
        }
        output::print(&text)?;
    }
    Ok(endpoint)
}

/// Keeps what has been uploaded.
fn take_traces(
    args: &Args,
    mut keep: Option<&mut Keep>,
    endpoint: &Endpoint,
) -> Result<(), Failure> {
    // After the end, what was there before it is still handed over.
    while let Ok(Some(part)) = endpoint.next_trace_timeout(Duration::ZERO) {
        let Some(keep) = keep.as_deref_mut() else {
            continue;
        };
        store(args, keep, &part, endpoint)?;
    }
    Ok(())
}

fn store(
    args: &Args,
    keep: &mut Keep,
    part: &TracePart,
    endpoint: &Endpoint,
) -> Result<(), Failure> {
    let was_full = keep.is_full();
    match keep.add(part) {
        Ok(Kept::Going) => {}
        Ok(Kept::Whole(file, packets)) => {
            let file = file.display().to_string();
            let text = format!("{file}: {packets} packets");
            let event = json!({"event": "trace", "file": file, "packets": packets});
            args.say(&text, event)?;
        }
        Ok(Kept::TooMany) if part.is_last => {
            let remote = part
                .remote
                .map_or_else(String::new, |remote| remote.to_string());
            let reason = "its address has as many traces as --per-address allows";
            let text = format!("a trace from {remote} was not kept: {reason}");
            args.say(
                &text,
                json!({"event": "dropped", "remote": remote, "reason": reason}),
            )?;
        }
        Ok(Kept::TooMany) => {}
        Err(error) => {
            return Err(Failure::failed(format_args!(
                "a trace was not written ({error}): see to the directory of --keep, and start again"
            )));
        }
    }
    if was_full {
        return Ok(());
    }
    switch_off_when_full(args, keep, endpoint)
}

fn switch_off_when_full(args: &Args, keep: &Keep, endpoint: &Endpoint) -> Result<(), Failure> {
    if !keep.is_full() {
        return Ok(());
    }
    endpoint.set_measuring(MeasureRules {
        is_on: false,
        ..args.rules()
    });
    let reason = "the directory holds as much as --keep-mib and --keep-traces allow";
    args.say(
        &format!("Measuring is switched off: {reason}. Remove or move traces, and start again."),
        json!({"event": "off", "reason": reason}),
    )
}

fn farewell(args: &Args, endpoint: &Endpoint, guests: &mut Guests) -> Result<(), Failure> {
    let said = guests.dismiss(CloseCode::SHUTDOWN, "the server was stopped");
    let said = said.iter().try_for_each(|guest| args.say_closed(guest));
    let until = Instant::now() + FAREWELL;
    while endpoint.sessions() > 0 && Instant::now() < until {
        std::thread::sleep(LOOK_EVERY);
    }
    endpoint.close();
    said
}
