//! The kernel's TCP: one connection a flow, without Nagle's delay, a length before each message.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Arm, ArmError, Places, Refused, Side, Stack, Task};

/// Bytes of a flow that wait for room in the kernel; what comes on top is refused.
const WAITING_MAX: usize = 1 << 20;
/// Longest message.
const MESSAGE_MAX: usize = 1 << 20;
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// After a failed attempt to connect.
const CONNECT_AGAIN: Duration = Duration::from_millis(200);
/// Connections begun before the others are driven.
const CONNECT_BATCH: usize = 64;

const LISTENER: Token = Token(usize::MAX);

/// Kernel TCP with a congestion control and settings.
#[derive(Debug, Clone, Copy)]
pub struct Tcp {
    name: &'static str,
    about: &'static str,
    control: &'static str,
    sysctls: &'static [(&'static str, &'static str)],
    initial_window: Option<u32>,
}

/// Linux of about 2008: no SACK, no tail loss probe, no early retransmit. (Without SACK there is no RACK either.)
const STACK_2008: [(&str, &str); 2] = [("tcp_sack", "0"), ("tcp_early_retrans", "0")];
const STACK_2008_THIN: [(&str, &str); 3] = [
    STACK_2008[0],
    STACK_2008[1],
    ("tcp_thin_linear_timeouts", "1"),
];
/// What servers had that were traced in 2004.
const STACK_2006: [(&str, &str); 3] = [STACK_2008[0], STACK_2008[1], ("tcp_timestamps", "0")];
const NO_RESTART: (&str, &str) = ("tcp_slow_start_after_idle", "0");
const STACK_2006_NO_RESTART: [(&str, &str); 4] =
    [STACK_2006[0], STACK_2006[1], STACK_2006[2], NO_RESTART];

impl Tcp {
    /// Bytes that go before each message on a connection: its length.
    pub const FRAMING_BYTES: u64 = 4;

    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::new(
            "tcp-cubic",
            "CUBIC, everything else as the kernel has it",
            "cubic",
            &[],
        ),
        Self::new(
            "tcp-bbr",
            "BBR, everything else as the kernel has it",
            "bbr",
            &[],
        ),
        Self::new(
            "tcp-reno",
            "NewReno, everything else as the kernel has it",
            "reno",
            &[],
        ),
        Self::new(
            "tcp-thin",
            "CUBIC with linear timeouts for thin streams",
            "cubic",
            &[("tcp_thin_linear_timeouts", "1")],
        ),
        Self::new(
            "tcp-2008",
            "CUBIC without SACK, tail loss probes and early retransmit, as Linux was in 2008",
            "cubic",
            &STACK_2008,
        ),
        Self::new(
            "tcp-2008-thin",
            "as tcp-2008, with linear timeouts for thin streams",
            "cubic",
            &STACK_2008_THIN,
        ),
    ];

    /// TCP as it was around 2006, and as today, each with and without a small window after a pause. Not among [`Self::ALL`], since
    /// nobody would choose the old ones; for claims about them.
    pub const OF_TWO_AGES: [Self; 4] = [
        Self {
            initial_window: Some(2),
            ..Self::new(
                "tcp-2006",
                "NewReno without SACK, tail loss probes, early retransmit and timestamps, initial window 2",
                "reno",
                &STACK_2006,
            )
        },
        Self {
            initial_window: Some(2),
            ..Self::new(
                "tcp-2006-no-restart",
                "as tcp-2006, the window kept over pauses",
                "reno",
                &STACK_2006_NO_RESTART,
            )
        },
        Self::ALL[0],
        Self::new(
            "tcp-cubic-no-restart",
            "as tcp-cubic, the window kept over pauses",
            "cubic",
            &[NO_RESTART],
        ),
    ];

    const fn new(
        name: &'static str,
        about: &'static str,
        control: &'static str,
        sysctls: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            name,
            about,
            control,
            sysctls,
            initial_window: None,
        }
    }
}

impl Arm for Tcp {
    fn name(&self) -> &str {
        self.name
    }

    fn settings(&self) -> String {
        format!("{}; a connection a flow, TCP_NODELAY", self.about)
    }

    fn stack(&self) -> Stack {
        let sysctls = self.sysctls.iter();
        Stack {
            congestion_control: Some(self.control.to_owned()),
            initial_window: self.initial_window,
            sysctls: sysctls
                .map(|&(name, value)| (name, value.to_owned()))
                .collect(),
        }
    }

