//! UDP sockets of an arm, and one wait for all of them.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};

use super::ArmError;

/// Names a socket of a [`Datagrams`]: the how-many-eth it was.
pub type SocketId = usize;

/// Largest UDP payload that can exist.
const DATAGRAM_MAX: usize = 65_535;
/// Asked of the system for each socket; it may give less.
const BUFFER_BYTES: usize = 4 << 20;
/// Datagrams read from one socket before the others have their turn.
const READ_MAX: usize = 64;

#[derive(Debug)]
struct Socket {
    udp: UdpSocket,
    is_connected: bool,
}

/// Sockets that are waited for together.
#[derive(Debug)]
pub struct Datagrams {
    /// Whose they are, for errors.
    arm: String,
    poll: Poll,
    events: Events,
    sockets: Vec<Socket>,
    /// Sockets that had more to read when their turn ended.
    unread: Vec<SocketId>,
    buffer: Vec<u8>,
}

impl Datagrams {
    /// No sockets yet, of the arm of that name.
    ///
    /// # Errors
    /// When the system does not let us wait for sockets.
    pub fn new(arm: &str) -> Result<Self, ArmError> {
        Ok(Self {
            arm: arm.to_owned(),
            poll: Poll::new().map_err(ArmError::system(arm, "waiting for sockets"))?,
            events: Events::with_capacity(256),
            sockets: Vec::new(),
            unread: Vec::new(),
            buffer: vec![0; DATAGRAM_MAX],
        })
    }

    /// Opens a socket at `local`; with `remote` it takes packets from there only.
    ///
    /// # Errors
    /// When the system refuses the address.
    pub fn open(
        &mut self,
        local: SocketAddr,
        remote: Option<SocketAddr>,
    ) -> Result<SocketId, ArmError> {
        let id = self.sockets.len();
        let socket = self.try_open(id, local, remote).map_err(ArmError::system(
            &self.arm,
            format!("opening UDP at {local}"),
        ))?;
        self.sockets.push(Socket {
            udp: socket,
            is_connected: remote.is_some(),
        });
        Ok(id)
    }

    fn try_open(
        &self,
        id: SocketId,
        local: SocketAddr,
        remote: Option<SocketAddr>,
    ) -> io::Result<UdpSocket> {
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(local),
            socket2::Type::DGRAM,
            None,
        )?;
        socket.set_nonblocking(true)?;
        // As much as the system gives: bursts of hundreds of flows are not to be lost here.
        _ = socket.set_recv_buffer_size(BUFFER_BYTES);
        _ = socket.set_send_buffer_size(BUFFER_BYTES);
        socket.bind(&local.into())?;
        if let Some(remote) = remote {
            socket.connect(&remote.into())?;
        }
        let mut socket = UdpSocket::from_std(socket.into());
        self.poll
            .registry()
            .register(&mut socket, Token(id), Interest::READABLE)?;
        Ok(socket)
    }

    /// The address of a socket.
    ///
    /// # Errors
    /// When the system does not say.
    ///
    /// # Panics
    /// When there is no such socket.
    pub fn local_addr(&self, socket: SocketId) -> Result<SocketAddr, ArmError> {
        let address = self.sockets[socket].udp.local_addr();
        address.map_err(ArmError::system(&self.arm, "asking for a socket's address"))
    }

    /// Sends a datagram; what the system does not take is lost, as in a network.
    ///
    /// # Panics
    /// When there is no such socket.
    pub fn send(&self, socket: SocketId, to: SocketAddr, datagram: &[u8]) -> bool {
        let socket = &self.sockets[socket];
        let sent = if socket.is_connected {
            socket.udp.send(datagram)
        } else {
            socket.udp.send_to(datagram, to)
        };
        sent.is_ok()
    }

    /// Waits until a datagram comes or it is `until`, and hands on what has come: socket, from where, content.
    ///
    /// # Errors
    /// When the system no longer lets us wait.
    pub fn wait(
        &mut self,
        until: Instant,
        mut on_datagram: impl FnMut(SocketId, SocketAddr, &[u8]),
    ) -> Result<(), ArmError> {
        let timeout = if self.unread.is_empty() {
            until.saturating_duration_since(Instant::now())
        } else {
            Duration::ZERO
        };
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(ArmError::system(&self.arm, "waiting for sockets")(error));
            }
            _ => {}
        }
        let mut ready = std::mem::take(&mut self.unread);
        for event in &self.events {
            if !ready.contains(&event.token().0) {
                ready.push(event.token().0);
            }
        }
        for id in ready {
            let mut read = 0;
            loop {
                match self.sockets[id].udp.recv_from(&mut self.buffer) {
                    Ok((len, from)) => on_datagram(id, from, &self.buffer[..len]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // Of an earlier packet, whose receiver was not there (yet).
                    Err(_) => {}
                }
                read += 1;
                if read == READ_MAX {
                    self.unread.push(id);
                    break;
                }
            }
        }
        Ok(())
    }
}
