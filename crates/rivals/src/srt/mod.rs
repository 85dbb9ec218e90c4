//! SRT in live mode, carried by the program `srt-live-transmit`: there only where that is installed.
//!
//! ```text
//! sender's side --UDP--> srt-live-transmit --SRT, over the network--> srt-live-transmit --UDP--> receiver's side
//! ```
//!
//! A flow has a program at each end, in the network namespace of its side; UDP stays on that namespace's loopback. A program carries
//! one way only: the side that receives the task's messages can send none. `programs.rs` runs them, `pieces.rs` cuts messages into
//! datagrams, each of which is a message of SRT.
//!
//! Live mode hands packets on at a time, not as soon as they are there: at the packet's timestamp, the one-way delay that the last
//! packet of the handshake had, and `latency` (the documentation of SRTO_RCVLATENCY). So the arm's latency is nearly constant, and
//! `latency` has to be chosen so that this time is just before the deadline.

mod pieces;
mod programs;

#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use punctual_lab::arm::{Arm, ArmError, Datagrams, Places, Refused, Sender, Side, SocketId, Task};

use self::pieces::{Cut, Partial};
use self::programs::{Programs, Route};
use crate::{MESSAGE_BYTES_MAX, failed};

/// Callers start this far apart: what a handshake waits for the machine, all messages of its flow will wait, and a program's start
/// takes some milliseconds of a processor.
const CONNECT_SPACING: Duration = Duration::from_millis(50);
/// Most flows: each takes a program with half a dozen threads at both ends, and each wakes a few hundred times a second.
const FLOWS_MAX: u32 = 200;
/// The program looks for input every 10 ms, unless SRT has something to tell it.
const INPUT_WAIT: Duration = Duration::from_millis(10);
/// Left to the handshake, whose one-way delay may be above the usual and then delays every message, and to the machine. Of 5 to 45 ms
/// 20 to 30 had the most on time over the built-in paths `busy-hour`, `bursty-wifi` and `lte`, on a machine that had other work: with
/// less whole flows are late, with more there is no time to repair.
const SPARE: Duration = Duration::from_millis(25);
/// Latency in the handshake has 16 bits.
const LATENCY_MAX: Duration = Duration::from_millis(u16::MAX as u64);
/// Packets that share a redundant one, at least (the filter's bound) and at most (the number in the documentation's examples).
const ROW: [usize; 2] = [2, 10];
/// Asked of the system for what waits for a program's look: the datagrams of a large message come all at once. It gives less.
const FEED_BYTES: u32 = 4 << 20;
/// From here on programs listen for our datagrams, on a loopback that nobody else uses.
const FEED_PORT: u16 = 20_000;

/// The arm.
pub(crate) struct Srt {
    has_fec: bool,
}

impl Srt {
    /// SRT, with or without its forward error correction.
    ///
    /// # Errors
    /// When the program is not installed.
    pub(crate) fn new(has_fec: bool) -> Result<Self, ArmError> {
        let srt = Self { has_fec };
        programs::check(srt.arm())?;
        Ok(srt)
    }

    const fn arm(&self) -> &'static str {
        if self.has_fec { "srt-fec" } else { "srt" }
    }

    /// A flow's end of SRT as the program takes it. Who receives listens, as the documentation advises: so both ends say at once when
    /// they are connected, which a caller that receives does not.
    fn uri(
        &self,
        places: &Places,
        task: &Task,
        side: Sender,
        flow: u32,
    ) -> Result<String, ArmError> {
        let (server, client) = (places.server().ip(), places.client(flow).ip());
        let port = u32::from(places.server().port()) + flow;
        let port = u16::try_from(port)
            .map_err(|_| failed(self.arm(), "the port of its last flow would be above 65535"))?;
        let (from, to) = match task.sender {
            Sender::Server => (server, client),
            Sender::Client => (client, server),
        };
        let end = if side == task.sender {
            format!("mode=caller&adapter={from}")
        } else {
            "mode=listener".to_owned()
        };
        let cut = Cut::new(task.message_bytes);
        let filter = if self.has_fec {
            let columns = row(&cut);
            format!("&packetfilter=fec,cols:{columns},rows:1,layout:even,arq:onreq")
        } else {
            String::new()
        };
        Ok(format!(
            "srt://{to}:{port}?{end}&latency={}&tlpktdrop=1&payloadsize={}{filter}",
            latency(task).as_millis(),
            cut.datagram_bytes()
        ))
    }

    fn side(&self, places: &Places, task: &Task, side: Sender) -> Result<Box<dyn Side>, ArmError> {
        if places.flows() > FLOWS_MAX {
            let why = format!("every flow takes two programs: give it at most {FLOWS_MAX} flows");
            return Err(failed(self.arm(), why));
        }
        let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let cut = Cut::new(task.message_bytes);
        let mut sockets = Datagrams::new(self.arm())?;
        let mut routes = Vec::new();
        for flow in 0..places.flows() {
            let outside = self.uri(places, task, side, flow)?;
            routes.push(if side == task.sender {
                let from = format!("udp://{}?rcvbuf={FEED_BYTES}", loopback(feed_port(flow)));
                Route { from, to: outside }
            } else {
                let socket = sockets.open(loopback(0), None)?;
                let to = format!("udp://{}", sockets.local_addr(socket)?);
                Route { from: outside, to }
            });
        }
        let spacing = if side == task.sender {
            CONNECT_SPACING
        } else {
            Duration::ZERO
        };
        let programs = Programs::start(self.arm(), &routes, spacing, cut.datagram_bytes())?;
        if side != task.sender {
            let partial = routes.iter().map(|_| Partial::default()).collect();
            return Ok(Box::new(Receiver {
                programs,
                sockets,
                partial,
            }));
        }
        let socket = sockets.open(loopback(0), None)?;
        let feeds = (0..places.flows()).map(|flow| loopback(feed_port(flow)));
        Ok(Box::new(Transmitter {
            programs,
            sockets,
            socket,
            feeds: feeds.collect(),
            cut,
            number: 0,
        }))
    }
}

