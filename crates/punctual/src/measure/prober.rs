//! The client's side: which probe leaves when, which is sent again, what became of each. It reads no clock and sends nothing
//! itself: [`Prober::poll_output`] says what is to be sent, [`Prober::poll_timeout`] when to come again.
//!
//! Of a probe without an answer the server's receipt says whether it arrived, so that loss is known for each direction. A
//! receipt is asked for three seconds after the probe left: what takes longer counts as lost.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use punctual_proto::Instant;

use super::ledger::{Ledger, Settled, Up as WayUp};
use super::options::MeasureOptions;
use super::report::{Copies, MeasureEnd, MeasureProgress, MeasureState, Measured};
use super::timeout::Timeout;
use super::wire::{Down, PART_MAX, Probe, Receipt, Terms, Up};

/// Until then a server that can measure has said what it allows.
const ASK_TIME: Duration = Duration::from_secs(10);
/// What arrives later than this counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(3);
/// A probe that the session has not let out for so long is left out: it tells of the session, not of the path.
const HELD_MAX: Duration = Duration::from_secs(3);
/// Between two questions for receipts.
const RECEIPT_EVERY: Duration = Duration::from_secs(1);
/// How long the server may take to say that it has kept the last part.
const KEEP_TIME: Duration = Duration::from_secs(20);
/// How long it may take until the last probe is settled: six sendings of three seconds each, three more, and the receipts.
const SETTLE_TIME: Duration = Duration::from_secs(60);
/// Probes that are not settled; no new message begins above it.
const FLIGHTS_MAX: usize = 1024;
/// Settled probes that make a part of the trace worth sending.
const PART_ROWS: usize = 500;

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// On the reliable stream.
    Control(Up),
    /// In a packet of its own, with this number.
    Probe(u32),
    /// Not any more: it has waited for too long.
    Cancel(u32),
}

/// A probe that is not settled.
#[derive(Clone, Copy, Debug)]
struct Flight {
    message: u32,
    index: u8,
    attempt: u8,
    made: Instant,
    departed: Option<Instant>,
    /// When it is sent again; `None` once it was, or has its answer.
    retry_at: Option<Instant>,
    /// The server's clock at its arrival, from the echo or the receipt.
    arrived_us: Option<u32>,
    held: Option<Duration>,
    heard: Option<Instant>,
    /// A receipt has told of it.
    is_reported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Asking {
        until: Instant,
    },
    Measuring {
        next: Instant,
    },
    /// No new messages; what is under way is settled.
    Settling {
        until: Instant,
    },
    Uploading {
        until: Instant,
    },
    Over,
}

/// The client's side of a measurement.
#[derive(Debug)]
pub(crate) struct Prober {
    options: MeasureOptions,
    phase: Phase,
    terms: Option<Terms>,
    began: Instant,
    next_number: u32,
    flights: BTreeMap<u32, Flight>,
    timeout: Timeout,
    receipts: Receipts,
    ledger: Ledger,
    upload: Upload,
    tally: MeasureProgress,
    held: u32,
    is_stopped: bool,
    output: VecDeque<Output>,
    end: Option<MeasureEnd>,
}

/// Questions for receipts, and what has come of them.
#[derive(Debug, Default)]
struct Receipts {
    asks: u32,
    asked_at: Option<Instant>,
    /// The question that has no answer yet.
    is_open: bool,
    has_forgotten: bool,
    /// One more than the largest probe number, and the largest echo order, that have arrived.
    next_up: u32,
    next_down: u32,
    reordered_up: u32,
    reordered_down: u32,
    copies_up: Copies,
}

/// Parts of the trace on their way to the server.
#[derive(Debug, Default)]
struct Upload {
    /// Rows of those that it has not answered.
    open: VecDeque<u32>,
    kept: u32,
    is_refused: bool,
}

impl Prober {
    /// Begins by asking the server. The options were checked.
    pub(crate) fn new(now: Instant, options: MeasureOptions) -> Self {
        Self {
            options,
            phase: Phase::Asking {
                until: now + ASK_TIME,
            },
            terms: None,
            began: now,
            next_number: 0,
            flights: BTreeMap::new(),
            timeout: Timeout::default(),
            receipts: Receipts::default(),
            ledger: Ledger::default(),
            upload: Upload::default(),
            tally: MeasureProgress::new(),
            held: 0,
            is_stopped: false,
            output: VecDeque::from([Output::Control(Up::Ask)]),
            end: None,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.options.bytes
    }

    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// How far it is.
    pub(crate) fn progress(&self) -> MeasureProgress {
        let state = match self.phase {
            Phase::Asking { .. } => MeasureState::Asking,
            Phase::Measuring { .. } => MeasureState::Measuring,
            Phase::Settling { .. } => MeasureState::Settling,
            Phase::Uploading { .. } => MeasureState::Uploading,
            Phase::Over => MeasureState::Over,
        };
        MeasureProgress {
            state,
            ..self.tally
        }
    }

    /// No new messages, nothing is sent again; what is under way is settled, at most three seconds, and the trace uploaded.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.is_stopped = true;
        match self.phase {
            Phase::Asking { .. } => self.finish(MeasureEnd::Stopped),
            Phase::Measuring { .. } => self.settle_all(now),
            _ => {}
        }
        self.handle_timeout(now);
    }

