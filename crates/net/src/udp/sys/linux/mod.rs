//! The Linux backend: `send.rs` and `recv.rs` make the calls; `address.rs` and `control.rs` speak the kernel's structures.

mod address;
mod control;
mod recv;
mod send;

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;

use libc::c_int;

use crate::udp::{BindError, SocketOptions};

/// What the backend remembers of a socket.
#[derive(Debug)]
pub(in crate::udp) struct Linux {
    ipv6: bool,
    /// Whether runs of equal datagrams may go to the kernel as one message. A network device can turn out not to do it,
    /// which shows at the first send only.
    segmentation: AtomicBool,
}

impl Linux {
    pub(in crate::udp) fn prepare(
        socket: &socket2::Socket,
        bound: IpAddr,
        options: &SocketOptions,
    ) -> Result<Self, BindError> {
        let ipv6 = bound.is_ipv6();
        let discover = BindError::at("forbidding fragmentation");
        (|| {
            // Both families for a dual-stack socket; one that serves IPv6 only accepts and never needs the IPv4 ones.
            let mode = if options.dont_fragment {
                libc::IP_PMTUDISC_PROBE
            } else {
                libc::IP_PMTUDISC_DONT
            };
            set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, mode)?;
            if ipv6 {
                // PROBE alone only ignores the kernel's idea of the path; it is DONTFRAG that keeps IPv6 from fragmenting.
                let forbid = c_int::from(options.dont_fragment);
                set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, mode)?;
                set(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, forbid)?;
            }
            Ok(())
        })()
        .map_err(discover)?;
        set(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)
            .and_then(|()| match ipv6 {
                true => set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
                false => Ok(()),
            })
            .map_err(BindError::at("asking for congestion marks"))?;
        if bound.is_unspecified() {
            // An IPv6 socket tells of IPv4 datagrams by the same message.
            match ipv6 {
                true => set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
                false => set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
            }
            .map_err(BindError::at("asking which address datagrams are sent to"))?;
        }
        // Kernels before 4.18 cannot split, before 5.0 cannot join; then each datagram is a message.
        let splits = options.offload && set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok();
        if options.offload {
            let _ = set(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
        }
        Ok(Self {
            ipv6,
            segmentation: AtomicBool::new(splits),
        })
    }
}

fn set(socket: &socket2::Socket, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which the kernel only reads, during the call.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Position of the drop counter in what `SO_MEMINFO` answers (`linux/sock_diag.h`).
const SK_MEMINFO_DROPS: usize = 8;

pub(in crate::udp) fn kernel_drops(socket: &socket2::Socket) -> Option<u64> {
    let mut memory = [0_u32; SK_MEMINFO_DROPS + 1];
    let mut len = size_of_val(&memory) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `memory`, and how many into `len`.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            memory.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let complete = outcome == 0 && len as usize == size_of_val(&memory);
    complete.then(|| memory[SK_MEMINFO_DROPS].into())
}
