//! Socket addresses as the kernel writes them.

use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use punctual_proto::canonical;

/// Room for the larger of the two address structures.
pub(super) type AddressBuffer = MaybeUninit<libc::sockaddr_in6>;

const V4_LEN: usize = size_of::<libc::sockaddr_in>();
const V6_LEN: usize = size_of::<libc::sockaddr_in6>();

/// Writes `to` as a socket of that family wants it: mapped into IPv6, or taken out of it. Returns the length.
pub(super) fn encode(to: SocketAddr, ipv6: bool, buffer: &mut AddressBuffer) -> usize {
    match (to, ipv6) {
        (SocketAddr::V6(v6), true) => encode_v6(v6, buffer),
        (SocketAddr::V4(v4), true) => {
            let mapped = v4.ip().to_ipv6_mapped();
            encode_v6(SocketAddrV6::new(mapped, v4.port(), 0, 0), buffer)
        }
        (SocketAddr::V4(v4), false) => encode_v4(v4, buffer),
        (SocketAddr::V6(v6), false) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => encode_v4(SocketAddrV4::new(ip, v6.port()), buffer),
            // The kernel refuses it, and the datagram is counted as refused.
            None => encode_v6(v6, buffer),
        },
    }
}

/// Whether packets to `to` travel as IPv4, whatever the family of the socket.
pub(super) fn is_v4(to: SocketAddr) -> bool {
    to.ip().to_canonical().is_ipv4()
}

fn encode_v4(v4: SocketAddrV4, buffer: &mut AddressBuffer) -> usize {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: v4.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(v4.ip().octets()),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: the buffer is larger than an IPv4 address structure and at least as aligned.
    unsafe {
        buffer
            .as_mut_ptr()
            .cast::<libc::sockaddr_in>()
            .write(address);
    };
    V4_LEN
}

fn encode_v6(v6: SocketAddrV6, buffer: &mut AddressBuffer) -> usize {
    buffer.write(libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: v6.port().to_be(),
        sin6_flowinfo: v6.flowinfo(),
        sin6_addr: libc::in6_addr {
            s6_addr: v6.ip().octets(),
        },
        sin6_scope_id: v6.scope_id(),
    });
    V6_LEN
}

/// Reads the address that the kernel wrote; a mapped one becomes plain IPv4.
///
/// # Safety
/// The kernel wrote `len` bytes of an address into the buffer.
pub(super) unsafe fn decode(buffer: &AddressBuffer, len: usize) -> Option<SocketAddr> {
    if len < V4_LEN {
        return None;
    }
    let start = buffer.as_ptr();
    // SAFETY: both structures begin with the family, and at least that many bytes were written.
    let family = unsafe { start.cast::<libc::sa_family_t>().read() };
    match c_family(family) {
        libc::AF_INET => {
            // SAFETY: the kernel wrote a whole IPv4 structure; the buffer is at least as aligned.
            let v4 = unsafe { start.cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 if len >= V6_LEN => {
            // SAFETY: the kernel wrote a whole IPv6 structure.
            let v6 = unsafe { start.read() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            let v6 = SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id);
            Some(canonical(v6.into()))
        }
        _ => None,
    }
}

/// The own address of a received datagram: the one to answer from, also where it was sent to all hosts of the link.
pub(super) fn local_v4(info: &libc::in_pktinfo) -> IpAddr {
    Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into()
}

/// The same on an IPv6 socket, where IPv4 addresses are mapped, and that of a group is told as it is.
pub(super) fn local_v6(info: &libc::in6_pktinfo) -> Option<IpAddr> {
    let to = Ipv6Addr::from(info.ipi6_addr.s6_addr).to_canonical();
    (!to.is_multicast()).then_some(to)
}

/// What has a datagram leave from an own address, by whatever interface.
pub(super) fn source_v4(from: Ipv4Addr) -> libc::in_pktinfo {
    let address = |ip: Ipv4Addr| libc::in_addr {
        s_addr: u32::from_ne_bytes(ip.octets()),
    };
    libc::in_pktinfo {
        ipi_ifindex: 0,
        ipi_spec_dst: address(from),
        ipi_addr: address(Ipv4Addr::UNSPECIFIED),
    }
}

/// The same on an IPv6 socket.
pub(super) fn source_v6(from: IpAddr) -> libc::in6_pktinfo {
    let ip = match from {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    libc::in6_pktinfo {
        ipi6_addr: libc::in6_addr {
            s6_addr: ip.octets(),
        },
        ipi6_ifindex: 0,
    }
}

fn c_family(family: libc::sa_family_t) -> libc::c_int {
    libc::c_int::from(family)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_and_mapped_ones_plain() {
        let cases = [
            ("10.1.2.3:77", false, "10.1.2.3:77"),
            ("10.1.2.3:77", true, "10.1.2.3:77"),
            ("[::ffff:10.1.2.3]:77", false, "10.1.2.3:77"),
            ("[::ffff:10.1.2.3]:77", true, "10.1.2.3:77"),
            ("[fe80::1%3]:77", true, "[fe80::1%3]:77"),
        ];
        for (to, ipv6, expected) in cases {
            let mut buffer = AddressBuffer::uninit();
            let len = encode(to.parse().unwrap(), ipv6, &mut buffer);
            assert_eq!(len, if ipv6 { V6_LEN } else { V4_LEN });
            // SAFETY: `encode` has just written those bytes.
            let back = unsafe { decode(&buffer, len) };
            assert_eq!(back, Some(expected.parse().unwrap()), "{to}");
        }
        // SAFETY: no bytes are claimed.
        assert_eq!(unsafe { decode(&AddressBuffer::uninit(), 0) }, None);
    }
}