    fn server(&self, places: &Places, _task: &Task) -> Result<Box<dyn Side>, ArmError> {
        let at = places.server();
        let listen = || -> io::Result<TcpListener> {
            let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
            socket.set_nonblocking(true)?;
            // Connections of an earlier run that still wait for stragglers do not keep the port.
            socket.set_reuse_address(true)?;
            socket.bind(&at.into())?;
            socket.listen(BACKLOG)?;
            Ok(TcpListener::from_std(socket.into()))
        };
        let mut listener = listen().map_err(ArmError::system(
            self.name,
            format!("listening on TCP {at}"),
        ))?;
        let flows = Flows::new(self.name, places)?;
        (flows.poll.registry())
            .register(&mut listener, LISTENER, Interest::READABLE)
            .map_err(ArmError::system(self.name, "waiting for connections"))?;
        Ok(Box::new(Server { flows, listener }))
    }

    fn client(&self, places: &Places, _task: &Task) -> Result<Box<dyn Side>, ArmError> {
        Ok(Box::new(Client {
            flows: Flows::new(self.name, places)?,
            due: (0..places.flows()).map(|flow| (None, flow)).collect(),
        }))
    }
}

struct Server {
    flows: Flows,
    listener: TcpListener,
}

struct Client {
    flows: Flows,
    /// Flows that are to connect, and from when on.
    due: VecDeque<(Option<Instant>, u32)>,
}

impl Side for Server {
    fn ready(&self) -> u32 {
        self.flows.ready
    }

    fn send(&mut self, flow: u32, message: &[u8]) -> Result<(), Refused> {
        self.flows.send(flow, message)
    }

    fn drive(
        &mut self,
        until: Instant,
        on_message: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), ArmError> {
        if self.flows.drive(until, on_message)? {
            self.accept()?;
        }
        Ok(())
    }
}

impl Server {
    /// Takes in all that wait: nobody tells of those that are left.
    fn accept(&mut self) -> Result<(), ArmError> {
        loop {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    if let Some(flow) = self.flows.places.flow_of(from.ip()) {
                        self.flows.add(flow, stream);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // That one has gone again.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => {
                    return Err(ArmError::system(self.flows.arm, "accepting a connection")(
                        error,
                    ));
                }
            }
        }
    }
}

impl Side for Client {
    fn ready(&self) -> u32 {
        self.flows.ready
    }

    fn send(&mut self, flow: u32, message: &[u8]) -> Result<(), Refused> {
        self.flows.send(flow, message)
    }

    fn drive(
        &mut self,
        until: Instant,
        on_message: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), ArmError> {
        for _ in 0..CONNECT_BATCH {
            let now = Instant::now();
            let is_due = |due: &(Option<Instant>, u32)| due.0.is_none_or(|at| at <= now);
            let Some((_, flow)) = self.due.pop_front_if(|due| is_due(due)) else {
                break;
            };
            match connect(self.flows.places.client(flow), self.flows.places.server()) {
                Ok(stream) => self.flows.add(flow, stream),
                Err(_) => self.due.push_back((Some(now + CONNECT_AGAIN), flow)),
            }
        }
        let until = match self.due.front() {
            Some((at, _)) => until.min(at.unwrap_or_else(Instant::now)),
            None => until,
        };
        self.flows.drive(until, on_message)?;
        let again = Instant::now() + CONNECT_AGAIN;
        for flow in self.flows.unconnected.drain(..) {
            self.due.push_back((Some(again), flow));
        }
        Ok(())
    }
}

fn connect(from: SocketAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.bind(&from.into())?;
    match socket.connect(&to.into()) {
        Ok(()) => {}
        // It goes on in the background: EINPROGRESS has no kind of its own.
        Err(error)
            if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
        Err(error) => return Err(error),
    }
    Ok(TcpStream::from_std(socket.into()))
}

/// A connection.
struct Flow {
    stream: TcpStream,
    is_connected: bool,
    /// What the kernel had no room for.
    waiting: VecDeque<u8>,
    /// What has come of messages that are not whole yet.
    received: Vec<u8>,
}

