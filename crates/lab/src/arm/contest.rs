//! Plays the same messages through several arms at the same time, and takes down what arrived when.
//!
//! Each arm has two threads, one a side. When all have connected (or had time to), a common beginning is set: message `number`
//! of flow `flow` is sent at the same instant through every arm, so that all meet the same network. Latency is from the call of
//! [`Side::send`] to the arrival of the whole message, on this machine's clock, which both sides share.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::{Arm, ArmError, Places, Sender, Side, Task};
use crate::chance::{Chance, Purpose};

/// What is played.
#[derive(Debug, Clone)]
pub struct Contest {
    /// The messages.
    pub task: Task,
    /// Messages of each flow.
    pub messages: u32,
    /// How long connecting may take.
    pub connect_max: Duration,
    /// After the last message, how long others may still arrive.
    pub drain: Duration,
    /// Repeats the instants at which messages are sent.
    pub seed: u64,
}

/// An arm, and where it plays.
pub struct Entry<'a> {
    /// The arm.
    pub arm: &'a dyn Arm,
    /// Where its sides are.
    pub places: Places,
    /// Moves a side's thread to where it belongs (a network namespace), before the side is made.
    pub enter: &'a (dyn Fn(Sender) -> std::io::Result<()> + Sync),
}

/// What became of an arm's messages.
#[derive(Debug, Clone)]
pub struct Played {
    /// By flow, then by message: microseconds from sending to arrival, [`NEVER`] for what did not arrive.
    pub latencies_us: Vec<Vec<u32>>,
    /// Messages that the arm did not take; they are among those that did not arrive.
    pub refused: u64,
    /// Messages that came twice.
    pub duplicates: u64,
    /// Messages that were not as they were sent.
    pub corrupt: u64,
    /// Flows that had no connection when the messages began.
    pub unconnected: u32,
    /// Time that both sides' threads computed, in the kernel too, while messages were sent and arrived.
    pub cpu: Duration,
    /// How late messages were sent, at worst.
    pub lateness_max: Duration,
    /// What the sender's side and the receiver's side say of themselves.
    pub counters: [Vec<(&'static str, f64)>; 2],
}

/// A message that did not arrive.
pub const NEVER: u32 = u32::MAX;

/// Bytes that a message must have at least: the stamp.
pub const MESSAGE_MIN: usize = STAMP;
const STAMP: usize = 20;

/// Between the last connection and the first message.
const SETTLE: Duration = Duration::from_millis(200);
/// Longest time between two looks at what other threads say.
const LOOK: Duration = Duration::from_millis(20);

/// What the threads of a contest know of each other.
struct Board {
    /// The beginning of time.
    base: Instant,
    /// By arm, then by side: connected flows.
    ready: Vec<[AtomicU32; 2]>,
    /// Nanoseconds after `base` of the first message; 0: not known yet.
    begin_ns: AtomicU64,
    is_stopped: AtomicBool,
}

/// What a contest tells while it runs.
#[derive(Debug, Clone, Copy)]
pub enum Phase {
    /// So many of all flows are connected.
    Connecting(u32),
    /// The messages begin at this instant.
    Begins(Instant),
    /// Messages have been sent for so long.
    Sending(Duration),
}

/// Plays it. `watch` hears how far it is, about fifty times a second, and can end it by returning false.
///
/// # Errors
/// When a side of an arm cannot be made or fails as a whole.
pub fn play(
    contest: &Contest,
    entries: &[Entry<'_>],
    mut watch: impl FnMut(Phase) -> bool,
) -> Result<Vec<Played>, ArmError> {
    let board = Board {
        base: Instant::now(),
        ready: entries.iter().map(|_| Default::default()).collect(),
        begin_ns: AtomicU64::new(0),
        is_stopped: AtomicBool::new(false),
    };
    let board = &board;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            for side in [Sender::Server, Sender::Client] {
                let player = Player {
                    contest,
                    entry,
                    board,
                    number,
                    side,
                };
                let name = format!("{} {}", entry.arm.name(), side.name());
                let thread = thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, move || player.run());
                match thread {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        board.is_stopped.store(true, Ordering::Relaxed);
                        return Err(ArmError::system("starting a thread")(error));
                    }
                }
            }
        }
        conduct(contest, entries, board, &mut watch);
        collect(threads, contest)
    })
}

