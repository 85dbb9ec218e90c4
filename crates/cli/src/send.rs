//! `punctual send`: a stream of messages to a `punctual serve`, with the statistics as they come.
//!
//! Nobody sees both clocks here: latencies are those of the messages' outcomes, by the clock offset that the session measures,
//! and right to within the bound that comes with each.

mod tally;
mod view;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use punctual::{
    CloseReason, Config, ConnectError, ConnectToken, Delivery, Endpoint, PolicyKind, Refusal,
    SendError, SendOptions, ServerUrl, Session, Stream, StreamConfig,
};
use punctual_lab::stats::Report;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::key_file::{self, Secret};
use crate::scoreboard;
use crate::{interrupt, output, values};
use tally::Tally;
use view::View;

/// How long outcomes may take after Ctrl-C.
const DRAIN_INTERRUPTED: Duration = Duration::from_secs(2);
/// Time between two looks at Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Send a stream of messages to a `punctual serve` and print how they fare.
///
/// Whether the promise was kept is said plainly; it does not change the exit code, which is 0 when the messages could be sent, 1 when
/// the server could not be reached, 2 when the URL or a flag makes no sense.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual send 'punctual://game.example:7777#KEY' --rate 50 --deadline-ms 150 --on-time 0.999"
)]
pub(crate) struct Args {
    /// The server, as `punctual serve` prints it: punctual://HOST:PORT#KEY. Quote it, for the shell's sake.
    url: String,
    /// A connect token, as `punctual token` makes it, for a server that asks for one.
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// Bytes of a message, up to 64 MiB.
    #[arg(long, default_value_t = 2048, value_parser = values::whole::<u32>(0..=67_108_864))]
    bytes: u32,
    /// How messages are delivered: unreliable (repaired only as far as the deadline asks for it), sequenced (the same, and none
    /// after a newer one), reliable (in whatever order they arrive), ordered, or latest (a newer message supersedes those before
    /// it).
    #[arg(long, value_name = "MODE", default_value = "reliable", value_parser = values::delivery)]
    delivery: Delivery,
    /// Messages a second.
    #[arg(long, value_name = "N", default_value = "10", value_parser = rate)]
    rate: f64,
    /// When a message is late.
    #[arg(long, value_name = "MS", default_value = "150", value_parser = values::millis_above_zero)]
    deadline_ms: Duration,
    /// Share of messages that shall be on time.
    #[arg(long, value_name = "SHARE", default_value = "0.999", value_parser = values::on_time)]
    on_time: f64,
    /// For how long messages are sent.
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds, conflicts_with = "count")]
    seconds: f64,
    /// How many messages are sent.
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(1..=100_000_000))]
    count: Option<u64>,
    /// What decides about redundancy: steered, exact, pangolin, hairpin, hairpin(PRICE), retransmit, or fixed(N), also written fixed:N.
    #[arg(long, default_value = "steered", value_parser = policy)]
    policy: PolicyKind,
    /// Print one JSON object: `settings` (among them `delivery`, `refused_messages`: not accepted since too much was under way, these
    /// count as lost; `superseded_messages`: a newer one took their place, these are in no other figure; `rtt_ms`, `rtt_min_ms` and
    /// `loss` are what the session thinks of its path at the end: with few losses that is above what was lost), and `policies`, a list of one {`policy`, `messages`, `latency_ms` {`p50`, `p95`, `p99`,
    /// `p99_5`, `p99_9`, `max` (the latest that arrived); null: never}, `late_share`, `late_share_95` [low, high], `predicted_late_share`,
    /// `recovery_overhead`, `encapsulation_overhead` (null: of no bytes), `lost_messages`, `seed`}.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn messages(&self) -> u64 {
        self.count
            .unwrap_or_else(|| (self.seconds * self.rate).round().max(1.0) as u64)
    }

    fn send_options(&self) -> SendOptions {
        SendOptions::within(self.deadline_ms).on_time(self.on_time as f32)
    }
}

