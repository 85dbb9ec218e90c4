//! Plays the same messages through several arms at the same time, and takes down what arrived when.
//!
//! Each arm has two threads, one a side. When all have connected (or had time to), a common beginning is set: every message is
//! sent at the same instant through every arm, so that all meet the same network. Latency is from the call of
//! [`Side::send`] to the arrival of the whole message, on this machine's clock, which both sides share.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::stamp::{Arrivals, NEVER, Pen, Stamp, micros};
use super::{Arm, ArmError, Exchange, Places, Sender, Side, Way, Workload};

/// An arm, and where it plays.
pub struct Entry<'a> {
    /// The arm.
    pub arm: &'a dyn Arm,
    /// Where its sides are.
    pub places: Places,
    /// Moves a side's thread to where it belongs (a network namespace), before the side is made.
    pub enter: &'a (dyn Fn(Sender) -> std::io::Result<()> + Sync),
}

/// Between the last connection and the first message, at least: what transports find out about a path of their own accord (its MTU, say) is done by then, and counted
/// as no message's. Messages begin at a multiple of it, so that runs one after the other, which connect within the same one, meet the same fates of a network.
const SETTLE: Duration = Duration::from_secs(2);
/// So long before the first message it is counted what has been used till then.
const COUNTED: Duration = Duration::from_millis(100);
/// Longest time between two looks at what other threads say.
const LOOK: Duration = Duration::from_millis(20);

/// What the threads of a run know of each other.
struct Board {
    /// The beginning of time.
    base: Instant,
    /// By arm, then by side: connected flows.
    ready: Vec<[AtomicU32; 2]>,
    /// By arm: whether one of its sides can no longer play.
    is_failed: Vec<AtomicBool>,
    /// Nanoseconds after `base` of the first message; 0: not known yet.
    begin_ns: AtomicU64,
    is_stopped: AtomicBool,
}

impl Board {
    /// Flows of an arm that are connected at both sides.
    fn ready(&self, number: usize) -> u32 {
        let [server, client] = &self.ready[number];
        let server = server.load(Ordering::Relaxed);
        server.min(client.load(Ordering::Relaxed))
    }

    fn is_failed(&self, number: usize) -> bool {
        self.is_failed[number].load(Ordering::Relaxed)
    }

    /// Whether it was ended, or nobody is left to play.
    fn is_over(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
            || (0..self.is_failed.len()).all(|number| self.is_failed(number))
    }
}

/// What a run tells while it lasts.
#[derive(Debug, Clone, Copy)]
pub enum Phase {
    /// So many of all flows are connected.
    Connecting(u32),
    /// All that will be connected is, or time for it is over; messages have not begun.
    Settling,
    /// The messages begin at this instant, in a moment: what has been counted till then is not theirs.
    Begins(Instant),
    /// Messages have been sent for so long.
    Sending(Duration),
}

/// Plays it: what became of each entry, in their order. An arm of which a side cannot be made or fails as a whole is an error; the
/// others play on. `watch` hears how far it is, about fifty times a second, and can end it by returning false.
pub fn play<W: Workload>(
    workload: &W,
    entries: &[Entry<'_>],
    mut watch: impl FnMut(Phase) -> bool,
) -> Vec<Result<W::Played, ArmError>> {
    let board = Board {
        base: Instant::now(),
        ready: entries.iter().map(|_| Default::default()).collect(),
        is_failed: entries.iter().map(|_| AtomicBool::default()).collect(),
        begin_ns: AtomicU64::new(0),
        is_stopped: AtomicBool::new(false),
    };
    let board = &board;
    let exchanges = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            for side in SIDES {
                let player = Player {
                    workload,
                    entry,
                    board,
                    number,
                    side,
                };
                let name = format!("{} {}", entry.arm.name(), side.name());
                let thread = thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, move || player.run());
                if thread.is_err() {
                    board.is_failed[number].store(true, Ordering::Relaxed);
                }
                let name = entry.arm.name();
                threads.push(thread.map_err(ArmError::system(name, "starting a thread")));
            }
        }
        conduct(workload, entries, board, &mut watch);
        collect(threads)
    });
    let exchanges = exchanges.into_iter();
    exchanges
        .map(|exchange| Ok(workload.played(exchange?)))
        .collect()
}

