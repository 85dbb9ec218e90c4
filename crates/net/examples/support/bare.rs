//! The bare loop: `sendmmsg`, `recvmmsg`, and nothing that a protocol would do.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_net::udp::{Ecn, Poller, RecvBatch, SendBatch, SendLimits, Socket, SocketOptions};

use super::load::Load;
use super::reckoning::{Measured, Meter};

/// Without an ack for so long, the rest is taken for lost.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Sends, receives, and does nothing else.
pub(crate) struct BareServer {
    socket: Arc<Socket>,
    poller: Poller,
    outgoing: SendBatch,
    incoming: RecvBatch,
    bytes: usize,
    sent: usize,
    acked: usize,
}

impl BareServer {
    /// A server whose datagrams have `bytes`, sent `batch` at a time.
    pub(crate) fn new(load: &Load, bytes: usize, batch: usize) -> Result<Self, Box<dyn Error>> {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let socket = Arc::new(Socket::bind(address, &SocketOptions::default())?);
        let mut poller = Poller::new()?;
        if load.tick.is_zero() {
            poller.watch(Arc::clone(&socket))?;
        }
        Ok(Self {
            socket,
            poller,
            outgoing: SendBatch::new(SendLimits {
                datagrams: batch,
                datagram_bytes_max: bytes,
            }),
            incoming: RecvBatch::new(batch.clamp(1, 64)),
            bytes,
            sent: 0,
            acked: 0,
        })
    }

    /// Sends all of the load, and receives the acks.
    pub(crate) fn run(&mut self, load: &Load, peers: &[SocketAddr]) -> io::Result<Measured> {
        let meter = Meter::start();
        let mut last_ack = Instant::now();
        while self.acked < load.datagrams && last_ack.elapsed() < SILENCE_MAX {
            let unanswered = self.sent - self.acked;
            let room = peers.len().saturating_sub(unanswered);
            self.send(room.min(load.datagrams - self.sent), peers)?;
            if self.receive()? > 0 {
                last_ack = Instant::now();
            }
            let idle = self.sent == load.datagrams || self.sent - self.acked >= peers.len();
            if !load.tick.is_zero() {
                self.poller.wait(Some(load.tick))?;
            } else if idle {
                self.poller.wait(Some(SILENCE_MAX))?;
            }
        }
        Ok(meter.stop(self.sent, self.acked, self.socket.stats()))
    }

    /// Sends to the next `count` peers.
    fn send(&mut self, count: usize, peers: &[SocketAddr]) -> io::Result<()> {
        for _ in 0..count {
            if self.outgoing.space().is_none() {
                self.flush()?;
            }
            let space = self.outgoing.space().expect("the batch was flushed");
            // What every sender does at least: write each byte once.
            space[..self.bytes].fill(self.sent as u8);
            let peer = peers[self.sent % peers.len()];
            self.outgoing.commit(self.bytes, peer, Ecn::Ect0);
            self.sent += 1;
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        // Loopback never blocks; another device would, and then the loop spins for the short while.
        while self.socket.send(&mut self.outgoing)?.blocked {}
        Ok(())
    }

    /// Takes what is waiting.
    fn receive(&mut self) -> io::Result<usize> {
        let before = self.acked;
        loop {
            self.socket.recv(&mut self.incoming)?;
            // Look at each, as a receiver must.
            let acks = self.incoming.datagrams();
            self.acked += acks.filter(|ack| ack.payload[0] == 0xAC).count();
            if !self.incoming.is_full() {
                return Ok(self.acked - before);
            }
        }
    }
}