/// Reads a connect token.
pub(crate) fn read_token(file: &Path) -> Result<ConnectToken, Failure> {
    let bytes = key_file::read(file, Secret::Token)?;
    ConnectToken::from_bytes(&bytes).map_err(|_| {
        Failure::bad_input(format_args!(
            "{} is not a connect token; `punctual token` makes one",
            file.display()
        ))
    })
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let url: ServerUrl = args.url.parse().map_err(Failure::bad_input)?;
    let config = Config {
        policy: args.policy,
        ..Config::default()
    };
    let token = args.token.as_deref().map(read_token).transpose()?;
    let endpoint = Endpoint::client(config).map_err(Failure::failed)?;
    // Until here Ctrl-C ends the program; from here on it ends the sending.
    let session = match &token {
        Some(token) => endpoint.connect_with_token_blocking(&url, token),
        None => endpoint.connect_blocking(&url),
    };
    let session = session.map_err(|error| unreachable(&url, error))?;
    interrupt::watch();
    let stream = StreamConfig::new(args.delivery).outcomes_kept(1 << 16);
    let stream = session.open_stream(stream).map_err(Failure::failed)?;
    if !args.json {
        output::print(&introduction(&args, &url, &session))?;
    }
    let mut sending = Sending::new(&args, stream);
    let course = sending.run();
    sending.view.clear();
    let stats = session.stats();
    let path = session.path();
    let notes = notes(&sending.tally, &course);
    let mut settings = settings(&args, &url, &sending.tally, path.as_ref());
    settings["is_interrupted"] = json!(matches!(course, Course::Interrupted));
    settings["notes"] = json!(notes);
    let report = Report {
        floors: None,
        settings,
        policies: vec![sending.tally.summary(args.policy, stats.as_ref())],
    };
    let printed = if args.json {
        output::print_json(&report)
    } else {
        output::print(&conclusion(&args, &report, &notes))
    };
    let ended = match course {
        Course::Complete => {
            // Every message has its outcome, so this takes no longer than a farewell.
            session.finish_blocking();
            Ok(())
        }
        Course::Interrupted => Err(Failure::Interrupted),
        Course::Ended(why) => Err(Failure::failed(format_args!(
            "the session ended before its time: {why}"
        ))),
    };
    output::and_besides(printed, ended)
}

/// How the sending came to its end.
enum Course {
    Complete,
    Interrupted,
    Ended(CloseReason),
}

/// Messages on their way out, and outcomes on their way in.
struct Sending<'a> {
    args: &'a Args,
    stream: Stream,
    tally: Tally,
    view: View,
    message: Vec<u8>,
}

impl<'a> Sending<'a> {
    fn new(args: &'a Args, stream: Stream) -> Self {
        Self {
            args,
            stream,
            tally: Tally::default(),
            view: View::new(args.messages(), args.json),
            message: (0..args.bytes)
                .map(|i| (i.wrapping_mul(167) >> 3) as u8)
                .collect(),
        }
    }

    fn run(&mut self) -> Course {
        let start = Instant::now();
        for number in 0..self.args.messages() {
            let due = start + Duration::from_secs_f64(number as f64 / self.args.rate);
            if let Err(course) = self.take_until(due) {
                return self.cut_short(course);
            }
            let deadline = Instant::now().checked_add(self.args.deadline_ms);
            match self.stream.send(&self.message, self.args.send_options()) {
                Ok(message) => self.tally.on_sent(message, deadline),
                // What cannot be accepted in time would only be late.
                Err(SendError::Full { .. }) => self.tally.on_refused(),
                Err(SendError::Closed { why }) => {
                    let why = why.or_else(|| self.stream.session().close_reason());
                    return self.cut_short(Course::Ended(why.unwrap_or(CloseReason::IdleTimeout)));
                }
                Err(_) => unreachable!("the arguments were checked against the same bounds"),
            }
        }
        match self.take_rest() {
            // The end of a session settles all that was under way, too.
            Ok(()) => match self.stream.session().close_reason() {
                Some(why) => Course::Ended(why),
                None => Course::Complete,
            },
            Err(course) => self.cut_short(course),
        }
    }

    /// Takes outcomes until a time; those that are there, if it has passed.
    fn take_until(&mut self, until: Instant) -> Result<(), Course> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let was_there = self.take_one(left)?;
            if left.is_zero() && !was_there {
                return Ok(());
            }
        }
    }

    /// Takes outcomes until all have one, however long that takes: a session without a sign of life ends after 30 s.
    fn take_rest(&mut self) -> Result<(), Course> {
        while self.tally.outstanding() > self.stream.missed_outcomes() {
            self.take_one(LOOK_EVERY)?;
        }
        Ok(())
    }

    /// Whether there was an outcome, within that time or until it is to be looked at Ctrl-C again.
    fn take_one(&mut self, patience: Duration) -> Result<bool, Course> {
        self.view.show(&self.tally);
        if interrupt::is_requested() {
            return Err(Course::Interrupted);
        }
        match self.stream.next_outcome_timeout(patience.min(LOOK_EVERY)) {
            Ok(Some((message, outcome))) => {
                self.tally.on_outcome(message, outcome);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(closed) => Err(Course::Ended(closed.why)),
        }
    }

    /// After Ctrl-C, what is under way gets a moment to arrive.
    fn cut_short(&mut self, course: Course) -> Course {
        let until = Instant::now() + DRAIN_INTERRUPTED;
        while matches!(course, Course::Interrupted)
            && self.tally.outstanding() > 0
            && Instant::now() < until
        {
            match self.stream.next_outcome_timeout(LOOK_EVERY) {
                Ok(Some((message, outcome))) => self.tally.on_outcome(message, outcome),
                Ok(None) => self.view.show(&self.tally),
                Err(_) => break,
            }
        }
        course
    }
}

