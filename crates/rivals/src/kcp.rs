//! KCP in message mode.
//!
//! KCP has no handshake. Here the client's first message is empty and tells the server its address, and the flow is ready
//! once that message is acknowledged; it goes through KCP itself, which repeats it until it arrives.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ::kcp::Kcp;
use punctual_lab::arm::{ArmError, Refused, Task};

use crate::QUEUE_BYTES_MAX;
use crate::engine::{Engine, Link, Maker, Rival, Role};

/// Window of both directions in segments: never in the way of what [`QUEUE_BYTES_MAX`] lets wait.
const WINDOW: u16 = 1024;
/// KCP's own clock in milliseconds; the fastest that the library allows.
const INTERVAL_MS: i32 = 10;
/// A segment is sent again once this many later ones were acknowledged.
const FAST_RESEND: i32 = 2;

/// The arm.
pub(crate) struct KcpTurbo;

impl Rival for KcpTurbo {
    type Flow = Flow;

    fn name(&self) -> &'static str {
        "kcp"
    }

    fn settings(&self) -> String {
        format!(
            "turbo mode of KCP's documentation: nodelay 1, interval {INTERVAL_MS} ms, resend {FAST_RESEND}, no congestion \
             window (its least RTO is then 30 ms, growing by half); message mode, windows of {WINDOW} segments, MTU 1,400; \
             flushed at each send and acknowledged at each datagram, as its notes on latency advise; a dead link is never \
             declared"
        )
    }

    fn maker(&self, _: &Task) -> Result<Maker<'_, Flow>, ArmError> {
        Ok(Box::new(Flow::new))
    }
}

/// Datagrams that KCP wrote.
#[derive(Default, Clone)]
struct Outbox(Rc<RefCell<VecDeque<Vec<u8>>>>);

impl io::Write for Outbox {
    fn write(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().push_back(datagram.to_vec());
        Ok(datagram.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A flow.
pub(crate) struct Flow {
    kcp: Kcp<Outbox>,
    outbox: Outbox,
    epoch: Instant,
    role: Role,
    /// The server has had the client's first message, the client its acknowledgement.
    is_ready: bool,
    /// Waits for its first message at the server, or to be begun at the client.
    is_new: bool,
    received: Vec<u8>,
}

impl Flow {
    fn new(link: Link) -> Result<Self, ArmError> {
        let outbox = Outbox::default();
        let mut kcp = Kcp::new(link.flow + 1, outbox.clone());
        kcp.set_nodelay(true, INTERVAL_MS, FAST_RESEND, true);
        kcp.set_wndsize(WINDOW, WINDOW);
        kcp.set_maximum_resend_times(u32::MAX);
        let mut flow = Self {
            kcp,
            outbox,
            epoch: Instant::now(),
            role: link.role,
            is_ready: false,
            is_new: true,
            received: Vec::new(),
        };
        flow.update(flow.epoch);
        Ok(flow)
    }

    /// Milliseconds of this flow's clock; KCP expects it to wrap.
    fn clock(&self, now: Instant) -> u32 {
        now.saturating_duration_since(self.epoch).as_millis() as u32
    }

    fn update(&mut self, now: Instant) {
        let clock = self.clock(now);
        // Writing to the outbox cannot fail, and nothing else in it can.
        _ = self.kcp.update(clock);
    }

    /// Sends at once what KCP would send at its next interval.
    fn flush(&mut self, now: Instant) {
        self.update(now);
        _ = self.kcp.flush();
    }
}

impl Engine for Flow {
    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn handle_datagram(&mut self, now: Instant, _: SocketAddr, datagram: &[u8]) {
        self.update(now);
        if self.kcp.input(datagram).is_ok() {
            // Acknowledges, and sends again what KCP now takes for lost.
            _ = self.kcp.flush();
        }
        if self.role == Role::Client && !self.is_new && self.kcp.wait_snd() == 0 {
            self.is_ready = true;
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.role == Role::Client && self.is_new {
            self.is_new = false;
            _ = self.kcp.send(&[]);
            self.flush(now);
        } else {
            self.update(now);
        }
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> Result<(), Refused> {
        let segments_max = QUEUE_BYTES_MAX / self.kcp.mss();
        if self.kcp.wait_snd() + message.len().div_ceil(self.kcp.mss()) > segments_max {
            return Err(Refused);
        }
        self.update(now);
        self.kcp.send(message).map_err(|_| Refused)?;
        self.flush(now);
        Ok(())
    }

    fn poll_messages(&mut self, deliver: &mut dyn FnMut(&[u8])) {
        while let Ok(size) = self.kcp.peeksize() {
            self.received.resize(size, 0);
            if self.kcp.recv(&mut self.received).is_err() {
                return;
            }
            if self.role == Role::Server && self.is_new {
                self.is_new = false;
                self.is_ready = true;
            } else {
                deliver(&self.received);
            }
        }
    }

    fn poll_transmit(&mut self, _: Instant, transmit: &mut dyn FnMut(&[u8])) {
        while let Some(datagram) = self.outbox.0.borrow_mut().pop_front() {
            transmit(&datagram);
        }
    }

    fn next_timeout(&mut self, now: Instant) -> Option<Instant> {
        // Without anything on its way KCP's clock may rest: acknowledgements do not wait for it.
        if self.kcp.wait_snd() == 0 {
            return None;
        }
        let wait = self.kcp.check(self.clock(now));
        Some(now + Duration::from_millis(u64::from(wait)))
    }
}
