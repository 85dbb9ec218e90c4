//! The system calls, and all the unsafe code that they need.
//!
//! `linux/` is our own backend, `portable.rs` the one of other systems, `registration.rs` ties a socket to the poller.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(feature = "portable", not(target_os = "linux")))]
mod portable;
mod registration;

use std::io;
use std::net::SocketAddr;

use super::{BindError, RecvBatch, SendBatch, SocketOptions, SocketStats};

pub(super) use registration::Registration;

/// The backend of one socket.
#[derive(Debug)]
pub(super) enum Engine {
    #[cfg(target_os = "linux")]
    Linux(linux::Linux),
    #[cfg(any(feature = "portable", not(target_os = "linux")))]
    Portable(portable::Portable),
}

impl Engine {
    /// Binds a socket, with the options that are the backend's own. Ours are set before, so that no datagram comes without them; `quinn-udp`
    /// comes after, since on Windows it asks which address the socket has, and one that is not bound has none.
    pub(super) fn bind(
        socket: &socket2::Socket,
        address: SocketAddr,
        options: &SocketOptions,
    ) -> Result<Self, BindError> {
        let bind = || (socket.bind(&address.into())).map_err(BindError::of_bind(address));
        #[cfg(any(feature = "portable", not(target_os = "linux")))]
        if cfg!(not(target_os = "linux")) || options.backend == super::Backend::Portable {
            bind()?;
            return portable::Portable::prepare(socket, address.ip(), options).map(Self::Portable);
        }
        #[cfg(target_os = "linux")]
        {
            let linux = linux::Linux::prepare(socket, address.ip(), options)?;
            bind()?;
            Ok(Self::Linux(linux))
        }
        #[cfg(not(target_os = "linux"))]
        unreachable!("the portable backend has been chosen")
    }

    /// Sends from the front of the batch; whether it stopped because the kernel's buffer was full.
    pub(super) fn send(
        &self,
        socket: &socket2::Socket,
        batch: &mut SendBatch,
        tally: &mut SocketStats,
    ) -> io::Result<bool> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(linux) => linux.send(socket, batch, tally),
            #[cfg(any(feature = "portable", not(target_os = "linux")))]
            Self::Portable(portable) => portable.send(socket, batch, tally),
        }
    }

    /// Fills the batch with what waits.
    pub(super) fn recv(
        &self,
        socket: &socket2::Socket,
        batch: &mut RecvBatch,
        tally: &mut SocketStats,
    ) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(linux) => linux.recv(socket, batch, tally),
            #[cfg(any(feature = "portable", not(target_os = "linux")))]
            Self::Portable(portable) => portable.recv(socket, batch, tally),
        }
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::kernel_drops;

#[cfg(not(target_os = "linux"))]
pub(super) fn kernel_drops(_: &socket2::Socket) -> Option<u64> {
    None
}
