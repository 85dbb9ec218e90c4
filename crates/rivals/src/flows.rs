//! All flows of one side: sockets, one wait, timers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use punctual_lab::arm::{Arm, ArmError, Datagrams, Places, Refused, Side, SocketId, Task};

use crate::engine::{Engine, Link, Maker, Rival, Role};
use crate::timers::Timers;

/// A flow that asks for its next timeout at once gets it this much later, so that none keeps the others from their turn.
const TIMEOUT_MIN: Duration = Duration::from_micros(100);

/// Clients connect this far apart: a thousand handshakes at once overflow the server's socket, and QUIC's timeouts, doubled again
/// and again meanwhile, then outlast a bench.
const CONNECT_SPACING: Duration = Duration::from_millis(5);

/// A rival as an arm.
pub(crate) struct Contender<R>(pub(crate) R);

impl<R: Rival<Flow: 'static>> Arm for Contender<R> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn settings(&self) -> String {
        self.0.settings()
    }

    fn server(&self, places: &Places, task: &Task) -> Result<Box<dyn Side>, ArmError> {
        let flows = Flows::open(self.name(), places, Role::Server, self.0.maker(task)?)?;
        Ok(Box::new(flows))
    }

    fn client(&self, places: &Places, task: &Task) -> Result<Box<dyn Side>, ArmError> {
        let flows = Flows::open(self.name(), places, Role::Client, self.0.maker(task)?)?;
        Ok(Box::new(flows))
    }
}

/// The engines of all flows, and what they need of the system. The server has one socket for all, each client one of its own.
struct Flows<E> {
    places: Places,
    role: Role,
    sockets: Datagrams,
    flows: Vec<Flow<E>>,
    timers: Timers,
    ready: u32,
    /// Flows whose datagrams of the current wait are not looked into yet.
    touched: Vec<u32>,
}

struct Flow<E> {
    engine: E,
    socket: SocketId,
    /// None at the server until the client's first datagram.
    peer: Option<SocketAddr>,
    is_ready: bool,
    is_touched: bool,
}

impl<E: Engine> Flows<E> {
    /// Opens the sockets of a side of an arm and makes its engines; clients connect while it is driven.
    ///
    /// # Errors
    /// When the system refuses an address, or `make` its engine.
    fn open(
        arm: &str,
        places: &Places,
        role: Role,
        mut make: Maker<'_, E>,
    ) -> Result<Self, ArmError> {
        let mut sockets = Datagrams::new(arm)?;
        let server = places.server();
        if role == Role::Server {
            sockets.open(server, None)?;
        }
        let mut flows = Vec::with_capacity(places.flows() as usize);
        let mut timers = Timers::new(places.flows());
        let now = Instant::now();
        for flow in 0..places.flows() {
            let (socket, local, peer, begin) = match role {
                Role::Server => (0, server, None, now),
                Role::Client => {
                    let socket = sockets.open(places.client(flow), Some(server))?;
                    let local = sockets.local_addr(socket)?;
                    (socket, local, Some(server), now + CONNECT_SPACING * flow)
                }
            };
            let link = Link {
                flow,
                role,
                local,
                server,
            };
            flows.push(Flow {
                engine: make(link)?,
                socket,
                peer,
                is_ready: false,
                is_touched: false,
            });
            timers.set(flow, Some(begin));
        }
        Ok(Self {
            places: places.clone(),
            role,
            sockets,
            flows,
            timers,
            ready: 0,
            touched: Vec::new(),
        })
    }

    /// Takes out of an engine what it has to deliver and to send.
    fn settle(&mut self, flow: u32, now: Instant, on_message: &mut dyn FnMut(u32, &[u8])) {
        let engine = &mut self.flows[flow as usize].engine;
        engine.poll_messages(&mut |message| on_message(flow, message));
        self.flush(flow, now);
    }

    /// Sends what an engine has to send, and notes what else has changed.
    fn flush(&mut self, flow: u32, now: Instant) {
        let Flow {
            engine,
            socket,
            peer,
            is_ready,
            ..
        } = &mut self.flows[flow as usize];
        let sockets = &self.sockets;
        engine.poll_transmit(now, &mut |datagram| {
            if let Some(peer) = *peer {
                sockets.send(*socket, peer, datagram);
            }
        });
        let timeout = engine.next_timeout(now).map(|at| at.max(now + TIMEOUT_MIN));
        if engine.is_ready() != *is_ready {
            *is_ready = !*is_ready;
            if *is_ready {
                self.ready += 1;
            } else {
                self.ready -= 1;
            }
        }
        self.timers.set(flow, timeout);
    }

    /// Waits until `until` or for datagrams, and gives them to their engines.
    fn receive(&mut self, until: Instant) -> Result<(), ArmError> {
        let Self {
            places,
            role,
            sockets,
            flows,
            touched,
            ..
        } = self;
        sockets.wait(until, |socket, from, datagram| {
            let flow = match role {
                Role::Client => u32::try_from(socket).ok(),
                Role::Server => places.flow_of(from.ip()),
            };
            let Some(flow) = flow else {
                return;
            };
            let entry = &mut flows[flow as usize];
            entry.peer = Some(from);
            entry.engine.handle_datagram(Instant::now(), from, datagram);
            if !entry.is_touched {
                entry.is_touched = true;
                touched.push(flow);
            }
        })
    }
}

impl<E: Engine> Side for Flows<E> {
    fn ready(&self) -> u32 {
        self.ready
    }

    fn send(&mut self, flow: u32, message: &[u8]) -> Result<(), Refused> {
        let now = Instant::now();
        let entry = self.flows.get_mut(flow as usize).ok_or(Refused)?;
        if !entry.engine.is_ready() || message.len() > crate::MESSAGE_BYTES_MAX {
            return Err(Refused);
        }
        entry.engine.send(now, message)?;
        self.flush(flow, now);
        Ok(())
    }

    fn drive(
        &mut self,
        until: Instant,
        on_message: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), ArmError> {
        loop {
            let now = Instant::now();
            while let Some(flow) = self.timers.pop_due(now) {
                self.flows[flow as usize].engine.handle_timeout(now);
                self.settle(flow, now, on_message);
            }
            self.receive(self.timers.first().map_or(until, |at| at.min(until)))?;
            let mut touched = std::mem::take(&mut self.touched);
            for flow in touched.drain(..) {
                self.flows[flow as usize].is_touched = false;
                self.settle(flow, Instant::now(), on_message);
            }
            self.touched = touched;
            if Instant::now() >= until {
                return Ok(());
            }
        }
    }
}
