//! `punctual measure client`: measures the path to a `punctual measure server`, or to a game's server that allows it.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use punctual::{
    Config, Endpoint, MeasureEnd, MeasureOptions, MeasureProgress, MeasureState, Measured,
    Measurement, ServerUrl,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::findings::Findings;
use super::{ONE_WAY_REMARK, trace_head, trace_rows};
use crate::failure::Failure;
use crate::output::OutputFile;
use crate::progress::Progress;
use crate::scoreboard::count;
use crate::{interrupt, output, send, values};

/// Time between two looks at the measurement.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Measure the path to a server: five packets of a kilobyte a message, answered at once, sent again up to five times.
///
/// One message in some is measured; the server says in how many at the least. Ctrl-C ends the measuring: what was measured is
/// uploaded and printed all the same. Exit code 1 when the server cannot be reached or does not allow it, 2 when the URL or a flag makes
/// no sense.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual measure client 'punctual://game.example:7777#KEY' --messages 60 --trace path.csv"
)]
pub(crate) struct Args {
    /// The server, as `punctual measure server` prints it: punctual://HOST:PORT#KEY. Quote it, for the shell's sake.
    url: String,
    /// A connect token, as `punctual token` makes it, for a server that asks for one.
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// How many messages are measured.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = values::whole::<u32>(1..=1_000_000))]
    messages: u32,
    /// For how long it measures, instead of --messages.
    #[arg(long, value_name = "S", value_parser = send::seconds, conflicts_with = "messages")]
    seconds: Option<f64>,
    /// Time between two messages of the game.
    #[arg(long, value_name = "MS", default_value = "1000", value_parser = interval)]
    interval_ms: Duration,
    /// One message in so many is measured, if the server does not want it more seldom.
    #[arg(long, value_name = "N", value_parser = values::whole::<u16>(1..=10_000))]
    sample: Option<u16>,
    /// Bytes of each packet. (More than half a packet, so that none shares its fate with another.)
    #[arg(long, default_value_t = 1024, value_parser = values::whole::<u16>(740..=1160))]
    bytes: u16,
    /// Packets of a message.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = values::whole::<u8>(1..=8))]
    packets: u8,
    /// How often a packet without an answer is sent again.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = values::whole::<u8>(0..=5))]
    retries: u8,
    /// Keep the trace here too; `punctual lab replay --trace FILE` plays it.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Do not send the trace to the server.
    #[arg(long)]
    no_upload: bool,
    /// Print one JSON object: `settings`, and what was found: `packets` (sent for the first time; all figures are of those),
    /// `rtt_ms`, `owd_up_ms`, `owd_down_ms` {`p50`, ..}, `owd_residual_ms` and `owd_bound_ms` (how far one-way delays can be trusted: if
    /// both ways are equally long when nothing waits, and in any case), `up` and `down` {`packets`, `lost`, `loss_share`,
    /// `loss_share_95`, `bursts` (runs of 1, 2, .. within a message), `reordered`, `session_packets`, `session_packets_twice`},
    /// `unanswered` {`packets`, `of`, `share`, `share_95`} (lost, not known in which direction), `answered_after_repetitions`, `never_answered`, `deadline` {`on_time`, `kept_ms`, `sendings`, `sent_once_ms`; null: unknown}.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn options(&self) -> MeasureOptions {
        MeasureOptions {
            interval: self.interval_ms,
            sample: self.sample,
            packets: self.packets,
            bytes: self.bytes.into(),
            retries: self.retries,
            messages: self.seconds.is_none().then_some(self.messages),
            lasts: self.seconds.map(Duration::from_secs_f64),
            upload: !self.no_upload,
        }
    }

    fn settings(&self, url: &ServerUrl) -> Value {
        json!({
            "command": output::command_line(),
            "version": env!("CARGO_PKG_VERSION"),
            "server": url.to_string(),
            "interval_ms": self.interval_ms.as_secs_f64() * 1e3,
            "packet_bytes": self.bytes,
            "packets_per_message": self.packets,
            "retries": self.retries,
        })
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    settings: Value,
    #[serde(flatten)]
    findings: Findings,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let url: ServerUrl = args.url.parse().map_err(Failure::bad_input)?;
    let token = args.token.as_deref().map(send::read_token).transpose()?;
    if let Some(path) = &args.trace {
        // Elsewhere the flag names a recording that is read.
        output::check_replaceable(path, "# punctual measure ")?;
    }
    let trace = OutputFile::open_if(args.trace.as_ref())?;
    let endpoint = Endpoint::client(Config::default()).map_err(Failure::failed)?;
    // Until here Ctrl-C ends the program; from here on it ends the measuring.
    let session = match &token {
        Some(token) => endpoint.connect_with_token_blocking(&url, token),
        None => endpoint.connect_blocking(&url),
    };
    let session = session.map_err(|error| send::unreachable(&url, error))?;
    interrupt::watch();
    let measurement = session.measure(args.options()).map_err(Failure::failed)?;
    let measured = watch(args, &measurement);
    if measured.packets.is_empty() {
        return Err(nothing(&measured));
    }
    let report = Report {
        settings: args.settings(&url),
        findings: Findings::of(&measured),
    };
    let printed = if args.json {
        output::print_json(&report)
    } else {
        let upload = upload(args, &measured);
        output::print(&(report.findings.text() + &upload))
    };
    output::then_write(printed, trace, || {
        let head = trace_head(&[output::command_line(), ONE_WAY_REMARK.to_owned()]);
        let rows = String::from_utf8(trace_rows(&measured.packets)).expect("numbers are text");
        head + &rows
    })?;
    match measured.end {
        MeasureEnd::Complete => {
            session.finish_blocking();
            Ok(())
        }
        MeasureEnd::Stopped => Err(Failure::Interrupted),
        end => Err(Failure::failed(format_args!(
            "the measurement ended before its time: {end}"
        ))),
    }
}

