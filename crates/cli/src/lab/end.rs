//! One of many endpoints that a thread drives: its socket, and when it wants to be called.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_net::clock::Clock;
use punctual_net::udp::{Driver, DriverError, Poller, Socket, SocketId, SocketOptions};
use punctual_proto::EndpointConfig;

/// Each client has a socket of its own: what all hold together is to stay small.
const CLIENT_BUFFER_BYTES: usize = 256 << 10;
/// After the kernel's send buffer was full: loopback and devices take more within microseconds.
const BLOCKED_WAIT: Duration = Duration::from_micros(200);

/// An endpoint on a socket.
pub(super) struct End {
    pub(super) driver: Driver,
    /// When it wants to be called although nothing came; None: never.
    pub(super) due: Option<Instant>,
    socket: SocketId,
}

/// Why an endpoint could not be made.
#[derive(Debug)]
pub(super) enum EndError {
    /// The poller could not watch its socket.
    Watch(io::Error),
    /// It could not begin.
    Driver(DriverError),
}

impl fmt::Display for EndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Watch(error) => write!(f, "a socket cannot be waited for: {error}"),
            Self::Driver(error) => error.fmt(f),
        }
    }
}

/// How the sockets of clients are opened.
pub(super) fn client_socket() -> SocketOptions {
    SocketOptions {
        recv_buffer_bytes: CLIENT_BUFFER_BYTES,
        send_buffer_bytes: CLIENT_BUFFER_BYTES,
        ..SocketOptions::default()
    }
}

impl End {
    pub(super) fn new(
        config: EndpointConfig,
        socket: Socket,
        clock: Clock,
        poller: &mut Poller,
    ) -> Result<Self, EndError> {
        let socket = Arc::new(socket);
        Ok(Self {
            socket: (poller.watch(Arc::clone(&socket))).map_err(EndError::Watch)?,
            driver: Driver::new(config, socket, clock).map_err(EndError::Driver)?,
            due: None,
        })
    }

    /// Whether it wants a turn after a wait.
    pub(super) fn is_ready(&self, now: Instant, poller: &Poller) -> bool {
        self.due.is_some_and(|due| due <= now) || poller.is_readable(self.socket)
    }

    /// Takes a turn.
    pub(super) fn turn(&mut self, now: Instant) -> io::Result<()> {
        let turn = self.driver.turn()?;
        let patience = if turn.has_more {
            Some(Duration::ZERO)
        } else {
            let patience = self.driver.patience();
            match turn.is_blocked {
                true => Some(patience.map_or(BLOCKED_WAIT, |patience| patience.min(BLOCKED_WAIT))),
                false => patience,
            }
        };
        self.due = patience.map(|patience| now + patience);
        Ok(())
    }

    /// Sends what there is to send.
    pub(super) fn send(&mut self) {
        // An error of the socket shows again at the next turn.
        let has_more = self.driver.send().unwrap_or(true);
        let now = Instant::now();
        self.due = match has_more {
            true => Some(now),
            false => self.driver.patience().map(|patience| now + patience),
        };
    }
}
