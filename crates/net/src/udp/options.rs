//! How a socket is to be bound, and why it was not.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// How to bind a [`Socket`](super::Socket).
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// Bytes of datagrams that the kernel holds until we receive them. Default 4 MiB, on Linux room for 3,640 datagrams of
    /// 1,000 bytes or 10,000 of 100, since each takes more than its payload. The kernel silently grants no more than its
    /// limit (Linux: `net.core.rmem_max`); [`Socket::buffer_sizes`](super::Socket::buffer_sizes) tells what it granted.
    pub recv_buffer_bytes: usize,
    /// Bytes on their way out before a send reports `blocked`. Default 2 MiB; limit `net.core.wmem_max`.
    pub send_buffer_bytes: usize,
    /// Several sockets share the address and the kernel spreads the senders over them (`SO_REUSEPORT`). Default off: a
    /// second process on the same port is then an error, not a thief of packets.
    pub reuse_port: bool,
    /// Datagrams larger than the link are refused (`too_large`) and routers drop rather than fragment, as path MTU
    /// discovery needs. Default on; when off, the system may fragment them.
    pub dont_fragment: bool,
    /// An IPv6 socket serves IPv4 peers too. Default off.
    pub dual_stack: bool,
    /// Lets the kernel split and join runs of equal datagrams (GSO, GRO) where it can. Default on; switch it off to see
    /// what it gains, or to play many peers from one socket.
    pub offload: bool,
    /// Who makes the system calls. Default [`Backend::Native`].
    pub backend: Backend,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            recv_buffer_bytes: 4 << 20,
            send_buffer_bytes: 2 << 20,
            reuse_port: false,
            dont_fragment: true,
            dual_stack: false,
            offload: true,
            backend: Backend::Native,
        }
    }
}

/// Who makes the system calls of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// The best that there is for this system: our own on Linux, the portable one elsewhere.
    #[default]
    Native,
    /// `quinn-udp`. On Linux it is there with the feature `portable`, for its tests; it ignores the options
    /// `dont_fragment` (always on) and, when it receives, `offload`.
    #[cfg(any(feature = "portable", not(target_os = "linux")))]
    Portable,
}

/// Why a socket could not be bound.
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket has the address. Choose another port, or share it with `reuse_port` on both.
    AddressInUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// No interface of this machine has the address.
    AddressNotAvailable {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The system does not let this user have the port; those below 1,024 often need a privilege.
    PermissionDenied {
        /// The address asked for.
        address: SocketAddr,
    },
    /// This system has no such option.
    Unsupported {
        /// The field of [`SocketOptions`].
        option: &'static str,
    },
    /// Anything else that the system answered.
    System {
        /// What was being done.
        step: &'static str,
        /// Its answer.
        source: io::Error,
    },
}

impl BindError {
    pub(super) fn at(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { step, source }
    }

    pub(super) fn of_bind(address: SocketAddr) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::AddrInUse => Self::AddressInUse { address },
            io::ErrorKind::AddrNotAvailable => Self::AddressNotAvailable { address },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { address },
            _ => Self::System {
                step: "binding the address",
                source,
            },
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddressInUse { address } => write!(
                f,
                "{address} is in use by another socket; choose another port, or stop what holds it"
            ),
            Self::AddressNotAvailable { address } => {
                write!(
                    f,
                    "no interface of this machine has the address {}",
                    address.ip()
                )
            }
            Self::PermissionDenied { address } => write!(
                f,
                "not permitted to bind {address}; ports below 1024 may need a privilege"
            ),
            Self::Unsupported { option } => {
                write!(f, "this system does not support the socket option {option}")
            }
            Self::System { step, source } => write!(f, "{step} failed: {source}"),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
