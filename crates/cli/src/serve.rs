//! `punctual serve`: takes in what `punctual send` sends.

pub(crate) mod guests;
mod view;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use punctual::{CloseCode, Config, Endpoint, PublicKey, Receive, ServerKey, ServerUrl, TokenKey};

use crate::failure::Failure;
use crate::{interrupt, key_file, output, token};
use guests::Guests;
use view::View;

/// Time between two looks at the sessions. A session holds 1,024 messages until then.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long a farewell may take to leave.
const FAREWELL: Duration = Duration::from_millis(100);

/// Take in the messages that `punctual send` sends from another machine.
///
/// Prints the URL that clients need. Runs until Ctrl-C, then says goodbye to its clients and ends with exit code 0.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual keygen --out server.key\n  punctual serve --listen 0.0.0.0:7777 --key server.key"
)]
pub(crate) struct Args {
    /// Where to listen, UDP. `[::]:7777` serves IPv6 and IPv4; port 0 lets the system choose.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:7777")]
    listen: SocketAddr,
    /// The server's key, as `punctual keygen` makes it. Without one, a key is made that lasts until the server ends.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Admits only clients with a token that was made with this key, by `punctual token`.
    #[arg(long, value_name = "FILE")]
    token_key: Option<PathBuf>,
    /// Print JSON objects, one a line, each with an `event`: `listening` {`urls`}, `connected` {`session`, `remote`}, each
    /// second `counts` and at the end `closed` {`session`, `remote`, `messages`, `bytes`, and `reason` at the end}.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let key = match &args.key {
        Some(file) => ServerKey::from_private(key_file::read(file)?.private()),
        None => ServerKey::generate().map_err(Failure::failed)?,
    };
    let public = key.public();
    let token_key = match &args.token_key {
        Some(file) => Some(TokenKey(key_file::read_key(file, token::MAKER)?)),
        None => None,
    };
    let config = Config {
        token_key,
        // They are counted, not kept.
        receive: Receive::Pieces,
        ..Config::default()
    };
    let endpoint = Endpoint::server(config, args.listen, key).map_err(Failure::failed)?;
    let port = endpoint.local_addr().port();
    let urls = urls(args.listen.ip(), port, public);
    interrupt::watch();
    let mut view = View::new(args.json);
    view.on_listening(&urls, args.key.is_none())?;
    let mut guests = Guests::default();
    while !interrupt::is_pressed() {
        let arrival = endpoint
            .accept_timeout(LOOK_EVERY)
            .map_err(Failure::failed)?;
        if let Some(session) = arrival {
            view.on_connected(guests.admit(session))?;
        }
        for guest in guests.serve() {
            view.on_closed(&guest)?;
        }
        view.show(&guests)?;
    }
    for guest in guests.dismiss(CloseCode::SHUTDOWN, "the server was stopped") {
        view.on_closed(&guest)?;
    }
    // The endpoint's thread says goodbye as it goes; what was closed just now is to be on its way before.
    let until = Instant::now() + FAREWELL;
    while endpoint.sessions() > 0 && Instant::now() < until {
        std::thread::sleep(LOOK_EVERY);
    }
    endpoint.close();
    view.on_end(&guests)
}

/// The URLs of a server that listens here, the one for other machines first.
pub(crate) fn urls(listen: IpAddr, port: u16, key: PublicKey) -> Vec<String> {
    let url = |host| ServerUrl::new(host, port, key).to_string();
    hosts(listen).into_iter().map(url).collect()
}

/// By which names clients reach a server that listens here: an address that stands for all of the machine's is replaced by
/// the one that it uses towards the outside, and by loopback for trying it out.
fn hosts(listen: IpAddr) -> Vec<String> {
    if !listen.is_unspecified() {
        return vec![listen.to_string()];
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
    let mut hosts: Vec<String> = v6
        .flatten()
        .into_iter()
        .chain(v4)
        .map(|ip| ip.to_string())
        .collect();
    let loopback = loopback.to_string();
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

/// Prints a line of JSON.
pub(crate) fn print_line(value: &serde_json::Value) -> Result<(), Failure> {
    output::print(&format!("{value}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_clients_can_use_is_printed() {
        let host: IpAddr = "10.1.2.3".parse().unwrap();
        assert_eq!(hosts(host), ["10.1.2.3"]);
        for any in ["0.0.0.0", "::"] {
            let hosts = hosts(any.parse().unwrap());
            assert!(!hosts.is_empty());
            for host in hosts {
                assert!(!host.parse::<IpAddr>().unwrap().is_unspecified());
            }
        }
    }
}
