//! The lab on the real kernel, as users meet it. Skipped, with a word, where no network namespaces can be made.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn punctual() -> Command {
    Command::new(env!("CARGO_BIN_EXE_punctual"))
}

fn output(arguments: &[&str]) -> Output {
    punctual()
        .args(arguments)
        .output()
        .expect("the program was built for this test")
}

/// Whether an emulator, or a transport that is a program of its own, cannot be had here; says so.
fn is_skipped(output: &Output) -> bool {
    let error = String::from_utf8_lossy(&output.stderr);
    let is_rival = output.status.code() == Some(2) && error.contains("srt-tools");
    let is_skipped = output.status.code() == Some(69) || is_rival;
    if is_skipped {
        println!("skipped: {error}");
    }
    is_skipped
}

/// Forty datagrams to the server at once.
const FORTY: &str = "for i in {1..40}; do echo x > /dev/udp/10.0.0.1/9; done";

/// What `lab run` tells of a line of bash on a network; None where it cannot be had here.
fn told(network: &[&str], line: &str) -> Option<Value> {
    let arguments = [
        &["lab", "run", "--json"],
        network,
        &["--", "bash", "-c", line],
    ]
    .concat();
    let output = output(&arguments);
    let told = || serde_json::from_slice(&output.stdout).expect("one JSON object");
    (!is_skipped(&output)).then(told)
}

#[test]
fn a_program_runs_inside_and_its_exit_code_is_told() {
    let line = "ip -brief address; exit 7";
    let arguments = [
        "lab", "run", "--rtt-ms", "10", "--loss", "0", "--", "sh", "-c", line,
    ];
    let output = output(&arguments);
    if is_skipped(&output) {
        return;
    }
    let (said, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(7), "{error}");
    assert!(said.contains("10.128.0.1/32"), "{said}");
    assert!(!said.contains("eth0"), "{said}");
    assert!(error.contains("to the server"), "{error}");
}

/// A program was the first process of its namespace, which is spared by signals that it does not handle: one Ctrl-C did nothing, nor did its own.
/// A regression: a server's command that failed was not mentioned, and everything seemed to have gone well.
#[test]
fn a_server_that_fails_is_told() {
    let lab = [
        "lab", "run", "--rtt-ms", "5", "--json", "--server", "exit 3",
    ];
    let wait = "sleep 0.3";
    let output = output(&[&lab[..], &["--", "sh", "-c", wait]].concat());
    if is_skipped(&output) {
        return;
    }
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("--server failed"), "{error}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&told["server_exit_code"], &told["exit_code"]),
        (&3.into(), &0.into())
    );
}

#[test]
fn a_signal_ends_a_program() {
    let line = "kill -TERM $$; echo survived";
    let output = output(&["lab", "run", "--loss", "0", "--", "sh", "-c", line]);
    if is_skipped(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(128 + 15));
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// The largest packet that a program sees is the file's, unless the command line has another.
#[test]
fn a_scenario_files_mtu_counts() {
    let file = std::env::temp_dir().join(format!("punctual-mtu-{}.toml", std::process::id()));
    fs::write(&file, "[network]\nrtt_ms = 10\nmtu = 600\n").expect("there is room for it");
    let name = file.to_str().expect("its name is plain");
    for (flags, mtu) in [(&[][..], "mtu 600 "), (&["--mtu", "700"], "mtu 700 ")] {
        let begin = [&["lab", "run", "--network", name], flags].concat();
        let output = output(&[&begin[..], &["--", "ip", "link"]].concat());
        if is_skipped(&output) {
            break;
        }
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(mtu), "{said}");
    }
    fs::remove_file(&file).expect("it was written");
}

/// A regression: a file's network was played the wrong way round unless its messages went to the server.
#[test]
fn a_scenario_files_directions_are_kept() {
    let file = std::env::temp_dir().join(format!("punctual-way-{}.toml", std::process::id()));
    let name = file.to_str().expect("its name is plain");
    for (direction, drops) in [("to_client", false), ("to_server", true)] {
        let text =
            format!("direction = '{direction}'\n[network]\nrtt_ms = 10\nloss_forward = 0.5\n");
        fs::write(&file, text).expect("there is room for it");
        let Some(said) = told(&["--network", name], FORTY) else {
            break;
        };
        let dropped = said["to_server"]["packets_dropped"].as_u64();
        assert_eq!(dropped > Some(0), drops, "{direction}: {said}");
    }
    fs::remove_file(&file).expect("it was written");
}

