//! Whether the files and folders that docs/ARCHITECTURE.md names are there.

use std::fs;
use std::path::Path;

use crate::steps::{Done, StepResult, root};

const PAGE: &str = "docs/ARCHITECTURE.md";

/// Names are what stands in backticks and looks like a path: `session/acks.rs` is there when some path ends with it.
pub(crate) fn check() -> StepResult {
    let text = fs::read_to_string(root().join(PAGE))
        .map_err(|error| format!("{PAGE} cannot be read: {error}"))?;
    let mut paths = Vec::new();
    collect(root(), "", &mut paths);
    let is_there = |name: &str| {
        let name = name.trim_end_matches('/');
        paths.iter().any(|path| {
            path.strip_suffix(name)
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        })
    };
    let names = named(&text);
    let missing: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !is_there(name))
        .collect();
    if missing.is_empty() {
        println!("   {} names, all there", names.len());
        Ok(Done::Passed)
    } else {
        Err(format!(
            "{PAGE} names what is not there: {}",
            missing.join(", ")
        ))
    }
}

/// Everything of the repository but what is built or hidden, as paths with slashes.
fn collect(folder: &Path, prefix: &str, paths: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "target" || name == ".git" {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{path}/"), paths);
        }
        paths.push(path);
    }
}

/// What stands in backticks and looks like a path; `a/{b,c}.rs` is two.
fn named(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            let quoted = line.split('`').skip(1).step_by(2);
            names.extend(quoted.flat_map(expand).filter(|name| is_path(name)));
        }
    }
    names
}

fn expand(name: &str) -> Vec<String> {
    let parts = name.split_once('{').and_then(|(before, rest)| {
        let (inner, after) = rest.split_once('}')?;
        Some((before, inner, after))
    });
    match parts {
        Some((before, inner, after)) => inner
            .split(',')
            .map(|part| format!("{before}{}{after}", part.trim()))
            .collect(),
        None => vec![name.to_owned()],
    }
}

fn is_path(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let has_extension = [".rs", ".md", ".toml", ".py"]
        .iter()
        .any(|end| name.ends_with(end));
    let is_inside = name.contains('/') && !name.starts_with('/') && !name.starts_with('.');
    name.chars().all(is_plain) && (has_extension || is_inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_words() {
        let text = "See `crates/proto/src/session/` and `acks.rs`, not `k/(1-p)` or `Endpoint`;\n```\n`no/thing`\n```\n\
                    or `path/{loss,rtt}.rs`, or /etc or `../shared/x`.";
        let expected = [
            "crates/proto/src/session/",
            "acks.rs",
            "path/loss.rs",
            "path/rtt.rs",
        ];
        assert_eq!(named(text), expected);
    }
}
