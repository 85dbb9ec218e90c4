//! A client and a server in virtual time, and what lies between them.

use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use punctual_lab::channel::{Channel, ChannelSpec, Direction, Fate};
use punctual_proto::Instant;

use super::ms;
use crate::measure::options::{MeasureOptions, MeasureRules};
use crate::measure::packet::MeasuredPacket;
use crate::measure::prober::{Output, Prober};
use crate::measure::report::{Copies, Measured};
use crate::measure::responder::{Counts, Responder};
use crate::measure::wire::{Down, Probe, Terms, Up};

/// What happens next, and the order in which it was made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    ProbeUp(Vec<u8>),
    ProbeDown(Vec<u8>),
    ControlUp(Up),
    ControlDown(Down),
    Switch(Terms),
    Stop,
}

struct Scheduled {
    at: Instant,
    order: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // The heap gives the greatest: the earliest.
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// A client and a server whose clock is ahead by `ahead`, and what lies between them.
pub(super) struct Network {
    pub(super) now: Instant,
    prober: Prober,
    pub(super) responder: Responder,
    pub(super) terms: Terms,
    ahead: Duration,
    up: Channel,
    down: Channel,
    /// Probes wait so long in the client's session, and echoes in the server's.
    pub(super) held: Duration,
    events: BinaryHeap<Scheduled>,
    order: u64,
    /// Probes handed to the network, and those that it lost in each direction.
    pub(super) sent: u64,
    pub(super) lost: [u64; 2],
    pub(super) parts: Vec<MeasuredPacket>,
    pub(super) ends: u32,
}

impl Network {
    pub(super) fn new(
        options: MeasureOptions,
        seed: u64,
        up: ChannelSpec,
        down: ChannelSpec,
    ) -> Self {
        options.check().unwrap();
        let now = Instant::from_micros(77);
        let rules = MeasureRules {
            sample: 1,
            ..MeasureRules::default()
        };
        Self {
            now,
            prober: Prober::new(now, options),
            responder: Responder::new(now),
            terms: Terms {
                is_on: true,
                sample: rules.sample,
                packets_max: rules.packets_max,
            },
            ahead: Duration::from_micros(u64::from(u32::MAX) - 3_000_000),
            up: Channel::new(Arc::new(up), seed, 0, Direction::Forward),
            down: Channel::new(Arc::new(down), seed, 0, Direction::Backward),
            held: Duration::ZERO,
            events: BinaryHeap::new(),
            order: 0,
            sent: 0,
            lost: [0; 2],
            parts: Vec::new(),
            ends: 0,
        }
    }

    pub(super) fn at(&mut self, at: Instant, event: Event) {
        self.order += 1;
        let order = self.order;
        self.events.push(Scheduled { at, order, event });
    }

    /// Reliable messages take 70 ms and are never lost.
    fn later(&mut self, event: Event) {
        self.at(self.now + ms(70), event);
    }

    fn transmit(&mut self, departed: Instant, bytes: Vec<u8>, is_up: bool) {
        let channel = if is_up { &mut self.up } else { &mut self.down };
        let wrap = if is_up {
            Event::ProbeUp
        } else {
            Event::ProbeDown
        };
        match channel.fate(departed.as_micros(), bytes.len() + 57) {
            Fate::Lost(_) => self.lost[usize::from(!is_up)] += 1,
            Fate::Delivered { delay_us, .. } => {
                self.at(departed + Duration::from_micros(delay_us), wrap(bytes));
            }
        }
    }

    pub(super) fn run(&mut self) -> Measured {
        loop {
            while let Some(output) = self.prober.poll_output() {
                match output {
                    Output::Control(message) => {
                        let travelled = Up::decode(&message.encode()).unwrap();
                        assert_eq!(travelled, message);
                        self.later(Event::ControlUp(travelled));
                    }
                    Output::Cancel(_) => {}
                    Output::Probe(number) => {
                        let departed = self.now + self.held;
                        self.prober.on_departed(number, departed);
                        self.sent += 1;
                        let bytes = Probe::Up { number }.encode(self.prober.bytes());
                        self.transmit(departed, bytes, true);
                    }
                }
            }
            if self.prober.is_over() {
                return self.prober.take_result(Copies::default()).unwrap();
            }
            let next = self.events.peek().map(|event| event.at);
            let timer = self.prober.poll_timeout();
            let at = [next, timer].into_iter().flatten().min();
            self.now = self.now.max(at.expect("something is always due"));
            if timer.is_some_and(|timer| timer <= self.now) {
                self.prober.handle_timeout(self.now);
            } else {
                let event = self.events.pop().unwrap().event;
                self.handle(event);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let (now, theirs) = (self.now, self.now + self.ahead);
        match event {
            Event::ProbeUp(bytes) => {
                if let Some((number, echo)) = self.responder.handle_probe(theirs, &bytes) {
                    assert!(echo.len() <= bytes.len(), "no amplification");
                    self.responder.on_departed(number, Some(theirs + self.held));
                    self.transmit(now + self.held, echo, false);
                }
            }
            Event::ProbeDown(bytes) => self.prober.handle_probe(now, &bytes),
            Event::ControlUp(message) => {
                let counts = Counts::default();
                let answer = self
                    .responder
                    .handle_control(theirs, message, self.terms, counts);
                if let Some((packets, is_last)) = answer.part {
                    self.parts.extend(packets);
                    self.ends += u32::from(is_last);
                }
                if let Some(reply) = answer.reply {
                    let travelled = Down::decode(&reply.encode()).unwrap();
                    assert_eq!(travelled, reply);
                    self.later(Event::ControlDown(travelled));
                }
            }
            Event::ControlDown(message) => self.prober.handle_control(now, message),
            Event::Switch(terms) => {
                self.terms = terms;
                self.later(Event::ControlDown(Down::Terms(terms)));
            }
            Event::Stop => self.prober.stop(now),
        }
    }
}