/// A regression: the clients of a folder of recordings all had the path of the one in the middle.
#[test]
fn each_client_of_a_population_has_its_own_path() {
    let folder = std::env::temp_dir().join(format!("punctual-paths-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is room for it");
    // Each 100 s nothing but the first tenth of a second gets through.
    let dark: String = (1..1000)
        .map(|tenth| format!("{}.{},\n", tenth / 10, tenth % 10))
        .collect();
    for (name, rest) in [("1.csv", &dark[..]), ("2.csv", "0.1,20\n")] {
        let text = format!("time_s,rtt_ms\n0,20\n{rest}");
        fs::write(folder.join(name), text).expect("there is room for it");
    }
    let network = format!("population:{}", folder.display());
    if let Some(said) = told(&["--clients", "2", "--network", &network], FORTY) {
        assert_eq!(said["to_server"]["packets_dropped"], 40, "{said}");
    }
    fs::remove_dir_all(&folder).expect("it was written");
}

/// A regression: who was asked to end by SIGTERM left empty files of drops and packets.
#[test]
fn what_is_noted_survives_a_signal() {
    let folder = std::env::temp_dir().join(format!("punctual-notes-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is room for it");
    let drops = folder.join("drops.csv");
    let line = format!("{FORTY}; echo sent; sleep 60");
    let mut lab = punctual();
    lab.args(["lab", "run", "--loss", "0.5", "--rtt-ms", "10", "--drops"])
        .arg(&drops);
    lab.arg("--pcap")
        .arg(&folder)
        .args(["--", "bash", "-c", &line]);
    lab.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut lab = lab.spawn().expect("the program was built for this test");
    let mut told = String::new();
    let stdout = lab.stdout.as_mut().expect("it is piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut told)
        .expect("it is text");
    if told == "sent\n" {
        let pid = lab.id().to_string();
        let kill = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(kill.expect("there is a kill").success());
    }
    let output = lab.wait_with_output().expect("it ends");
    if !is_skipped(&output) {
        assert_eq!(output.status.code(), Some(143), "{output:?}");
        let dropped = fs::read_to_string(&drops).expect("it was written");
        assert!(dropped.lines().count() > 5, "{dropped}");
        for name in ["client.pcap", "server.pcap"] {
            let len = fs::metadata(folder.join(name))
                .expect("it was written")
                .len();
            assert!(len > 24 + 16, "{name}: {len} bytes");
        }
    }
    fs::remove_dir_all(&folder).expect("it was written");
}

/// What leaves a program waits at the file's link: of twenty datagrams at once its queue takes two or three.
#[test]
fn a_scenario_files_link_counts() {
    let file = std::env::temp_dir().join(format!("punctual-link-{}.toml", std::process::id()));
    let text = "direction = 'to_server'\n[network]\nrtt_ms = 10\n[link]\nrate_mbit_per_s = 0.001\nqueue_bytes = 3000\n";
    fs::write(&file, text).expect("there is room for it");
    let name = file.to_str().expect("its name is plain");
    let line = "for i in {1..20}; do printf '%1000s' x > /dev/udp/10.0.0.1/9; done";
    if let Some(said) = told(&["--network", name], line) {
        assert!(
            said["packets_dropped_by_reason"]["link"].as_u64() >= Some(15),
            "{said}"
        );
    }
    fs::remove_file(&file).expect("it was written");
}

#[test]
fn what_cannot_be_done_is_said_in_a_sentence() {
    let cases: [(&[&str], &str); 6] = [
        (
            &["run", "--network", "/nowhere", "--", "true"],
            "there is no network /nowhere",
        ),
        (&["run", "--mtu", "100", "--", "true"], "--mtu"),
        (
            &["run", "--pcap", "/nowhere/captures", "--", "true"],
            "/nowhere/captures",
        ),
        (
            &["run", "--congestion-control", "telepathy", "--", "true"],
            "congestion",
        ),
        (
            &["scorecard", "--arms", "pigeons"],
            "there is no arm pigeons",
        ),
        (&["scorecard", "--arms", "exact,exact"], "named twice"),
    ];
    for (arguments, words) in cases {
        let output = output(&[&["lab"], arguments].concat());
        if is_skipped(&output) {
            return;
        }
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}

#[test]
fn a_scorecard_has_every_arm() {
    let arguments = "lab scorecard --networks busy-hour --arms punctual,tcp-cubic --flows 3 --seconds 1 --interval-ms 100 --json";
    let arguments: Vec<_> = arguments.split_whitespace().collect();
    let output = output(&arguments);
    if is_skipped(&output) {
        return;
    }
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let card: Value = serde_json::from_slice(&output.stdout).expect("--json prints one object");
    let row = &card["networks"][0];
    let names: Vec<_> = (row["arms"].as_array().expect("a list").iter())
        .map(|arm| arm["arm"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["punctual", "tcp-cubic"]);
    for arm in row["arms"].as_array().expect("a list") {
        assert_eq!(arm["messages"], 30, "{arm}");
        assert_eq!(arm["messages_refused"], 0, "{arm}");
        assert_eq!(arm["flows_unconnected"], 0, "{arm}");
    }
    assert!(row["arms"][1]["over_punctual"]["on_time_share"].is_number());
    assert!(row["floor_late_share"].is_number());
}

/// A command that was started; killed when the test ends, whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Goal: `kill -9` leaves no program behind, also none that has left its parent's session.
#[test]
fn nothing_is_left_behind_by_a_kill() {
    if is_skipped(&output(&["lab", "run", "--", "true"])) {
        return;
    }
    // A number that no other process has.
    let seconds = 2_000_000 + std::process::id();
    let line = format!("setsid sleep {seconds} & sleep {seconds}");
    let server = format!("sleep {seconds}");
    let mut command = punctual();
    command.args(["lab", "run", "--server", &server, "--", "sh", "-c", &line]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(
        command
            .spawn()
            .expect("the program was built for this test"),
    );
    let becomes = |expected| (0..20_000).any(|_| sleepers(seconds) == expected);
    assert!(becomes(3), "{} programs run", sleepers(seconds));
    running.0.kill().expect("it runs");
    running.0.wait().expect("it was killed");
    assert!(becomes(0), "{} programs are left", sleepers(seconds));
}

/// Processes that sleep for so long.
fn sleepers(seconds: u32) -> usize {
    let wanted = format!("sleep\0{seconds}\0");
    processes(|line| line == wanted)
}

/// Processes with such a command line; a zero byte ends each word of it.
fn processes(is_meant: impl Fn(&str) -> bool) -> usize {
    let processes = fs::read_dir("/proc").expect("this is Linux");
    let lines = processes.filter_map(|entry| {
        let line = entry.ok()?.path().join("cmdline");
        fs::read_to_string(line).ok()
    });
    lines.filter(|line| is_meant(line)).count()
}

/// Goal: the same for the programs of a transport, in the middle of a contest.
#[cfg(feature = "rivals")]
#[test]
fn no_program_of_a_transport_is_left_behind_by_a_kill() {
    if is_skipped(&output(&["lab", "scorecard", "--arms", "srt,srt"])) {
        return;
    }
    // A size that no other contest has at the same time; 8 bytes more make a datagram.
    let bytes = 100 + std::process::id() % 1200;
    let mut command = punctual();
    let line = format!("lab scorecard --networks clean --arms srt --flows 2 --bytes {bytes}");
    command.args(line.split(' '));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let datagrams = format!("payloadsize={}\0", bytes + 8);
    let count =
        || processes(|line| line.starts_with("srt-live-transmit\0") && line.contains(&datagrams));
    let mut running = Running(
        command
            .spawn()
            .expect("the program was built for this test"),
    );
    let becomes = |expected| (0..4000).any(|_| count() == expected);
    assert!(becomes(4), "{} programs run", count());
    running.0.kill().expect("it runs");
    running.0.wait().expect("it was killed");
    assert!(becomes(0), "{} programs are left", count());
}

#[cfg(feature = "rivals")]
#[test]
fn a_rival_that_is_not_installed_is_named_and_no_part_of_all() {
    if is_skipped(&output(&["lab", "run", "--", "true"])) {
        return;
    }
    let said = |arms: &str, code: i32| {
        let mut command = punctual();
        command.args(["lab", "scorecard", "--arms", arms]);
        let output = command.env("PATH", "/nowhere").output();
        let output = output.expect("the program was built for this test");
        assert_eq!(output.status.code(), Some(code));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let asked = said("punctual,srt-fec", 2);
    assert_eq!(asked.lines().count(), 1, "{asked}");
    assert!(
        asked.contains("srt-fec is not here") && asked.contains("srt-tools"),
        "{asked}"
    );
    // It goes on to the next that is not there: what the emulator is set up with.
    let all = said("all", 69);
    assert!(all.contains("left out: srt is not here"), "{all}");
    assert!(all.contains("left out: srt-fec is not here"), "{all}");
    assert!(all.contains("iproute2"), "{all}");
}

#[cfg(not(feature = "rivals"))]
#[test]
fn a_rival_that_was_not_built_in_is_named() {
    let output = output(&["lab", "scorecard", "--arms", "kcp"]);
    if is_skipped(&output) {
        return;
    }
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--features rivals"), "{error}");
}