/// All connections of a side.
struct Flows {
    /// The arm, for errors.
    arm: &'static str,
    places: Places,
    poll: Poll,
    events: Events,
    flows: Vec<Option<Flow>>,
    ready: u32,
    /// Flows whose connection failed before it was there.
    unconnected: Vec<u32>,
    buffer: Vec<u8>,
}

impl Flows {
    fn new(arm: &'static str, places: &Places) -> Result<Self, ArmError> {
        Ok(Self {
            arm,
            places: places.clone(),
            poll: Poll::new().map_err(ArmError::system(arm, "waiting for sockets"))?,
            events: Events::with_capacity(256),
            flows: (0..places.flows()).map(|_| None).collect(),
            ready: 0,
            unconnected: Vec::new(),
            buffer: vec![0; READ_BYTES],
        })
    }

    fn add(&mut self, flow: u32, mut stream: TcpStream) {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let token = Token(flow as usize);
        // A connection that cannot be used is one that failed.
        let is_usable = stream.set_nodelay(true).is_ok()
            && (self.poll.registry())
                .register(&mut stream, token, interest)
                .is_ok();
        if !is_usable {
            self.unconnected.push(flow);
            return;
        }
        let place = &mut self.flows[flow as usize];
        self.ready -= u32::from(place.as_ref().is_some_and(|old| old.is_connected));
        *place = Some(Flow {
            stream,
            is_connected: false,
            waiting: VecDeque::new(),
            received: Vec::new(),
        });
    }

    fn send(&mut self, flow: u32, message: &[u8]) -> Result<(), Refused> {
        let place = &mut self.flows[flow as usize];
        let Some(open) = place.as_mut().filter(|open| open.is_connected) else {
            return Err(Refused);
        };
        if open.waiting.len() + message.len() > WAITING_MAX || message.len() > MESSAGE_MAX {
            return Err(Refused);
        }
        open.waiting.extend((message.len() as u32).to_le_bytes());
        open.waiting.extend(message);
        if open.write().is_err() {
            self.close(flow);
            return Err(Refused);
        }
        Ok(())
    }

    /// Whether the listener has connections.
    fn drive(
        &mut self,
        until: Instant,
        on_message: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<bool, ArmError> {
        let patience = until.saturating_duration_since(Instant::now());
        match self.poll.poll(&mut self.events, Some(patience)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(ArmError::system(self.arm, "waiting for sockets")(error));
            }
            _ => {}
        }
        let mut has_connections = false;
        let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        for event in &events {
            if event.token() == LISTENER {
                has_connections = true;
                continue;
            }
            let flow = event.token().0 as u32;
            if self
                .on_event(flow, event.is_readable(), on_message)
                .is_err()
            {
                self.close(flow);
            }
        }
        self.events = events;
        Ok(has_connections)
    }

    fn on_event(
        &mut self,
        flow: u32,
        is_readable: bool,
        on_message: &mut dyn FnMut(u32, &[u8]),
    ) -> io::Result<()> {
        let Some(open) = &mut self.flows[flow as usize] else {
            return Ok(());
        };
        if !open.is_connected {
            if let Some(error) = open.stream.take_error()? {
                return Err(error);
            }
            match open.stream.peer_addr() {
                Ok(_) => {
                    open.is_connected = true;
                    self.ready += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::NotConnected => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        open.write()?;
        if is_readable {
            open.read(&mut self.buffer, |message| on_message(flow, message))?;
        }
        Ok(())
    }

    fn close(&mut self, flow: u32) {
        match self.flows[flow as usize].take() {
            Some(open) if open.is_connected => self.ready -= 1,
            Some(_) => self.unconnected.push(flow),
            None => {}
        }
    }
}

impl Flow {
    /// Gives the kernel what it takes.
    fn write(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            let (front, _) = self.waiting.as_slices();
            match self.stream.write(front) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what the kernel has, and hands on whole messages.
    fn read(&mut self, buffer: &mut [u8], mut on_message: impl FnMut(&[u8])) -> io::Result<()> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.received.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let mut rest = &self.received[..];
            while let Some((len, after)) = rest.split_first_chunk::<4>() {
                let len = u32::from_le_bytes(*len) as usize;
                if len > MESSAGE_MAX {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let Some((message, after)) = after.split_at_checked(len) else {
                    break;
                };
                on_message(message);
                rest = after;
            }
            let read = self.received.len() - rest.len();
            self.received.drain(..read);
        }
    }
}
