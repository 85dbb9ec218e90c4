//! `recvmmsg`: many messages a call, each one datagram or several that the kernel joined.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::AsRawFd;
use std::ptr;

use libc::{iovec, mmsghdr, msghdr};

use super::Linux;
use super::address::{self, AddressBuffer};
use super::control::{self, ControlBuffer, RECV_BYTES};
use crate::udp::incoming::{BUFFER_BYTES, MESSAGES_MAX, Message};
use crate::udp::{RecvBatch, SocketStats};

/// Errors of earlier sends that one receive passes over before it gives up for now.
const ERRORS_MAX: u64 = 16;

impl Linux {
    pub(in crate::udp) fn recv(
        &self,
        socket: &socket2::Socket,
        batch: &mut RecvBatch,
        tally: &mut SocketStats,
    ) -> io::Result<()> {
        let mut frames = Frames::uninit();
        let (buffers, received) = batch.refill();
        let count = frames.fill(buffers);
        let messages = loop {
            tally.recv_syscalls += 1;
            let error = match submit(socket, &mut frames.headers, count) {
                Ok(messages) => break messages,
                Err(error) => error,
            };
            match error.raw_os_error().unwrap_or_default() {
                libc::EAGAIN => return Ok(()),
                libc::EINTR => {}
                // An answer to an earlier send came back by ICMP. The call took it from the socket and nothing else.
                libc::ECONNREFUSED
                | libc::ECONNRESET
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ENETDOWN
                | libc::EMSGSIZE
                | libc::EPROTO
                | libc::ENOPROTOOPT => {
                    tally.recv_errors += 1;
                    if tally.recv_errors == ERRORS_MAX {
                        return Ok(());
                    }
                }
                _ => return Err(error),
            }
        };
        for at in 0..messages {
            // SAFETY: the kernel filled that many frames.
            let message = unsafe { frames.message(at, tally) };
            tally.gro_messages += u64::from(message.len > message.stride);
            tally.datagrams_received += message.datagrams() as u64;
            tally.bytes_received += message.len as u64;
            received.push(message);
        }
        Ok(())
    }
}

/// The structures of one call. They point into each other and into the batch, so they are filled anew for each.
struct Frames {
    headers: [MaybeUninit<mmsghdr>; MESSAGES_MAX],
    payloads: [MaybeUninit<iovec>; MESSAGES_MAX],
    addresses: [AddressBuffer; MESSAGES_MAX],
    controls: [ControlBuffer<RECV_BYTES>; MESSAGES_MAX],
}

impl Frames {
    fn uninit() -> Self {
        Self {
            headers: [const { MaybeUninit::uninit() }; MESSAGES_MAX],
            payloads: [const { MaybeUninit::uninit() }; MESSAGES_MAX],
            addresses: [const { AddressBuffer::uninit() }; MESSAGES_MAX],
            controls: [const { ControlBuffer::uninit() }; MESSAGES_MAX],
        }
    }

    /// Describes the buffers and returns how many there are.
    fn fill<'a>(&mut self, buffers: impl Iterator<Item = &'a mut [u8]>) -> usize {
        let mut count = 0;
        for (at, buffer) in buffers.take(MESSAGES_MAX).enumerate() {
            let payload = self.payloads[at].write(iovec {
                iov_base: buffer[..BUFFER_BYTES].as_mut_ptr().cast(),
                iov_len: BUFFER_BYTES,
            });
            // SAFETY: a structure of integers and pointers, for which zero is a value.
            let mut header: msghdr = unsafe { mem::zeroed() };
            header.msg_name = self.addresses[at].as_mut_ptr().cast();
            header.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            header.msg_iov = payload;
            header.msg_iovlen = 1;
            header.msg_control = self.controls[at].as_mut_ptr().cast();
            header.msg_controllen = RECV_BYTES as _;
            self.headers[at].write(mmsghdr {
                msg_hdr: header,
                msg_len: 0,
            });
            count += 1;
        }
        count
    }

    /// What the kernel put into a frame.
    ///
    /// # Safety
    /// The last [`submit`] filled that frame.
    unsafe fn message(&self, at: usize, tally: &mut SocketStats) -> Message {
        // SAFETY: `fill` wrote it and the kernel updated it.
        let frame = unsafe { self.headers[at].assume_init_ref() };
        let header = &frame.msg_hdr;
        tally.truncated_control += u64::from(header.msg_flags & libc::MSG_CTRUNC != 0);
        if header.msg_flags & libc::MSG_TRUNC != 0 {
            tally.truncated += 1;
            return Message::EMPTY;
        }
        // SAFETY: the kernel wrote `msg_namelen` bytes of the address, at most what there is room for.
        let Some(from) =
            (unsafe { address::decode(&self.addresses[at], header.msg_namelen as usize) })
        else {
            return Message::EMPTY;
        };
        // SAFETY: the kernel filled the header, and the control buffers are part of `self`.
        let control = unsafe { control::decode(header) };
        let len = (frame.msg_len as usize).min(BUFFER_BYTES);
        Message {
            from,
            to: control.to,
            ecn: control.ecn,
            len,
            stride: control.stride.unwrap_or(len).max(1),
        }
    }
}

/// Makes the call for the first `count` frames, and returns how many the kernel filled.
///
/// It takes the headers alone, since a mutable borrow of all frames would end the validity of the pointers between them.
fn submit(
    socket: &socket2::Socket,
    headers: &mut [MaybeUninit<mmsghdr>; MESSAGES_MAX],
    count: usize,
) -> io::Result<usize> {
    // SAFETY: `fill` wrote that many headers, whose pointers lead to the other arrays of the frames and to buffers that the
    // caller has borrowed from the batch for as long as it uses these frames. No time limit is given.
    let filled = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT as _,
            ptr::null_mut(),
        )
    };
    usize::try_from(filled).map_err(|_| io::Error::last_os_error())
}
