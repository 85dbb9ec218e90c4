//! CPU time of a thread, and what it comes to for a datagram.

use std::time::{Duration, Instant};

use punctual_net::udp::SocketStats;
use rustix::time::{ClockId, clock_gettime};

/// Measures the thread that started it.
pub(crate) struct Meter {
    cpu_nanos: u64,
    wall: Instant,
}

/// One run of one loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// CPU time of the server thread, kernel work on its behalf included.
    pub(crate) cpu_nanos: u64,
    /// How long it took.
    pub(crate) wall: Duration,
    /// Datagrams sent and acks received.
    pub(crate) sent: usize,
    /// Acks received.
    pub(crate) acked: usize,
    /// The server's socket.
    pub(crate) stats: SocketStats,
}

impl Meter {
    /// From now on.
    pub(crate) fn start() -> Self {
        Self {
            cpu_nanos: thread_cpu_nanos(),
            wall: Instant::now(),
        }
    }

    /// Until now.
    pub(crate) fn stop(self, sent: usize, acked: usize, stats: SocketStats) -> Measured {
        Measured {
            cpu_nanos: thread_cpu_nanos() - self.cpu_nanos,
            wall: self.wall.elapsed(),
            sent,
            acked,
            stats,
        }
    }
}

impl Measured {
    /// CPU nanoseconds for sending a datagram and receiving its ack.
    pub(crate) fn nanos_each(&self) -> f64 {
        self.cpu_nanos as f64 / self.sent as f64
    }
}

/// Prints a loop's runs as one line of a table.
pub(crate) fn print_row(name: &str, payload: usize, batch: usize, runs: &mut [Measured]) {
    runs.sort_by_key(|run| run.cpu_nanos);
    let (best, median) = (&runs[0], &runs[runs.len() / 2]);
    let per_call = |datagrams: u64, calls: u64| datagrams as f64 / calls.max(1) as f64;
    println!(
        "{name:<10} {payload:>7} {batch:>5} {:>9.0} {:>9.0} {:>8.1} {:>8.1} {:>8} {:>8.2}",
        best.nanos_each(),
        median.nanos_each(),
        per_call(median.stats.datagrams_sent, median.stats.send_syscalls),
        per_call(median.stats.datagrams_received, median.stats.recv_syscalls),
        median.sent - median.acked,
        median.wall.as_secs_f64(),
    );
}

/// The head of that table.
pub(crate) fn print_head() {
    println!(
        "{:<10} {:>7} {:>5} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "loop",
        "payload",
        "batch",
        "best_ns",
        "median_ns",
        "per_send",
        "per_recv",
        "unacked",
        "wall_s"
    );
}

fn thread_cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