    /// The session is over.
    pub(crate) fn on_closed(&mut self) {
        self.finish(MeasureEnd::Closed);
    }

    /// The probe has left.
    pub(crate) fn on_departed(&mut self, number: u32, at: Instant) {
        let timeout = self.timeout.current();
        if let Some(flight) = self.flights.get_mut(&number) {
            flight.departed = Some(at);
            let has_more = flight.attempt < self.options.retries;
            flight.retry_at = (has_more && flight.heard.is_none()).then_some(at + timeout);
        }
    }

    /// The session did not take the probe, or dropped it before it left.
    pub(crate) fn on_held(&mut self, number: u32) {
        if self.flights.remove(&number).is_some() {
            self.held += 1;
        }
    }

    /// What is due by the clock.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.drop_held(now);
        match self.phase {
            Phase::Asking { until } if now >= until => self.finish(MeasureEnd::NoAnswer),
            Phase::Measuring { next } if now >= next => self.begin_message(now, next),
            Phase::Settling { until } | Phase::Uploading { until } if now >= until => {
                self.finish(self.natural_end());
            }
            _ => {}
        }
        self.send_again(now);
        self.ask_for_receipt(now);
        self.go_on(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let phase = match self.phase {
            // Whose last flights the session did not take comes to its end at once.
            Phase::Settling { .. } if self.flights.is_empty() => Some(Instant::ZERO),
            Phase::Asking { until } | Phase::Settling { until } | Phase::Uploading { until } => {
                Some(until)
            }
            Phase::Measuring { next } => Some(next),
            Phase::Over => None,
        };
        let flights = self.flights.values();
        let flights = flights.filter_map(|flight| match flight.departed {
            None => Some(flight.made + HELD_MAX),
            Some(_) => flight.retry_at,
        });
        phase
            .into_iter()
            .chain(flights)
            .chain(self.receipt_due_at())
            .min()
    }

    /// A message has come on the unreliable stream.
    pub(crate) fn handle_probe(&mut self, now: Instant, bytes: &[u8]) {
        let Some(Probe::Down {
            number,
            arrived_us,
            order,
        }) = Probe::decode(bytes)
        else {
            return;
        };
        let Some(flight) = self.flights.get_mut(&number) else {
            return;
        };
        let (Some(departed), None) = (flight.departed, flight.heard) else {
            return;
        };
        flight.heard = Some(now);
        flight.arrived_us.get_or_insert(arrived_us);
        let (message, index) = (flight.message, flight.index);
        let rtt = now.since(departed);
        self.timeout.record(rtt);
        self.tally.answers += 1;
        self.tally.rtt = Some(rtt);
        let receipts = &mut self.receipts;
        receipts.reordered_down += u32::from(order < receipts.next_down);
        receipts.next_down = receipts.next_down.max(order.saturating_add(1));
        for other in self.flights.values_mut() {
            if (other.message, other.index) == (message, index) {
                other.retry_at = None;
            }
        }
    }

    /// A message has come on the reliable stream.
    pub(crate) fn handle_control(&mut self, now: Instant, message: Down) {
        match message {
            Down::Terms(terms) => self.on_terms(now, terms),
            Down::Receipt(receipt) => self.on_receipt(now, &receipt),
            Down::Kept { is_kept } => self.on_kept(is_kept),
        }
        self.go_on(now);
    }

    fn on_terms(&mut self, now: Instant, terms: Terms) {
        if !terms.is_on {
            return self.finish(MeasureEnd::Off);
        }
        self.terms = Some(terms);
        let own = self.options.sample.unwrap_or(1);
        self.tally.sample = terms.sample.max(own).max(1);
        if matches!(self.phase, Phase::Asking { .. }) {
            self.began = now;
            self.phase = Phase::Measuring { next: now };
            self.begin_message(now, now);
        }
    }

