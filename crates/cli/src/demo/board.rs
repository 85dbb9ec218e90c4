//! What the demo's threads tell each other while it runs: counts and signals, all atomic.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Counts of one policy.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Clients that the server takes for connected.
    pub(super) admitted: AtomicU32,
    /// Clients that are connected by their own account.
    pub(super) connected: AtomicU32,
    /// Messages that the server has sent.
    pub(super) sent: AtomicU64,
    /// Messages that have arrived.
    pub(super) arrived: AtomicU64,
    /// Those of them that came after their deadline.
    pub(super) late: AtomicU64,
}

/// Everything that is shared.
#[derive(Debug)]
pub(super) struct Board {
    /// A policy each.
    pub(super) lanes: Vec<Counts>,
    /// When the first message is due, by the common clock; 0 until all are connected.
    start_nanos: AtomicU64,
    /// No more messages are to be sent.
    halt: AtomicBool,
    /// The server has sent all that it will.
    sent_all: AtomicBool,
    /// Everybody goes home.
    stop: AtomicBool,
}

impl Board {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            lanes: (0..lanes).map(|_| Counts::default()).collect(),
            start_nanos: AtomicU64::new(0),
            halt: AtomicBool::new(false),
            sent_all: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        }
    }

    /// Whether every client of every policy is connected.
    pub(super) fn are_connected(&self, clients: u32) -> bool {
        self.lanes
            .iter()
            .all(|lane| get32(&lane.connected) >= clients && get32(&lane.admitted) >= clients)
    }

    /// Clients that are not connected yet under some policy.
    pub(super) fn missing(&self, clients: u32) -> u32 {
        let ready = |lane: &Counts| get32(&lane.connected).min(get32(&lane.admitted));
        let least = self.lanes.iter().map(ready).min().unwrap_or(0);
        clients.saturating_sub(least)
    }

    /// Whether every message that was sent has arrived.
    pub(super) fn have_arrived(&self) -> bool {
        self.lanes
            .iter()
            .all(|lane| get(&lane.arrived) >= get(&lane.sent))
    }

    pub(super) fn start_at(&self, nanos: u64) {
        self.start_nanos.store(nanos, Ordering::Relaxed);
    }

    /// When the first message is due; `None` until that is known.
    pub(super) fn start_nanos(&self) -> Option<u64> {
        Some(get(&self.start_nanos)).filter(|&nanos| nanos > 0)
    }

    pub(super) fn halt(&self) {
        self.halt.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed)
    }

    /// The counts of what was sent are final.
    pub(super) fn on_sent_all(&self) {
        self.sent_all.store(true, Ordering::Release);
    }

    pub(super) fn has_sent_all(&self) -> bool {
        self.sent_all.load(Ordering::Acquire)
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// For threads that only need the signal to stop.
    pub(super) const fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// Stops everybody when it goes out of scope, also by a panic: no thread waits for one that has gone.
    pub(super) const fn stop_on_drop(&self) -> StopOnDrop<'_> {
        StopOnDrop(self)
    }
}

/// See [`Board::stop_on_drop`].
pub(super) struct StopOnDrop<'a>(&'a Board);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Reads a count.
pub(super) fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// Reads a count.
pub(super) fn get32(count: &AtomicU32) -> u32 {
    count.load(Ordering::Relaxed)
}

/// Counts one more. Each count has one writer.
pub(super) fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// Counts one more. Each count has one writer.
pub(super) fn add32(count: &AtomicU32) {
    count.fetch_add(1, Ordering::Relaxed);
}
