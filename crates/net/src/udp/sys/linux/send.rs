//! `sendmmsg`: many messages a call, each one datagram or a run of equal ones that the kernel splits.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use libc::{iovec, mmsghdr, msghdr};

use super::Linux;
use super::address::{self, AddressBuffer};
use super::control::{self, ControlBuffer, SEND_BYTES};
use crate::udp::outgoing::{Message, Split};
use crate::udp::{SendBatch, SocketStats};

/// Messages of one call. 64 cost 10 % less a message than 32 on loopback; the frames live on the stack and take 10 KiB.
const FRAMES: usize = 64;

/// What to do about an error.
enum Remedy {
    /// The kernel's buffer is full: come back later.
    Wait,
    /// Nothing happened: again.
    Retry,
    /// The first message or datagram has been dealt with: go on.
    Continue,
    /// The socket is of no more use.
    GiveUp(io::Error),
}

impl Linux {
    pub(in crate::udp) fn send(
        &self,
        socket: &socket2::Socket,
        batch: &mut SendBatch,
        tally: &mut SocketStats,
    ) -> io::Result<bool> {
        let mut frames = Frames::uninit();
        while !batch.is_empty() {
            let together = self.segmentation.load(Ordering::Relaxed);
            let count = frames.fill(batch, together, self.ipv6);
            tally.send_syscalls += 1;
            match submit(socket, &mut frames.headers, count) {
                Ok(taken) => self.on_taken(taken, together, batch, tally),
                Err(error) => match on_error(error, together, batch, tally) {
                    Remedy::Wait => {
                        tally.blocked += 1;
                        return Ok(true);
                    }
                    Remedy::Retry | Remedy::Continue => {}
                    Remedy::GiveUp(error) => return Err(error),
                },
            }
        }
        Ok(false)
    }

    /// The kernel took the first `taken` frames.
    fn on_taken(
        &self,
        taken: usize,
        together: bool,
        batch: &mut SendBatch,
        tally: &mut SocketStats,
    ) {
        for _ in 0..taken {
            let Some(&front) = batch.pending().first() else {
                return;
            };
            let datagrams = if together && front.is_coalesced() {
                tally.gso_messages += 1;
                front.datagrams()
            } else {
                1
            };
            if front.split == Split::SuspectOffload
                && front.is_full()
                && self.segmentation.swap(false, Ordering::Relaxed)
            {
                tally.segmentation_disabled += 1;
            }
            tally.datagrams_sent += datagrams as u64;
            tally.bytes_sent += batch.remove(datagrams) as u64;
        }
    }
}

/// The kernel refused the first frame with `error`.
fn on_error(
    error: io::Error,
    together: bool,
    batch: &mut SendBatch,
    tally: &mut SocketStats,
) -> Remedy {
    let Some(code) = error.raw_os_error() else {
        return Remedy::GiveUp(error);
    };
    match code {
        libc::EAGAIN => return Remedy::Wait,
        libc::EINTR => return Remedy::Retry,
        libc::EBADF | libc::ENOTSOCK | libc::EFAULT => {
            return Remedy::GiveUp(error);
        }
        _ => {}
    }
    let Some(front) = batch.front_mut() else {
        return Remedy::GiveUp(error);
    };
    if together && front.is_coalesced() {
        // Splitting is done by the network device or on its behalf, and where that fails the kernel says EIO or EINVAL, at
        // the time of sending only. EINVAL has other causes too, so the offload is blamed once a datagram passes alone.
        front.split = match code {
            libc::EIO | libc::EINVAL => Split::SuspectOffload,
            _ => Split::Yes,
        };
        return Remedy::Continue;
    }
    if code == libc::EMSGSIZE {
        tally.too_large += 1;
        batch.remove(1);
    } else {
        tally.refused += 1;
        batch.refuse(error);
    }
    Remedy::Continue
}

/// The structures of one call. They point into each other and into the batch, so they are filled anew for each.
struct Frames {
    headers: [MaybeUninit<mmsghdr>; FRAMES],
    payloads: [MaybeUninit<iovec>; FRAMES],
    addresses: [AddressBuffer; FRAMES],
    controls: [ControlBuffer<SEND_BYTES>; FRAMES],
}

impl Frames {
    fn uninit() -> Self {
        Self {
            headers: [const { MaybeUninit::uninit() }; FRAMES],
            payloads: [const { MaybeUninit::uninit() }; FRAMES],
            addresses: [const { AddressBuffer::uninit() }; FRAMES],
            controls: [const { ControlBuffer::uninit() }; FRAMES],
        }
    }

    /// Describes the front of the batch and returns how many frames that took.
    fn fill(&mut self, batch: &SendBatch, together: bool, ipv6: bool) -> usize {
        let mut count = 0;
        for message in batch.pending() {
            let payload = batch.payload(message);
            let coalesced = together && message.is_coalesced();
            let step = if coalesced {
                payload.len()
            } else {
                message.segment_bytes
            };
            for part in payload.chunks(step) {
                if count == FRAMES {
                    return count;
                }
                self.describe(count, message, part, coalesced, ipv6);
                count += 1;
            }
        }
        count
    }

    fn describe(&mut self, at: usize, message: &Message, part: &[u8], together: bool, ipv6: bool) {
        let address = &mut self.addresses[at];
        let address_len = address::encode(message.to, ipv6, address);
        let control = &mut self.controls[at];
        let control_len = control::encode(message, together, ipv6, control);
        let payload = self.payloads[at].write(iovec {
            // The kernel only reads it; the structure serves both directions.
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        });
        // SAFETY: a structure of integers and pointers, for which zero is a value.
        let mut header: msghdr = unsafe { mem::zeroed() };
        header.msg_name = address.as_mut_ptr().cast();
        header.msg_namelen = address_len as libc::socklen_t;
        header.msg_iov = payload;
        header.msg_iovlen = 1;
        if control_len > 0 {
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = control_len as _;
        }
        self.headers[at].write(mmsghdr {
            msg_hdr: header,
            msg_len: 0,
        });
    }
}

/// Makes the call for the first `count` frames, and returns how many the kernel took: at least one.
///
/// It takes the headers alone, since a mutable borrow of all frames would end the validity of the pointers between them.
fn submit(
    socket: &socket2::Socket,
    headers: &mut [MaybeUninit<mmsghdr>; FRAMES],
    count: usize,
) -> io::Result<usize> {
    // SAFETY: `fill` wrote that many headers, whose pointers lead to the other arrays of the frames and into the arena of
    // the batch. Neither has moved or changed since: `send` holds both, and calls this right after `fill`.
    let taken = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    };
    // Zero would only be the answer to zero frames; it must not turn into an endless loop.
    match usize::try_from(taken) {
        Ok(taken) if taken > 0 => Ok(taken),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests;
