//! The recorded traces, when they are there: `PUNCTUAL_TRACES`, or ../shared/traces next to the workspace.

mod support;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use punctual_lab::channel::{Channel, Direction, Fate};
use punctual_lab::trace::{Content, Outcome, PathOptions, Trace};

/// Goal: every recorded file is read, summarised and played, and the played loss is the recorded loss.
#[test]
fn recorded_traces_are_read_and_played() {
    let Some(root) = support::traces() else {
        println!("skipped: no PUNCTUAL_TRACES and no ../shared/traces");
        return;
    };
    let mut read = 0;
    for folder in [
        "hairpin/eth",
        "hairpin/wifi",
        "hairpin/cell",
        "starlink_ping",
        "starlink_lens",
        "capacity",
    ] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            println!("skipped: {folder} is not there");
            continue;
        };
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if name == "LICENSE" || name == "COPYING" {
                continue;
            }
            let trace = Trace::open(&file).unwrap_or_else(|error| panic!("{error}"));
            let summary = trace.summary();
            println!("{folder}/{name}: {summary}");
            let path = trace.path(&PathOptions::for_trace(&trace)).unwrap();
            path.check().unwrap();
            if matches!(trace.content, Content::Samples(_)) {
                // Probed as it was recorded, but over a whole lap from wherever the path begins.
                let slots = summary.duration.as_millis() as u64;
                let mut channel = Channel::new(Arc::clone(&path.forward), 1, 0, Direction::Forward);
                let lost = (0..slots)
                    .filter(|slot| matches!(channel.fate(slot * 1000, 100), Fate::Lost(_)))
                    .count();
                let played = lost as f64 / slots as f64;
                let is_slotted = matches!(trace.samples()[0].outcome, Outcome::Slot { .. });
                if is_slotted {
                    let error = (played - summary.loss_share).abs();
                    assert!(
                        error < 0.0003 + 0.1 * summary.loss_share,
                        "{name}: {played} {}",
                        summary.loss_share
                    );
                } else {
                    assert!(
                        played <= summary.loss_share * 1.1,
                        "{name}: {played} {}",
                        summary.loss_share
                    );
                }
            }
            read += 1;
        }
    }
    assert!(read > 0, "{} holds no traces", root.display());
}
