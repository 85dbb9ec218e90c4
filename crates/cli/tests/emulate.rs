//! Scenario files on the real kernel. What needs privileges is skipped, with a word, where there are none.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A folder of this test alone, that is gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("punctual-emulate-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("there is a place for temporary files");
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("the folder is this test's");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.args(["lab", "emulate"]).args(arguments);
    command
}

/// What it did; None, said aloud, where the kernel does not let it.
fn run(mut command: Command) -> Option<Output> {
    let output = command.output().expect("the program was built for this");
    let error = String::from_utf8_lossy(&output.stderr);
    // But for what a test takes away.
    if output.status.code() == Some(69) && !error.contains("iproute2") {
        println!("skipped: {error}");
        return None;
    }
    Some(output)
}

const GAME: &str = "sessions = 3\nseconds = 1.5\nsettle_s = 0.5\nrivals = { cubic = 1 }\n\
    [network]\nmtu = 1400\n[network.forward]\ndelay_ms = 10\nloss = 0.05\n[network.backward]\ndelay_ms = 5\n\
    [link]\nrate_mbit_per_s = 8\nqueue_bytes = 30000\n\
    [[stream]]\nname = 'shots'\ndelivery = 'reliable'\ndeadline_ms = 200\non_time = 0.99\ntraffic = { every_ms = 20, bytes = 200 }\n\
    [[stream]]\nname = 'load'\ndelivery = 'reliable'\ntraffic = { saturate = true, bytes = 4000 }\n";

/// Goal: real sockets, the same numbers as of a simulation, and every drop written down.
#[test]
fn a_scenario_is_played_on_real_sockets() {
    let folder = Folder::new("game");
    let file = folder.write("game.toml", GAME);
    let drops = folder.0.join("drops.csv");
    let directory = folder.0.display().to_string();
    let drops_name = drops.display().to_string();
    let Some(output) = run(command(&[
        &file,
        "--json",
        "--drops",
        &drops_name,
        "--pcap",
        &directory,
    ])) else {
        return;
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let shots = &result["streams"][0];
    // One each 20 ms in each session, of which the first ones settle.
    assert_eq!(shots["messages_sent"], 150, "{shots}");
    assert_eq!(shots["messages_lost"], 0, "{shots}");
    assert_eq!(shots["outcomes"]["unsettled"], 0, "{shots}");
    let run = &result["runs"][0];
    assert_eq!(run["sessions_closed"], 0, "{run}");
    let carried = |value: &Value| value["carried_bits_per_s"].as_f64().expect("a number");
    assert!(carried(&result["link"]) > 0.0, "{result}");
    let rivals = run["rivals"]["goodput_bits_per_s"]["mean"].as_f64();
    assert!(rivals.expect("a number") > 0.0, "{run}");

    let network = &result["emulator"]["runs"][0];
    let lost = network["packets_dropped_by_reason"]["random"].as_u64();
    assert!(lost > Some(0), "{network}");
    let dropped = |way: &str| network[way]["packets_dropped"].as_u64().expect("a number");
    let lines = fs::read_to_string(drops).expect("it was written");
    let lines = lines.lines().count() as u64 - 1;
    assert_eq!(
        lines,
        dropped("to_server") + dropped("to_client"),
        "{network}"
    );
    for name in ["client.pcap", "server.pcap"] {
        let bytes = fs::metadata(folder.0.join(name))
            .expect("it was written")
            .len();
        assert!(bytes > 10_000, "{name}: {bytes}");
    }
}

/// Goal: a file without streams is a network that programs can use, until Ctrl-C.
#[test]
fn a_network_is_held_open_until_ctrl_c() {
    let folder = Folder::new("hold");
    let file = folder.write("hold.toml", "seconds = 60\n[network]\nrtt_ms = 10\n");
    let mut child = command(&[&file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built for this");
    let mut told = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut line = || told.next().and_then(Result::ok).unwrap_or_default();
    let first = line();
    if first.contains("network namespaces") || first.contains("no TUN device") {
        println!("skipped: {first}");
        let _ = child.wait();
        return;
    }
    assert!(first.starts_with("The network is up for 60 s"), "{first}");
    let (at_server, at_clients) = (line(), line());
    for line in [&at_server, &at_clients] {
        assert!(
            line.contains("nsenter ") && line.contains("--net=/proc/"),
            "{line}"
        );
    }
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupted.expect("kill is everywhere").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("to the server") && text.contains("timing"),
        "{text}"
    );
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let folder = Folder::new("wrong");
    folder.write("broken.csv", "time_s,rtt_ms\n0,40\n0.1,fast\n");
    let unknown = folder.write("unknown.toml", "[network]\nrtt_ms = 5\nlatency_ms = 5\n");
    let broken = folder.write("broken.toml", "[network]\ntrace = 'broken.csv'\n");
    let fine = folder.write("fine.toml", "seconds = 0.1\n[network]\nrtt_ms = 5\n");
    let rivals = folder.write(
        "rivals.toml",
        "rivals = { cubic = 1 }\n[network]\nrtt_ms = 5\n[link]\nrate_mbit_per_s = 1\n",
    );
    let game = folder.write("game.toml", GAME);
    let cases: [(&[&str], &str); 6] = [
        (&[&unknown], "line 3: unknown field `latency_ms`"),
        (&[&broken], "line 2: `network.trace`: "),
        (
            &["/nowhere/at/all.toml"],
            "/nowhere/at/all.toml: the scenario cannot be read",
        ),
        (
            &[&fine, "--drops", "/nowhere/at/all.csv"],
            "/nowhere/at/all.csv could not be written",
        ),
        (&[&rivals], "leave `rivals` out"),
        (
            &[&game, "--seeds", "2", "--drops", "/tmp/x"],
            "leave --seeds out",
        ),
    ];
    for (arguments, words) in cases {
        let Some(output) = run(command(arguments)) else {
            continue;
        };
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
    // Without the program `ip`.
    let mut without = command(&[&fine]);
    without.env("PATH", "/nowhere/at/all");
    if let Some(output) = run(without) {
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(69), "{error}");
        assert!(error.contains("install the package iproute2"), "{error}");
    }
}
