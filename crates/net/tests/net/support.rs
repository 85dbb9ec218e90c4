//! Two ends on loopback. Every wait is bounded; nothing sleeps and nothing depends on how long things take.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use punctual_net::udp::{
    Backend, Ecn, Poller, RecvBatch, SendBatch, Socket, SocketId, SocketOptions,
};

pub(crate) const LOOPBACK_V4: &str = "127.0.0.1:0";
pub(crate) const LOOPBACK_V6: &str = "[::1]:0";

/// A datagram must be there long before this; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(10);

/// Every backend that this build has.
pub(crate) fn backends() -> Vec<SocketOptions> {
    let with = |backend| SocketOptions {
        backend,
        ..SocketOptions::default()
    };
    vec![
        with(Backend::Native),
        #[cfg(feature = "portable")]
        with(Backend::Portable),
    ]
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) from: SocketAddr,
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Ecn,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct Receiver {
    pub(crate) socket: Arc<Socket>,
    poller: Poller,
    id: SocketId,
    batch: RecvBatch,
}

impl Receiver {
    pub(crate) fn bind(address: &str, options: &SocketOptions) -> Self {
        let socket = Arc::new(Socket::bind(address.parse().unwrap(), options).unwrap());
        let mut poller = Poller::new().unwrap();
        let id = poller.watch(Arc::clone(&socket)).unwrap();
        Self {
            socket,
            poller,
            id,
            batch: RecvBatch::new(8),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// Receives until `count` datagrams are there.
    pub(crate) fn collect(&mut self, count: usize) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        while arrived.len() < count {
            if self.socket.recv(&mut self.batch).unwrap() == 0 {
                let woke = self.poller.wait(Some(PATIENCE)).unwrap();
                assert!(
                    woke.sockets == 1 && self.poller.is_readable(self.id),
                    "{} of {count} datagrams came",
                    arrived.len()
                );
            }
            arrived.extend(self.batch.datagrams().map(|datagram| Arrived {
                from: datagram.from,
                to: datagram.to,
                ecn: datagram.ecn,
                payload: datagram.payload.to_vec(),
            }));
        }
        arrived
    }

    /// Waits until the kernel takes datagrams again.
    pub(crate) fn wait_for_room(&mut self) {
        self.poller.watch_writable(self.id, true).unwrap();
        self.poller.wait(Some(PATIENCE)).unwrap();
        assert!(self.poller.is_writable(self.id), "no room came");
        self.poller.watch_writable(self.id, false).unwrap();
    }

    /// Whether nothing is waiting.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.socket.recv(&mut self.batch).unwrap() == 0
    }
}

/// Queues a datagram of `len` bytes `mark`.
pub(crate) fn put(batch: &mut SendBatch, mark: u8, len: usize, to: SocketAddr, ecn: Ecn) {
    batch.space().expect("room in the batch")[..len].fill(mark);
    batch.commit(len, to, ecn);
}