/// Shows how far it is until it is over.
fn watch(args: &Args, measurement: &Measurement) -> Measured {
    let total = match args.seconds {
        Some(seconds) => (seconds * 10.0) as u64,
        None => args.messages.into(),
    };
    let progress = Progress::new(total, args.json);
    let begun = Instant::now();
    if !args.json && !io::stderr().is_terminal() {
        output::note("connected; asking the server whether it measures, for up to ten seconds");
    }
    let mut is_stopping = false;
    let measured = loop {
        if let Some(measured) = measurement.result_timeout(LOOK_EVERY) {
            break measured;
        }
        let now = measurement.progress();
        let position = match args.seconds {
            Some(_) => begun.elapsed().as_millis() as u64 / 100,
            None => now.messages.into(),
        };
        progress.show(position.min(total), &line(&now));
        if interrupt::is_requested() && !is_stopping {
            is_stopping = true;
            measurement.stop();
        }
    };
    progress.clear();
    measured
}

fn line(progress: &MeasureProgress) -> String {
    let rtt = progress.rtt.map_or_else(
        || "-".to_owned(),
        |rtt| format!("{:.1}", rtt.as_secs_f64() * 1e3),
    );
    let what = match progress.state {
        MeasureState::Asking => return "asking the server".to_owned(),
        MeasureState::Measuring => format!("1 message in {}", progress.sample),
        MeasureState::Settling => "waiting for the last answers".to_owned(),
        MeasureState::Uploading => "uploading the trace".to_owned(),
        _ => "done".to_owned(),
    };
    format!(
        "{what}: {} messages, {} packets, {} answers, {} sent again, rtt {rtt} ms",
        count(progress.messages.into()),
        count(progress.packets.into()),
        count(progress.answers.into()),
        count(progress.repeated.into())
    )
}

fn nothing(measured: &Measured) -> Failure {
    match measured.end {
        MeasureEnd::Off => Failure::failed(
            "the server has measuring switched off; ask whoever runs it, or try again later",
        ),
        MeasureEnd::NoAnswer => Failure::failed(
            "the server does not measure; it needs `punctual measure server`, or a game that sets Config::measure",
        ),
        MeasureEnd::Stopped => Failure::Interrupted,
        end => Failure::failed(format_args!("nothing was measured: {end}")),
    }
}

fn upload(args: &Args, measured: &Measured) -> String {
    let total = measured.packets.len();
    if args.no_upload {
        return String::new();
    }
    if measured.kept as usize == total {
        "The server has received the trace.\n".to_owned()
    } else {
        format!(
            "The server has received {} of the trace's {total} packets.\n",
            measured.kept
        )
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = values::millis(text)?;
    let range = Duration::from_millis(10)..=Duration::from_secs(3600);
    if range.contains(&interval) {
        Ok(interval)
    } else {
        Err("expected milliseconds from 10 to 3600000".to_owned())
    }
}
