//! One thread that plays all peers: it answers each datagram with an ack, from few sockets that serve many addresses.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use punctual_net::udp::{
    Ecn, Poller, RecvBatch, SendBatch, SendLimits, Socket, SocketId, SocketOptions, Waker,
};

/// The running peers. They stop when this is dropped.
pub(crate) struct Peers {
    /// Where to reach them.
    pub(crate) addresses: Vec<SocketAddr>,
    sockets: Vec<Arc<Socket>>,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Peers {
    /// Starts `count` peers on `sockets` sockets; their acks have `ack_bytes`.
    ///
    /// All of 127.0.0.0/8 is this machine, so a socket bound to no address in particular serves many. Its acks come from
    /// 127.0.0.1 whichever of them was written to.
    pub(crate) fn start(count: usize, sockets: usize, ack_bytes: usize) -> io::Result<Self> {
        let options = SocketOptions {
            // Acks of different peers would be joined, since few sockets play many.
            offload: false,
            ..SocketOptions::default()
        };
        let mut poller = Poller::new()?;
        let mut watched = Vec::new();
        for _ in 0..sockets {
            let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
            let socket = Arc::new(Socket::bind(any, &options).map_err(io::Error::other)?);
            watched.push((poller.watch(Arc::clone(&socket))?, socket));
        }
        let sockets: Vec<_> = watched
            .iter()
            .map(|(_, socket)| Arc::clone(socket))
            .collect();
        let stop = Arc::new(AtomicBool::new(false));
        Ok(Self {
            addresses: (0..count).map(|at| address(at, &sockets)).collect(),
            sockets,
            stop: Arc::clone(&stop),
            waker: poller.waker(),
            thread: Some(thread::spawn(move || {
                answer(&mut poller, &watched, ack_bytes, &stop)
            })),
        })
    }

    /// Datagrams that did not fit the peers' buffers.
    pub(crate) fn drops(&self) -> u64 {
        let drops = self
            .sockets
            .iter()
            .filter_map(|socket| socket.kernel_drops());
        drops.sum()
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            eprintln!("the peers ended early: {error}");
        }
    }
}

fn address(at: usize, sockets: &[Arc<Socket>]) -> SocketAddr {
    let [.., high, low] = (at + 1).to_be_bytes();
    let port = sockets[at % sockets.len()].local_addr().port();
    SocketAddr::from(([127, 1, high, low], port))
}

fn answer(
    poller: &mut Poller,
    sockets: &[(SocketId, Arc<Socket>)],
    ack_bytes: usize,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut incoming = RecvBatch::new(64);
    let mut acks = SendBatch::new(SendLimits::default());
    while !stop.load(Ordering::Acquire) {
        poller.wait(Some(Duration::from_secs(1)))?;
        for (id, socket) in sockets {
            if !poller.is_readable(*id) {
                continue;
            }
            loop {
                socket.recv(&mut incoming)?;
                for datagram in incoming.datagrams() {
                    // As many acks as there are buffers fit, unless the kernel refused to take the last ones.
                    let Some(space) = acks.space() else { break };
                    space[..ack_bytes].fill(0xAC);
                    acks.commit(ack_bytes, datagram.from, Ecn::Ect0);
                }
                socket.send(&mut acks)?;
                if !incoming.is_full() {
                    break;
                }
            }
        }
    }
    Ok(())
}
