//! The programs of a side: `srt-live-transmit`, one a flow, all in one container that ends with this process.

use std::env;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use punctual_lab::arm::ArmError;
use punctual_lab::emulator::{Process, contained};

use crate::failed;

/// The program's name.
const PROGRAM: &str = "srt-live-transmit";
/// Where to get it.
const REMEDY: &str =
    "it is carried by the program srt-live-transmit: install the package srt-tools";

/// What the program says when it has a connection, at either end. Each is written at once, so that the words of many programs do not
/// mix within it.
const CONNECTED: [&str; 2] = ["Accepted SRT ", "SRT target connected"];
/// What it says when it has lost it.
const DISCONNECTED: [&str; 2] = ["SRT source disconnected", "SRT target disconnected"];
/// Of the programs' last words, as many characters are kept.
const WORDS_MAX: usize = 200;

/// Checks that the program is installed.
///
/// # Errors
/// When it is not, with what to do about it.
pub(super) fn check(arm: &str) -> Result<(), ArmError> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file());
    is_there.then_some(()).ok_or_else(|| ArmError::Missing {
        arm: arm.to_owned(),
        remedy: REMEDY.to_owned(),
    })
}

/// From where to where a program carries datagrams.
pub(super) struct Route {
    pub(super) from: String,
    pub(super) to: String,
}

/// Running programs. Dropping it ends them.
pub(super) struct Programs {
    arm: &'static str,
    /// None while it is dropped.
    process: Option<Process>,
    heard: Arc<Heard>,
    listener: Option<JoinHandle<()>>,
}

/// What the programs have said.
#[derive(Default)]
struct Heard {
    connected: AtomicU32,
    last_words: Mutex<String>,
}

impl Programs {
    /// Starts a program for each route, in the network namespace of the calling thread, one so long after the other; each reads
    /// datagrams of at most so many bytes.
    ///
    /// # Errors
    /// When no programs can be run.
    pub(super) fn start(
        arm: &'static str,
        routes: &[Route],
        spacing: Duration,
        datagram_bytes: usize,
    ) -> Result<Self, ArmError> {
        let wait = match spacing {
            Duration::ZERO => String::new(),
            spacing => format!("sleep {}\n", spacing.as_secs_f64()),
        };
        let program = |Route { from, to }: &Route| {
            format!("{wait}{PROGRAM} -loglevel:error -chunk:{datagram_bytes} '{from}' '{to}' &\n")
        };
        let script: String = routes.iter().map(program).collect();
        let (output, input) = io::pipe().map_err(ArmError::system(arm, "making a pipe"))?;
        let second = input.try_clone();
        let mut command = contained("sh", &["-c".to_owned(), script + "wait\n"]);
        command
            .stdin(Stdio::null())
            .stdout(second.map_err(ArmError::system(arm, "making a pipe"))?)
            .stderr(input);
        let process = Process::start_here(command).map_err(|error| ArmError::Missing {
            arm: arm.to_owned(),
            remedy: format!(
                "its programs are run with setpriv and unshare, which could not be started ({error}): install the package util-linux"
            ),
        })?;
        let heard = Arc::new(Heard::default());
        let listener = Arc::clone(&heard);
        let listener = thread::Builder::new()
            .name(arm.to_owned())
            .spawn(move || listener.listen(output))
            .map_err(ArmError::system(arm, "starting a thread"))?;
        Ok(Self {
            arm,
            process: Some(process),
            heard,
            listener: Some(listener),
        })
    }

    /// How many of them have a connection.
    pub(super) fn connected(&self) -> u32 {
        self.heard.connected.load(Ordering::Relaxed)
    }

    /// Checks that they run.
    ///
    /// # Errors
    /// When all have ended, which they do not by themselves.
    pub(super) fn check(&self) -> Result<(), ArmError> {
        if !self.process.as_ref().is_none_or(Process::is_over) {
            return Ok(());
        }
        let words = self.heard.last_words.lock();
        let words = words.unwrap_or_else(PoisonError::into_inner);
        Err(failed(self.arm, format_args!("{PROGRAM} ended: {words}")))
    }

    /// Time that they have computed.
    pub(super) fn cpu(&self) -> Duration {
        self.process.as_ref().map_or(Duration::ZERO, Process::cpu)
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        drop(self.process.take());
        // Nobody is left to write to it, so it ends.
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

impl Heard {
    /// Listens until all programs have ended.
    fn listen(&self, output: PipeReader) {
        for line in BufReader::new(output).split(b'\n') {
            let Ok(line) = line else {
                return;
            };
            self.on_line(&String::from_utf8_lossy(&line));
        }
    }

    fn on_line(&self, line: &str) {
        let count = |words: &[&str]| {
            let times = words.iter().map(|word| line.matches(word).count());
            times.sum::<usize>() as u32
        };
        let connected = self.connected.load(Ordering::Relaxed) + count(&CONNECTED);
        let connected = connected.saturating_sub(count(&DISCONNECTED));
        self.connected.store(connected, Ordering::Relaxed);
        if !line.trim().is_empty() {
            let words = line.trim().chars().take(WORDS_MAX).collect();
            *self
                .last_words
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = words;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_however_words_are_mixed() {
        let heard = Heard::default();
        let expect = |line: &str, connected| {
            heard.on_line(line);
            assert_eq!(heard.connected.load(Ordering::Relaxed), connected, "{line}");
        };
        expect(
            "Media path: 'udp://127.0.0.1:20000' --> 'srt://10.0.0.1:7000'",
            0,
        );
        expect("SRT target connected", 1);
        expect("", 1);
        expect(
            "SRT target connectedAccepted SRT Accepted SRT targettarget connection",
            4,
        );
        expect("SRT source disconnectedSRT target disconnected", 2);
        expect(
            "SRT source disconnectedSRT source disconnectedSRT source disconnected",
            0,
        );
        expect("ERROR: no luck ", 0);
        assert_eq!(*heard.last_words.lock().unwrap(), "ERROR: no luck");
    }
}
