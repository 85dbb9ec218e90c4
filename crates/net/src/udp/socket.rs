//! One UDP socket: bound here, driven by a backend in `sys`.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Type};

use super::stats::Counters;
use super::{BindError, RecvBatch, SendBatch, Sent, SocketOptions, SocketStats, sys};

/// A non-blocking UDP socket.
///
/// It may be shared between threads, though each datagram costs least when one thread has it to itself.
#[derive(Debug)]
pub struct Socket {
    inner: socket2::Socket,
    backend: sys::Engine,
    local: SocketAddr,
    counters: Counters,
}

/// What the kernel granted of the buffers asked for. Linux counts its bookkeeping and reports double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSizes {
    /// Bytes for datagrams that wait to be received.
    pub recv_bytes: usize,
    /// Bytes for datagrams that wait to be sent.
    pub send_bytes: usize,
}

impl Socket {
    /// Binds `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// See [`BindError`]. Buffers smaller than asked for are not an error.
    pub fn bind(address: SocketAddr, options: &SocketOptions) -> Result<Self, BindError> {
        let inner = socket2::Socket::new(
            Domain::for_address(address),
            Type::DGRAM,
            Some(Protocol::UDP),
        )
        .map_err(BindError::at("creating the socket"))?;
        inner
            .set_nonblocking(true)
            .map_err(BindError::at("making the socket non-blocking"))?;
        if address.is_ipv6() {
            inner
                .set_only_v6(!options.dual_stack)
                .map_err(BindError::at("choosing between IPv6 and dual stack"))?;
        }
        if options.reuse_port {
            share_port(&inner)?;
        }
        // Systems that refuse a size, rather than granting less, keep their default.
        // (They take a C int; what is larger would be cut to its low bits.)
        let int_max = i32::MAX as usize;
        let _ = inner.set_recv_buffer_size(options.recv_buffer_bytes.min(int_max));
        let _ = inner.set_send_buffer_size(options.send_buffer_bytes.min(int_max));
        let backend = sys::Engine::bind(&inner, address, options)?;
        let local = inner
            .local_addr()
            .map_err(BindError::at("asking for the bound address"))?
            .as_socket()
            .expect("an IP socket has an IP address");
        Ok(Self {
            inner,
            backend,
            local,
            counters: Counters::default(),
        })
    }

    /// The bound address, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Sends what the batch holds, in order, as far as the kernel takes it now.
    ///
    /// A full kernel buffer is no error: [`Sent::blocked`] tells, and the rest stays in the batch. Datagrams that the kernel
    /// refuses for good are dropped and counted, so that no peer can hold up the others.
    ///
    /// # Errors
    /// When the socket itself is of no more use.
    pub fn send(&self, batch: &mut SendBatch) -> io::Result<Sent> {
        let mut tally = SocketStats::default();
        let blocked = self.backend.send(&self.inner, batch, &mut tally);
        self.counters.add(&tally);
        let count = |value| usize::try_from(value).expect("a batch is far smaller");
        Ok(Sent {
            datagrams: count(tally.datagrams_sent),
            bytes: count(tally.bytes_sent),
            too_large: count(tally.too_large),
            refused: count(tally.refused),
            blocked: blocked?,
        })
    }

    /// Receives what is waiting, at most what the batch has buffers for, and returns the number of datagrams; zero when
    /// nothing was there. What the batch held before is gone.
    ///
    /// # Errors
    /// When the socket itself is of no more use. Errors that belong to earlier sends (a peer's port was closed) are not
    /// reported here.
    pub fn recv(&self, batch: &mut RecvBatch) -> io::Result<usize> {
        let mut tally = SocketStats::default();
        let outcome = self.backend.recv(&self.inner, batch, &mut tally);
        self.counters.add(&tally);
        outcome?;
        Ok(usize::try_from(tally.datagrams_received).expect("a batch is far smaller"))
    }

    /// Counts since the socket was bound.
    pub fn stats(&self) -> SocketStats {
        self.counters.snapshot()
    }

    /// Datagrams that the kernel dropped because the receive buffer was full, or `None` where it does not tell.
    pub fn kernel_drops(&self) -> Option<u64> {
        sys::kernel_drops(&self.inner)
    }

    /// What the kernel granted of the buffers asked for.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn buffer_sizes(&self) -> io::Result<BufferSizes> {
        Ok(BufferSizes {
            recv_bytes: self.inner.recv_buffer_size()?,
            send_bytes: self.inner.send_buffer_size()?,
        })
    }
}

#[cfg(unix)]
fn share_port(socket: &socket2::Socket) -> Result<(), BindError> {
    socket
        .set_reuse_port(true)
        .map_err(BindError::at("sharing the port"))
}

#[cfg(not(unix))]
fn share_port(_: &socket2::Socket) -> Result<(), BindError> {
    let option = "reuse_port";
    Err(BindError::Unsupported { option })
}

#[cfg(unix)]
mod handles {
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

    impl AsFd for super::Socket {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.inner.as_fd()
        }
    }

    impl AsRawFd for super::Socket {
        fn as_raw_fd(&self) -> RawFd {
            self.inner.as_raw_fd()
        }
    }
}

#[cfg(windows)]
mod handles {
    use std::os::windows::io::{AsRawSocket, AsSocket, BorrowedSocket, RawSocket};

    impl AsSocket for super::Socket {
        fn as_socket(&self) -> BorrowedSocket<'_> {
            self.inner.as_socket()
        }
    }

    impl AsRawSocket for super::Socket {
        fn as_raw_socket(&self) -> RawSocket {
            self.inner.as_raw_socket()
        }
    }
}
