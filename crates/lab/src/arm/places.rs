//! Where the sides of an arm are.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

/// The server's address and the clients' addresses: client `flow` has the address `first_client + flow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    server: SocketAddrV4,
    first_client: Ipv4Addr,
    flows: u32,
}

impl Places {
    /// `flows` clients with addresses from `first_client` on; None when there are not so many addresses after it.
    pub fn new(server: SocketAddrV4, first_client: Ipv4Addr, flows: u32) -> Option<Self> {
        first_client.to_bits().checked_add(flows)?;
        Some(Self {
            server,
            first_client,
            flows,
        })
    }

    /// Places on this machine's loopback, which has more than 16 million addresses: for tests without a network.
    ///
    /// # Panics
    /// With more than 65,000 flows.
    pub fn loopback(port: u16, flows: u32) -> Self {
        assert!(flows <= 65_000, "{flows} flows on loopback");
        let server = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        Self::new(server, Ipv4Addr::new(127, 77, 0, 1), flows)
            .expect("they are far from the last address")
    }

    /// Where the server listens.
    pub const fn server(&self) -> SocketAddr {
        SocketAddr::V4(self.server)
    }

    /// How many clients there are.
    pub const fn flows(&self) -> u32 {
        self.flows
    }

    /// Where the client of a flow is; it chooses its port itself.
    pub fn client(&self, flow: u32) -> SocketAddr {
        let address = Ipv4Addr::from_bits(self.first_client.to_bits() + flow);
        SocketAddr::V4(SocketAddrV4::new(address, 0))
    }

    /// Whose address this is.
    pub fn flow_of(&self, address: IpAddr) -> Option<u32> {
        let IpAddr::V4(address) = address.to_canonical() else {
            return None;
        };
        let flow = address.to_bits().checked_sub(self.first_client.to_bits())?;
        (flow < self.flows).then_some(flow)
    }
}
