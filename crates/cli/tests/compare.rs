//! `punctual lab compare-policies` as users and scripts meet it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A folder of this test alone; goes away with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("punctual-compare-{}-{name}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(folder.0.join("traces")).expect("temporary folders can be made");
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.0.join("traces").join(name);
        let folder = file.parent().expect("it has one");
        fs::create_dir_all(folder).expect("temporary folders can be made");
        fs::write(file, text).expect("temporary files can be written");
    }

    /// A path in the folder, beside the traces.
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.args(["lab", "compare-policies", "--traces"]);
        command.arg(self.path("traces"));
        command.args(arguments.split_whitespace());
        command
    }

    fn run(&self, arguments: &str) -> Output {
        let output = self.command(arguments).output();
        output.expect("the program was built for this test")
    }

    fn refused(&self, arguments: &str, words: &str) {
        let output = self.run(arguments);
        let error = String::from_utf8(output.stderr).expect("messages are text");
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(words), "{words}: {error}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// 6 s of 30 ms, with this share lost.
fn log(loss: &str) -> String {
    let rows = (0..400).map(|row| format!("{:.3} 5.0 30.0ms {loss}\n", f64::from(row) * 0.015));
    rows.collect()
}

const SMALL: &str = "--messages 200 --deadlines 1.2,3 --targets 0.99 --symbols 1,4";

#[test]
fn all_policies_are_played_judged_and_shown() {
    let folder = Folder::new("small");
    folder.write("hairpin/wifi/trace1.log", &log("0.05"));
    folder.write("z.log", &log("0.01"));
    folder.write("notes.txt", "What these are.\n");
    let figures = |arguments: &str| -> Value {
        let output = folder.run(&format!("{SMALL} --json {arguments}"));
        assert!(output.status.success() && output.stderr.is_empty());
        let mut all: Value = serde_json::from_slice(&output.stdout).expect("one object");
        let object = all.as_object_mut().expect("one object");
        assert!(object.remove("took_s").is_some() && object.remove("command").is_some());
        all
    };
    let all = figures("");
    assert_eq!(all, figures("--threads 3"));
    let twice = figures("--deadlines 1.2,3,1.20 --targets 0.99,0.990 --symbols 1,4,1");
    assert_eq!(
        all["rows"], twice["rows"],
        "what is named twice counts once"
    );
    assert_eq!(all["rows"].as_array().map(Vec::len), Some(8));
    assert_eq!(all["passed_over"], serde_json::json!(["notes.txt"]));
    assert_eq!(
        (&all["traces"][0]["part"], &all["traces"][1]["part"]),
        (&"tuning".into(), &"judged".into())
    );
    let policies: Vec<_> = (all["rows"][0]["policies"]
        .as_array()
        .expect("a list")
        .iter())
    .filter_map(|policy| policy["policy"].as_str())
    .collect();
    assert_eq!(
        policies[..6],
        [
            "retransmit",
            "fixed(1)",
            "fixed(3)",
            "hairpin",
            "pangolin",
            "exact"
        ]
    );
    let judgement = &all["judgement"];
    assert_eq!(judgement["reference"], "pangolin");
    assert_eq!(judgement["parts"][0]["lateness"]["rows"], 8);
    assert_eq!(judgement["parts"][2]["part"], "judged");
    let two = figures("--policies exact,pangolin --candidate exact");
    assert_eq!(two["judgement"]["candidate"], "exact");
    assert_eq!(two["rows"][0]["policies"][1], all["rows"][0]["policies"][4]);
    assert!(figures("--policies exact")["judgement"].is_null());

    let page = folder.path("page.html");
    let output = folder.run(&format!("{SMALL} --html {}", page.display()));
    let text = String::from_utf8(output.stdout).expect("tables are text");
    assert!(
        output.status.success() && text.contains("recordings judged on (1)"),
        "{text}"
    );
    assert!(
        text.contains("passed over: notes.txt") && text.contains("took"),
        "{text}"
    );
    let html = fs::read_to_string(page).expect("--html writes the file");
    assert!(html.contains("beside pangolin") && html.ends_with("</html>\n"));
}

#[test]
fn one_row_is_told_as_one() {
    let folder = Folder::new("one");
    folder.write("a.log", &log("0.05"));
    let page = folder.path("page.html");
    let one = "--messages 200 --deadlines 2 --targets 0.99 --symbols 1 --policies pangolin,exact";
    let output = folder.run(&format!("{one} --html {}", page.display()));
    let text = String::from_utf8(output.stdout).expect("tables are text");
    assert!(text.starts_with("1 row over 1 trace, "), "{text}");
    let html = fs::read_to_string(page).expect("--html writes the file");
    assert!(html.contains("A point is one row.") && !html.contains("Each line joins"));
}

#[test]
fn rows_that_chance_leaves_open_are_played_longer() {
    let folder = Folder::new("longer");
    folder.write("a.log", &log("0.05"));
    let page = folder.path("page.html");
    let small = format!("{SMALL} --policies pangolin,exact --messages-max 2000");
    let output = folder.run(&format!("{small} --json --html {}", page.display()));
    let all: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let rows = all["rows"].as_array().expect("a list");
    let messages: Vec<_> = rows.iter().map(|row| row["messages"].as_u64()).collect();
    assert!(
        messages
            .iter()
            .all(|of| [200, 800, 2000].map(Some).contains(of))
    );
    let again = messages.iter().filter(|of| **of > Some(200)).count();
    assert!(again > 0, "{messages:?}");
    assert_eq!(
        (&all["messages"], &all["messages_max"]),
        (&200.into(), &2000.into())
    );
    let told = format!("(up to 2000 in the {again} that chance left open)");
    let html = fs::read_to_string(page).expect("--html writes the file");
    assert!(html.contains(&told), "{told}");
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let folder = Folder::new("wrong");
    let page = folder.path("page.html");
    folder.refused(&format!("--html {}", page.display()), "is empty");
    folder.write("notes.txt", "What these are.\n");
    folder.refused("", "no trace with delays");
    folder.write("a.log", &log("0.05"));
    folder.refused("--deadlines 0", "0.1 to 100");
    folder.refused("--deadlines soon", "round trips");
    folder.refused("--targets 99", "a share of messages");
    folder.refused("--symbols 65", "65");
    folder.refused("--messages 5", "from 100 to 1000000");
    folder.refused("--messages 500 --messages-max 400", "500 to 1000000");
    folder.refused("--policies best", "not a policy");
    folder.refused("--candidate pangolin", "name another");
    folder.refused("--policies exact --candidate exact", "add pangolin");
    folder.refused("--policies pangolin --candidate exact", "add exact");
    folder.refused("--html /no/such/folder/page.html", "cannot be written");
    folder.write("b.log", &format!("{}oh 5.0 30ms 0\n", log("0.05")));
    folder.refused(&format!("--html {}", page.display()), "b.log, line 401");
    assert!(!page.exists());

    let missing = Command::new(env!("CARGO_BIN_EXE_punctual"))
        .args(["lab", "compare-policies", "--traces", "/no/such/folder"])
        .output();
    let missing = missing.expect("the program was built for this test");
    let error = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(missing.status.code(), Some(2), "{error}");
    assert!(error.contains("/no/such/folder cannot be read"), "{error}");
}

/// Goal: Ctrl-C ends a long run and leaves no page.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_leaves_nothing() {
    let folder = Folder::new("interrupted");
    folder.write("a.log", &log("0.05"));
    let page = folder.path("page.html");
    let mut child = folder
        .command(&format!("--messages 1000000 --html {}", page.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built for this test");
    while !watches_for_ctrl_c(child.id()) {
        assert!(
            child.try_wait().expect("it is a child").is_none(),
            "it ended"
        );
        std::thread::yield_now();
    }
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupted.expect("kill is everywhere").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "punctual: interrupted\n"
    );
    assert!(!page.exists());
}

/// Whether a process has a handler for SIGINT.
#[cfg(target_os = "linux")]
fn watches_for_ctrl_c(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 0b10 != 0)
}