/// In the order of their numbers.
const SIDES: [Sender; 2] = [Sender::Server, Sender::Client];

/// The calling thread's part: says when it begins, and waits for the end.
fn conduct<W: Workload>(
    workload: &W,
    entries: &[Entry<'_>],
    board: &Board,
    watch: &mut impl FnMut(Phase) -> bool,
) {
    let give_up = board.base + workload.connect_max();
    loop {
        let (mut ready, mut flows) = (0, 0);
        for (number, entry) in entries.iter().enumerate() {
            if !board.is_failed(number) {
                ready += board.ready(number);
                flows += entry.places.flows();
            }
        }
        if board.is_over() {
            return;
        }
        if !watch(Phase::Connecting(ready)) {
            board.is_stopped.store(true, Ordering::Relaxed);
            return;
        }
        if ready >= flows || Instant::now() > give_up {
            break;
        }
        thread::sleep(LOOK);
    }
    let begin = board.base + begins_after(board.base.elapsed());
    let begin_ns = begin.duration_since(board.base).as_nanos() as u64;
    board.begin_ns.store(begin_ns, Ordering::Relaxed);
    while Instant::now() + COUNTED < begin {
        if !watch(Phase::Settling) {
            board.is_stopped.store(true, Ordering::Relaxed);
        }
        if board.is_over() {
            return;
        }
        let left = begin.saturating_duration_since(Instant::now() + COUNTED);
        thread::sleep(LOOK.min(left));
    }
    watch(Phase::Begins(begin));
    let end = begin + workload.length() + workload.drain();
    while Instant::now() < end && !board.is_over() {
        if !watch(Phase::Sending(begin.elapsed())) {
            board.is_stopped.store(true, Ordering::Relaxed);
        }
        thread::sleep(LOOK);
    }
}

/// When messages begin where the last connection was there so long after the beginning, since that.
fn begins_after(connected: Duration) -> Duration {
    let settled = connected + SETTLE;
    let laps = settled.as_nanos().div_ceil(SETTLE.as_nanos());
    SETTLE * u32::try_from(laps).unwrap_or(u32::MAX)
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it did not say why")
}

type Half = Result<HalfPlayed, ArmError>;

/// What one side knows at the end.
#[derive(Default)]
struct HalfPlayed {
    /// Of its own messages.
    sent_us: Vec<Vec<u32>>,
    refused: u64,
    lateness_max: Duration,
    /// Of the other side's messages.
    arrivals: Arrivals,
    /// By receiving flow: messages that the server passed on.
    relayed: Vec<Arrivals>,
    unconnected: u32,
    cpu: Duration,
    counters: Vec<(&'static str, f64)>,
}

/// By arm; threads are in the order of arms, then of sides.
fn collect(
    threads: Vec<Result<ScopedJoinHandle<'_, Half>, ArmError>>,
) -> Vec<Result<Exchange, ArmError>> {
    let halves = threads.into_iter().map(|thread| match thread?.join() {
        Ok(half) => half,
        Err(panic) => panic::resume_unwind(panic),
    });
    let mut halves = halves.collect::<Vec<_>>().into_iter();
    let mut exchanges = Vec::new();
    while let (Some(server), Some(client)) = (halves.next(), halves.next()) {
        exchanges.push(server.and_then(|server| Ok(join(server, client?))));
    }
    exchanges
}

fn join(server: HalfPlayed, client: HalfPlayed) -> Exchange {
    let relayed = || client.relayed.iter();
    let from_server = Way {
        sent_us: server.sent_us,
        refused: server.refused,
        duplicates: client.arrivals.duplicates + relayed().map(|flow| flow.duplicates).sum::<u64>(),
        corrupt: client.arrivals.corrupt + relayed().map(|flow| flow.corrupt).sum::<u64>(),
        latencies_us: client.arrivals.latencies_us,
    };
    let from_clients = Way {
        sent_us: client.sent_us,
        latencies_us: server.arrivals.latencies_us,
        refused: client.refused,
        duplicates: server.arrivals.duplicates,
        corrupt: server.arrivals.corrupt,
    };
    let relayed = client.relayed.into_iter();
    Exchange {
        ways: [from_server, from_clients],
        relayed_us: relayed.map(|flow| flow.latencies_us).collect(),
        unconnected: server.unconnected.max(client.unconnected),
        cpu: server.cpu + client.cpu,
        lateness_max: server.lateness_max.max(client.lateness_max),
        counters: [server.counters, client.counters],
    }
}

impl Sender {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }

    /// The side across.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Server => Self::Client,
            Self::Client => Self::Server,
        }
    }
}

