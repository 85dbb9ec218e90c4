//! Programs in a namespace that do not outlive this one.
//!
//! A program runs as the first process of a PID namespace: when that one dies the kernel kills all that it started, whatever they
//! did to get away. It dies with `unshare`, which dies with the thread that started it (`setpriv --pdeathsig`), which dies
//! with this process. Both programs are part of util-linux.

use std::fs;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::Namespace;

/// A program that runs in a namespace. Dropping it kills the program and all that it started.
#[derive(Debug)]
pub struct Process {
    pid: Option<Pid>,
    thread: Option<JoinHandle<io::Result<ExitStatus>>>,
}

/// The command that runs a program so that nothing of it is left behind.
pub fn contained(program: &str, arguments: &[String]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    command.args([
        "unshare",
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--mount-proc",
    ]);
    command.arg("--").arg(program).args(arguments);
    command
}

impl Process {
    /// Starts a command in a namespace: a [`contained`] one, if anything is to end with this process.
    ///
    /// # Errors
    /// When the namespace cannot be entered or the program is not there.
    pub fn start(namespace: &Namespace, command: Command) -> io::Result<Self> {
        let namespace = namespace.clone();
        Self::start_after(move || namespace.enter(), command)
    }

    /// Starts a command where the calling thread is.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_here(command: Command) -> io::Result<Self> {
        // A new thread is in the namespaces of the one that made it.
        Self::start_after(|| Ok(()), command)
    }

    fn start_after(
        enter: impl Fn() -> io::Result<()> + Send + 'static,
        mut command: Command,
    ) -> io::Result<Self> {
        let (sender, started) = sync_channel::<io::Result<u32>>(1);
        // The thread stays until the program has ended: it is by its end that the kernel knows.
        let thread = thread::Builder::new()
            .name("program".to_owned())
            .spawn(move || {
                let mut spawn = || -> io::Result<Child> {
                    enter()?;
                    command.spawn()
                };
                let mut child = match spawn() {
                    Ok(child) => child,
                    Err(error) => {
                        let told = io::Error::new(error.kind(), error.to_string());
                        // Who waits for it is still there: it waits for this.
                        let _ = sender.send(Err(told));
                        return Err(error);
                    }
                };
                let _ = sender.send(Ok(child.id()));
                child.wait()
            })?;
        match started.recv() {
            Ok(Ok(pid)) => Ok(Self {
                pid: i32::try_from(pid).ok().and_then(Pid::from_raw),
                thread: Some(thread),
            }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::ErrorKind::Other.into()),
        }
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Time that it and all that it started have computed, the kernel's part on their behalf among it; of those that have ended
    /// nothing is known. Zero where the kernel does not say.
    pub fn cpu(&self) -> Duration {
        let own = self.pid.filter(|_| !self.is_over());
        let mut left: Vec<i32> = own
            .map(|pid| pid.as_raw_nonzero().get())
            .into_iter()
            .collect();
        let mut nanos = 0;
        while let Some(pid) = left.pop() {
            let tasks = fs::read_dir(format!("/proc/{pid}/task"));
            for task in tasks.into_iter().flatten().flatten() {
                let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
                // Time on a processor, time waiting for one, turns.
                let first = read("schedstat").split_whitespace().next().map(str::parse);
                nanos += first.and_then(Result::ok).unwrap_or(0);
                let children = read("children");
                left.extend(children.split_whitespace().flat_map(str::parse::<i32>));
            }
        }
        Duration::from_nanos(nanos)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When the system does not say how it ended.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(status)) => status,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        if let Some(pid) = self.pid.filter(|_| !thread.is_finished()) {
            // It may have ended in this moment: its number is kept until it was waited for, which the thread does.
            let _ = kill_process(pid, Signal::KILL);
        }
        // Its end is of no more interest.
        let _ = thread.join();
    }
}
