//! The backend of systems without one of our own: `quinn-udp` 0.5, which sends one message a call.
//!
//! No unsafe code here; it stands in this folder beside the backend that it replaces.

use std::array;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use punctual_proto::canonical;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::udp::incoming::{self, BUFFER_BYTES};
use crate::udp::outgoing::Split;
use crate::udp::{BindError, Ecn, RecvBatch, SendBatch, SocketOptions, SocketStats};

/// Errors of earlier sends that one receive passes over before it gives up for now.
const ERRORS_MAX: u64 = 16;

#[derive(Debug)]
pub(in crate::udp) struct Portable {
    state: UdpSocketState,
    ipv6: bool,
    /// It is bound to all addresses of this host.
    is_wild: bool,
    offload: bool,
}

impl Portable {
    pub(in crate::udp) fn prepare(
        socket: &socket2::Socket,
        bound: IpAddr,
        options: &SocketOptions,
    ) -> Result<Self, BindError> {
        let state = UdpSocketState::new(UdpSockRef::from(socket))
            .map_err(BindError::at("setting the options of the socket"))?;
        Ok(Self {
            state,
            ipv6: bound.is_ipv6(),
            is_wild: bound.is_unspecified(),
            offload: options.offload,
        })
    }

    pub(in crate::udp) fn send(
        &self,
        socket: &socket2::Socket,
        batch: &mut SendBatch,
        tally: &mut SocketStats,
    ) -> io::Result<bool> {
        while let Some(&message) = batch.pending().first() {
            let together = if self.offload && message.is_coalesced() {
                message.datagrams().min(self.state.max_gso_segments())
            } else {
                1
            };
            let payload = batch.payload(&message);
            let contents = &payload[..payload.len().min(together * message.segment_bytes)];
            let transmit = Transmit {
                destination: self.destination(message.to),
                ecn: EcnCodepoint::from_bits(message.ecn.bits()),
                contents,
                segment_size: (together > 1).then_some(message.segment_bytes),
                src_ip: message.from,
            };
            tally.send_syscalls += 1;
            let outcome = self.state.try_send(UdpSockRef::from(socket), &transmit);
            match outcome {
                Ok(()) => {
                    tally.gso_messages += u64::from(together > 1);
                    tally.datagrams_sent += together as u64;
                    tally.bytes_sent += batch.remove(together) as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tally.blocked += 1;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // `quinn-udp` itself switches the offload off when it sees that it does not work.
                Err(_) if together > 1 => {
                    batch.front_mut().expect("just looked at").split = Split::Yes;
                }
                Err(error) if is_too_large(&error) => {
                    tally.too_large += 1;
                    batch.remove(1);
                }
                Err(error) => {
                    tally.refused += 1;
                    batch.refuse(error);
                }
            }
        }
        Ok(false)
    }

    pub(in crate::udp) fn recv(
        &self,
        socket: &socket2::Socket,
        batch: &mut RecvBatch,
        tally: &mut SocketStats,
    ) -> io::Result<()> {
        let (mut buffers, received) = batch.refill();
        // Some systems fill one buffer a call, however many there are.
        loop {
            let count = buffers.len().min(BATCH_SIZE);
            if count == 0 {
                return Ok(());
            }
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] = array::from_fn(|_| {
                let buffer = buffers.next().unwrap_or_default();
                let len = buffer.len().min(BUFFER_BYTES);
                IoSliceMut::new(&mut buffer[..len])
            });
            if self.fill(socket, &mut slices[..count], received, tally)? < count {
                return Ok(());
            }
        }
    }

    /// One call's messages, one a buffer; how many there were.
    fn fill(
        &self,
        socket: &socket2::Socket,
        buffers: &mut [IoSliceMut<'_>],
        received: &mut Vec<incoming::Message>,
        tally: &mut SocketStats,
    ) -> io::Result<usize> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let metas = &mut metas[..buffers.len()];
        let messages = loop {
            tally.recv_syscalls += 1;
            let sock = UdpSockRef::from(socket);
            match self.state.recv(sock, buffers, metas) {
                Ok(messages) => break messages,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if !is_of_a_send(&error) => return Err(error),
                Err(_) => {
                    tally.recv_errors += 1;
                    if tally.recv_errors == ERRORS_MAX {
                        return Ok(0);
                    }
                }
            }
        };
        for meta in &metas[..messages] {
            let message = incoming::Message {
                from: canonical(meta.addr),
                to: meta.dst_ip.filter(|ip| self.tells_of(*ip)),
                ecn: meta
                    .ecn
                    .map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8)),
                len: meta.len,
                stride: meta.stride.max(1),
            };
            tally.gro_messages += u64::from(message.len > message.stride);
            tally.datagrams_received += message.datagrams() as u64;
            tally.bytes_received += message.len as u64;
            received.push(message);
        }
        Ok(messages)
    }

    /// Whether an own address is of use. (An IPv4 one on an IPv6 socket cannot be answered from on every system.)
    fn tells_of(&self, own: IpAddr) -> bool {
        self.is_wild && own.to_canonical().is_ipv6() == self.ipv6
    }

    /// An IPv6 socket wants IPv4 addresses mapped, an IPv4 socket wants them plain.
    fn destination(&self, to: SocketAddr) -> SocketAddr {
        match to {
            SocketAddr::V4(v4) if self.ipv6 => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
            SocketAddr::V6(_) if !self.ipv6 => canonical(to),
            _ => to,
        }
    }
}

fn is_too_large(error: &io::Error) -> bool {
    let code = if cfg!(windows) {
        10_040 // WSAEMSGSIZE
    } else if cfg!(any(target_os = "linux", target_os = "android")) {
        90 // EMSGSIZE
    } else {
        40 // EMSGSIZE on macOS and the BSDs
    };
    error.raw_os_error() == Some(code)
}

/// Whether the error tells of an earlier send (an ICMP message came back) rather than of the socket.
fn is_of_a_send(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, HostUnreachable, NetworkDown, NetworkUnreachable,
    };
    /// WSAENETRESET, which Windows answers when the time of a datagram was exceeded.
    const NETWORK_RESET: i32 = 10_052;
    matches!(
        error.kind(),
        ConnectionRefused | ConnectionReset | HostUnreachable | NetworkDown | NetworkUnreachable
    ) || (cfg!(windows) && error.raw_os_error() == Some(NETWORK_RESET))
}
