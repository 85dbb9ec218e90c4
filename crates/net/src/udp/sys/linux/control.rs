//! Control messages: what goes with a datagram beside its payload.

use std::mem::{self, MaybeUninit};
use std::net::IpAddr;

use libc::{c_int, cmsghdr, in_pktinfo, in6_pktinfo, msghdr};

use super::address;
use crate::udp::Ecn;
use crate::udp::outgoing;

/// Sending needs a mark (24 bytes), the own address (40) and a segment size (24).
pub(super) const SEND_BYTES: usize = 88;

/// Receiving needs a mark (24 bytes; an IPv4 datagram on a dual-stack socket: 24 + 24), a stride (24) and the own address (40). The
/// rest is for what a later option adds: what does not fit is dropped by the kernel with no more than a flag, which we count.
pub(super) const RECV_BYTES: usize = 192;

const _: () = {
    assert!(SEND_BYTES >= space::<c_int>() + space::<in6_pktinfo>() + space::<u16>());
    assert!(RECV_BYTES >= 3 * space::<c_int>() + space::<in6_pktinfo>() + 64);
};

const fn space<T>() -> usize {
    // SAFETY: only arithmetic; it is marked unsafe because all functions of libc are.
    unsafe { libc::CMSG_SPACE(size_of::<T>() as u32) as usize }
}

/// Room for control messages, aligned as they must be.
#[repr(C)]
pub(super) struct ControlBuffer<const BYTES: usize> {
    align: [cmsghdr; 0],
    bytes: [MaybeUninit<u8>; BYTES],
}

impl<const BYTES: usize> ControlBuffer<BYTES> {
    pub(super) const fn uninit() -> Self {
        Self {
            align: [],
            bytes: [const { MaybeUninit::uninit() }; BYTES],
        }
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().cast()
    }
}

/// Writes the mark, the own address and the segment size that `message` needs, and returns the length: 0 when it needs none.
pub(super) fn encode(
    message: &outgoing::Message,
    together: bool,
    ipv6: bool,
    buffer: &mut ControlBuffer<SEND_BYTES>,
) -> usize {
    let mut len = 0;
    if message.ecn != Ecn::NotEct {
        let mark = c_int::from(message.ecn.bits());
        // A dual-stack socket ignores the traffic class of a datagram that leaves as IPv4.
        len = if address::is_v4(message.to) {
            push(buffer, len, libc::IPPROTO_IP, libc::IP_TOS, mark)
        } else {
            push(buffer, len, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, mark)
        };
    }
    match message.from {
        Some(from) if ipv6 => {
            let source = address::source_v6(from);
            len = push(buffer, len, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, source);
        }
        Some(IpAddr::V4(from)) => {
            let source = address::source_v4(from);
            len = push(buffer, len, libc::IPPROTO_IP, libc::IP_PKTINFO, source);
        }
        Some(IpAddr::V6(_)) | None => {}
    }
    if together {
        let segment = u16::try_from(message.segment_bytes).expect("a datagram is below 64 KiB");
        len = push(buffer, len, libc::SOL_UDP, libc::UDP_SEGMENT, segment);
    }
    len
}

/// Appends one control message at `at` and returns where the next one goes.
fn push<T: Copy>(
    buffer: &mut ControlBuffer<SEND_BYTES>,
    at: usize,
    level: c_int,
    kind: c_int,
    value: T,
) -> usize {
    let end = at + space::<T>();
    assert!(
        end <= SEND_BYTES,
        "the buffer has room for all that we send"
    );
    // SAFETY: `at` is 0 or a multiple of the alignment (a sum of `CMSG_SPACE`), and header and value lie within the buffer,
    // as just asserted. Every field of the header that libc defines is written, since it is zeroed first (it has padding
    // on some C libraries).
    unsafe {
        let header = buffer.as_mut_ptr().add(at).cast::<cmsghdr>();
        let mut filled: cmsghdr = mem::zeroed();
        filled.cmsg_len = libc::CMSG_LEN(size_of::<T>() as u32) as _;
        filled.cmsg_level = level;
        filled.cmsg_type = kind;
        header.write(filled);
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
    }
    end
}

/// What the kernel said about a received message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) ecn: Ecn,
    /// The own address that it was sent to.
    pub(super) to: Option<IpAddr>,
    /// Bytes of each datagram when several were joined.
    pub(super) stride: Option<usize>,
}

/// Reads the control messages of a received message; those that we did not ask for are passed over.
///
/// # Safety
/// The kernel filled `header` in a `recvmsg`, and its control buffer is still there.
pub(super) unsafe fn decode(header: &msghdr) -> Received {
    let mut received = Received::default();
    // SAFETY: the kernel filled the control buffer, as the caller promises.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !next.is_null() {
        // SAFETY: `next` points to a control message within the buffer, whose header is complete.
        let (cmsg, data) = unsafe { (next.read(), libc::CMSG_DATA(next)) };
        #[allow(clippy::unnecessary_cast, reason = "32 bits on some C libraries")]
        let len = cmsg.cmsg_len as usize;
        match (cmsg.cmsg_level, cmsg.cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                // One byte, unlike when it is sent.
                // SAFETY: the value lies within the message.
                if let Some(mark) = unsafe { value::<u8>(data, len) } {
                    received.ecn = Ecn::from_bits(mark);
                }
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                // SAFETY: as above.
                if let Some(class) = unsafe { value::<c_int>(data, len) } {
                    received.ecn = Ecn::from_bits((class & 0b11) as u8);
                }
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // SAFETY: as above.
                let info = unsafe { value::<in_pktinfo>(data, len) };
                received.to = info.map(|info| address::local_v4(&info));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // SAFETY: as above.
                let info = unsafe { value::<in6_pktinfo>(data, len) };
                received.to = info.and_then(|info| address::local_v6(&info));
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                // SAFETY: as above.
                let stride = unsafe { value::<c_int>(data, len) };
                received.stride = stride.and_then(|stride| usize::try_from(stride).ok());
            }
            _ => {}
        }
        // SAFETY: both pointers are to the buffer that the kernel filled.
        next = unsafe { libc::CMSG_NXTHDR(header, next) };
    }
    received
}

/// The value of a control message of `len` bytes, if it is long enough.
///
/// # Safety
/// `data` points to the value of a control message of that length.
unsafe fn value<T: Copy>(data: *const u8, len: usize) -> Option<T> {
    // SAFETY: only arithmetic.
    let needed = unsafe { libc::CMSG_LEN(size_of::<T>() as u32) as usize };
    // SAFETY: the length says that the value is there; it need not be aligned.
    (len >= needed).then(|| unsafe { data.cast::<T>().read_unaligned() })
}
