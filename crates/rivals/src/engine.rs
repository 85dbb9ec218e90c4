//! What a rival is to the rest of this crate: one flow at one end, without sockets and clocks.

use std::net::SocketAddr;
use std::time::Instant;

use punctual_lab::arm::{ArmError, Refused, Task};

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

/// A transport with its settings: what [`crate::flows::Contender`] makes an arm of.
pub(crate) trait Rival: Send + Sync {
    /// One flow at one end.
    type Flow: Engine;

    /// As [`punctual_lab::arm::Arm::name`].
    fn name(&self) -> &'static str;

    /// As [`punctual_lab::arm::Arm::settings`].
    fn settings(&self) -> String;

    /// What makes the flows of a side.
    ///
    /// # Errors
    /// When what they share cannot be made.
    fn maker(&self, task: &Task) -> Result<Maker<'_, Self::Flow>, ArmError>;
}

/// Makes a flow at one end.
pub(crate) type Maker<'a, F> = Box<dyn FnMut(Link) -> Result<F, ArmError> + 'a>;

/// One flow at one end. After any of the calls that change it, `flows.rs` takes out what it has to deliver and to send, and asks
/// for its next timeout.
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