struct Player<'a, W> {
    workload: &'a W,
    entry: &'a Entry<'a>,
    board: &'a Board,
    number: usize,
    side: Sender,
}

impl<W: Workload> Player<'_, W> {
    fn run(&self) -> Half {
        // Of a rival's library, say: its arm's, and nobody else's.
        let played = panic::catch_unwind(AssertUnwindSafe(|| self.play()));
        let result = played.unwrap_or_else(|panic| {
            Err(ArmError::Failed {
                arm: self.entry.arm.name().to_owned(),
                why: format!("it panicked: {}", words(&*panic)),
            })
        });
        if result.is_err() {
            // Its other side has nobody to play with.
            self.board.is_failed[self.number].store(true, Ordering::Relaxed);
        }
        result
    }

    fn play(&self) -> Half {
        (self.entry.enter)(self.side).map_err(ArmError::system(
            self.entry.arm.name(),
            "entering a network namespace",
        ))?;
        let (places, task) = (&self.entry.places, self.workload.task());
        let mut side = match self.side {
            Sender::Server => self.entry.arm.server(places, task)?,
            Sender::Client => self.entry.arm.client(places, task)?,
        };
        let begin = self.connect(&mut *side)?;
        let unconnected = places.flows() - side.ready().min(places.flows());
        let programs_before = side.programs_cpu();
        let thread_before = thread_cpu();
        let half = match begin {
            Some(begin) => self.exchange(&mut *side, begin)?,
            None => HalfPlayed::default(),
        };
        let thread = thread_cpu().saturating_sub(thread_before);
        let programs = side.programs_cpu().saturating_sub(programs_before);
        Ok(HalfPlayed {
            unconnected,
            cpu: thread + programs,
            counters: side.counters(),
            ..half
        })
    }

    /// Drives the side until the messages begin, or are about to; None when they never do.
    fn connect(&self, side: &mut dyn Side) -> Result<Option<Instant>, ArmError> {
        loop {
            if self.is_stopped() {
                return Ok(None);
            }
            let mut until = Instant::now() + LOOK;
            let begin_ns = self.board.begin_ns.load(Ordering::Relaxed);
            if begin_ns > 0 {
                let begin = self.board.base + Duration::from_nanos(begin_ns);
                if Instant::now() + COUNTED >= begin {
                    return Ok(Some(begin));
                }
                until = until.min(begin - COUNTED);
            }
            side.drive(until, &mut |_, _| {})?;
            self.board.ready[self.number][self.side as usize]
                .store(side.ready(), Ordering::Relaxed);
        }
    }

    /// Sends what is due, and receives until the end.
    fn exchange(&self, side: &mut dyn Side, begin: Instant) -> Result<HalfPlayed, ArmError> {
        let flows = self.entry.places.flows();
        let mut ledger = self.ledger();
        let mut pen = Pen::new();
        for due in self.workload.dues(self.side, flows) {
            let at = begin + due.at;
            while Instant::now() < at {
                if self.is_stopped() {
                    return Ok(ledger.half);
                }
                ledger.drive(side, at.min(Instant::now() + LOOK))?;
            }
            let now = Instant::now();
            let half = &mut ledger.half;
            half.lateness_max = half.lateness_max.max(now - at);
            let sent_ns = now.duration_since(self.board.base).as_nanos() as u64;
            let message = pen.write(&due, sent_ns);
            if side.send(due.flow, message).is_err() {
                half.refused += 1;
                continue;
            }
            let sent_us = micros(now.duration_since(begin).as_nanos() as u64);
            half.sent_us[due.flow as usize][due.number as usize] = sent_us;
        }
        let end = begin + self.workload.length() + self.workload.drain();
        while Instant::now() < end && !self.is_stopped() {
            ledger.drive(side, end.min(Instant::now() + LOOK))?;
        }
        Ok(ledger.half)
    }

    fn ledger(&self) -> Ledger {
        let flows = 0..self.entry.places.flows();
        let of = |side| {
            flows
                .clone()
                .map(move |flow| self.workload.messages(side, flow))
        };
        let is_relayed = self.workload.is_relayed();
        let relayed = match self.side {
            Sender::Client if is_relayed => flows
                .clone()
                .map(|_| Arrivals::new(of(Sender::Client)))
                .collect(),
            _ => Vec::new(),
        };
        Ledger {
            base: self.board.base,
            passes_on: is_relayed && self.side == Sender::Server,
            to_pass_on: Vec::new(),
            half: HalfPlayed {
                sent_us: of(self.side).map(|of| vec![NEVER; of as usize]).collect(),
                arrivals: Arrivals::new(of(self.side.other())),
                relayed,
                ..HalfPlayed::default()
            },
        }
    }

    fn is_stopped(&self) -> bool {
        self.board.is_stopped.load(Ordering::Relaxed) || self.board.is_failed(self.number)
    }
}

