//! From a host in a URL to addresses.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

use punctual_proto::canonical;

use crate::core::Reach;
use crate::signal::Signal;
use crate::{ConnectError, ServerUrl};

/// Addresses that are tried for one name.
const ADDRESSES_MAX: usize = 8;

/// Looks the host up; waits for the system to do so when it is a name.
pub(crate) fn addresses(
    url: &ServerUrl,
    reach: Reach,
) -> Result<VecDeque<SocketAddr>, ConnectError> {
    let host = || url.host().to_string();
    let found = (url.host(), url.port()).to_socket_addrs();
    let found = found.map_err(|source| ConnectError::Name {
        host: host(),
        source,
    })?;
    let reachable = found
        .map(canonical)
        .filter(|address| reach.includes(address));
    let addresses: VecDeque<_> = reachable.take(ADDRESSES_MAX).collect();
    if addresses.is_empty() {
        return Err(ConnectError::NoAddress { host: host() });
    }
    Ok(addresses)
}

/// As [`addresses`], without holding up the task: a name is looked up on a thread of its own.
pub(crate) async fn addresses_async(
    url: &ServerUrl,
    reach: Reach,
) -> Result<VecDeque<SocketAddr>, ConnectError> {
    if url.host().parse::<IpAddr>().is_ok() {
        return addresses(url, reach);
    }
    let answer = Arc::new(Signal::new(None));
    let (there, asked) = (Arc::clone(&answer), url.clone());
    let look_up = move || {
        *there.lock() = Some(addresses(&asked, reach));
        there.ring();
    };
    let resolver = thread::Builder::new().name("punctual-resolve".into());
    match resolver.spawn(look_up) {
        Ok(_) => answer.wait(Option::take).await,
        Err(source) => Err(ConnectError::Name {
            host: url.host().to_string(),
            source,
        }),
    }
}
