//! The server's side of one session: answers probes at once, remembers what has arrived until the client asks, takes its trace.
//! It reads no clock and sends nothing itself.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_proto::Instant;

use super::options::{BYTES_MAX, BYTES_MIN};
use super::packet::MeasuredPacket;
use super::wire::{Arrival, Down, Probe, RECEIPT_MAX, Receipt, Terms, Up};

/// Probes a second that are answered: more than a game's messages come to, and a megabyte of echoes.
const PROBES_PER_S: u64 = 1000;
/// Probes that are answered at once.
const PROBES_BURST: u64 = 1000;
/// Rows that a trace may have at its beginning; as many a second as there are probes come on top.
const ROWS_BURST: u64 = 2000;
/// Traces that a session may begin: a game measures once or a few times; more is somebody who fills disks.
const TRACES_MAX: u32 = 64;

/// The server's side of one session.
#[derive(Debug)]
pub(crate) struct Responder {
    began: Instant,
    /// Probes counted so far, with the bucket's refill taken off.
    level: u64,
    refilled: Instant,
    arrivals: VecDeque<Remembered>,
    forgotten: u32,
    echoes: u32,
    traces: u32,
    /// Rows of all traces of the session.
    rows: u64,
    trace: Trace,
}

/// An arrival that the client has not asked for.
#[derive(Debug)]
struct Remembered {
    arrival: Arrival,
    /// Its echo has not left: how long it was held is not known yet.
    is_waiting: bool,
}

/// The trace that the client sends.
#[derive(Debug)]
struct Trace {
    began: Instant,
    rows: u32,
    last_sent: Duration,
    /// A part of it was kept, and its end was not.
    is_open: bool,
    /// Nothing of it is kept any more.
    is_over: bool,
}

impl Trace {
    const fn new(now: Instant) -> Self {
        Self {
            began: now,
            rows: 0,
            last_sent: Duration::ZERO,
            is_open: false,
            is_over: false,
        }
    }
}

/// What follows from a message of the client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) reply: Option<Down>,
    /// A part of the trace that is to be kept (it was checked), and whether it is the last.
    pub(crate) part: Option<(Vec<MeasuredPacket>, bool)>,
}

/// Packets of the session that have come, and copies among them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) copies: u64,
}

impl Responder {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            began: now,
            level: 0,
            refilled: now,
            arrivals: VecDeque::new(),
            forgotten: 0,
            echoes: 0,
            traces: 0,
            rows: 0,
            trace: Trace::new(now),
        }
    }

    /// A probe has come: its echo, of the same size; `None` when there is none for it.
    pub(crate) fn handle_probe(&mut self, now: Instant, bytes: &[u8]) -> Option<(u32, Vec<u8>)> {
        // Smaller ones would be many in a packet.
        if !(BYTES_MIN..=BYTES_MAX).contains(&bytes.len()) {
            return None;
        }
        let Probe::Up { number } = Probe::decode(bytes)? else {
            return None;
        };
        if self.arrivals.len() >= RECEIPT_MAX {
            self.arrivals.pop_front();
            self.forgotten = self.forgotten.saturating_add(1);
        }
        let at_us = now.as_micros() as u32;
        let is_waiting = self.may_answer(now);
        self.arrivals.push_back(Remembered {
            arrival: Arrival {
                number,
                at_us,
                held_us: None,
            },
            is_waiting,
        });
        if !is_waiting {
            return None;
        }
        let echo = Probe::Down {
            number,
            arrived_us: at_us,
            order: self.echoes,
        };
        self.echoes = self.echoes.wrapping_add(1);
        Some((number, echo.encode(bytes.len())))
    }

    fn may_answer(&mut self, now: Instant) -> bool {
        let refill = now.since(self.refilled).as_millis() as u64 * PROBES_PER_S / 1000;
        if refill > 0 {
            self.level = self.level.saturating_sub(refill);
            self.refilled = now;
        }
        let may = self.level < PROBES_BURST;
        self.level += u64::from(may);
        may
    }

    /// The echo of a probe has left, or (`None`) never will.
    pub(crate) fn on_departed(&mut self, number: u32, at: Option<Instant>) {
        // The newest are at the end.
        let mut newest_first = self.arrivals.iter_mut().rev();
        if let Some(found) = newest_first.find(|found| found.arrival.number == number) {
            found.is_waiting = false;
            let held_us = |at: Instant| (at.as_micros() as u32).wrapping_sub(found.arrival.at_us);
            found.arrival.held_us = at.map(held_us);
        }
    }

    /// Another message of the client has come.
    pub(crate) fn handle_control(
        &mut self,
        now: Instant,
        message: Up,
        terms: Terms,
        counts: Counts,
    ) -> Answer {
        match message {
            Up::Ask => {
                self.traces = self.traces.saturating_add(1);
                self.trace = Trace::new(now);
                self.arrivals.clear();
                let is_on = terms.is_on && self.traces <= TRACES_MAX;
                Answer {
                    reply: Some(Down::Terms(Terms { is_on, ..terms })),
                    part: None,
                }
            }
            Up::Receipt { ask } => Answer {
                reply: Some(Down::Receipt(Receipt {
                    ask,
                    forgotten: std::mem::take(&mut self.forgotten),
                    packets: counts.packets,
                    copies: counts.copies,
                    arrivals: self.report(),
                })),
                part: None,
            },
            Up::Rows { rows, is_last } => {
                let is_kept = terms.is_on && self.may_keep(now, &rows, terms.packets_max);
                self.trace.is_over |= is_last || !is_kept;
                // What was begun ends, too, where a part is refused.
                let part = match is_kept {
                    true => Some((rows, is_last)),
                    false => self.trace.is_open.then(|| (Vec::new(), true)),
                };
                self.trace.is_open = is_kept && !is_last;
                Answer {
                    reply: Some(Down::Kept { is_kept }),
                    part,
                }
            }
        }
    }

    /// What has arrived. Probes whose echoes have not left are told of again: then with how long those were held.
    fn report(&mut self) -> Vec<Arrival> {
        let arrivals = self.arrivals.iter().map(|found| found.arrival).collect();
        self.arrivals.retain(|found| found.is_waiting);
        arrivals
    }

    /// Whether a part is the next of a trace, in order, within bounds, and no larger than what can have been measured.
    fn may_keep(&mut self, now: Instant, rows: &[MeasuredPacket], packets_max: u32) -> bool {
        let plausible = ROWS_BURST + PROBES_PER_S * now.since(self.began).as_secs();
        let session = self.rows + rows.len() as u64;
        let lasts = now.since(self.trace.began);
        let total = self.trace.rows.saturating_add(rows.len() as u32);
        let first = rows.first().map_or(self.trace.last_sent, |row| row.sent);
        let last = rows.last().map_or(self.trace.last_sent, |row| row.sent);
        let is_next = !self.trace.is_over
            && first >= self.trace.last_sent
            && self.traces <= TRACES_MAX
            && rows.is_sorted_by_key(|row| row.sent)
            // Clocks run unequally, and rows are written before they are sent.
            && last <= lasts + lasts / 100;
        let fits = total <= packets_max && session <= plausible;
        if is_next && fits {
            self.rows = session;
            self.trace.rows = total;
            self.trace.last_sent = last;
        }
        is_next && fits
    }

    /// Whether parts of a trace were kept and its end has not come.
    pub(crate) const fn has_open_trace(&self) -> bool {
        self.trace.is_open
    }
}