impl Arm for Srt {
    fn name(&self) -> &str {
        self.arm()
    }

    fn settings(&self) -> String {
        let fec = if self.has_fec {
            format!(
                "; packet filter fec, rows:1, arq:onreq, cols as many as a message has datagrams, {} to {}: one redundant packet for \
                 so many, sent with the message's last, and what that does not repair is asked for when the next row begins",
                ROW[0], ROW[1]
            )
        } else {
            String::new()
        };
        format!(
            "srt-live-transmit, a program a flow at each end, fed with UDP; a message of SRT is a datagram of at most 1,316 bytes. Live \
             mode as it is by default: losses reported at once and again, too late packets dropped, no limit of the rate, no encryption. \
             It hands packets on at a fixed time, timestamp + one-way delay of the handshake + latency, so that even the fastest message \
             takes nearly the deadline; latency is the deadline less half the round trip, {} ms in which the program looks for input and \
             {} ms for the handshake's delay, which varies (the documentation advises 3 to 4 round trips, which the deadline does not \
             leave){fec}",
            INPUT_WAIT.as_millis(),
            SPARE.as_millis()
        )
    }

    fn server(&self, places: &Places, task: &Task) -> Result<Box<dyn Side>, ArmError> {
        self.side(places, task, Sender::Server)
    }

    fn client(&self, places: &Places, task: &Task) -> Result<Box<dyn Side>, ArmError> {
        self.side(places, task, Sender::Client)
    }
}

/// How long the receiver holds packets beyond their way.
fn latency(task: &Task) -> Duration {
    let spent = task.rtt / 2 + INPUT_WAIT + SPARE;
    task.deadline.saturating_sub(spent).min(LATENCY_MAX)
}

/// Packets that share a redundant one: a message's, so that it can be sent with the last of them.
fn row(cut: &Cut) -> usize {
    let [least, most] = ROW;
    cut.pieces.clamp(least, most)
}

/// Where the program of a flow takes our datagrams.
fn feed_port(flow: u32) -> u16 {
    // There are at most `FLOWS_MAX`.
    FEED_PORT + flow as u16
}

/// The side that sends.
struct Transmitter {
    programs: Programs,
    sockets: Datagrams,
    socket: SocketId,
    /// By flow: where its program takes datagrams.
    feeds: Vec<SocketAddr>,
    cut: Cut,
    /// Of the next message.
    number: u32,
}

impl Side for Transmitter {
    fn ready(&self) -> u32 {
        self.programs.connected()
    }

    fn send(&mut self, flow: u32, message: &[u8]) -> Result<(), Refused> {
        let feed = *self.feeds.get(flow as usize).ok_or(Refused)?;
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(Refused);
        }
        let number = self.number;
        self.number = number.wrapping_add(1);
        self.cut.cut(number, message, |datagram| {
            // What the program does not take in time is lost: it says nothing of room.
            self.sockets.send(self.socket, feed, datagram);
        })
    }

    fn drive(&mut self, until: Instant, _: &mut dyn FnMut(u32, &[u8])) -> Result<(), ArmError> {
        self.programs.check()?;
        self.sockets.wait(until, |_, _, _| ())
    }

    fn programs_cpu(&self) -> Duration {
        self.programs.cpu()
    }
}

/// The side that receives.
struct Receiver {
    programs: Programs,
    /// One a flow.
    sockets: Datagrams,
    partial: Vec<Partial>,
}

impl Side for Receiver {
    fn ready(&self) -> u32 {
        self.programs.connected()
    }

    fn send(&mut self, _: u32, _: &[u8]) -> Result<(), Refused> {
        Err(Refused)
    }

    fn drive(
        &mut self,
        until: Instant,
        on_message: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), ArmError> {
        self.programs.check()?;
        let partial = &mut self.partial;
        self.sockets.wait(until, |socket, _, datagram| {
            if let Some(message) = partial[socket].take(datagram) {
                on_message(socket as u32, message);
            }
        })
    }

    fn programs_cpu(&self) -> Duration {
        self.programs.cpu()
    }
}
