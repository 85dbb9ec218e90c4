//! Whether deny.toml allows the licence of every dependency.
//!
//! cargo-deny, which reads the same file, does more (advisories, sources, duplicates), but takes longer to build than all the
//! rest of the tests to run; it is used where it is installed, and this check everywhere.

use std::collections::BTreeMap;
use std::fs;

use crate::steps::{Done, StepResult, capture, cargo_command, root, show, works};

/// Checks all dependencies that end up in a program, on all platforms.
pub(crate) fn check() -> StepResult {
    let rules = fs::read_to_string(root().join("deny.toml"))
        .map_err(|error| format!("deny.toml cannot be read: {error}"))?;
    let allowed = allowed(&rules);
    // Without a network, what other systems need and this one has never fetched cannot be seen.
    let (licences, unseen) = match licences(&["--target", "all"]) {
        Ok(licences) => (licences, None),
        Err(why) => (licences(&["--offline"])?, Some(why)),
    };
    let refused: Vec<String> = licences
        .iter()
        .filter(|(_, licence)| !is_allowed(licence, &allowed))
        .map(|(package, licence)| format!("{package} ({licence})"))
        .collect();
    if !refused.is_empty() {
        return Err(format!(
            "deny.toml does not allow the licence of {}",
            refused.join(", ")
        ));
    }
    println!("   {} packages, all under allowed licences", licences.len());
    let cargo = cargo_command().get_program().to_owned();
    if works(cargo, &["deny", "--version"]) {
        // Without advisories: those need a network, and change from day to day without a change of ours.
        return show(cargo_command().args([
            "deny",
            "--all-features",
            "check",
            "bans",
            "licenses",
            "sources",
        ]));
    }
    println!("   cargo-deny is not installed: sources and duplicates are not checked");
    Ok(match unseen {
        Some(why) => Done::Skipped(format!("for other systems than this: {why}")),
        None => Done::Passed,
    })
}

/// Package to licence expression, without duplicates.
fn licences(of: &[&str]) -> Result<BTreeMap<String, String>, String> {
    let shape = [
        "tree",
        "--workspace",
        "--all-features",
        "--edges",
        "normal,build",
    ];
    let lines = ["--prefix", "none", "--format", "{p}|{l}"];
    let output = capture(cargo_command().args(shape).args(of).args(lines))?;
    let pair = |line: &str| {
        let (package, licence) = line.split_once('|')?;
        // A package that was listed before ends with a star.
        let licence = licence.trim_end_matches("(*)").trim();
        Some((package.to_owned(), licence.to_owned()))
    };
    Ok(output.lines().filter_map(pair).collect())
}

/// The strings of `allow = [..]` in deny.toml.
fn allowed(rules: &str) -> Vec<&str> {
    let list = rules
        .lines()
        .skip_while(|line| !line.starts_with("allow = ["));
    let list = list.skip(1).take_while(|line| !line.starts_with(']'));
    list.filter_map(|line| line.split('"').nth(1)).collect()
}

/// Whether an SPDX expression can be met with allowed licences alone.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    // Old manifests write `MIT/Apache-2.0`.
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let result = either(&mut words, allowed);
    result && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut result = both(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        result |= both(words, allowed);
    }
    result
}

fn both(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut result = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        result &= one(words, allowed);
    }
    result
}

fn one(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let Some(word) = words.next() else {
        return false;
    };
    if word == "(" {
        let result = either(words, allowed);
        return words.next() == Some(")") && result;
    }
    // `X WITH exception` is a licence of its own.
    if words.next_if_eq(&"WITH").is_some() {
        let exception = words.next().unwrap_or_default();
        return allowed.contains(&format!("{word} WITH {exception}").as_str());
    }
    allowed.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_or_not() {
        let allowed = ["MIT", "ISC", "Unicode-3.0"];
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("", false),
            ("MIT/Apache-2.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("ISC AND (Apache-2.0 OR GPL-2.0)", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("MIT AND Apache-2.0 WITH LLVM-exception", false),
            ("(MIT", false),
            ("MIT ISC", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn the_list_is_read() {
        let rules =
            "[licenses]\nallow = [\n  \"MIT\",\n  \"ISC\", # of aws-lc\n]\nother = [\n \"x\",\n]\n";
        assert_eq!(allowed(rules), ["MIT", "ISC"]);
    }
}
