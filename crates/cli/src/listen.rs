//! What every server of the program is told: where to listen, its key, and whom to admit; and the URLs that lead to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;

use punctual::{Config, Endpoint, EndpointError, PublicKey, ServerKey, ServerUrl, TokenKey};

use crate::failure::Failure;
use crate::key_file::{self, Secret};
use crate::{output, values};

/// Flags of a server.
#[derive(clap::Args)]
pub(crate) struct Listen {
    /// Where to listen, UDP. `[::]:7777` serves IPv6 and IPv4; port 0 lets the system choose.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:7777", value_parser = values::listen)]
    listen: SocketAddr,
    /// The server's key, as `punctual keygen` makes it. Without one, a key is made that lasts until the server ends.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Admits only clients with a token that was made with this key, by `punctual token`.
    #[arg(long, value_name = "FILE")]
    token_key: Option<PathBuf>,
}

impl Listen {
    /// Whether the key ends with the server.
    pub(crate) const fn is_ephemeral(&self) -> bool {
        self.key.is_none()
    }

    /// What clients give besides the URL.
    pub(crate) const fn token_flag(&self) -> &'static str {
        match self.token_key {
            Some(_) => " --token FILE",
            None => "",
        }
    }

    /// A server and its URLs, the one for other machines first. The configuration's token key is that of the flags.
    pub(crate) fn open(&self, config: Config) -> Result<(Endpoint, Vec<String>), Failure> {
        let key = match &self.key {
            Some(file) => ServerKey::from_private(key_file::read_key(file, Secret::ServerKey)?),
            None => ServerKey::generate().map_err(Failure::failed)?,
        };
        let public = key.public();
        let token_key = match &self.token_key {
            Some(file) => Some(TokenKey(key_file::read_key(file, Secret::TokenKey)?)),
            None => None,
        };
        let config = Config {
            token_key,
            ..config
        };
        let endpoint = Endpoint::server(config, self.listen, key).map_err(|error| match error {
            EndpointError::Bind(error) => Failure::bad_input(error),
            error => Failure::failed(error),
        })?;
        let port = endpoint.local_addr().port();
        let hosts = hosts(self.listen.ip());
        if hosts.iter().all(|host| host.is_loopback()) && !self.listen.ip().is_loopback() {
            output::note(
                "This machine has no way to other networks: clients elsewhere put its address in place of the URL's.",
            );
        }
        Ok((endpoint, urls(hosts, port, public)))
    }
}

/// The URLs of a server that listens here, the one for other machines first.
fn urls(hosts: Vec<IpAddr>, port: u16, key: PublicKey) -> Vec<String> {
    let url = |host: IpAddr| ServerUrl::new(host.to_string(), port, key).to_string();
    hosts.into_iter().map(url).collect()
}

/// By which names clients reach a server that listens here: an address that stands for all of the machine's is replaced by
/// the one that it uses towards the outside, and by loopback for trying it out.
fn hosts(listen: IpAddr) -> Vec<IpAddr> {
    if !listen.is_unspecified() {
        return vec![listen];
    }
    let loopback: IpAddr = match listen {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let v4 = outward(
        (Ipv4Addr::UNSPECIFIED, 0).into(),
        (Ipv4Addr::new(192, 0, 2, 1), 9).into(),
    );
    let v6 = listen.is_ipv6().then(|| {
        let documentation = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        outward((Ipv6Addr::UNSPECIFIED, 0).into(), (documentation, 9).into())
    });
    let mut hosts: Vec<IpAddr> = v6.flatten().into_iter().chain(v4).collect();
    if !hosts.contains(&loopback) {
        hosts.push(loopback);
    }
    hosts
}

/// The address that the system would send from. Connecting a UDP socket sends nothing.
fn outward(from: SocketAddr, to: SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind(from).ok()?;
    socket.connect(to).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_unspecified()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_clients_can_use_is_printed() {
        let host: IpAddr = "10.1.2.3".parse().unwrap();
        assert_eq!(hosts(host), [host]);
        for any in ["0.0.0.0", "::"] {
            let hosts = hosts(any.parse().unwrap());
            assert!(!hosts.is_empty());
            for host in hosts {
                assert!(!host.is_unspecified());
            }
        }
    }
}
