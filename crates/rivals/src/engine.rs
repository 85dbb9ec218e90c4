//! What a rival is to the rest of this crate: one flow at one end, without sockets and clocks.

use std::net::SocketAddr;
use std::time::Instant;

use punctual_lab::arm::Refused;

/// Where and which end a flow is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// The number of the flow.
    pub(crate) flow: u32,
    /// Which end this is.
    pub(crate) role: Role,
    /// This end's address.
    pub(crate) local: SocketAddr,
    /// The server's address.
    pub(crate) server: SocketAddr,
}

/// The two ends of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    Client,
}

/// One flow at one end. After any of the calls that change it, [`crate::flows::Flows`] takes out what it has to deliver and to
/// send, and asks for its next timeout.
pub(crate) trait Engine {
    /// Whether it can carry messages now.
    fn is_ready(&self) -> bool;

    /// A datagram came.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]);

    /// It is the time that [`Self::next_timeout`] named, or later.
    fn handle_timeout(&mut self, now: Instant);

    /// The application sends a message.
    fn send(&mut self, now: Instant, message: &[u8]) -> Result<(), Refused>;

    /// Takes out all whole messages that have arrived.
    fn poll_messages(&mut self, deliver: &mut dyn FnMut(&[u8]));

    /// Takes out all datagrams that are to be sent now.
    fn poll_transmit(&mut self, now: Instant, transmit: &mut dyn FnMut(&[u8]));

    /// When [`Self::handle_timeout`] is to be called; None while there is nothing to wait for.
    fn next_timeout(&mut self, now: Instant) -> Option<Instant>;
}