/// What a side takes down, and what it is to pass on.
struct Ledger {
    base: Instant,
    passes_on: bool,
    to_pass_on: Vec<(u32, Vec<u8>)>,
    half: HalfPlayed,
}

impl Ledger {
    fn drive(&mut self, side: &mut dyn Side, until: Instant) -> Result<(), ArmError> {
        side.drive(until, &mut |flow, message| self.on_message(flow, message))?;
        for (from, message) in self.to_pass_on.drain(..) {
            for to in 0..self.half.arrivals.latencies_us.len() as u32 {
                if to != from {
                    self.half.refused += u64::from(side.send(to, &message).is_err());
                }
            }
        }
        Ok(())
    }

    fn on_message(&mut self, flow: u32, message: &[u8]) {
        let now_ns = self.base.elapsed().as_nanos() as u64;
        let stamp = Stamp::read(message);
        match (stamp, self.half.relayed.get_mut(flow as usize)) {
            // Nobody gets back what he sent.
            (Some(stamp), Some(relayed)) if stamp.flow != flow => {
                relayed.record(now_ns, Some(stamp));
            }
            (stamp, _) => {
                let own = stamp.filter(|stamp| stamp.flow == flow);
                if own.is_some() && self.passes_on {
                    self.to_pass_on.push((flow, message.to_vec()));
                }
                self.half.arrivals.record(now_ns, own);
            }
        }
    }
}

/// Time that the calling thread has computed.
fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heats that connect about as fast begin at the same time, and what the last to connect does of its own accord is done by then.
    #[test]
    fn messages_begin_at_a_multiple_of_a_settled_time() {
        for (connected_ms, begins_s) in [(0, 2), (1, 4), (1999, 4), (2000, 4), (2001, 6)] {
            let begins = begins_after(Duration::from_millis(connected_ms));
            assert_eq!(begins, Duration::from_secs(begins_s), "{connected_ms}");
        }
    }
}