    fn begin_message(&mut self, now: Instant, due: Instant) {
        if self.is_at_end(now) {
            return self.settle_all(now);
        }
        let every = self.options.interval * u32::from(self.tally.sample);
        // A loop that slept does not make up for what it missed.
        let next = (due + every).max(now);
        self.phase = Phase::Measuring { next };
        let is_full = self.flights.len() + usize::from(self.options.packets) > FLIGHTS_MAX;
        // Behind probes that the session holds back, new ones would only wait longer.
        if is_full
            || self
                .flights
                .values()
                .any(|flight| flight.departed.is_none())
        {
            return;
        }
        let message = self.tally.messages;
        self.tally.messages += 1;
        for index in 0..self.options.packets {
            self.send(now, message, index, 0);
        }
        if self.options.messages == Some(self.tally.messages) {
            self.settle_all(now);
        }
    }

    fn is_at_end(&self, now: Instant) -> bool {
        let options = &self.options;
        let packets_max = self.terms.map_or(0, |terms| terms.packets_max);
        let packets_max = packets_max.min(super::PACKETS_KEPT_MAX) as usize;
        // A message may become so many packets.
        let message = usize::from(options.packets) * usize::from(options.retries + 1);
        self.ledger.len() + self.flights.len() + message > packets_max
            || options.lasts.is_some_and(|lasts| now >= self.began + lasts)
    }

    fn send(&mut self, now: Instant, message: u32, index: u8, attempt: u8) {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.tally.packets += u32::from(attempt == 0);
        self.tally.repeated += u32::from(attempt > 0);
        let flight = Flight {
            message,
            index,
            attempt,
            made: now,
            departed: None,
            retry_at: None,
            arrived_us: None,
            held: None,
            heard: None,
            is_reported: false,
        };
        self.flights.insert(number, flight);
        self.output.push_back(Output::Probe(number));
    }

    fn settle_all(&mut self, now: Instant) {
        let until = now + SETTLE_TIME;
        self.phase = Phase::Settling { until };
    }

    fn drop_held(&mut self, now: Instant) {
        let is_held = |flight: &Flight| flight.departed.is_none() && now >= flight.made + HELD_MAX;
        let held = self.flights.extract_if(.., |_, flight| is_held(flight));
        for (number, _) in held {
            self.held += 1;
            self.output.push_back(Output::Cancel(number));
        }
    }

    fn send_again(&mut self, now: Instant) {
        let mut due = Vec::new();
        for flight in self.flights.values_mut() {
            if flight.retry_at.is_some_and(|at| now >= at) {
                flight.retry_at = None;
                due.push((flight.message, flight.index, flight.attempt + 1));
            }
        }
        for (message, index, attempt) in due {
            if !self.is_stopped && self.flights.len() < FLIGHTS_MAX {
                self.send(now, message, index, attempt);
            }
        }
    }

    /// When a receipt would settle a probe.
    fn receipt_due_at(&self) -> Option<Instant> {
        if self.receipts.is_open || self.is_over() {
            return None;
        }
        let earliest = self.flights.values().filter_map(Flight::settles_at).min()?;
        let every = match self.phase {
            Phase::Measuring { .. } => RECEIPT_EVERY,
            // Nobody waits longer than need be.
            _ => RECEIPT_EVERY / 10,
        };
        let again = self.receipts.asked_at.map(|at| at + every);
        Some(again.map_or(earliest, |again| again.max(earliest)))
    }

    fn ask_for_receipt(&mut self, now: Instant) {
        if self.receipt_due_at().is_some_and(|at| now >= at) {
            let receipts = &mut self.receipts;
            receipts.asks = receipts.asks.wrapping_add(1);
            receipts.asked_at = Some(now);
            receipts.is_open = true;
            let ask = receipts.asks;
            self.output.push_back(Output::Control(Up::Receipt { ask }));
        }
    }

    fn on_receipt(&mut self, now: Instant, receipt: &Receipt) {
        let (true, Some(asked_at)) = (self.receipts.is_open, self.receipts.asked_at) else {
            return;
        };
        if receipt.ask != self.receipts.asks {
            return;
        }
        self.receipts.is_open = false;
        self.receipts.has_forgotten |= receipt.forgotten > 0;
        self.receipts.copies_up = Copies {
            packets: receipt.packets,
            copies: receipt.copies,
        };
        for arrival in &receipt.arrivals {
            let Some(flight) = self.flights.get_mut(&arrival.number) else {
                continue;
            };
            if !std::mem::replace(&mut flight.is_reported, true) {
                let receipts = &mut self.receipts;
                receipts.reordered_up += u32::from(arrival.number < receipts.next_up);
                receipts.next_up = receipts.next_up.max(arrival.number.saturating_add(1));
            }
            flight.arrived_us = Some(arrival.at_us);
            let held = arrival.held_us.map(u64::from);
            flight.held = held.map(Duration::from_micros);
        }
        let has_forgotten = self.receipts.has_forgotten;
        let is_settled = |flight: &Flight| flight.settles_at().is_some_and(|at| asked_at >= at);
        let settled = self.flights.extract_if(.., |_, flight| is_settled(flight));
        for (number, flight) in settled {
            if let Some(settled) = flight.settle(has_forgotten) {
                self.ledger.push(number, settled);
            }
        }
        self.receipts.has_forgotten &= !self.flights.is_empty();
        self.ask_for_receipt(now);
    }

