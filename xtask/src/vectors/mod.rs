//! `cargo xtask vectors`: writes `vectors/*.json` from the code that ships; `--check` only compares.
//!
//! `xtask/decode_vectors.py` reads them back knowing PROTOCOL.md alone, so a difference between the code and the document
//! shows. Everything here comes from fixed seeds: equal code writes equal files.

mod blocks;
mod handshake;
mod packets;
mod streams;
mod window;
mod wire;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

/// Runs the command with the arguments after its name.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let is_check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => {
            eprintln!("usage: cargo xtask vectors [--check]");
            return ExitCode::from(2);
        }
    };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
    let result = if is_check {
        check(&directory)
    } else {
        write(&directory)
    };
    match result {
        Ok(message) => {
            println!("{message}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Name and content of every file.
fn files() -> Vec<(&'static str, String)> {
    let files = [
        ("varints.json", wire::varints()),
        ("headers.json", wire::headers()),
        ("frames.json", wire::frames()),
        ("handshake_packets.json", wire::handshake_packets()),
        ("handshake.json", handshake::handshakes()),
        ("tokens.json", handshake::tokens()),
        ("cookies.json", handshake::cookies()),
        ("packets.json", packets::packets()),
        ("erasure.json", blocks::erasure()),
        ("blocks.json", window::blocks()),
        ("preambles.json", blocks::preambles()),
        ("streams.json", streams::streams()),
        ("messages.json", blocks::messages()),
    ];
    files.map(|(name, value)| (name, render(&value))).into()
}

/// One vector a line, so that a change shows as the lines that it changes.
fn render(value: &Value) -> String {
    let sections = value
        .as_object()
        .expect("every file is an object of sections");
    let mut text = String::from("{\n");
    for (index, (name, section)) in sections.iter().enumerate() {
        let end = if index + 1 == sections.len() { "" } else { "," };
        let Value::Array(vectors) = section else {
            let _ = writeln!(text, "\"{name}\": {section}{end}");
            continue;
        };
        let _ = writeln!(text, "\"{name}\": [");
        for (index, vector) in vectors.iter().enumerate() {
            let comma = if index + 1 == vectors.len() { "" } else { "," };
            let _ = writeln!(text, "  {vector}{comma}");
        }
        let _ = writeln!(text, "]{end}");
    }
    text.push_str("}\n");
    text
}

fn write(directory: &Path) -> Result<String, String> {
    let files = files();
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    for (name, text) in &files {
        let path = directory.join(name);
        std::fs::write(&path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(format!("{} files written to vectors/", files.len()))
}

fn check(directory: &Path) -> Result<String, String> {
    let files = files();
    let mut wrong: Vec<PathBuf> = Vec::new();
    for (name, text) in &files {
        let path = directory.join(name);
        if std::fs::read_to_string(&path).ok().as_ref() != Some(text) {
            wrong.push(path);
        }
    }
    if wrong.is_empty() {
        return Ok(format!(
            "{} files of vectors are as the code writes them",
            files.len()
        ));
    }
    let mut message = String::from("these vectors are not what the code writes now:\n");
    for path in wrong {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(message, "  vectors/{name}");
    }
    message.push_str(
        "If the protocol was meant to change: change PROTOCOL.md, run `cargo xtask vectors`, then xtask/decode_vectors.py.",
    );
    Err(message)
}

/// Bytes as the files hold them.
fn hex(bytes: &[u8]) -> Value {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    json!(text)
}

/// `len` bytes that look random and are the same everywhere (splitmix64).
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(z ^ (z >> 31)).to_be_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn key(seed: u64) -> [u8; 32] {
    noise(seed, 32).try_into().expect("32 bytes were asked for")
}

/// What `encode` writes.
fn written(encode: impl FnOnce(&mut punctual_proto::wire::Writer<'_>)) -> Vec<u8> {
    let mut buffer = [0; 1500];
    let mut writer = punctual_proto::wire::Writer::new(&mut buffer);
    encode(&mut writer);
    let len = writer
        .finish()
        .expect("no vector is longer than a datagram");
    buffer[..len].to_vec()
}

#[cfg(test)]
mod tests {
    /// The files in the repository are what the code writes.
    #[test]
    fn the_vectors_are_current() {
        let directory = super::Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
        if let Err(message) = super::check(&directory) {
            panic!("{message}");
        }
    }
}
