//! As much of IP headers as the emulator needs: whose path a packet takes, what to write down of it, and its ECN bits.
//!
//! RFC 791 and RFC 8200. What is not a whole header is no packet of ours ([`Header::read`] says None).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{FIRST_CLIENT, SERVER, SOUNDING, SOUNDING_PORT, Site};

/// The least that an IPv4 host must take (RFC 791).
pub(super) const MTU_MIN: u16 = 576;

/// `fd77::1`: the server in IPv6 (a unique local address, RFC 4193).
pub(super) const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
/// `fd77:0:0:1::`; the number of the client, from 1 on, is in the last 32 bits.
pub(super) const CLIENTS_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 1, 0, 0, 0, 0);

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What of a packet's header matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    /// Bytes before the payload of IP.
    len: usize,
}

impl Header {
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let fixed = packet.first_chunk::<20>()?;
                let len = usize::from(fixed[0] & 0xf) * 4;
                if len < 20 || packet.len() < len {
                    return None;
                }
                let address = |at: usize| {
                    IpAddr::V4(Ipv4Addr::new(
                        fixed[at],
                        fixed[at + 1],
                        fixed[at + 2],
                        fixed[at + 3],
                    ))
                };
                Some(Self {
                    source: address(12),
                    destination: address(16),
                    protocol: fixed[9],
                    len,
                })
            }
            6 => {
                let fixed = packet.first_chunk::<40>()?;
                let address = |at: usize| {
                    let mut bytes = [0; 16];
                    bytes.copy_from_slice(&fixed[at..at + 16]);
                    IpAddr::V6(Ipv6Addr::from(bytes))
                };
                Some(Self {
                    source: address(8),
                    destination: address(24),
                    protocol: fixed[6],
                    len: 40,
                })
            }
            _ => None,
        }
    }

    /// The ports, of TCP and UDP.
    pub(super) fn ports(&self, packet: &[u8]) -> Option<(u16, u16)> {
        if self.protocol != TCP && self.protocol != UDP {
            return None;
        }
        let bytes = packet.get(self.len..self.len + 4)?;
        let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Some((port(0), port(2)))
    }

    /// The sequence number, of TCP.
    pub(super) fn sequence(&self, packet: &[u8]) -> Option<u32> {
        if self.protocol != TCP {
            return None;
        }
        let bytes = packet.get(self.len + 4..)?.first_chunk::<4>()?;
        Some(u32::from_be_bytes(*bytes))
    }

    pub(super) const fn protocol_name(&self) -> &'static str {
        match self.protocol {
            1 => "icmp",
            TCP => "tcp",
            UDP => "udp",
            58 => "icmp6",
            _ => "other",
        }
    }
}

/// Whether the emulator itself sent it, to see how long it takes: eight bytes of time.
pub(super) fn is_sounding(packet: &[u8]) -> bool {
    const UDP_HEADER: usize = 8;
    Header::read(packet).is_some_and(|header| {
        header.source == FIRST_CLIENT
            && header.destination == SOUNDING
            && header.protocol == UDP
            && header
                .ports(packet)
                .is_some_and(|(_, to)| to == SOUNDING_PORT)
            && packet.len() == header.len + UDP_HEADER + size_of::<u64>()
    })
}

/// Of a TCP packet between the server and a client: which side sent it, whose it is, and what follows the IP header.
pub(crate) fn tcp_of(packet: &[u8]) -> Option<(Site, u32, &[u8])> {
    let header = Header::read(packet).filter(|header| header.protocol == TCP)?;
    let (from, client) = if is_server(header.source) {
        (Site::Server, client_of(header.destination))
    } else {
        (Site::Client, client_of(header.source))
    };
    Some((
        from,
        u32::try_from(client?).ok()?,
        packet.get(header.len..)?,
    ))
}

/// Which client, from 0 on, has this address; None: it is nobody's.
pub(super) fn client_of(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(address) => {
            let number = address.to_bits().checked_sub(FIRST_CLIENT.to_bits())?;
            Some(number as usize)
        }
        IpAddr::V6(address) => {
            let number = address.to_bits().checked_sub(CLIENTS_V6.to_bits() + 1)?;
            usize::try_from(number).ok()
        }
    }
}

/// Whether it is the server's address.
pub(super) fn is_server(address: IpAddr) -> bool {
    address == IpAddr::V4(SERVER) || address == IpAddr::V6(SERVER_V6)
}

/// Whether its sender reacts to marks (RFC 3168).
pub(super) fn is_ecn_capable(packet: &[u8]) -> bool {
    match packet {
        [first, second, ..] if first >> 4 == 4 => second & 0b11 != 0,
        [first, second, ..] if first >> 4 == 6 => (second >> 4) & 0b11 != 0,
        _ => false,
    }
}

/// Marks a packet: congestion experienced. The checksum of IPv4 changes with it (RFC 1624, equation 3).
pub(super) fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 0b11;
            let new = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
            sum = (sum & 0xffff) + (sum >> 16);
            sum = (sum & 0xffff) + (sum >> 16);
            packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
        Some(6) if packet.len() >= 40 => packet[1] |= 0b11 << 4,
        _ => {}
    }
}
