//! `punctual measure` end to end, on loopback: what a client measures, the server keeps, and the lab plays.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::{env, fs};

use punctual_lab::trace::{Format, Trace};
use serde_json::Value;

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    program(arguments).output().expect("the program was built")
}

/// A server that ends with the test.
struct Server {
    child: Child,
    lines: BufReader<ChildStdout>,
    url: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let listen = ["measure", "server", "--json", "--listen", "127.0.0.1:0"];
        let mut child = program(&[&listen, arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program was built");
        let stdout = child.stdout.take().expect("it is piped");
        let mut server = Self {
            child,
            lines: BufReader::new(stdout),
            url: String::new(),
        };
        let listening = server.event("listening");
        server.url = listening["urls"][0].as_str().expect("text").to_owned();
        server
    }

    /// The next event of this name.
    fn event(&mut self, name: &str) -> Value {
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line).expect("text");
            assert!(!line.is_empty(), "the server ended before {name}");
            let event: Value = serde_json::from_str(&line).expect("JSON");
            if event["event"] == name {
                return event;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory of this test run alone, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("punctual-measure-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("temporary directories are text")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_measured_path_is_kept_and_replayed() {
    let keep = Scratch::new("keep");
    let mut server = Server::start(&["--keep", keep.text(), "--sample", "1"]);
    let own = keep.0.join("own.csv");
    let own = own.to_str().expect("text");
    let url = server.url.clone();
    let client = ["measure", "client", &url, "--interval-ms", "10", "--json"];
    let measured = output(&[&client[..], &["--messages", "30", "--trace", own]].concat());
    assert!(measured.status.success(), "{measured:?}");
    let found: Value = serde_json::from_slice(&measured.stdout).expect("one object");
    let number = |name: &str| found[name].as_u64().expect("a number");
    assert_eq!(found["end"], "complete");
    assert_eq!(number("packets"), 150);
    let packets = 150 + number("packets_sent_again");
    assert_eq!(number("trace_packets_kept_by_server"), packets);

    let kept = server.event("trace");
    let file = kept["file"].as_str().expect("text");
    assert_eq!(kept["packets"], packets);
    let [trace, same] = [file, own].map(|file| Trace::open(Path::new(file)).expect("a trace"));
    assert_eq!(
        (trace.format, trace.samples().len()),
        (Format::Packets, 150)
    );
    assert_eq!(trace.content, same.content);
    let is_whole = |outcome: punctual_lab::trace::Outcome| outcome.rtt_us().is_some();
    assert!(trace.samples().iter().any(|s| is_whole(s.outcome)));

    let replay = ["lab", "replay", "--trace", file, "--policy", "retransmit"];
    let replayed = output(&[&replay[..], &["--messages", "100", "--sessions", "5"]].concat());
    assert!(replayed.status.success(), "{replayed:?}");

    // The directory holds as many traces as it may from the beginning: measuring is off.
    let full = Server::start(&["--keep", keep.text(), "--keep-traces", "1"]);
    let refused = output(&["measure", "client", &full.url]);
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("switched off"), "{error}");
}

/// Goal: whoever is turned away for want of a token is told how to come by one.   Method: without, with one that was made as told, and what a
/// server says to people.
#[test]
fn a_server_that_asks_for_tokens_says_so() {
    let keep = Scratch::new("tokens");
    fs::create_dir_all(&keep.0).expect("temporary directories can be made");
    let file = |name: &str| keep.0.join(name).to_str().expect("text").to_owned();
    let (key, token, traces) = (file("token.key"), file("a.token"), file("traces"));
    let made = output(&["token", "--new-key", "--key", &key, "--out", &token]);
    assert!(made.status.success(), "{made:?}");
    let server = Server::start(&["--keep", &traces, "--sample", "1", "--token-key", &key]);
    for command in [
        &["send", &server.url][..],
        &["measure", "client", &server.url],
    ] {
        let refused = output(command);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(
            error.contains("only clients with a connect token") && error.contains("--token FILE"),
            "{error}"
        );
    }
    let quick = ["--messages", "3", "--interval-ms", "10", "--token", &token];
    let measured = output(&[&["measure", "client", &server.url][..], &quick].concat());
    let text = String::from_utf8_lossy(&measured.stdout);
    assert!(
        text.contains("The server has received the trace."),
        "{measured:?}"
    );

    let mut child = program(&["serve", "--listen", "127.0.0.1:0", "--token-key", &key])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program was built");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let line = lines.nth(1).expect("a URL").expect("text");
    assert!(line.ends_with("' --token FILE"), "{line}");
    let _ = (child.kill(), child.wait());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let off = Server::start(&["--off"]);
    let address = off.url.trim_start_matches("punctual://");
    let address = address.split('#').next().expect("text");
    for (arguments, words) in [
        (&["client", "nonsense"][..], "punctual://"),
        (&["client", &off.url, "--bytes", "100"], "from 740 to 1160"),
        (&["client", &off.url, "--interval-ms", "1"], "from 10"),
        (&["client", &off.url, "--trace", "/no/such/x"], "choose"),
        (&["server"], "--keep"),
        (&["server", "--off", "--listen", address], "in use"),
        (&["server", "--keep", "/dev/null/traces"], "choose"),
        (&["server", "--keep", "x", "--sample", "0"], "--sample"),
    ] {
        let refused = output(&[&["measure"], arguments].concat());
        let error = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}

/// A regression: a recording takes the place of recordings alone.
#[test]
fn what_is_no_recording_is_not_written_over() {
    let scratch = Scratch::new("over");
    fs::create_dir_all(&scratch.0).expect("there is room");
    let other = scratch.0.join("other.txt");
    fs::write(&other, "hello\n").expect("there is room");
    let server = Server::start(&["--off"]);
    let trace = other.to_str().expect("text");
    let client = [
        "measure",
        "client",
        &server.url,
        "--messages",
        "2",
        "--trace",
        trace,
    ];
    let refused = output(&client);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("holds something else"), "{error}");
    assert_eq!(fs::read_to_string(&other).expect("it is there"), "hello\n");
}
