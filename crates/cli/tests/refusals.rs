//! What the program does not take, and how it says so; keys.

mod support;

use std::fs;

use support::{json, punctual, refused, scratch};

#[test]
fn bad_flags_are_refused_in_one_sentence() {
    for (flags, words) in [
        ("policy solve --loss 2", "below 1"),
        ("policy solve --loss -1", "below 1"),
        ("policy solve --loss NaN", "below 1"),
        ("policy solve --symbols 0", "from 1 to 64"),
        ("policy solve --symbols 1e9", "--symbols"),
        ("policy solve --rounds 101", "from 1 to 100"),
        ("policy solve --miss 0", "1e-9"),
        ("policy solve --policy best", "not a policy"),
        ("policy solve --polcy exact", "--policy"),
        ("policy curve --targets 0.99,1", "--targets"),
        ("policy curve --targets 0.9999999999", "to 0.9999999,"),
        ("policy table --miss 1", "below 1"),
        ("lab simulate --profile moon", "bursty-wifi"),
        (
            "lab simulate --profile lte --loss 0.1",
            "cannot be used with",
        ),
        ("lab simulate --symbols 65", "from 1 to 64"),
        ("lab simulate --messages 99999999999999", "--messages"),
        ("lab simulate --bytes 300000", "262144"),
        ("lab simulate --deadline-ms 0", "above 0"),
        ("lab simulate --on-time 1", "to 0.9999999,"),
        ("lab simulate --blackout 5..3", "FROM..TO"),
        ("lab simulate --delay gamma:500", "one-way delay"),
        (
            "lab simulate --report /no/such/folder/report.html",
            "choose another file",
        ),
        ("lab simulate --reorder-ms 30", "say with --reorder"),
        ("lab simulate --queue-kib 9", "say with --rate-mbit"),
        ("lab replay", "--trace"),
        ("token --key /no/such/key --out /tmp/none", "--new-key"),
        ("serve --listen localhost:7777", "[::]:7777"),
        ("send punctual://localhost:1", "#KEY"),
        ("send punctual://localhost:1 --delivery best", "latest"),
    ] {
        refused(flags, words);
    }
}

#[test]
fn bad_recordings_are_refused_in_one_sentence() {
    refused("lab replay --trace /no/such/file", "/no/such/file");
    for (name, content, words) in [
        ("empty", &b""[..], "no samples"),
        ("prose", b"once upon a time\n", "none of the formats"),
        ("row", b"time_s,rtt_ms\n0.1,fast\n", "line 2"),
        ("bytes", b"\xff\xfe\x00\x01", ""),
    ] {
        let trace = scratch(name);
        fs::write(&trace, content).expect("writable");
        refused(&format!("lab replay --trace {}", trace.display()), words);
        let _ = fs::remove_file(trace);
    }
}

#[test]
fn a_path_that_lets_nothing_through_is_told() {
    refused(
        "lab simulate --blackout 0..100000 --messages 10 --sessions 2",
        "no session",
    );
}

#[test]
fn keys_are_private_and_never_overwritten() {
    let file = scratch("server.key");
    let made = json(&format!("keygen --out {} --json", file.display()));
    let public = made["public_key"].as_str().expect("text");
    assert_eq!(public.len(), 43);
    assert!(
        made["url"]
            .as_str()
            .is_some_and(|url| url.ends_with(&format!("#{public}")))
    );
    let private = fs::read_to_string(&file).expect("written");
    let secret = private.trim().strip_prefix("punctual-server-key:");
    assert!(secret.is_some_and(|secret| secret.len() == 43 && secret != public));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = fs::metadata(&file).expect("it is there");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    refused(
        &format!("keygen --out {}", file.display()),
        "not overwritten",
    );
    assert_eq!(fs::read_to_string(&file).expect("still there"), private);
    // The other way round a server would take its clients' key for its own.
    refused(
        &format!("serve --token-key {}", file.display()),
        "holds a server's key, where a token key is needed",
    );
    let _ = fs::remove_file(file);
}

/// A lifetime that no clock reaches ended the program.
#[test]
fn a_token_may_be_good_for_ever() {
    let (key, token) = (scratch("ever.key"), scratch("ever.token"));
    let files = format!("--key {} --out {}", key.display(), token.display());
    let made = json(&format!(
        "token --new-key {files} --valid-s {} --json",
        u64::MAX
    ));
    assert_eq!(made["valid_s"], u64::MAX);
    let _ = (fs::remove_file(key), fs::remove_file(token));
}

/// A regression: whole numbers were refused in the words of a parser, without what is accepted.
#[test]
fn whole_numbers_are_refused_with_what_is_accepted() {
    for (arguments, words) in [
        (
            "demo --seconds nan",
            "expected a whole number from 1 to 3600",
        ),
        (
            "lab simulate --seed -1",
            "expected a whole number, 0 or more",
        ),
        (
            "token --valid-s 0 --new-key",
            "expected a whole number from 1 on",
        ),
    ] {
        let output = punctual(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(words), "{arguments}: {error}");
    }
}

/// A regression: what has no end was read to its end.
#[cfg(unix)]
#[test]
fn devices_are_no_files_of_keys_and_scenarios() {
    refused("serve --key /dev/zero --listen 127.0.0.1:0", "is not");
    refused(
        "lab simulate --scenario /dev/zero",
        "more than 1048576 bytes",
    );
    refused("keygen --out -", "a file of that name");
}