/// The calling thread's part: says when it begins, and waits for the end.
fn conduct(
    contest: &Contest,
    entries: &[Entry<'_>],
    board: &Board,
    watch: &mut impl FnMut(Phase) -> bool,
) {
    let flows: u32 = entries.iter().map(|entry| entry.places.flows()).sum();
    let give_up = board.base + contest.connect_max;
    loop {
        let ready = board
            .ready
            .iter()
            .map(|[a, b]| a.load(Ordering::Relaxed).min(b.load(Ordering::Relaxed)));
        let ready: u32 = ready.sum();
        if board.is_stopped.load(Ordering::Relaxed) {
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
    let begin = Instant::now() + SETTLE;
    watch(Phase::Begins(begin));
    let begin_ns = begin.duration_since(board.base).as_nanos() as u64;
    board.begin_ns.store(begin_ns, Ordering::Relaxed);
    let end = begin + contest.length() + contest.drain;
    while Instant::now() < end && !board.is_stopped.load(Ordering::Relaxed) {
        if !watch(Phase::Sending(begin.elapsed())) {
            board.is_stopped.store(true, Ordering::Relaxed);
        }
        thread::sleep(LOOK);
    }
}

type Half = Result<HalfPlayed, ArmError>;

/// What one side knows at the end.
struct HalfPlayed {
    sender: Option<Sent>,
    receiver: Option<Received>,
    unconnected: u32,
    cpu: Duration,
    counters: Vec<(&'static str, f64)>,
}

fn collect(
    threads: Vec<ScopedJoinHandle<'_, Half>>,
    contest: &Contest,
) -> Result<Vec<Played>, ArmError> {
    let mut halves = Vec::new();
    for thread in threads {
        match thread.join() {
            Ok(half) => halves.push(half),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let mut played = Vec::new();
    let mut halves = halves.into_iter();
    while let (Some(server), Some(client)) = (halves.next(), halves.next()) {
        let (server, client) = (server?, client?);
        let (sender, receiver) = match contest.task.sender {
            Sender::Server => (server, client),
            Sender::Client => (client, server),
        };
        let sent = sender.sender.unwrap_or_default();
        let received = receiver.receiver.unwrap_or_default();
        played.push(Played {
            latencies_us: received.latencies_us,
            refused: sent.refused,
            duplicates: received.duplicates,
            corrupt: received.corrupt,
            unconnected: sender.unconnected.max(receiver.unconnected),
            cpu: sender.cpu + receiver.cpu,
            lateness_max: sent.lateness_max,
            counters: [sender.counters, receiver.counters],
        });
    }
    Ok(played)
}

impl Contest {
    /// From the first message to the last, at most.
    pub fn length(&self) -> Duration {
        self.task.interval * self.messages
    }

    /// When in each interval each flow sends: drawn, so that flows do not send together.
    pub fn phases(&self, flows: u32) -> Vec<Duration> {
        let chance = Chance::new(self.seed, u64::MAX);
        let interval_us = (self.task.interval.as_micros() as u64).max(1);
        let phase = |flow| chance.below(interval_us, Purpose::Offset, u64::from(flow), 0);
        (0..flows)
            .map(|flow| Duration::from_micros(phase(flow)))
            .collect()
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
}

struct Player<'a> {
    contest: &'a Contest,
    entry: &'a Entry<'a>,
    board: &'a Board,
    number: usize,
    side: Sender,
}

impl Player<'_> {
    fn run(&self) -> Half {
        // Whoever fails ends it for all: a contest without one of them is another contest.
        let result = self.play();
        if result.is_err() {
            self.board.is_stopped.store(true, Ordering::Relaxed);
        }
        result
    }

    fn play(&self) -> Half {
        (self.entry.enter)(self.side).map_err(ArmError::system("entering a network namespace"))?;
        let (places, task) = (&self.entry.places, &self.contest.task);
        let mut side = match self.side {
            Sender::Server => self.entry.arm.server(places, task)?,
            Sender::Client => self.entry.arm.client(places, task)?,
        };
        let begin = self.connect(&mut *side)?;
        let unconnected = places.flows() - side.ready().min(places.flows());
        let cpu_before = thread_cpu();
        let (mut sender, mut receiver) = (None, None);
        if let Some(begin) = begin {
            if self.side == task.sender {
                sender = Some(self.send_all(&mut *side, begin)?);
            } else {
                receiver = Some(self.receive_all(&mut *side, begin)?);
            }
        }
        Ok(HalfPlayed {
            sender,
            receiver,
            unconnected,
            cpu: thread_cpu().saturating_sub(cpu_before),
            counters: side.counters(),
        })
    }

    /// Drives the side until the messages begin; None when they never do.
    fn connect(&self, side: &mut dyn Side) -> Result<Option<Instant>, ArmError> {
        loop {
            if self.board.is_stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match self.board.begin_ns.load(Ordering::Relaxed) {
                0 => {}
                begin_ns => return Ok(Some(self.board.base + Duration::from_nanos(begin_ns))),
            }
            side.drive(Instant::now() + LOOK, &mut |_, _| {})?;
            self.board.ready[self.number][self.side as usize]
                .store(side.ready(), Ordering::Relaxed);
        }
    }

    fn send_all(&self, side: &mut dyn Side, begin: Instant) -> Result<Sent, ArmError> {
        let Contest { task, messages, .. } = self.contest;
        let flows = self.entry.places.flows();
        let mut phases: Vec<_> = self.contest.phases(flows).into_iter().zip(0..).collect();
        phases.sort_unstable();
        let mut message: Vec<u8> = (0..task.message_bytes).map(filling).collect();
        let mut sent = Sent::default();
        let mut nothing = |_: u32, _: &[u8]| {};
        'all: for number in 0..*messages {
            let lap = begin + task.interval * number;
            for &(phase, flow) in &phases {
                let due = lap + phase;
                while Instant::now() < due {
                    if self.board.is_stopped.load(Ordering::Relaxed) {
                        break 'all;
                    }
                    side.drive(due.min(Instant::now() + LOOK), &mut nothing)?;
                }
                let now = Instant::now();
                sent.lateness_max = sent.lateness_max.max(now - due);
                Stamp {
                    flow,
                    number,
                    length: task.message_bytes as u32,
                    sent_ns: now.duration_since(self.board.base).as_nanos() as u64,
                }
                .write(&mut message);
                if side.send(flow, &message).is_err() {
                    sent.refused += 1;
                }
            }
        }
        self.drain(side, begin, &mut nothing)?;
        Ok(sent)
    }

    fn receive_all(&self, side: &mut dyn Side, begin: Instant) -> Result<Received, ArmError> {
        let flows = self.entry.places.flows() as usize;
        let mut received = Received {
            latencies_us: vec![vec![NEVER; self.contest.messages as usize]; flows],
            ..Received::default()
        };
        let base = self.board.base;
        let bytes = self.contest.task.message_bytes;
        let mut on_message = |flow: u32, message: &[u8]| {
            let now_ns = base.elapsed().as_nanos() as u64;
            received.record(now_ns, flow, message, bytes);
        };
        self.drain(side, begin, &mut on_message)?;
        Ok(received)
    }

    /// Drives the side until the end.
    fn drain(
        &self,
        side: &mut dyn Side,
        begin: Instant,
        on_message: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), ArmError> {
        let end = begin + self.contest.length() + self.contest.drain;
        while Instant::now() < end && !self.board.is_stopped.load(Ordering::Relaxed) {
            side.drive(end.min(Instant::now() + LOOK), on_message)?;
        }
        Ok(())
    }
}

/// A content that is nowhere the same.
const fn filling(place: usize) -> u8 {
    (place.wrapping_mul(167) >> 3) as u8
}

/// What a message says of itself.
struct Stamp {
    flow: u32,
    number: u32,
    length: u32,
    sent_ns: u64,
}

impl Stamp {
    fn write(&self, message: &mut [u8]) {
        message[..4].copy_from_slice(&self.flow.to_le_bytes());
        message[4..8].copy_from_slice(&self.number.to_le_bytes());
        message[8..12].copy_from_slice(&self.length.to_le_bytes());
        message[12..STAMP].copy_from_slice(&self.sent_ns.to_le_bytes());
    }

    fn read(message: &[u8]) -> Option<Self> {
        let stamp = message.first_chunk::<STAMP>()?;
        let word = |at: usize| {
            u32::from_le_bytes([stamp[at], stamp[at + 1], stamp[at + 2], stamp[at + 3]])
        };
        Some(Self {
            flow: word(0),
            number: word(4),
            length: word(8),
            sent_ns: u64::from(word(12)) | u64::from(word(16)) << 32,
        })
    }
}

#[derive(Debug, Default)]
struct Sent {
    refused: u64,
    lateness_max: Duration,
}

#[derive(Debug, Default)]
struct Received {
    latencies_us: Vec<Vec<u32>>,
    duplicates: u64,
    corrupt: u64,
}

impl Received {
    fn record(&mut self, now_ns: u64, flow: u32, message: &[u8], bytes: usize) {
        let stamp = Stamp::read(message).filter(|stamp| {
            let content = message[STAMP..].iter().enumerate();
            stamp.flow == flow
                && message.len() == bytes
                && stamp.length as usize == bytes
                && content
                    .into_iter()
                    .all(|(place, &byte)| byte == filling(place + STAMP))
        });
        let place = stamp.as_ref().and_then(|stamp| {
            let flow = self.latencies_us.get_mut(stamp.flow as usize)?;
            flow.get_mut(stamp.number as usize)
        });
        match (stamp, place) {
            (Some(stamp), Some(place)) if *place == NEVER => {
                let latency_us = now_ns.saturating_sub(stamp.sent_ns) / 1000;
                *place = latency_us.min(u64::from(NEVER - 1)) as u32;
            }
            (Some(_), Some(_)) => self.duplicates += 1,
            _ => self.corrupt += 1,
        }
    }
}

/// Time that the calling thread has computed.
fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