    fn on_kept(&mut self, is_kept: bool) {
        let upload = &mut self.upload;
        let Some(rows) = upload.open.pop_front() else {
            return;
        };
        upload.kept += if is_kept { rows } else { 0 };
        upload.is_refused |= !is_kept;
        if matches!(self.phase, Phase::Uploading { .. }) && upload.open.is_empty() {
            self.finish(self.natural_end());
        }
    }

    /// Writes rows, sends parts of the trace, and comes to the end.
    fn go_on(&mut self, now: Instant) {
        let is_settling = matches!(self.phase, Phase::Settling { .. });
        let is_last = is_settling && self.flights.is_empty();
        let is_part = self.options.upload && self.ledger.waiting() >= PART_ROWS;
        if !is_last && !is_part {
            return;
        }
        let first = self.flights.keys().next().copied();
        self.ledger
            .write_rows(self.began, first.unwrap_or(self.next_number));
        if self.options.upload && !self.upload.is_refused && self.ledger.len() > 0 {
            self.send_parts(is_last);
        }
        if is_last && self.upload.open.is_empty() {
            self.finish(self.natural_end());
        } else if is_last {
            let until = now + KEEP_TIME;
            self.phase = Phase::Uploading { until };
        }
    }

    fn send_parts(&mut self, is_last: bool) {
        loop {
            let rows = self.ledger.take_part(PART_MAX);
            let is_end = !self.ledger.has_more();
            let is_last = is_last && is_end;
            // The last part is sent even when it is empty: it closes the trace.
            if !rows.is_empty() || is_last {
                self.upload.open.push_back(rows.len() as u32);
                let part = Up::Rows { rows, is_last };
                self.output.push_back(Output::Control(part));
            }
            if is_end {
                return;
            }
        }
    }

    const fn natural_end(&self) -> MeasureEnd {
        if self.is_stopped {
            MeasureEnd::Stopped
        } else {
            MeasureEnd::Complete
        }
    }

    fn finish(&mut self, end: MeasureEnd) {
        if self.is_over() {
            return;
        }
        self.phase = Phase::Over;
        self.end = Some(end);
        self.output.clear();
        for (number, mut flight) in std::mem::take(&mut self.flights) {
            if flight.heard.is_none() {
                // Its answer may still be on its way.
                flight.held = None;
            }
            if let Some(settled) = flight.settle(true) {
                self.ledger.push(number, settled);
            }
        }
        self.ledger.write_rows(self.began, self.next_number);
    }

    /// What was measured, once it is over.
    pub(crate) fn take_result(&mut self, copies_down: Copies) -> Option<Measured> {
        let end = self.end.take()?;
        let (packets, clocks) = self.ledger.finish();
        Some(Measured {
            end,
            packets,
            clocks,
            sample: self.tally.sample,
            messages: self.tally.messages,
            held: self.held,
            reordered_up: self.receipts.reordered_up,
            reordered_down: self.receipts.reordered_down,
            copies_up: self.receipts.copies_up,
            copies_down,
            kept: self.upload.kept,
            is_refused: self.upload.is_refused,
        })
    }
}

impl Flight {
    /// From when on a receipt that was asked for says the last word on it.
    fn settles_at(&self) -> Option<Instant> {
        self.heard
            .or_else(|| self.departed.map(|departed| departed + LOST_AFTER))
    }

    /// `is_in_doubt`: that no receipt has it does not mean that it did not arrive. `None` when it never left.
    fn settle(self, is_in_doubt: bool) -> Option<Settled> {
        let up = match self.arrived_us {
            Some(at_us) => WayUp::Arrived {
                at_us,
                held: self.held,
            },
            None if is_in_doubt => WayUp::Unknown,
            None => WayUp::Lost,
        };
        Some(Settled {
            message: self.message,
            index: self.index,
            attempt: self.attempt,
            departed: self.departed?,
            up,
            heard: self.heard,
        })
    }
}
