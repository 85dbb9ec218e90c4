//! The two ends of a datagram's way.

use core::net::{IpAddr, SocketAddr};

/// Where a datagram comes from, and which of this host's addresses it was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The peer's address, [`canonical`].
    pub remote: SocketAddr,
    /// The own address, where the socket listens on several: a server answers from it, since firewalls and peers know no other.
    /// `None` leaves it to the system.
    pub local: Option<IpAddr>,
}

/// The address of a peer as all of this knows it: of IPv4 plain, also where it is written mapped into IPv6.
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

impl From<SocketAddr> for Route {
    fn from(remote: SocketAddr) -> Self {
        Self {
            remote,
            local: None,
        }
    }
}