/// Why no session was opened: the URL is wrong, or the server is not there.
pub(crate) fn unreachable(url: &ServerUrl, error: ConnectError) -> Failure {
    match error {
        ConnectError::Url(_) => Failure::bad_input(error),
        _ => Failure::failed(format_args!(
            "{}: {error}{}",
            url.authority(),
            token_hint(&error)
        )),
    }
}

/// How this program is given a token, where that is what is wrong.
const fn token_hint(error: &ConnectError) -> &'static str {
    match error {
        ConnectError::Failed {
            why:
                CloseReason::Refused {
                    why: Refusal::TokenMissing | Refusal::TokenExpired,
                },
        } => {
            " (`punctual token` makes one from the file of the server's --token-key; give it with --token FILE)"
        }
        _ => "",
    }
}

fn introduction(args: &Args, url: &ServerUrl, session: &Session) -> String {
    let mut text = format!(
        "{} of {} to {}, {} a second; {} % shall arrive within {} ms.\n",
        output::counted(args.messages(), "message"),
        output::counted(args.bytes, "byte"),
        url.authority(),
        args.rate,
        exact_percent(args.on_time),
        millis(args.deadline_ms)
    );
    if let Some(path) = session.path() {
        text += &format!("Round trip of the handshake: {:.1} ms.\n", millis(path.rtt));
    }
    text.push('\n');
    text
}

/// What a reader must know to trust the numbers.
fn notes(tally: &Tally, course: &Course) -> Vec<String> {
    let mut notes = tally.notes();
    match course {
        Course::Complete => {}
        Course::Interrupted => {
            notes.push("interrupted: the figures are of the messages sent until then".to_owned());
        }
        Course::Ended(why) => notes.push(format!(
            "the session ended before its time ({why}): the figures are of the messages sent until then"
        )),
    }
    notes
}

fn conclusion(args: &Args, report: &Report, notes: &[String]) -> String {
    let mut text = scoreboard::table(&report.policies);
    text.push('\n');
    for summary in &report.policies {
        text += &scoreboard::verdict(summary, args.on_time);
    }
    for note in notes {
        text += &output::remark(&format!("{note}."));
    }
    text
}

fn settings(
    args: &Args,
    url: &ServerUrl,
    tally: &Tally,
    path: Option<&punctual::PathReport>,
) -> Value {
    json!({
        "command": output::command_line(),
        "version": env!("CARGO_PKG_VERSION"),
        "server": url.to_string(),
        "message_bytes": args.bytes,
        "messages": args.messages(),
        "rate_per_s": args.rate,
        "deadline_ms": millis(args.deadline_ms),
        "on_time": args.on_time,
        "delivery": values::delivery_name(args.delivery),
        "superseded_messages": tally.superseded(),
        "refused_messages": tally.refused(),
        "latency_bound_p50_ms": tally.bound_p50_ms(),
        "late_because": tally.reasons(),
        "rtt_ms": path.map(|path| millis(path.rtt)),
        "rtt_min_ms": path.map(|path| millis(path.rtt_min)),
        "loss": path.map(|path| path.loss),
    })
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn exact_percent(share: f64) -> f64 {
    (share * 1e9).round() / 1e7
}

fn rate(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok();
    value
        .filter(|rate| (0.01..=100_000.0).contains(rate))
        .ok_or_else(|| "expected messages a second, from 0.01 to 100000".to_owned())
}

/// Seconds, above 0 and up to a week.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok();
    value
        .filter(|seconds| *seconds > 0.0 && *seconds <= 604_800.0)
        .ok_or_else(|| "expected seconds above 0, up to a week (604800)".to_owned())
}

fn policy(text: &str) -> Result<PolicyKind, String> {
    text.parse()
        .map_err(|error: punctual::ParsePolicyKindError| error.to_string())
}
