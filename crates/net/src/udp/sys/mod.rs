//! The system calls, and all the unsafe code that they need.
//!
//! `linux/` is our own backend, `portable.rs` the one of other systems, `registration.rs` ties a socket to the poller.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(feature = "portable", not(target_os = "linux")))]
mod portable;
mod registration;

use std::io;
use std::net::IpAddr;

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
    /// Sets the options that are the backend's own, of a socket that is to be bound to that address.
    pub(super) fn prepare(
        socket: &socket2::Socket,
        bound: IpAddr,
        options: &SocketOptions,
    ) -> Result<Self, BindError> {
        #[cfg(any(feature = "portable", not(target_os = "linux")))]
        if cfg!(not(target_os = "linux")) || options.backend == super::Backend::Portable {
            return portable::Portable::prepare(socket, bound, options).map(Self::Portable);
        }
        #[cfg(target_os = "linux")]
        return linux::Linux::prepare(socket, bound, options).map(Self::Linux);
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
